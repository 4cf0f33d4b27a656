#include "model/config/cluster_config.hpp"
#include "model/config/cluster_file.hpp"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>

namespace troupe::config {
namespace {

/// The files and variables of one test.
struct world {
  std::map<std::string, std::string> files, variables{{"HOME", "/home/ada"}};

  cluster_file load(const std::string& path = "lab.yaml") const {
    return load_cluster_file(path, {[this](const std::string& name) -> result<std::string> {
                                      auto it = files.find(name);
                                      if (it == files.end())
                                        return error{errc::not_found, "No such file or directory"};
                                      return it->second;
                                    },
                                    [this](const std::string& name) { return files.contains(name); }, "/w",
                                    [this](const std::string& name) -> std::optional<std::string> {
                                      auto it = variables.find(name);
                                      if (it == variables.end())
                                        return std::nullopt;
                                      return it->second;
                                    }});
  }
};

cluster_file load(const std::string& text) { return world{{{"lab.yaml", text}}}.load(); }

std::string faults(const cluster_file& x) {
  std::string out;
  for (const auto& one : x.faults)
    out += one.file + ":" + std::to_string(one.line) + ":" + std::to_string(one.column) + " " + one.path +
           ": " + one.message + "\n";
  return out;
}

TEST(ClusterFile, NeedsOnlyItsVersion) {
  auto got = load("troupe: 1\n");
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(pool_names(got.config), std::vector<std::string>{"default"});
  EXPECT_EQ(default_pool(got.config), "default");
  EXPECT_TRUE(got.config["nodes"].empty());
  EXPECT_TRUE(configuration_faults(got.config).empty()) << configuration_faults(got.config).front();
  EXPECT_FALSE(load("").ok());
  EXPECT_EQ(faults(load("troupe: 2\n")), "lab.yaml:1:9 : this program reads format 1\n");
}

TEST(ClusterFile, TellsAllFaultsAtOnceWithTheirPlaces) {
  auto got = load("troupe: 1\n"
                  "cluster:\n"
                  "  listn: 0.0.0.0:8080\n"
                  "pools:\n"
                  "  gpu: {scheduler: priorty, max_slots: eight}\n"
                  "  gpu: {}\n"
                  "nodes:\n"
                  "  - {host: localhost, pool: cpu}\n"
                  "users:\n"
                  "  - {name: ada, password: \"${ADA_PW:?put it in .env}\"}\n"
                  "  - {name: ada}\n");
  EXPECT_EQ(
    faults(got),
    "lab.yaml:3:3 cluster.listn: unknown key 'listn'\n"
    "lab.yaml:5:20 pools.gpu.scheduler: expected one of fifo, round_robin, priority, fair; got 'priorty'\n"
    "lab.yaml:5:40 pools.gpu.max_slots: expected an integer, got a string, 'eight'\n"
    "lab.yaml:6:3 pools.gpu: the key 'gpu' is given twice; the first is at line 5\n"
    "lab.yaml:8:29 nodes[0].pool: there is no pool 'cpu' in this file\n"
    "lab.yaml:10:27 : the environment variable ADA_PW is not set\n"
    "lab.yaml:11:12 users[1].name: the user 'ada' is named twice, first in line 10\n");
  auto text = got.rendered();
  EXPECT_NE(text.find("lab.yaml:3:3: cluster.listn: unknown key 'listn'\n    listn: 0.0.0.0:8080\n    "
                      "^\nhint: did you mean 'listen'?"),
            std::string::npos)
    << text;
  EXPECT_NE(text.find("hint: put it in .env"), std::string::npos) << text;
}

TEST(ClusterFile, NamesOfUsersAreSuchAsTheClusterTakes) {
  EXPECT_EQ(faults(load("troupe: 1\nusers:\n  - {name: x}\n  - {name: ada}\n  - {name: ADA}\n")),
            "lab.yaml:3:12 users[0].name: a user name has 2 to 64 characters\n"
            "lab.yaml:5:12 users[2].name: the user 'ADA' is named twice, first in line 4\n");
}

TEST(ClusterFile, WarnsOfAnAddressThatOtherHostsReachWithoutCertificates) {
  const auto warned = [](const std::string& cluster) {
    const auto got = load("troupe: 1\ncluster: {" + cluster + "}\n");
    return std::any_of(got.warnings.begin(), got.warnings.end(),
                       [](const auto& one) { return one.path == "cluster.listen"; });
  };
  EXPECT_TRUE(warned("listen: '0.0.0.0:8080'"));
  EXPECT_TRUE(warned("listen: 'head.lab:8080'"));
  EXPECT_FALSE(warned("listen: '0.0.0.0:8080', plain_http: true"));
  EXPECT_FALSE(warned("listen: '0.0.0.0:8080', tls: {dir: tls}"));
  for (const char* here : {"127.0.0.1:8080", "127.1.2.3:0", "localhost:80", "[::1]:80"})
    EXPECT_FALSE(warned("listen: '" + std::string(here) + "'")) << here;
}

TEST(ClusterFile, FillsInVariablesByTheKeysType) {
  world w;
  w.files["lab.yaml"] = "troupe: 1\ncluster: {listen: \"${LISTEN:-127.0.0.1:0}\", name: \"a$${b\"}\n"
                        "nodes: [{slots: \"${SLOTS}\", name: \"${NAME}\"}]\n";
  w.variables["SLOTS"] = "3";
  w.files[".env"] = "# local\nexport NAME='n1'\nSLOTS=9\n";
  auto got = w.load();
  EXPECT_EQ(faults(got),
            "lab.yaml:2:51 cluster.name: expected a name of letters, digits and . _ - @ +, got 'a${b'\n");
  w.files["lab.yaml"].replace(w.files["lab.yaml"].find("a$${b"), 5, "a");
  got = w.load();
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(got.config["nodes"][0]["slots"], 3) << "the environment wins over .env";
  EXPECT_EQ(got.config["nodes"][0]["name"], "n1");
  EXPECT_EQ(got.config["cluster"]["listen"], "127.0.0.1:0");
  EXPECT_NE(got.resolved.find("slots: 3  # lab.yaml:3 ${SLOTS}"), std::string::npos) << got.resolved;
}

TEST(ClusterFile, IncludesLieBelowAndKeepTheirPlaces) {
  world w;
  w.files["conf/lab.yaml"] = "troupe: 1\ninclude: [a.yaml, ../b.yaml]\npools: {gpu: {preemption: true}}\n";
  w.files["conf/a.yaml"] = "pools: {gpu: {max_slots: 4}, cpu: {default: true}}\ncluster: {data_dir: data}\n";
  w.files["conf/../b.yaml"] = "pools:\n  gpu:\n    max_slots: 8\n    colour: red\n";
  auto got = w.load("conf/lab.yaml");
  EXPECT_EQ(faults(got), "conf/../b.yaml:4:5 pools.gpu.colour: unknown key 'colour'\n");
  w.files["conf/../b.yaml"] = "pools:\n  gpu:\n    max_slots: 8\n";
  got = w.load("conf/lab.yaml");
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(got.config["pools"]["gpu"]["max_slots"], 8);
  EXPECT_EQ(default_pool(got.config), "cpu");
  EXPECT_EQ(got.config["cluster"]["data_dir"], "/w/conf/data");
  EXPECT_NE(got.resolved.find("max_slots: 8  # conf/../b.yaml:3"), std::string::npos) << got.resolved;
  w.files["conf/a.yaml"] = "include: [lab.yaml]\n";
  EXPECT_NE(faults(w.load("conf/lab.yaml")).find("conf/a.yaml:1:11 include: 'conf/lab.yaml' includes itself"),
            std::string::npos)
    << faults(w.load("conf/lab.yaml"));
  w.files.erase("conf/a.yaml");
  EXPECT_NE(faults(w.load("conf/lab.yaml")).find("conf/lab.yaml:2:11 include: cannot read 'conf/a.yaml'"),
            std::string::npos);
}

TEST(ClusterFile, RefusesWhatIsTooLarge) {
  EXPECT_FALSE(load("troupe: 1\n# " + std::string(10 << 20, 'x') + "\n").ok());
  std::string bomb = "troupe: 1\ndefaults:\n  data:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    auto before = "*a" + std::to_string(i - 1);
    bomb += "    a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k)
      bomb += ", " + before;
    bomb += "]\n";
  }
  auto got = load(bomb);
  ASSERT_FALSE(got.ok());
  EXPECT_LT(got.faults.front().message.size(), 200u);
  EXPECT_GT(got.faults.front().line, 0);
}

TEST(ClusterFile, ExpandsRangesOfHosts) {
  EXPECT_EQ(*expand_range("gpu[01-03,07]"), (std::vector<std::string>{"gpu01", "gpu02", "gpu03", "gpu07"}));
  EXPECT_EQ(*expand_range("r[1-2]n[8-9]"), (std::vector<std::string>{"r1n8", "r1n9", "r2n8", "r2n9"}));
  EXPECT_EQ(*expand_range("n[9-11]"), (std::vector<std::string>{"n9", "n10", "n11"}));
  for (auto bad : {"g[]", "g[3-1]", "g[a]", "g[1", "g]", "g[1-99999999]", "g[1-]"})
    EXPECT_FALSE(expand_range(bad)) << bad;
  auto got = load("troupe: 1\nnodes:\n  - {hosts: \"gpu[01-02]\", ssh: {user: t}}\n  - {name: \"l[1-2]\", "
                  "slots: {cpu: 4}}\n");
  ASSERT_TRUE(got.ok()) << got.rendered();
  ASSERT_EQ(got.config["nodes"].size(), 4u);
  EXPECT_EQ(got.config["nodes"][1]["name"], "gpu02");
  EXPECT_EQ(got.config["nodes"][1]["ssh"]["port"], 22);
  EXPECT_EQ(got.config["nodes"][3]["host"], "localhost");
  EXPECT_EQ(got.config["nodes"][3]["slots"], 4);
  EXPECT_EQ(faults(load("troupe: 1\nnodes:\n  - {host: gpu01}\n")),
            "lab.yaml:3:12 nodes[0].host: how is 'gpu01' reached?\n");
}

TEST(ClusterFile, HasOneDefaultPoolAtMost) {
  EXPECT_EQ(faults(load("troupe: 1\npools:\n  a: {default: true}\n  b: {default: true}\n")),
            "lab.yaml:4:7 pools.b.default: a second default pool; the first is 'a' in line 3\n");
  EXPECT_EQ(default_pool(load("troupe: 1\npools:\n  z: {}\n  a: {}\n").config), "z")
    << "the first of the file";
}

TEST(ClusterFile, KeepsSecretsApart) {
  world w;
  w.files["lab.yaml"] =
    "troupe: 1\nusers:\n  - {name: ada, password_file: secrets/ada}\n  - {name: bob, password: plain}\n";
  EXPECT_NE(faults(w.load()).find("lab.yaml:3:32 users[0].password_file: cannot read '/w/secrets/ada'"),
            std::string::npos)
    << faults(w.load());
  w.files["/w/secrets/ada"] = "s3cret\nrest\n";
  auto got = w.load();
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(got.secrets["users"]["ada"], "s3cret");
  EXPECT_EQ(got.secrets["users"]["bob"], "plain");
  EXPECT_EQ(got.config.dump().find("s3cret"), std::string::npos);
  EXPECT_EQ(got.config.dump().find("\"plain\""), std::string::npos);
  EXPECT_EQ(got.resolved.find("plain"), std::string::npos);
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_EQ(got.warnings[0].line, 4);
}

TEST(ClusterFile, HasThePoolThatAClusterWithoutAFileHas) {
  const auto pool = load("troupe: 1\n").config["pools"]["default"];
  EXPECT_EQ(pool["scheduler"], "priority");
  EXPECT_EQ(pool["default"], true);
  EXPECT_EQ(pool["reserve_after"], "60s");
}

TEST(ClusterFile, WarnsOfKeysWithoutEffect) {
  auto got = load("troupe: 1\npools:\n  a: {scheduler: fair, preemption: true}\n  b: {scheduler: fifo, "
                  "preemption: true}\n");
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_EQ(got.warnings[0].path, "pools.b.preemption");
  EXPECT_NE(got.warnings[0].message.find("has no effect"), std::string::npos);
}

TEST(ClusterFile, SaysWhereTasksGetTheCredentialsOfABucket) {
  const auto got = load("troupe: 1\nstorage:\n  s: {type: s3, bucket: b, credentials: {file: secrets/s3}}\n");
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_EQ(got.warnings[0].path, "storage.s.credentials");
  EXPECT_NE(got.warnings[0].message.find("cluster.task_container_defaults.environment_variables"),
            std::string::npos);
}

TEST(ClusterFile, WarnsOfCommandsThatNoProviderCalls) {
  const auto got = load("troupe: 1\npools:\n  a: {provider: {type: local, launch: [l]}}\n");
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_EQ(got.warnings[0].path, "pools.a.provider.launch");
}

TEST(ClusterFile, RefusesWhatAPoolCannotBe) {
  const std::pair<const char*, const char*> rows[] = {
    {"default_priority: 0", "lab.yaml:3:25 pools.a.default_priority: must be at least 1"},
    {"default_priority: 100", "lab.yaml:3:25 pools.a.default_priority: must be at most 99"},
    {"reserve_after: soon", "lab.yaml:3:22 pools.a.reserve_after: "},
    {"fitting: tight", "lab.yaml:3:16 pools.a.fitting: expected one of best, worst"},
    {"gangs: some", "lab.yaml:3:14 pools.a.gangs: expected one of any, whole, whole_mixed"},
    {"quotas: [{max_slots: 1}]", "pools.a.quotas[0]: a quota is of a user or of a workspace"},
    {"quotas: [{user: x, workspace: y, max_slots: 1}]",
     "pools.a.quotas[0]: a quota is of a user or of a workspace"},
    {"quotas: [{user: x, max_slots: 1}, {user: x, max_slots: 2}]",
     "pools.a.quotas[1]: a second quota of 'x'"},
    {"quotas: [{user: x, max_slots: 1}, {user: X, max_slots: 2}]",
     "pools.a.quotas[1]: a second quota of 'X'"},
    {"quotas: [{workspace: x, max_slots: 1}, {workspace: X, max_slots: 2}]",
     "pools.a.quotas[1]: a second quota of 'X'"},
    {"quotas: [{user: x, max_slots: -1}]", "pools.a.quotas[0].max_slots: must be at least 0"},
    {"quotas: [{workspace: \"*\", max_slots: 1}]",
     "lab.yaml:3:28 pools.a.quotas[0].workspace: '*' stands for users only"},
    {"fallback: [a]", "lab.yaml:3:18 pools.a.fallback[0]: a pool does not fall back to itself"},
    {"fallback: [c]", "lab.yaml:3:18 pools.a.fallback[0]: there is no pool 'c' in this file"},
    {"fallback_after: soon", "pools.a.fallback_after: expected a duration as 30s, 5m"},
    {"provider: {type: cloud}", "pools.a.provider.type: expected one of"},
    {"provider: {max_instances: 2}", "pools.a.provider: the key 'type' is missing"},
    {"provider: {type: local, min_instances: 3, max_instances: 2}",
     "pools.a.provider.min_instances: min_instances is above max_instances"},
    {"provider: {type: local, min_instances: 6}",
     "pools.a.provider.min_instances: min_instances is above max_instances"},
    {"provider: {type: command, list: [l], launch: [l], terminate: [t]}",
     "pools.a.provider: the key 'instance_slots' is missing"},
    {"provider: {type: command, instance_slots: 1, list: [l], terminate: [t]}",
     "pools.a.provider: the command 'launch' is missing"},
    {"provider: {type: command, instance_slots: 1, list: [''], launch: [l], terminate: [t]}",
     "pools.a.provider.list: the first word names the program, and is empty"},
    {"provider: {type: command, instance_slots: 1, list: [l], launch: [l], terminate: [t], labels: {'ra,ck': "
     "a}}",
     "pools.a.provider.labels: TROUPE_LABELS, as rack=a3,spot=yes, cannot carry 'ra,ck'"},
    {"provider: {type: command, instance_slots: 1, list: [l], launch: [l], terminate: [t], labels: {rack: "
     "'a,b'}}",
     "pools.a.provider.labels: TROUPE_LABELS, as rack=a3,spot=yes, cannot carry 'rack'"},
    {"provider: {type: local, max_idle_agent_period: soon}", "max_idle_agent_period: expected a duration"},
    {"provider: {type: local, colour: red}", "unknown key 'colour'"},
  };
  for (const auto& [keys, fault] : rows)
    EXPECT_NE(faults(load(std::string("troupe: 1\npools:\n  a: {") + keys + "}\n")).find(fault),
              std::string::npos)
      << keys << ": " << faults(load(std::string("troupe: 1\npools:\n  a: {") + keys + "}\n"));
  EXPECT_TRUE(
    load(
      "troupe: 1\npools:\n  a: {reserve_after: 0s, min_run: 200ms, scheduler: round_robin, quotas: [{user: "
      "\"*\", max_slots: 0}, {workspace: v, max_slots: 2}]}\n")
      .ok());
}

TEST(ClusterFile, HintsAtWhatATextHasToBeWhereQuotesDoNotHelp) {
  const auto got = load("troupe: 1\npools:\n  a: {reserve_after: 10}\n");
  ASSERT_EQ(got.faults.size(), 1u);
  EXPECT_EQ(got.faults[0].hint, "write a duration as 30s, 5m");
}

TEST(ClusterFile, TakesABareWordThatYamlReadsAsABooleanWhereThatWordIsMeant) {
  const auto got = load("troupe: 1\ncluster: {shells: off, notebook_timeout: off, listen: 127.0.0.1:1}\n");
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(got.config["cluster"]["shells"], "off");
  EXPECT_EQ(got.config["cluster"]["notebook_timeout"], "off");
  EXPECT_EQ(load("troupe: 1\npools:\n  a: {preemption: off}\n").config["pools"]["a"]["preemption"], false);
  const auto wrong = load("troupe: 1\ncluster: {shells: on}\n");
  ASSERT_EQ(wrong.faults.size(), 1u);
  EXPECT_EQ(wrong.faults[0].message, "expected a string, got a boolean, on");
}

TEST(ClusterFile, HintsAtNoFallbackToThePoolItself) {
  const auto alone = load("troupe: 1\npools:\n  a: {fallback: [b]}\n");
  ASSERT_EQ(alone.faults.size(), 1u);
  EXPECT_EQ(alone.faults[0].hint, "");
  const auto two = load("troupe: 1\npools:\n  gpu: {fallback: [gpus]}\n  cpu: {}\n");
  ASSERT_EQ(two.faults.size(), 1u);
  EXPECT_EQ(two.faults[0].hint.find("'gpu'"), std::string::npos) << two.faults[0].hint;
}

TEST(ClusterFile, RefusesPoolsThatFallBackInACircle) {
  const auto said = faults(
    load("troupe: 1\npools:\n  a: {fallback: [b]}\n  b: {fallback: [c]}\n  c: {fallback: [a]}\n  d: {}\n"));
  EXPECT_NE(said.find("lab.yaml:3:18 pools.a.fallback[0]: the pools fall back in a circle: a -> b -> c -> a"),
            std::string::npos)
    << said;
  EXPECT_EQ(faults(load("troupe: 1\npools:\n  a: {fallback: [b, c]}\n  b: {fallback: [c]}\n  c: {}\n")), "");
}

TEST(ClusterFile, ReadsLeasesAndProviders) {
  const auto got =
    load("troupe: 1\ncluster: {leases: {freeze: 2s, give_away: 3s}}\npools:\n  a: {provider: {type: "
         "local, labels: {spot: x}}}\n");
  EXPECT_EQ(faults(got), "");
  const auto lease = leases(got.config);
  EXPECT_EQ(lease.freeze, std::chrono::seconds(2));
  EXPECT_EQ(lease.give_away, std::chrono::seconds(3));
  EXPECT_EQ(lease.heartbeat, std::chrono::seconds(1));
  EXPECT_EQ(lease.adopt, std::chrono::milliseconds(200));
  EXPECT_EQ(leases(value()).give_away, std::chrono::seconds(45)) << "of a cluster without a file";
  const auto provider = provider_settings(got.config, "a");
  EXPECT_EQ(provider.value("max_instances", 0), 5);
  EXPECT_EQ(provider.value("aux_per_agent", 0), 100);
  EXPECT_EQ(provider["labels"], value({{"spot", "x"}}));
  EXPECT_TRUE(configuration_faults(got.config).empty());
}

TEST(ClusterFile, RefusesLeasesWithWhichARunCouldBeAtTwoPlaces) {
  const auto of = [](const char* keys) {
    return faults(load(std::string("troupe: 1\ncluster: {leases: {") + keys + "}}\n"));
  };
  EXPECT_NE(of("freeze: 50s").find("lab.yaml:2:28 cluster.leases.freeze: freeze is above give_away"),
            std::string::npos)
    << of("freeze: 50s");
  EXPECT_NE(of("give_away: 20s").find("cluster.leases.freeze: freeze is above give_away"), std::string::npos);
  EXPECT_NE(of("heartbeat: 30s").find("cluster.leases.heartbeat: heartbeat is not below freeze"),
            std::string::npos);
  EXPECT_NE(of("adopt: soon").find("cluster.leases.adopt: expected a duration"), std::string::npos);
  EXPECT_NE(of("freez: 5s").find("unknown key 'freez'"), std::string::npos);
  EXPECT_EQ(of("freeze: 10s, give_away: 10s, heartbeat: 200ms"), "");
}

TEST(ClusterFile, RefusesTokensThatAreUsuallyLongerThanTheyMayBe) {
  const auto of = [](const char* keys) {
    return faults(load(std::string("troupe: 1\ncluster: {tokens: {") + keys + "}}\n"));
  };
  EXPECT_NE(
    of("longest: 7d").find("lab.yaml:2:29 cluster.tokens.default: longer than cluster.tokens.longest"),
    std::string::npos)
    << of("longest: 7d");
  EXPECT_NE(of("default: 90d").find("cluster.tokens.default"), std::string::npos);
  EXPECT_NE(of("longest: soon").find("cluster.tokens.longest: expected a duration"), std::string::npos);
  EXPECT_EQ(of("default: 7d, longest: 7d"), "");
  EXPECT_NE(faults(load("troupe: 1\ncluster: {authz: roles}\n")).find("cluster.authz"), std::string::npos);
}

TEST(ClusterFile, ReadsItsExperimentsWithTheDefaultsBelow) {
  world w;
  w.files["lab.yaml"] = "troupe: 1\nstorage: {fast: {type: directory, path: /ckpt}}\n"
                        "pools: {a: {default: true, defaults: {max_restarts: 1}}, b: {}}\n"
                        "defaults: {checkpoint_storage: fast, max_restarts: 7, entrypoint: python3 t.py}\n"
                        "experiments: [{file: e.yaml}]\n";
  w.files["/w/e.yaml"] = "name: mine\nsearcher: {name: single, metric: loss}\n";
  auto got = w.load();
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(got.config["experiments"][0]["name"], "mine");
  auto below = experiment_defaults(got.config, "a");
  EXPECT_EQ(below["max_restarts"], 1);
  EXPECT_EQ(below["checkpoint_storage"]["container_path"], "/ckpt");
  EXPECT_EQ(experiment_defaults(got.config, "b")["max_restarts"], 7);
  EXPECT_FALSE(pool_of_experiment(got.config, {{"resources", {{"resource_pool", "x"}}}}));
  EXPECT_EQ(*pool_of_experiment(got.config, {{"resources", {{"resource_pool", "b"}}}}), "b");
  w.files["/w/e.yaml"] = "searcher: {name: singel}\n";
  EXPECT_NE(faults(w.load()).find("/w/e.yaml:1:18 searcher.name"), std::string::npos) << faults(w.load());
}

TEST(ClusterFile, LaysTheTaskDefaultsOfAPoolOverThoseOfTheCluster) {
  const auto got = load(
    "troupe: 1\n"
    "cluster:\n"
    "  task_container_defaults:\n"
    "    environment_variables: [A=cluster, B=cluster]\n"
    "    startup_hook: of the cluster\n"
    "    work_dir: /cluster\n"
    "    preemption_timeout: 100\n"
    "    registry_auth: {username: u, password: PPP}\n"
    "pools:\n"
    "  gpu: {default: true, task_container_defaults: {environment_variables: [A=pool], work_dir: /pool}}\n"
    "  cpu: {startup_hook: of the pool}\n");
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(got.config.dump().find("PPP"), std::string::npos) << "credentials of a registry are not kept";
  EXPECT_TRUE(configuration_faults(got.config).empty()) << configuration_faults(got.config).front();
  const auto gpu = task_defaults(got.config, "gpu"), cpu = task_defaults(got.config, "cpu");
  EXPECT_EQ(gpu["environment_variables"]["cpu"], value::array({"A=pool", "B=cluster"}));
  EXPECT_EQ(gpu["preemption_timeout"], 100);
  EXPECT_EQ(cpu["environment_variables"]["cpu"], value::array({"A=cluster", "B=cluster"}));
  EXPECT_EQ(tasks_of_pool(got.config, "gpu").work_dir, "/pool");
  EXPECT_EQ(tasks_of_pool(got.config, "gpu").startup_hook, "of the cluster");
  EXPECT_EQ(tasks_of_pool(got.config, "cpu").work_dir, "/cluster");
  EXPECT_EQ(tasks_of_pool(got.config, "cpu").startup_hook, "of the pool");
  EXPECT_FALSE(pool_settings(got.config, "gpu").contains("task_container_defaults"));
  EXPECT_TRUE(task_defaults(load("troupe: 1\n").config, "default").is_null());
  EXPECT_TRUE(task_defaults(value(), "default").is_null());
}

TEST(ClusterFile, NamesEachTaskDefaultWithoutEffectOnce) {
  const auto got = load("troupe: 1\n"
                        "cluster:\n"
                        "  task_container_defaults: {image: x, shm_size_bytes: 1024}\n"
                        "pools:\n"
                        "  a:\n"
                        "    task_container_defaults:\n"
                        "      image: y\n"
                        "      network_mode: host\n");
  ASSERT_TRUE(got.ok()) << got.rendered();
  std::string said;
  for (const auto& one : got.warnings)
    said += std::to_string(one.line) + ":" + std::to_string(one.column) + " " + one.path + ": " +
            one.message + "\n";
  EXPECT_EQ(
    said, "3:29 cluster.task_container_defaults.image: has no effect: tasks are processes of the hosts, "
          "without images\n"
          "8:7 pools.a.task_container_defaults.network_mode: has no effect: tasks have the host's network\n");
}

TEST(ClusterFile, RefusesTaskDefaultsWithTheirPlaces) {
  EXPECT_EQ(
    faults(load("troupe: 1\n"
                "cluster: {task_container_defaults: {startup_hok: x, work_dir: here}}\n"
                "pools:\n"
                "  a: {task_container_defaults: {preemption_timeout: 0, shm_size_bytes: many}}\n"
                "  b: {startup_hook: x, task_container_defaults: {startup_hook: y}}\n"
                "  c: {task_container_defaults: {environment_variables: [=x]}}\n")),
    "lab.yaml:2:37 cluster.task_container_defaults.startup_hok: unknown key 'startup_hok'\n"
    "lab.yaml:2:63 cluster.task_container_defaults.work_dir: expected an absolute path, got 'here'\n"
    "lab.yaml:4:53 pools.a.task_container_defaults.preemption_timeout: must be at least 1, got 0\n"
    "lab.yaml:4:72 pools.a.task_container_defaults.shm_size_bytes: expected an integer, got a string, "
    "'many'\n"
    "lab.yaml:5:7 pools.b.startup_hook: task_container_defaults of this pool has it too\n"
    "lab.yaml:6:57 pools.c.task_container_defaults.environment_variables[0]: expected NAME=VALUE, or NAME "
    "alone, got '=x'\n");
  EXPECT_EQ(
    configuration_faults(
      {{"troupe", 1},
       {"cluster",
        {{"task_container_defaults", {{"registry_auth", {{"username", "u"}, {"password", "p"}}}}}}}}),
    std::vector<std::string>{"cluster.task_container_defaults.registry_auth: a registry's credentials do "
                             "not belong into a configuration"});
}

TEST(ClusterFile, SaysHowLongLogsAreKept) {
  const auto of = [](const std::string& text) {
    return log_retention(load("troupe: 1\ncluster: {log_retention: " + text + "}\n").config);
  };
  EXPECT_EQ(of("90d"), std::optional<duration>(std::chrono::hours(24 * 90)));
  EXPECT_EQ(of("12h"), std::optional<duration>(std::chrono::hours(12)));
  EXPECT_FALSE(of("never"));
  EXPECT_FALSE(log_retention(load("troupe: 1\n").config));
  EXPECT_FALSE(log_retention(value()));
  EXPECT_EQ(faults(load("troupe: 1\ncluster: {log_retention: soon}\n")),
            "lab.yaml:2:26 cluster.log_retention: expected a duration as 12h, 90d, or never, got 'soon'\n");
  EXPECT_EQ(faults(load("troupe: 1\ncluster: {log_retention: 90}\n")),
            "lab.yaml:2:26 cluster.log_retention: expected a string, got an integer, 90\n");
}

TEST(ClusterFile, KeepsTheKeyOfWebhooksOutOfTheConfiguration) {
  const auto got = load("troupe: 1\ncluster: {webhooks: {base_url: 'https://a', signing_key: KKK}}\n");
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(got.config["cluster"]["webhooks"], (value{{"base_url", "https://a"}}));
  EXPECT_EQ(got.secrets, (value{{"webhooks", {{"signing_key", "KKK"}}}}));
  EXPECT_EQ(got.resolved.find("KKK"), std::string::npos) << got.resolved;
  EXPECT_EQ(faults(load("troupe: 1\ncluster: {webhooks: {signing_key: a, signing_key_file: b}}\n")),
            "lab.yaml:2:22 cluster.webhooks.signing_key: there is a signing_key_file too\n");
  EXPECT_EQ(faults(load("troupe: 1\ncluster: {webhooks: {signing_key: ''}}\n")),
            "lab.yaml:2:35 cluster.webhooks.signing_key: a key is one line of text\n");
  EXPECT_EQ(
    configuration_faults({{"troupe", 1}, {"cluster", {{"webhooks", {{"signing_key", "a"}}}}}}),
    std::vector<std::string>{"cluster.webhooks.signing_key: a key does not belong into a configuration"});
}

TEST(ClusterFile, SaysWhichSwitchesClientsFind) {
  EXPECT_EQ(feature_switches(value()), std::vector<std::string>{"streaming_updates"});
  EXPECT_EQ(
    feature_switches(load("troupe: 1\ncluster: {feature_switches: [a, streaming_updates, a]}\n").config),
    (std::vector<std::string>{"streaming_updates", "a"}));
}

TEST(ClusterFile, BindsPoolsToWorkspacesButNotTheDefaultOne) {
  const auto got = load("troupe: 1\npools:\n  a: {}\n  b: {workspaces: [vision, speech]}\n");
  ASSERT_TRUE(got.ok()) << got.rendered();
  EXPECT_EQ(workspaces_of_pool(got.config, "b"), (std::vector<std::string>{"vision", "speech"}));
  EXPECT_TRUE(workspaces_of_pool(got.config, "a").empty());
  EXPECT_FALSE(pool_settings(got.config, "b").contains("workspaces"));
  EXPECT_TRUE(configuration_faults(got.config).empty());
  EXPECT_EQ(
    faults(load("troupe: 1\npools:\n  a: {workspaces: [x]}\n  b: {workspaces: [y, y, 7]}\n")),
    "lab.yaml:3:19 pools.a.workspaces: the default pool is everyone's: it cannot be bound to workspaces\n"
    "lab.yaml:4:23 pools.b.workspaces[1]: 'y' is named twice\n"
    "lab.yaml:4:26 pools.b.workspaces[2]: expected a string, got an integer, 7\n");
  EXPECT_EQ(faults(load("troupe: 1\npools:\n  a: {workspaces: [x]}\n  b: {default: true}\n")), "");
  EXPECT_EQ(configuration_faults(
              {{"troupe", 1}, {"pools", {{"a", {{"default", true}, {"workspaces", value::array({"x"})}}}}}}),
            std::vector<std::string>{"pools.a.workspaces: the default pool is everyone's"});
}

TEST(ClusterFile, ExplainsEveryKey) {
  for (auto key : {"storage.type", "users.tokens.name", "nodes.ssh.known_hosts", "pools.preemption",
                   "pools.main.preemption", "cluster.listen", "cluster.task_container_defaults.work_dir",
                   "pools.gpu.task_container_defaults.startup_hook", "defaults.max_restarts", "nodes[0].pool",
                   "troupe"}) {
    auto text = explain_cluster_key(key);
    ASSERT_TRUE(text) << key;
    EXPECT_NE(text->find("default:"), std::string::npos) << *text;
  }
  EXPECT_NE(explain_cluster_key("storage.type")->find("example: type: shared_fs"), std::string::npos)
    << *explain_cluster_key("storage.type");
  auto wrong = explain_cluster_key("pools.preemtion");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("did you mean 'pools.preemption'?"), std::string::npos)
    << wrong.error().what;
}

