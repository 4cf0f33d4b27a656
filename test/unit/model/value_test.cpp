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

/// What the JSON library's own parser makes of the bytes.
value of_library(const std::string& bytes) { return value::from_msgpack(bytes, true, false); }

TEST(Value, ReadsMsgpackAsTheJsonLibraryDoes) {
  const value all{{"null", nullptr},
                  {"yes", true},
                  {"small", 1},
                  {"negative", -5},
                  {"numbers", {127u, 128u, 65'536u, 1ull << 40, -33, -200, -70'000, -(1ll << 40), 1.5, 0.1}},
                  {"text", std::string(300, 'x')},
                  {"bytes", value::binary({1, 2, 3})},
                  {"typed bytes", value::binary({4}, 7)},
                  {"empty", {value::object(), value::array(), ""}},
                  {"", {{"a", {{"b", {1, {{"c", 2}}, 3}}}}, {"z", 4}}}};
  const std::vector<std::string> texts = {
    to_msgpack(all),
    to_msgpack(5),
    {"\xca\x3f\x80\x00\x00", 5},                 // a float of 4 bytes
    {"\xd0\x05", 2},                             // a positive number of a signed format
    {"\xd3\x00\x00\x00\x00\x00\x00\x00\x05", 9}, // another
    {"\x82\xa1\x62\x01\xa1\x61\x02", 7},         // keys in no order
    {"\x82\xa1\x61\x01\xa1\x61\x02", 7},         // a key that comes twice
    {"\xd9\x01\x61", 3},                         // a size that is longer than needed
  };
  for (const auto& bytes : texts) {
    const auto read = parse_msgpack(bytes);
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, of_library(bytes));
    EXPECT_EQ(to_msgpack(*read), to_msgpack(of_library(bytes)));
    EXPECT_EQ(read->type(), of_library(bytes).type());
  }
  // Changed bytes: both refuse them, or both read the same.
  const auto whole = to_msgpack(all);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int other : {0x00, 0x81, 0x91, 0xa1, 0xc0, 0xc1, 0xc4, 0xc7, 0xca, 0xd4, 0xdc, 0xde, 0xff}) {
      auto bytes = whole;
      bytes[at] = static_cast<char>(other);
      const auto read = parse_msgpack(bytes);
      const auto known = of_library(bytes);
      ASSERT_EQ(bool(read), !known.is_discarded()) << at << " " << other;
      EXPECT_TRUE(!read || to_msgpack(*read) == to_msgpack(known)) << at << " " << other;
    }
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_msgpack(whole.substr(0, size))) << size;
}

TEST(Value, RefusesDeepNestingAndTrailingBytes) {
  EXPECT_FALSE(parse_json(std::string(600, '[') + std::string(600, ']')));
  EXPECT_FALSE(parse_json("{} x"));
  for (const char* text :
       {R"({"password": hidden})", R"({"password": "hidden)", R"({"password": hidden99})"}) {
    const auto got = parse_json(text);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().what.find("hid"), std::string::npos) << got.error().what; // it may be a secret
  }
  EXPECT_EQ(parse_json("1e999").error().what, "number overflow");
  EXPECT_FALSE(parse_msgpack("\x93\x01\x02"));
  EXPECT_FALSE(parse_msgpack(std::string("\x01\x02", 2)));
  for (const int depth : {512, 513, 100'000}) { // of arrays in each other
    const auto nested = std::string(depth - 1, '\x91') + '\x90';
    EXPECT_EQ(bool(parse_msgpack(nested)), depth <= 513) << depth;
    const auto filled = std::string(depth, '\x91') + '\x01';
    EXPECT_EQ(bool(parse_msgpack(filled)), depth <= 512) << depth;
  }
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
