#include "model/rows.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(LocalName, IsAKeyAndANumber) {
  const struct {
    const char* text;
    const char* read; ///< empty: the text is not a name
  } cases[] = {
    {"CAT-1", "CAT-1"},
    {"cat-12", "CAT-12"},
    {"C4T-7", "C4T-7"},
    {"UNCAT-18446744073709551615", "UNCAT-18446744073709551615"},
    {"", ""},
    {"CAT", ""},
    {"CAT-", ""},
    {"-1", ""},
    {"CAT-0", ""},
    {"CAT-01", ""},
    {"CAT-1x", ""},
    {"CAT--1", ""},
    {"CAT-+1", ""},
    {"C T-1", ""},
    {"CA-T-1", ""},
    {"CAT-18446744073709551616", ""},
    {"\xC3\x84"
     "T-1",
     ""},
  };
  for (const auto& c : cases) {
    const auto got = parse_local_name(c.text);
    EXPECT_EQ(got ? to_string(*got) : "", c.read) << c.text;
  }
  EXPECT_FALSE(parse_local_name(std::string(100, 'A') + "-1"));
}

} // namespace
} // namespace troupe
