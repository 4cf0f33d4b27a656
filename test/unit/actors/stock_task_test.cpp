// Tests what a task is given for Determined's stock client, against what that client reads (section 3 of the
// contract).

#include "actors/allocation/config_reader.hpp"
#include "actors/host/platform_paths.hpp"
#include "actors/host/task_environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace troupe {
namespace {

/// A launch as a master of an earlier version encodes it, and as the file beside a task of its agent has it.
task_launch launch_of_trial_12() {
  const auto stored = parse_json(R"({
    "experiment": 7, "trial": 12, "run": 3, "seed": 77, "hparams": {"lr": 0.1}, "slots": [2, 3], "nodes": 1, "node_rank": 0,
    "task_id": "7.t", "allocation_name": "7.t.3", "resources_id": "r-0", "owner": "alice", "session_token": "S",
    "user_token": "U", "token": "link", "checkpoint_dir": "/data/ck", "resume": "uuid-9", "resume_steps": 400,
    "entrypoint": ["/bin/sh", "-c", "python3 train.py"], "env": {"A": "b", "DET_DEBUG": "1"},
    "config": {"name": "n", "debug": true, "checkpoint_storage": {"type": "shared_fs", "host_path": "/data", "storage_path": "ck",
               "propagation": "rprivate", "save_experiment_best": 1, "save_trial_best": 2, "save_trial_latest": 3}}})");
  return decode_launch(to_msgpack(*stored)).value();
}

task_surroundings around() {
  task_surroundings a;
  a.agent = "node-a";
  a.python = "/opt/troupe/python";
  a.python_bin = "/opt/venv/bin";
  a.master_url = "http://127.0.0.1:40123";
  a.shell = "/bin/bash";
  a.ports = {12351, 12362, 12366, 29401};
  return a;
}

