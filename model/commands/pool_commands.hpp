#pragma once
// Commands about who runs when: what a running experiment may use of its pool, what a pool has, and why a run
// waits.

#include "model/commands/commands.hpp"

namespace troupe::commands {

/// An absent field stays as it is.
struct experiment_set {
  experiment_id id;
  std::optional<std::int64_t> priority, max_slots;
  std::optional<double> weight;
  std::optional<std::string> pool;
  template <class t = experiment_set>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "number of the experiment"),
      maybe("priority", &t::priority, "1 to 99; a smaller number comes first").between(1, 99),
      maybe("weight", &t::weight, "its part of a fair pool; 0: only what is left over").between(0, 1e9),
      maybe("max_slots", &t::max_slots, "slots that its trials hold at once; -1: any number")
        .between(-1, 1e9),
      maybe("pool", &t::pool, "where its runs go; those that run elsewhere are preempted")};
  }
  static constexpr about is{"experiment.set",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::safe,
                            "Changes what a live experiment may have of its pool, effective at once; durable "
                            "when answered. `conflict` where it has ended, `invalid` where there is no such "
                            "pool."};
};

struct pool_details {
  std::string name;
  static constexpr auto fields() { return std::tuple{need("name", &pool_details::name, "name of the pool")}; }
  static constexpr about is{"pool.details",
                            cluster,
                            {action::view, thing::cluster},
                            repeat::question,
                            "One pool with its jobs, quotas and queue.",
                            "{name, default, scheduler, preemption, slots: {total, used, reserved}, agents, "
                            "waiting, experiments, provider, quotas: [{user | workspace, maxSlots, used}], "
                            "jobs: [{experiment, priority, weight, maxSlots, share, used, waiting}]}"};
};

struct job_list : without_fields<job_list> {
  static constexpr about is{"job.list",
                            cluster,
                            {action::view, thing::cluster},
                            repeat::question,
                            "The experiments that hold or want slots, by pool, the first in turn first.",
                            "{pools: [{name, default, scheduler, preemption, fitting, defaultPriority, "
                            "auxPerAgent, auxUsed, device, slots: {total, used}, agents, provider: "
                            "{instanceSlots, minInstances, maxInstances}, jobs: [{experiment, priority, "
                            "weight, maxSlots, share, used, waiting}]}]}"};
};

inline constexpr const char* explanation_fields =
  "{allocation, trial, experiment, pool, state, slots, priority, weight, user, since, waitedSeconds, "
  "position, reason: {code, text}, also: [{code, text}], agents: [{agent, free, fits, why}], wouldFree: "
  "[{allocation, agents, slots, how, stopping, preemptedFor, costSeconds, fromPriority, expectedSeconds}], "
  "behind, reservation, estimate, advice}";

struct allocation_explain {
  std::string id;
  template <class t = allocation_explain>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "task and run: number of a trial or UUID of another task, and number, as 12.3")};
  }
  static constexpr about is{"allocation.explain",
                            cluster,
                            {action::view, thing::trial},
                            repeat::question,
                            "Why an allocation is where it is: what it waits for, and what would help.",
                            explanation_fields};
};
struct trial_explain {
  trial_id id;
  static constexpr auto fields() { return std::tuple{need("id", &trial_explain::id, "number of the trial")}; }
  static constexpr about is{"trial.explain",
                            cluster,
                            {action::view, thing::trial},
                            repeat::question,
                            "As allocation.explain, of the trial's newest run.",
                            explanation_fields};
};
struct task_explain {
  std::string id;
  static constexpr auto fields() { return std::tuple{need("id", &task_explain::id, "UUID of the task")}; }
  static constexpr about is{
    "task.explain",
    cluster,
    {action::view, thing::task},
    repeat::question,
    "As allocation.explain, of the newest run of a task that is no trial, with its UUID as "
    "`task` and its `kind`.",
    explanation_fields};
};
struct experiment_explain {
  experiment_id id;
  template <class t = experiment_explain>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the experiment")};
  }
  static constexpr about is{"experiment.explain",
                            cluster,
                            {action::view, thing::experiment},
                            repeat::question,
                            "How many trials of an experiment run, wait and are paused, and why the first 20 "
                            "wait.",
                            "{experiment, pool, state, trials: {running, waiting, paused}, waiting}"};
};

/// From the cluster, down to an open run.
struct allocation_look : without_fields<allocation_look> {
  static constexpr about is{"allocation.look",
                            taker::allocation,
                            {action::view, thing::allocation},
                            repeat::question,
                            "What the allocation does, in one word.",
                            "{state}"};
};

} // namespace troupe::commands
