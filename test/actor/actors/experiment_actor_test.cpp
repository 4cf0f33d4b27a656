// The shell of an experiment between its searcher and its trials: what they are told, and what it does when
// one of them dies. Its journal is a real one in memory.

#include "actors/experiment/experiment_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "storage/stored_journal.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class ExperimentActor : public Stage {
protected:
  void SetUp() override {
    open_journal();
    pool = make_listener();
    cluster = make_listener([this](const caf::message& asked) -> caf::result<caf::message> {
      if (!asked.match_element<reserve_trials>(0))
        return caf::message{};
      const auto count = asked.get_as<reserve_trials>(0).count;
      trials_reserved ids{{next_trial}};
      next_trial += count;
      return caf::make_message(ids);
    });
  }
  void TearDown() override {
    Stage::TearDown();
    experiment = nullptr;
    journal = nullptr;
  }

  void open_journal() {
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    stored = std::shared_ptr<storage::journal>(std::move(*made));
    journal = on_stage(spawn_journal(*system_, stored, {}));
  }
  void start(bool paused = false) {
    const value config{
      {"entrypoint", "train"},
      {"searcher", {{"name", "random"}, {"metric", "loss"}, {"max_trials", 4}, {"max_concurrent_trials", 2}}},
      {"hyperparameters", {{"x", {{"type", "double"}, {"minval", 0.0}, {"maxval", 1.0}}}}},
      {"reproducibility", {{"experiment_seed", 5}}}};
    const experiment_source from{{1}, config, "", "ada", "/checkpoints", {}};
    auto settings = experiment_settings_of(from);
    ASSERT_TRUE(settings) << settings.error().what;
    ASSERT_TRUE(
      stored->append({"cluster", 0, {encode(experiment_created{{}, {1}, config, "n", "ada", "", "", ""})}}));
    experiment = on_stage(spawn_experiment(
      *system_, {*settings, paused},
      {cluster.as<cluster_actor>(), journal, pool.as<pool_actor>(), stored->reads(), {}}, {}));
    run();
  }
  std::vector<std::string> asked() const { // allocations that asked for slots, each once
    std::vector<std::string> ids;
    for (const auto& x : pool.all<slots_requested>())
      if (const auto id = to_string(x.allocation); std::find(ids.begin(), ids.end(), id) == ids.end())
        ids.push_back(id);
    return ids;
  }
  std::vector<double> drawn() const { // the stored hyperparameter of each trial
    std::vector<double> all;
    const auto trials = stored->reads()->trials({1});
    for (const auto& x : trials ? *trials : std::vector<trial_row>())
      all.push_back(x.hparams.at("x").get<double>());
    return all;
  }
  experiment_state state() const {
    const auto row = stored->reads()->experiment({1});
    return row ? row->state : experiment_state::error;
  }
  void kill(const std::string& name) {
    auto entry = config_.probes->find(name);
    ASSERT_TRUE(entry) << name;
    end_with_fault(caf::actor_cast<caf::actor>(entry->who.lock()), "the test ends it");
    run();
  }
  void stop_trial(std::uint64_t id) {
    caf::anon_send(experiment, kill_trial{{id}});
    run();
  }

  std::shared_ptr<storage::journal> stored;
  journal_actor journal;
  listener pool, cluster;
  experiment_actor experiment;
  std::uint64_t next_trial = 1;
};

TEST_F(ExperimentActor, AsksForTheTrialsThatItsSearchMayRunAtOnce) {
  start();
  EXPECT_THAT(asked(), ElementsAre("1.1", "2.1"));
  EXPECT_EQ(drawn().size(), 2u);
}

TEST_F(ExperimentActor, OneThatBeginsPausedAsksForNothingUntilItIsActivated) {
  start(true);
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_EQ(state(), experiment_state::paused);
  caf::anon_send(experiment, experiment_activate{});
  run();
  EXPECT_THAT(asked(), ElementsAre("1.1", "2.1"));
}

TEST_F(ExperimentActor, NotesWhoStoppedOneOfItsTrialsButNobodyWhereAllAreStopped) {
  start();
  caf::anon_send(experiment, kill_trial{{1}, "ann"});
  run();
  caf::anon_send(experiment, experiment_stop{true, "killed by bob", false, "bob"});
  run();
  const auto orderer = [&](const char* trial) -> std::string {
    const auto facts = stored->reads()->facts_of(trial);
    for (const auto& bytes : facts ? *facts : std::vector<std::string>())
      if (auto fact = decode_as<trial_fact>(bytes))
        if (const auto* stop = std::get_if<trial_stop_ordered>(&*fact))
          return stop->by;
    return "no stop";
  };
  EXPECT_EQ(orderer("trial/1"), "ann");
  EXPECT_EQ(orderer("trial/2"), "");
}

TEST_F(ExperimentActor, ASearcherThatDiesGoesOnAsItWouldHave) {
  start();
  stop_trial(1);
  stop_trial(2);
  const auto undisturbed = drawn();
  ASSERT_EQ(undisturbed.size(), 4u);
  end_with_fault(experiment, "the test ends it");
  run();
  open_journal();
  next_trial = 1;
  start();
  kill("searcher/1");
  stop_trial(1);
  kill("searcher/1");
  stop_trial(2);
  EXPECT_EQ(drawn(), undisturbed);
}

TEST_F(ExperimentActor, ATrialThatDiesIsMadeAgainWithTheRunThatItHad) {
  start();
  kill("trial/1");
  EXPECT_THAT(asked(), ElementsAre("1.1", "2.1"));
  EXPECT_TRUE(config_.probes->find("trial/1"));
  EXPECT_EQ(state(), experiment_state::active);
}

TEST_F(ExperimentActor, ATrialThatDiesAgainAndAgainEndsItAsError) {
  start();
  for (int n = 0; n < 6; ++n)
    kill("trial/1");
  pass(5s);
  EXPECT_EQ(state(), experiment_state::stopping_error) << "its other trial still waits for its agent";
  EXPECT_THAT(stored->reads()->experiment({1})->why, testing::HasSubstr("trial 1 died again and again"));
}

TEST_F(ExperimentActor, TellsItsClusterOfItsEndOnceThatIsStored) {
  start();
  caf::anon_send(experiment, experiment_stop{false, "canceled"});
  run();
  pass(2s);
  ASSERT_EQ(cluster.all<experiment_finished>().size(), 1u);
  EXPECT_EQ(state(), experiment_state::canceled);
  EXPECT_FALSE(config_.probes->find("experiment/1")) << "what is finished has no actor";
}

} // namespace
} // namespace troupe
