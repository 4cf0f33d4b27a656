#include "model/ids.hpp"
#include "model/rows.hpp"
#include "model/time.hpp"
#include "model/value.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <thread>

namespace troupe {
namespace {

TEST(Value, KeepsEveryDoubleExactlyThroughMsgpack) {
  const double odd[] = {0.1,
                        -0.0,
                        5e-324,
                        1.7976931348623157e308,
                        std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN()};
  for (double d : odd) {
    auto back = parse_msgpack(to_msgpack(value{{"x", d}}));
    ASSERT_TRUE(back);
    auto got = (*back)["x"].get<double>();
    if (d != d)
      EXPECT_TRUE(got != got);
    else
      EXPECT_EQ(std::bit_cast<std::uint64_t>(d), std::bit_cast<std::uint64_t>(got)) << d;
  }
}

TEST(SharedValue, ReadsItsBytesWhenItIsLookedAtAndGivesThemBack) {
  const value config{{"searcher", {{"name", "single"}}}, {"labels", {"a", "b"}}};
  experiment_row row;
  EXPECT_TRUE(row.config->is_null());
  row.config = config;
  const auto stored = pack(row);
  const auto back = unpack<experiment_row>(stored);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->config.msgpack(), to_msgpack(config));
  EXPECT_EQ(pack(*back), stored) << "before it is looked at";
  const auto copy = back->config;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] { EXPECT_EQ(back->config.get(), config); });
  for (auto& one : readers)
    one.join();
  EXPECT_EQ(&copy.get(), &back->config.get()) << "one value, shared";
  EXPECT_EQ(pack(*back), stored);
}

TEST(SharedValue, RefusesBytesThatAreNoValue) {
  const auto good = to_msgpack(value{{"a", {1, 2, 3}}});
  EXPECT_TRUE(shared_value::of_msgpack(good));
  for (const auto& bad : {std::string(), good.substr(0, good.size() - 1), good + good, std::string("\xc1")})
    EXPECT_FALSE(shared_value::of_msgpack(bad)) << bad.size();
  EXPECT_TRUE(shared_value()->is_object());
}

TEST(Value, WritesOddNumbersAsNamesAndReadsThemBack) {
  value x{{"a", std::numeric_limits<double>::quiet_NaN()},
          {"b", -std::numeric_limits<double>::infinity()},
          {"c", 0.1}};
  EXPECT_EQ(to_json(x), R"({"a":"NaN","b":"-Infinity","c":0.1})");
  EXPECT_EQ(number_in("-Infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(number_in("loss"));
}

TEST(Value, RefusesDeepNestingAndTrailingBytes) {
  EXPECT_FALSE(parse_json(std::string(600, '[') + std::string(600, ']')));
  EXPECT_FALSE(parse_json("{} x"));
  EXPECT_FALSE(parse_msgpack("\x93\x01\x02"));
  EXPECT_FALSE(parse_msgpack(std::string("\x01\x02", 2)));
}

TEST(Ids, ReadAndWrite) {
  EXPECT_EQ(to_string(parse_allocation("12.3")), "12.3");
  for (auto bad : {"12", "12.", ".3", "0.1", "12.x", "a.1", ""})
    EXPECT_EQ(parse_allocation(bad), allocation_id{}) << bad;
}

TEST(Time, PrintsRfc3339) {
  EXPECT_EQ(to_rfc3339(time_point{1742388296123456us}), "2025-03-19T12:44:56.123456Z");
}

TEST(Time, ReadsRfc3339) {
  const time_point at{1742388296123456us};
  EXPECT_EQ(from_rfc3339("2025-03-19T12:44:56.123456Z"), at);
  EXPECT_EQ(from_rfc3339("2025-03-19T14:14:56.123456+01:30"), at);
  EXPECT_EQ(from_rfc3339("2025-03-19T12:44:56Z"), time_point{1742388296000000us});
  EXPECT_EQ(from_rfc3339("2025-03-19t12:44:56.1234564z"), at);
  EXPECT_EQ(from_rfc3339("2025-03-19 12:44:56.1234555999999999-00:00"), at);
  EXPECT_EQ(from_rfc3339("2025-03-19T12:44:55.9999996Z"), time_point{1742388296000000us});
  EXPECT_EQ(from_rfc3339("2025-03-19T12:44:56.1Z"), time_point{1742388296100000us});
  for (const char* bad : {"",
                          "noon",
                          "2025-03-19",
                          "2025-02-30T00:00:00Z",
                          "2025-03-19T24:00:00Z",
                          "2025-03-19T12:44:56",
                          "2025-03-19T12:44:56Zx",
                          "2025-03-19T12:44:56+1",
                          "2025-03-19T12:44:56+24:00",
                          "2025-03-19T12:44:56-01:60",
                          "2025-3-19T12:44:56Z",
                          "2025-03-9T12:44:56Z",
                          "2025-03-19T1:44:56Z",
                          "2025-03-19T12:4:56Z",
                          "2025-03-19T12:44:5Z",
                          "2025-03-19T12:44:56+1:30",
                          "2025-03-19T12:44:56+01:3",
                          "2025-03-19T12:44:5e1Z",
                          "2025-03-19T12:44:0x1Z",
                          "2025-03-19TT12:44:56Z",
                          "2025-03-19T +1:44:56Z",
                          "25-03-19T12:44:56Z",
                          "2025-03-19T12:44:56.Z",
                          "2025-03-19T12:44:61Z",
                          " 2025-03-19T12:44:56Z"})
    EXPECT_EQ(from_rfc3339(bad), std::nullopt) << bad;
}

} // namespace
} // namespace troupe
