#include "model/config/cluster_config.hpp"
#include "model/config/from_determined.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

/// Returns what the reader of the cluster file makes of a master.yaml. There is no fault, and nothing of the
/// file is lost.
cluster_file loaded(const std::string& text) {
  file_world world;
  world.read = [&](const std::string&) -> result<std::string> { return text; };
  world.exists = [](const std::string&) { return false; };
  world.folder = "/etc/determined";
  world.environment = [](const std::string&) { return std::nullopt; };
  return load_cluster_file("master.yaml", as_determined(world, "master.yaml", {}));
}

std::string all(const std::vector<diagnostic>& notes) {
  std::string out;
  for (const auto& one : notes)
    out += one.path + " " + std::to_string(one.line) + "\n";
  return out;
}

constexpr const char* whole = R"(port: 8081
cluster_name: lab
db: {user: postgres, host: db, name: determined, password: x}
launch_error: false
notebook_timeout: 7200
tensorboard_timeout: 600
security:
  initial_user_password: Secret-1
  default_task: {uid: 1000}
webhooks: {base_url: "https://det.lab", signing_key: abc}
retention_policy: {log_retention_days: 90, schedule: "0 1 * * *"}
checkpoint_storage:
  type: shared_fs
  host_path: /mnt/ck
  storage_path: lab
  save_trial_best: 2
task_container_defaults:
  shm_size_bytes: 1073741824
  startup_hook: module load cuda
  environment_variables: [A=1]
  bind_mounts: [{host_path: /data, container_path: /data}]
  dtrain_network_interface: eth0
  preemption_timeout: 120
feature_switches: [flat_runs]
resource_manager:
  type: agent
  default_compute_resource_pool: gpu
  default_aux_resource_pool: cpu
  scheduler: {type: priority, preemption: true, default_priority: 50, fitting_policy: worst}
resource_pools:
  - pool_name: cpu
    max_aux_containers_per_agent: 7
    scheduler: {type: fair_share}
  - pool_name: gpu
    description: the large ones
    task_container_defaults: {environment_variables: [B=2], work_dir: /work}
)";

TEST(FromDetermined, RightsAndTokensAreTakenOver) {
  const auto of = [](const std::string& security) {
    const auto got = move_master("security: " + security + "\n", "master.yaml");
    EXPECT_TRUE(got.faults.empty()) << security;
    auto out = got.cluster_file.value("cluster", value());
    for (const char* key : {"listen", "plain_http", "name"})
      out.erase(key);
    return out;
  };
  EXPECT_EQ(of("{authz: {type: rbac, strict_job_queue_control: true}}"),
            (value{{"authz", "rbac"}, {"strict_job_queue_control", true}}));
  EXPECT_EQ(of("{authz: {type: basic}}"), value::object());
  for (const char* none : {"{tls: {cert: '', key: ''}}", "{tls: {cert: ''}}", "{tls: {key: ''}}"}) {
    const auto got = move_master(std::string("security: ") + none + "\n", "master.yaml");
    EXPECT_TRUE(got.faults.empty()) << none;
    EXPECT_EQ(got.cluster_file["cluster"]["plain_http"], true) << none;
    EXPECT_FALSE(got.cluster_file["cluster"].contains("tls")) << none;
  }
  EXPECT_EQ(of("{token: {max_lifespan_days: 90}}"),
            (value{{"tokens", {{"default", "30d"}, {"longest", "90d"}}}}));
  EXPECT_EQ(of("{token: {max_lifespan_days: 7}}"),
            (value{{"tokens", {{"default", "7d"}, {"longest", "7d"}}}}));
  EXPECT_EQ(of("{token: {default_lifespan_days: 60, max_lifespan_days: -1}}"),
            (value{{"tokens", {{"default", "60d"}, {"longest", "36500d"}}}}));
}

