#include "model/facts.hpp"
#include "model/rows.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Facts, ReadTheGoldenBytesOfVersionOne) {
  // The bytes encode ["run_started", 1, [5, 2, "u", 40]].
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
  runs[1].from_steps = 0;
  EXPECT_FALSE(archived({.steps = 5, .run = {1}}, runs)) << "it started from no checkpoint";
}

} // namespace
} // namespace troupe
