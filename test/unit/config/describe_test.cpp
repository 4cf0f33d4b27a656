// Tests what people and editors read from the table of keys.

#include "model/config/check.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/schema.hpp"

#include "files.hpp"
#include "original_schema.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

TEST(ReferencePage, IsCurrent) {
  auto page = read_file(TROUPE_SOURCE_DIR "/docs/config-reference.md");
  EXPECT_TRUE(page == reference_page()) << "run: troupe config schema -o markdown > docs/config-reference.md";
}

TEST(JsonSchema, OfTheExperimentIsCurrent) {
  auto checked_in = read_file(TROUPE_SOURCE_DIR "/configs/experiment.schema.json");
  EXPECT_TRUE(checked_in == to_json(*json_schema("experiment"), 2) + "\n")
    << "run: troupe config schema > configs/experiment.schema.json";
}

TEST(JsonSchema, OfEverySchemaIsWellFormed) {
  for (const auto& name : schema_names()) {
    auto schema = json_schema(name);
    ASSERT_TRUE(schema) << name;
    EXPECT_EQ((*schema)["title"], name);
  }
  EXPECT_FALSE(json_schema("nobody"));
}

void expect_documented(const shape& s, const std::string& way, std::vector<const shape*>& seen) {
  if (std::find(seen.begin(), seen.end(), &s) != seen.end())
    return;
  seen.push_back(&s);
  for (const auto& k : s.keys) {
    EXPECT_FALSE(k.doc.empty()) << way << "." << k.name;
    EXPECT_TRUE(k.doc.ends_with('.')) << way << "." << k.name;
    expect_documented(*k.what, way + "." + k.name, seen);
  }
  for (const auto* one : s.alternatives)
    expect_documented(*one, way, seen);
  for (const auto& m : s.members) {
    EXPECT_FALSE(m.what->doc.empty() && m.what->name.empty() && way == "searcher") << way << " " << m.value;
    expect_documented(*m.what, way + "(" + m.value + ")", seen);
  }
  if (s.items)
    expect_documented(*s.items, way + "[]", seen);
  if (s.values)
    expect_documented(*s.values, way + ".*", seen);
}

TEST(Table, SaysSomethingAboutEveryKey) {
  std::vector<const shape*> seen;
  for (const auto& [name, s] : schemas().named())
    expect_documented(*s, name, seen);
}

TEST(Explain, ShowsTypeDefaultRangeAndKinds) {
  auto shown = [](const char* key) {
    auto text = explain(key);
    return text ? *text : "error: " + text.error().what;
  };
  EXPECT_EQ(shown("max_restarts"), "max_restarts: integer (at least 0)\n"
                                   "  Number of times that a failed trial is restarted.\n"
                                   "  default: 5\n  unit: restarts\n  since: determined\n");
  EXPECT_EQ(shown("searcher.divisor"),
            "searcher.divisor: number (more than 1)\n"
            "  Divisor: one of this many trials continues beyond each rung.\n  default: 4\n"
            "  of: adaptive_asha async_halving adaptive adaptive_simple sync_halving "
            "asha_promotion hyperband bohb\n  since: determined\n");
  EXPECT_NE(shown("checkpoint_storage.prefix").find("of: s3 gcs"), std::string::npos);
  EXPECT_NE(shown("searcher.early_stopping.patience.min_delta").find("since: troupe"), std::string::npos);
  EXPECT_NE(shown("bind_mounts.host_path").find("an absolute path"), std::string::npos);
  EXPECT_NE(shown("bind_mounts[2].host_path").find("an absolute path"), std::string::npos);
  EXPECT_NE(shown("").find("hyperparameters"), std::string::npos);
  EXPECT_EQ(shown("searcher.max_trial"),
            "error: there is no key 'searcher.max_trial'; did you mean 'searcher.max_trials'?");
  for (const auto& k : schemas().at("experiment")->keys)
    if (!k.ignored) {
      EXPECT_TRUE(explain(k.name)) << k.name;
    }
}

