#include "model/config/experiment_config.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace troupe::config {
namespace {

constexpr auto digits = R"(name: digits
entrypoint: [python3, train.py]
hyperparameters:
  lr: {type: log, base: 10, minval: -4, maxval: -1}
  hidden: {type: int, minval: 16, maxval: 256}
  batch_size: {type: categorical, vals: [32, 64, 128]}
  epochs: 16
searcher:
  name: adaptive_asha
  metric: accuracy
  smaller_is_better: false
  max_trials: 24
  time_metric: epochs
  max_time: 16
environment:
  environment_variables: [OMP_NUM_THREADS=1]
)";

std::string all(const outcome& got, std::string_view text) {
  std::string out;
  for (const auto& f : got.faults)
    out += render(f, text);
  return out;
}

TEST(LoadExperiment, CompletesAConfigurationWithDefaults) {
  auto got = load_experiment(digits, "digits.yaml");
  ASSERT_TRUE(got.ok()) << all(got, digits);
  EXPECT_EQ(got.config["max_restarts"], 5);
  EXPECT_EQ(got.config["resources"]["slots_per_trial"], 1);
  EXPECT_EQ(got.config["searcher"]["divisor"], 4);
  EXPECT_EQ(got.config["searcher"]["mode"], "standard");
  EXPECT_EQ(got.config["hyperparameters"]["epochs"], (value{{"type", "const"}, {"val", 16}}));
  EXPECT_EQ(got.config["environment"]["environment_variables"]["cuda"], value::array({"OMP_NUM_THREADS=1"}));
  EXPECT_EQ(got.config["checkpoint_storage"]["save_trial_latest"], 1);
  auto again = load_experiment(to_json(got.config), "again.json");
  ASSERT_TRUE(again.ok()) << all(again, to_json(got.config));
  EXPECT_EQ(again.config, got.config);
}

TEST(Resources, RefuseWhatNoPoolCouldMeet) {
  struct {
    /// `fault` is the path of the value that breaks a rule; empty: there is no fault
    const char *resources, *fault;
  } cases[] = {
    {"{slots_per_trial: 4, max_slots: 3}", "resources"},
    {"{slots_per_trial: {min: 4, max: 8}, max_slots: 3}", "resources"},
    {"{slots_per_trial: {min: 2, max: 8}, max_slots: 3}", ""},
    {"{slots_per_trial: 0, max_slots: 0}", ""},
    {"{max_slots: null}", ""},
    {"{weight: -0.5}", "resources.weight"},
    {"{weight: 0}", ""},
    {"{constraints: {agents: [a, b], not_agents: [b]}}", "resources.constraints"},
    {"{constraints: {min_memory: -1}}", "resources.constraints"},
    {"{constraints: {min_memory: 0, same_label: null}}", ""},
    {"{constraints: {same_label: ''}}", "resources.constraints"},
    {"{constraints: {labels: {rack: []}}}", "resources.constraints"},
    {"{constraints: {labels: {rack: [a1]}, not_labels: {rack: []}}}", ""},
    {"{constraints: {agents: [a], not_agents: [b], same_label: rack, prefer_labels: {x: [y, z]}}}", ""},
  };
  for (const auto& c : cases) {
    const auto got = load_experiment(
      "entrypoint: x\nsearcher: {name: single, metric: m}\nresources: " + std::string(c.resources) + "\n",
      "a.yaml");
    EXPECT_EQ(got.faults.empty() ? "" : got.faults.front().path, c.fault) << c.resources;
  }
}

