// Tests the cases of test/data/config/config_merge_cases.yaml that concern experiments and tasks.

#include "model/config/complete.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/layers.hpp"
#include "model/config/legacy.hpp"
#include "model/config/merge.hpp"

#include "files.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

const value& cases() {
  static const value all = read_data("config_merge_cases.yaml");
  return all;
}

value normal(value x, const char* schema) {
  normalize(x, *schemas().at(schema));
  return x;
}

/// Returns whether `got` has everything that `want` says.
bool covers(const value& got, const value& want) {
  if (want.is_object()) {
    for (const auto& [key, part] : want.items())
      if (!got.is_object() || !got.contains(key) || !covers(got[key], part))
        return false;
    return true;
  }
  if (want.is_array()) {
    if (!got.is_array() || got.size() != want.size())
      return false;
    for (std::size_t i = 0; i < want.size(); ++i)
      if (!covers(got[i], want[i]))
        return false;
    return true;
  }
  return got == want;
}

TEST(MergeCases, GenericRules) {
  shape map, plain, added;
  map.merge = merging::by_key;
  added.merge = merging::higher_first;
  for (const auto& c : cases()["generic_merge"]["cases"]) {
    auto what = c["kind"].get<std::string>();
    const auto& s = what == "plain list" ? plain : what == "additive list" ? added : map;
    EXPECT_EQ(merged(c["high"], c["low"], s), c["expect"]) << c;
  }
}

TEST(MergeCases, GenericDefaults) {
  for (const auto& c : cases()["generic_defaults"]) {
    auto x = c["input"];
    bool is_list = c["schema"] == "list of bind-mount";
    fill_defaults(x, *schemas().at(is_list ? "bind-mounts" : "bind-mount"));
    for (const auto& one : is_list ? x : value::array({x}))
      EXPECT_EQ(one, is_list ? c["expect_each"] : c["expect"]) << c;
  }
}

TEST(MergeCases, ExperimentConfigurations) {
  const auto& experiment = *schemas().at("experiment");
  for (const auto& c : cases()["experiment_config"]) {
    if (c.contains("input")) {
      EXPECT_EQ(normal(c["input"], "experiment"), c["expect"]) << c;
      continue;
    }
    auto got = merged(normal(c["high"], "experiment"), normal(c["low"], "experiment"), experiment);
    EXPECT_EQ(got, normal(c["expect"], "experiment")) << c;
  }
}

TEST(MergeCases, TaskContainerDefaultsStandBelowTheExperiment) {
  const auto& c = cases()["master_defaults_into_experiment"][0];
  auto defaults = normal(c["defaults"], "task-container-defaults");
  auto got =
    merged(normal(c["config"], "experiment"), as_experiment_layer(defaults, 1), *schemas().at("experiment"));
  EXPECT_EQ(got["environment"]["environment_variables"], c["expect"]["environment_variables"]);
  for (auto key : {"slurm", "pbs", "preemption_timeout"})
    EXPECT_EQ(got[key], c["expect"][key]) << key;
}

TEST(MergeCases, TheSlotsOfATrialChooseThePodSpec) {
  value defaults{{"cpu_pod_spec", {{"spec", {{"hostname", "cpu"}}}}},
                 {"gpu_pod_spec", {{"spec", {{"hostname", "gpu"}}}}}};
  value own{{"environment", {{"pod_spec", {{"spec", {{"subdomain", "mine"}}}}}}}};
  for (auto [slots, host] : {std::pair{0, "cpu"}, {1, "gpu"}}) {
    auto got = merged(own, as_experiment_layer(defaults, slots), *schemas().at("experiment"));
    EXPECT_EQ(got["environment"]["pod_spec"]["spec"], (value{{"hostname", host}, {"subdomain", "mine"}}));
  }
}

