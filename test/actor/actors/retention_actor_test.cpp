// What a sweep notes before it removes a file, and how a log that is too old goes. Retention has a thread of
// its own; this one is the journal and the cluster.

#include "actors/retention/retention_actor.hpp"
#include "actors/shells/probed.hpp"
#include "storage/stored_journal.hpp"

#include <caf/all.hpp>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace troupe {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class RetentionActor : public testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe-retention-XXXXXX";
    folder = ::mkdtemp(pattern);
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    journal = std::move(*made);
    const value config{{"searcher", {{"metric", "loss"}, {"smaller_is_better", true}}},
                       {"checkpoint_storage",
                        {{"type", "directory"},
                         {"save_experiment_best", 0},
                         {"save_trial_best", 0},
                         {"save_trial_latest", 1}}},
                       {"retention_policy", {{"log_retention_days", 0}}}};
    keep("cluster",
         {encode(experiment_created{t0, {1}, config, "name", "owner", "", "save_trial_latest: 1", ""})});
    search_stepped step{.at = t0};
    step.created = {{{7}, "1", value::object(), 3, ""}};
    keep("experiment/1", {encode(step), encode(experiment_changed{t0, experiment_state::completed, ""})});
    keep("trial/7", {encode(trial_activated{t0}), encode(run_started{t0, {1}, "", 0}),
                     encode(checkpoint_recorded{t0, {1}, saved(old, 10)}),
                     encode(checkpoint_recorded{t0, {1}, saved(latest, 20)}), encode(run_ended{t0, {1}}),
                     encode(trial_ended{t0})});
    ASSERT_TRUE(
      journal->log({trial_id{7}, {{1, t0, {trial_id{7}, {1}}, "a", 0, "stdout", "", "a line"}}, "spool", 1}));
    ASSERT_TRUE(journal->commit());
    const auto me = caf::actor{self.ptr()};
    retention = spawn_retention(
      system, {caf::actor_cast<cluster_actor>(me), caf::actor_cast<journal_actor>(me), journal->reads()});
  }
  void TearDown() override {
    self->send_exit(retention, caf::exit_reason::user_shutdown);
    self->wait_for(retention);
    fs::remove_all(folder);
  }
  void keep(const std::string& entity, std::vector<std::string> facts) {
    ASSERT_TRUE(journal->append({entity, 0, std::move(facts)}));
  }
  checkpoint saved(const std::string& uuid, std::int64_t steps) {
    fs::create_directories(folder / uuid);
    return {uuid, steps, {{"weights", 1}}, value::object(), (folder / uuid).string()};
  }
  /// Waits for an append and answers it.
  append_facts appended(const error* refused = nullptr) {
    append_facts got;
    self->receive(
      [&](append_facts& x) -> caf::result<committed> {
        got = std::move(x);
        EXPECT_TRUE(fs::exists(folder / old)) << "its fact is not durable yet";
        if (refused)
          return to_caf(*refused);
        return committed{};
      },
      caf::after(60s) >> [] { ADD_FAILURE() << "nothing was noted"; });
    return got;
  }

  const time_point t0{1'700'000'000s};
  const std::string old = "0189c0de-0000-7000-8000-000000000001",
                    latest = "0189c0de-0000-7000-8000-000000000002";
  node_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  fs::path folder;
  std::unique_ptr<storage::journal> journal;
  retention_actor retention;
};

TEST_F(RetentionActor, NotesThatACheckpointIsDeletedBeforeItsFilesGo) {
  self->send(retention, sweep_experiment{{1}});
  const error taken{errc::gap, "somebody else took the number"};
  EXPECT_EQ(appended(&taken).entity, "trial/7");
  const auto again = appended();
  ASSERT_EQ(again.facts.size(), 1u);
  EXPECT_EQ(again.first, 6u);
  bool finished = false;
  self->receive([&](const sweep_finished& x) { finished = x.id == experiment_id{1}; },
                caf::after(60s) >> [] {});
  EXPECT_TRUE(finished);
  EXPECT_FALSE(fs::exists(folder / old));
  EXPECT_TRUE(fs::exists(folder / latest));
}

TEST_F(RetentionActor, ErasesTheLogOfATrialWhoseTimeIsOver) {
  auto answer = self->request(retention, 60s, clean_logs{});
  task_id erased;
  self->receive(
    [&](const erase_log& x) {
      erased = x.task;
      return committed{};
    },
    caf::after(60s) >> [] { ADD_FAILURE() << "nothing was erased"; });
  EXPECT_EQ(erased, task_id{trial_id{7}});
  std::uint64_t trials = 0;
  answer.receive([&](const logs_cleaned& x) { trials = x.trials; },
                 [](const caf::error&) { ADD_FAILURE() << "no answer"; });
  EXPECT_EQ(trials, 1u);
}

