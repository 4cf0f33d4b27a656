#include "storage/fact_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::storage {
namespace {

using namespace std::string_literals;

TEST(FactRow, IsAFactOrSeveralOrRefused) {
  struct {
    std::string row;
    std::vector<std::string> facts;
    std::string refused;
  } const cases[] = {
    {"\x93one"s, {"\x93one"s}, ""},
    {"\xc1\0\0\0\1a\0\0\0\0\0\0\0\2bc"s, {"a", "", "bc"}, ""},
    {"\xc1"s, {}, "is empty"},
    {"\xc1\0\0\0"s, {}, "within a length"},
    {"\xc1\0\0\0\1a\0\0\0\2b"s, {}, "within a fact of 2 bytes"},
    {"\xc1\xff\xff\xff\xff"s, {}, "within a fact of 4294967295 bytes"},
  };
  for (const auto& c : cases) {
    auto got = facts_in(c.row);
    if (c.refused.empty()) {
      ASSERT_TRUE(got) << got.error().what;
      EXPECT_EQ(std::vector<std::string>(got->begin(), got->end()), c.facts);
    } else {
      ASSERT_FALSE(got);
      EXPECT_EQ(got.error().code, errc::corrupt);
      EXPECT_THAT(got.error().what, testing::HasSubstr(c.refused));
    }
  }
}

} // namespace
} // namespace troupe::storage
