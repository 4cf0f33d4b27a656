#pragma once
// Keeps the agents that a configuration names: those of this host as child processes, those of other hosts
// over ssh. It starts an agent that ended again, with back-off. It ends agents, with their tasks, that the
// configuration no longer names, and all of them at its own end. A kill -9 of this process leaves the tasks
// to the agents of the next start.

#include "runtime/launch/kept_nodes.hpp"

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
  std::filesystem::path data_dir; ///< folder of the master; agents use nodes/NAME in it
  std::string master;             ///< "HOST:PORT" that agents of this host dial
  std::filesystem::path tls_dir;  ///< empty: plain
  std::vector<std::filesystem::path>
    copied; ///< files that a host without the program gets: programs, then the Python folder
  std::function<void(const std::string&)> say; ///< one line for people; thread-safe
};

class node_keeper {
public:
  explicit node_keeper(keeper_setup setup);
  ~node_keeper(); ///< stops
  node_keeper(const node_keeper&) = delete;
  node_keeper& operator=(const node_keeper&) = delete;

  /// May be called from any thread; never blocks. The newest configuration counts.
  void want(const value& configuration);
  /// Ends all agents and their tasks; at most 30 s.
  void stop();

private:
  using clock = std::chrono::steady_clock;
  void work();
  void step(const keeper_event& ev);
  void reap();
  void run(const start_agent& x);
  void run(const kill_ssh& x);
  void run(const end_agent& x);
  void run(const say_line& x) { setup_.say(x.text); }
  pid_t taken_pid(const std::string& name);
  pid_t start(const std::string& name, const value& node);
  void end(const std::string& name, const value& node, pid_t child);
  std::vector<std::string> agent_words(const std::string& name, const value& node) const;
  std::string start_script(const std::string& name, const value& node) const;

  keeper_setup setup_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<value> wanted_;
  bool stop_ = false;
  kept_nodes machine_;                ///< the thread owns this and the members below
  std::map<std::string, pid_t> pids_; ///< of children that run, or of the ssh at work
  std::thread thread_;
};

/// The command that starts the agent of a node with `manual: true`.
std::string join_command(const value& node, const std::string& master, const std::filesystem::path& tls_dir);

} // namespace troupe::launch
