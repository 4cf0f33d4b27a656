#include "model/commands/table.hpp"

#include <gtest/gtest.h>
#include <set>

namespace troupe::commands {
namespace {

TEST(Commands, EachHasANameOfItsOwnASentenceAndARight) {
  std::set<std::string> names;
  for (const auto& x : table()) {
    EXPECT_TRUE(names.insert(x.is.name).second) << x.is.name;
    EXPECT_GT(std::string(x.is.sentence).size(), 10u) << x.is.name;
    EXPECT_EQ(find(x.is.name), &x);
    EXPECT_TRUE(authority::rule_of(x.is.right)) << x.is.name << ": nobody may ask for it";
    std::set<std::string> fields;
    for (const auto& f : x.fields) {
      EXPECT_TRUE(fields.insert(f.rules.name).second) << x.is.name << " " << f.rules.name;
      EXPECT_GT(std::string(f.rules.doc).size(), 3u) << x.is.name << " " << f.rules.name;
    }
    for (const char* implied : x.is.operators.implied)
      EXPECT_TRUE(!implied || fields.contains(implied)) << x.is.name << " " << implied;
  }
  EXPECT_EQ(find("experiment.explode"), nullptr);
}

TEST(Commands, WhatIsWrittenIsReadAgain) {
  experiment_create x;
  x.config = "name: a";
  x.activate = false;
  x.context.held = std::string("\0\xff tar", 6);
  x.parent = {7};
  const auto back = read<experiment_create>("x", write(x));
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->config, x.config);
  EXPECT_EQ(back->config_name, "experiment.yaml");
  EXPECT_FALSE(back->activate);
  EXPECT_EQ(back->context, x.context);
  EXPECT_EQ(back->parent, x.parent);

  checkpoint_patch patch{{{"c1", file_sizes{{"a/", 0}, {"a/b", 17}}}, {"c2", {}}}};
  const auto written = write(patch);
  EXPECT_EQ(written,
            *parse_json(R"({"checkpoints":[{"uuid":"c1","files":{"a/":0,"a/b":17}},{"uuid":"c2"}]})"));
  const auto again = read<checkpoint_patch>("x", written);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->checkpoints[0].files, patch.checkpoints[0].files);
  EXPECT_FALSE(again->checkpoints[1].files);

  trial_report report;
  report.metrics = {{"loss", std::numeric_limits<double>::infinity()}};
  EXPECT_FALSE(write(report).contains("at"));
  EXPECT_EQ(read<trial_report>("x", write(report))->metrics, report.metrics);
}

TEST(Commands, AnErrorSaysWhichFieldAndWhatItHasToBe) {
  struct {
    const char* command;
    const char* fields;
    const char* says;
  } const cases[] = {
    {"trial.kill", R"({})", "trial.kill: the field 'id' is missing (number of the trial)"},
    {"trial.kill", R"({"id":null})", "trial.kill: the field 'id' is missing (number of the trial)"},
    {"trial.kill", R"({"id":"seven"})",
     "trial.kill: the field 'id' has to be a whole number of 0 or more, not \"seven\""},
    {"trial.kill", R"({"id":-1})",
     "trial.kill: the field 'id' has to be a whole number of 0 or more, not -1"},
    {"trial.kill", R"([7])", "trial.kill: the fields have to be an object"},
    {"trial.progress", R"({"progress":1.5})",
     "trial.progress: the field 'progress' has to be a number of 0 to 1, not 1.5"},
    {"trial.early_exit", R"({"reason":"bored"})",
     "trial.early_exit: the field 'reason' has to be one of invalid_hp, not 'bored'"},
    {"agent.drain", R"({"agent":"a","on":"no"})",
     "agent.drain: the field 'on' has to be true or false, not \"no\""},
    {"search.order", R"({"id":1,"orders":[]})",
     "search.order: the field 'orders' has to be an object, not []"},
    {"checkpoint.patch", R"({"checkpoints":{}})",
     "checkpoint.patch: the field 'checkpoints' has to be a list, not {}"},
    {"checkpoint.patch", R"({"checkpoints":[{"uuid":"a"},{"uuid":"b","files":{"x":"y"}}]})",
     "checkpoint.patch: the field 'checkpoints[1].files.x' has to be a whole number, not \"y\""},
    {"checkpoint.patch", R"({"checkpoints":[{"files":{}}]})",
     "checkpoint.patch: the field 'checkpoints[0].uuid' has to be there"},
    {"experiment.create", R"({"config":"x","context":"text"})",
     "experiment.create: the field 'context' has to be binary, not \"text\""},
  };
  for (const auto& c : cases) {
    const auto got = find(c.command)->checked(*parse_json(c.fields), {});
    ASSERT_FALSE(got) << c.command << " " << c.fields;
    EXPECT_EQ(got.error().code, errc::invalid);
    EXPECT_EQ(got.error().what, c.says);
  }
}

