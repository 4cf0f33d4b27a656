// What a sweep notes before it removes a file, and how a log that is too old is removed. The test stands for
// the journal and the cluster.

#include "actors/retention/retention_actor.hpp"
#include "actors/retention/storage_history.hpp"
#include "storage/stored_journal.hpp"

#include "stage.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace troupe {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class RetentionActor : public Stage {
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
    scheduler().advance_time(t0.time_since_epoch() + std::chrono::hours(24 * 365));
    start();
  }
  void TearDown() override {
    Stage::TearDown();
    retention = nullptr;
    fs::remove_all(folder);
  }
  void start() {
    const auto me = caf::actor{self.ptr()};
    retention = on_stage(spawn_retention(
      *system_, {caf::actor_cast<cluster_actor>(me), caf::actor_cast<journal_actor>(me), journal->reads()}));
  }
  /// Lets all actors run, then takes the message that was sent to the test; fails where there is none.
  template <class Take>
  void hear(Take take, const char* what) {
    run();
    self->receive(
      std::move(take), caf::after(0s) >> [what] { ADD_FAILURE() << what; });
  }
  template <class Pending, class Take>
  void answered(Pending& pending, Take take) {
    run();
    pending.receive(std::move(take), [](const caf::error& why) { ADD_FAILURE() << from_caf(why).what; });
  }
  void keep(const std::string& entity, std::vector<std::string> facts) {
    ASSERT_TRUE(journal->append({entity, 0, std::move(facts)}));
  }
  checkpoint saved(const std::string& uuid, std::int64_t steps) {
    fs::create_directories(folder / uuid);
    std::ofstream(folder / uuid / "weights") << "w";
    return {uuid, steps, {{"weights", 1}}, value::object(), (folder / uuid).string()};
  }
  /// Asks what a removal of these files of the latest checkpoint would leave.
  erase_stored look_for(std::vector<std::string> globs) {
    erase_stored look;
    look.checkpoints = {latest};
    look.globs = std::move(globs);
    look.only_look = true;
    return look;
  }
  /// An experiment whose storage is a bucket, with a checkpoint of which no file is here.
  void keep_in_a_bucket(const char* keeps = "{}") {
    value config{{"searcher", {{"metric", "loss"}}},
                 {"checkpoint_storage", {{"type", "s3"}, {"bucket", "b"}}}};
    config["checkpoint_storage"].update(*parse_json(keeps));
    experiment_created made{t0, {2}, config, "name", "owner", "", "", ""};
    ASSERT_TRUE(journal->append({"cluster", 1, {encode(made)}}));
    search_stepped step{.at = t0};
    step.created = {{{8}, "1", value::object(), 3, ""}};
    keep("experiment/2", {encode(step), encode(experiment_changed{t0, experiment_state::completed, ""})});
    keep("trial/8", {encode(trial_activated{t0}), encode(run_started{t0, {1}, "", 0}),
                     encode(checkpoint_recorded{t0, {1}, saved(in_bucket, 10)}), encode(run_ended{t0, {1}}),
                     encode(trial_ended{t0})});
    ASSERT_TRUE(journal->commit());
    fs::remove_all(folder / in_bucket);
  }
  /// Waits for an append and answers it.
  append_facts appended(const error* refused = nullptr) {
    append_facts got;
    hear(
      [&](append_facts& x) -> caf::result<committed> {
        got = std::move(x);
        there_then = fs::exists(folder / old);
        if (refused)
          return to_caf(*refused);
        return committed{};
      },
      "nothing was noted");
    return got;
  }
  /// The same for an append that begins or ends a collection.
  checkpoint_files_removed collected(const error* refused = nullptr) {
    const auto got = appended(refused);
    auto fact = got.facts.size() == 1 ? decode_as<collection_fact>(got.facts.front())
                                      : result<collection_fact>(error{errc::invalid, got.entity});
    if (!fact) {
      ADD_FAILURE() << fact.error().what;
      return {};
    }
    const auto& x = std::get<checkpoint_files_removed>(*fact);
    EXPECT_EQ(got.entity, entity(x.id));
    EXPECT_EQ(got.first, x.step == deletion_step::ordered ? 0u : 1u);
    return x;
  }
  /// Stands for the cluster, which is asked to note checkpoints as deleted. Returns them.
  std::vector<std::string> noted(task_id by, const error* refused = nullptr) {
    std::vector<std::string> uuids;
    hear(
      [&](client_command& x) {
        EXPECT_EQ(x.name, "checkpoint.patch");
        EXPECT_EQ(x.allocation, to_string(allocation_id{by, {1}}));
        there_then = fs::exists(folder / old);
        for (const auto& one : x.fields["checkpoints"]) {
          EXPECT_EQ(one["files"], value::object());
          uuids.push_back(one["uuid"]);
        }
        return refused ? troupe::refused(*refused) : troupe::answered();
      },
      "nothing was noted");
    return uuids;
  }
  /// Stands for the cluster, which is asked for a task on an agent, and creates it.
  task_created created() {
    task_created made;
    hear(
      [&](client_command& x) {
        EXPECT_EQ(x.name, "task.create");
        EXPECT_EQ(x.fields["kind"], "checkpoint_gc");
        made.at = t0;
        made.id = task_id::of(task_kind::checkpoint_gc, 7, ++tasks);
        made.owner = x.user;
        made.config = x.fields["config"];
        made.details = x.fields["details"];
        return troupe::answered({{"id", to_string(made.id)}});
      },
      "no task was asked for");
    keep(entity(made.id), {encode(made), encode(run_started{made.at, {1}, "", 0})});
    EXPECT_TRUE(journal->commit());
    return made;
  }
  /// Ends that task, and lets retention look at it.
  void over(task_id id, task_state state, const std::string& why = {}) {
    run();
    EXPECT_TRUE(journal->append({entity(id), 2, {encode(task_ended{t0, state, 1, why})}}));
    EXPECT_TRUE(journal->commit());
    scheduler().advance_time(1s);
    run();
  }
  /// Waits for lines of a log, and answers them.
  std::vector<std::string> written(task_id of) {
    std::vector<std::string> texts;
    hear(
      [&](const append_log& x) {
        EXPECT_EQ(x.task, of);
        for (const auto& line : x.lines)
          texts.push_back(line.text);
        return committed{};
      },
      "nothing was written");
    return texts;
  }

  const time_point t0{1'700'000'000s};
  const std::string old = "0189c0de-0000-7000-8000-000000000001",
                    latest = "0189c0de-0000-7000-8000-000000000002",
                    in_bucket = "0189c0de-0000-7000-8000-000000000003";
  caf::scoped_actor self{*system_};
  fs::path folder;
  std::unique_ptr<storage::journal> journal;
  retention_actor retention;
  std::uint64_t tasks = 0; ///< tasks that were created
  bool there_then = false; ///< whether files of `old` were there at the last append
};