TEST_F(RetentionActor, ErasesTheLogsOfOtherTasksAfterTheTimeOfTheCluster) {
  const auto shell = task_id::of(task_kind::shell, 1, 2), open = task_id::of(task_kind::shell, 1, 3);
  configuration_changed in_force;
  in_force.at = t0;
  in_force.revision = 1;
  in_force.configuration = {{"cluster", {{"log_retention", "30d"}}}};
  ASSERT_TRUE(journal->append({"cluster", 1, {encode(in_force)}}));
  for (const auto& id : {shell, open}) {
    task_created made;
    made.at = t0;
    made.id = id;
    std::vector<std::string> facts{encode(made)};
    if (id == shell)
      facts.push_back(encode(task_ended{t0}));
    keep(entity(id), std::move(facts));
    ASSERT_TRUE(journal->log({id, {{1, t0, {id, {1}}, "a", 0, "stdout", "", "a line"}}, to_string(id), 1}));
  }
  ASSERT_TRUE(journal->commit());
  auto answer = self->request(retention, 60s, clean_logs{});
  std::set<task_id> erased;
  for (int i = 0; i < 2; ++i)
    self->receive(
      [&](const erase_log& x) {
        erased.insert(x.task);
        return committed{};
      },
      caf::after(60s) >> [] { ADD_FAILURE() << "nothing was erased"; });
  EXPECT_EQ(erased, (std::set<task_id>{trial_id{7}, shell}));
  answer.receive([&](const logs_cleaned& x) { EXPECT_EQ(x.trials, 2u); },
                 [](const caf::error&) { ADD_FAILURE() << "no answer"; });
}

TEST_F(RetentionActor, ErasesAllThatAnExperimentHas) {
  erase_stored all;
  all.experiment = {1};
  auto answer = self->request(retention, 60s, all);
  erase_log asked;
  self->receive(
    [&](const erase_log& x) {
      asked = x;
      return committed{};
    },
    caf::after(60s) >> [] { ADD_FAILURE() << "nothing was erased"; });
  EXPECT_EQ(asked.task, task_id{trial_id{7}});
  EXPECT_TRUE(asked.reports);
  std::vector<trial_id> trials;
  answer.receive([&](const stored_erased& x) { trials = x.trials; },
                 [](const caf::error&) { ADD_FAILURE() << "no answer"; });
  EXPECT_EQ(trials, std::vector<trial_id>{{7}});
  EXPECT_FALSE(fs::exists(folder / old));
  EXPECT_FALSE(fs::exists(folder / latest));
}

TEST_F(RetentionActor, ErasesWhatASingleTrialHas) {
  for (const trial_id trial : {trial_id{8}, trial_id{7}}) {
    erase_stored one;
    one.experiment = {1};
    one.trial = trial;
    auto answer = self->request(retention, 60s, one);
    if (trial == trial_id{7})
      self->receive(
        [&](const erase_log& x) {
          EXPECT_EQ(x.task, task_id{trial_id{7}});
          EXPECT_TRUE(x.reports);
          return committed{};
        },
        caf::after(60s) >> [] { ADD_FAILURE() << "nothing was erased"; });
    std::vector<trial_id> trials;
    answer.receive([&](const stored_erased& x) { trials = x.trials; },
                   [](const caf::error&) { ADD_FAILURE() << "no answer"; });
    const bool its = trial == trial_id{7}; // one that is gone already has nothing
    EXPECT_EQ(trials, its ? std::vector<trial_id>{trial} : std::vector<trial_id>{});
    EXPECT_EQ(fs::exists(folder / old), !its);
    EXPECT_EQ(fs::exists(folder / latest), !its);
  }
}

TEST_F(RetentionActor, SaysWhatIsLeftBeforeItErasesFiles) {
  std::ofstream(folder / latest / "weights") << "x";
  std::ofstream(folder / latest / "other") << "x"; // not one of the checkpoint's own
  erase_stored look;
  look.checkpoints = {latest};
  look.globs = {"w*"};
  look.only_look = true;
  std::map<std::string, std::map<std::string, std::int64_t>> left;
  self->request(retention, 60s, look)
    .receive([&](const stored_erased& x) { left = x.left; },
             [](const caf::error&) { ADD_FAILURE() << "no answer"; });
  ASSERT_TRUE(left.contains(latest));
  EXPECT_TRUE(left.at(latest).empty());
  EXPECT_TRUE(fs::exists(folder / latest / "weights")) << "it only looked";
}

} // namespace
} // namespace troupe
