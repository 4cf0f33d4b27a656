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
  actor_dies,   ///< any that is supervised
  master_dies,  ///< with its journal; what is stored stays
  agent_dies,   ///< its sandboxes go on
  sandbox_dies, ///< of a signal that nobody sent
  host_dies,    ///< agent and sandboxes; nobody sees how those end
  user_pauses,  ///< an experiment, and activates it after the time away
  user_kills,   ///< a trial
  link_breaks,  ///< of an agent: what is on its way is lost, both sides notice
  link_stalls,  ///< what is sent arrives after the time away, in its order
  // Drawn apart, at most once each:
  host_is_lost,      ///< for good; not the only one
  task_is_abandoned, ///< the actor of a task that is no trial dies again and again, until it is given up
};
inline constexpr int platform_fault_kinds = 9;
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
enum class search_wish { kill, cancel, go_on, archive, unarchive, move, remove };

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

struct platform_plan {
  std::uint64_t seed = 0;
  int hosts = 2, slots = 2; ///< slots of each host
  int aux = 2;              ///< tasks without slots on each host, at most
  bool preemption = false;  ///< whether its pool takes slots from runs that are less urgent
  struct search {
    std::string searcher; ///< "random", "grid" or "async_halving"
    int trials = 4, slots_per_trial = 1;
    std::vector<wish<search_wish>> wishes = {};
  };
  std::vector<search> searches;
  std::vector<task_plan> tasks;
  std::vector<platform_fault> faults;
};
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
};
inline constexpr const char* planted_names[] = {
  "None",         "AdoptionForgets", "ToldBeforeStored", "KillIgnored", "RecordsStay",
  "CreatedTwice", "OrdersForgotten", "HeldAfterItsEnd",  "ReportsStay", "ContinuationLosesTrials"};

struct platform_outcome {
  std::optional<std::string> wrong; ///< what should not be; none: nothing
  std::uint64_t messages = 0, runs = 0, tasks = 0;
  /// What each search drew for its trials, in the order of their creation; nothing of searches that hear of
  /// metrics, that a user has ended for good, or deleted.
  std::vector<std::vector<double>> drawn;
};

/// Plays the history to its end.
platform_outcome play(const platform_plan& plan, planted_fault planted = planted_fault::none);

} // namespace troupe::sim
