// Tests which parts of an experiment that has ended run again.

#include "actors/cluster/accepted_config.hpp"
#include "actors/cluster/continuation.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};

experiment_row ended(const std::string& searcher, experiment_state state) {
  auto got = accept_config("entrypoint: x\nhyperparameters: {}\nsearcher: " + searcher + "\n", "mine.yaml",
                           "/data/checkpoints", nullptr);
  EXPECT_TRUE(got) << got.error().what;
  experiment_row row;
  row.id = {7};
  row.state = state;
  row.config = got ? got->settings : value::object();
  return row;
}
trial_row trial_in(std::uint64_t id, trial_state state) {
  trial_row row;
  row.id = {id};
  row.state = state;
  return row;
}
continuation_terms terms() {
  continuation_terms out;
  out.checkpoint_dir = "/data/checkpoints";
  return out;
}
const std::vector<trial_row> trials{trial_in(1, trial_state::completed), trial_in(2, trial_state::error),
                                    trial_in(3, trial_state::canceled)};
const std::string single = "{name: single, metric: loss}",
                  random_search = "{name: random, metric: loss, max_trials: 3}",
                  grid = "{name: grid, metric: loss}",
                  adaptive =
                    "{name: adaptive_asha, metric: loss, max_trials: 3, time_metric: e, max_time: 4}";

TEST(Continuation, IsNotOfExperimentsThatOthersRun) {
  auto row = ended(single, experiment_state::error);
  row.unmanaged = true;
  const auto got = to_continue(row, {}, nullptr, terms(), t0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().what, "experiment 7 is unmanaged: its own processes start its trials again");
}

TEST(Continuation, IsDecidedByTheSearcherAndWhatIsLeft) {
  const auto done = experiment_state::completed, failed = experiment_state::error;
  struct {
    std::string searcher;
    experiment_state state;
    value overrides;
    std::string says; ///< the ids of the trials that run again, or the refusal
  } cases[] = {
    {single, done, nullptr, "1 2 3 "},
    {single, failed, "", "1 2 3 "},
    {random_search, failed, nullptr, "2 3 "},
    {random_search, experiment_state::canceled, " {} \n", "2 3 "},
    {grid, failed, value::object(), "2 3 "},
    {random_search, done, nullptr, "experiment has been completed, cannot continue this experiment"},
    {random_search, failed, "max_restarts: 3",
     "override config is provided and experiment is not single searcher"},
    {grid, failed, value{{"max_restarts", 3}},
     "override config is provided and experiment is not single searcher"},
    {adaptive, failed, nullptr, "Unsupported searcher type provided"},
  };
  for (const auto& x : cases) {
    const auto got = to_continue(ended(x.searcher, x.state), trials, x.overrides, terms(), t0);
    std::string said;
    if (got)
      for (const auto id : got->trials)
        said += to_string(id) + " ";
    EXPECT_EQ(got ? said : got.error().what, x.says) << x.searcher;
    if (got) {
      EXPECT_EQ(got->id, experiment_id{7});
      EXPECT_EQ(got->at, t0);
      EXPECT_TRUE(got->config.is_null()) << "as before";
    } else {
      EXPECT_EQ(got.error().code, errc::invalid);
    }
  }
}

TEST(Continuation, LeavesWhatHasBegunToGo) {
  const auto got = to_continue(ended(single, experiment_state::delete_failed), trials, nullptr, terms(), t0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::conflict);
  EXPECT_EQ(got.error().what, "experiment 7 is in state DELETE_FAILED: its deletion has begun");
}

TEST(Continuation, LeavesWhatIsArchived) {
  auto row = ended(single, experiment_state::completed);
  row.archived = true;
  const auto got = to_continue(row, trials, nullptr, terms(), t0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().what, "experiment 7 is archived: unarchive it first");
}

