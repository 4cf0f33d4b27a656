#pragma once
// The plan of one history; everything in it follows from its seed.

#include "actors/agent_twin/agent_twin.hpp"
#include "test/sim/actors/fake_searcher.hpp"

namespace troupe::sim {

enum class fault_kind {
  master_crash,
  agent_crash,
  host_crash,
  everything_crash,
  sandbox_crash,
  script_killed,
  link_break,
  link_silence,
  link_stall,
  trial_actor_dies,
  allocation_actor_dies,
  host_cut_off,
  pool_actor_dies,
  twin_actor_dies,
  searcher_actor_dies,
  start_order_lost, ///< an order on its way to a twin or to an agent; only a mistake of an operator does this
};
inline constexpr int fault_kinds = 16;

/// A fault happens before the `after`-th message is delivered, unless the history is over by then.
struct fault {
  fault_kind kind = fault_kind::master_crash;
  int after = 0;
  duration length{0};     ///< time until the crashed part is back, or the stall is over
  std::uint64_t pick = 0; ///< chooses among the things that can be hit
};

enum class user_wish { pause, activate, cancel, kill };
struct user_command {
  user_wish wish = user_wish::pause;
  int after = 0; ///< number of messages, as for faults
};

struct history_plan {
  std::uint64_t seed = 0;
  int hosts = 2, slots = 2; ///< slots of each host
  int trial_slots = 1;
  int max_restarts = 1;
  lease_times lease;
  duration heartbeat = 1s;
  duration stop_limit = 10s;
  duration most_commit = 2ms;        ///< longest time of a commit of the journal
  double slow = 0.01, repeat = 0.02; ///< shares of messages that take up to 2 s, and that are delivered twice
  bool tasks_die_with_agent = false;
  search_plan search;
  std::vector<fault> faults;
  std::vector<user_command> commands;
};

history_plan draw_plan(std::uint64_t seed);
std::string describe(const history_plan& plan);

} // namespace troupe::sim