TEST(FromDetermined, AMastersFileBecomesAClusterFile) {
  const auto got = move_master(whole, "master.yaml");
  ASSERT_TRUE(got.faults.empty()) << rendered(got.faults, {}, whole);
  const auto& x = got.cluster_file;
  EXPECT_EQ(x["cluster"],
            (value{{"name", "lab"},
                   {"listen", "0.0.0.0:8081"},
                   {"plain_http", true},
                   {"notebook_timeout", "7200s"},
                   {"tensorboard_timeout", "600s"},
                   {"webhooks", {{"base_url", "https://det.lab"}, {"signing_key", "abc"}}},
                   {"feature_switches", value::array({"flat_runs"})},
                   {"log_retention", "90d"},
                   {"task_container_defaults",
                    {{"shm_size_bytes", 1073741824},
                     {"startup_hook", "module load cuda"},
                     {"environment_variables", value::array({"A=1"})},
                     {"bind_mounts", value::array({{{"host_path", "/data"}, {"container_path", "/data"}}})},
                     {"preemption_timeout", 120}}}}));
  EXPECT_EQ(x["storage"]["default"], (value{{"type", "shared_fs"}, {"path", "/mnt/ck/lab"}}));
  EXPECT_EQ(x["pools"]["gpu"],
            (value{{"default", true},
                   {"scheduler", "priority"},
                   {"preemption", true},
                   {"default_priority", 50},
                   {"fitting", "worst"},
                   {"aux_per_agent", 100},
                   {"task_container_defaults",
                    {{"environment_variables", value::array({"B=2"})}, {"work_dir", "/work"}}}}));
  EXPECT_EQ(x["pools"]["cpu"], (value{{"scheduler", "fair"}, {"preemption", true}, {"aux_per_agent", 7}}))
    << "a fair share preempts there";
  EXPECT_EQ(x["defaults"], (value{{"checkpoint_storage", {{"save_trial_best", 2}}}}));
  const auto file = loaded(whole);
  ASSERT_TRUE(file.ok()) << file.rendered();
  EXPECT_EQ(file.config["pools"]["gpu"]["default_priority"], 50);
  EXPECT_EQ(file.config.dump().find("abc"), std::string::npos) << "the key is not in the configuration";
  EXPECT_EQ(file.secrets["webhooks"]["signing_key"], "abc");
  EXPECT_EQ(log_retention(file.config), std::optional<duration>(std::chrono::hours(24 * 90)));
  EXPECT_EQ(feature_switches(file.config), (std::vector<std::string>{"streaming_updates", "flat_runs"}));
  EXPECT_EQ(tasks_of_pool(file.config, "gpu").startup_hook, "module load cuda");
  EXPECT_EQ(tasks_of_pool(file.config, "gpu").work_dir, "/work");
  EXPECT_EQ(task_defaults(file.config, "gpu")["environment_variables"]["cpu"], value::array({"A=1", "B=2"}));
  EXPECT_TRUE(file.warnings.empty()) << file.rendered();
}

TEST(FromDetermined, AHookKeepsTheVariablesOfItsShell) {
  const std::string text = "task_container_defaults: {startup_hook: 'cd ${HOME}; echo $${X} $PATH'}\n";
  const auto file = loaded(text);
  ASSERT_TRUE(file.ok()) << file.rendered();
  EXPECT_EQ(tasks_of_pool(file.config, "default").startup_hook, "cd ${HOME}; echo $${X} $PATH");
  EXPECT_EQ(move_master(text, "m").cluster_file["cluster"]["task_container_defaults"]["startup_hook"],
            "cd $${HOME}; echo $$${X} $PATH");
}

TEST(FromDetermined, EachKeyWithoutEffectIsNamedOnceWithItsLine) {
  const auto got = move_master(whole, "master.yaml");
  EXPECT_EQ(
    all(got.notes),
    "db 3\nsecurity.initial_user_password 8\nsecurity.default_task 9\n"
    "retention_policy.schedule 11\n"
    "task_container_defaults.dtrain_network_interface 22\n"
    "resource_manager.default_aux_resource_pool 28\nresource_pools[1].description 35\nsecurity.tls 1\n");
  for (const auto& one : got.notes)
    EXPECT_TRUE(one.is_warning) << one.message;
}

TEST(FromDetermined, KeysOfRightsWithoutEffectAreNamed) {
  const auto got =
    move_master("security:\n  authz:\n    type: rbac\n    fallback: basic\n    rbac_ui_enabled: true\n"
                "    workspace_creator_assign_role: {enabled: false}\n  tls: {cert: a, key: b}\n",
                "master.yaml");
  EXPECT_EQ(all(got.notes), "security.authz.fallback 4\nsecurity.authz.rbac_ui_enabled 5\n"
                            "security.authz.workspace_creator_assign_role 6\n");
}

