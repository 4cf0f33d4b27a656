// Pools with all that stands on them, by seed. TROUPE_POOLS_SEED=n plays one history with a trace,
// TROUPE_POOLS_HISTORIES=n and TROUPE_POOLS_FIRST=n choose how many and from which seed.

#include "test/sim/pools/planted.hpp"
#include "test/sim/pools/pools.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace troupe::sim {
namespace {

#ifdef __OPTIMIZE__
constexpr std::uint64_t histories_of_a_shard = 500; // 2,000 in all
#else
constexpr std::uint64_t histories_of_a_shard = 100;
#endif

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Pools : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Pools, KeepTheirPromisesInEveryHistory) {
  if (const auto seed = number_from("TROUPE_POOLS_SEED", 0)) {
    const auto plan = draw_pools_plan(seed);
    std::fprintf(stderr, "%s\n", describe(plan).c_str());
    const auto got = play_pools(plan, true);
    ASSERT_FALSE(got.wrong) << *got.wrong;
    return;
  }
  const auto count = number_from("TROUPE_POOLS_HISTORIES", histories_of_a_shard);
  const auto first = number_from("TROUPE_POOLS_FIRST", 1) + GetParam() * count;
  pools_outcome all;
  int failures = 0;
  for (auto seed = first; seed < first + count; ++seed) {
    const auto plan = draw_pools_plan(seed);
    const auto got = play_pools(plan);
    EXPECT_FALSE(got.wrong) << *got.wrong << "\n(TROUPE_POOLS_SEED=" << seed << " shows it)\n"
                            << describe(plan);
    if (got.wrong && ++failures > 10)
      FAIL() << "too many";
    all.events += got.events;
    all.runs += got.runs;
    all.preemptions += got.preemptions;
    all.reservations += got.reservations;
    all.elsewhere += got.elsewhere;
    all.launches += got.launches;
  }
  std::printf(
    "%llu histories: %llu events, %llu runs, %llu preemptions, %llu reservations, %llu in other pools, "
    "%llu launches\n",
    (unsigned long long)count, (unsigned long long)all.events, (unsigned long long)all.runs,
    (unsigned long long)all.preemptions, (unsigned long long)all.reservations,
    (unsigned long long)all.elsewhere, (unsigned long long)all.launches);
}
INSTANTIATE_TEST_SUITE_P(Shard, Pools, testing::Range<std::uint64_t>(0, 4));

class PlantedInPools : public testing::TestWithParam<int> {};

TEST_P(PlantedInPools, IsFoundWithinTwoThousandSeeds) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "some planted bugs read runs that are gone, which ends a build with sanitizers";
#endif
  planted_pool_bug = pool_bug(GetParam());
  std::optional<std::string> wrong;
  std::uint64_t seed = 0;
  while (!wrong && seed < 2'000)
    wrong = play_pools(draw_pools_plan(++seed)).wrong;
  planted_pool_bug = pool_bug::none;
  ASSERT_TRUE(wrong) << "2,000 histories did not show it";
  std::printf("found by seed %llu: %s\n", (unsigned long long)seed, wrong->substr(0, 200).c_str());
  EXPECT_FALSE(play_pools(draw_pools_plan(seed)).wrong) << "the same history is fine without the bug";
}
INSTANTIATE_TEST_SUITE_P(Bugs, PlantedInPools, testing::Range(1, pool_bugs + 1),
                         [](const auto& x) { return std::string(pool_bug_names[x.param]); });

} // namespace
} // namespace troupe::sim
