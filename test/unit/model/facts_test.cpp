#include "model/facts.hpp"
#include "model/rows.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Facts, EncodeAndDecodeEveryKind) {
  const fact all[] = {
    experiment_created{time_point{5us}, {7}, value{{"a", 1}}, "n", "o", "c", "s", "k"},
    agent_joined{time_point{5us}, "a1", "id", 4, "h"},
    experiment_changed{time_point{5us}, experiment_state::paused, "asked"},
    search_stepped{time_point{5us}, search_input::validated, {3}, 9, 4, value{{"loss", 0.1}}, 0,
                   {{{4}, "4", value{{"lr", 1e-3}}, 17, ""}}, {{{3}, "rung 0", 0, 1, 0.5, 0.6}}, false, false, false, 0.5},
    trial_activated{time_point{5us}},
    trial_paused{time_point{5us}},
    trial_stop_ordered{time_point{5us}, trial_state::canceled, true, "cancel"},
    run_started{time_point{5us}, {2}, "u", 40},
    checkpoint_recorded{time_point{5us}, {2}, {"u", 40, {{"a/b", 3}}, value{{"m", 1}}, "/p"}},
    run_ended{time_point{5us}, {2}, end::failed, 1, 0, time_point{7us}, "exit code 1"},
    trial_ended{time_point{5us}, trial_state::error, "gave up"},
    allocation_placed{time_point{5us}, {{"a1", {0, 1}}}},
    allocation_closed{time_point{5us}, end::lost, -1, "agent lost"},
  };
  ASSERT_EQ(std::size(all), std::variant_size_v<fact>);
  for (const auto& f : all) {
    auto back = decode(encode(f));
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(back->index(), f.index());
    EXPECT_EQ(encode(*back), encode(f));
  }
}

TEST(Facts, ReadTheGoldenBytesOfVersionOne) {
  // ["run_started", 1, [5, 2, "u", 40]]
  const std::string golden("\x93\xabrun_started\x01\x94\x05\x02\xa1u\x28", 20);
  auto f = decode_as<trial_fact>(golden);
  ASSERT_TRUE(f) << f.error().what;
  EXPECT_EQ(std::get<run_started>(*f).from_steps, 40);
  EXPECT_EQ(encode_as(*f), golden);
}

TEST(Facts, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(decode("junk").error().code, errc::corrupt);
  EXPECT_EQ(decode("").error().code, errc::corrupt);
  EXPECT_EQ(decode(pack(std::tuple{"no_such_fact", 1, std::vector<int>{}})).error().code, errc::unsupported);
  EXPECT_EQ(decode(pack(std::tuple{"trial_paused", 2, std::vector<int>{}})).error().code, errc::unsupported);
  EXPECT_EQ(decode_as<trial_fact>(encode(agent_joined{})).error().code, errc::corrupt);
}

TEST(Rows, ArchiveWhatALaterRunTrainsAgain) {
  std::vector<run_row> runs(2);
  runs[0].run = {1};
  runs[1].run = {2};
  runs[1].from_steps = 4;
  EXPECT_FALSE(archived({.steps = 4, .run = {1}}, runs));
  EXPECT_TRUE(archived({.steps = 5, .run = {1}}, runs));
  EXPECT_FALSE(archived({.steps = 5, .run = {2}}, runs));
}

} // namespace
} // namespace troupe
