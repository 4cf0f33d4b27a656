// What a pool's actor has to tell the allocations that it grants slots to, on a scheduler that runs only when
// told.

#include "actors/pool/pool_actor.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr allocation_id first{{1}, {1}}, second{{2}, {1}};

class PoolGrants : public testing::Test {
protected:
  void SetUp() override {
    config_.set("scheduler.policy", caf::atom("testing"));
    system_ = std::make_unique<caf::actor_system>(config_);
    pool_ = spawn_pool(*system_, "default");
    caf::anon_send(pool_, agent_up{"a1", 1, {}});
    run();
  }
  void TearDown() override {
    for (auto& one : spawned_)
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(pool_, caf::exit_reason::user_shutdown);
    run();
    spawned_.clear();
    pool_ = nullptr;
    system_.reset();
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  }
  void run() { scheduler().run(); }

  /// Makes an allocation that asks for one slot and counts its grants. It acknowledges a grant only after the
  /// first `deaf` ones.
  std::shared_ptr<int> ask(const allocation_id& id, int deaf) {
    auto heard = std::make_shared<int>(0);
    spawned_.push_back(
      system_->spawn([heard, deaf, id, pool = pool_](caf::event_based_actor* self) -> caf::behavior {
        self->send(caf::actor_cast<caf::actor>(pool), slots_requested{id, 1});
        return {[self, heard, deaf](const slots_granted&) {
                  auto acknowledges = self->make_response_promise();
                  if (++*heard > deaf)
                    acknowledges.deliver(caf::unit);
                  return acknowledges;
                },
                [](const report_unplaceable&) {}};
      }));
    run();
    return heard;
  }

  node_config config_;
  std::unique_ptr<caf::actor_system> system_;
  pool_actor pool_;
  std::vector<caf::actor> spawned_;
};

// Without a repeat the slots would be held for ever, because nobody would know whether the allocation has
// heard.
TEST_F(PoolGrants, SaysAGrantAgainThatIsNotAcknowledged) {
  const auto heard = ask(first, 2);
  EXPECT_EQ(*heard, 1);
  for (int said = 2; said <= 3; ++said) {
    scheduler().advance_time(std::chrono::seconds(30));
    run();
    EXPECT_EQ(*heard, said);
  }
  scheduler().advance_time(std::chrono::minutes(10));
  run();
  EXPECT_EQ(*heard, 3) << "it has acknowledged";
}

TEST_F(PoolGrants, SaysNoGrantAgainThatWasGivenBack) {
  const auto heard = ask(first, 5), next = ask(second, 0);
  EXPECT_EQ(*next, 0);
  caf::anon_send(pool_, slots_released{first});
  run();
  EXPECT_EQ(*next, 1);
  scheduler().advance_time(std::chrono::seconds(30));
  run();
  EXPECT_EQ(*heard, 1);
}

TEST_F(PoolGrants, TakesTheSlotsOfAnAllocationBackThatDiedBeforeItHeard) {
  const auto heard = ask(first, 5), next = ask(second, 0);
  caf::anon_send_exit(spawned_.front(), caf::exit_reason::kill);
  run();
  scheduler().advance_time(std::chrono::seconds(30));
  run();
  EXPECT_EQ(*next, 1);
}

} // namespace
} // namespace troupe