TEST(ClusterFile, HasAPageThatIsCurrent) {
  std::ifstream in(TROUPE_SOURCE_DIR "/docs/cluster-file.md");
  std::string page{std::istreambuf_iterator<char>(in), {}};
  if (page != cluster_file_page())
    std::ofstream(TROUPE_BINARY_DIR "/cluster-file.md") << cluster_file_page();
  EXPECT_EQ(page, cluster_file_page()) << "copy cluster-file.md of the build folder to docs/";
}

TEST(ClusterFile, SecretsOfDefaultsAreShownToNobodyAndComeBack) {
  const auto file =
    load("troupe: 1\n"
         "cluster: {task_container_defaults: {registry_auth: {username: u, password: PPP}}}\n"
         "pools:\n"
         "  a: {default: true, defaults: {environment: {registry_auth: {password: QQQ}}}}\n"
         "  b: {task_container_defaults: {registry_auth: {password: RRR}}}\n"
         "defaults: {checkpoint_storage: {type: s3, bucket: one, access_key: AAA, secret_key: SSS}}\n");
  ASSERT_TRUE(file.ok()) << file.rendered();
  auto shown = printable_cluster(file.config);
  for (const char* secret : {"QQQ", "AAA", "SSS"}) // the passwords of container registries are not stored
    EXPECT_NE(file.config.dump().find(secret), std::string::npos) << secret;
  for (const char* secret : {"PPP", "QQQ", "RRR", "AAA", "SSS"})
    EXPECT_EQ(shown.dump().find(secret), std::string::npos) << secret;
  EXPECT_EQ(shown["defaults"]["checkpoint_storage"]["bucket"], "one");
  EXPECT_TRUE(configuration_faults(shown).empty());
  EXPECT_EQ(plan_cluster(file.config, shown, {}, false).text(), "no changes\n");
  auto again = shown;
  restore_cluster_secrets(again, file.config);
  EXPECT_EQ(again, file.config);
  EXPECT_EQ(printable_cluster(nullptr), value());
}

