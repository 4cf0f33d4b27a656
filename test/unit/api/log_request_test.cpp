// Tests which lines of a log a request asks for.

#include "runtime/api/shapes.hpp"
#include "runtime/api/streams.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

log_line line_at(const char* at) {
  log_line line;
  line.at = *from_rfc3339(at);
  line.level = "INFO";
  line.stream = "stdout";
  return line;
}

result<log_request> asked(const std::string& query) {
  const auto target = parse_target("/logs?" + query);
  return target ? log_request_of(target->query) : target.error();
}

TEST(LogRequest, TimesAreTimesHoweverTheyAreWritten) {
  const auto line = line_at("2026-11-27T15:16:45.158519Z");
  const struct {
    const char* query;
    bool wanted;
  } cases[] = {
    {"timestampAfter=2026-11-27T15:16:45Z", true},
    {"timestampBefore=2026-11-27T15:16:45Z", false},
    {"timestampBefore=2026-11-27T15:16:46Z", true},
    {"timestampAfter=2026-11-27T17:16:45%2B02:00", true},
    {"timestampBefore=2026-11-27T10:16:46-05:00", true},
    {"timestampAfter=2026-11-27t15:16:45z", true},
    {"timestampAfter=2026-11-27T15:16:45.158519Z", false},
    {"timestampBefore=2026-11-27T15:16:45.158519Z", true},
    {"timestampAfter=2026-11-27T15:16:45.1Z&timestampBefore=2026-11-27T15:16:45.2Z", true},
    {"", true},
  };
  for (const auto& x : cases) {
    const auto got = asked(x.query);
    ASSERT_TRUE(got) << x.query << ": " << got.error().what;
    EXPECT_EQ(got->keep(line), x.wanted) << x.query;
  }
}

TEST(LogRequest, LevelsAndRanks) {
  auto line = line_at("2026-11-27T15:16:45Z");
  line.rank = 2;
  for (const auto& [query, wanted] : {std::pair{"levels=LOG_LEVEL_INFO&rankIds=2", true},
                                      {"levels=LOG_LEVEL_ERROR", false},
                                      {"levels=LOG_LEVEL_ERROR&levels=LOG_LEVEL_INFO", true},
                                      {"rankIds=1&rankIds=2", true},
                                      {"rankIds=1", false}}) {
    const auto got = asked(query);
    ASSERT_TRUE(got) << query << ": " << got.error().what;
    EXPECT_EQ(got->keep(line), wanted) << query;
  }
}

TEST(LogRequest, ALineWithoutARankIsOfNone) {
  auto line = line_at("2026-11-27T15:16:45Z");
  line.rank = -1;
  line.text = "hi";
  EXPECT_FALSE(asked("rankIds=0")->keep(line));
  EXPECT_TRUE(asked("")->keep(line));
  const auto shape = trial_log_shape(line, {12});
  EXPECT_FALSE(shape.contains("rankId"));
  EXPECT_EQ(shape["message"], "[2026-11-27T15:16:45.000000Z]          || INFO: hi\n");
}

TEST(LogRequest, WhatIsNoFilterIsRefusedByItsName) {
  for (const auto& [query, name] : {std::pair{"timestampAfter=yesterday", "timestampAfter"},
                                    {"timestampAfter=2026-13-45T00:00:00Z", "timestampAfter"},
                                    {"timestampBefore=1795792600", "timestampBefore"},
                                    {"rankIds=x", "rankIds"},
                                    {"rankIds=1.5", "rankIds"},
                                    {"limit=-1", "limit"},
                                    {"limit=3&follow=true", "limit"},
                                    {"orderBy=ORDER_BY_DESC&follow=true", "newest"}}) {
    const auto got = asked(query);
    ASSERT_FALSE(got) << query;
    EXPECT_EQ(got.error().code, errc::invalid);
    EXPECT_NE(got.error().what.find(name), std::string::npos) << got.error().what;
  }
}

} // namespace
} // namespace troupe::api