TEST_F(RetentionActor, NotesThatACheckpointIsDeletedBeforeItsFilesGo) {
  self->send(retention, sweep_experiment{{1}});
  const auto begun = collected();
  EXPECT_EQ(begun.step, deletion_step::ordered);
  EXPECT_EQ(begun.cause, "policy");
  EXPECT_EQ(begun.experiment, experiment_id{1});
  EXPECT_EQ(begun.owner, "owner");
  EXPECT_EQ(begun.by, "");
  EXPECT_TRUE(there_then);
  EXPECT_EQ(written(begun.id).size(), 1u);
  const error taken{errc::gap, "somebody else took the number"};
  EXPECT_EQ(noted(begun.id, &taken), std::vector<std::string>{old});
  EXPECT_TRUE(there_then) << "its fact is not durable yet";
  EXPECT_EQ(noted(begun.id), std::vector<std::string>{old});
  EXPECT_TRUE(there_then) << "its fact is not durable yet";
  EXPECT_EQ(written(begun.id), std::vector<std::string>{"Checkpoint " + old + ": 1 file removed"});
  EXPECT_EQ(written(begun.id), std::vector<std::string>{"Files of 1 checkpoint removed"});
  const auto ended = collected();
  EXPECT_EQ(ended.id, begun.id);
  EXPECT_EQ(ended.step, deletion_step::done);
  EXPECT_EQ(ended.removed, 1u);
  bool finished = false;
  hear([&](const sweep_finished& x) { finished = x.id == experiment_id{1}; }, "nothing was finished");
  EXPECT_TRUE(finished);
  EXPECT_FALSE(fs::exists(folder / old));
  EXPECT_TRUE(fs::exists(folder / latest));
}

