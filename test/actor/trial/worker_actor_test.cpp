// The shell of a worker on a scheduler that runs only when told: what it hands to the thread that trains, and
// what it reports each second and at once.

#include "actors/worker/worker_actor.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using workers::worker_phase;

struct settings_of_test : caf::actor_system_config {
  settings_of_test() {
    add_message_types<caf::id_block::troupe_worker>();
    set("scheduler.policy", caf::atom("testing"));
  }
};

class WorkerActor : public testing::Test {
protected:
  void SetUp() override {
    worker = spawn_worker(system, orders, [this](std::string word) {
      words.push_back(workers::decode_worker<workers::worker_word>(word).value());
    });
    run();
  }
  void TearDown() override {
    caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
    run();
    worker = nullptr;
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  }
  void run() { scheduler().run(); }
  void second() {
    scheduler().advance_time(1s);
    run();
  }
  template <class Message>
  void tell(Message x) {
    caf::anon_send(worker, std::move(x));
    run();
  }
  void order(const workers::worker_order& x) {
    tell(order_arrived{workers::worker_protocol, workers::encode_worker(x)});
  }
  template <class Word>
  std::vector<Word> said() const {
    std::vector<Word> all;
    for (const auto& word : words)
      if (const auto* x = std::get_if<Word>(&word))
        all.push_back(*x);
    return all;
  }

  trial::handover orders;
  std::vector<workers::worker_word> words;
  settings_of_test config;
  caf::actor_system system{config};
  worker_actor worker;
};

TEST_F(WorkerActor, SaysThatItStartsBeforeItIsAskedAnything) {
  const auto all = said<workers::worker_status>();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].phase, worker_phase::starting);
}

TEST_F(WorkerActor, SaysEachSecondHowFarTheThreadIs) {
  tell(phase_entered{worker_phase::training, 0, 0, 200});
  words.clear();
  orders.stepped(17);
  EXPECT_TRUE(said<workers::worker_status>().empty()) << "not before its second is over";
  second();
  ASSERT_EQ(said<workers::worker_status>().size(), 1u);
  EXPECT_EQ(said<workers::worker_status>()[0].step, 17);
  orders.stepped(18);
  second();
  ASSERT_EQ(said<workers::worker_status>().size(), 2u);
  EXPECT_EQ(said<workers::worker_status>()[1].step, 18);
}

TEST_F(WorkerActor, OrdersAddUpAndARepeatChangesNothing) {
  order(workers::train_until{200, true});
  order(workers::stop_training{"pause"});
  order(workers::train_until{200, true});
  EXPECT_EQ(orders.look().until, 200);
  EXPECT_TRUE(orders.look().may_rebuild);
  EXPECT_EQ(orders.look().stop, "pause");
}

TEST_F(WorkerActor, AnOrderThatCannotBeReadIsPassedOver) {
  tell(order_arrived{workers::worker_protocol, "\xc1 of no kind"});
  EXPECT_EQ(orders.look().until, 0);
  order(workers::train_until{200});
  EXPECT_EQ(orders.look().until, 200);
}

TEST_F(WorkerActor, ARefusedLinkIsHandedToTheThread) {
  tell(link_refused{"another version"});
  EXPECT_EQ(orders.look().refused, "another version");
}

TEST_F(WorkerActor, AnswersAFailureOnceItIsSaid) {
  bool answered = false;
  caf::scoped_actor self{system};
  auto answer = self->request(worker, 1s, training_failed{"out of luck"});
  run();
  answer.receive([&](bool done) { answered = done; }, [](const caf::error&) {});
  EXPECT_TRUE(answered);
  ASSERT_EQ(said<workers::worker_failure>().size(), 1u);
  EXPECT_EQ(said<workers::worker_failure>()[0].why, "out of luck");
}

TEST_F(WorkerActor, TellsItsMailWithTheNextSecondAndOnlyOnce) {
  tell(phase_entered{worker_phase::ready, 0, 0, 200});
  order(workers::train_until{200});
  EXPECT_TRUE(said<workers::worker_heard>().empty());
  second();
  ASSERT_EQ(said<workers::worker_heard>().size(), 1u);
  EXPECT_EQ(said<workers::worker_heard>()[0].taken, 2u);
  second();
  EXPECT_EQ(said<workers::worker_heard>().size(), 1u) << "nothing came since";
}

} // namespace
} // namespace troupe
