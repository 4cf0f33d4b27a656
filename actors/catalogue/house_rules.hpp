#pragma once
// What holds for work that others submit, and who is told of it: policies of configurations, bindings of
// pools, webhooks, the cluster's message, how long logs are kept: what may become of them is decided here;
// whether the caller has the right is decided before. Pure. The cluster's actor is its shell: its facts stand
// in the stream "cluster". Texts of errors are those that Determined's clients know.

#include "actors/machine.hpp"
#include "model/commands/house_commands.hpp"
#include "model/commands/pool_commands.hpp"

namespace troupe {

/// Not thread-safe: one actor owns it. `by` is the name of the user who asks. Whether workspaces,
/// experiments, trials and checkpoints that are named exist, the shell looks before.
class house_rules {
public:
  using decided = result<std::vector<rule_fact>>;

  /// errc::invalid where the document has unknown keys, or an invariant breaks the constraints that hold for
  /// it; no fact where nothing changes.
  [[nodiscard]] decided set(const commands::policy_set& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided bind(const commands::pool_bind& wanted, const std::string& by, time_point now);
  /// errc::invalid where the address or a trigger is none; errc::conflict where the name is taken.
  [[nodiscard]] decided make(const commands::webhook_create& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided change(const commands::webhook_change& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided remove(const commands::webhook_remove& wanted, const std::string& by, time_point now);
  /// errc::invalid where the text is too long or the end is not after the beginning and `now`.
  [[nodiscard]] decided say(const commands::cluster_message_set& wanted, const std::string& by,
                            time_point now);
  [[nodiscard]] decided retain(const commands::log_retain& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided declare(const commands::trial_source_declare& wanted, const std::string& by,
                                time_point now);

  /// The policies of experiments that hold in a workspace: its invariant configuration below the cluster's,
  /// and the constraints, of which the cluster's replace the workspace's one by one. Null where there are
  /// none.
  /// `kind`: "EXPERIMENT", or "NTSC" for tasks that are no trials.
  value invariant_of(workspace_id in, const char* kind = "EXPERIMENT") const;
  /// What policies say of a later change of an experiment there. errc::invalid with both numbers.
  result<void> check_change(workspace_id in, const commands::experiment_set& wanted) const;
  value constraints_of(workspace_id in, const char* kind = "EXPERIMENT") const;
  const std::map<webhook_id, webhook_changed>& webhooks() const { return webhooks_; }
  /// Whether the API binds the pool to any workspace.
  bool is_bound(const std::string& pool) const;
  /// Whether work of the workspace may use the pool, as far as the API says so.
  bool may_use(const std::string& pool, workspace_id in) const;

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

/// errc::invalid where a number of `config` is beyond `constraints`, {resources: {max_slots},
/// priority_limit}.
result<void> check_constraints(const value& config, const value& constraints);

} // namespace troupe