TEST(Commands, WhatIsTypedByHandIsReadAsWhatItIs) {
  const reading by_hand{.numbers_as_text = true, .known_only = true};
  const auto fault =
    read<shell_fault>("fault", {{"actor", "trial/1"}, {"fault", "drop"}, {"n", "5"}}, by_hand);
  ASSERT_TRUE(fault) << fault.error().what;
  EXPECT_EQ(fault->n, 5.0);
  EXPECT_FALSE(read<agent_drain>("drain", {{"agent", "a"}, {"on", "off"}}, by_hand)->on);
  EXPECT_EQ(read<trial_set_metadata>("set", {{"id", "7"}, {"metadata", "{\"a\":1}"}}, by_hand)->metadata,
            value({{"a", 1}}));
  EXPECT_FALSE(read<shell_ps>("ps", {{"top", "nan"}}, by_hand));
  EXPECT_FALSE(read<shell_ps>("ps", {{"top", "1e99"}}, by_hand));
  const auto unknown = read<trial_metadata>("show", {{"id", 7}, {"of", true}}, by_hand);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, "show: no field 'of'; its fields are id");
}

TEST(Commands, AFieldOfANewerPeerIsNoError) {
  EXPECT_TRUE(read<agent_slots>("x", {{"agent", "a"}, {"slots", value::array()}, {"heat", 70}}));
}

TEST(Commands, DispatchFindsTheStructByItsName) {
  const auto take = [](const auto& x) -> result<std::string> {
    if constexpr (requires { x.id; })
      return x.is.name + (" " + to_string(x.id));
    else
      return x.is.name;
  };
  using some = list<trial_kill, status>;
  EXPECT_EQ((*dispatch<std::string, some>("trial.kill", {{"id", 7}}, take)), "trial.kill 7");
  EXPECT_EQ((*dispatch<std::string, some>("status", nullptr, take)), "status");
  EXPECT_EQ((dispatch<std::string, some>("trial.kill", nullptr, take).error().code), errc::invalid);
  EXPECT_EQ((dispatch<std::string, some>("fence", value::object(), take).error().code), errc::unsupported);
}

TEST(Commands, AListIsAskedForNamesAndParted) {
  using few = list<trial_kill, status, fence>;
  EXPECT_TRUE(names(few{}, "status"));
  EXPECT_FALSE(names(few{}, "pool.list"));
  static_assert(std::is_same_v<without<few, list<status, pool_list>>, list<trial_kill, fence>>);
  static_assert(std::is_same_v<without<few, few>, list<>>);
}

TEST(Commands, TheSchemaIsThatOfOpenApi) {
  auto drain = schema_of<agent_drain>();
  EXPECT_EQ(drain["type"], "object");
  EXPECT_EQ(drain["required"], value({"agent"}));
  EXPECT_EQ(drain["properties"]["agent"]["type"], "string");
  EXPECT_EQ(drain["properties"]["on"]["type"], "boolean");
  for (const auto& one : drain["properties"])
    EXPECT_FALSE(one["description"].get<std::string>().empty());
  const auto fault = schema_of<inspect_fault>()["properties"];
  EXPECT_EQ(fault["fault"]["enum"], value({"drop", "delay", "pause", "clear"}));
  EXPECT_EQ(fault["n"]["minimum"], 1);
  EXPECT_EQ(fault["n"]["maximum"], 10'000);
  EXPECT_EQ(schema_of<checkpoint_patch>()["properties"]["checkpoints"]["items"]["required"], value({"uuid"}));
}

} // namespace
} // namespace troupe::commands
