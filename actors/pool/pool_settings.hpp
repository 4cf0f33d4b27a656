#pragma once
// The keys of `pools.NAME` of a cluster file that decide who runs where.

#include "actors/pool/fitting.hpp"

namespace troupe {

enum class scheduler_kind { fifo, round_robin, priority, fair };
const char* name(scheduler_kind kind);

struct slot_quota {
  slot_quota(std::string user, std::string workspace, int max_slots);
  std::string user, workspace; ///< one of both is empty; user "*": each user who has no quota of their own
  int max_slots = 0;
  std::string folded; ///< the name by case_folded(), as names of users and workspaces are unique in any case
};

struct pool_settings {
  scheduler_kind scheduler = scheduler_kind::priority;
  bool preemption = false;
  int default_priority = 42;
  int max_slots = -1; ///< limit of the slots in use; below 0: no limit
  fitting_order fitting = fitting_order::best;
  gang_rule gangs = gang_rule::any;
  duration reserve_after = 60s;
  duration min_run = 30s;
  std::vector<std::string> fallback;
  duration fallback_after = 60s;
  std::vector<slot_quota> quotas;
  int aux_per_agent = 100;
  bool launch_error = false;

  /// The quota that holds for this user, whose name is given by case_folded(); null: none.
  const slot_quota* quota_of_user(const std::string& folded) const;
  /// The same for a workspace.
  const slot_quota* quota_of_workspace(const std::string& folded) const;
  bool preempts() const {
    return preemption && (scheduler == scheduler_kind::priority || scheduler == scheduler_kind::fair);
  }
};

/// Reads the keys of `pools.NAME`. Fails with errc::invalid and the key, where a key is unknown or its value
/// is not valid. Keys that do not concern placing (`default`, `defaults`, `provider`) are ignored.
result<pool_settings> pool_settings_of(const value& keys);
/// Reads `resources.constraints`. Fails with errc::invalid and the key.
result<placement_rules> placement_rules_of(const value& keys);

} // namespace troupe
