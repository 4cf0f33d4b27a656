#pragma once
// The way from HTTP into the cluster: the commands of model/commands/table.hpp. The API knows no actor; the
// node implements the gate.

#include "model/commands/table.hpp"

#include <functional>
#include <string>

namespace troupe::api {

struct principal {
  std::string user; ///< "determined", "admin"; empty: nobody
  bool admin = false;
  std::string allocation; ///< set where a task speaks: "12.3"
};

/// Called exactly once, from any thread.
using answer = std::function<void(result<value>)>;

/// One of several orders, and who hears what became of it.
struct grouped_order {
  std::string command;
  value fields;
  answer done;
};
template <commands::command C>
grouped_order grouped(C what, answer done = {}) {
  return {C::is.name, commands::write(std::move(what)), std::move(done)};
}

class gate {
public:
  virtual ~gate() = default;

  /// Runs a command; answers when its effect is durable, or with the error (invalid, not_found, conflict,
  /// denied, no_space, timeout ...). Never blocks.
  template <commands::command C>
  void order(const principal& who, C what, answer done) {
    call(who, C::is.name, commands::write(std::move(what)), std::move(done));
  }

  /// The same by name, as it crosses.
  virtual void call(const principal& who, const std::string& command, value fields, answer done) = 0;

  /// Several orders for the cluster, each with its own answer. What the cluster itself decides on them
  /// becomes durable at once, or none of it does; what an experiment's own actor decides (a kill, a pause)
  /// one by one.
  virtual void call_together(const principal& who, std::vector<grouped_order> orders) {
    for (auto& one : orders)
      call(who, one.command, std::move(one.fields), std::move(one.done));
  }
};

} // namespace troupe::api
