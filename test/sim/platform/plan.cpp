#include "test/sim/platform/platform.hpp"

#include "model/rng.hpp"

namespace troupe::sim {
namespace {

constexpr const char* kind_names[] = {"an actor dies",  "the master dies", "an agent dies",
                                      "a sandbox dies", "a host dies",     "a user pauses",
                                      "a user kills",   "a link breaks",   "a link stalls"};

/// Short ones, and one in ten so long that leases end.
duration draw_away(rng& random) {
  const auto most = random.chance(0.1) ? 70'000 : random.chance(0.5) ? 500 : 20'000;
  return std::chrono::milliseconds(5 + random.below(static_cast<std::uint64_t>(most)));
}

} // namespace

platform_plan draw_platform_plan(std::uint64_t seed) {
  rng random(mix64(seed) ^ 0x77);
  platform_plan plan;
  plan.seed = seed;
  plan.hosts = 1 + int(random.below(3));
  plan.slots = 1 + int(random.below(2));
  const auto searches = 1 + random.below(2);
  for (std::uint64_t n = 0; n < searches; ++n) {
    platform_plan::search one{random.chance(0.5)   ? "random"
                              : random.chance(0.5) ? "grid"
                                                   : "async_halving",
                              2 + int(random.below(4))};
    if (random.chance(0.3))
      one.slots_per_trial = std::min(2, plan.hosts * plan.slots);
    plan.searches.push_back(one);
  }
  const auto faults = random.below(6);
  for (std::uint64_t n = 0; n < faults; ++n)
    plan.faults.push_back({platform_fault_kind(random.below(platform_fault_kinds)),
                           20 + int(random.below(900)), draw_away(random), random()});
  std::sort(plan.faults.begin(), plan.faults.end(),
            [](const auto& a, const auto& b) { return a.after < b.after; });
  return plan;
}

std::string describe(const platform_plan& plan) {
  auto text = "seed " + std::to_string(plan.seed) + ": " + std::to_string(plan.hosts) + " hosts with " +
              std::to_string(plan.slots) + " slots";
  for (const auto& x : plan.searches)
    text +=
      "; " + x.searcher + ", " + std::to_string(x.trials) + " trials of " + std::to_string(x.slots_per_trial);
  for (const auto& x : plan.faults)
    text += "\n  after " + std::to_string(x.after) + ": " + kind_names[int(x.kind)] + ", pick " +
            std::to_string(x.pick % 1000) + ", away " + std::to_string(x.away.count() / 1000) + " ms";
  return text;
}

} // namespace troupe::sim
