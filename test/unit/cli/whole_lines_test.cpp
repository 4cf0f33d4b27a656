// Tests that the lines of a stream are found in whatever parts the stream arrives.

#include "runtime/client/whole_lines.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace troupe::client {
namespace {

using lines = std::vector<std::string>;

TEST(WholeLines, ComeFromPartsOfAnySize) {
  const std::string all = "one\n\ntwo words\nthree";
  for (std::size_t size = 1; size <= all.size(); ++size) {
    std::string bytes;
    lines got;
    const auto take = [&](bool over) {
      take_whole_lines(bytes, over, [&](std::string_view line) { return got.emplace_back(line), true; });
    };
    for (std::size_t at = 0; at < all.size(); at += size) {
      bytes += all.substr(at, size);
      take(false);
    }
    EXPECT_EQ(got, (lines{"one", "", "two words"})) << size;
    EXPECT_EQ(bytes, "three");
    take(true);
    EXPECT_EQ(got, (lines{"one", "", "two words", "three"})) << size;
    EXPECT_EQ(bytes, "");
    take(true);
    EXPECT_EQ(got.size(), 4u) << "nothing is no line";
  }
}

TEST(WholeLines, StayWhereNobodyWantsThem) {
  std::string bytes = "a\nb\nc\n";
  lines got;
  take_whole_lines(bytes, true, [&](std::string_view line) { return got.emplace_back(line), line != "b"; });
  EXPECT_EQ(got, (lines{"a", "b"}));
  EXPECT_EQ(bytes, "c\n");
}

} // namespace
} // namespace troupe::client