TEST(Nearest, FindsWhatWasMeant) {
  std::vector<std::string_view> words{"max_trials", "max_time", "metric", "name"};
  EXPECT_EQ(nearest("max_trails", words), "max_trials");
  EXPECT_EQ(nearest("metrc", words), "metric");
  EXPECT_EQ(nearest("nmae", words), "name");
  EXPECT_EQ(nearest("something", words), "");
}

TEST(Checks, AreClearAboutWhatWasMeant) {
  struct {
    const char *text, *fault;
  } cases[] = {
    {"name: 3\n", "1:7: name: expected a string, got an integer, 3 | put it in quotes: \"3\""},
    {"max_restarts: '3'\n",
     "1:15: max_restarts: expected an integer, got a string, '3' | a value in quotes is a "
     "string; remove the quotes where there are some"},
    {"max_time: 3\n", "1:1: max_time: unknown key 'max_time' | it belongs at searcher.max_time"},
    {"searcher: {name: random, max_time: 3}\n",
     "1:26: searcher.max_time: unknown key 'max_time' | known here: name, max_concurrent_trials, max_trials, "
     "max_length, metric, smaller_is_better, source_trial_id, source_checkpoint_uuid, early_stopping"},
    {"checkpoint_policy: bets\n",
     "1:20: checkpoint_policy: expected one of best, all, none; got 'bets' | did you mean "
     "'best'?"},
    {"labels: a\n", "1:9: labels: expected a list, got a string, 'a' | write it as a list: [a]"},
    {"environment: {pod_spec: {name: x}}\n",
     "1:26: environment.pod_spec.name: pod Name is not a configurable option | "
     "remove this key"},
    {"resources: {shm_size: 3 potatoes}\n",
     "1:23: resources.shm_size: expected a memory size as 512 MiB or 1.5G, got "
     "'3 potatoes' | "},
    {"environment: {environment_variables: [A=1, =x]}\n",
     "1:44: environment.environment_variables[1]: expected NAME=VALUE, or NAME alone, got '=x' | "},
    {"bind_mounts:\n  - host_path: a\n    container_path: /b\n",
     "2:16: bind_mounts[0].host_path: expected an absolute path, got 'a' | "},
    {"hyperparameters: {a: {type: integer, minval: 1}}\n",
     "1:29: hyperparameters.a.type: expected one of int, double, log, const, categorical; got 'integer' | "
     "did you mean "
     "'int'?"},
    {"searcher: {name: random, max_trials: 0}\n", "1:38: searcher.max_trials: must be at least 1, got 0 | "},
    {"resources: {priority: 100}\n", "1:23: resources.priority: must be at most 99, got 100 | "},
    {"reproducibility: {experiment_seed: 1.5}\n",
     "1:36: reproducibility.experiment_seed: expected an integer, got a number, 1.5 | "},
    {"data: {x: [1, .nan]}\n",
     "1:15: data.x[1]: expected a finite number, got .nan | a string may hold it: \".nan\""},
    {"hyperparameters: {\"a.b\": {type: int, minval: 2, maxval: 1}}\n",
     "1:46: hyperparameters[\"a.b\"]: minval must be less than maxval | swap them, or widen the range"},
    {"version: 1\n", "1:10: version: must be at most 0, got 1 | "},
    {"environment: {pod_spec: {spec: {containers: [{image: x}]}}}\n",
     "1:46: environment.pod_spec.spec.containers[0]: a container without a name is the task's own, whose "
     "image, command and "
     "the like are not configurable | give the container a name"},
    {"[1, 2]\n", "1:1: : expected a map, got a list | "},
    {"", "1:1: : expected a map, got nothing (null) | "},
  };
  for (const auto& c : cases) {
    auto got = load_experiment(c.text, "", level::sane);
    ASSERT_FALSE(got.ok()) << c.text;
    const auto& f = got.faults.front();
    EXPECT_EQ(std::to_string(f.line) + ":" + std::to_string(f.column) + ": " + f.path + ": " + f.message +
                " | " + f.hint,
              c.fault)
      << c.text;
  }
}

} // namespace
} // namespace troupe::config
