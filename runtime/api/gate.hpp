#pragma once
// The way from HTTP into the cluster: commands by name. The API knows no actor; the node implements the gate.

#include "model/value.hpp"

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
  /// Runs a command of the table below with its fields; answers when its effect is durable, or with the error
  /// (invalid, not_found, conflict, denied, no_space, timeout ...). Never blocks. `?` marks fields that may
  /// be missing.
  ///
  /// Orders. `conflict` where the state does not allow it; the text names the state.
  ///   experiment.create   {config, config_name, name, activate, key, context?, context_blob?, parent?} ->
  ///   {id}
  ///                       config: text as submitted; config_name: the file that diagnostics name; name:
  ///                       replaces the configuration's unless empty; context: the checked files, always a
  ///                       tar.gz, as binary; context_blob: name of a stored blob to use instead; parent: the
  ///                       experiment forked from. errc::invalid carries the rendered diagnostics.
  ///   experiment.validate {config, config_name} -> {}
  ///   experiment.pause | activate | cancel | kill   {id} -> {}
  ///                       cancel and kill of an ended experiment succeed; pause and activate of one are a
  ///                       conflict.
  ///   trial.kill          {id} -> {}
  ///   search.order        {id, orders} -> {last, trials: {KEY: id}}   of a custom search; invalid where they
  ///   make no sense search.wait         {id, after, timeout_ms} -> {}   held until the experiment has a fact
  ///   above the id `after` checkpoint.patch    {checkpoints: [{uuid, files}]} -> {}
  ///                       files: null leaves them alone, {} says deleted, else the bytes by path that are
  ///                       left
  ///   node.shutdown       {} -> {}
  ///   fence               {agent, allocation, token, dead} -> {kill}
  ///                       by the sandbox of an agent that died: whether to kill its task; with `dead`,
  ///                       nothing of it lives. denied where the token is not the agent's.
  ///
  /// Reads of what storage does not hold.
  ///   logs.cleanup        {} -> {removedCount}            logs of trials whose log_retention_days are over,
  ///   now agent.list          {} -> {agents: [{id, name, host, since, state, version?, enabled?,
  ///                              slots: [{id, device, enabled, brand?, uuid?, allocation?}]}]}
  ///                       since: RFC 3339; state: "alive", "lost", "draining"; device: "cpu", "cuda", "rocm"
  ///   queue.list          {} -> {waiting: [{allocation, slots, since}]}
  ///   status              {} -> {slots: {total, used}, agents, experiments_active, version, ...}
  ///   trial.metadata      {id} -> {metadata}
  ///   trial.set_metadata  {id, metadata} -> {metadata}
  ///
  /// From tasks: who.allocation and the field `allocation` are the caller's own open allocation, "12.3"; the
  /// field `experiment` is the number of its experiment.
  ///   allocation.preemption         {allocation, timeout_ms} -> {preempt}
  ///                                 held until the task has to stop or timeout_ms (0: at once) have passed
  ///   allocation.ack_preemption     {allocation} -> {}  its exit from now on counts as ordered, whatever the
  ///   code allocation.pending_preemption {allocation} -> {}  the task was told from outside to stop: preempt
  ///   it allocation.rendezvous         {allocation, resources} -> {addresses: [text], slots: [int], rank}
  ///                                 held until all parts run and all have called; makes the allocation
  ///                                 ready. resources: DET_RESOURCES_ID of the caller's part; invalid if
  ///                                 unknown
  ///   allocation.daemon             {allocation, resources} -> {}  this part's end does not count
  ///   trial.report        {allocation, group, steps, metrics, batch_metrics?, at?: microseconds} -> {}
  ///                       durable when answered; a validation goes to the searcher. The client sends a
  ///                       report again after 502, 503 and 504: the same group, steps and metrics again
  ///                       change nothing.
  ///   trial.progress      {allocation, progress: 0..1} -> {}
  ///   trial.early_exit    {allocation, reason: "invalid_hp"} -> {}
  ///   checkpoint.report   {allocation, uuid, steps, files: {path: bytes}, metadata} -> {}
  ///                       the node knows the folder from the experiment's checkpoint_storage; repeat-safe by
  ///                       uuid
  ///   task.log            {allocation, lines: [{at: microseconds, rank, stream, level, agent, text}]} -> {}
  virtual void call(const principal& who, const std::string& command, value fields, answer done) = 0;
};

} // namespace troupe::api