TEST(Continuation, LaysTheOverrideOverTheConfigurationAndLooksAtItAgain) {
  const auto row = ended(single, experiment_state::error);
  const auto with = [&](const value& overrides, const continuation_terms& how) {
    return to_continue(row, trials, overrides, how, t0);
  };
  const auto changed = with("max_restarts: 3\n", terms());
  ASSERT_TRUE(changed) << changed.error().what;
  EXPECT_EQ(changed->config["max_restarts"], 3);
  EXPECT_EQ(changed->config["searcher"]["name"], "single");

  EXPECT_FALSE(with("searcher: {name: random, metric: loss, max_trials: 3}\n", terms()))
    << "another searcher";
  auto in_bucket = row;
  auto settings = row.config.get();
  settings["checkpoint_storage"] = {{"type", "s3"}, {"bucket", "b"}, {"secret_key", "hush"}};
  in_bucket.config = settings;
  const auto shown = to_continue(
    in_bucket, trials, R"(checkpoint_storage: {type: s3, bucket: c, secret_key: "********"})", terms(), t0);
  ASSERT_TRUE(shown) << shown.error().what;
  EXPECT_EQ(shown->config["checkpoint_storage"]["secret_key"], "hush") << "who gives back what was shown";
  const auto masked = to_continue(
    in_bucket, trials, R"(checkpoint_storage: {type: s3, bucket: c, access_key: "********"})", terms(), t0);
  ASSERT_FALSE(masked);
  EXPECT_EQ(masked.error().what.find("checkpoint_storage.access_key: '********' stands for a secret"), 0u)
    << masked.error().what;
  EXPECT_FALSE(with("workspace: w\n", terms()));
  EXPECT_FALSE(with("nothing_known: 1\n", terms()));
  const auto broken = with("log_policies: [{pattern: \"(\", action: cancel_retries}]\n", terms());
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().what.find("log_policies[0].pattern: '('"), std::string::npos)
    << broken.error().what;

  auto bound = terms();
  bound.cluster = {{"pools", {{"hush", value::object()}, {"main", {{"default", true}}}}}};
  bound.pools = config::pool_choice{{}, "lab"};
  const auto no = with("max_restarts: 3\n", bound);
  ASSERT_FALSE(no);
  EXPECT_NE(no.error().what.find("there is no pool 'main' that workspace 'lab' may use"), std::string::npos)
    << no.error().what;
  EXPECT_FALSE(with(nullptr, bound)) << "as it stands, too: the pool may have been bound since";
  bound.pools->names = {"main"};
  for (const std::string pool : {"hush", "moon"}) {
    const auto refused = with("resources: {resource_pool: " + pool + "}\n", bound);
    ASSERT_FALSE(refused) << pool;
    EXPECT_EQ(refused.error().what, "resources.resource_pool: there is no pool '" + pool +
                                      "' that workspace 'lab' may use\nhint: one of main");
  }

  auto limited = terms();
  limited.constraints = {{"resources", {{"max_slots", 2}}}};
  EXPECT_FALSE(with("resources: {slots_per_trial: 3}\n", limited));
  limited.invariant = {{"max_restarts", 1}};
  const auto fixed = with("max_restarts: 3\n", limited);
  ASSERT_TRUE(fixed) << fixed.error().what;
  EXPECT_EQ(fixed->config["max_restarts"], 1) << "policies lie over what it is continued with";
}

TEST(Continuation, LooksAtWhatAUserHasSetSince) {
  auto row = ended(random_search, experiment_state::canceled);
  auto config = row.config.get();
  config["resources"]["max_slots"] = 8;
  row.config = std::move(config);
  auto limited = terms();
  limited.constraints = {{"priority_limit", 20}, {"resources", {{"max_slots", 4}}}};
  EXPECT_FALSE(to_continue(row, trials, nullptr, limited, t0)) << "8 slots, and 4 are allowed";
  row.resources = {{t0, "ann", 30, 1, 4, "other"}};
  const auto got = to_continue(row, trials, nullptr, limited, t0);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_TRUE(got->config.is_null());
  row.resources.front().priority = 10;
  EXPECT_FALSE(to_continue(row, trials, nullptr, limited, t0));
  row.resources.front().priority = 0; // 0: the priority is that of the pool

  limited.cluster = {{"pools", {{"main", {{"default", true}}}, {"other", value::object()}}}};
  limited.pools = config::pool_choice{{"main"}, "lab"};
  EXPECT_FALSE(to_continue(row, trials, nullptr, limited, t0));
  row.resources.front().pool = "main";
  EXPECT_TRUE(to_continue(row, trials, nullptr, limited, t0));
}

TEST(Continuation, KeepsWhatAUserHasSetWhereTheOverrideSaysNothingOfIt) {
  auto row = ended(single, experiment_state::error);
  row.resources = {{t0, "ann", 22, 3, 1, ""}};
  const auto got = to_continue(row, trials, "resources: {max_slots: 2}\n", terms(), t0);
  ASSERT_TRUE(got) << got.error().what;
  const auto& resources = got->config["resources"];
  EXPECT_EQ(resources["priority"], 22);
  EXPECT_EQ(resources["weight"], 3);
  EXPECT_EQ(resources["max_slots"], 2);
}

