// Tests what a master tells an agent about a task, and what the agent stores beside the task.

#include "actors/allocation/task_launch.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

task_launch full() {
  task_launch x;
  x.experiment = {7};
  x.task_name = "7.t";
  x.owner = "alice";
  x.user_token = "U";
  x.cluster_id = "c";
  x.master_id = "m";
  x.config = value{{"name", "n"}, {"searcher", {{"metric", "loss"}}}};
  x.hparams = {{"lr", 0.1}};
  x.seed = 4'000'000'000;
  x.context = "blob";
  x.entrypoint = {"/bin/sh", "-c", "python3 train.py"};
  x.mode = launch_mode::per_slot;
  x.env = {{"A", "b"}};
  x.checkpoint_dir = "/data/ck";
  x.checkpoint_store = "shared_fs:/data/ck";
  x.allocation_name = "7.t.3";
  x.session_token = "S";
  x.token = "link";
  x.resume = "uuid-9";
  x.resume_steps = 1LL << 40;
  x.node_rank = 1;
  x.nodes = 2;
  x.resources_id = "r-1";
  x.slots = {2, 3};
  x.first_rank = 2;
  x.ranks = 4;
  x.ports = {1, 2, 3, 4};
  x.gpu_uuids = {"GPU-1"};
  x.sandbox = {"/home/$AGENT_USER",
               {{"/d", "data", true, "rslave"}},
               1 << 20,
               task_account{7, 8, "ada", "lab"},
               "module load x\n"};
  x.services = {{"7.t:80", 80, true, false, false}, {"7.t", 0, false, true, true}};
  return x;
}

// These keys are in files beside running tasks, and in messages to agents of other versions.
TEST(TaskLaunch, KeepsItsKeys) {
  EXPECT_EQ(
    to_json(parse_msgpack(encode(full())).value()),
    R"({"allocation_name":"7.t.3","checkpoint_dir":"/data/ck","checkpoint_store":"shared_fs:/data/ck","cluster_id":"c",)"
    R"("config":{"name":"n","searcher":{"metric":"loss"}},"context":"blob","entrypoint":["/bin/sh","-c","python3 train.py"],"env":{"A":"b"},"experiment":7,"first_rank":2,)"
    R"("gpu_uuids":["GPU-1"],"hparams":{"lr":0.1},"launch":"per_slot","master_id":"m","node_rank":1,"nodes":2,"owner":"alice",)"
    R"("ports":[1,2,3,4],"ranks":4,"resources_id":"r-1","resume":"uuid-9","resume_steps":1099511627776,)"
    R"("sandbox":{"account":{"gid":8,"group":"lab","uid":7,"user":"ada"},"mounts":[{"container_path":"data","host_path":"/d","propagation":"rslave","read_only":true}],)"
    R"("shm_bytes":1048576,"startup_hook":"module load x\n","work_dir":"/home/$AGENT_USER"},"seed":4000000000,)"
    R"("services":[{"id":"7.t:80","port":80,"socket":false,"tcp":true,"unauthenticated":false},)"
    R"({"id":"7.t","port":0,"socket":true,"tcp":false,"unauthenticated":true}],)"
    R"("session_token":"S","slots":[2,3],"task_id":"7.t","token":"link","user_token":"U"})");
}

TEST(TaskLaunch, IsReadBack) {
  const auto bytes = encode(full());
  const auto again = decode_launch(bytes);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(encode(*again), bytes);
  const auto empty = decode_launch(encode(task_launch{}));
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->sandbox, sandbox_terms{});
  EXPECT_EQ(again->sandbox, full().sandbox);
  EXPECT_FALSE(empty->gpu_uuids) << "none and an empty list differ: an empty list hides all GPUs";
}

