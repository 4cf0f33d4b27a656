// Tests what happens to the sandboxes of one host, event by event, and how a process is made.

#include "actors/host/worker_runtime.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using workers::end_reason;

const time_point t0{1000s};
const allocation_id one{{1}, {1}}, two{{2}, {1}}, three{{3}, {1}};

std::string list(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& x : all)
    text += " " + x;
  return text;
}
std::string text(const start_sandbox& x) { return "start(" + to_string(x.order.allocation) + ")"; }
std::string text(const recall_task& x) { return "recall(" + to_string(x.allocation) + ")"; }
std::string text(const look_after_end& x) {
  return "look(" + to_string(x.allocation) + (x.disks_too ? " disks" + list(x.disks) : "") +
         (x.learn ? " learn" : "") + ")";
}
std::string text(const look_at_disks& x) { return "disks(" + list(x.disks) + ")"; }
std::string text(const kill_sandbox& x) { return "kill(" + to_string(x.allocation) + ")"; }
std::string text(const drop_sandbox& x) { return "drop(" + to_string(x.allocation) + ")"; }
std::string text(const renew_lease& x) {
  return std::string(x.thaw ? "thaw(" : "renew(") + to_string(x.allocation) + " " +
         std::to_string(x.left.count()) + ")";
}
std::string text(const set_leases& x) {
  return "leases(" + std::to_string(x.freeze.count() / 1000) + " " + std::to_string(x.adopt.count() / 1000) +
         ")";
}
std::string text(const adopt_sandboxes&) { return "adopt"; }
std::string text(const keep_ports& x) {
  return "keep(" + to_string(x.allocation) + " " + std::to_string(x.ports.size()) + ")";
}
std::string text(const release_task& x) {
  return "release(" + to_string(x.allocation) + (x.token.empty() ? "" : " " + x.token) + ")";
}
std::string text(const tell_started& x) {
  return std::string(x.adopted ? "adopted(" : "up(") + to_string(x.allocation) + " " + std::to_string(x.pid) +
         " slots" + std::to_string(x.task.slots.size()) + ")";
}
std::string text(const tell_rank_failed& x) {
  return "rank(" + to_string(x.allocation) + " " + std::to_string(x.rank) + " " + x.detail + ")";
}
std::string text(const tell_ended& x) {
  const auto& t = x.task;
  return "end(" + to_string(t.allocation) +
         (t.signal ? " signal " + std::to_string(t.signal) : " " + std::to_string(t.exit_code)) +
         (t.certain ? "" : " unsure") + (t.detail.empty() ? "" : " '" + t.detail + "'") + ")";
}
std::string text(const tell_all_adopted&) { return "all adopted"; }

std::string show(const std::vector<worker_runtime_action>& actions) {
  std::string all;
  for (const auto& action : actions)
    all += (all.empty() ? "" : " ") + std::visit([](const auto& x) { return text(x); }, action);
  return all;
}

struct moment {
  worker_runtime_event event;
  duration at;
  std::string actions;
};

void play(const std::vector<moment>& moments, int most_starts = 2) {
  worker_runtime runtime(30s, most_starts);
  int row = 0;
  for (const auto& m : moments)
    EXPECT_EQ(show(runtime.apply(m.event, t0 + m.at)), m.actions) << "row " << row++;
}

launch_ordered launch(allocation_id id, duration lease_from = 0s) {
  return {{id, {0}, "spec", ""}, t0 + lease_from};
}
hosted_task about(bool from_zygote = false) {
  return {{0}, "token", "/checkpoints", {12350}, false, 0, from_zygote};
}
sandbox_said up(allocation_id id, bool adopted = false) {
  workers::task_started x;
  x.id = to_string(id);
  x.pid = 7;
  x.adopted = adopted;
  return {x};
}
workers::rank_end rank(int number, int code, bool signalled = false, bool killed = false, duration at = 0s) {
  return {number, signalled, code, killed, false, t0 + at};
}
sandbox_said exited(allocation_id id, std::vector<workers::rank_end> ranks,
                    end_reason why = end_reason::exited, std::string detail = {}) {
  return {workers::task_exited{to_string(id), why, std::move(detail), std::move(ranks), t0}};
}
constexpr std::uint64_t enough = 1u << 30;

TEST(WorkerRuntime, StartsAFewAtOnceAndTheOthersInTheirOrder) {
  play({
    {launch(one), 0s, "start(1.1)"},
    {launch(two), 0s, "start(2.1)"},
    {launch(three), 0s, ""},
    {launch(three), 0s, ""}, // the order is repeated
    {task_prepared{two, about()}, 0s, ""},
    {start_ended{two, ""}, 1s, "renew(2.1 29000) start(3.1)"},
    {up(two), 1s, "up(2.1 7 slots1)"},
    {exited(two, {rank(0, 0)}), 2s, "release(2.1 token) end(2.1 0)"},
    {drop_sandbox_ordered{two}, 3s, "drop(2.1)"},
  });
}

