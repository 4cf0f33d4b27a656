// Leases: a task whose agent is silent stands still, goes on by order, and ends when nobody comes.

#include "stage.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class TaskLease : public EitherIsolation {};
INSTANTIATE_TEST_SUITE_P(Each, TaskLease, both_isolations, isolation_name);

/// 'D' is a shell in vfork whose child stands still.
bool all_stopped(const std::string& id) {
  auto pids = processes_of(id);
  for (int pid : pids)
    if (process_state(pid) != 'T' && process_state(pid) != 'D')
      return false;
  return !pids.empty();
}

TEST_P(TaskLease, FreezesWhenItsLeaseIsOverAndGoesOnByOrder) {
  s.options.sandbox.lease = 300ms;
  s.open();
  auto id = s.run("setsid sh -c 'while :; do sleep 0.01; done' & while :; do sleep 0.01; done");
  s.await<task_started>(id);
  EXPECT_EQ(s.await<task_frozen>(id).why, "lease");
  EXPECT_TRUE(eventually([&] { return all_stopped(id); }));
  // A renewal is not the word to go on: whoever sends it may not know that the run was given away.
  ASSERT_TRUE(s.runtime->renew_all());
  EXPECT_FALSE(s.heard<task_thawed>(id));
  EXPECT_TRUE(all_stopped(id));
  ASSERT_TRUE(s.runtime->thaw(id, 300ms));
  s.await<task_thawed>(id);
  EXPECT_TRUE(eventually([&] { return !all_stopped(id); }));
  EXPECT_EQ(s.await<task_frozen>(id).why, "lease"); // 300 ms later, again
  ASSERT_TRUE(s.runtime->kill(id));
  EXPECT_EQ(s.await<task_exited>(id).why, end_reason::killed);
  EXPECT_EQ(processes_of(id), std::vector<int>{});
}

TEST_P(TaskLease, RunsAsLongAsItsLeaseIsRenewed) {
  s.options.sandbox.lease = 2s; // long beside what a busy machine makes a renewal wait
  s.open();
  auto id = s.run("i=0; while [ $i -lt 30 ]; do sleep 0.1; i=$((i+1)); done");
  s.await<task_started>(id);
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(s.runtime->renew_all());
    return s.heard<task_exited>(id);
  }));
  EXPECT_FALSE(s.heard<task_frozen>(id));
}

TEST_P(TaskLease, FreezesAndThawsByOrder) {
  auto id = s.run("while :; do sleep 0.01; done");
  s.await<task_started>(id);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(s.runtime->freeze(id));
    EXPECT_EQ(s.await<task_frozen>(id).why, "order");
    EXPECT_TRUE(eventually([&] { return all_stopped(id); }));
    EXPECT_EQ(s.runtime->list().at(0).phase, task_phase::frozen);
    ASSERT_TRUE(s.runtime->thaw(id, std::chrono::seconds(60)));
    s.await<task_thawed>(id);
  }
}

TEST_P(TaskLease, IsKilledWhenItStaysFrozenTooLong) {
  s.options.sandbox.lease = 100ms;
  s.options.sandbox.frozen_limit = 200ms;
  s.open();
  auto id = s.run("sleep 1000");
  s.await<task_frozen>(id);
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(exited.why, end_reason::lease);
  EXPECT_EQ(processes_of(id), std::vector<int>{});
}

TEST_P(TaskLease, HoldsTheLeaseWithoutAnAgent) {
  s.options.sandbox.lease = 200ms;
  s.open();
  auto id = s.run("while :; do sleep 0.01; done");
  s.await<task_started>(id);
  s.runtime.reset();
  EXPECT_TRUE(eventually([&] { return all_stopped(id); }));
  s.open();
  ASSERT_TRUE(s.runtime->adopt_all());
  EXPECT_EQ(s.await_inventory(), 1u);
  EXPECT_TRUE(s.await<task_started>(id).adopted);
  EXPECT_EQ(s.await<task_frozen>(id).why, "lease");
}

} // namespace
} // namespace troupe::test