TEST(Continuation, GoesOnWithTheWordsThatUsersHaveSaid) {
  auto row = ended(single, experiment_state::error);
  row.name = "patched";
  row.description = "my words";
  row.labels = {"mine"};
  const auto got = to_continue(row, trials, "max_restarts: 3\n", terms(), t0);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config["name"], "patched");
  EXPECT_EQ(got->config["description"], "my words");
  EXPECT_EQ(got->config["labels"], (value{"mine"}));
  const auto named = to_continue(row, trials, "name: n1\nlabels: [l1]\n", terms(), t0);
  ASSERT_TRUE(named) << named.error().what;
  EXPECT_EQ(named->config["name"], "n1");
  EXPECT_EQ(named->config["description"], "my words");
  EXPECT_EQ(named->config["labels"], (value{"l1", "mine"})) << "labels are laid together";
}

TEST(Continuation, KnowsWhetherItsOverrideNamesHowLongLogsAreKept) {
  const value config{{"retention_policy", {{"log_retention_days", 3}}}};
  EXPECT_EQ(log_days_named("retention_policy: {log_retention_days: 3}", config), 3);
  EXPECT_EQ(log_days_named(config, config), 3) << "as an object";
  for (const value& silent : {value("max_restarts: 3"), value("retention_policy: {}"), value("{"), value(),
                              value("retention_policy: {log_retention_days: null}")})
    EXPECT_EQ(log_days_named(silent, config), std::nullopt) << silent.dump();
}

TEST(MaxSlots, AreNotBelowTheLeastSlotsOfATrial) {
  const auto refused = [](const value& slots, std::int64_t most) {
    const auto no = below_one_trial({{"resources", {{"slots_per_trial", slots}}}}, most);
    return no ? no->what : std::string();
  };
  EXPECT_EQ(refused(2, 0),
            "max_slots: 0 is below the least slots of a trial, 2\nhint: 2 or more, or none for no limit");
  EXPECT_NE(refused(2, 1), "");
  EXPECT_EQ(refused(2, 2), "");
  EXPECT_NE(refused(value{{"min", 3}, {"max", 8}}, 2), "");
  EXPECT_EQ(refused(value{{"min", 3}, {"max", 8}}, 3), "");
  EXPECT_EQ(refused(0, 0), "") << "its trials take no slots";
  EXPECT_TRUE(below_one_trial(value::object(), 0).has_value()) << "one slot, where nothing is said";
}

TEST(TooLarge, OnlyWhereThePoolRefusesWhatItDoesNotHave) {
  pool_capacity pool;
  pool.agents = {{1, 2}};
  struct {
    value slots;
    bool strict, refused;
  } cases[] = {
    {2, true, false},
    {3, true, true},
    {3, false, false},
    {0, true, false},
    {value{{"min", 2}, {"max", 8}}, true, false},
    {value{{"min", 3}, {"max", 8}}, true, true},
  };
  for (const auto& x : cases) {
    pool.launch_error = x.strict;
    const auto no = too_large({{"resources", {{"slots_per_trial", x.slots}}}}, "main", pool);
    EXPECT_EQ(no.has_value(), x.refused) << x.slots.dump();
    if (no) {
      EXPECT_NE(no->what.find("3 slots, and pool 'main' has 2"), std::string::npos) << no->what;
    }
  }
}

TEST(LaunchWarnings, AreThoseOfThePoolForTheNumbersOfTheConfiguration) {
  pool_capacity pool;
  pool.instance_slots = 2;
  pool.max_instances = 3;
  const value exceeds = value::array({"LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"}),
              no_whole = value::array({"LAUNCH_WARNING_NO_WHOLE_INSTANCES"}),
              larger = value::array({"LAUNCH_WARNING_LARGER_THAN_INSTANCES"}), none = value::array();
  const struct {
    value resources, warnings;
  } cases[] = {
    {{{"slots_per_trial", 4}}, none},
    {{{"slots_per_trial", 3}}, no_whole},
    {{{"slots_per_trial", 7}}, exceeds},
    {{{"slots_per_trial", 0}}, none},
    {{{"slots_per_trial", {{"min", 3}, {"max", 4}}}}, none},
    {{{"slots_per_trial", 4}, {"is_single_node", true}}, larger},
    {{{"slots_per_trial", 4}, {"is_single_node", nullptr}}, none},
    {value::object(), none},
  };
  for (const auto& x : cases)
    EXPECT_EQ(launch_warnings({{"resources", x.resources}}, pool), x.warnings) << x.resources.dump();
}

} // namespace
} // namespace troupe