TEST(WorkerRuntime, HearsOfATaskBeforeItsStartHasReturned) {
  play({
    {launch(one), 0s, "start(1.1)"},
    {task_prepared{one, about()}, 0s, ""},
    {up(one), 0s, "up(1.1 7 slots1)"},
    {exited(one, {rank(0, 0)}), 0s, "release(1.1 token) end(1.1 0)"},
    {start_ended{one, ""}, 0s, ""},
    {launch(two), 0s, "start(2.1)"},
    {launch(three), 0s, "start(3.1)"}, // task 1.1 has ended, so it no longer counts
  });
}

TEST(WorkerRuntime, KillsWhatWaitsWithoutAStartAndWhatStartsOnceItRuns) {
  play(
    {
      {launch(one), 0s, "start(1.1)"},
      {launch(two), 0s, ""},
      {kill_sandbox_ordered{two}, 0s, "end(2.1 signal 9 unsure 'killed before it ran')"},
      {kill_sandbox_ordered{one}, 0s, ""},
      {task_prepared{one, about()}, 0s, ""},
      {start_ended{one, ""}, 0s, "renew(1.1 30000) kill(1.1)"},
      {kill_sandbox_ordered{one}, 0s, "kill(1.1)"}, // the order is repeated, as the task is not dead yet
      {exited(one, {rank(0, 9, true, true)}, end_reason::killed), 1s,
       "release(1.1 token) end(1.1 signal 9 unsure 'signal 9')"},
      {kill_sandbox_ordered{three}, 1s, "kill(3.1)"}, // the process runtime knows whether this task exists
    },
    1);
}

TEST(WorkerRuntime, SaysWhatAnExitMeans) {
  const struct {
    sandbox_said said;
    std::string told;
  } rows[] = {
    {exited(one, {rank(0, 0), rank(1, 0)}), "release(1.1 token) end(1.1 0)"},
    {exited(one, {rank(0, 3)}), "look(1.1 disks /checkpoints)"},
    {exited(one, {rank(0, 9, true, true)}, end_reason::killed),
     "release(1.1 token) end(1.1 signal 9 unsure 'signal 9')"},
    {exited(one, {rank(0, 0)}, end_reason::killed), "release(1.1 token) end(1.1 0 unsure)"},
    {exited(one, {rank(0, 9, true, true)}, end_reason::lease),
     "release(1.1 token) end(1.1 signal 9 unsure 'signal 9')"},
    {exited(one, {}, end_reason::failed, "no such command"), "look(1.1 disks /checkpoints)"},
    {{workers::task_lost{"1.1", "killed from outside"}},
     "release(1.1 token) end(1.1 0 unsure 'killed from outside')"},
  };
  for (const auto& row : rows)
    play({{launch(one), 0s, "start(1.1)"},
          {task_prepared{one, about()}, 0s, ""},
          {start_ended{one, ""}, 0s, "renew(1.1 30000)"},
          {row.said, 1s, row.told}});
}

TEST(WorkerRuntime, NamesTheRankThatFailedByItselfBeforeTheOthersWereKilled) {
  play({
    {launch(one), 0s, "start(1.1)"},
    {task_prepared{one, about()}, 0s, ""},
    {start_ended{one, ""}, 0s, "renew(1.1 30000)"},
    {exited(one, {rank(0, 9, true, true, 1s), rank(1, 5, false, false, 3s), rank(2, 4, false, false, 2s)},
            end_reason::killed),
     4s, "look(1.1 disks /checkpoints)"},
    {end_looked{one, enough}, 4s, "release(1.1 token) end(1.1 4 'exit code 4 (rank 2)')"},
  });
}

TEST(WorkerRuntime, AFullDiskIsNobodysFailure) {
  play({
    {launch(one), 0s, "start(1.1)"},
    {task_prepared{one, about()}, 0s, ""},
    {start_ended{one, ""}, 0s, "renew(1.1 30000)"},
    {launch(two), 0s, "start(2.1)"},
    {exited(one, {rank(0, 1)}), 1s, "look(1.1 disks /checkpoints)"},
    {end_looked{one, 0}, 1s, "release(1.1 token) end(1.1 1 unsure 'exit code 1, and its disk was full')"},
    {start_ended{two, "no space left"}, 5s, "look(2.1 disks)"},
    {end_looked{two, enough}, 5s, // the disk was full at the look 4 s before
     "release(2.1) end(2.1 127 unsure 'no space left, and its disk was full')"},
    {launch(three), 6s, "start(3.1)"},
    {start_ended{three, "no such folder"}, 7s, "look(3.1 disks)"},
    {end_looked{three, enough}, 7s, "release(3.1) end(3.1 127 'no such folder')"},
  });
}

TEST(WorkerRuntime, LearnsFromWhatCameFromAZygoteBeforeItsEndIsTold) {
  play({
    {launch(one), 0s, "start(1.1)"},
    {task_prepared{one, about(true)}, 0s, ""},
    {start_ended{one, ""}, 0s, "renew(1.1 30000)"},
    {exited(one, {rank(0, 0)}), 1s, "look(1.1 learn)"},
    {exited(one, {rank(0, 0)}), 1s, ""},
    {end_looked{one, {}}, 1s, "release(1.1 token) end(1.1 0)"},
  });
}

