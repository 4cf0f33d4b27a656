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

/// What a program that embeds the node provides in place of what troupe's own program would use.
struct host_process {
  /// False: no HTTP port, and no listener of the agent; tasks then use only the task link.
  bool http = true;
  bool link = true;       ///< whether agents of other processes can join
  bool remembered = true; ///< whether this user's client finds the node by itself
  /// Whether the master writes nothing to the disk and forgets everything when it ends.
  bool in_memory = false;
  /// Whether RocksDB uses background threads of the embedding program, which live longer than the node.
  bool shared_rocksdb = false;
  /// The embedding program's actor system, with our message types; it has no node link. Null: the node makes
  /// an actor system of its own.
  caf::actor_system* actors = nullptr;
  std::filesystem::path python_bin; ///< folder of the tasks' python3; empty: find_places() finds it
  /// Takes a line for people; called on any thread; none: standard error.
  std::function<void(const std::string&)> say;
  std::function<time_point()> now; ///< wall time; none: the system's clock
  /// Called after every commit, on the journal's thread; must be fast.
  std::function<void()> committed;
};

struct node_options {
  std::filesystem::path data_dir;
  /// HTTP, "HOST:PORT"; empty: 127.0.0.1:8080, or any free port if that one is taken.
  std::string listen;
  std::string agent_listen; ///< node link; empty: any free port of 127.0.0.1
  bool master = true, agent = true;
  std::string master_address; ///< only for the agent role: "HOST:PORT"
  std::string agent_name;     ///< empty: the name of the host
  /// Number of artificial CPU slots; none: one for each processor that this process may use.
  std::optional<int> slots;
  std::map<std::string, std::string> labels; ///< labels of the agent's host
  /// Pool that the agent asks for; empty: the pool in the cluster file, or the default pool.
  std::string pool;
  /// Folder that `tls init` made; empty: no TLS, which is allowed on loopback only.
  std::filesystem::path tls_dir;
  std::string join_token;
  std::filesystem::path trace_actors;
  /// Whether the operators' shell may drop, delay and hold mail; for tests.
  bool allow_faults = false;
  /// Whether the HTTP port may lack TLS although other hosts reach it; for use behind a proxy.
  bool plain_http = false;
  std::string version;
  bool web = true; ///< whether the HTTP port has the web page
  /// Folder of a built web page that replaces the one in the binary; empty: none.
  std::filesystem::path web_dir;
  /// Names to which a server on loopback answers besides its own.
  std::vector<std::string> web_hosts;
  /// Domain below which each page of a task has a name of its own; empty: none.
  std::string proxy_domain;
  /// For `run`: any port will do, because nobody waits at a known address.
  bool any_port = false;
  std::string cluster_name; ///< only for the master role; empty: "troupe"
  /// Files for the HTTP port that replace those in `tls_dir`; both are set or none.
  std::filesystem::path tls_cert, tls_key;
  /// Master role: called with the configuration in force, at the start and after each change. Must not block.
  std::function<void(const value&)> configured;
  host_process host;
  bool roles = false; ///< whether rights follow roles (`cluster.authz: rbac`)
  /// Whether only admins may change what others wait for.
  bool strict_queue = false;
  /// Usual and longest life of access tokens; 0: 30 days.
  duration token_usual{}, token_longest{};
  /// Key of webhooks' signatures; empty: the key in the configuration in force.
  std::string webhook_key;
  /// What will be put in force after the start; null: what is in force already. Leases and webhooks are taken
  /// from it at once, because only a start can set them.
  value configuration;
  /// A further port, only for tasks' pages, "HOST:PORT"; empty: none.
  std::string proxy_listen;
  /// Number of threads that run actors, in an actor system of the node's own; 0: 4.
  int scheduler_threads = 0;
  /// Least severe level of actors' log lines that are written; one of commands::log_levels.
  std::string log_level = "info";
};

/// UUIDs by which clients distinguish clusters.
struct cluster_ids {
  std::string cluster; ///< made at the first start with a data directory, and kept there
  std::string start;   ///< made at each start
};

class node {
public:
  /// Recovers, listens, and answers /health before it returns. The agent role starts with `start_agent`.
  static result<std::unique_ptr<node>> start(node_options options);
  ~node(); ///< stops the node

  /// Joins the cluster; if the node has both roles, the cluster of its own master. Tasks of earlier lives are
  /// adopted.
  result<void> start_agent();

  /// Blocks until the agent role is registered; fails if it cannot be, or after `limit`.
  result<void> wait_registered(std::chrono::milliseconds limit);

  const std::string& url() const; ///< URL that a client on this host dials; empty: no port
  /// The URL with the host that was asked for, for example "http://0.0.0.0:8080"; empty without a port.
  const std::string& address() const;
  /// The URL of the web page at `path`. If there is a user `user`, the URL has a code that signs this user
  /// in once. Empty if there is no web page.
  std::string web_link(const std::string& user, const std::string& path) const;
  api::gate& commands() const;                  ///< only in the master role
  const cluster_ids& ids() const;               ///< only in the master role
  std::shared_ptr<api::accounts> users() const; ///< only in the master role
  caf::actor_system& actors() const;
  /// What the node counts, by name: actors, messages, their backlog, their run time. Empty in a borrowed
  /// actor system.
  std::vector<std::pair<std::string, double>> measures() const;
  std::shared_ptr<storage::reader> reads() const; ///< only in the master role
  /// Master role: runs a command of the API's gate as `admin`; blocks for at most a minute.
  template <commands::command C>
  result<value> command(C what) const {
    return command(C::is.name, commands::write(std::move(what)));
  }
  /// Makes the agent's tasks end with the agent, even if they would wait for the next one.
  void end_tasks_with_agent();
  /// Blocks until somebody asks the node to stop (`troupe down`, a signal; the error is then empty) or a
  /// part of it fails for good.
  error wait();
  /// Makes `wait` return. The thread of a signal handler or any other thread may call this.
  void ask_to_stop(error why);

  /// Ends only the agent; for a program that has to exit at once. Any thread may call this. If the node has
  /// both roles, the tasks end as well.
  void end_agent();
  /// Ends the actors. If the node has both roles, the tasks end as well and run again at the next start.
  void stop();

private:
  result<value> command(const std::string& name, value fields) const;
  class inside;
  explicit node(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::node
