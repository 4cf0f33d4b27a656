// Tests what a trial in C++ reads from its environment and its command line.

#include "workers/collectives/shm.hpp"
#include "workers/trial/settings.hpp"

#include <gmock/gmock.h>

#include <map>

namespace troupe::trial {
namespace {

using variables = std::map<std::string, std::string>;

result<settings> read(const variables& set, const std::vector<std::string>& arguments = {}) {
  return read_settings([&](const char* name) { return set.contains(name) ? set.at(name) : std::string(); },
                       arguments, "p");
}

const variables cluster = {{"TROUPE_HARNESS", "tcp://127.0.0.1:1"},
                           {"TROUPE_TASK_TOKEN", "t"},
                           {"TROUPE_ALLOCATION_ID", "12.3"},
                           {"TROUPE_CHECKPOINT_DIR", "/ck"}};

variables with(variables base, const variables& more) {
  for (const auto& [name, text] : more)
    base[name] = text;
  return base;
}

TEST(TrialSettings, ByHandAFlagIsAHyperparameterOfAnyTypeThatItsTextIs) {
  const auto s = read({}, {"--lr=0.1", "--n=64", "--name=adam", "--fast=true", "--opt.beta=0.9", "--text=7",
                           "--seed=5", "--big=1e6", "--empty="});
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(*double_in(s->hparams, "lr"), 0.1);
  EXPECT_EQ(*integer_in(s->hparams, "n"), 64);
  EXPECT_EQ(*double_in(s->hparams, "n"), 64.0);
  EXPECT_EQ(*integer_in(s->hparams, "big"), 1'000'000);
  EXPECT_EQ(*text_in(s->hparams, "name"), "adam");
  EXPECT_EQ(*text_in(s->hparams, "text"), "7");
  EXPECT_EQ(*text_in(s->hparams, "empty"), "");
  EXPECT_TRUE(*bool_in(s->hparams, "fast"));
  EXPECT_EQ(*double_in(s->hparams, "opt.beta"), 0.9);
  EXPECT_EQ(s->seed, 5u);
  EXPECT_EQ(s->size, 1);
  EXPECT_FALSE(s->on_cluster());
}

TEST(TrialSettings, OnAClusterTheConfigurationsValuesKeepTheirTypesAndAFlagReplacesThem) {
  const auto s = read(
    with(cluster, {{"TROUPE_HPARAMS", R"({"lr": 1, "n": 2.0, "deep": {"a": {"b": false}}, "x.y": "whole"})"},
                   {"TROUPE_TRIAL_SEED", "77"}}),
    {"--lr=0.5"});
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(*double_in(s->hparams, "lr"), 0.5);
  EXPECT_EQ(*integer_in(s->hparams, "n"), 2);
  EXPECT_FALSE(*bool_in(s->hparams, "deep.a.b"));
  EXPECT_EQ(*text_in(s->hparams, "x.y"), "whole");
  EXPECT_EQ(s->seed, 77u);
  EXPECT_EQ(s->group, group_of_task("12.3", "t"));
  EXPECT_NE(s->group, group_of_task("12.3", "u")) << "an allocation of another cluster on this host";
}

TEST(TrialSettings, AHyperparameterThatIsMissingOrAnotherThingIsNamedWithWhatIsThere) {
  const auto s = read({}, {"--lr=fast", "--n=1.5", "--f=maybe"});
  ASSERT_TRUE(s);
  EXPECT_EQ(double_in(s->hparams, "lr").error().what,
            "the hyperparameter 'lr' is \"fast\": expected a number");
  EXPECT_EQ(integer_in(s->hparams, "n").error().what,
            "the hyperparameter 'n' is \"1.5\": expected a whole number");
  EXPECT_EQ(bool_in(s->hparams, "f").error().what,
            "the hyperparameter 'f' is \"maybe\": expected true or false");
  const auto missing = text_in(s->hparams, "opt.name");
  EXPECT_EQ(missing.error().code, errc::not_found);
  EXPECT_THAT(missing.error().what, testing::HasSubstr("'opt.name' is not given (there are: f, lr, n)"));
}

TEST(TrialSettings, SaysWhichVariableOrArgumentIsWrong) {
  struct {
    variables set;
    std::vector<std::string> arguments;
    const char* text;
  } const cases[] = {
    {{}, {"lr=0.1"}, "'lr=0.1': hyperparameters are given as --name=value"},
    {{}, {"--lr"}, "'--lr': hyperparameters are given as --name=value"},
    {{}, {"--=1"}, "'--=1'"},
    {{}, {"--seed=-1"}, "the seed '-1'"},
    {{{"WORLD_SIZE", "two"}}, {}, "WORLD_SIZE='two'"},
    {{{"WORLD_SIZE", "0"}}, {}, "WORLD_SIZE='0'"},
    {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {}, "RANK=2 of WORLD_SIZE=2"},
    {{{"TROUPE_RESUME", "../x"}}, {}, "TROUPE_RESUME='../x'"},
    {{{"TROUPE_HARNESS", "tcp://127.0.0.1:1"}}, {}, "TROUPE_TASK_TOKEN"},
    {with(cluster, {{"TROUPE_HPARAMS", "[1]"}}), {}, "TROUPE_HPARAMS is not a JSON object"},
  };
  for (const auto& x : cases) {
    const auto s = read(x.set, x.arguments);
    ASSERT_FALSE(s) << x.text;
    EXPECT_THAT(s.error().what, testing::HasSubstr(x.text));
  }
}

TEST(TrialSettings, RanksOfOneRunMeetUnderANameThatNoOtherRunHas) {
  const variables torchrun = {{"RANK", "1"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_RUN_ID", "a/b"},
                              {"TORCHELASTIC_RESTART_COUNT", "1"}};
  const auto s = read(torchrun);
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(s->group, "hand-127.0.0.1-29500-a_b-1");
  EXPECT_EQ(s->rank, 1);
  EXPECT_EQ(s->size, 2);
  EXPECT_TRUE(s->one_host);
  EXPECT_TRUE(read(with(torchrun, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}))->one_host)
    << "two agents of one host";
  EXPECT_FALSE(
    read(with(torchrun, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}, {"MASTER_ADDR", "10.0.0.7"}}))
      ->one_host);
}