TEST(FromDetermined, WhatContradictsIsRefusedWithItsPlace) {
  struct {
    const char *text, *path;
    int line;
  } const rows[] = {
    {"port: 1\ntask_container_defaults:\n  image: determinedai/x\n", "task_container_defaults.image", 3},
    {"resource_pools:\n  - pool_name: a\n    task_container_defaults: {image: x}\n",
     "resource_pools[0].task_container_defaults.image", 3},
    {"resource_manager: {type: kubernetes}\n", "resource_manager.type", 1},
    {"resource_pools:\n  - pool_name: a\n    kubernetes_namespace: x\n",
     "resource_pools[0].kubernetes_namespace", 3},
    {"prot: 8080\n", "prot", 1},
    {"port: many\n", "port", 1},
    {"security:\n  authz: {typ: rbac}\n", "security.authz.typ", 2},
    {"security:\n  authz: {type: RBAC}\n", "security.authz.type", 2},
    {"security:\n  token: {max_lifespan_days: many}\n", "security.token.max_lifespan_days", 2},
    {"security:\n  tsl: {cert: a, key: b}\n", "security.tsl", 2},
    {"security:\n  tls: {cert: a}\n", "security.tls.cert", 2},
    {"webhooks:\n  base_ulr: http://a\n", "webhooks.base_ulr", 2},
    {"retention_policy:\n  log_retention_days: -2\n", "retention_policy.log_retention_days", 2},
    {"resource_pools:\n  - pool_name: gpu\nresource_manager:\n  default_compute_resource_pool: gpus\n",
     "resource_manager.default_compute_resource_pool", 4},
    {"port: 1\ntask_container_defaults:\n  work_dir: a/b\n", "task_container_defaults.work_dir", 3},
    {"resource_pools:\n  - pool_name: a\n    task_container_defaults: {work_dir: a/b}\n",
     "resource_pools[0].task_container_defaults.work_dir", 3},
    {"resource_pools:\n  - pool_name: b\n  - pool_name: a b\n", "resource_pools[1].pool_name", 3},
    {"port: 1\nnotebook_timeout: -1\n", "notebook_timeout", 2},
    {"port: 1\ncheckpoint_storage: {type: s3, bucket: ''}\n", "checkpoint_storage.bucket", 2},
    {"checkpoint_storage:\n  type: shared_fs\n  host_path: relative\n", "checkpoint_storage.host_path", 3},
    {"checkpoint_storage:\n  type: directory\n  container_path: ./ck\n", "checkpoint_storage.container_path",
     3},
    {"security:\n  token: {default_lifespan_days: 60, max_lifespan_days: 30}\n",
     "security.token.default_lifespan_days", 2},
  };
  for (const auto& row : rows) {
    const auto got = move_master(row.text, "master.yaml");
    ASSERT_EQ(got.faults.size(), 1u) << row.text << rendered(got.faults, {}, row.text);
    EXPECT_EQ(got.faults.front().path, row.path);
    EXPECT_EQ(got.faults.front().line, row.line) << row.text;
    EXPECT_FALSE(loaded(row.text).ok());
  }
  for (const auto& [written, fits] :
       {std::pair{"gpu-a100.40gb", "gpu-a100-40gb"}, {"a  b", "a-b"}, {"'.'", "pool"}})
    EXPECT_EQ(
      move_master("resource_pools:\n  - pool_name: " + std::string(written) + "\n", "m").faults.at(0).hint,
      "call it " + std::string(fits));
  const auto empty = loaded("resource_pools:\n  - pool_name: a\n    kubernetes_namespace: ''\n");
  EXPECT_TRUE(empty.ok()) << empty.rendered();
}

TEST(FromDetermined, TheFileOfTheOtherKindIsNamedAsSuch) {
  const auto agent = move_master("agent_id: a\nmaster_host: m\nfluent: {port: 1}\n", "a.yaml");
  ASSERT_EQ(agent.faults.size(), 1u) << rendered(agent.faults, {}, "");
  EXPECT_EQ(agent.faults[0].message, "this is the file of an agent");
  EXPECT_EQ(agent.faults[0].hint, "troupe agent --determined a.yaml");
  EXPECT_EQ(agent.faults[0].line, 2);
  const auto master = move_agent("port: 8080\nresource_pools: []\n", "m.yaml");
  ASSERT_EQ(master.faults.size(), 1u) << rendered(master.faults, {}, "");
  EXPECT_EQ(master.faults[0].message, "this is the file of a master");
  EXPECT_EQ(master.faults[0].hint, "troupe master --determined m.yaml");
}

