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
};

} // namespace troupe::api
