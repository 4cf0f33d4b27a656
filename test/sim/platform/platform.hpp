#pragma once
// The whole platform in one process: the real shells of master and agents run on a scheduler that the history
// drives, over a journal in memory. Only what lies below an agent is simulated: sandboxes with their scripts,
// the gateway's socket, spools. Everything follows from the seed, also which message is handled next.

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

/// The faults of a history, and what users do at unexpected moments.
enum class platform_fault_kind {
  actor_dies,   ///< any supervised actor
  master_dies,  ///< the journal dies with it; stored data stays
  agent_dies,   ///< its sandboxes go on
  sandbox_dies, ///< by a signal that nobody sent
  host_dies,    ///< agent and sandboxes die, and nobody sees their exits
  user_pauses,  ///< a user pauses an experiment, and activates it after the time away
  user_kills,   ///< a user kills a trial
  link_breaks,  ///< of an agent: messages on their way are lost, and both sides notice
  link_stalls,  ///< messages arrive after the time away, in their order
  /// An operator disables or drains an agent, or one slot of it, and enables it again after the time away.
  agent_is_disabled,
  pool_changes, ///< the cluster file has another scheduler for a pool
  agent_moves,  ///< the cluster file has the agent in another pool for the time away
  // These are drawn separately. Each comes at most once, except for cuts and lost starts.
  host_is_lost,      ///< a host is lost for good, but never the only one
  task_is_abandoned, ///< the actor of a task that is not a trial dies until it is given up
  link_is_cut,       ///< the agent reaches its master again after the time away; may come twice
  power_fails,       ///< the master and all hosts lose power
  start_is_lost, ///< the next order to start is lost on its way to an agent, whose link stays, or to its twin
};
inline constexpr int platform_fault_kinds = 12;
struct platform_fault {
  platform_fault_kind kind = platform_fault_kind::actor_dies;
  int after = 0; ///< number of messages before the fault
  duration away{0};
  std::uint64_t pick = 0;
};

/// What a user asks for, and how long after the answer to the wish before.
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
  set_max_slots, ///< -1: no limit
  set_pool       ///< number of a pool that could hold its trials
};

/// A task that is not a trial.
struct task_plan {
  task_kind kind = task_kind::command;
  int slots = 0;
  int steps = 0; ///< number of steps after which the task exits by itself; 0: never
  int exit_code = 0;
  int idle = 0;          ///< seconds without use after which the master ends the task; 0: never
  int parent = -1;       ///< number of an earlier generic task in the plan; -1: none
  int no_pause = -1;     ///< as in task_created
  duration after{0};     ///< time of its creation since the start of the history
  bool repeated = false; ///< whether its user asks for it twice at the same time
  std::vector<wish<task_wish>> wishes;
};

/// The first pool of a plan is the default one, which gets the tasks that are not trials.
struct pool_plan {
  int hosts = 1; ///< number of hosts; in an elastic pool the limit of instances at once
  /// The pool has a provider, which sometimes fails and some of whose instances never come.
  bool elastic = false;
  std::string scheduler; ///< scheduler in the cluster file
  bool preemption = false;
  int max_slots = -1, quota = -1; ///< limits of the pool's slots and of each user's slots in it; -1: no limit
  int fallback = -1;              ///< number of a later pool; -1: none
};

struct platform_plan {
  std::uint64_t seed = 0;
  std::vector<pool_plan> pools;
  int slots = 2; ///< slots of each host
  int aux = 2;   ///< limit of tasks without slots on each host
  struct search {
    std::string searcher; ///< "single", "random", "grid", "async_halving", "asha_promotion" or "pbt"
    int trials = 4, slots_per_trial = 1;
    int pool = 0, priority = 0; ///< priority 0: the pool's default
    double weight = 1;
    int max_slots = -1; ///< -1: no limit
    std::vector<wish<search_wish>> wishes = {};
    int max_restarts = 0;
    int failures = 0; ///< number of times that the script of a trial with x above 0.5 fails in the middle
  };
  std::vector<search> searches;
  std::vector<task_plan> tasks;
  std::vector<platform_fault> faults;
  double repeated = 0.02;     ///< share of messages between an agent and its master that arrive twice
  double repeated_within = 0; ///< the same for ends and requests within the master (master_mail.hpp)
  double resting = 0;         ///< share of messages before which their actor rests for a while
  bool sandboxes_ask = false; ///< sandboxes ask the master whether to go on while their agent is dead

  bool loses_host() const; ///< whether the first pool loses a host for good
  bool continues() const;  ///< whether a user may continue a search
  /// The most slots that a run in the pool can hold, without a host that is lost.
  int most_slots(int pool) const;
};
std::string name_of_pool(int pool);
platform_plan draw_platform_plan(std::uint64_t seed);
std::string describe(const platform_plan& plan);

/// Faults that a real platform never has, planted to prove that a history would show them.
enum class planted_fault {
  none,
  adoption_forgets,
  told_before_stored,
  kill_ignored,       ///< a host says that a task is dead, but the task goes on
  records_stay,       ///< records of tasks that have ended stay on their hosts
  created_twice,      ///< a creation that is repeated because its answer was lost creates a second thing
  orders_forgotten,   ///< orders of users are acknowledged but not stored
  held_after_its_end, ///< a pool hears once more that a task holds slots after the task has ended
  reports_stay,       ///< reports of deleted trials stay
  continuation_loses_trials, ///< a continuation loses trials that have to run again
  limits_forgotten,          ///< a master that starts again knows no max_slots and quotas of its pools
  instances_stay,            ///< a provider says that an instance ends, but the instance goes on
  leases_too_long,           ///< sandboxes go on for a minute longer than their master assumes
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
  std::optional<std::string> wrong; ///< the fault that was found; nullopt: none
  std::uint64_t messages = 0, runs = 0, tasks = 0;
  std::uint64_t compared = 0; ///< states of live machines with those of replayed ones
};

/// Plays the history to its end.
platform_outcome play(const platform_plan& plan, planted_fault planted = planted_fault::none);

} // namespace troupe::sim