TEST_F(RetentionActor, PlansAnewWhereACheckpointHasComeIntoUseSinceThePlan) {
  self->send(retention, sweep_experiment{{1}});
  const auto begun = collected();
  written(begun.id);
  const error in_use{errc::conflict, "it is in use"};
  EXPECT_EQ(noted(begun.id, &in_use), std::vector<std::string>{old});
  model_version_changed version;
  version.model = {1};
  version.version = 1;
  version.checkpoint = old;
  model_changed model;
  model.id = {1};
  ASSERT_TRUE(journal->append({"cluster", 1, {encode(model), encode(version)}}));
  ASSERT_TRUE(journal->commit());
  run();
  scheduler().advance_time(60s);
  EXPECT_EQ(collected().id, begun.id);
  EXPECT_EQ(written(begun.id), std::vector<std::string>{"Files of 0 checkpoints removed"});
  EXPECT_EQ(collected().step, deletion_step::done);
  EXPECT_TRUE(fs::exists(folder / old));
}

TEST_F(RetentionActor, ExperimentsWithNothingToCollectHaveNoTask) {
  const value config{{"searcher", {{"metric", "loss"}}}, {"checkpoint_storage", {{"save_trial_latest", 9}}}};
  ASSERT_TRUE(journal->append(
    {"cluster",
     1,
     {encode(experiment_created{t0, {2}, config, "name", "owner", "", "save_trial_latest: 9"})}}));
  ASSERT_TRUE(
    journal->append({"experiment/2", 0, {encode(experiment_changed{t0, experiment_state::completed})}}));
  ASSERT_TRUE(journal->commit());
  self->send(retention, sweep_experiment{{2}});
  experiment_id finished;
  hear([&](const sweep_finished& x) { finished = x.id; }, "nothing was finished");
  EXPECT_EQ(finished, experiment_id{2});
}

TEST_F(RetentionActor, GoesOnWithACollectionOfAnEarlierLife) {
  caf::anon_send_exit(retention, caf::exit_reason::user_shutdown);
  run();
  checkpoint_files_removed order;
  order.at = t0;
  order.by = "ann";
  order.id = task_id::of(task_kind::checkpoint_gc, 1, 2);
  order.experiment = {1};
  order.cause = "files";
  order.checkpoints = {old, latest, "0189c0de-0000-7000-8000-000000000009"};
  keep(entity(order.id), {encode(order)});
  // The deletion is noted, but the files are still there.
  ASSERT_TRUE(journal->append({"trial/7", 6, {encode(checkpoint_changed{t0, old, {}, "ann"})}}));
  ASSERT_TRUE(journal->commit());
  start();
  erase_stored go; // an order of the cluster, which has checked the things that it names once more
  go.tasks = {order.id};
  auto gone = self->request(retention, 60s, go);
  EXPECT_EQ(written(order.id), (std::vector<std::string>{
                                 "The master was restarted; continues to remove all files of 3 "
                                 "checkpoints of experiment 1, as ann asked",
                                 "Checkpoint " + old + ": 1 file removed", "Files of 1 checkpoint removed"}));
  const auto ended = collected();
  EXPECT_EQ(ended.id, order.id);
  EXPECT_EQ(ended.step, deletion_step::done);
  EXPECT_EQ(ended.by, "ann");
  answered(gone, [](const stored_erased&) {});
  EXPECT_FALSE(fs::exists(folder / old));
  EXPECT_TRUE(fs::exists(folder / latest)) << "nothing was noted of it";
}

