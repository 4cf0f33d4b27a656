#pragma once
// One pool, which is checked from outside against a simple record of what it was told and what it did.

#include "actors/pool/pool.hpp"

#include <functional>
#include <set>

namespace troupe::sim {

/// Says that an invariant is broken. It is thrown out of the history.
struct violation {
  std::string what;
};

class watched_pool {
public:
  bool placing = true; ///< whether the pool has heard of everything that was held before its start
  int timers = 0;
  /// Whether nothing new may be placed on this slot of the agent.
  std::function<bool(const std::string&, int)> truth;

  bool knows(allocation_id id) const { return holds_.contains(id); }
  void hear(const pool_event& ev, time_point now);
  void saw(const pool_event& ev, const std::vector<pool_action>& actions,
           const std::map<std::string, std::vector<allocation_id>>& before, time_point now);

private:
  struct holder {
    std::vector<placement> on;
    run_terms run;
    int need = 1;
    time_point since;
    bool stopping = false;
  };
  struct waiter {
    slots_requested request;
    bool guest() const { return !request.home.empty(); }
    int need() const { return request.least > 0 ? request.least : request.slots; }
  };

  void granted(const grant_slots& x, const pool_event& ev, time_point now);
  void took_reserved(const grant_slots& x, allocation_id owner) const;
  void preempted(const preempt_allocation& x, time_point now);
  void victims(allocation_id who, const std::vector<allocation_id>& all,
               const std::map<std::string, std::vector<allocation_id>>& before, time_point now) const;
  int room(const job_terms& of, time_point now, const std::vector<allocation_id>& ended = {}) const;
  int limit_of(experiment_id job, time_point now) const;
  bool has(experiment_id job) const;
  bool steady(experiment_id job, time_point now) const;
  void take(const job_terms& job, time_point now);
  int priority_of(const job_terms& job) const {
    return job.priority > 0 ? job.priority : settings_.default_priority;
  }
  const job_terms& terms(const run_terms& run) const {
    const auto it = jobs_.find(run.job.job);
    return it == jobs_.end() ? run.job : it->second;
  }
  bool passes(const waiter& w, const run_terms& run) const;
  bool could_hold(const waiter& w) const;
  bool open(const std::string& agent, int slot) const;

  pool_settings settings_;
  std::map<std::string, agent_up> agents_;
  std::map<std::string, agent_drain> orders_;
  std::map<allocation_id, holder> holds_;
  std::map<allocation_id, waiter> waits_;
  std::map<experiment_id, job_terms> jobs_;
  /// Jobs with a job_changed, after which the terms of their runs no longer count.
  std::set<experiment_id> told_;
  /// Each limit that the pool was told of, and when.
  std::map<experiment_id, std::vector<std::pair<time_point, int>>> limits_;
  std::vector<std::pair<time_point, int>> pool_limits_;
  allocation_id reserved_;
  std::vector<placement> reserved_on_;
  std::set<allocation_id> claims_; ///< allocations for which others are preempted
  time_point configured_at_;
};

} // namespace troupe::sim
