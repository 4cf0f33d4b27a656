#pragma once
// The whole platform in one process: the real shells of master and agents, on a scheduler that the history
// drives, over a journal in memory. Played here is only what lies below an agent: sandboxes with their
// scripts, the gateway's socket, spools. All follows from the seed: which message is handled next, too.

#include "actors/agent/agent_actor.hpp"
#include "actors/shells/probed.hpp"
#include "model/ids.hpp"
#include "storage/store.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::sim {

/// Also what users do at an odd moment.
enum class platform_fault_kind {
  actor_dies,        ///< any that is supervised
  master_dies,       ///< with its journal; what is stored stays
  agent_dies,        ///< its sandboxes go on
  sandbox_dies,      ///< of a signal that nobody sent
  host_dies,         ///< agent and sandboxes; nobody sees how those end
  user_pauses,       ///< an experiment, and activates it after the time away
  user_kills,        ///< a trial
  link_breaks,       ///< of an agent: what is on its way is lost, both sides notice
  link_stalls,       ///< what is sent arrives after the time away, in its order
  agent_is_disabled, ///< or drained, whole or one slot of it, by an operator who takes it back after the time
                     ///< away
  pool_changes,      ///< the cluster file has another scheduler for a pool
  agent_moves,       ///< the cluster file has it in another pool, for the time away
  // Drawn apart, but for cuts and lost starts at most once each:
  host_is_lost,      ///< for good; not the only one
  task_is_abandoned, ///< the actor of a task that is no trial dies again and again, until it is given up
  link_is_cut,       ///< of an agent, which reaches its master again after the time away; also twice
  power_fails,       ///< of the master and of all hosts
  start_is_lost,     ///< the next order to start, on its way to an agent, whose link stays, or to its twin
};
inline constexpr int platform_fault_kinds = 12;
struct platform_fault {
  platform_fault_kind kind = platform_fault_kind::actor_dies;
  int after = 0; ///< messages
  duration away{0};
  std::uint64_t pick = 0;
};

/// What a user asks for, so long after the answer to what he asked for before.
template <class What>
struct wish {
  duration after{0};
  What what{};
  int number = 0;
};
enum class task_wish { kill, kill_tree, pause, unpause, use, set_priority };
enum class search_wish {
  kill,
  cancel,
  go_on,
  archive,
  unarchive,
  move,
  remove,
  set_priority,
  set_max_slots, ///< -1: any number
  set_pool       ///< number of a pool that could hold its trials
};

/// A task that is no trial.
struct task_plan {
  task_kind kind = task_kind::command;
  int slots = 0;
  int steps = 0; ///< after which it exits by itself; 0: never
  int exit_code = 0;
  int idle = 0;          ///< seconds without a use after which its master ends it; 0: never
  int parent = -1;       ///< a generic task that stands before it in the plan; -1: none
  int no_pause = -1;     ///< as in task_created
  duration after{0};     ///< its creation, since the begin
  bool repeated = false; ///< whether its user asks for it twice at once
  std::vector<wish<task_wish>> wishes;
};

/// The first pool of a plan is the default one, where tasks that are no trials go.
struct pool_plan {
  int hosts = 1;         ///< of an elastic pool: instances that its provider may have at once
  bool elastic = false;  ///< its provider fails now and then, and some of its instances never come
  std::string scheduler; ///< of the cluster file
  bool preemption = false;
  int max_slots = -1, quota = -1; ///< slots of the pool, and of each user in it; -1: any number
  int fallback = -1;              ///< number of a later pool; -1: none
};

struct platform_plan {
  std::uint64_t seed = 0;
  std::vector<pool_plan> pools;
  int slots = 2; ///< of each host
  int aux = 2;   ///< tasks without slots on each host, at most
  struct search {
    std::string searcher; ///< "single", "random", "grid", "async_halving", "asha_promotion" or "pbt"
    int trials = 4, slots_per_trial = 1;
    int pool = 0, priority = 0; ///< 0: its pool's
    double weight = 1;
    int max_slots = -1; ///< -1: any number
    std::vector<wish<search_wish>> wishes = {};
    int max_restarts = 0;
    int failures = 0; ///< so often the script of a trial whose x is above a half fails in the middle
  };
  std::vector<search> searches;
  std::vector<task_plan> tasks;
  std::vector<platform_fault> faults;
  double repeated = 0.02;     ///< share of what an agent and its master say that arrives twice
  double repeated_within = 0; ///< the same of ends and requests within the master (master_mail.hpp)
  double resting = 0;         ///< share of messages before which their actor rests for a while
  bool sandboxes_ask = false; ///< their master whether to go on, while their agent is dead

  bool loses_host() const; ///< of the first pool, for good
  bool continues() const;  ///< whether a user may continue a search
  /// Slots that a run in the pool can hold at most, without a host that is lost.
  int most_slots(int pool) const;
};
std::string name_of_pool(int pool);
platform_plan draw_platform_plan(std::uint64_t seed);
std::string describe(const platform_plan& plan);

/// What a real platform never does, to prove that a history would show it.
enum class planted_fault {
  none,
  adoption_forgets,
  told_before_stored,
  kill_ignored,              ///< a host says that a task is dead, and it goes on
  records_stay,              ///< of tasks that are over, on their hosts
  created_twice,             ///< a creation whose answer was lost is another one when it is repeated
  orders_forgotten,          ///< what users order is acknowledged and not stored
  held_after_its_end,        ///< a pool hears once more that a task which is over holds something
  reports_stay,              ///< of trials that were deleted
  continuation_loses_trials, ///< those that are to run again
  limits_forgotten,          ///< a master that starts again knows no max_slots and quotas of its pools
  instances_stay,            ///< a provider says that an instance ends, and it goes on
  leases_too_long,           ///< sandboxes go on for a minute more than their master counts on
  leases_by_one_clock,       ///< sandboxes count the leases of their agent by the master's clock
  act_before_commit,         ///< trials and their runs act on what is not stored yet
  late_grant_kept,           ///< an allocation that has ended keeps the slots of a late grant
  repeated_start_runs,       ///< a start that comes twice starts a second process
  replay_skips,              ///< a trial that is replayed is not paused
};
inline constexpr const char* planted_names[] = {"None",
                                                "AdoptionForgets",
                                                "ToldBeforeStored",
                                                "KillIgnored",
                                                "RecordsStay",
                                                "CreatedTwice",
                                                "OrdersForgotten",
                                                "HeldAfterItsEnd",
                                                "ReportsStay",
                                                "ContinuationLosesTrials",
                                                "LimitsForgotten",
                                                "InstancesStay",
                                                "LeasesTooLong",
                                                "LeasesByOneClock",
                                                "ActBeforeCommit",
                                                "LateGrantKept",
                                                "RepeatedStartRuns",
                                                "ReplaySkips"};

struct platform_outcome {
  std::optional<std::string> wrong; ///< what should not be; none: nothing
  std::uint64_t messages = 0, runs = 0, tasks = 0;
  std::uint64_t compared = 0; ///< states of live machines with those of replayed ones
};

/// Plays the history to its end.
platform_outcome play(const platform_plan& plan, planted_fault planted = planted_fault::none);

} // namespace troupe::sim