TEST_F(RetentionActor, ErasesTheLogOfATrialWhoseTimeIsOver) {
  auto answer = self->request(retention, 60s, clean_logs{});
  task_id erased;
  hear(
    [&](const erase_log& x) {
      erased = x.task;
      return committed{};
    },
    "nothing was erased");
  EXPECT_EQ(erased, task_id{trial_id{7}});
  std::uint64_t trials = 0;
  answered(answer, [&](const logs_cleaned& x) { trials = x.trials; });
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
    hear(
      [&](const erase_log& x) {
        erased.insert(x.task);
        return committed{};
      },
      "nothing was erased");
  EXPECT_EQ(erased, (std::set<task_id>{trial_id{7}, shell}));
  answered(answer, [&](const logs_cleaned& x) { EXPECT_EQ(x.trials, 2u); });
}

TEST_F(RetentionActor, ErasesAllThatAnExperimentHas) {
  erase_stored all;
  all.experiment = {1};
  all.by = "ann";
  auto answer = self->request(retention, 60s, all);
  const auto begun = collected();
  EXPECT_EQ(begun.cause, "experiment");
  EXPECT_EQ(begun.by, "ann");
  EXPECT_TRUE(there_then);
  EXPECT_EQ(written(begun.id).size(), 4u) << "the first, one for each checkpoint, the last";
  const auto ended = collected();
  EXPECT_EQ(ended.id, begun.id);
  EXPECT_EQ(ended.removed, 2u);
  erase_log asked;
  hear(
    [&](const erase_log& x) {
      asked = x;
      return committed{};
    },
    "nothing was erased");
  EXPECT_EQ(asked.task, task_id{trial_id{7}});
  EXPECT_TRUE(asked.reports);
  std::vector<trial_id> trials;
  answered(answer, [&](const stored_erased& x) { trials = x.trials; });
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
    if (trial == trial_id{7}) {
      const auto begun = collected();
      EXPECT_EQ(begun.cause, "trial");
      EXPECT_EQ(begun.trial, trial);
      EXPECT_EQ(written(begun.id).size(), 4u) << "the first, one for each checkpoint, the last";
      EXPECT_EQ(collected().removed, 2u);
      hear(
        [&](const erase_log& x) {
          EXPECT_EQ(x.task, task_id{trial_id{7}});
          EXPECT_TRUE(x.reports);
          return committed{};
        },
        "nothing was erased");
    }
    std::vector<trial_id> trials;
    answered(answer, [&](const stored_erased& x) { trials = x.trials; });
    const bool its = trial == trial_id{7}; // a trial that was erased already has nothing left
    EXPECT_EQ(trials, its ? std::vector<trial_id>{trial} : std::vector<trial_id>{});
    EXPECT_EQ(fs::exists(folder / old), !its);
    EXPECT_EQ(fs::exists(folder / latest), !its);
  }
}

TEST_F(RetentionActor, SaysWhatIsLeftBeforeItErasesFiles) {
  std::ofstream(folder / latest / "other") << "x"; // a file that does not belong to the checkpoint
  auto look = look_for({"w*"});
  look.by = "ann";
  auto answer = self->request(retention, 60s, look);
  const auto begun = collected();
  EXPECT_EQ(begun.cause, "files");
  EXPECT_EQ(begun.checkpoints, std::vector<std::string>{latest});
  EXPECT_EQ(begun.globs, std::vector<std::string>{"w*"});
  stored_erased seen;
  answered(answer, [&](const stored_erased& x) { seen = x; });
  ASSERT_TRUE(seen.left.contains(latest));
  EXPECT_TRUE(seen.left.at(latest).empty());
  EXPECT_EQ(seen.tasks, std::vector<task_id>{begun.id});
  EXPECT_TRUE(fs::exists(folder / latest / "weights")) << "it only looked";

  ASSERT_TRUE(journal->append({"trial/7", 6, {encode(checkpoint_changed{t0, latest, {}, "ann"})}}));
  ASSERT_TRUE(journal->commit());
  erase_stored go;
  go.tasks = seen.tasks;
  auto gone = self->request(retention, 60s, go);
  EXPECT_EQ(written(begun.id).size(), 3u);
  EXPECT_EQ(collected().step, deletion_step::done);
  answered(gone, [](const stored_erased&) {});
  EXPECT_FALSE(fs::exists(folder / latest));
}

