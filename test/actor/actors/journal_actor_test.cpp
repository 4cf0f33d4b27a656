// The journal actor acknowledges exactly what its last commit stored, whatever the disk refuses. A sender
// that was refused succeeds by sending the same again.

#include "actors/journal/journal_actor.hpp"
#include "actors/journal/log_watch.hpp"
#include "actors/shells/durable.hpp"
#include "storage/stored_journal.hpp"

#include "stage.hpp"

#include <condition_variable>
#include <deque>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using storage::batch;
using storage::family;

const time_point t0{1700000000s};
constexpr auto patience = 60s;

/// A store in memory whose next writes can be held up and refused.
class fickle_store : public storage::store {
public:
  void hold() {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  bool wait_for_a_held_write() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [this] { return waiting_; });
  }
  void release() {
    std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void refuse_next_write(errc why) {
    std::lock_guard lock(mutex_);
    refusals_.push_back(why);
  }

  std::unique_ptr<storage::view> look() const override { return inner_->look(); }
  result<std::optional<std::string>> get(family where, std::string_view key) const override {
    return inner_->get(where, key);
  }
  std::unique_ptr<batch> make_batch() const override { return inner_->make_batch(); }
  result<void> admit(std::size_t) override { return {}; }
  result<void> write(batch& changes, bool sync) override {
    std::unique_lock lock(mutex_);
    waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    waiting_ = false;
    if (refusals_.empty())
      return inner_->write(changes, sync);
    auto why = refusals_.front();
    refusals_.pop_front();
    return error{why, "the test refuses this write"};
  }
  result<void> put_blob(std::string_view name, std::string_view bytes) override {
    return inner_->put_blob(name, bytes);
  }
  result<std::string> blob(std::string_view name) const override { return inner_->blob(name); }

private:
  std::shared_ptr<storage::store> inner_ = storage::make_memory_store();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false, waiting_ = false;
  std::deque<errc> refusals_;
};

class JournalActor : public testing::Test {
protected:
  void open(std::size_t lane_bytes = 1 << 20) {
    storage::journal_options options;
    options.lane_bytes = lane_bytes;
    auto made = storage::make_journal(store, options);
    ASSERT_TRUE(made);
    reads = (*made)->reads();
    journal_peers peers;
    peers.on_validation = [this](storage::recorded_validation x) {
      auto row = reads->metrics(x.allocation.trial(), 0, 1000);
      EXPECT_TRUE(row && row->size() >= x.row) << "told before it is durable";
      validations.push_back(x.sequence);
    };
    peers.on_fatal = [this](const error& why) { fatal.push_back(why.code); };
    journal = spawn_journal(system, std::shared_ptr<storage::journal>(std::move(*made)), peers);
  }
  void TearDown() override {
    store->release();
    self->send_exit(journal, caf::exit_reason::user_shutdown);
    self->wait_for(journal);
  }

  template <class Mail>
  auto send(Mail mail) {
    return self->request(journal, patience, std::move(mail));
  }
  template <class Answer, class Pending>
  result<Answer> await(Pending pending) {
    std::optional<result<Answer>> got;
    pending.receive([&](Answer& x) { got.emplace(std::move(x)); },
                    [&](caf::error& why) { got.emplace(from_caf(why)); });
    return *got;
  }
  template <class Mail>
  errc refused(Mail pending) {
    auto got = await<committed>(std::move(pending));
    EXPECT_FALSE(got) << "acknowledged, and not stored";
    return got ? errc::internal : got.error().code;
  }

  template <class... Facts>
  static append_facts facts(const std::string& entity, std::uint64_t first, const Facts&... all) {
    return {entity, first, {encode(fact(all))...}};
  }
  static append_reports validation(std::uint64_t first) {
    return {
      {{1}, {1}}, 0, "p", first, {{"validation", std::int64_t(first), t0, to_msgpack(value{{"loss", 0.5}})}}};
  }
  static append_log lines(std::uint64_t position, std::size_t bytes) {
    return {trial_id{1}, {{.at = t0, .text = std::string(bytes, 'x')}}, "1.1/0", position};
  }
  std::size_t stored(const std::string& entity) { return reads->facts_of(entity)->size(); }

