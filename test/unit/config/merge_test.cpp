// Tests the rules by which each type is merged, and what holds for every three layers.

#include "model/config/complete.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/merge.hpp"
#include "model/rng.hpp"

#include "files.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

TEST(Merge, KeepsTheRulesOfEachType) {
  struct {
    const char *says, *schema, *high, *low, *want;
  } cases[] = {
    {"mounts of other container paths are added", "bind-mounts", "[{host_path: /h, container_path: /c}]",
     "[{host_path: /l, container_path: /d}, {host_path: /x, container_path: /c}]",
     "[{host_path: /h, container_path: /c, read_only: null, propagation: null}, "
     "{host_path: /l, container_path: /d, read_only: null, propagation: null}]"},
    {"devices may be strings", "devices", "['/h:/c']", "[{host_path: /l, container_path: /c}, '/l:/d:r']",
     "[{host_path: /h, container_path: /c, mode: null}, {host_path: /l, container_path: /d, mode: r}]"},
    {"ports of other numbers are added", "proxy-ports", "[{proxy_port: 1, proxy_tcp: true}]",
     "[{proxy_port: 1}, {proxy_port: 2}]",
     "[{proxy_port: 1, proxy_tcp: true, unauthenticated: null, default_service_id: null}, "
     "{proxy_port: 2, proxy_tcp: null, unauthenticated: null, default_service_id: null}]"},
    {"variables of the lower layer come first", "environment-variables", "[A=high]",
     "{cpu: [A=low], gpu: [B=low]}", "{cpu: [A=low, A=high], cuda: [B=low, A=high], rocm: [A=high]}"},
    {"an image of the lower layer fills gaps", "environment-image", "{cpu: h}", "{cpu: l, gpu: l}",
     "{cpu: h, cuda: l, rocm: null}"},
    {"storage without a type takes the lower one's", "checkpoint-storage", "{save_trial_best: 3}",
     "{type: gcs, bucket: b, save_trial_best: 9}",
     "{type: gcs, bucket: b, prefix: null, save_trial_best: 3, save_experiment_best: null, "
     "save_trial_latest: null}"},
    {"storage of another type gives only what all have", "checkpoint-storage",
     "{type: shared_fs, host_path: /h}", "{type: s3, bucket: b, save_trial_latest: 4}",
     "{type: shared_fs, host_path: /h, storage_path: null, propagation: null, save_trial_best: null, "
     "save_experiment_best: null, save_trial_latest: 4}"},
    {"secrets of two layers do not mix", "checkpoint-storage", "{type: azure, account_url: u}",
     "{type: azure, container: c, account_url: v, credential: k}",
     "{type: azure, account_url: u, container: c, save_trial_best: null, save_experiment_best: null, "
     "save_trial_latest: null}"},
    {"a searcher of another kind gives only what all have", "searcher", "{name: single, metric: h}",
     "{name: random, metric: l, max_trials: 3, source_trial_id: 7, max_length: {batches: 3}}",
     "{name: single, metric: h, source_trial_id: 7, smaller_is_better: null, source_checkpoint_uuid: null, "
     "max_length: null}"},
    {"a search has one warm start", "searcher", "{name: single, metric: h, source_trial_id: 7}",
     "{name: single, metric: l, source_checkpoint_uuid: c}",
     "{name: single, metric: h, source_trial_id: 7, smaller_is_better: null, source_checkpoint_uuid: null, "
     "max_length: null}"},
    {"also of another kind", "searcher", "{name: single, metric: h, source_checkpoint_uuid: c}",
     "{name: random, metric: l, max_trials: 3, source_trial_id: 7}",
     "{name: single, metric: h, source_trial_id: null, smaller_is_better: null, source_checkpoint_uuid: c, "
     "max_length: null}"},
    {"a hyperparameter is one value", "hyperparameters", "{a: {type: int, minval: 1, maxval: 2}}",
     "{a: {type: int, minval: 3, maxval: 9, count: 4}}", "{a: {type: int, minval: 1, maxval: 2}}"},
    {"nested hyperparameters merge", "hyperparameters", "{n: {a: 1}}", "{n: {a: 2, b: 3}, c: 4}",
     "{n: {a: {type: const, val: 1}, b: {type: const, val: 3}}, c: {type: const, val: 4}}"},
    {"null is a value of a hyperparameter", "hyperparameters", "{n: null}", "{n: {b: 3}}",
     "{n: {type: const, val: null}}"},
    {"policies of the same name or the same legacy meaning stay once", "log-policies",
     "[{name: a, pattern: h}, {pattern: p, action: {type: exclude_node}}]",
     "[{name: a, pattern: l}, {pattern: p, action: exclude_node}, {pattern: p, action: cancel_retries}]",
     "[{name: a, pattern: h}, {pattern: p, action: exclude_node}, {pattern: p, action: cancel_retries}]"},
    {"arguments of the lower layer come first", "hpc-cluster-slurm", "{sbatch_args: [h], gpu_type: g}",
     "{sbatch_args: [l], slots_per_node: 3}", "{sbatch_args: [l, h], gpu_type: g, slots_per_node: 3}"},
    {"containers of a pod merge by name", "environment",
     "{pod_spec: {spec: {containers: [{name: a, x: 1}]}}}",
     "{pod_spec: {spec: {containers: [{name: a, x: 2, y: 2}, {name: b}], volumes: [1]}}}",
     "{pod_spec: {spec: {containers: [{name: a, x: 1, y: 2}, {name: b}], volumes: [1]}}, image: null, "
     "environment_variables: null, proxy_ports: null, ports: null, force_pull_image: null, registry_auth: "
     "null, "
     "add_capabilities: null, drop_capabilities: null}"},
  };
  for (const auto& c : cases) {
    auto got = merge_as(c.schema, c.high, "high", c.low, "low");
    ASSERT_TRUE(got.ok()) << c.says << ": " << got.faults[0].message;
    EXPECT_EQ(got.config, to_value(read_document(c.want, "").root)) << c.says;
  }
}

