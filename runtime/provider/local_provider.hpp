#pragma once
// Agents as processes of the master's host. An instance POOL-N is a folder with the agent's data. Its process
// lives on when the master dies, as an instance of a cloud does; only an orderly shutdown of the master ends
// it.

#include "runtime/provider/providers.hpp"

namespace troupe::provider {

class local_provider : public instance_provider {
public:
  local_provider(const value& settings, world where);
  result<std::vector<cloud_instance>> list() override;
  result<std::vector<std::string>> launch(int count) override;
  result<void> terminate(const std::vector<std::string>& ids) override;
  void close() override;

private:
  struct local_agent {
    bool running = false; ///< whether a process holds the lock of its folder
    int pid = 0;          ///< 0: there is no process
    time_point launched;
  };
  std::optional<local_agent> look(const std::string& id) const;
  std::vector<std::string> names() const;
  bool is_ours(const std::string& id) const;

  world where_;
  int slots_;
  std::vector<std::string> labels_; ///< each is KEY=VALUE
};

} // namespace troupe::provider