TEST(ClusterPlan, NamesWhatChanges) {
  auto a = load("troupe: 1\npools: {main: {default: true}, old: {}}\nnodes: [{name: n1, slots: 1}]\nusers: "
                "[{name: ada}]\n")
             .config;
  auto b = load("troupe: 1\npools: {main: {default: true, preemption: true}, x: {}}\nnodes: [{name: n1, "
                "slots: 1}, {name: n2, slots: 2}]\n")
             .config;
  EXPECT_EQ(plan_cluster(a, a, {}, false).text(), "no changes\n");
  auto plan = plan_cluster(a, b, {{"users", {"bob"}}}, false);
  EXPECT_EQ(plan.text(), "  ~ pools.main.preemption  false -> true\n"
                         "  + pools.x\n"
                         "  - pools.old\n"
                         "  - users.ada              may not come in any more\n"
                         "  = users.bob              kept (not made by this file; --prune removes)\n"
                         "  + nodes.n2               2 slots   starts an agent here\n");
  EXPECT_EQ(plan.counted(), 5);
  EXPECT_EQ(plan_cluster(a, b, {{"users", {"bob"}}}, true).counted(), 6);
}

TEST(ClusterPlan, ShowsWhatDiffersInListsAndLongTexts) {
  const std::string ada = "{user: ada, max_slots: 3}", bob = "{user: bob, max_slots: 1}",
                    more = "{user: bob, max_slots: 2}";
  const std::string long_text(70, 'x');
  const std::array<std::string, 3> rows[] = {
    {"quotas: [" + ada + ", " + bob + "]", "quotas: [" + ada + ", " + more + "]",
     "  - pools.a.quotas  {\"max_slots\":1,\"user\":\"bob\"}\n"
     "  + pools.a.quotas  {\"max_slots\":2,\"user\":\"bob\"}\n"},
    {"quotas: [" + ada + "]", "{}", "  - pools.a.quotas  {\"max_slots\":3,\"user\":\"ada\"}\n"},
    {"startup_hook: " + long_text + "a b", "startup_hook: " + long_text + "c",
     "  ~ pools.a.startup_hook  ..." + std::string(20, 'x') + "a b -> ..." + std::string(20, 'x') + "c\n"},
  };
  for (const auto& [before, after, plan] : rows) {
    const auto of = [](const std::string& keys) {
      return load("troupe: 1\npools:\n  a: {" + (keys == "{}" ? "" : keys) + "}\n").config;
    };
    EXPECT_EQ(plan_cluster(of(before), of(after), {}, false).text(), plan);
  }
}

} // namespace
} // namespace troupe::config
