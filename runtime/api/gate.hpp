#pragma once
// The way from HTTP into the cluster: commands by name. The API knows no actor; the node implements the gate.

#include "model/value.hpp"

#include <functional>
#include <string>

namespace troupe::api {

struct principal {
  std::string user;       ///< "determined", "admin"; empty: nobody
  bool admin = false;
  std::string allocation; ///< set where a task speaks: "12.3"
};

/// Called exactly once, from any thread.
using answer = std::function<void(result<value>)>;

class gate {
public:
  virtual ~gate() = default;
  /// Runs a command of the table below with its fields; answers when its effect is durable, or with the error
  /// (invalid, not_found, conflict, denied, no_space, timeout ...). Never blocks.
  ///
  ///   experiment.create   {config, source?, name?, context? (blob bytes as binary), activate=true, key?} -> {id}
  ///   experiment.pause | activate | cancel | kill   {id} -> {}
  ///   trial.kill          {id} -> {}
  ///   agent.list          {} -> {agents: [{id, name, host, slots: [{id, device, enabled, allocation?}], state, since}]}
  ///   queue.list          {} -> {waiting: [{allocation, slots, since}]}
  ///   status              {} -> {slots: {total, used}, agents, experiments_active, version, ...}
  ///   node.shutdown       {} -> {}
  virtual void call(const principal& who, const std::string& command, value fields, answer done) = 0;
};

} // namespace troupe::api
