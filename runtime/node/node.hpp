#pragma once
// A process of the cluster: the master role, the agent role, or both, with their actors, ports and folders.

#include "runtime/node/data_dir.hpp"
#include "storage/journal.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace troupe::node {

struct node_options {
  std::filesystem::path data_dir;
  std::string listen;               ///< HTTP, "HOST:PORT"; empty: 127.0.0.1:8080, or any free port where that is taken
  std::string agent_listen;         ///< node link; empty: 127.0.0.1 and any free port
  bool master = true, agent = true;
  std::string master_address;       ///< of the agent role alone: "HOST:PORT"
  std::string agent_name;           ///< empty: the host's name
  std::optional<int> slots;         ///< artificial CPU slots; none: the processors this process may use
  std::filesystem::path tls_dir;    ///< as `tls init` made it; empty: plain, on loopback only
  std::string join_token;
  std::filesystem::path trace_actors;
  bool allow_faults = false;        ///< the shell may drop, delay and pause: for tests
  std::string version;
  bool any_port = false;            ///< `run`: nobody waits at a known address
  std::string cluster_name;         ///< of the master role; empty: "troupe"
  std::filesystem::path tls_cert, tls_key; ///< of the HTTP port instead of those in `tls_dir`; both or none
  /// Of the master role: which configuration is in force, at the start and after each change. Must not block.
  std::function<void(const value&)> configured;
};

class node {
public:
  /// Recovers, listens, and answers /health before it returns. The agent role starts with `start_agent`.
  static result<std::unique_ptr<node>> start(node_options options);
  ~node(); ///< stops

  /// Joins the cluster; of a node with both roles, its own. Tasks of earlier lives are adopted.
  result<void> start_agent();

  /// Blocks until the agent role is registered; fails when it cannot be, or after `limit`.
  result<void> wait_registered(std::chrono::milliseconds limit);

  const std::string& url() const;
  std::shared_ptr<storage::reader> reads() const; ///< of the master role
  /// Of the master role: a command of the API's gate as `admin`; blocks for a minute at most.
  result<value> command(const std::string& name, value fields) const;
  /// The agent's tasks end with it, also where they would wait for the next one.
  void end_tasks_with_agent();
  /// Blocks until somebody asks for the end (`troupe down`, a signal; the error is empty) or a part fails for good.
  error wait();
  /// From a signal handler's thread or any other: makes `wait` return.
  void ask_to_stop(error why);

  /// Ends the agent alone, from any thread: for a program that has to leave at once. With both roles here, the tasks end too.
  void end_agent();
  /// Ends the actors. With both roles here, the tasks end too and are run again at the next start.
  void stop();

private:
  class inside;
  explicit node(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::node
