#pragma once
// A process of the cluster: the master role, the agent role, or both, with their actors, ports and folders.

#include "model/commands/table.hpp"
#include "runtime/node/data_dir.hpp"
#include "storage/journal.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace caf {
class actor_system;
}
namespace troupe::api {
class accounts;
class gate;
} // namespace troupe::api

namespace troupe::node {

/// What a process that holds the node inside itself puts in place of what a program of its own would have.
struct host_process {
  bool http =
    true; ///< false: no port, and no listener of the agent; tasks then speak over the task link alone
  bool link = true;            ///< false: agents of other processes cannot join
  bool remembered = true;      ///< false: this user's client does not find the node by itself
  bool in_memory = false;      ///< nothing of the master is written to the disk, and all is forgotten with it
  bool shared_rocksdb = false; ///< RocksDB's background threads are those of the host, and outlive the node
  caf::actor_system* actors =
    nullptr; ///< the host's, with our message types; has no link. Else the node has its own
  std::filesystem::path python_bin;            ///< folder of the tasks' python3; empty: as ever
  std::function<void(const std::string&)> say; ///< a line for people, from any thread; none: standard error
  std::function<time_point()> now;             ///< wall time; none: the system's
  std::function<void()> committed; ///< called after every commit, in the journal's thread; must be quick
};

struct node_options {
  std::filesystem::path data_dir;
  std::string listen; ///< HTTP, "HOST:PORT"; empty: 127.0.0.1:8080, or any free port where that is taken
  std::string agent_listen; ///< node link; empty: 127.0.0.1 and any free port
  bool master = true, agent = true;
  std::string master_address; ///< only for the agent role: "HOST:PORT"
  std::string agent_name;     ///< empty: the host's name
  std::optional<int> slots;   ///< artificial CPU slots; none: the processors this process may use
  std::map<std::string, std::string> labels; ///< of the agent's host
  std::string pool; ///< that the agent asks for; empty: as the cluster file says, else the default one
  std::filesystem::path tls_dir; ///< folder that `tls init` made; empty: plain, on loopback only
  std::string join_token;
  std::filesystem::path trace_actors;
  bool allow_faults = false; ///< the shell may drop, delay and pause: for tests
  bool plain_http = false;   ///< the HTTP port may be plain where other hosts reach it: behind a proxy
  std::string version;
  bool web = true;               ///< the HTTP port has the web page
  std::filesystem::path web_dir; ///< folder of a built page instead of the one in the binary; may be empty
  std::vector<std::string> web_hosts; ///< names that a server on loopback answers to beside its own
  std::string proxy_domain;           ///< below it each page of a task has a name of its own; empty: none
  bool any_port = false;              ///< `run`: nobody waits at a known address
  std::string cluster_name;           ///< only for the master role; empty: "troupe"
  std::filesystem::path tls_cert,
    tls_key; ///< files for the HTTP port instead of those in `tls_dir`; both or none
  /// Master role: called with the configuration in force, at the start and after each change. Must not block.
  std::function<void(const value&)> configured;
  host_process host;
  bool roles = false;                      ///< rights follow roles (`cluster.authz: rbac`)
  bool strict_queue = false;               ///< only admins change what others wait for
  duration token_usual{}, token_longest{}; ///< lives of access tokens; 0: 30 days
  std::string webhook_key; ///< key of webhooks' signatures; empty: as the configuration in force says
  value configuration; ///< what will be put in force after the start; null: what is in force already. Leases
                       ///< and webhooks are of it, as a start alone can set them
  std::string proxy_listen;       ///< a further port for tasks' pages alone, "HOST:PORT"; empty: none
  int scheduler_threads = 0;      ///< run actors, in a system of the node's own; 0: 4
  std::string log_level = "info"; ///< least of what actors do that is logged; one of commands::log_levels
};

/// UUIDs by which clients tell clusters apart.
struct cluster_ids {
  std::string cluster; ///< made at the first start with a data directory, and kept in it
  std::string start;   ///< id of this start
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

  const std::string& url() const; ///< URL that a client on this host dials; empty: no port
  /// The URL with the host that was asked for, as "http://0.0.0.0:8080"; empty without a port.
  const std::string& address() const;
  /// Where a browser finds the web page below `path`; with a code that signs `user` in once, where there is
  /// such a user. Empty where there is no page.
  std::string web_link(const std::string& user, const std::string& path) const;
  api::gate& commands() const;                  ///< only in the master role
  const cluster_ids& ids() const;               ///< only in the master role
  std::shared_ptr<api::accounts> users() const; ///< only in the master role
  caf::actor_system& actors() const;
  /// What the node counts, by name: actors, messages, their backlog, run time. Nothing in a borrowed system.
  std::vector<std::pair<std::string, double>> measures() const;
  std::shared_ptr<storage::reader> reads() const; ///< only in the master role
  /// Master role: runs a command of the API's gate as `admin`; blocks for a minute at most.
  template <commands::command C>
  result<value> command(C what) const {
    return command(C::is.name, commands::write(std::move(what)));
  }
  /// The agent's tasks end with it, also where they would wait for the next one.
  void end_tasks_with_agent();
  /// Blocks until somebody asks for the end (`troupe down`, a signal; the error is empty) or a part fails for
  /// good.
  error wait();
  /// From a signal handler's thread or any other: makes `wait` return.
  void ask_to_stop(error why);

  /// Ends the agent alone, from any thread: for a program that has to leave at once. With both roles here,
  /// the tasks end too.
  void end_agent();
  /// Ends the actors. With both roles here, the tasks end too and are run again at the next start.
  void stop();

private:
  result<value> command(const std::string& name, value fields) const;
  class inside;
  explicit node(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::node