TEST(Merge, NamesTheFileOfEachFault) {
  auto got = merge_as("searcher", "{name: single, x: 1}", "high.yaml", "{metric: 3}", "low.yaml");
  ASSERT_EQ(got.faults.size(), 2u);
  EXPECT_EQ(got.faults[0].file, "high.yaml");
  EXPECT_EQ(got.faults[1].file, "low.yaml");
}

/// Parts from which layers are built. No key is a map in one part and another type in another part: where a
/// middle layer replaces a map, one order of merging would lose the map and the other would have it.
const char* const parts[][4] = {
  {"name: a", "name: b", "", "name: null"},
  {"labels: [a, b]", "labels: [b, c]", "labels: []", ""},
  {"data: {x: 1, y: {z: 1}}", "data: {y: {w: 2}}", "", "data: {q: 3}"},
  {"bind_mounts: [{host_path: /a, container_path: /a}]",
   "bind_mounts: [{host_path: /b, container_path: /a}, {host_path: /c, container_path: /c}]", "",
   "bind_mounts: []"},
  {"environment: {environment_variables: [A=1], image: x}",
   "environment: {environment_variables: {cpu: [B=2]}, ports: {a: 1}}",
   "environment: {ports: {a: 2, b: 3}, proxy_ports: [{proxy_port: 3}]}", ""},
  {"hyperparameters: {a: 1, n: {b: 2}}", "hyperparameters: {a: {type: int, minval: 1, maxval: 2}, n: {c: 3}}",
   "hyperparameters: {m: 4}", ""},
  {"searcher: {name: random, metric: m, max_trials: 3, early_stopping: {threshold: {upper: 4}, patience: "
   "{min_delta: 5}}}",
   "searcher: {name: single, metric: k, source_trial_id: 3}",
   "searcher: {name: random, max_concurrent_trials: 4, early_stopping: {patience: {reports: 3}, max_time: "
   "9}}",
   ""},
  {"checkpoint_storage: {type: gcs, bucket: b, save_trial_best: 3}",
   "checkpoint_storage: {type: shared_fs, host_path: /h}",
   "checkpoint_storage: {type: gcs, prefix: p, save_trial_latest: 2}", ""},
  {"resources: {slots_per_trial: 2, devices: ['/a:/b']}",
   "resources: {priority: 3, devices: ['/c:/b', '/d:/e']}", "resources: {constraints: {labels: {a: b}}}", ""},
  {"log_policies: [{name: a, pattern: x}]", "log_policies: [{name: a, pattern: y}, {name: b, pattern: z}]",
   "log_policies: []", ""},
  {"slurm: {sbatch_args: [a]}", "slurm: {sbatch_args: [b], gpu_type: g}", "", "pbs: {pbsbatch_args: [c]}"},
};