  /// Makes experiment 1 with trial 1, whose run 1 is open.
  void set_up_trial() {
    value config{{"searcher", {{"name", "random"}, {"metric", "loss"}}}};
    search_stepped step{.at = t0};
    step.created.push_back({{1}, "1", value{{"lr", 0.1}}, 7, ""});
    ASSERT_TRUE(await<committed>(send(
      facts(cluster_entity, 0, experiment_created{t0, {1}, config, "digits", "me", "", "text", "key"}))));
    ASSERT_TRUE(await<committed>(send(facts("experiment/1", 0, step))));
    ASSERT_TRUE(await<committed>(send(facts("trial/1", 0, run_started{t0, {1}, "", 0}))));
  }
  /// Begins a commit that is held up, so that everything sent before `release` joins the next commit.
  auto hold_a_commit() {
    store->hold();
    auto pending = send(facts("other", others_++, trial_paused{t0}));
    EXPECT_TRUE(store->wait_for_a_held_write());
    return pending;
  }

  node_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  std::shared_ptr<fickle_store> store = std::make_shared<fickle_store>();
  std::shared_ptr<storage::reader> reads;
  journal_actor journal;
  /// Sequences of validations, written by the journal's thread before it answers.
  std::vector<std::uint64_t> validations;
  std::vector<errc> fatal;
  std::uint64_t others_ = 0;
};

TEST_F(JournalActor, StoresARefusedGroupWhenItIsSentAgain) {
  open();
  set_up_trial();
  for (int round = 0; round < 3; ++round) {
    const auto n = std::uint64_t(round);
    const std::string entity = "trial/" + std::to_string(100 + round);
    auto other = hold_a_commit();
    auto first = send(facts(entity, 0, trial_paused{t0}));
    auto second = send(facts(entity, 1, trial_activated{t0}));
    auto report = send(validation(n + 1));
    auto line = send(lines(n + 1, 10));
    store->refuse_next_write(errc::no_space);
    store->refuse_next_write(errc::no_space);
    store->release();
    EXPECT_EQ(refused(std::move(other)), errc::no_space);
    EXPECT_EQ(refused(std::move(first)), errc::no_space);
    EXPECT_EQ(refused(std::move(second)), errc::no_space);
    EXPECT_EQ(refused(std::move(line)), errc::no_space);
    auto answer = await<reports_committed>(std::move(report));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->refused.value_or(error{}).code, errc::no_space);
    EXPECT_EQ(stored(entity), 0u);
    EXPECT_EQ(validations.size(), n) << "of reports that are not stored";
    EXPECT_EQ(await<log_position_is>(send(log_position{"1.1/0"}))->position, n);
    --others_;

    EXPECT_TRUE(await<committed>(send(facts("other", others_++, trial_paused{t0}))));
    EXPECT_TRUE(await<committed>(send(facts(entity, 0, trial_paused{t0}, trial_activated{t0}))));
    answer = await<reports_committed>(send(validation(n + 1)));
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->refused) << answer->refused->what;
    EXPECT_EQ(answer->up_to, n + 1);
    EXPECT_TRUE(await<committed>(send(lines(n + 1, 10))));
    EXPECT_EQ(stored(entity), 2u);
    EXPECT_EQ(validations.size(), n + 1) << "a validation that was stored is told once";
    EXPECT_EQ(reads->logs(trial_id{1}, 0, 100)->size(), n + 1);
  }
  EXPECT_TRUE(fatal.empty());
}

TEST_F(JournalActor, AnswersARepeatOfWhatIsQueuedOnlyWithItsCommit) {
  open();
  set_up_trial();
  auto other = hold_a_commit();
  auto first = send(facts("trial/1", 1, trial_paused{t0}));
  auto repeat = send(facts("trial/1", 1, trial_paused{t0}));
  auto report = send(validation(1));
  auto again = send(validation(1));
  store->refuse_next_write(errc::no_space);
  store->refuse_next_write(errc::no_space);
  store->release();
  EXPECT_EQ(refused(std::move(other)), errc::no_space);
  EXPECT_EQ(refused(std::move(first)), errc::no_space);
  EXPECT_EQ(refused(std::move(repeat)), errc::no_space);
  EXPECT_EQ(await<reports_committed>(std::move(report))->refused.value_or(error{}).code, errc::no_space);
  EXPECT_EQ(await<reports_committed>(std::move(again))->refused.value_or(error{}).code, errc::no_space);
}