TEST(LoadExperiment, ShowsEveryFaultWithACaretAndAHint) {
  constexpr auto text = R"(name: x
entrypoint: python3 train.py
max_restart: 3
searcher:
  name: adaptiv_asha
  metric: loss
resources: {slots_per_trial: -1}
hyperparameters:
  lr: {type: double, minval: 1.0, maxval: .inf}
resources: {}
)";
  auto got = load_experiment(text, "a.yaml");
  EXPECT_EQ(all(got, text), R"(a.yaml:3:1: max_restart: unknown key 'max_restart'
  max_restart: 3
  ^
hint: did you mean 'max_restarts'?
a.yaml:5:9: searcher.name: expected one of single, random, grid, adaptive_asha, async_halving, custom, sync_halving, tpe, gp, cma_es, asha_promotion, hyperband, bohb, pbt, nsga2, median; got 'adaptiv_asha'
    name: adaptiv_asha
          ^
hint: did you mean 'adaptive_asha'?
a.yaml:7:30: resources.slots_per_trial: must be at least 0, got -1
  resources: {slots_per_trial: -1}
                               ^
a.yaml:9:43: hyperparameters.lr.maxval: expected a finite number, got .inf
    lr: {type: double, minval: 1.0, maxval: .inf}
                                            ^
a.yaml:10:1: resources: the key 'resources' is given twice; the first is at line 7
  resources: {}
  ^
hint: remove one of the two
)");
}

TEST(LoadExperiment, SaysWhatIsWrongAndWhatIsMissingAtOnce) {
  struct {
    const char *says, *text, *paths;
  } cases[] = {
    {"a misspelt key and missing ones", "nmae: x\nsearcher: {name: random, metric: m}\n", "nmae, , searcher"},
    {"a key that is given wrongly is not missing too",
     "entrypoint: 3\nsearcher: {name: random, metric: m, max_trials: a}\n",
     "entrypoint, searcher.max_trials"},
    {"nor is the key that was meant", "entrypoint: x\nsearcher: {name: random, metrc: m, max_trials: 3}\n",
     "searcher.metrc"},
    {"what all searchers have is checked where the name is wrong",
     "entrypoint: x\nsearcher: {name: randm, metric: 3, smaller: true}\n",
     "searcher.name, searcher.metric, searcher.smaller"},
    {"a whole that is wrong leaves nothing to say", "[1]", ""},
  };
  for (const auto& c : cases) {
    auto got = load_experiment(c.text, "a.yaml");
    std::string paths;
    for (const auto& f : got.faults)
      paths += (&f == &got.faults.front() ? "" : ", ") + f.path;
    EXPECT_EQ(paths, c.paths) << c.says << "\n" << all(got, c.text);
  }
}

TEST(LoadExperiment, SaysWhatARunLacks) {
  struct {
    const char* text;
    const char* first;
  } cases[] = {
    {"searcher: {name: single, metric: loss}",
     "a.yaml:1:1: the key 'entrypoint' is missing: what a trial runs"},
    {"entrypoint: x", "a.yaml:1:1: the key 'searcher' is missing"},
    {"entrypoint: x\nsearcher: {name: random, metric: loss}",
     "a.yaml:2:11: searcher: the key 'max_trials' is missing"},
    {"entrypoint: x\nsearcher: {name: adaptive_asha, metric: loss, max_trials: 3, max_length: 5, max_time: "
     "5}",
     "a.yaml:2:11: searcher: the searcher 'adaptive_asha' needs the key 'time_metric'"},
  };
  for (const auto& c : cases) {
    auto got = load_experiment(c.text, "a.yaml");
    ASSERT_FALSE(got.ok()) << c.text;
    auto shown = render(got.faults.front(), c.text);
    EXPECT_EQ(shown.substr(0, shown.find('\n')), c.first);
  }
}

