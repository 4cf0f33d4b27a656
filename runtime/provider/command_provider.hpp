#pragma once
// A provider that runs three commands of the user: list, launch, terminate.

#include "runtime/provider/providers.hpp"

#include <map>

namespace troupe::provider {

class command_provider : public instance_provider {
public:
  static constexpr std::chrono::milliseconds limit{60'000}; ///< limit of the time of each call

  command_provider(const value& settings, world where);
  result<std::vector<cloud_instance>> list() override;
  result<std::vector<std::string>> launch(int count) override;
  result<void> terminate(const std::vector<std::string>& ids) override;

private:
  result<std::string> call(const char* which, std::vector<std::string> arguments, int count) const;

  std::map<std::string, std::vector<std::string>> commands_;
  std::map<std::string, std::string> environment_;
  std::shared_ptr<const std::atomic<bool>> ends_;
};

} // namespace troupe::provider