TEST_F(RetentionActor, RemovesAFolderThatAPatternNames) {
  fs::create_directories(folder / latest / "more" / "deep");
  std::ofstream(folder / latest / "more" / "deep" / "state") << "s";
  const std::map<std::string, std::int64_t> left{{"weights", 1}},
    all{{"weights", 1}, {"more/", 0}, {"more/deep/", 0}, {"more/deep/state", 1}};
  ASSERT_TRUE(journal->append({"trial/7", 6, {encode(checkpoint_changed{t0, latest, all, ""})}}));
  ASSERT_TRUE(journal->commit());
  auto answer = self->request(retention, 60s, look_for({"more/"}));
  const auto begun = collected();
  answered(answer, [&](const stored_erased& x) { EXPECT_EQ(x.left.at(latest), left); });
  ASSERT_TRUE(journal->append({"trial/7", 7, {encode(checkpoint_changed{t0, latest, left, "ann"})}}));
  ASSERT_TRUE(journal->commit());
  erase_stored go;
  go.tasks = {begun.id};
  auto gone = self->request(retention, 60s, go);
  const auto lines = written(begun.id);
  EXPECT_NE(std::find(lines.begin(), lines.end(), "Checkpoint " + latest + ": 1 file removed"), lines.end());
  collected();
  answered(gone, [](const stored_erased&) {});
  EXPECT_FALSE(fs::exists(folder / latest / "more"));
  EXPECT_TRUE(fs::exists(folder / latest / "weights"));
}

TEST_F(RetentionActor, GoesOnWhereTheFolderOfACheckpointVanishes) {
  const std::map<std::string, std::int64_t> left{{"weights", 1}}, all{{"other", 1}, {"weights", 1}};
  std::ofstream(folder / latest / "other") << "x";
  ASSERT_TRUE(journal->append({"trial/7", 6, {encode(checkpoint_changed{t0, latest, all, ""})}}));
  ASSERT_TRUE(journal->commit());
  auto look = look_for({"other"});
  auto answer = self->request(retention, 60s, look);
  const auto begun = collected();
  answered(answer, [](const stored_erased&) {});
  ASSERT_TRUE(journal->append({"trial/7", 7, {encode(checkpoint_changed{t0, latest, left, "ann"})}}));
  ASSERT_TRUE(journal->commit());
  fs::remove_all(folder / latest);
  erase_stored go;
  go.tasks = {begun.id};
  auto gone = self->request(retention, 60s, go);
  written(begun.id);
  EXPECT_EQ(collected().step, deletion_step::done);
  answered(gone, [](const stored_erased&) {});

  look.globs = {"weights"}; // whatever is left of the record is named
  auto whole = self->request(retention, 60s, look);
  collected();
  answered(whole, [&](const stored_erased& x) { EXPECT_TRUE(x.left.at(latest).empty()); });
  look.globs = {"none"};
  auto none = self->request(retention, 60s, look);
  run();
  errc said = errc::internal;
  none.receive([](const stored_erased&) {}, [&](const caf::error& why) { said = from_caf(why).code; });
  EXPECT_EQ(said, errc::not_found) << "a folder that is not mounted looks the same";
}

TEST_F(RetentionActor, DeletesAnExperimentOnceATaskHasEmptiedItsBucket) {
  keep_in_a_bucket();
  erase_stored all;
  all.experiment = {2};
  all.by = "ann";
  auto answer = self->request(retention, 60s, all);
  const auto made = created();
  EXPECT_EQ(made.owner, "owner");
  EXPECT_EQ(made.details["cause"], "experiment");
  EXPECT_EQ(made.details["by"], "ann");
  EXPECT_EQ(made.details["checkpoints"], value::array({in_bucket}));
  EXPECT_EQ(made.details["globs"], value::array({"**/*"}));
  EXPECT_EQ(made.details["tensorboards"], true);
  run();
  ASSERT_TRUE(journal->append({"trial/8", 5, {encode(checkpoint_changed{t0, in_bucket, {}, {}})}}));
  over(made.id, task_state::completed);
  hear(
    [&](const erase_log& x) {
      EXPECT_EQ(x.task, task_id(trial_id{8}));
      return committed{};
    },
    "nothing was erased");
  answered(answer, [](const stored_erased& x) { EXPECT_EQ(x.trials, std::vector<trial_id>{{8}}); });
}