TEST(WorkerRuntime, RenewsLeasesAndThawsWhatFroze) {
  play({
    {launch(one, -10s), 0s, "start(1.1)"},
    {task_prepared{one, about()}, 0s, ""},
    {start_ended{one, ""}, 0s, "renew(1.1 20000)"},
    {leases_renewed{t0 + 1s}, 2s, "disks( /checkpoints) renew(1.1 29000)"},
    // A lease never becomes shorter, and only one look at the disks is under way.
    {leases_renewed{t0 - 5s}, 3s, "renew(1.1 28000)"},
    {disks_looked{enough}, 3s, ""},
    {{sandbox_said{workers::task_frozen{"1.1", "lease"}}}, 40s, ""},
    {leases_renewed{t0 + 1s}, 60s, "disks( /checkpoints) thaw(1.1 1)"},
    {leases_renewed{t0 + 61s}, 61s, "renew(1.1 30000)"},
  });
}

TEST(WorkerRuntime, TakesTheLeasesOfTheClusterBeforeAnythingIsLaunched) {
  play({
    {leases_renewed{{}, 4s, 1s}, 0s, "leases(4000 1000)"},
    {leases_renewed{{}, 4s, 1s}, 0s, ""}, // the same leases again
    {launch(one), 0s, "start(1.1)"},
    {task_prepared{one, about()}, 0s, ""},
    {start_ended{one, ""}, 0s, "renew(1.1 4000)"},
    {leases_renewed{t0 + 1s, 4s, 1s}, 2s, "disks( /checkpoints) renew(1.1 3000)"},
  });
}

TEST(WorkerRuntime, TellsOfAFailedRankOfAGangOnly) {
  auto gang = about();
  gang.tells_ranks = true;
  gang.first_rank = 4;
  const sandbox_said failed{workers::rank_ended{"1.1", rank(1, 3)}};
  const sandbox_said killed{workers::rank_ended{"1.1", rank(0, 9, true, true)}};
  play({{launch(one), 0s, "start(1.1)"},
        {task_prepared{one, gang}, 0s, ""},
        {start_ended{one, ""}, 0s, "renew(1.1 30000)"},
        {failed, 1s, "rank(1.1 5 exit code 3 (rank 1))"},
        {killed, 1s, ""}});
  play({{launch(one), 0s, "start(1.1)"},
        {task_prepared{one, about()}, 0s, ""},
        {start_ended{one, ""}, 0s, "renew(1.1 30000)"},
        {failed, 1s, ""}}); // The only rank of a task is not reported: the end of the task tells it.
}

TEST(WorkerRuntime, AdoptsWhatItsPredecessorLeft) {
  play({
    {adoption_ordered{}, 0s, "adopt"},
    {up(one, true), 0s, "recall(1.1)"},
    {sandbox_said{workers::task_frozen{"1.1", "lease"}}, 0s, ""},
    {exited(two, {rank(0, 0)}), 0s, "recall(2.1)"},
    {sandbox_said{workers::inventory_taken{2}}, 0s, ""},
    {task_recalled{one, about()}, 0s, "keep(1.1 1) adopted(1.1 7 slots1)"},
    // the record of this task cannot be read
    {task_recalled{two, {}}, 0s, "release(2.1) end(2.1 0) all adopted"},
    {leases_renewed{t0}, 1s, "disks( /checkpoints) thaw(1.1 29000)"},
    {launch(three), 1s, "start(3.1)"},
  });
  play({
    {adoption_ordered{}, 0s, "adopt"},
    {sandbox_said{workers::inventory_taken{0}}, 0s, "all adopted"},
  });
}

TEST(WorkerRuntime, ChoosesHowAProcessIsMade) {
  const struct {
    start_facts known;
    start_choice choice;
  } rows[] = {
    {{}, {}},                                   // a shell runs the text
    {{.program = true}, {.program = true}},     // no shell is needed
    {{.hook = true, .program = true}, {}},      // the script runs the hook first
    {{.one_host = false, .program = true}, {}}, // the script connects to the other hosts first
    {{.program = true, .python_script = true}, {.program = true}},
    {{.program = true, .python_script = true, .script_there = true, .zygotes = true},
     {.forked = true, .program = true}},
    // the Python script is not in the working directory
    {{.program = true, .python_script = true, .zygotes = true}, {.program = true}},
    {{.hook = true, .program = true, .python_script = true, .script_there = true, .zygotes = true},
     {.own_script = true}},
    // A forked process connects to the other hosts by itself.
    {{.one_host = false, .python_script = true, .script_there = true, .zygotes = true},
     {.forked = true, .own_script = true}},
  };
  for (const auto& row : rows)
    EXPECT_EQ(start_of(row.known), row.choice) << &row - rows;
}

} // namespace
} // namespace troupe
