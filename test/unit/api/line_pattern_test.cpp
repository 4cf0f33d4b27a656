#include "runtime/api/line_pattern.hpp"

#include <gmock/gmock.h>
#include <random>

namespace troupe::api {
namespace {

using spans = std::vector<std::pair<std::size_t, std::size_t>>;

TEST(LinePattern, FindsATextAndAnExpression) {
  const struct {
    const char* pattern;
    bool regex;
    const char* line;
    spans at;
  } rows[] = {
    {"loss", false, "loss 1, loss 2", {{0, 4}, {8, 12}}},
    {"l.ss", false, "loss", {}},
    {"l.ss", true, "loss", {{0, 4}}},
    {"[0-9]+", true, "a 12 b 345", {{2, 4}, {7, 10}}},
    {"^error", true, "an error", {}},
    {"(?i)ERR", true, "an error", {{3, 6}}},
    {"aa", false, "aaaa", {{0, 2}, {2, 4}}},
    {"\xc3\xa9", true, "caf\xc3\xa9", {{3, 5}}},
    {"step 4", false, "\x1b[32mstep\x1b[0m 40", {{5, 15}}},
    {"^red", true, "\x1b[31mred\x1b[0m", {{5, 8}}},
    {"31m", false, "\x1b[31mred\x1b[0m", {}},
    {"bold bg", false, "\x1b[1;44mbold\x1b]8;;http://x\a bg\x1b(B!", {{7, 28}}},
    {"ab", false, "a\x1b", {}},
    {"ab", false, "\x1b]0;title", {}},
    {"link", false, "\x1b]8;;u\x1b\\link", {{8, 12}}},
  };
  for (const auto& row : rows) {
    const auto pattern = line_pattern::make(row.pattern, row.regex);
    ASSERT_TRUE(pattern) << row.pattern;
    EXPECT_EQ(pattern->spans(row.line), row.at) << row.pattern;
    EXPECT_EQ(pattern->in(row.line), !row.at.empty()) << row.pattern;
  }
}

TEST(LinePattern, AnExpressionThatMatchesNothingMarksNothing) {
  const auto pattern = line_pattern::make("x*", true);
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->in("abc"));
  EXPECT_EQ(pattern->spans("abc"), spans{});
  EXPECT_EQ(pattern->spans("axxc"), (spans{{1, 3}}));
}

TEST(LinePattern, GivesAtMostTwentyPlaces) {
  EXPECT_EQ(line_pattern::make("a", true)->spans(std::string(100, 'a')).size(), 20u);
  EXPECT_EQ(line_pattern::make("a", false)->spans(std::string(100, 'a')).size(), 20u);
}

TEST(LinePattern, RefusesWhatCannotBeRead) {
  for (const char* wrong : {"(", "a{2", "(?=a)", "\\1", "[z-a]"})
    if (const auto pattern = line_pattern::make(wrong, true))
      EXPECT_STREQ(wrong, "a{2"); // RE2 takes "a{2" as plain text
    else
      EXPECT_THAT(pattern.error().what, testing::HasSubstr("cannot be read"));
  EXPECT_THAT(line_pattern::make(std::string(5000, 'a'), true).error().what, testing::HasSubstr("4096"));
  EXPECT_TRUE(line_pattern::make("(", false));
}

TEST(LinePattern, OverManyLinesFindsThoseThatItIsIn) {
  std::mt19937 random(3);
  const std::string_view letters[] = {"a", "b", "ab", " ", "1", "\xc3\xa9", "\r", "x"};
  const struct {
    const char* pattern;
    bool regex;
  } rows[] = {{"ab", false},   {"a", true},        {"^a", true},         {"b$", true},
              {"^$", true},    {"a*", true},       {"a.b", true},        {"(?i)A b", true},
              {"[^a]x", true}, {"a\\s*b", true},   {"\\Aa", true},       {"b\\z", true},
              {"a|^x", true},  {"(?-m:^a)", true}, {"\\bab\\b", true},   {"(?s)a.b", true},
              {"a\\nb", true}, {"\\Ca", true},     {"(?P<n>1) a", true}, {"[[:^alpha:]]b", true},
              {"\\W$", true}};
  for (const auto& row : rows) {
    const auto pattern = line_pattern::make(row.pattern, row.regex);
    ASSERT_TRUE(pattern) << row.pattern;
    for (int round = 0; round < 200; ++round) {
      std::string texts;
      std::vector<std::size_t> ends;
      for (auto lines = random() % 6; lines > 0; --lines) {
        for (auto some = random() % 5; some > 0; --some)
          texts += letters[random() % std::size(letters)];
        texts += '\n';
        ends.push_back(texts.size());
      }
      std::size_t from = 0;
      for (auto end : ends) {
        const bool found = pattern->next(std::string_view(texts), from) < end;
        EXPECT_EQ(found, pattern->in(std::string_view(texts).substr(from, end - from - 1)))
          << row.pattern << " in " << testing::PrintToString(texts) << " from " << from;
        from = end;
      }
      EXPECT_EQ(pattern->next(texts, texts.size()), std::string_view::npos);
    }
  }
}

TEST(LinePattern, OverManyLinesPassesOverNoneThatItIsIn) {
  std::mt19937 random(5);
  const std::string_view pieces[] = {"a", "b", "ab", "a\x1b[1mb", "\x1b[1ma", "\x1b", "axb"};
  for (const auto& [text, regex] : {std::pair{"ab", false}, {"a.b", true}, {"^a", true}, {"\\Ab", true}}) {
    const auto pattern = *line_pattern::make(text, regex);
    std::string texts;
    std::vector<std::size_t> wanted;
    while (texts.size() < 100'000) { // more text than one window holds
      std::string line(random() % 200 ? random() % 30 : 20'000, 'c');
      for (auto some = random() % 8 ? 0 : random() % 6; some > 0; --some)
        line.insert(random() % 2 ? 0 : random() % (line.size() + 1), pieces[random() % std::size(pieces)]);
      if (pattern.in(line))
        wanted.push_back(texts.size());
      texts += line + '\n';
    }
    ASSERT_GT(wanted.size(), 3u) << text;
    std::vector<std::size_t> found;
    for (std::size_t at = 0; (at = pattern.next(texts, at)) != texts.npos;) {
      const auto begin = at ? texts.rfind('\n', at - 1) + 1 : 0; // npos + 1 is 0, the start of the first line
      at = texts.find('\n', at) + 1;
      if (pattern.in(std::string_view(texts).substr(begin, at - begin - 1)))
        found.push_back(begin);
    }
    EXPECT_EQ(found, wanted) << text;
  }
}

TEST(LinePattern, AnExpressionThatBacktracksElsewhereIsLinearHere) {
  const auto pattern = line_pattern::make("(a+)+$", true);
  ASSERT_TRUE(pattern);
  EXPECT_FALSE(pattern->in(std::string(1 << 16, 'a') + "b"));
}

} // namespace
} // namespace troupe::api