TEST_F(RetentionActor, RemovesEachCheckpointFromTheStorageThatItWasSavedIn) {
  keep_in_a_bucket(R"({"save_trial_best": 0, "save_trial_latest": 0})");
  const std::string elsewhere = "0189c0de-0000-7000-8000-000000000004";
  experiment_continued again{t0, "ann", {2}, 1, {{8}}, {}};
  again.config = {{"searcher", {{"metric", "loss"}}},
                  {"checkpoint_storage",
                   {{"type", "s3"}, {"bucket", "c"}, {"save_trial_best", 0}, {"save_trial_latest", 0}}}};
  ASSERT_TRUE(journal->append({"cluster", 2, {encode(again)}}));
  ASSERT_TRUE(journal->append({"trial/8",
                               5,
                               {encode(trial_continued{t0, 1, {1}}), encode(run_started{t0, {2}, "", 0}),
                                encode(checkpoint_recorded{t0, {2}, saved(elsewhere, 20)}),
                                encode(run_ended{t0, {2}}), encode(trial_ended{t0})}}));
  ASSERT_TRUE(
    journal->append({"experiment/2", 2, {encode(experiment_changed{t0, experiment_state::completed, ""})}}));
  ASSERT_TRUE(journal->commit());
  fs::remove_all(folder / elsewhere);
  self->send(retention, sweep_experiment{{2}, true});
  const auto now = created();
  EXPECT_EQ(now.details["checkpoints"], value::array({elsewhere}));
  EXPECT_FALSE(now.details.contains("storage_of_continuation"));
  run();
  ASSERT_TRUE(journal->append({"trial/8", 10, {encode(checkpoint_changed{t0, elsewhere, {}, {}})}}));
  over(now.id, task_state::completed);
  const auto before = created();
  EXPECT_EQ(before.details["checkpoints"], value::array({in_bucket}));
  EXPECT_EQ(before.details["storage_of_continuation"], 0);

  erase_stored one; // what a user orders is ordered the same way
  one.checkpoints = {in_bucket};
  one.globs = {"w*"};
  one.only_look = true;
  auto answer = self->request(retention, 60s, one);
  EXPECT_EQ(created().details["storage_of_continuation"], 0);
  answered(answer, [](const stored_erased&) {});
  auto row = journal->reads()->experiment({2});
  ASSERT_TRUE(row);
  const auto history = storage_history::of(*journal->reads(), *row);
  ASSERT_TRUE(history);
  EXPECT_EQ(history->config(0)["checkpoint_storage"]["bucket"], "b");
  EXPECT_EQ(history->config({})["checkpoint_storage"]["bucket"], "c");
  EXPECT_EQ(history->buckets(), (std::vector<storage_number>{storage_number(), storage_number(0)}));
}

TEST_F(RetentionActor, KnowsAStorageAgainThatOnlyGotOtherKeys) {
  keep_in_a_bucket(R"({"access_key": "old"})");
  experiment_continued again{t0, "ann", {2}, 1, {{8}}, {}};
  again.config = {
    {"checkpoint_storage", {{"type", "s3"}, {"bucket", "b"}, {"access_key", "new"}, {"save_trial_best", 3}}}};
  ASSERT_TRUE(journal->append({"cluster", 2, {encode(again)}}));
  ASSERT_TRUE(journal->commit());
  auto row = journal->reads()->experiment({2});
  auto saved = journal->reads()->checkpoint(in_bucket);
  ASSERT_TRUE(row && saved);
  auto history = storage_history::of(*journal->reads(), *row);
  ASSERT_TRUE(history);
  const auto storage = history->of_checkpoint(*journal->reads(), *saved);
  ASSERT_TRUE(storage);
  EXPECT_EQ(*storage, storage_number());
  EXPECT_EQ(history->buckets().size(), 1u);
  EXPECT_EQ(history->config(*storage)["checkpoint_storage"]["access_key"], "new");
}