std::string random_layer(rng& draw) {
  std::string out = "debug: null\n";
  for (const auto& part : parts)
    out += std::string(part[draw.below(4)]) + "\n";
  return out;
}

value normal_layer(const std::string& text) {
  auto read = read_document(text, "layer");
  EXPECT_TRUE(read.faults.empty()) << text;
  auto x = to_value(read.root);
  normalize(x, *schemas().at("experiment"));
  return x;
}

TEST(Merge, OfThreeLayersIsAssociative) {
  const auto& s = *schemas().at("experiment");
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    rng draw(seed);
    auto a = normal_layer(random_layer(draw)), b = normal_layer(random_layer(draw)),
         c = normal_layer(random_layer(draw));
    // Merging a union is not associative where a middle layer of another kind hides the lowest one, so no
    // middle layer has a union that the top layer has.
    for (auto kind : {"searcher", "checkpoint_storage"})
      if (a.contains(kind) && b.contains(kind))
        b.erase(kind);
    auto left = merged(merged(a, b, s), c, s), right = merged(a, merged(b, c, s), s);
    ASSERT_EQ(left, right) << "seed " << seed;
    ASSERT_EQ(merged(a, value::object(), s), a) << "seed " << seed;
    ASSERT_EQ(merged(value::object(), a, s), a) << "seed " << seed;
  }
}

TEST(Complete, TwiceIsTheSameAsOnce) {
  const auto& s = *schemas().at("experiment");
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    rng draw(seed);
    auto once = normal_layer(random_layer(draw));
    auto normal_twice = once;
    normalize(normal_twice, s);
    ASSERT_EQ(normal_twice, once) << "seed " << seed;
    fill_defaults(once, s);
    auto twice = once;
    normalize(twice, s);
    fill_defaults(twice, s);
    ASSERT_EQ(twice, once) << "seed " << seed;
  }
  auto samples = read_data("samples.yaml");
  for (const auto& [name, levels] : samples.items())
    for (const auto& x : levels["complete"]) {
      auto once = complete_as(name, to_json(x), "once", level::complete);
      ASSERT_TRUE(once.ok()) << name << " " << x << " " << once.faults[0].message;
      auto twice = complete_as(name, to_json(once.config), "twice", level::complete);
      ASSERT_TRUE(twice.ok()) << name << " " << once.config << " " << twice.faults[0].message;
      EXPECT_EQ(twice.config, once.config) << name;
    }
}

TEST(Complete, LeavesWhatIsOursAwayWhereItIsNotGiven) {
  auto got = complete_as("experiment", "{searcher: {name: single, metric: m}}", "a", level::sane);
  ASSERT_TRUE(got.ok());
  EXPECT_FALSE(got.config["searcher"].contains("early_stopping"));
  EXPECT_FALSE(got.config["resources"].contains("constraints"));
}