TEST(MergeCases, DefaultsOfAPoolStandAboveThoseOfTheCluster) {
  const auto& s = *schemas().at("task-container-defaults");
  const auto& all = cases()["master_defaults_layering"]["cases"];
  auto low = normal(all[0]["low"], "task-container-defaults"),
       high = normal(all[0]["high"], "task-container-defaults");
  EXPECT_EQ(merged(high, low, s), normal(all[0]["expect"], "task-container-defaults"));
  auto twice = merged(high, high, s);
  for (const auto& [key, part] : high.items())
    if (key != "slurm" && key != "pbs") {
      EXPECT_EQ(twice[key], part) << "merged with itself: " << key;
    }
  EXPECT_EQ(twice["slurm"]["sbatch_args"].size(), 2 * high["slurm"]["sbatch_args"].size());
  EXPECT_EQ(merged(value::object(), low, s), low);
  for (const auto& c : all)
    if (c.contains("expect") && c.contains("high")) {
      EXPECT_EQ(
        merged(normal(c["high"], "task-container-defaults"), normal(c["low"], "task-container-defaults"), s),
        normal(c["expect"], "task-container-defaults"))
        << c["name"];
    }
}

TEST(MergeCases, LogPoliciesOfTheDefaults) {
  const auto& all = cases()["log_policies_in_defaults"];
  auto read = complete_as("task-container-defaults", to_json(all[0]["input"]), "a", level::sane);
  ASSERT_TRUE(read.ok());
  for (auto key : {"shm_size_bytes", "network_mode", "preemption_timeout"})
    EXPECT_EQ(read.config[key], all[0]["expect"][key]);
  EXPECT_TRUE(covers(normal(all[0]["input"], "task-container-defaults"),
                     {{"log_policies", all[0]["expect"]["log_policies"]}}));
  auto refused = check_as("task-container-defaults", to_json(all[1]["input"]), "a", level::sane);
  ASSERT_EQ(refused.faults.size(), 1u);
  EXPECT_EQ(refused.faults[0].path, "log_policies");
}

TEST(MergeCases, Commands) {
  for (const auto& c : cases()["command_config"])
    EXPECT_EQ(check_as("command", to_json(c["config"]), "a", level::complete).ok(), c["valid"].get<bool>())
      << c;
}

TEST(MergeCases, EnvironmentsOfCommands) {
  const auto& environment = *schemas().at("environment");
  for (const auto& c : cases()["command_environment"]) {
    if (c.contains("first")) {
      auto got =
        merged(normal(c["then"], "devices"), normal(c["first"], "devices"), *schemas().at("devices"));
      fill_defaults(got, *schemas().at("devices"));
      EXPECT_EQ(got, c["expect"]) << c;
      continue;
    }
    auto got = merged(normal(c["request"], "environment"), normal(c["master"], "environment"), environment);
    EXPECT_TRUE(covers(got, c["expect"])) << c << "\n" << got;
  }
}

TEST(MergeCases, ContinuingAnExperiment) {
  for (const auto& c : cases()["continue_config"]["cases"]) {
    value original{{"searcher", {{"name", c["original"]}}}};
    auto changes = c["override"].is_string() ? value() : c["override"];
    auto faults = continue_faults(original, changes);
    if (!c.contains("expect_error_contains")) {
      EXPECT_TRUE(faults.empty()) << c;
      continue;
    }
    ASSERT_FALSE(faults.empty()) << c;
    EXPECT_NE(faults[0].find(c["expect_error_contains"].get<std::string>()), std::string::npos) << faults[0];
  }
}

TEST(MergeCases, CheckpointStorageOfExperimentWorkspaceAndCluster) {
  const auto& all = cases()["checkpoint_storage_layering"]["cases"];
  constexpr auto text = "entrypoint: x\nsearcher: {name: single, metric: m}\n";
  surroundings around;
  around.workspace_checkpoint_storage = all[1]["workspace"];
  auto got = load_experiment(text, "a", level::complete, around);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.config["checkpoint_storage"], all[1]["expect"]);
  // Determined refuses a configuration where nobody gives a checkpoint storage. Here the cluster has a
  // directory of its own, but the schema still refuses.
  EXPECT_TRUE(load_experiment(text, "a").ok());
  EXPECT_FALSE(check_as("checkpoint-storage", "{}", "a", level::complete).ok());
}

