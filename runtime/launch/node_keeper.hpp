#pragma once
// Keeps the agents that a configuration names: those of this host as child processes, those of other hosts
// over ssh. Started again with back-off where they end; ended, with their tasks, where the configuration no
// longer names them, and with the keeper itself. A kill -9 of this process leaves the tasks to the agents of
// the next start.

#include "model/value.hpp"

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::launch {

struct keeper_setup {
  std::filesystem::path program;  ///< this program
  std::filesystem::path data_dir; ///< folder of the master; agents get nodes/NAME in it
  std::string master;             ///< "HOST:PORT" that agents of this host dial
  std::filesystem::path tls_dir;  ///< empty: plain
  std::vector<std::filesystem::path>
    copied; ///< files copied to a host without the program: programs, then the Python folder
  std::function<void(const std::string&)> say; ///< one line for people; thread-safe
};

class node_keeper {
public:
  explicit node_keeper(keeper_setup setup);
  ~node_keeper(); ///< stops
  node_keeper(const node_keeper&) = delete;
  node_keeper& operator=(const node_keeper&) = delete;

  /// From any thread; never blocks. The newest counts.
  void want(const value& configuration);
  /// Ends all agents and their tasks; at most 30 s.
  void stop();

private:
  using clock = std::chrono::steady_clock;
  struct kept {
    value node;    ///< node in the configuration
    pid_t pid = 0; ///< pid of the child, or of the ssh at work; 0: none
    clock::time_point begun, due;
    std::chrono::milliseconds wait{500};
    bool up = false; ///< whether the agent of a host over ssh was seen
    bool is_remote() const;
  };

  void work();
  void reconcile(const value& nodes);
  void tend(const std::string& name, kept& one);
  void start(const std::string& name, kept& one);
  void end(const std::string& name, kept& one);
  std::vector<std::string> agent_words(const std::string& name, const kept& one) const;
  std::string start_script(const std::string& name, const kept& one) const;

  keeper_setup setup_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<value> wanted_;
  bool stop_ = false;
  std::map<std::string, kept> nodes_; ///< only for the thread
  std::thread thread_;
};

/// How somebody starts the agent of a node with `manual: true`.
std::string join_command(const value& node, const std::string& master, const std::filesystem::path& tls_dir);

} // namespace troupe::launch