TEST(Complete, FillsWhatDeterminedFills) {
  struct {
    const char *schema, *in, *want;
  } cases[] = {
    {"searcher", "{name: adaptive_asha, metric: m, max_trials: 3}",
     "{name: adaptive_asha, metric: m, max_trials: 3, bracket_rungs: [], divisor: 4, mode: standard, "
     "max_rungs: 5, "
     "max_concurrent_trials: 16, max_length: null, stop_once: null, max_time: null, time_metric: null, "
     "smaller_is_better: true, source_trial_id: null, source_checkpoint_uuid: null}"},
    {"checkpoint-storage", "{type: azure, container: c}",
     "{type: azure, container: c, save_experiment_best: 0, save_trial_best: 1, save_trial_latest: 1}"},
    {"resources", "{shm_size: 1.5G, devices: ['/h:/c:r', '/h:/d']}",
     "{shm_size: 1610612736, devices: [{host_path: /h, container_path: /c, mode: r}, {host_path: /h, "
     "container_path: "
     "/d, mode: mrw}], slots_per_trial: 1, weight: 1, max_slots: null, priority: null, resource_pool: '', "
     "native_parallel: false, is_single_node: null}"},
    {"log-policies", "[{name: CUDA OOM, pattern: null}]",
     "[{name: CUDA OOM}, {name: ECC Error, pattern: '.*uncorrectable ECC error encountered.*'}]"},
    {"hyperparameters", "{a: 1.0, b: [1], c: {d: null}, e: {type: int, minval: 1.0, maxval: 2}}",
     "{a: {type: const, val: 1.0}, b: {type: const, val: [1]}, c: {d: {type: const, val: null}}, e: {type: "
     "int, "
     "minval: 1, maxval: 2}}"},
    {"log-action", "{type: exclude_node}", "exclude_node"},
    {"environment-variables", "{gpu: [A]}", "{cpu: [], cuda: [A], rocm: []}"},
  };
  for (const auto& c : cases) {
    auto got = complete_as(c.schema, c.in, "a", level::sane);
    ASSERT_TRUE(got.ok()) << c.in << got.faults[0].message;
    EXPECT_EQ(got.config, to_value(read_document(c.want, "").root)) << c.schema;
  }
}

TEST(Layers, StandInTheirOrder) {
  surroundings around;
  around.overrides = {"searcher.max_trials=7", "hyperparameters.new.deep={type: int, minval: 1, maxval: 3}"};
  around.template_text =
    "name: from the template\nmax_restarts: 2\nlabels: [t]\nresources: {slots_per_trial: 0}\n";
  around.task_container_defaults = {{"environment_variables", {"A=default"}},
                                    {"cpu_pod_spec", {{"spec", {{"hostname", "cpu"}}}}},
                                    {"preemption_timeout", 60}};
  around.workspace_checkpoint_storage = {{"save_trial_best", 4}};
  around.checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/data"}, {"save_trial_best", 5}};
  around.seed = 11;
  constexpr auto text =
    "entrypoint: x\nmax_restarts: 1\nlabels: [u]\nsearcher: {name: random, metric: m, max_trials: 3}\n"
    "environment: {environment_variables: [A=user]}\n";
  auto got = load_experiment(text, "a", level::complete, around);
  ASSERT_TRUE(got.ok()) << got.faults[0].message;
  const auto& c = got.config;
  EXPECT_EQ(c["name"], "from the template");
  EXPECT_EQ(c["max_restarts"], 1);
  EXPECT_EQ(c["labels"], value::array({"u", "t"}));
  EXPECT_EQ(c["searcher"]["max_trials"], 7);
  EXPECT_EQ(c["hyperparameters"]["new"]["deep"]["maxval"], 3);
  EXPECT_EQ(c["environment"]["environment_variables"]["cpu"], value::array({"A=default", "A=user"}));
  EXPECT_EQ(c["environment"]["pod_spec"]["spec"]["hostname"], "cpu");
  EXPECT_EQ(c["preemption_timeout"], 60);
  EXPECT_EQ(c["checkpoint_storage"]["host_path"], "/data");
  EXPECT_EQ(c["checkpoint_storage"]["save_trial_best"], 4);
  EXPECT_EQ(c["reproducibility"]["experiment_seed"], 11);
}