TEST(TaskLaunch, TellsWhatTheGatewayNeedsWithoutTheRest) {
  for (const auto& spec : {launch_spec(encode(full())), launch_spec(full())}) {
    const auto doors = spec.doors();
    ASSERT_TRUE(doors);
    EXPECT_EQ(doors->token, "link");
    EXPECT_EQ(doors->checkpoint_dir, "/data/ck");
  }
  EXPECT_EQ(launch_spec(to_msgpack(value::object({{"token", 7}}))).doors()->token, "");
  EXPECT_FALSE(launch_spec(to_msgpack(value::array())).doors());
  EXPECT_FALSE(launch_spec(encode(full()).substr(0, 50)).doors());
}

TEST(TaskLaunch, TravelsAsBytesAndStaysALaunchWithinAProcess) {
  const launch_spec here(full());
  msgpack::sbuffer bytes;
  msgpack::pack(bytes, here);
  const auto there = msgpack::unpack(bytes.data(), bytes.size()).get().as<launch_spec>();
  EXPECT_EQ(there.bytes(), encode(full()));
  EXPECT_EQ(there, here);
  EXPECT_NE(launch_spec(task_launch{}), here);
  EXPECT_EQ(encode(here.read().value()), encode(full()));
  EXPECT_EQ(encode(there.read().value()), encode(full()));
  EXPECT_FALSE(launch_spec("\xc1").read());
}

// A part of what `troupe` 2026-11 wrote beside a task: it has keys that nobody reads any more and variables
// that are not texts, and it lacks all keys that came later.
TEST(TaskLaunch, OfAnEarlierVersionIsRead) {
  const auto old = parse_json(
    R"({"experiment": 7, "trial": 12, "run": 3, "preemption_timeout": 3600, "slots": [2], "token": "link", "checkpoint_dir": "/ck",
        "launch": "per_agent", "env": {"N": 3}, "hparams": null, "ports": [1, 2, 3, 4]})");
  const auto got = decode_launch(to_msgpack(*old));
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->token, "link");
  EXPECT_EQ(got->slots, std::vector<int>{2});
  EXPECT_EQ(got->env.at("N"), "3");
  EXPECT_EQ(got->nodes, 1);
  EXPECT_EQ(got->ranks, 1);
  EXPECT_TRUE(got->hparams.is_object());
}

TEST(TaskLaunch, OfAnotherKindOfValueIsRefusedByItsKey) {
  for (const char* key :
       {"entrypoint", "slots", "token", "nodes", "launch", "env", "experiment", "sandbox"}) {
    auto bad = parse_msgpack(encode(full())).value();
    bad[key] = true;
    const auto got = decode_launch(to_msgpack(bad));
    ASSERT_FALSE(got) << key;
    EXPECT_EQ(got.error().code, errc::corrupt);
    EXPECT_NE(got.error().what.find(key), std::string::npos) << got.error().what;
  }
  EXPECT_FALSE(decode_launch(to_msgpack(value::array())));
  EXPECT_FALSE(decode_launch("\xc1"));
}

TEST(TaskLaunch, ThatNoAgentCouldStartIsRefused) {
  EXPECT_TRUE(check(full()));
  struct {
    void (*spoil)(task_launch&);
    const char* says;
  } cases[] = {
    {[](task_launch& x) { x.entrypoint.clear(); }, "entrypoint"},
    {[](task_launch& x) { x.entrypoint = {""}; }, "entrypoint"},
    {[](task_launch& x) { x.entrypoint.push_back(std::string("a\0b", 3)); }, "zero byte"},
    {[](task_launch& x) { x.env["A=B"] = ""; }, "'A=B'"},
    {[](task_launch& x) { x.env["A"] = std::string("\0", 1); }, "'A'"},
    {[](task_launch& x) { x.checkpoint_dir = "data"; }, "'data'"},
  };
  for (const auto& c : cases) {
    auto x = full();
    c.spoil(x);
    const auto refused = check(x);
    ASSERT_FALSE(refused) << c.says;
    EXPECT_EQ(refused.error().code, errc::invalid);
    EXPECT_NE(refused.error().what.find(c.says), std::string::npos) << refused.error().what;
  }
}

} // namespace
} // namespace troupe