TEST(TrialSettings, ASmallerGroupMeetsAtTheHostOfItsRankZero) {
  const variables gang = {{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "10.0.0.7"},
                          {"TROUPE_DIST_PORT", "20001"}};
  const auto s = read(with(gang, {{"TROUPE_GANG", "10.0.0.7=1 10.0.0.8=1 fe80::9=2"}}));
  ASSERT_TRUE(s) << s.error().what;
  struct {
    std::vector<int> members;
    const char* shown;
  } const cases[] = {
    {{0, 1, 3}, "2 of 3 at 10.0.0.7:20001"},
    {{1, 2, 3}, "2 of 3 at 10.0.0.8:20001"},
    {{2, 3}, "1 of 2 at fe80::9:20001"},
    {{3, 0}, "0 of 2 at fe80::9:20001"},
    {{0, 1}, "none of them"},
  };
  for (const auto& x : cases) {
    const auto next = settings_in_group(*s, x.members, 2);
    EXPECT_EQ(next ? std::to_string(next->rank) + " of " + std::to_string(next->size) + " at " +
                       next->meeting + ":" + std::to_string(next->meeting_port)
                   : "none of them",
              x.shown);
    if (next) {
      EXPECT_EQ(next->group, s->group + ".g2");
    }
  }
  EXPECT_EQ(settings_in_group(*read(gang), {3, 0}, 1)->meeting, "10.0.0.7")
    << "nobody said where the others are";
  for (const char* wrong : {"10.0.0.7=2", "10.0.0.7", "=4", "a=2 b=x", "a=5", "a=-1 b=5"})
    EXPECT_FALSE(read(with(gang, {{"TROUPE_GANG", wrong}}))) << wrong;
}

} // namespace
} // namespace troupe::trial
