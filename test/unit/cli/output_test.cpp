#include "runtime/cli/curve.hpp"
#include "runtime/cli/output.hpp"
#include "runtime/cli/session.hpp"

#include <cmath>
#include <gtest/gtest.h>

using namespace troupe;
using namespace troupe::cli;

namespace {

const value rows = value::parse(R"([
  {"id": 1, "state": "STATE_COMPLETED", "name": "a, \"b\"", "best": 0.93125, "at": "2023-11-14T22:10:20.000000Z",
   "h": {"lr": 0.01, "n": 64}},
  {"id": 12, "state": "STATE_RUNNING", "name": "c", "best": null, "at": "2023-11-14T22:13:19.500000Z", "h": {}}])");
const std::vector<column> columns = {{"ID", "id"},
                                     {"STATE", "state", show_as::state},
                                     {"NAME", "name"},
                                     {"BEST", "best", show_as::number},
                                     {"SINCE", "at", show_as::age},
                                     {"HP", "h", show_as::compact}};
const time_point now{std::chrono::seconds(1'700'000'000)}; // 2023-11-14T22:13:20Z

output_options as(output_format format) {
  output_options o;
  o.format = format;
  o.now = now;
  return o;
}

} // namespace

TEST(Output, TellsHyperparametersApart) {
  const std::vector<column> hp = {{"HP", "h", show_as::compact}};
  auto shown_of = [&](const char* rows) {
    return *show_rows(value::parse(rows), hp, as(output_format::table));
  };
  EXPECT_EQ(
    shown_of(R"([{"h": {"lr": 0.0123456, "seed": 1612660001}}, {"h": {"lr": 0.5, "seed": 1612660002}}])"),
    "HP\nlr=0.01235 seed=1612660001\nlr=0.5 seed=1612660002\n");
  EXPECT_EQ(
    shown_of(R"([{"h": {"a": 0.1234567891}}, {"h": {"a": 0.1234567892}}, {"h": {"a": 0.1234567892}}, {}])"),
    "HP\na=0.1234567891\na=0.1234567892\na=0.1234567892\n-\n");
}

TEST(Output, ShowsRowsInEachFormat) {
  EXPECT_EQ(*show_rows(rows, columns, as(output_format::table)),
            "ID  STATE      NAME       BEST  SINCE           HP\n"
            "1   COMPLETED  a, \"b\"  0.93125  3 min 00 s ago  lr=0.01 n=64\n"
            "12  RUNNING    c             -  0.5 s ago\n");
  EXPECT_EQ(*show_rows(rows, columns, as(output_format::csv)),
            "id,state,name,best,at,h\n"
            "1,STATE_COMPLETED,\"a, "
            "\"\"b\"\"\",0.93125,2023-11-14T22:10:20.000000Z,\"{\"\"lr\"\":0.01,\"\"n\"\":64}\"\n"
            "12,STATE_RUNNING,c,,2023-11-14T22:13:19.500000Z,{}\n");
  EXPECT_EQ(value::parse(*show_rows(rows, columns, as(output_format::json))), rows);
  EXPECT_EQ(
    *show_rows(
      value::parse(R"([{"a": [1, {"b": "x y"}, [2]], "c": {}, "d": "yes", "e": "1", "f": null, "g": []}])"),
      columns, as(output_format::yaml)),
    "- a:\n"
    "    - 1\n"
    "    - b: x y\n"
    "    -\n"
    "      - 2\n"
    "  c: {}\n"
    "  d: \"yes\"\n"
    "  e: \"1\"\n"
    "  f: null\n"
    "  g: []\n");
}

TEST(Output, ShowsListsAndTimesThatNeverCame) {
  EXPECT_EQ(shown(value({"default", "gpu"}), show_as::plain, now), "default, gpu");
  EXPECT_EQ(shown("1970-01-01T00:00:00.000000Z", show_as::age, now), "-");
  EXPECT_EQ(shown("2023-11-14T22:13:10Z", show_as::age, now), "10 s ago");
  EXPECT_EQ(shown(3.11505, show_as::span, now), "3.1 s");
  EXPECT_EQ(shown(nullptr, show_as::span, now), "-");
  EXPECT_EQ(shown(nullptr, show_as::plain, now), "-");
}

TEST(Output, ShowsOneThingWithoutWhatItLacks) {
  EXPECT_EQ(*show_one(rows[1], columns, as(output_format::table)),
            "ID     12\nSTATE  RUNNING\nNAME   c\nSINCE  0.5 s ago\nHP     \n");
  EXPECT_EQ(value::parse(*show_one(rows[1], columns, as(output_format::json))), rows[1]);
}

TEST(Output, ShowsTheNumbersOfOneThingExactly) {
  const auto thing = value::parse(
    R"({"best": 0.123456789, "h": {"lr": 0.0031622776601683794, "seed": 1612660001, "x": "NaN"}})");
  EXPECT_EQ(*show_one(thing, {{"BEST", "best", show_as::number}, {"HP", "h", show_as::compact}},
                      as(output_format::table)),
            "BEST  0.123456789\nHP    lr=0.0031622776601683794 seed=1612660001 x=NaN\n");
}

TEST(Output, TakesOptionsOfColumnsHeaderAndQuiet) {
  auto o = as(output_format::table);
  o.header = false;
  o.columns = {"state", "id"};
  EXPECT_EQ(*show_rows(rows, columns, o), "COMPLETED  1\nRUNNING    12\n");
  o.quiet = true;
  EXPECT_EQ(*show_rows(rows, columns, o), "1\n12\n");
  o.quiet = false;
  o.columns = {"sate"};
  auto refused = show_rows(rows, columns, o);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "there is no column 'sate'\nhint: did you mean 'state'?");
}