TEST_F(RetentionActor, SaysWhyATaskCouldNotEmptyABucket) {
  keep_in_a_bucket();
  erase_stored all;
  all.experiment = {2};
  const auto refused = [&](auto& answer) {
    std::string why;
    answer.receive([](const stored_erased&) {}, [&](const caf::error& said) { why = from_caf(said).what; });
    return why;
  };
  auto answer = self->request(retention, 60s, all);
  over(created().id, task_state::error, "exit code 1");
  EXPECT_NE(refused(answer).find("removes files from the bucket: exit code 1"), std::string::npos);
  // A task that says that it has done its work, and has told of nothing.
  auto again = self->request(retention, 60s, all);
  over(created().id, task_state::completed);
  EXPECT_NE(refused(again).find("is in the bucket still"), std::string::npos);
}

TEST_F(RetentionActor, WaitsForATaskOfAnEarlierLife) {
  keep_in_a_bucket();
  erase_stored all;
  all.experiment = {2};
  [[maybe_unused]] const auto lost = self->request(retention, 60s, all);
  const auto made = created();
  caf::anon_send_exit(retention, caf::exit_reason::user_shutdown);
  run();
  start();
  auto answer = self->request(retention, 60s, all);
  run();
  ASSERT_TRUE(journal->append({"trial/8", 5, {encode(checkpoint_changed{t0, in_bucket, {}, {}})}}));
  over(made.id, task_state::completed);
  hear([&](const erase_log&) { return committed{}; }, "a second task was created");
  answered(answer, [](const stored_erased&) {});
}

TEST_F(RetentionActor, OrdersARemovalFromABucketAndDoesNotWaitForIt) {
  keep_in_a_bucket();
  erase_stored one;
  one.checkpoints = {in_bucket};
  one.globs = {"w*"};
  one.only_look = true;
  auto answer = self->request(retention, 60s, one);
  const auto made = created();
  EXPECT_EQ(made.details["globs"], value::array({"w*"}));
  EXPECT_EQ(made.details["tensorboards"], false);
  answered(answer, [](const stored_erased& x) { EXPECT_TRUE(x.left.empty() && x.tasks.empty()); });
  one.globs.clear();
  one.refresh = true;
  auto look = self->request(retention, 60s, one);
  EXPECT_EQ(created().details["globs"], value::array()) << "it only looks at what is there";
  answered(look, [](const stored_erased&) {});
}

TEST_F(RetentionActor, KeepsInABucketWhatItsTaskCouldNotRemove) {
  keep_in_a_bucket(R"({"save_trial_best": 0, "save_trial_latest": 0})");
  self->send(retention, sweep_experiment{{2}, true});
  const auto made = created();
  EXPECT_EQ(made.details["cause"], "policy");
  run();
  over(made.id, task_state::error, "exit code 1");
  experiment_id finished;
  hear([&](const sweep_finished& x) { finished = x.id; }, "nothing was finished");
  EXPECT_EQ(finished, experiment_id{2}) << "it is not tried for ever";
}

TEST_F(RetentionActor, AsksAgainWhereNoTaskCanBeCreatedForASweep) {
  keep_in_a_bucket(R"({"save_trial_best": 0, "save_trial_latest": 0})");
  self->send(retention, sweep_experiment{{2}, true});
  hear([](client_command&) { return troupe::refused({errc::busy, "not now"}); }, "no task was asked for");
  run();
  self->receive([](const sweep_finished&) { ADD_FAILURE() << "the sweep ended without its task"; },
                caf::after(0s) >> [] {});
  scheduler().advance_time(60s);
  EXPECT_EQ(created().details["cause"], "policy");
}

