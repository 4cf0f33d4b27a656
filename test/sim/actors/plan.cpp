#include "test/sim/actors/plan.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

duration draw_length(rng& random) {
  auto milliseconds = [&](std::uint64_t from, std::uint64_t to) {
    return duration{1000 * (from + random.below(to - from))};
  };
  switch (random.below(10)) {
  case 0:
  case 1:
  case 2:
  case 3:
    return milliseconds(5, 500);
  case 4:
  case 5:
  case 6:
    return milliseconds(500, 5'000);
  case 7:
  case 8:
    return milliseconds(5'000, 29'000);
  default:
    return milliseconds(29'000, 70'000); // so long that leases end
  }
}

} // namespace

history_plan draw_plan(std::uint64_t seed) {
  rng random(mix64(seed) ^ 0x51);
  history_plan p;
  p.seed = seed;
  p.hosts = 1 + int(random.below(3));
  p.slots = 1 + int(random.below(2));
  p.trial_slots = random.chance(0.2) ? std::min(2, p.hosts * p.slots) : 1;
  p.max_restarts = int(random.below(3));
  // In most histories the master gives slots away at the very moment at which sandboxes freeze, so that an
  // error of one tick shows.
  if (random.chance(0.8))
    p.lease.give_away = p.lease.freeze;
  p.heartbeat = random.chance(0.5) ? 1s : 4s;
  p.most_commit = duration{random.chance(0.8) ? 2'000 : 300'000};
  p.slow = random.chance(0.5) ? 0.002 : 0.03;
  p.repeat = random.chance(0.5) ? 0.0 : 0.05;
  p.tasks_die_with_agent = random.chance(0.5);
  p.search = {seed, 2 + int(random.below(4)), 1 + int(random.below(3)), 2 + int(random.below(4))};
  p.search.asha = random.chance(0.3);
  auto faults = random.below(5);
  for (std::uint64_t i = 0; i < faults; ++i) {
    fault f{fault_kind(random.below(fault_kinds)), 5 + int(random.below(p.search.trials * 100)),
            draw_length(random), random()};
    if (f.kind == fault_kind::host_cut_off && random.chance(0.7))
      f.length = p.lease.give_away + duration{std::int64_t(random.below(20'000'000))};
    p.faults.push_back(f);
  }
  std::stable_sort(p.faults.begin(), p.faults.end(), [](auto& a, auto& b) { return a.after < b.after; });
  int at = 0;
  while (random.chance(0.3)) {
    at += 20 + int(random.below(150));
    p.commands.push_back({user_wish::pause, at});
    at += 1 + int(random.below(100));
    p.commands.push_back({user_wish::activate, at});
  }
  if (random.chance(0.12))
    p.commands.push_back(
      {random.chance(0.5) ? user_wish::cancel : user_wish::kill, at + int(random.below(200))});
  return p;
}

std::string describe(const history_plan& p) {
  static constexpr const char* names[] = {
    "master_crash",          "agent_crash",  "host_crash",      "everything_crash", "sandbox_crash",
    "script_killed",         "link_break",   "link_silence",    "link_stall",       "trial_actor_dies",
    "allocation_actor_dies", "host_cut_off", "pool_actor_dies", "twin_actor_dies",  "searcher_actor_dies",
    "start_order_lost"};
  static constexpr const char* wishes[] = {"pause", "activate", "cancel", "kill"};
  auto text = "seed " + std::to_string(p.seed) + ": " + std::to_string(p.hosts) + " hosts of " +
              std::to_string(p.slots) + " slots, " + std::to_string(p.search.trials) + " trials (" +
              std::to_string(p.search.concurrent) + " at once, " + std::to_string(p.trial_slots) +
              " slots, " + std::to_string(p.search.steps) + " steps" + (p.search.asha ? ", ASHA" : "") +
              "), restarts " + std::to_string(p.max_restarts);
  for (const auto& f : p.faults)
    text += "\n  " + std::string(names[int(f.kind)]) + " at message " + std::to_string(f.after) + " for " +
            std::to_string(f.length.count() / 1000) + " ms";
  for (const auto& c : p.commands)
    text += "\n  " + std::string(wishes[int(c.wish)]) + " at message " + std::to_string(c.after);
  return text;
}

} // namespace troupe::sim
