// Tests what the configuration of an experiment means to its actors.

#include "actors/experiment/experiment_settings.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ExperimentSettings, TheCheckpointFolderIsAsDeterminedReadsIt) {
  struct {
    const char* storage;
    const char* folder;
  } cases[] = {
    {R"({"type": "shared_fs", "host_path": "/mnt/all"})", "/mnt/all"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "storage_path": "mine"})", "/mnt/all/mine"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "storage_path": "a/b", "propagation": "rslave"})",
     "/mnt/all/a/b"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "storage_path": "/mnt/all/deep"})", "/mnt/all/deep"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "container_path": "/of/older/versions"})", "/mnt/all"},
    {R"({"type": "directory", "container_path": "/mnt/here"})", "/mnt/here"},
    {R"({"type": "directory", "container_path": "mine"})", "/data/mine"},
    {"{}", "/data/checkpoints"},
  };
  for (const auto& c : cases) {
    value config = {{"entrypoint", "x"}, {"checkpoint_storage", parse_json(c.storage).value()}};
    const auto got = experiment_settings_of({{7}, config, "", "", "/data/checkpoints"});
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(launch_of(*got, {}).checkpoint_dir, c.folder) << c.storage;
    const std::string kind = config["checkpoint_storage"].value("type", "directory");
    EXPECT_EQ(launch_of(*got, {}).checkpoint_store, kind + ":" + c.folder) << c.storage;
  }
}

result<experiment_settings> settings_of(const char* config) {
  return experiment_settings_of({{7}, parse_json(config).value(), "blob", "alice", "/data/checkpoints"});
}

TEST(ExperimentSettings, AreReadFromTheConfigurationOnce) {
  const auto got = settings_of(
    R"({"entrypoint": ["python3", "t.py"], "launch": "per_slot", "max_restarts": 0, "preemption_timeout": 5,
    "resources": {"slots_per_trial": {"min": 2, "max": 4}}, "reproducibility": {"experiment_seed": 77},
    "searcher": {"name": "pbt", "metric": "loss", "time_metric": "epochs", "metrics": ["loss", "size"]}, "hyperparameters": {"lr": 1},
    "environment": {"environment_variables": {"cpu": ["A=b", "C", "D=e=f", "", "=g"], "cuda": ["A=g"]}}})");
  ASSERT_TRUE(got) << got.error().what;
  const auto spec = experiment_spec_of(*got);
  EXPECT_EQ(spec.metric + " " + spec.time_metric, "loss epochs");
  EXPECT_EQ(spec.more_metrics, (std::vector<std::string>{"loss", "size"}));
  EXPECT_TRUE(spec.hears_checkpoints);
  EXPECT_EQ(got->seed, 77u);
  EXPECT_EQ(to_json(got->hyperparameters), R"({"lr":1})");
  trial_created made;
  made.trial = {12};
  made.seed = 9;
  made.hparams = {{"lr", 1}};
  made.source_checkpoint = "uuid";
  made.source_steps = 40;
  const auto trial = trial_spec_of(*got, made);
  EXPECT_EQ(trial.slots, 4);
  EXPECT_EQ(trial.least_slots, 2);
  EXPECT_EQ(trial.max_restarts, 0);
  EXPECT_EQ(trial.stop_limit, duration{5s});
  EXPECT_EQ(trial.warm_start + " " + std::to_string(trial.warm_start_steps), "uuid 40");
  const auto launch = launch_of(*got, made);
  EXPECT_EQ(launch.task_name, "7.00000000-0000-4000-8000-00000000000c");
  EXPECT_EQ(launch.entrypoint, (std::vector<std::string>{"python3", "t.py"}));
  EXPECT_EQ(launch.mode, launch_mode::per_slot);
  EXPECT_EQ(launch.env, (std::map<std::string, std::string>{{"A", "b"}, {"C", ""}, {"D", "e=f"}}));
  EXPECT_EQ(launch.owner + " " + launch.context, "alice blob");
  EXPECT_EQ(launch.seed, 9u);
}

TEST(ExperimentSettings, SayWhichAgentsMayHoldATrial) {
  const auto got = settings_of(
    R"({"resources": {"slots_per_trial": 0, "is_single_node": true, "constraints": {"device_type": ["H200", "cuda"],
    "min_memory": 1024, "labels": {"rack": "a", "kind": ["x", "y"]}, "not_labels": null, "agents": ["n1"], "not_agents": ["n2"],
    "same_label": "rack", "prefer_labels": {"fast": "yes"}}}})");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->slots, 0) << "one of an agent's aux units";
  placement_rules rules;
  rules.device_types = {"H200", "cuda"};
  rules.min_memory_bytes = 1024;
  rules.labels = {{"rack", {"a"}}, {"kind", {"x", "y"}}};
  rules.agents = {"n1"};
  rules.not_agents = {"n2"};
  rules.same_label = "rack";
  rules.prefer_labels = {{"fast", {"yes"}}};
  rules.single_node = true;
  EXPECT_EQ(got->rules, rules);
  EXPECT_EQ(trial_spec_of(*got, {}).rules, rules);
}

TEST(ExperimentSettings, OfAnOlderConfigurationHaveTheDefaultsOfTheSchema) {
  const auto got = settings_of(R"({"entrypoint": "python3 t.py"})");
  ASSERT_TRUE(got) << got.error().what;
  const auto trial = trial_spec_of(*got, {});
  EXPECT_EQ(trial.max_restarts, 5);
  EXPECT_EQ(trial.slots, 1);
  EXPECT_FALSE(trial.stop_limit);
  EXPECT_EQ(got->launch.mode, launch_mode::per_agent);
  EXPECT_EQ(got->launch.entrypoint, (std::vector<std::string>{"/bin/sh", "-c", "python3 t.py"}));
}

TEST(ExperimentSettings, OfAnotherKindAreRefusedByTheirKey) {
  for (auto [config, key] : std::initializer_list<std::pair<const char*, const char*>>{
         {R"({"max_restarts": "many"})", "max_restarts"},
         {R"({"entrypoint": 3})", "entrypoint"},
         {R"({"entrypoint": [""]})", "entrypoint"},
         {R"({"resources": {"slots_per_trial": "all"}})", "resources.slots_per_trial"},
         {R"({"resources": {"constraints": {"agents": ["a"], "not_agents": ["a"]}}})", "constraints.agents"},
         {R"({"preemption_timeout": 1.5})", "preemption_timeout"}}) {
    const auto got = settings_of(config);
    ASSERT_FALSE(got) << config;
    EXPECT_EQ(got.error().code, errc::invalid);
    EXPECT_NE(got.error().what.find(key), std::string::npos) << got.error().what;
  }
}

} // namespace
} // namespace troupe