TEST(MergeCases, StoredConfigurationsOfOldVersions) {
  value steps_era{
    {"batches_per_step", 100},
    {"checkpoint_storage",
     {{"type", "shared_fs"},
      {"host_path", "/tmp"},
      {"storage_path", "in"},
      {"container_path", "/c"},
      {"checkpoint_path", "/cp"},
      {"tensorboard_path", "/tb"},
      {"propagation", "rprivate"},
      {"save_experiment_best", 10},
      {"save_trial_best", 10},
      {"save_trial_latest", 10}}},
    {"environment",
     {{"environment_variables", {"A=1"}},
      {"image", {{"cpu", "c"}, {"gpu", "g"}, {"rocm", "r"}}},
      {"ports", nullptr}}},
    {"hyperparameters", {{"global_batch_size", 64}}},
    {"searcher", {{"name", "random"}, {"metric", "error"}, {"max_steps", 3}, {"smaller_is_better", false}}},
    {"native_parallel", false},
    {"internal", {{"native", 1}}},
    {"debug", false},
    {"data_layer", {{"type", "s3"}}}};
  auto got = read_legacy(steps_era);
  ASSERT_TRUE(got) << got.error().what;
  const auto& expect = cases()["legacy_configs"]["cases"];
  EXPECT_EQ((*got)["environment"]["environment_variables"],
            (value{{"cpu", {"A=1"}}, {"cuda", {"A=1"}}, {"rocm", {"A=1"}}}));
  EXPECT_EQ((*got)["environment"]["image"]["cuda"], "g");
  EXPECT_EQ((*got)["environment"]["ports"], value::object());
  EXPECT_EQ((*got)["environment"]["proxy_ports"], value::array());
  EXPECT_EQ((*got)["bind_mounts"], value::array());
  EXPECT_EQ((*got)["hyperparameters"], expect[0]["expect"]["hyperparameters"]);
  EXPECT_EQ((*got)["searcher"], expect[0]["expect"]["searcher"]);
  for (auto kept : {"host_path", "container_path", "checkpoint_path", "tensorboard_path", "storage_path"})
    EXPECT_EQ((*got)["checkpoint_storage"][kept], steps_era["checkpoint_storage"][kept]);

  value later = steps_era;
  later["environment"] = {{"environment_variables", {{"cpu", {"C=1"}}, {"gpu", {"G=1"}}}},
                          {"pod_spec", {{"spec", value::object()}}}};
  later["checkpoint_storage"] = {{"type", "shared_fs"}, {"host_path", "/tmp"}};
  later["searcher"] = {{"name", "adaptive_simple"}, {"metric", "loss"}};
  later["bind_mounts"] = {{{"host_path", "/tmp/asdf"}, {"container_path", "/tmp/asdf"}}};
  got = read_legacy(later);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ((*got)["environment"]["environment_variables"],
            (value{{"cpu", {"C=1"}}, {"cuda", {"G=1"}}, {"rocm", value::array()}}));
  EXPECT_EQ((*got)["checkpoint_storage"]["propagation"], "rprivate");
  EXPECT_EQ((*got)["searcher"], expect[1]["expect"]["searcher"]);
  EXPECT_EQ((*got)["bind_mounts"], expect[2]["expect"]["bind_mounts"]);

  later["checkpoint_storage"] = {{"type", "hdfs"},
                                 {"hdfs_url", "h"},
                                 {"save_experiment_best", 10},
                                 {"save_trial_best", 10},
                                 {"save_trial_latest", 10}};
  got = read_legacy(later);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_TRUE(covers((*got)["checkpoint_storage"], expect[3]["expect"]["checkpoint_storage"]));
  EXPECT_FALSE(read_legacy(value{{"searcher", 3}}));
}

} // namespace
} // namespace troupe::config
