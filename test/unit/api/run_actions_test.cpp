// Tests runs: their names, and what is done to many of them at once.

#include "table.hpp"

namespace troupe::api {
namespace {

/// A table with three runs of an ended search of determined (7), one of a single experiment (8), and one of
/// admin (9).
struct runs_table : table {
  runs_table() {
    auto& rows = reader->experiment_rows;
    auto& trials = reader->trial_rows;
    rows[7].state = rows[8].state = experiment_state::completed;
    rows[7].num_trials = 3;
    rows[8].owner = "determined";
    auto config = rows[8].config.get();
    config["searcher"]["name"] = "single";
    rows[8].config = std::move(config);
    rows[9] = rows[7];
    rows[9].id = {9};
    rows[9].owner = "admin";
    for (const auto& [id, of] :
         std::map<std::uint64_t, std::uint64_t>{{12, 7}, {13, 8}, {14, 7}, {15, 7}, {16, 9}}) {
      trials[id] = trials[12];
      trials[id].id = {id};
      trials[id].experiment = {of};
      trials[id].state = trial_state::completed;
      trials[id].number = id - 11;
    }
  }
  /// Returns the runs and the refusals as "12 13:why".
  std::string said(const std::string& verb, const value& body) {
    const auto got = ask("POST", "/api/v1/runs/" + verb, user(), to_json(body));
    if (got.status != 200)
      return std::to_string(got.status) + " " + parse_json(got.body)->value("message", std::string());
    std::string all;
    const auto answer = *parse_json(got.body);
    for (const auto& one : answer.at("results")) {
      const auto why = one.at("error").get<std::string>();
      all += (all.empty() ? "" : "; ") + to_json(one.at("id")) + (why.empty() ? "" : " " + why);
    }
    return all;
  }
  /// Returns the orders about runs and experiments since the last call as "trial.delete 12".
  std::string ordered() {
    std::string all;
    for (const auto& one : cluster.all())
      if (one.command.starts_with("trial.") || one.command.starts_with("experiment."))
        all += (all.empty() ? "" : ", ") + one.command + " " + to_json(one.fields.at("id"));
    cluster.calls.clear();
    return all;
  }
  std::vector<std::uint64_t> found(const value& body) {
    const auto got = ask("POST", "/api/v1/runs", user(), to_json(body));
    EXPECT_EQ(got.status, 200u) << got.body;
    std::vector<std::uint64_t> all;
    const auto answer = *parse_json(got.body);
    for (const auto& one : answer.at("runs"))
      all.push_back(one.at("id"));
    return all;
  }
};

std::string by_name(const char* op, const char* name) {
  const value condition{{"kind", "field"},
                        {"columnName", "localId"},
                        {"location", "LOCATION_TYPE_RUN"},
                        {"operator", op},
                        {"value", name}};
  const value group{{"kind", "group"}, {"conjunction", "and"}, {"children", value::array({condition})}};
  return to_json(value{{"filterGroup", group}, {"showArchived", true}});
}
using ids = std::vector<std::uint64_t>;

TEST(Runs, HaveNamesByWhichTheyAreFound) {
  runs_table t;
  const auto all = parse_json(t.ask("POST", "/api/v1/runs", t.user(), "{}").body)->at("runs");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].at("localId"), "UNCAT-1");
  EXPECT_EQ(all[4].at("localId"), "UNCAT-5");
  EXPECT_EQ(t.found({{"filter", by_name("=", "UNCAT-3")}}), ids{14});
  EXPECT_EQ(t.found({{"filter", by_name("=", "uncat-3")}}), ids{14});
  EXPECT_EQ(t.found({{"filter", by_name("!=", "uncat-3")}}), (ids{12, 13, 15, 16}));
  EXPECT_EQ(t.found({{"filter", by_name("=", "DOG-3")}}), ids{});
  EXPECT_EQ(t.found({{"filter", by_name("contains", "cat-3")}}), ids{14});
  t.reader->trial_rows[12].number = 10;
  EXPECT_EQ(t.found({{"sort", "localId=asc"}}), (ids{13, 14, 15, 16, 12})) << "as numbers";
}

TEST(Runs, AreLedToByALink) {
  runs_table t;
  const auto to = [&](const std::string& target) {
    const auto got = t.ask("GET", target, t.user());
    for (const auto& [key, text] : got.headers)
      if (key == "Location")
        return std::to_string(got.status) + " " + text;
    return std::to_string(got.status);
  };
  EXPECT_EQ(to("/det/runs/UNCAT-3"), "303 /ui/trials/14");
  EXPECT_EQ(to("/det/runs/uncat-3"), "303 /ui/trials/14");
  EXPECT_EQ(to("/det/runs/UNCAT-99"), "404");
  EXPECT_EQ(to("/det/runs/14"), "404");
  EXPECT_EQ(t.ask("GET", "/det/runs/UNCAT-3", {}).status, 401u);
}

TEST(Runs, ThatAreArchivedOrBeingDeletedAreLeftOut) {
  runs_table t;
  t.reader->trial_rows[12].archived = true;
  t.reader->trial_rows[14].deletion = deletion_step::ordered;
  t.reader->trial_rows[15].deletion = deletion_step::failed;
  const auto open = to_json(value{{"showArchived", false}}), all = to_json(value{{"showArchived", true}});
  EXPECT_EQ(t.found({{"filter", open}}), (ids{13, 15, 16}));
  EXPECT_EQ(t.found({{"filter", all}}), (ids{12, 13, 15, 16}));
  const auto rows = parse_json(t.ask("POST", "/api/v1/runs", t.user(), "{}").body)->at("runs");
  EXPECT_EQ(rows[0].at("archived"), true);
  EXPECT_EQ(rows[1].at("archived"), false);
  EXPECT_EQ(t.said("archive", {{"runIds", {14}}, {"projectId", 1}}),
            "14 Run with id '14' not found in project with id '1'");
}