TEST_F(JournalActor, RefusesReportsForGoodOnlyForAFactThatIsStored) {
  open();
  set_up_trial();
  auto next_run = facts("trial/1", 1, run_started{t0, {2}, "", 0});
  auto other = hold_a_commit();
  auto fence = send(next_run);
  auto report = send(validation(1));
  store->refuse_next_write(errc::no_space);
  store->refuse_next_write(errc::no_space);
  store->release();
  EXPECT_EQ(refused(std::move(other)), errc::no_space);
  EXPECT_EQ(refused(std::move(fence)), errc::no_space);
  EXPECT_EQ(await<reports_committed>(std::move(report))->refused.value_or(error{}).code, errc::no_space);
  EXPECT_EQ(await<reports_committed>(send(validation(1)))->up_to, 1u) << "its run is still the open one";
  EXPECT_TRUE(await<committed>(send(next_run)));
  EXPECT_EQ(await<reports_committed>(send(validation(2)))->refused.value_or(error{}).code, errc::conflict);
}

TEST_F(JournalActor, AnswersBusyForLinesThatFindNoRoomAndStoresTheRest) {
  open(4096);
  set_up_trial();
  store->hold();
  auto other = send(facts("other", 0, trial_paused{t0}));
  ASSERT_TRUE(store->wait_for_a_held_write());
  auto first = send(lines(1, 1500));
  auto second = send(lines(2, 1500));
  store->release();
  EXPECT_TRUE(await<committed>(std::move(other)));
  EXPECT_TRUE(await<committed>(std::move(first)));
  EXPECT_EQ(refused(std::move(second)), errc::busy);
  EXPECT_EQ(reads->logs(trial_id{1}, 0, 100)->size(), 1u);
  EXPECT_TRUE(await<committed>(send(lines(2, 1500))));
  EXPECT_EQ(reads->logs(trial_id{1}, 0, 100)->size(), 2u);
  EXPECT_EQ(await<log_position_is>(send(log_position{"1.1/0"}))->position, 2u);
}

TEST_F(JournalActor, SaysThatItsDatabaseIsDead) {
  open();
  store->refuse_next_write(errc::io);
  EXPECT_EQ(refused(send(facts("trial/1", 0, trial_paused{t0}))), errc::io);
  EXPECT_EQ(refused(send(facts("trial/1", 0, trial_paused{t0}))), errc::io);
  EXPECT_TRUE(await<log_position_is>(send(log_position{"none"})));
  EXPECT_THAT(fatal, testing::Contains(errc::io));
}

// ---- a shell over it

using keeper_actor =
  caf::typed_actor<caf::replies_to<trial_pause>::with<committed>, caf::reacts_to<time_passed>>;

/// Notes one more fact for each pause, and answers once the fact is durable.
class keeper_state : public durable<keeper_state, keeper_actor, trial_fact, std::variant<std::monostate>> {
public:
  static inline const char* name = "keeper";
  explicit keeper_state(actor_base<keeper_actor>* self) : durable(self) {}

  keeper_actor::behavior_type make_behavior(journal_actor journal) {
    self_->enter(name);
    begin("trial/1", 0, std::move(journal), {});
    return {
      [this](const trial_pause&) {
        auto promise = self_->make_response_promise<committed>();
        take({trial_paused{t0 + std::chrono::seconds(count_++)}}, {},
             [promise](const caf::error& why) mutable {
               if (why)
                 promise.deliver(why);
               else
                 promise.deliver(committed{});
             });
        return promise;
      },
      [this](const time_passed&) { timer_fired(); },
    };
  }

private:
  friend durable;
  struct kept { ///< the state that people see in `troupe shell`
    value describe() const { return {{"steps", count}}; }
    int count = 0;
  };
  kept machine() const { return {count_}; }
  void run(const std::monostate&) {}
  void end_children(const caf::error&) {}
  std::optional<time_point> deadline() const { return std::nullopt; }
  int count_ = 0;
};

TEST_F(JournalActor, KeepsEveryStepOfAShellThroughAFullDisk) {
  open();
  auto keeper = system.spawn<shell<keeper_state, keeper_actor, journal_actor>>(journal);
  for (int i = 0; i < 3; ++i)
    store->refuse_next_write(errc::no_space);
  std::vector<decltype(self->request(keeper, patience, trial_pause{}))> pending;
  for (int i = 0; i < 20; ++i)
    pending.push_back(self->request(keeper, patience, trial_pause{}));
  for (auto& p : pending)
    EXPECT_TRUE(await<committed>(std::move(p)));
  auto all = *reads->facts_of("trial/1");
  ASSERT_EQ(all.size(), 20u);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(decode_as<trial_paused>(all[i])->at, t0 + std::chrono::seconds(i));
  self->send_exit(keeper, caf::exit_reason::user_shutdown);
  self->wait_for(keeper);
}

