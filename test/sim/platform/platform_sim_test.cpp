// The real shells of master and agents together, by seed. TROUPE_PLATFORM_SEED=n plays one history, and
// TROUPE_PLATFORM_TRACE=file writes its messages; TROUPE_PLATFORM_HISTORIES=n chooses how many.

#include "test/sim/platform/platform.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace troupe::sim {
namespace {

#ifdef __OPTIMIZE__
constexpr std::uint64_t histories_of_a_shard = 2'500; // 20,000 in all
#else
constexpr std::uint64_t histories_of_a_shard = 250;
#endif

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Platform : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Platform, KeepsItsPromisesInEveryHistory) {
  const auto seed = number_from("TROUPE_PLATFORM_SEED", 0);
  const auto count = seed ? 1 : number_from("TROUPE_PLATFORM_HISTORIES", histories_of_a_shard);
  const auto first = seed ? seed : 1 + GetParam() * count;
  std::uint64_t messages = 0, runs = 0, tasks = 0, compared = 0;
  int failures = 0;
  for (auto n = first; n < first + count; ++n) {
    const auto plan = draw_platform_plan(n);
    const auto got = play(plan);
    EXPECT_FALSE(got.wrong) << *got.wrong << "\n(TROUPE_PLATFORM_SEED=" << n << " plays it again)\n"
                            << describe(plan);
    if (got.wrong && ++failures > 5)
      FAIL() << "too many";
    messages += got.messages;
    runs += got.runs;
    tasks += got.tasks;
    compared += got.compared;
  }
  std::printf("%llu histories: %llu messages, %llu runs, %llu tasks that are not trials, %llu machines "
              "compared with replayed ones\n",
              (unsigned long long)count, (unsigned long long)messages, (unsigned long long)runs,
              (unsigned long long)tasks, (unsigned long long)compared);
}
INSTANTIATE_TEST_SUITE_P(Shard, Platform, testing::Range<std::uint64_t>(0, 8));

class PlantedInThePlatform : public testing::TestWithParam<planted_fault> {};

TEST_P(PlantedInThePlatform, IsFoundWithinThreeHundredSeeds) {
  std::optional<std::string> wrong;
  std::uint64_t seed = 0;
  while (!wrong && seed < 300)
    wrong = play(draw_platform_plan(++seed), GetParam()).wrong;
  ASSERT_TRUE(wrong) << "300 histories did not show it";
  std::printf("found by seed %llu: %s\n", (unsigned long long)seed, wrong->c_str());
  EXPECT_FALSE(play(draw_platform_plan(seed)).wrong) << "the same history is fine without the fault";
}
INSTANTIATE_TEST_SUITE_P(Faults, PlantedInThePlatform,
                         testing::Values(planted_fault::adoption_forgets, planted_fault::told_before_stored,
                                         planted_fault::kill_ignored, planted_fault::records_stay,
                                         planted_fault::created_twice, planted_fault::orders_forgotten,
                                         planted_fault::held_after_its_end, planted_fault::reports_stay,
                                         planted_fault::continuation_loses_trials,
                                         planted_fault::limits_forgotten, planted_fault::instances_stay,
                                         planted_fault::leases_too_long, planted_fault::leases_by_one_clock,
                                         planted_fault::act_before_commit, planted_fault::late_grant_kept,
                                         planted_fault::repeated_start_runs, planted_fault::replay_skips),
                         [](const auto& x) { return std::string(planted_names[int(x.param)]); });

} // namespace
} // namespace troupe::sim
