#pragma once
// The whole platform in one process: the real shells of master and agents, on a scheduler that the history
// drives, over a journal in memory. Played here is only what lies below an agent: sandboxes with their
// scripts, the gateway's socket, spools. All follows from the seed: which message is handled next, too.

#include "actors/agent/agent_actor.hpp"
#include "actors/shells/probed.hpp"
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
};
inline constexpr int platform_fault_kinds = 9;
struct platform_fault {
  platform_fault_kind kind = platform_fault_kind::actor_dies;
  int after = 0; ///< messages
  duration away{0};
  std::uint64_t pick = 0;
};

struct platform_plan {
  std::uint64_t seed = 0;
  int hosts = 2, slots = 2; ///< slots of each host
  struct search {
    std::string searcher; ///< "random", "grid" or "async_halving"
    int trials = 4, slots_per_trial = 1;
  };
  std::vector<search> searches;
  std::vector<platform_fault> faults;
};
platform_plan draw_platform_plan(std::uint64_t seed);
std::string describe(const platform_plan& plan);

/// What a real platform never does, to prove that a history would show it.
enum class planted_fault { none, adoption_forgets, told_before_stored };

struct platform_outcome {
  std::optional<std::string> wrong; ///< what should not be; none: nothing
  std::uint64_t messages = 0, runs = 0;
  /// What each search drew for its trials, in the order of their creation; of searches that hear of no
  /// metric.
  std::vector<std::vector<double>> drawn;
};

/// Plays the history to its end.
platform_outcome play(const platform_plan& plan, planted_fault planted = planted_fault::none);

} // namespace troupe::sim