TEST(Layers, AWholeStorageIsCheckedAndAFaultNamesItsLayer) {
  const value s3 = {{"type", "s3"}, {"bucket", "b"}}, none;
  const value login = {{"type", "azure"}, {"container", "/c"}, {"connection_string", "C"}};
  const auto policy = [](value storage) { return value{{"checkpoint_storage", std::move(storage)}}; };
  const std::string own = "checkpoint_storage: {type: azure, container: c, ";
  const struct {
    std::string storage, base; ///< the submitted text's and the template's
    value workspace, cluster, policy;
    std::string first; ///< the first fault, or the accepted storage's bucket
  } cases[] = {
    {"checkpoint_storage: {bucket: 7}", "", s3, none, none,
     "a:3:30: checkpoint_storage.bucket: expected a string, got an integer, 7"},
    {"checkpoint_storage: {host_path: /x}", "", s3, none, none,
     "a:3:33: checkpoint_storage.host_path: unknown key 'host_path'"},
    {"checkpoint_storage: {host_path: /x}", "", none, s3, none,
     "a:3:33: checkpoint_storage.host_path: unknown key 'host_path'"},
    {"checkpoint_storage: {bucket: 7, save_trial_best: 3}", "checkpoint_storage: {type: gcs, bucket: t}",
     none, s3, none, "a:3:30: checkpoint_storage.bucket: expected a string, got an integer, 7"},
    {"", "checkpoint_storage: {bucket: 77}", s3, none, none,
     "template 't':1:30: checkpoint_storage.bucket: expected a string"},
    {"", "checkpoint_storage: {bucket: ''}", s3, none, none,
     "template 't':1:30: checkpoint_storage.bucket: expected a name"},
    {"", "", none, s3, policy({{"bucket", ""}}),
     "config policies: checkpoint_storage.bucket: expected a name"},
    {"", "checkpoint_storage: {host_path: /x}", s3, none, none, "b"},
    {"checkpoint_storage: {type: s3, bucket: m}", "checkpoint_storage: {host_path: /x}", none, none, none,
     "m"},
    {"checkpoint_storage: {type: s3, bucket: m}", "", {{"container", "x"}}, none, none, "m"},
    {"", "", none, s3, policy({{"bucket", 7}}),
     "config policies: checkpoint_storage.bucket: expected a string"},
    {"", "", s3, none, policy({{"host_path", "/x"}}),
     "config policies: checkpoint_storage.host_path: unknown key 'host_path'"},
    {"checkpoint_storage: {type: azure, container: c}", "", none, none, policy(s3), "b"},
    {"checkpoint_storage: {container: c}", "", none, none, policy(s3),
     "a:3:33: checkpoint_storage.container: unknown key 'container'"},
    {"", "", none, login, none,
     "storage of the cluster: checkpoint_storage.container: the name of a container does not begin with a "
     "slash"},
    {"", "", login, s3, none,
     "storage of the workspace: checkpoint_storage.container: the name of a container does not begin with a "
     "slash"},
    {"checkpoint_storage: {container: /d}", "", login, none, none,
     "a:3:33: checkpoint_storage.container: the name of a container does not begin with a slash"},
    {"checkpoint_storage: {type: s4, bucket: m}", "", s3, none, none,
     "a:3:28: checkpoint_storage.type: expected one of shared_fs, directory, s3, gcs, azure; got 's4'"},
    {"checkpoint_storage: {save_trial_best: 3}",
     "",
     {{"type", "s3"}},
     none,
     none,
     "storage of the workspace: checkpoint_storage: the key 'bucket' is missing"},
    {"checkpoint_storage: {container: ''}", "", login, none, none,
     "a:3:33: checkpoint_storage.container: expected a name, got ''"},
    {own + "account_url: ''}", "", none, none, none,
     "a:3:62: checkpoint_storage.account_url: must not be empty"},
    {own + "connection_string: ''}", "", none, none, none,
     "a:3:68: checkpoint_storage.connection_string: must not be empty"},
  };
  const std::string text = "entrypoint: x\nsearcher: {name: single, metric: m}\n";
  for (const auto& c : cases) {
    surroundings around;
    if (!c.base.empty())
      around.template_text = c.base;
    around.template_name = "template 't'";
    around.workspace_checkpoint_storage = c.workspace;
    around.checkpoint_storage = c.cluster;
    around.policy = c.policy;
    const auto got = load_experiment(text + c.storage + "\n", "a", level::complete, around);
    const auto shown = got.ok() ? got.config["checkpoint_storage"].value("bucket", std::string())
                                : render(got.faults.front(), "");
    EXPECT_LE(got.faults.size(), 1u) << c.first;
    EXPECT_EQ(shown.substr(0, shown.find('\n')), c.first) << c.storage << " over " << c.base;
  }
}

