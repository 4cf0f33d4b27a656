#pragma once
// Rules for the work of all users: policies of configurations, bindings of pools, webhooks, the message of
// the cluster, and how long logs are kept. The machine decides which changes of these are possible; the right
// of the caller is checked before. Pure. The cluster's actor is the shell; the facts stand in the stream
// "cluster". The texts of errors are those that Determined's clients know.

#include "actors/machine.hpp"
#include "model/commands/house_commands.hpp"
#include "model/commands/pool_commands.hpp"

namespace troupe {

/// Not thread-safe: one actor owns the machine. `by` is the name of the user who asks. The shell has checked
/// before that the named workspaces, experiments, trials and checkpoints exist.
class house_rules {
public:
  using decided = result<std::vector<rule_fact>>;

  /// Fails with errc::invalid where the document has unknown keys, or an invariant configuration breaks the
  /// constraints that hold for it. Gives no fact where nothing changes.
  [[nodiscard]] decided set(const commands::policy_set& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided bind(const commands::pool_bind& wanted, const std::string& by, time_point now);
  /// Fails with errc::invalid where the address or a trigger is not valid, and with errc::conflict where the
  /// name is taken.
  [[nodiscard]] decided make(const commands::webhook_create& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided change(const commands::webhook_change& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided remove(const commands::webhook_remove& wanted, const std::string& by, time_point now);
  /// Fails with errc::invalid where the text is too long, or the end is not after the start and `now`.
  [[nodiscard]] decided say(const commands::cluster_message_set& wanted, const std::string& by,
                            time_point now);
  [[nodiscard]] decided retain(const commands::log_retain& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided declare(const commands::trial_source_declare& wanted, const std::string& by,
                                time_point now);

  /// The invariant configuration that policies fix for work in a workspace: that of the workspace, merged
  /// with that of the cluster, which wins. Null where there is none. `kind`: "EXPERIMENT", or "NTSC" for
  /// tasks that are not trials.
  value invariant_of(workspace_id in, const char* kind = "EXPERIMENT") const;
  /// Whether the policies allow a later change of an experiment there. Fails with errc::invalid and both
  /// numbers.
  result<void> check_change(workspace_id in, const commands::experiment_set& wanted) const;
  /// The constraints that hold in a workspace: each constraint of the cluster replaces that of the workspace.
  /// Null where there are none.
  value constraints_of(workspace_id in, const char* kind = "EXPERIMENT") const;
  const std::map<webhook_id, webhook_changed>& webhooks() const { return webhooks_; }
  /// The workspaces to which the API has bound the pool, deleted ones included, which this machine does not
  /// know of.
  std::vector<workspace_id> bound_to(const std::string& pool) const;

  void replay(const rule_fact& fact);
  void replay(const cluster_fact& fact);

  std::string snapshot() const;
  value describe() const; ///< the state, for people

private:
  const value* policies_of(workspace_id in, const std::string& kind) const;
  rule_fact note(rule_fact fact);

  std::map<std::pair<workspace_id, std::string>, policy_changed> policies_;
  std::map<std::string, pool_bound> bindings_;
  std::map<webhook_id, webhook_changed> webhooks_;
  webhook_id newest_webhook_;
  cluster_message_changed message_;
  std::map<std::pair<experiment_id, trial_id>, log_retention_changed> retentions_;
  std::map<std::pair<std::string, trial_id>, trial_source_declared> sources_;
};

/// Fails with errc::invalid where a number of `config` breaks `constraints`, which is {resources:
/// {max_slots}, priority_limit}.
result<void> check_constraints(const value& config, const value& constraints);

} // namespace troupe
