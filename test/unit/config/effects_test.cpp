// Tests keys that have no effect: which of them cause a warning.

#include "model/config/effects.hpp"
#include "model/config/experiment_config.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::config {
namespace {

std::string warned(const std::string& text) {
  std::string paths;
  for (const auto& one : warnings_of(text, "a"))
    paths += (paths.empty() ? "" : " ") + std::to_string(one.line) + ":" + std::to_string(one.column) + ":" +
             one.path;
  return paths;
}

TEST(Warnings, NameWhatIsGivenAndNotWhatIsTheDefault) {
  struct {
    const char *text, *warned;
  } cases[] = {
    {"name: x\n", ""},
    {"retention_policy: {log_retention_days: 3}\n", ""},
    {"log_policies: [{pattern: x, action: cancel_retries}]\n", ""},
    {"log_policies: []\nbind_mounts: []\n", ""},
    {"bind_mounts: [{host_path: /a, container_path: /a}]\nresources: {shm_size: 4096}\n", ""},
    {"checkpoint_storage: {type: gcs, bucket: b, save_trial_best: 1}\n", "1:28:checkpoint_storage.type"},
    {"checkpoint_storage: {type: shared_fs, host_path: /h}\n", ""},
    // Determined's client reads the key with this entrypoint
    {"entrypoint: model_def:Trial\nscheduling_unit: 7\n", ""},
    {"entrypoint: python3 -m determined.launch.torch_distributed -- --trial a:B\nscheduling_unit: 7\n", ""},
    {"entrypoint: python3 a:b c\nscheduling_unit: 7\n", "2:18:scheduling_unit"},
    {"entrypoint: [python3, train.py]\nscheduling_unit: 7\n", "2:18:scheduling_unit"},
    {"environment: {environment_variables: [A=1]}\n", ""},
    {"environment: {environment_variables: {cpu: [A=1], cuda: [A=1]}}\n", ""},
    {"environment: {environment_variables: {cpu: [A=1], cuda: [A=2]}}\n", ""},
    {"environment: {environment_variables: {cpu: [A=1], rocm: [A=2]}}\n",
     "1:57:environment.environment_variables.rocm"},
    {"min_validation_period: {batches: 0}\n", ""},
    {"min_validation_period: {batches: 10}\n", "1:24:min_validation_period"},
    {"resources: {priority: many}\n", ""}, // the wrong value is a fault and no warning
    {"a: [", ""},
  };
  for (const auto& c : cases)
    EXPECT_EQ(warned(c.text), c.warned) << c.text;
}

TEST(Warnings, AreSilentAboutACompletedConfiguration) {
  auto whole = load_experiment("entrypoint: x\nsearcher: {name: single, metric: m}\n", "a");
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(warned(to_json(whole.config)), "");
}

TEST(Warnings, SpeakOfKeysOfTheTable) {
  std::set<std::string_view> seen;
  for (const auto& one : keys_without_effect()) {
    EXPECT_TRUE(explain(one.path)) << one.path;
    EXPECT_TRUE(seen.insert(one.path).second) << one.path << " is there twice";
  }
}

} // namespace
} // namespace troupe::config