TEST(FromDetermined, TheSmallestFileIsACluster) {
  for (const char* text :
       {"{}\n", "port: 8080\n", "# port: 80\n", "", "resource_pools: []\n",
        "resource_pools: []\nresource_manager: {default_compute_resource_pool: default}\n"}) {
    const auto file = loaded(text);
    ASSERT_TRUE(file.ok()) << text << file.rendered();
    EXPECT_EQ(file.config["cluster"]["listen"], "0.0.0.0:8080");
    EXPECT_EQ(file.config["pools"]["default"]["scheduler"], "priority");
    EXPECT_EQ(file.config["pools"]["default"]["launch_error"], true) << "as there";
  }
  const auto tls = move_master("security: {tls: {cert: a.pem, key: a.key}}\n", "m");
  EXPECT_EQ(tls.cluster_file["cluster"],
            (value{{"listen", "0.0.0.0:8443"}, {"tls", {{"cert", "a.pem"}, {"key", "a.key"}}}}));
  EXPECT_TRUE(tls.notes.empty());
}

TEST(FromDetermined, ANameOfAnyTextBecomesOneOfLetters) {
  const std::string text = "port: 1\ncluster_name: \"  My  Cluster! \"\n";
  const auto got = move_master(text, "m");
  EXPECT_TRUE(got.faults.empty()) << rendered(got.faults, {}, text);
  EXPECT_EQ(got.cluster_file["cluster"]["name"], "My-Cluster-");
  EXPECT_EQ(all(got.notes), "cluster_name 2\nsecurity.tls 1\n");
}

TEST(FromDetermined, WhatIsSaidOfAFileHasNoSecretOfIt) {
  const std::string text = "checkpoint_storage: {type: s3, bucket: b, secret_key: hush1, access_key: hush2}\n"
                           "security:\n  initial_user_password: hush3\n"
                           "webhooks: {signing_key: hush4, base_ulr: x}\n"
                           "oidc:\n  client_secret:\n    hush5\n";
  const auto got = move_master(text, "m");
  EXPECT_EQ(rendered(got.faults, {}, text),
            "m:4:32: webhooks.base_ulr: unknown key 'base_ulr'\n  webhooks: {signing_key: ********\n"
            "                                 ^\nhint: did you mean 'base_url'?\n\n");
  const auto mended = text.substr(0, text.find("webhooks")) + text.substr(text.find("oidc"));
  const auto said = rendered({}, move_master(mended, "m").notes, mended);
  EXPECT_EQ(said.find("hush"), std::string::npos) << said;
  EXPECT_NE(said.find("cluster.task_container_defaults.environment_variables"), std::string::npos) << said;
  EXPECT_NE(said.find("m:1:1: warning: security.tls: missing: HTTP is plain, as it was there, also for other "
                      "hosts\n"),
            std::string::npos)
    << said;
}

TEST(FromDetermined, AnAgentsFile) {
  const std::string text = "master_host: head\nmaster_port: 8080\nagent_id: gpu01\nresource_pool: gpu\n"
                           "artificial_slots: 4\nvisible_gpus: \"0,1\"\nsecurity: {tls: {enabled: true}}\n";
  EXPECT_TRUE(is_of_agent(text, "a"));
  EXPECT_FALSE(is_of_agent(whole, "a"));
  const auto got = move_agent(text, "agent.yaml");
  ASSERT_TRUE(got.faults.empty());
  EXPECT_EQ(got.master, "head:8080");
  EXPECT_EQ(got.name, "gpu01");
  EXPECT_EQ(got.pool, "gpu");
  EXPECT_EQ(got.slots, 4);
  EXPECT_EQ(all(got.notes), "visible_gpus 6\nsecurity 7\n");
  struct {
    const char* text;
    const char* master;
    std::optional<int> slots;
  } const rows[] = {{"master_host: h\n", "h:80", {}},
                    {"master_host: h\nsecurity: {tls: {enabled: true}}\n", "h:443", {}},
                    {"master_host: h\nslot_type: none\n", "h:80", 0},
                    {"master_host: h\nslot_type: cpu\n", "h:80", 1}};
  for (const auto& row : rows) {
    EXPECT_EQ(move_agent(row.text, "a").master, row.master);
    EXPECT_EQ(move_agent(row.text, "a").slots, row.slots) << row.text;
  }
  EXPECT_EQ(move_agent("master_hots: h\n", "a").faults.size() > 0, true);
}

} // namespace
} // namespace troupe::config