TEST(RunActions, JudgeEachRunByItself) {
  const struct {
    const char* verb;
    value body;
    const char *said, *ordered;
  } cases[] = {
    {"archive",
     {{"runIds", {12, 12, 99}}, {"projectId", 1}},
     "12; 99 Run with id '99' not found in project with id '1'",
     "trial.archive 12"},
    {"archive",
     {{"runIds", {12}}, {"projectId", 4}},
     "12 Run with id '12' not found in project with id '4'",
     ""},
    {"unarchive", {{"runIds", {12, 14}}, {"projectId", 1}}, "12; 14", "trial.archive 12, trial.archive 14"},
    {"delete",
     {{"runIds", {12, 13, 16}}},
     "12; 13; 16 access denied",
     "trial.delete 12, experiment.delete 8"},
    {"kill", {{"runIds", {12, 98}}}, "12; 98 Run with id '98' not found", ""},
    {"pause",
     {{"runIds", {12, 13}}, {"projectId", 1}},
     "12 Cannot pause/unpause run '12' (part of multi-trial).; 13",
     "experiment.pause 8"},
    {"move",
     {{"runIds", {12, 13, 14, 16}}, {"sourceProjectId", 1}, {"destinationProjectId", 4}},
     "12; 13; 14; 16 access denied",
     "experiment.move 7, experiment.move 8"},
    {"move",
     {{"runIds", {12, 13}}, {"sourceProjectId", 1}, {"destinationProjectId", 4}, {"skipMultitrial", true}},
     "12 Skipping run '12' (part of multi-trial).; 13",
     "experiment.move 8"},
    {"delete", {{"filter", by_name("=", "uncat-4")}, {"projectId", 1}}, "15", "trial.delete 15"},
    {"delete",
     {{"filter", by_name("=", "uncat-4")}, {"runIds", {15}}},
     "400 if filter is provided run id list must be empty",
     ""},
    {"archive",
     {{"runIds", {12, "x"}}, {"projectId", 1}},
     "400 runIds[1]: has to be a number above 0 and below 2^63, and is 'x'",
     ""},
    {"kill",
     {{"runIds", {9223372036854775808u}}},
     "400 runIds[0]: has to be a number above 0 and below 2^63, and is '9223372036854775808'",
     ""},
    {"kill",
     {{"runIds", {9223372036854775807}}},
     "9223372036854775807 Run with id '9223372036854775807' not found",
     ""},
  };
  for (const auto& c : cases) {
    runs_table t;
    const auto told = t.said(c.verb, c.body);
    EXPECT_EQ(told, c.said) << c.verb << " " << c.body;
    EXPECT_EQ(t.ordered(), c.ordered) << c.verb << " " << c.body;
  }
}

TEST(RunActions, SayWhatTheClusterSays) {
  runs_table t;
  const auto no = [](const auto&) { return result<value>(error{errc::conflict, "not now"}); };
  t.cluster.answers["trial.archive"] = t.cluster.answers["trial.delete"] =
    t.cluster.answers["experiment.move"] = no;
  EXPECT_EQ(t.said("archive", {{"runIds", {12}}, {"projectId", 1}}), "12 not now");
  EXPECT_EQ(t.said("delete", {{"runIds", {12}}}), "12 not now");
  EXPECT_EQ(
    t.said("move", {{"runIds", {12, 14}}, {"sourceProjectId", 1}, {"destinationProjectId", 4}}),
    "12 Failed to move associated experiment: not now; 14 Failed to move associated experiment: not now");
  t.reader->trial_rows[12].archived = true;
  EXPECT_EQ(t.said("move", {{"runIds", {12}}, {"sourceProjectId", 1}, {"destinationProjectId", 4}}),
            "12 Run is archived.");
  t.reader->trial_rows[13].archived = true;
  EXPECT_EQ(t.said("pause", {{"runIds", {13}}, {"projectId", 1}}), "13 Run is archived.");
}

TEST(Runs, TheirMetadataIsColumnsOfTheKindOfItsValues) {
  runs_table t;
  t.reader->trial_rows[12].metadata = {{"when", "2026-01-02"}, {"flag", true}, {"note", "soon"},
                                       {"mixed", "2026-01"},   {"steps", 7},   {"tags", {"a"}},
                                       {"none", nullptr}};
  t.reader->trial_rows[13].metadata = {
    {"when", "2026-01-02T03:04:05.5+01:00"}, {"flag", false}, {"mixed", "later"}, {"none", nullptr}};
  t.reader->trial_rows[14].metadata = {{"when", nullptr}};
  const auto got = t.ask("GET", "/api/v1/projects/1/columns?tableType=TABLE_TYPE_RUN", t.user());
  ASSERT_EQ(got.status, 200u) << got.body;
  std::string kinds;
  const auto answer = *parse_json(got.body);
  for (const auto& one : answer.at("columns"))
    if (one["location"] == "LOCATION_TYPE_RUN_METADATA")
      kinds +=
        one["column"].get<std::string>().substr(9) + " " + one["type"].get<std::string>().substr(12) + "; ";
  EXPECT_EQ(kinds,
            "flag TEXT; mixed UNSPECIFIED; none TEXT; note TEXT; steps NUMBER; tags ARRAY; when DATE; ");
}

} // namespace
} // namespace troupe::api