TEST(Layers, AzureByItsAddressIsForUnmanagedExperimentsAlone) {
  for (const char* login : {"account_url: 'https://a'", "account_url: 'https://a', credential: k",
                            "account_url: 'https://a?sig=k'", "connection_string: C"}) {
    const auto text =
      "entrypoint: x\nsearcher: {name: single, metric: m}\ncheckpoint_storage: {type: azure, container: c, " +
      std::string(login) + "}\n";
    surroundings around;
    const auto managed = load_experiment(text, "a", level::complete, around);
    EXPECT_EQ(managed.ok(), std::string_view(login).starts_with("connection")) << login;
    if (!managed.ok()) {
      EXPECT_NE(managed.faults.front().hint.find("write connection_string: "), std::string::npos);
    }
    around.unmanaged = true;
    EXPECT_TRUE(load_experiment(text, "a", level::complete, around).ok()) << login;
  }
}

TEST(Layers, AFaultOfTwoLayersNamesWhatWasWritten) {
  const value few{{"resources", {{"max_slots", 1}}}}, many{{"resources", {{"slots_per_trial", 2}}}}, none;
  const std::string own = "resources: {slots_per_trial: 2}";
  const struct {
    std::string text;
    value defaults, policy;
    std::string first;
  } cases[] = {
    {own, few, none, "a:3:12: resources: "},
    {own, none, few, "a:3:12: resources: "},
    {"", many, few, "config policies: resources: "},
  };
  for (const auto& c : cases) {
    surroundings around;
    around.defaults = c.defaults;
    around.policy = c.policy;
    const auto got = load_experiment("entrypoint: x\nsearcher: {name: single, metric: m}\n" + c.text + "\n",
                                     "a", level::complete, around);
    ASSERT_FALSE(got.ok()) << c.text;
    EXPECT_TRUE(render(got.faults.front(), "").starts_with(c.first)) << render(got.faults.front(), "");
  }
}

TEST(Layers, RefuseABadOverrideAndABadTemplate) {
  surroundings around;
  around.overrides = {"searcher.max_trials=many", "nonsense", "max_restarts.deep=3"};
  around.template_text = "nmae: x";
  auto got = load_experiment("entrypoint: x\nmax_restarts: 1\nsearcher: {name: random, metric: m}\n", "a",
                             level::complete, around);
  std::string all;
  for (const auto& f : got.faults)
    all += f.file + ": " + f.path + ": " + f.message + "\n";
  EXPECT_EQ(all, "a: : 'nonsense' is not KEY=VALUE\n"
                 "a: : 'max_restarts.deep': there is an integer where 'deep' should be a key\n"
                 "a: searcher.max_trials: expected an integer, got a string, 'many'\n"
                 "template: nmae: unknown key 'nmae'\n");
}

TEST(Layers, QuoteNoSecretOfAnOverride) {
  surroundings around;
  around.overrides = {"checkpoint_storage.secret_key=!!int HIDDEN", "max_restarts.password=HIDDEN",
                      "checkpoint_storage.access_key=99887766"};
  const auto got = load_experiment("entrypoint: x\nmax_restarts: 1\nsearcher: {name: single, metric: m}\n"
                                   "checkpoint_storage: {type: s3, bucket: b}\n",
                                   "a", level::complete, around);
  std::string all;
  for (const auto& f : got.faults)
    all += f.path + ": " + f.message + " | " + f.hint + "\n";
  EXPECT_EQ(
    all,
    ": 'checkpoint_storage.secret_key': the value cannot be read as YAML | write it as key.of.a.key=value\n"
    ": 'max_restarts.password': there is an integer where 'password' should be a key | write it as "
    "key.of.a.key=value\n"
    "checkpoint_storage.access_key: expected a string, got an integer | put it in quotes\n");
}

TEST(Layers, RefuseSlotsInAnExperimentsOwnText) {
  constexpr auto text = "entrypoint: x\nsearcher: {name: single, metric: m}\n";
  auto got = load_experiment(std::string(text) + "resources: {slots: 3}\n", "a");
  ASSERT_EQ(got.faults.size(), 1u);
  EXPECT_EQ(got.faults[0].path, "resources.slots");
  surroundings around;
  around.template_text = "resources: {slots: 3}";
  auto below = load_experiment(text, "a", level::complete, around);
  ASSERT_TRUE(below.ok());
  EXPECT_FALSE(below.config["resources"].contains("slots")) << "it is for other tasks, and says nothing here";
}

} // namespace
} // namespace troupe::config