TEST_F(RetentionActor, OrdersATaskForTheTensorBoardFilesInABucket) {
  keep_in_a_bucket();
  erase_stored boards;
  boards.experiment = {2};
  boards.tensorboards_only = true;
  auto answer = self->request(retention, 60s, boards);
  const auto made = created();
  EXPECT_EQ(made.details["cause"], "tensorboards");
  EXPECT_EQ(made.details["checkpoints"], value::array());
  EXPECT_EQ(made.details["tensorboards"], true);
  answered(answer, [](const stored_erased&) {});
}

TEST_F(RetentionActor, DeletesNothingInAFolderThatTheMasterDoesNotSee) {
  fs::remove_all(folder);
  erase_stored all;
  all.experiment = {1};
  auto answer = self->request(retention, 60s, all);
  run();
  std::string why;
  answer.receive([](const stored_erased&) {}, [&](const caf::error& said) { why = from_caf(said).what; });
  EXPECT_NE(why.find("lies where this cluster cannot delete"), std::string::npos) << why;
}

TEST_F(RetentionActor, RemovesHereWhatDoesNotLieInTheBucketOfItsExperiment) {
  keep_in_a_bucket();
  saved(in_bucket, 10); // the package `troupe` puts its checkpoints into the cluster's folder
  erase_stored all;
  all.experiment = {2};
  auto answer = self->request(retention, 60s, all);
  EXPECT_EQ(written(collected().id).size(), 3u) << "the first, the checkpoint, the last";
  EXPECT_EQ(collected().removed, 1u);
  hear([&](const erase_log&) { return committed{}; }, "nothing was erased");
  answered(answer, [](const stored_erased&) {});
  EXPECT_FALSE(fs::exists(folder / in_bucket));
}

TEST_F(RetentionActor, GoesOnWithADeletionThatHasRemovedItsFiles) {
  caf::anon_send_exit(retention, caf::exit_reason::user_shutdown);
  run();
  keep_in_a_bucket();
  checkpoint_files_removed order;
  order.at = t0;
  order.id = task_id::of(task_kind::checkpoint_gc, 1, 2);
  order.experiment = {2};
  order.cause = "experiment";
  keep(entity(order.id), {encode(order)});
  experiment_deleted deleting;
  deleting.at = t0;
  deleting.id = {2};
  ASSERT_TRUE(journal->append({"cluster", 2, {encode(deleting)}}));
  ASSERT_TRUE(journal->commit());
  start();
  erase_stored all;
  all.experiment = {2};
  auto answer = self->request(retention, 60s, all);
  EXPECT_EQ(collected().id, order.id);
  written(order.id);
  EXPECT_EQ(collected().step, deletion_step::done);
  hear([&](const erase_log&) { return committed{}; }, "nothing was erased");
  answered(answer, [](const stored_erased&) {});
}

TEST_F(RetentionActor, SaysWhatADeletionThatFailedHasLeft) {
  const std::string stuck = "0189c0de-0000-7000-8000-000000000004";
  checkpoint there{stuck, 30, {{"weights", 1}}, value::object(), {}, {"unheard-of:store", stuck}};
  ASSERT_TRUE(journal->append({"trial/7", 6, {encode(checkpoint_recorded{t0, {1}, there})}}));
  ASSERT_TRUE(journal->commit());
  fs::remove_all(folder / old); // as an earlier life of the master left it
  erase_stored all;
  all.experiment = {1};
  auto answer = self->request(retention, 60s, all);
  written(collected().id);
  EXPECT_EQ(collected().step, deletion_step::failed);
  stored_erased said;
  answered(answer, [&](const stored_erased& x) { said = x; });
  EXPECT_NE(said.why.find("unheard-of"), std::string::npos) << said.why;
  const std::map<std::string, std::int64_t> none;
  EXPECT_EQ(said.left, (decltype(said.left){{old, none}, {latest, none}}));
}

TEST_F(RetentionActor, LooksAtFilesWithoutATaskWhereNoneGoes) {
  stored_erased seen;
  auto answer = self->request(retention, 60s, look_for({"no-such-file"}));
  answered(answer, [&](const stored_erased& x) { seen = x; });
  EXPECT_TRUE(seen.tasks.empty());
  EXPECT_EQ(seen.left.at(latest).size(), 1u);
}

} // namespace
} // namespace troupe