/// Whoever reads a fault may not be who wrote the text, and logs keep faults.
TEST(LoadExperiment, ShowsNoSecretInTheLineOfAFault) {
  const std::pair<const char*, const char*> cases[] = {
    {"entrypoint: x\ncheckpoint_storage:\n  type: azure\n  container: c\n  connection_string: HIDDEN\n  "
     "what: 1\n",
     nullptr},
    {"entrypoint: x\ncheckpoint_storage: {type: s3, bucket: b, secret_key: HIDDEN, access_key: HIDDEN, nope: "
     "1}\n",
     nullptr},
    {R"({"entrypoint": "x", "environment": {"registry_auth": {"password": "HIDDEN", "who": "me"}}})",
     nullptr},
    {"entrypoint: x\nenvironment:\n  registry_auth:\n    password:\n      HIDDEN\n    who: me\n", nullptr},
    {"entrypoint: x\ncheckpoint_storage: {type: s3, bucket: b, secret_key: 'HIDDEN\n",
     nullptr}, // cannot be read
    {"entrypoint: x\ndata: {secrets: {a: HIDDEN, b: [HIDDEN]}}\nwhat: 1\n", nullptr},
    {"entrypoint: x\ndata:\n  secrets:\n    - a: 1\n    - HIDDEN\nwhat: 1\n", nullptr},
    {"entrypoint: x\ndata: {secrets: {a: HIDDEN,\nb: HIDDEN}}\nwhat: 1\n", nullptr},
    {"entrypoint: x\ncheckpoint_storage: {type: s3, bucket: b, secretkey: HIDDEN}\n", nullptr},
    {"entrypoint: x\ncheckpoint_storage:\n  type: s3\n  SECRET-KEY: HIDDEN\n", nullptr},
    {R"({"entrypoint": "x", "checkpoint_storage": {"secret\u005fkey": ["HIDDEN"]}})", nullptr},
    {"entrypoint: x\ncheckpoint_storage:\n  ? secret_key\n  : [HIDDEN]\n", nullptr},
    {"entrypoint: x\nenvironment: {environment_variables: [\"AWS_SECRET_ACCESS_KEY=HIDDEN\", 5]}\n", nullptr},
    {"entrypoint: x\ncheckpoint_storage:\n  type: s3\n  secret_key HIDDEN\n", nullptr},
    {"entrypoint: x\nauthor: shown\n", "author: shown"},
  };
  for (const auto& [text, shown] : cases) {
    const auto got = load_experiment(text, "a.yaml");
    ASSERT_FALSE(got.ok()) << text;
    for (auto fault : got.faults)
      for (int line = 0; line <= 7; ++line) { // 0: at its own place
        fault.line = line == 0 ? fault.line : line;
        const auto said = render(fault, text);
        EXPECT_EQ(said.find("HIDDEN"), said.npos) << said;
      }
    EXPECT_TRUE(!shown || std::any_of(got.faults.begin(), got.faults.end(), [&](const auto& fault) {
      return render(fault, text).find(shown) != std::string::npos;
    }));
  }
}