TEST(StockTask, HasEveryVariableThatTheClientReads) {
  auto env = stock_variables({{12}, {3}}, launch_of_trial_12(), around());
  for (auto [name, expected] : std::initializer_list<std::pair<const char*, const char*>>{
         {"DET_MASTER", "http://127.0.0.1:40123"},
         {"DET_MASTER_HOST", "127.0.0.1"},
         {"DET_MASTER_PORT", "40123"},
         {"DET_CLUSTER_ID", "troupe"},
         {"DET_AGENT_ID", "node-a"},
         {"DET_SLOT_IDS", "[2,3]"},
         {"DET_TASK_ID", "7.t"},
         {"DET_ALLOCATION_ID", "7.t.3"},
         {"DET_RESOURCES_ID", "r-0"},
         {"DET_CONTAINER_ID", "r-0"},
         {"DET_RESOURCES_TYPE", "docker-container"},
         {"DET_SESSION_TOKEN", "S"},
         {"DET_USER_TOKEN", "U"},
         {"DET_USER", "alice"},
         {"DET_TASK_TYPE", "TRIAL"},
         {"DET_EXPERIMENT_ID", "7"},
         {"DET_TRIAL_ID", "12"},
         {"DET_TRIAL_RUN_ID", "3"},
         {"DET_TRIAL_SEED", "77"},
         {"DET_HPARAMS", R"({"lr":0.1})"},
         {"DET_STEPS_COMPLETED", "400"},
         {"DET_LATEST_CHECKPOINT", "uuid-9"},
         {"DET_USE_TLS", "false"},
         {"DET_SEGMENT_ENABLED", "false"},
         {"DET_RUN_DIR", "/run/determined"},
         {"DET_WORKDIR", "/run/determined/workdir"},
         {"DET_SKIP_PIP_INSTALL", "1"},
         {"PYTHONUSERBASE", "/run/determined/pythonuserbase"},
         {"DET_PYTHON_EXECUTABLE", "/opt/venv/bin/python3"},
         {"DTRAIN_SSH_PORT", "12351"},
         {"INTER_TRAIN_PROCESS_COMM_PORT_1", "12362"},
         {"INTER_TRAIN_PROCESS_COMM_PORT_2", "12366"},
         {"C10D_PORT", "29401"},
         {"DET_TASK_LOGGING_METADATA", R"({"allocation_id":"7.t.3","task_id":"7.t"})"}})
    EXPECT_EQ(env[name], expected) << name;
  auto fresh = launch_of_trial_12();
  fresh.resume = "";
  fresh.owner = "";
  value large = fresh.config;
  large["data"] = std::string(200'000, 'x'); // more bytes than the kernel takes in one variable
  fresh.config = std::move(large);
  env = stock_variables({{12}, {3}}, fresh, around());
  EXPECT_FALSE(env.contains("DET_LATEST_CHECKPOINT"));
  EXPECT_FALSE(env.contains("DET_EXPERIMENT_CONFIG"));
  EXPECT_EQ(env["DET_USER"], "determined"); // the client refuses an empty name
}

TEST(StockTask, SeesASharedFileSystemAsTheDirectoryThatItIs) {
  const auto storage = config_for_task(launch_of_trial_12())["checkpoint_storage"];
  EXPECT_EQ(
    to_json(storage),
    R"({"container_path":"/data/ck","save_experiment_best":1,"save_trial_best":2,"save_trial_latest":3,"type":"directory"})");
  auto cloud = launch_of_trial_12();
  value in_a_bucket = cloud.config;
  in_a_bucket["checkpoint_storage"] = {{"type", "s3"}, {"bucket", "b"}};
  cloud.config = in_a_bucket;
  EXPECT_EQ(config_for_task(cloud), in_a_bucket);
}

TEST(StockTask, HasTheFilesThatTheClientReadsFirst) {
  std::map<std::string, value> info;
  for (const auto& file : stock_files({{12}, {3}}, launch_of_trial_12(), around()))
    if (file.path.starts_with("info/"))
      info[file.path] = *parse_json(file.text);
  EXPECT_EQ(
    to_json(info["info/cluster.json"]),
    R"({"agent_id":"node-a","allocation_id":"7.t.3","cluster_id":"troupe","latest_checkpoint":"uuid-9","master_cert_file":null,)"
    R"("master_cert_name":null,"master_url":"http://127.0.0.1:40123","session_token":"S","slot_ids":[2,3],"task_id":"7.t","task_type":"TRIAL"})");
  EXPECT_EQ(info["info/trial.json"]["trial_run_id"], 3);
  EXPECT_EQ(info["info/trial.json"]["debug"], true);
  EXPECT_EQ(info["info/trial.json"].size(), 9u); // TrialInfo of the client takes these nine arguments only
  EXPECT_EQ(to_json(info["info/rendezvous.json"]),
            R"({"container_addrs":["127.0.0.1"],"container_rank":0,"container_slot_counts":[2]})");
  EXPECT_EQ(to_json(info["info/resources.json"]), R"({"gpu_uuids":[]})");
  auto gang = launch_of_trial_12();
  gang.nodes = 2;
  for (const auto& file : stock_files({{12}, {3}}, gang, around()))
    EXPECT_NE(file.path, "info/rendezvous.json"); // the agents of a gang have to meet first
}

TEST(StockTask, OfAnotherKindHasNothingOfATrial) {
  const allocation_id shell{task_id::of(task_kind::shell, 1, 2), {1}};
  const auto env = stock_variables(shell, launch_of_trial_12(), around());
  EXPECT_EQ(env.at("DET_TASK_TYPE"), "SHELL");
  EXPECT_EQ(env.at("DET_SESSION_TOKEN"), "S");
  for (const char* name : {"DET_TRIAL_ID", "DET_EXPERIMENT_ID", "DET_HPARAMS", "DET_STEPS_COMPLETED"})
    EXPECT_FALSE(env.contains(name)) << name;
  std::set<std::string> files;
  for (const auto& file : stock_files(shell, launch_of_trial_12(), around()))
    files.insert(file.path);
  EXPECT_TRUE(files.contains("info/cluster.json"));
  EXPECT_FALSE(files.contains("info/trial.json"));
}

TEST(StockTask, StartsEveryFormOfAnEntrypoint) {
  const std::vector<std::string> script = {"/bin/bash", "/run/determined/train/entrypoint.sh"};
  using words = std::vector<std::string>;
  for (const auto& [entrypoint, command] : {
         std::pair<words, words>{{"/bin/sh", "-c", "python3 train.py --x=1"},
                                 {"/bin/sh", "-c", "python3 train.py --x=1"}},
         {{"python3", "train.py", "a b"}, {"python3", "train.py", "a b"}},
         {{"/bin/sh", "-c", "model_def:Trial"},
          {"python3", "-m", "determined.launch.torch_distributed", "--", "--trial", "model_def:Trial"}},
         {{"/bin/sh", "-c", "a.b_2:C9"},
          {"python3", "-m", "determined.launch.torch_distributed", "--", "--trial", "a.b_2:C9"}},
         {{"/bin/sh", "-c", "model_def:a.b"}, {"/bin/sh", "-c", "model_def:a.b"}},
         {{"/bin/sh", "-c", "model def:Trial"}, {"/bin/sh", "-c", "model def:Trial"}},
         {{"/bin/sh", "-c", ":"}, {"/bin/sh", "-c", ":"}},
         {{"model_def:Trial"}, {"model_def:Trial"}}, // the entrypoint is a list, so it is the command itself
       }) {
    auto expected = script;
    expected.insert(expected.end(), command.begin(), command.end());
    EXPECT_EQ(stock_command(entrypoint, "/bin/bash"), expected);
  }
  EXPECT_TRUE(stock_command({}, "/bin/bash").empty());
}

TEST(StockTask, TheExperimentsVariablesWinOverOursButNotOverTheTaskLinks) {
  ::setenv("http_proxy", "http://proxy:3128", 1);
  ::setenv("DET_MASTER", "http://elsewhere", 1);
  auto launch = launch_of_trial_12();
  launch.env["DET_AGENT_ID"] = "mine";
  launch.env["TROUPE_TASK_TOKEN"] = "forged";
  auto spec = task_spec_of({{12}, {3}}, launch, around());
  ::unsetenv("http_proxy");
  ::unsetenv("DET_MASTER");
  const auto& env = spec.ranks.at(0).env;
  auto has = [&](const char* entry) { return std::find(env.begin(), env.end(), entry) != env.end(); };
  EXPECT_TRUE(has("DET_AGENT_ID=mine"));
  EXPECT_TRUE(has("TROUPE_TASK_TOKEN=link"));
  EXPECT_TRUE(has("A=b"));
  EXPECT_TRUE(has("DET_MASTER=http://127.0.0.1:40123"));
  EXPECT_TRUE(std::any_of(env.begin(), env.end(), [](const auto& e) {
    return e.starts_with("NO_PROXY=") && e.ends_with("127.0.0.1,localhost");
  }));
  EXPECT_TRUE(
    std::any_of(env.begin(), env.end(), [](const auto& e) { return e.starts_with("PATH=/opt/venv/bin:"); }));
}

TEST(StockTask, DoesNotSeeTheFoldersWhereTheAgentWasStarted) {
  namespace fs = std::filesystem;
  char pattern[] = "/tmp/troupe-started-XXXXXX";
  const fs::path root = ::mkdtemp(pattern);
  std::map<std::string, std::string> before;
  for (const char* name : {"PWD", "OLDPWD"}) {
    const char* value = ::getenv(name);
    before[name] = value ? value : "";
    ::setenv(name, root.c_str(), 1);
  }
  const auto spec = task_spec_of({{12}, {3}}, launch_of_trial_12(), around());
  for (const auto& [name, value] : before)
    value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  for (const auto& entry : spec.ranks.at(0).env)
    EXPECT_EQ(entry.find(root.string()), entry.npos) << entry;
  EXPECT_EQ(std::find(spec.keep.begin(), spec.keep.end(), root.string()), spec.keep.end());
  fs::remove_all(root);
}

TEST(StockTask, SeesTheEventFilesBelowTmpThatItIsToShow) {
  namespace fs = std::filesystem;
  char pattern[] = "/tmp/troupe-events-XXXXXX";
  const fs::path root = ::mkdtemp(pattern);
  fs::create_directories(root / "with blank");
  auto launch = launch_of_trial_12();
  launch.env["TROUPE_SERVICE_CONFIG"] =
    to_json({{"sources",
              {{{"place", (root / "to/come/experiment/7").string()}, {"storage", nullptr}},
               {{"place", (root / "with blank").string()}},
               {{"place", "s3://tmp/x"}},
               {{"place", "/tmp/nothing-of-this-is-there/x"}}}}});
  const auto spec = task_spec_of({{12}, {3}}, launch, around());
  for (const auto& place : {root, root / "with blank"})
    EXPECT_EQ(std::count(spec.keep.begin(), spec.keep.end(), place.string()), 1) << place;
  EXPECT_EQ(std::count(spec.keep.begin(), spec.keep.end(), "/tmp"), 0);
  fs::remove_all(root);
}

TEST(TaskSpec, VariablesAreThoseOfItsDevice) {
  auto launch = launch_of_trial_12();
  launch.config =
    parse_json(
      R"({"environment": {"environment_variables": {"cpu": ["DEVICE=cpu", "ONLY_CPU=1"], "cuda": ["DEVICE=cuda", "ONLY_CUDA=1"]}}})")
      .value();
  launch.env = variables_in(config_reader(launch.config.get()));
  launch.env["OTHER"] = "1";
  const auto variables = [&] {
    std::set<std::string> out;
    const auto spec = task_spec_of({{12}, {3}}, launch, around());
    for (const auto& one : spec.ranks.at(0).env)
      if (one.starts_with("DEVICE=") || one.starts_with("ONLY_") || one.starts_with("OTHER="))
        out.insert(one);
    return out;
  };
  EXPECT_EQ(variables(), (std::set<std::string>{"DEVICE=cpu", "ONLY_CPU=1", "OTHER=1"}));
  launch.gpu_uuids = {"GPU-1"};
  EXPECT_EQ(variables(), (std::set<std::string>{"DEVICE=cuda", "ONLY_CUDA=1", "OTHER=1"}));
  launch.slots.clear();
  EXPECT_EQ(variables(), (std::set<std::string>{"DEVICE=cpu", "ONLY_CPU=1", "OTHER=1"}))
    << "without a slot it has no GPU";
}

TEST(TaskSpec, PerSlotIsAProcessForEachSlotWithTheVariablesOfTorchrun) {
  auto launch = launch_of_trial_12();
  EXPECT_EQ(task_spec_of({{12}, {3}}, launch, around()).ranks.size(), 1u)
    << "the default is one for each agent";
  launch.mode = launch_mode::per_slot;
  launch.nodes = 2;
  launch.node_rank = 1;
  launch.first_rank = 3;
  launch.ranks = 5;
  const auto spec = task_spec_of({{12}, {3}}, launch, around());
  ASSERT_EQ(spec.ranks.size(), 2u);
  for (std::size_t local = 0; local < 2; ++local)
    for (const std::string& expected :
         {"RANK=" + std::to_string(3 + local), std::string("WORLD_SIZE=5"),
          "LOCAL_RANK=" + std::to_string(local), std::string("LOCAL_WORLD_SIZE=2"),
          std::string("GROUP_RANK=1"), std::string("MASTER_ADDR=127.0.0.1"), std::string("MASTER_PORT=29401"),
          std::string("TORCHELASTIC_RUN_ID=12.3"), std::string("TORCHELASTIC_RESTART_COUNT=2")}) {
      const auto& env = spec.ranks[local].env;
      EXPECT_NE(std::find(env.begin(), env.end(), expected), env.end()) << expected << " of " << local;
    }
}

TEST(StockTask, ShowsWhatThePlatformHandsOutBelowTmpToReadOnly) {
  namespace fs = std::filesystem;
  char pattern[] = "/tmp/troupe-platform-XXXXXX";
  const fs::path root = ::mkdtemp(pattern);
  for (const char* one : {"base/bin", "venv/bin", "clone/python", "clone/build", "data"})
    fs::create_directories(root / one);
  std::ofstream(root / "base/bin/python3.11") << "";
  fs::create_symlink("python3.11", root / "base/bin/python3");
  fs::create_symlink(root / "base/bin/python3", root / "venv/bin/python3");
  std::ofstream(root / "venv/pyvenv.cfg") << "home = " << (root / "base/bin").string() << "\n";
  fs::create_directory_symlink(root / "clone", root / "link");
  auto place = around();
  place.python = (root / "link/python").string();
  place.programs = (root / "link/build").string();
  place.python_bin = (root / "venv/bin").string();
  auto launch = launch_of_trial_12();
  launch.env["DATA"] = (root / "data").string();
  const auto spec = task_spec_of({{12}, {3}}, launch, place);
  std::vector<std::string> shown;
  for (const char* one : {"base", "clone/build", "clone/python", "venv", "link/build", "link/python"})
    shown.push_back((root / one).string());
  EXPECT_EQ(spec.keep_read_only, shown); // a folder comes before the link that leads to it
  EXPECT_NE(std::find(spec.keep.begin(), spec.keep.end(), (root / "data").string()), spec.keep.end());
  for (const auto& path : spec.keep)
    EXPECT_FALSE(is_in_one_of(shown, path)) << path;
  fs::remove_all(root);
}

} // namespace
} // namespace troupe
