// All machines together on a fake network, by seed. TROUPE_SIM_SEED=n runs one history again with a trace.
// TROUPE_SIM_HISTORIES=n and TROUPE_SIM_FIRST=n choose the number of histories and the first seed.

#include "test/sim/actors/history.hpp"
#include "test/sim/actors/planted.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace troupe::sim {
namespace {

#ifdef __OPTIMIZE__
constexpr std::uint64_t histories_of_a_shard = 3'000; // 24,000 in all
#else
constexpr std::uint64_t histories_of_a_shard = 250;
#endif

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Machines : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Machines, KeepTheirPromisesInEveryHistory) {
  if (auto seed = number_from("TROUPE_SIM_SEED", 0)) {
    auto plan = draw_plan(seed);
    std::fprintf(stderr, "%s\n", describe(plan).c_str());
    auto broken = run_history(plan, true);
    ASSERT_FALSE(broken) << *broken;
    return;
  }
  auto count = number_from("TROUPE_SIM_HISTORIES", histories_of_a_shard);
  auto first = number_from("TROUPE_SIM_FIRST", 1) + GetParam() * count;
  history_figures all;
  int failures = 0;
  for (auto seed = first; seed < first + count; ++seed) {
    history_figures f;
    auto broken = run_history(draw_plan(seed), false, &f);
    if (broken && ++failures > 20)
      FAIL() << "too many";
    EXPECT_FALSE(broken) << *broken << "\n(TROUPE_SIM_SEED=" << seed << " shows it)\n"
                         << describe(draw_plan(seed));
    all.messages += f.messages;
    all.facts += f.facts;
    all.runs += f.runs;
  }
  std::printf("%llu histories: %llu messages, %llu facts, %llu runs\n", (unsigned long long)count,
              (unsigned long long)all.messages, (unsigned long long)all.facts, (unsigned long long)all.runs);
}

INSTANTIATE_TEST_SUITE_P(Shard, Machines, testing::Range<std::uint64_t>(0, 8));

struct planting {
  planted_bug bug;
  const char* name;
};

class Planted : public testing::TestWithParam<planting> {};

TEST_P(Planted, BugIsFoundWithinTwoThousandSeeds) {
  planted = GetParam().bug;
  std::optional<std::string> broken;
  std::uint64_t seed = 0;
  while (!broken && seed < 2'000)
    broken = run_history(draw_plan(++seed));
  planted = planted_bug::none;
  ASSERT_TRUE(broken) << "2,000 histories did not show it";
  std::printf("found by seed %llu: %s\n", (unsigned long long)seed, broken->c_str());
  EXPECT_FALSE(run_history(draw_plan(seed))) << "the same history is fine without the bug";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted,
                         testing::Values(planting{planted_bug::act_before_commit, "ActBeforeCommit"},
                                         planting{planted_bug::late_grant_kept, "LateGrantKept"},
                                         planting{planted_bug::lease_one_tick_long, "LeaseOneTickLong"},
                                         planting{planted_bug::repeated_start_runs, "RepeatedStartRuns"},
                                         planting{planted_bug::replay_skips, "ReplaySkips"}),
                         [](const auto& x) { return std::string(x.param.name); });

} // namespace
} // namespace troupe::sim
