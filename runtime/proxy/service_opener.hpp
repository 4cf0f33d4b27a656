#pragma once
// The agent's side: opens a connection to a service of a task and brings it to the master, which joins it
// with a viewer's connection. The agent dials both ends; nobody dials the agent. One thread, from the first
// order on.

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
  int port = 0; ///< port on 127.0.0.1
  /// Path of a Unix socket in place of a port; `socket` is relative to `folder`, the task's folder.
  std::string folder, socket;
};

struct opener_options {
  /// Returns the master's present address; nothing while it is not known. Called on the opener's thread; must
  /// not block.
  std::function<std::optional<http::master_address>()> master;
  /// Returns what the task's own record says; errc::not_found if it names no such service.
  std::function<result<service_target>(allocation_id, const std::string& service)> find;
  /// Checks that the task itself, or at least no other task, listens at this port of the host; the error says
  /// why the port is not joined. Called on the opener's thread, before the port is dialled. Empty: no check.
  std::function<result<void>(allocation_id, int port)> own;
  /// If the master runs in this process: takes the connected socket, or the fault, without the way over HTTP.
  /// False if nobody waits for it. Called on the opener's thread; must not block.
  std::function<bool(const std::string& connection, const std::string& secret, result<workers::owned_fd>)>
    hand_over;
  std::size_t most = 4096; ///< limit of connections at the same time
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

  /// Opens a connection. Any thread may call this; it does not block.
  void open(order x);

private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::proxy
