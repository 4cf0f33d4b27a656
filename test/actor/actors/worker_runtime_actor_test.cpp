// A worker runtime over real sandboxes: what it tells its agent, and what the next runtime adopts. It has
// threads and processes, so the test waits for its messages; the test's thread is the agent.

#include "actors/allocation/task_launch.hpp"
#include "actors/host/worker_runtime_actor.hpp"
#include "actors/shells/actor_clocks.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

namespace troupe {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class WorkerRuntime : public testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe-runtime-XXXXXX";
    folder = ::mkdtemp(pattern);
    fs::create_directories(folder / "tasks");
    start();
  }
  void TearDown() override {
    end(true);
    fs::remove_all(folder);
  }

  void start() {
    worker_runtime_setup setup;
    setup.agent = "a";
    setup.agent_id = "1";
    setup.tasks = folder / "tasks";
    setup.program = fs::path(TROUPE_BINARY_DIR) / "troupe-task";
    setup.python = fs::path(TROUPE_SOURCE_DIR) / "workers/python";
    setup.harness_endpoint = [] { return std::string("tcp://127.0.0.1:1"); };
    setup.harness_file = folder / "harness";
    setup.kill_on_stop = [this] { return with_tasks; };
    setup.fetch = [](const std::string& name) -> result<std::string> {
      return error{errc::not_found, "no blob " + name};
    };
    runtime =
      spawn_worker_runtime(system, std::move(setup), caf::actor_cast<agent_actor>(caf::actor{self.ptr()}));
  }
  void end(bool tasks_too) {
    with_tasks = tasks_too;
    self->send_exit(runtime, caf::exit_reason::user_shutdown);
    self->wait_for(runtime);
    runtime = nullptr;
  }
  void launch(allocation_id id, std::vector<std::string> words, std::string context = {}) {
    task_launch x;
    x.entrypoint = std::move(words);
    x.token = "a token";
    x.context = std::move(context);
    x.task_name = x.allocation_name = "1";
    self->send(runtime, launch_order{id, {0}, encode(x), boot_time(), ""});
  }
  /// The next news of the kind `wanted`; news of other kinds are skipped.
  task_news next(task_change wanted) {
    task_news found;
    found.change = task_change::nothing;
    for (bool waits = true; waits && found.change != wanted;)
      self->receive([&](task_news& x) { found = std::move(x); }, caf::after(60s) >> [&] { waits = false; });
    EXPECT_EQ(found.change, wanted);
    return found;
  }

  node_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  fs::path folder;
  bool with_tasks = true;
  worker_runtime_actor runtime;
  const allocation_id id{{1}, {1}};
};

TEST_F(WorkerRuntime, TellsTheStartAndTheEndOfATask) {
  launch(id, {"/bin/sh", "-c", "exit 3"});
  const auto began = next(task_change::launched);
  EXPECT_EQ(began.task.allocation, id);
  EXPECT_GT(began.task.pid, 0);
  const auto over = next(task_change::ended);
  EXPECT_EQ(over.task.exit_code, 3);
  EXPECT_TRUE(over.task.exited);
}

TEST_F(WorkerRuntime, WhatCannotBeStartedEndsWithTheReason) {
  launch(id, {"true"}, "a-blob-that-nobody-has");
  const auto over = next(task_change::ended);
  EXPECT_EQ(over.task.allocation, id);
  EXPECT_THAT(over.task.detail, testing::HasSubstr("no blob a-blob-that-nobody-has"));
}

TEST_F(WorkerRuntime, DestroysWhatItIsToldTo) {
  launch(id, {"/bin/sleep", "600"});
  next(task_change::launched);
  self->send(runtime, destroy_order{id});
  const auto over = next(task_change::ended);
  EXPECT_EQ(over.task.signal, 9);
}

TEST_F(WorkerRuntime, TheNextOneAdoptsWhatRunsAndTellsWhatHasEnded) {
  const allocation_id ends{{2}, {1}};
  launch(id, {"/bin/sleep", "600"});
  next(task_change::launched);
  launch(ends, {"/bin/true"});
  next(task_change::ended);
  end(false);
  start();
  self->send(runtime, adopt_order{});
  std::map<allocation_id, task_change> found;
  // A task that has ended may first be found alive, where its holder is just about to end.
  const auto told = [&] { return found.contains(ends) && found[ends] == task_change::ended; };
  for (bool all = false, waits = true; waits && !(all && told());)
    self->receive(
      [&](const task_news& x) {
        if (x.change == task_change::all_adopted)
          all = true;
        else if (x.change != task_change::nothing)
          found[x.task.allocation] = x.change;
      },
      caf::after(60s) >> [&] { waits = false; });
  EXPECT_EQ(found,
            (std::map<allocation_id, task_change>{{id, task_change::adopted}, {ends, task_change::ended}}));
  self->send(runtime, destroy_order{id});
  EXPECT_EQ(next(task_change::ended).task.allocation, id);
}

} // namespace
} // namespace troupe
