#include "runtime/shell/answer.hpp"
#include "runtime/shell/filters.hpp"

#include <gmock/gmock.h>

namespace troupe::shell {
namespace {

using cli::output_format;
using testing::HasSubstr;

value parsed(const char* text) { return parse_json(text).value(); }

look as(output_format format, bool utf8 = true) {
  look how{format, {}, {}};
  how.screen.utf8 = utf8;
  return how;
}

answer actors() {
  return {
    shape::rows,
    parsed(
      R"([{"actor":"trial/7","backlog":3,"run_us_p50":35}, {"actor":"journal","backlog":12,"run_us_p50":1900.5},
                   {"actor":"trial/8","backlog":0,"run_us_p50":null}])"),
    {{"ACTOR", "actor"}, {"BACKLOG", "backlog", cli::show_as::number}},
    {}};
}

std::string filtered_text(const std::vector<std::vector<std::string>>& filters) {
  auto a = actors();
  for (const auto& words : filters) {
    auto next = filtered(std::move(a), words);
    if (!next)
      return next.error().what;
    a = *std::move(next);
  }
  return render(a, as(output_format::json));
}

TEST(Answers, TellTimeInTheUnitThatFits) {
  struct {
    double us;
    const char* text;
  } cases[] = {{0, "0 µs"},      {9, "9 µs"},        {9.25, "9.2 µs"}, {92, "92 µs"},
               {1900, "1.9 ms"}, {140000, "140 ms"}, {2.1e6, "2.1 s"}, {3.6e9, "3600 s"}};
  for (const auto& c : cases)
    EXPECT_EQ(micros_text(c.us), c.text);
  EXPECT_EQ(micros_text(9, false), "9 us");
  EXPECT_EQ(clock_text("2026-11-22T12:05:58.114321Z"), "12:05:58.114");
  EXPECT_EQ(clock_text("2026-11-22T12:05:58Z"), "12:05:58");
  EXPECT_EQ(clock_text("soon"), "soon");
}

TEST(Answers, AreOneJsonValueOnOneLine) {
  auto text = render(actors(), as(output_format::json));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(parse_json(text).value(), actors().what);
  EXPECT_EQ(render({}, as(output_format::json)), "");
}

TEST(Answers, CsvShowsEveryKeyAndTablesTheirColumns) {
  EXPECT_EQ(render(actors(), as(output_format::csv)),
            "actor,backlog,run_us_p50\ntrial/7,3,35\njournal,12,1900.5\ntrial/8,0,\n");
  EXPECT_EQ(render(actors(), as(output_format::table)),
            "ACTOR    BACKLOG\ntrial/7        3\njournal       12\ntrial/8        0\n");
}

TEST(Answers, NeverMoveTheCursor) {
  answer a{shape::rows, parsed(R"([{"actor":"a\u001b[2Jb\nc"}])"), {{"ACTOR", "actor"}}, {}};
  EXPECT_THAT(render(a, as(output_format::table)), HasSubstr("a [2Jb c"));
  EXPECT_THAT(stream_row(a, parsed(R"({"at":"x","kind":"state","actor":"a","what":"\u001b[2J"})"), true,
                         as(output_format::table)),
              Not(HasSubstr("\x1b")));
  answer tree{shape::tree, parsed(R"({"actor":"a\u0007","state":"\u001b[31m","children":[]})"), {}, {}};
  EXPECT_THAT(render(tree, as(output_format::table)), Not(HasSubstr("\x1b")));
}

TEST(Answers, DrawTreesInBothAlphabets) {
  answer tree{shape::tree,
              parsed(R"({"actor":"e","children":[{"actor":"a","children":[{"actor":"b"}]},{"actor":"c"}]})"),
              {},
              {}};
  EXPECT_EQ(render(tree, as(output_format::table)), "e\n├─ a\n│  └─ b\n└─ c\n");
  EXPECT_EQ(render(tree, as(output_format::table, false)), "e\n|- a\n|  `- b\n`- c\n");
}

TEST(Answers, SurviveOddAnswers) {
  for (auto how : {shape::rows, shape::tree, shape::info, shape::state, shape::stats, shape::text})
    for (const char* text : {"null", "[]", "{}", "[1,2]", "\"x\"", "{\"rows\":3}",
                             R"({"buckets":[[1]],"wait_us":{"buckets":[[null,1]]}})",
                             R"({"links":[1],"recent":[{}],"children":{}})"})
      for (auto format :
           {output_format::table, output_format::json, output_format::csv, output_format::yaml}) {
        const auto shown = render({how, parsed(text), {}, {}}, as(format));
        const bool whole = shown.empty() || format == output_format::table || shown.back() == '\n';
        EXPECT_TRUE(whole) << text << " as " << shown;
        if (format == output_format::json) {
          EXPECT_EQ(parse_json(shown).value(), parsed(text)) << shown;
        }
      }
}

TEST(Answers, StreamsOfRowsAreOneJsonValue) {
  answer a{shape::rows, {}, {{"AT", "at"}, {"WHAT", "what"}}, {}};
  auto row = parsed(R"({"at":"2026-11-22T12:00:00Z","what":"a,b"})");
  auto json = as(output_format::json);
  EXPECT_EQ(parse_json(stream_head(a, json) + stream_row(a, row, true, json) +
                       stream_row(a, row, false, json) + stream_end(json))
              .value(),
            value::array({row, row}));
  EXPECT_EQ(stream_head(a, json) + stream_end(json), "[]\n");
  auto csv = as(output_format::csv);
  EXPECT_EQ(stream_head(a, csv) + stream_row(a, row, true, csv), "at,what\n2026-11-22T12:00:00Z,\"a,b\"\n");
}

TEST(Answers, HaveAnIdForTheNextCommand) {
  EXPECT_EQ(id_of(actors().what, actors().columns), "trial/7");
  EXPECT_EQ(id_of(parsed(R"([{"id":3,"name":"digits"}])")), "3");
  EXPECT_EQ(id_of(parsed(R"({"identity":{"actor":"trial/7"}})")), "trial/7");
  EXPECT_EQ(id_of(parsed("[]")), "");
  EXPECT_EQ(id_of(parsed("5")), "5");
}

TEST(Filters, WorkOnRows) {
  EXPECT_EQ(filtered_text({{"where", "actor~trial", "backlog>0"}, {"columns", "actor"}}),
            "[{\"actor\":\"trial/7\"}]\n");
  EXPECT_EQ(filtered_text({{"order", "-backlog"}, {"first"}, {"columns", "actor"}}),
            "[{\"actor\":\"journal\"}]\n");
  EXPECT_EQ(filtered_text({{"order", "actor"}, {"last", "1"}, {"columns", "actor,backlog"}}),
            "[{\"actor\":\"trial/8\",\"backlog\":0}]\n");
  EXPECT_EQ(filtered_text({{"where", "backlog>=3"}, {"count"}}), "2\n");
  EXPECT_EQ(filtered_text({{"where", "backlog<=3"}, {"count"}}), "2\n");
  EXPECT_EQ(filtered_text({{"where", "backlog!=3"}, {"count"}}), "2\n");
  EXPECT_EQ(filtered_text({{"where", "backlog=12.0"}, {"count"}}), "1\n"); // a number is compared as a number
  EXPECT_EQ(filtered_text({{"first", "100"}, {"count"}}), "3\n");
}

TEST(Filters, NameTheMend) {
  EXPECT_EQ(filtered_text({{"where", "backlg>1"}}),
            "the rows have no 'backlg'\nhint: did you mean 'backlog'?");
  EXPECT_THAT(filtered_text({{"where", "backlog"}}), HasSubstr("'backlog' is not a condition"));
  EXPECT_THAT(filtered_text({{"where"}}), HasSubstr("'where' needs a word"));
  EXPECT_THAT(filtered_text({{"first", "x"}}), HasSubstr("takes one whole number"));
  EXPECT_THAT(filtered_text({{"count", "x"}}), HasSubstr("takes nothing"));
  EXPECT_THAT(filtered_text({{"count"}, {"first"}}), HasSubstr("works on rows"));
}

} // namespace
} // namespace troupe::shell
