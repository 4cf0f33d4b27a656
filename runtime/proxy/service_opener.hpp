#pragma once
// The agent's side: opens a connection to a service of a task and brings it to the master, who joins it with
// a viewer's. The agent dials both ends; nobody dials the agent. One thread, from the first order on.

#include "model/ids.hpp"
#include "model/result.hpp"
#include "model/task_service.hpp"
#include "runtime/http/master_address.hpp"
#include "workers/owned_fd.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::proxy {

/// Where a service listens on this host.
struct service_target {
  int port = 0;               ///< on 127.0.0.1
  std::string folder, socket; ///< instead of a port: a Unix socket, by its path below the task's folder
};

struct opener_options {
  /// Where the master is now; nothing while that is not known. From the opener's thread; must not block.
  std::function<std::optional<http::master_address>()> master;
  /// What the task's own record says; errc::not_found where it names no such service.
  std::function<result<service_target>(allocation_id, const std::string& service)> find;
  /// Whether the task, or at least no other one, listens at this port of its host; else why it is not joined.
  /// From the opener's thread, before the port is dialled. Empty: it is not asked.
  std::function<result<void>(allocation_id, int port)> own;
  /// Where the master is of this process: takes the connected socket, or the fault, without the way over
  /// HTTP; false where nobody waits for it. From the opener's thread; must not block.
  std::function<bool(const std::string& connection, const std::string& secret, result<workers::owned_fd>)>
    hand_over;
  std::size_t most = 4096; ///< connections at once
};

class service_opener {
public:
  struct order {
    allocation_id allocation;
    std::string service, connection, secret;
    bool runs = true; ///< false: the master is told that the task does not run
  };

  explicit service_opener(opener_options how);
  ~service_opener(); ///< ends every connection

  /// From any thread; does not block.
  void open(order x);

private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::proxy
