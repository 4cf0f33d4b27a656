#pragma once
// The way from HTTP into the cluster: it takes the commands of model/commands/table.hpp. The API knows no
// actor; the node implements the gate.

#include "model/commands/table.hpp"

#include <functional>
#include <string>

namespace troupe::api {

struct principal {
  std::string user; ///< "determined", "admin"; empty: nobody
  bool admin = false;
  std::string allocation; ///< allocation of the task that calls, as "12.3"; empty: a user calls
};

/// Takes the outcome of a command. Called exactly once, from any thread.
using answer = std::function<void(result<value>)>;

/// One of several orders, and what takes its outcome.
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

  /// Runs a command. Answers when the command's effect is durable, or with the error (invalid, not_found,
  /// conflict, denied, no_space, timeout ...). Never blocks.
  template <commands::command C>
  void order(const principal& who, C what, answer done) {
    call(who, C::is.name, commands::write(std::move(what)), std::move(done));
  }

  /// Runs a command given by name, with its fields as they cross to the cluster.
  virtual void call(const principal& who, const std::string& command, value fields, answer done) = 0;

  /// Runs several orders, each with its own answer. What the cluster itself decides becomes durable together,
  /// or nothing of it does. What the actor of an experiment decides (a kill, a pause) becomes durable one by
  /// one.
  virtual void call_together(const principal& who, std::vector<grouped_order> orders) {
    for (auto& one : orders)
      call(who, one.command, std::move(one.fields), std::move(one.done));
  }
};

} // namespace troupe::api