TEST(LoadExperiment, SaysOfASecretItsTypeAlone) {
  const struct {
    const char *schema, *text, *fault;
  } cases[] = {
    {"experiment", "checkpoint_storage: {type: s3, bucket: b, secret_key: 99887766}\n",
     "checkpoint_storage.secret_key: expected a string, got an integer | put it in quotes"},
    {"experiment", "checkpoint_storage:\n  type: s3\n  bucket: b\n  access_key: 9988.7766\n",
     "checkpoint_storage.access_key: expected a string, got a number | put it in quotes"},
    {"checkpoint-storage", R"({"type": "azure", "container": "c", "connection_string": [99887766]})",
     "connection_string: expected a string, got a list | "},
    {"checkpoint-storage", "{type: s3, bucket: b, secret_key: !!int 99887766x}",
     "secret_key: the value does not fit its tag | put it in quotes"},
    {"checkpoint-storage", "type: s3\nbucket: b\nsecret_key: !99887766\n",
     "secret_key: the value does not fit its tag | put it in quotes"},
    {"checkpoint-storage", "{type: s3, bucket: b, secret_key: *99887766}",
     "secret_key: an alias without its anchor before it | put it in quotes"},
    {"checkpoint-storage", "{secret_key: [9e99887766]}", // the type of the storage is not known yet
     "secret_key[0]: expected a finite number, got a number | put it in quotes"},
    {"experiment", "environment: {registry_auth: {username: u, password: 99887766}}\n",
     "environment.registry_auth.password: expected a string, got an integer | put it in quotes"},
    {"experiment", "environment:\n  registry_auth: u-99887766\n",
     "environment.registry_auth: expected a map, got a string | "},
    {"experiment", "data: {secrets: {key: !!bool 99887766}}\n",
     "data.secrets.key: the value does not fit its tag | put it in quotes"},
    {"experiment", "environment: {environment_variables: AWS_SECRET_ACCESS_KEY=99887766}\n",
     "environment.environment_variables: expected a list or a map, got a string, 'AWS_SECRET_ACCESS_KEY: "
     "********' | "},
    {"experiment", "environment: {environment_variables: {cpu: MY_TOKEN=99887766}}\n",
     "environment.environment_variables.cpu: expected a list, got a string, 'MY_TOKEN: ********' | write it "
     "as "
     "a list: [MY_TOKEN: ********]"},
    {"task-container-defaults", "registry_auth: {username: u, identitytoken: 99887766}\n",
     "registry_auth.identitytoken: expected a string, got an integer | put it in quotes"},
    {"cluster-file", "troupe: 1\nusers: [{name: a, password: 99887766}]\n",
     "users[0].password: expected a string, got an integer | put it in quotes"},
    {"cluster-file", "troupe: 1\ncluster: {webhooks: {signing_key: 99887766}}\n",
     "cluster.webhooks.signing_key: expected a string, got an integer | put it in quotes"},
    {"checkpoint-storage", "{type: s3, bucket: b, secret_key:99887766}",
     "secret_key: ********: unknown key 'secret_key: ********' | write a blank behind the colon"},
    {"checkpoint-storage", "type: s3\nbucket: b\nsecret_key: \"abc\n  99887766 \\q\"\n", ""},
    {"master-config", "security: {initial_user_password: 99887766}\n",
     "security.initial_user_password: expected a string, got an integer | put it in quotes"},
  };
  for (const auto& c : cases) {
    const auto got = check_as(c.schema, c.text, "a.yaml", level::sane);
    ASSERT_FALSE(got.ok()) << c.text;
    const auto& f = got.faults.front();
    if (*c.fault) {
      EXPECT_EQ(f.path + ": " + f.message + " | " + f.hint, c.fault) << c.text;
    }
    for (const auto& one : got.faults)
      EXPECT_EQ(render(one, c.text).find("99887766"), std::string::npos) << render(one, c.text);
  }
}

TEST(LoadExperiment, TakesWhatOnlyWeHave) {
  constexpr auto text = R"(entrypoint: x
version: 0
searcher:
  name: tpe
  metric: loss
  max_trials: 8
  startup_trials: 4
  early_stopping: {patience: {reports: 3}, threshold: {upper: 10, warmup: 2}, median: {min_trials: 4}, max_time: 20}
resources:
  constraints: {device_type: [H200, A100], min_memory: 40 GiB, labels: {rack: a}, not_labels: {old: "yes"}}
)";
  auto got = load_experiment(text, "a.yaml");
  ASSERT_TRUE(got.ok()) << all(got, text);
  EXPECT_FALSE(got.config.contains("version"));
  EXPECT_EQ(got.config["resources"]["constraints"]["min_memory"], std::int64_t{40} << 30);
  EXPECT_EQ(got.config["searcher"]["early_stopping"]["max_time"], 20);
  auto twice = load_experiment(to_json(got.config), "a.json");
  ASSERT_TRUE(twice.ok()) << all(twice, to_json(got.config));
  EXPECT_EQ(twice.config, got.config);
  for (auto bad :
       {"threshold: {}", "patience: {reports: 0}", "median: {interval: 0}", "max_time: soon", "sooner: 1"}) {
    auto wrong = load_experiment(
      "entrypoint: x\nsearcher: {name: single, metric: m, early_stopping: {" + std::string(bad) + "}}", "a");
    EXPECT_EQ(wrong.faults.size(), 1u) << bad;
  }
}

TEST(LoadExperiment, RefusesANameOver10KB) {
  auto text = "entrypoint: x\nsearcher: {name: single, metric: loss}\nname: " + std::string(11'000, 'n');
  auto got = load_experiment(text, "a.yaml");
  ASSERT_EQ(got.faults.size(), 1u);
  EXPECT_EQ(got.faults[0].path, "name");
}

} // namespace
} // namespace troupe::config
