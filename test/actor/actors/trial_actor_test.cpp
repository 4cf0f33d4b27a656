// The shell of a trial: what it asks for, and when.

#include "actors/trial/trial_actor.hpp"
#include "storage/stored_journal.hpp"

#include "stage.hpp"

#include <thread>

namespace troupe {
namespace {

using testing::ElementsAre;

class TrialActor : public Stage {
protected:
  void SetUp() override {
    experiment = make_listener();
    pool = make_listener();
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    kept = std::move(*made);
  }
  void TearDown() override {
    Stage::TearDown();
    trial = nullptr;
  }
  void start(listener::answers answer, const std::vector<trial_fact>& past = {}) {
    journal = make_listener(std::move(answer));
    trial = on_stage(spawn_trial_actor(*system_, {{7}}, {},
                                       {experiment.as<experiment_actor>(),
                                        journal.as<journal_actor>(),
                                        pool.as<pool_actor>(),
                                        kept->reads(),
                                        {}},
                                       past));
    run();
  }
  static caf::result<caf::message> commits(const caf::message&) { return caf::make_message(committed{}); }
  static caf::result<caf::message> refuses(const caf::message&) {
    return to_caf({errc::io, "the disk is broken"});
  }
  std::vector<std::string> asked() const { // allocations that asked for slots
    std::vector<std::string> ids;
    for (const auto& x : pool.all<slots_requested>())
      ids.push_back(to_string(x.allocation));
    return ids;
  }
  std::size_t facts() const { // number of facts that were appended to its stream
    std::size_t n = 0;
    for (const auto& x : journal.all<append_facts>())
      n += x.entity == "trial/7" ? x.facts.size() : 0;
    return n;
  }

  listener experiment, pool, journal;
  std::unique_ptr<storage::journal> kept; ///< journal that an allocation reads at its recovery
  trial_actor trial;
};

TEST_F(TrialActor, RunsOnceItIsActivated) {
  start(commits);
  EXPECT_TRUE(asked().empty());
  caf::anon_send(trial, trial_activate{});
  run();
  EXPECT_THAT(asked(), ElementsAre("7.1"));
  EXPECT_GT(facts(), 0u);
}

TEST_F(TrialActor, AsksForNothingWhereItsFactsAreRefused) {
  start(refuses);
  caf::anon_send(trial, trial_activate{});
  run();
  EXPECT_EQ(journal.all<append_facts>().size(), 1u);
  EXPECT_TRUE(asked().empty());
  caf::anon_send(trial, trial_activate{}); // the shell has ended: its owner makes it again from the journal
  run();
  EXPECT_EQ(journal.all<append_facts>().size(), 1u);
}

TEST_F(TrialActor, GoesOnWithTheRunThatWasOpenAtTheRecovery) {
  start(commits, {trial_activated{}, run_started{{}, {3}, "", 0}});
  EXPECT_THAT(asked(), ElementsAre("7.3"));
  EXPECT_EQ(facts(), 0u) << "the run has begun already";
}

TEST_F(TrialActor, OneThatIsKilledBeforeItRanTellsItsExperimentAndEnds) {
  start(commits);
  caf::anon_send(trial, trial_stop{trial_state::canceled, true, "killed by a user"});
  run();
  const auto told = experiment.all<trial_finished>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].trial, trial_id{7});
  EXPECT_EQ(told[0].state, trial_state::canceled);
  EXPECT_TRUE(asked().empty());
}

/// The next run does not begin with what the journal holds of a run that has ended.
TEST_F(TrialActor, AnAllocationThatDiesAfterItsRunHasEndedIsNotMadeAgain) {
  const allocation_id first{{7}, {1}};
  ASSERT_TRUE(kept->append({entity(first),
                            0,
                            {encode(allocation_placed{{}, {{"a1", {0}}}}),
                             encode(allocation_closed{{}, end::lost, -1, "its agent is gone"})}}));
  ASSERT_TRUE(kept->commit());
  start(commits, {trial_activated{}, run_started{{}, {1}, "", 0}});
  ASSERT_THAT(asked(), ElementsAre("7.1"));
  const auto entry = config_.probes->find(entity(first));
  ASSERT_TRUE(entry);
  const auto allocation = caf::actor_cast<caf::actor>(entry->who.lock());
  ASSERT_TRUE(allocation);
  caf::anon_send(trial, allocation_ended{{1}, end::lost, "its agent is gone", false, -1});
  run();
  end_with_fault(allocation, "the test ends it");
  run();
  while (system_->detached_actors() > 0) // waits for the actors that read the journal
    std::this_thread::yield();
  run();
  pass(std::chrono::seconds(10));
  EXPECT_THAT(asked(), ElementsAre("7.1", "7.2"));
}

} // namespace
} // namespace troupe