TEST(Output, FitsATerminalAndKeepsControlCharactersOut) {
  auto o = as(output_format::table);
  o.screen = {true, true, true, 16, 24};
  auto text = *show_rows(value::array({{{"id", 1}, {"name", "\x1b[2Jevil\nname that is long"}}}),
                         {{"ID", "id"}, {"NAME", "name"}}, o);
  EXPECT_EQ(text, "\x1b[1mID\x1b[0m  \x1b[1mNAME\x1b[0m\n1    [2Jevil na…\n");
}

TEST(Output, WritesSpansNumbersAndTimes) {
  EXPECT_EQ(span_text(0.25), "0.2 s");
  EXPECT_EQ(span_text(62), "1 min 02 s");
  EXPECT_EQ(span_text(3723), "1 h 02 min");
  const auto at = *parse_rfc3339("2026-11-29T14:03:36.735757Z");
  EXPECT_EQ(moment_text(at, at + 5h), "14:03 UTC");
  EXPECT_EQ(moment_text(at, at + 10h), "2026-11-29 14:03 UTC") << "that was yesterday";
  EXPECT_EQ(number_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(number_text(16), "16");
  EXPECT_EQ(number_text(NAN), "NaN");
  EXPECT_EQ(number_text(-INFINITY), "-Infinity");
  EXPECT_EQ(parse_rfc3339("2023-11-14T22:13:20.5Z"), now + std::chrono::milliseconds(500));
  EXPECT_EQ(parse_rfc3339("yesterday"), std::nullopt);
}

TEST(Output, MeasuresLettersNotBytes) {
  EXPECT_EQ(width_of("é日\x1b[31mx\x1b[0m"), 4);
  EXPECT_EQ(fitted("日本語", 4, true), "日…");
  EXPECT_EQ(fitted("abcdef", 4, false), "abc~");
  EXPECT_EQ(width_of("\xff\xfe"), 2); // each broken byte counts as one column
}

TEST(Output, LogLinesHaveTheRankAndTheLevelThatTheyWerePrintedWith) {
  struct {
    value log;
    std::string expected;
  } const table[] = {
    {{{"log", "disk\n"}, {"level", "LOG_LEVEL_WARNING"}, {"rankId", 0}}, "WARNING: disk\n"},
    {{{"log", "three\n"}, {"level", "LOG_LEVEL_INFO"}, {"rankId", 3}}, "[rank=3] INFO: three\n"},
    {{{"log", "two\n"}, {"level", "LOG_LEVEL_UNSPECIFIED"}, {"rankId", 2}}, "[rank=2] two\n"},
    {{{"log", "plain\n"}, {"level", "LOG_LEVEL_UNSPECIFIED"}, {"rankId", 0}}, "plain\n"},
    {{{"log", "ended\n"}, {"level", "LOG_LEVEL_ERROR"}}, "ERROR: ended\n"},
    {{{"log", "ERROR: kept\n"}, {"level", "LOG_LEVEL_ERROR"}, {"rankId", 0}}, "ERROR: kept\n"},
    {{{"log", "\n"}, {"level", "LOG_LEVEL_CRITICAL"}, {"rankId", 12}}, "[rank=12] CRITICAL: \n"},
    {{{"log", "hello"}}, "hello"},
    {{{"message", "no text"}}, ""},
  };
  for (const auto& one : table)
    EXPECT_EQ(log_text(one.log), one.expected);
}

TEST(Errors, SayWhatAndTheMend) {
  terminal plain;
  EXPECT_EQ(error_text({errc::not_found, "experiment '7' not found"}, plain),
            "error: experiment '7' not found\nhint: troupe experiment list\n");
  EXPECT_EQ(error_text({errc::invalid, "a.yaml:3:5: x\n  y\n    ^\nhint: z"}, plain),
            "error: a.yaml:3:5: x\n  y\n    ^\nhint: z\n");
  terminal coloured;
  coloured.colour = true;
  EXPECT_EQ(error_text({errc::io, "full"}, coloured), "\x1b[31merror:\x1b[0m full\n");
}

TEST(Curve, IsDrawnInBrailleOrStars) {
  terminal screen;
  screen.width = 30;
  std::vector<std::pair<double, double>> points = {{0, 0}, {5, 0.5}, {10, 1}};
  EXPECT_EQ(draw_curve(points, screen, 16, 4), " 1┤        ⢀⡠⠤⠒⠉\n"
                                               "  ┤    ⣀⠤⠒⠊⠁\n"
                                               " 0┤⣀⠤⠒⠉\n"
                                               "   0          10\n");
  screen.utf8 = false;
  EXPECT_EQ(draw_curve(points, screen, 16, 4), " 1|         ****\n"
                                               "  |   ******\n"
                                               " 0|***\n"
                                               "   0          10\n");
  EXPECT_EQ(draw_curve({{0, NAN}}, screen), "");
}