// ---- on a scheduler that runs only when told

class JournalOnStage : public Stage {
protected:
  void SetUp() override { open({}); }
  void open(journal_peers peers) {
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    reads = (*made)->reads();
    peers.on_commit = [this](const storage::commit_summary&) { ++commits; };
    journal = on_stage(
      spawn_journal(*system_, std::shared_ptr<storage::journal>(std::move(*made)), std::move(peers)));
  }
  void TearDown() override {
    Stage::TearDown();
    journal = nullptr;
  }
  auto append(std::uint64_t first) {
    return self->request(journal, patience, append_facts{"trial/1", first, {encode(trial_paused{t0})}});
  }
  template <class Pending>
  bool stored(Pending pending) {
    bool out = false;
    pending.receive([&](const committed&) { out = true; }, [](const caf::error&) {});
    return out;
  }

  caf::scoped_actor self{*system_};
  std::shared_ptr<storage::reader> reads;
  journal_actor journal;
  int commits = 0;
};

TEST_F(JournalOnStage, WhatArrivesTogetherIsOneCommit) {
  auto first = append(0), second = append(1), third = append(2);
  EXPECT_EQ(commits, 0);
  run();
  EXPECT_EQ(commits, 1);
  EXPECT_TRUE(stored(std::move(first)) && stored(std::move(second)) && stored(std::move(third)));
  auto later = append(3);
  run();
  EXPECT_EQ(commits, 2);
  EXPECT_TRUE(stored(std::move(later)));
  EXPECT_EQ(reads->facts_of("trial/1")->size(), 4u);
}

TEST_F(JournalOnStage, ARepeatIsAcknowledgedAndAGapRefused) {
  auto first = append(0), repeat = append(0), gap = append(5);
  run();
  EXPECT_TRUE(stored(std::move(first)));
  EXPECT_TRUE(stored(std::move(repeat)));
  EXPECT_FALSE(stored(std::move(gap)));
  EXPECT_EQ(reads->facts_of("trial/1")->size(), 1u);
}

TEST_F(JournalOnStage, WhatThePlatformSaysOfALineIsStoredAfterTheLine) {
  const auto lines = [](const char* stream, const char* text) {
    log_line one;
    one.at = t0;
    one.allocation = {trial_id{1}, {1}};
    one.stream = stream;
    one.text = text;
    return append_log{trial_id{1}, {one}, text, 1}; // each text has a source of its own
  };
  for (const bool durable : {true, false}) {
    const auto cluster = make_listener([&](const caf::message&) -> caf::result<caf::message> {
      caf::anon_send(journal, lines("troupe", "goes nowhere"));
      caf::anon_send(journal, lines("stdout", "another rank"));
      // The journal has both before it hears that the effects of the line are durable.
      return durable ? caf::result<caf::message>(caf::make_message(committed{}))
                     : caf::result<caf::message>(to_caf({errc::io, "the test refuses this"}));
    });
    journal_peers peers;
    peers.lines = std::make_shared<log_watch>([](task_id) { return experiment_id{1}; });
    peers.lines->watch(
      experiment_id{1},
      value::array({value{{"name", "ecc"}, {"pattern", "ECC"}, {"action", "exclude_node"}}}));
    peers.cluster = [cluster] { return cluster.as<cluster_actor>(); };
    open(peers);
    auto matched = self->request(journal, patience, lines("stdout", "an ECC fault"));
    run();
    EXPECT_EQ(stored(std::move(matched)), durable);
    std::vector<std::string> texts;
    for (const auto& one : *reads->logs(trial_id{1}, 0, 10))
      texts.push_back(one.text);
    EXPECT_EQ(texts, durable ? (std::vector<std::string>{"another rank", "an ECC fault", "goes nowhere"})
                             : (std::vector<std::string>{"another rank", "goes nowhere"}));
    self->request(journal, patience, lines("troupe", "later"));
    run();
    EXPECT_EQ(reads->logs(trial_id{1}, 0, 10)->back().text, "later") << "nothing is held up any more";
  }
}

} // namespace
} // namespace troupe
