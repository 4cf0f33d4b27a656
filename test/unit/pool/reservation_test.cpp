// Reservations of a pool that a restarted master has made again.

#include "actors/pool/pool.hpp"
#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

allocation_id run(std::uint64_t trial) { return {trial_id{trial}, {1}}; }

class ReservationAfterARestart : public ::testing::TestWithParam<scheduler_kind> {
protected:
  ReservationAfterARestart() {
    pool_settings settings;
    settings.scheduler = GetParam();
    machine = pool(pool::phase::recovering, std::move(settings));
  }
  static run_terms terms(std::uint64_t trial, time_point started) {
    run_terms out;
    out.job.job = {trial};
    out.job.submitted = t0 + std::chrono::seconds(trial);
    out.job.priority = 42;
    out.started = started;
    return out;
  }
  std::string tell(const pool_event& ev) { return show(machine.apply(ev, now)); }
  std::string ask(std::uint64_t trial, int slots, time_point started) {
    slots_requested ev{run(trial), slots};
    ev.run = terms(trial, started);
    return tell(ev);
  }
  std::string hold(std::uint64_t trial, std::vector<int> slots) {
    slots_held ev{run(trial), {{"a", std::move(slots)}}, terms(trial, t0), 1, 0, t0};
    return tell(ev);
  }
  value reservation(std::uint64_t trial) { return machine.explain(run(trial), now)["reservation"]; }

  pool machine{pool::phase::recovering, pool_settings{}};
  time_point now = t0 + 10min;
};

TEST_P(ReservationAfterARestart, NobodyBehindTheGangGetsWhatIsFree) {
  hold(1, {0});
  ask(2, 2, t0 + 1s); // the gang has waited for reserve_after
  ask(3, 1, t0 + 9min + 59s);
  EXPECT_EQ(tell(agent_up{"a", 2}), "");
  EXPECT_EQ(tell(holders_heard{}).find("grant"), std::string::npos) << "what is free is kept for the gang";
  EXPECT_TRUE(reservation(2).is_object());
  EXPECT_NE(tell(slots_released{run(1), ""}).find("grant(2.1 a:0,1)"), std::string::npos);
}

TEST_P(ReservationAfterARestart, AlsoWhereTheAgentSpeaksLater) {
  hold(1, {0});
  ask(2, 2, t0 + 1s);
  ask(3, 1, t0 + 9min + 59s);
  EXPECT_EQ(tell(holders_heard{}), "");
  EXPECT_EQ(tell(agent_up{"a", 2}).find("grant"), std::string::npos);
  EXPECT_TRUE(reservation(2).is_object());
}

TEST_P(ReservationAfterARestart, WhoHasNotWaitedForSoLongIsPassed) {
  hold(1, {0});
  ask(2, 2, now - 59s);
  ask(3, 1, now - 1s);
  EXPECT_EQ(tell(agent_up{"a", 2}), "");
  EXPECT_EQ(tell(holders_heard{}), "grant(3.1 a:1)");
}

INSTANTIATE_TEST_SUITE_P(Schedulers, ReservationAfterARestart,
                         ::testing::Values(scheduler_kind::priority, scheduler_kind::fair,
                                           scheduler_kind::round_robin));

/// It would wait for the holders to end: whoever may preempt does not.
TEST(ReservationWithPreemption, TheUrgentRunPreemptsAfterARestartToo) {
  pool_settings settings;
  settings.preemption = true;
  pool machine(pool::phase::recovering, std::move(settings));
  const auto now = t0 + 10min;
  const auto terms = [](std::uint64_t trial, int priority) {
    run_terms out;
    out.job.job = {trial};
    out.job.submitted = t0;
    out.job.priority = priority;
    out.started = t0;
    return out;
  };
  slots_held holder{run(1), {{"a", {0}}}, terms(1, 50), 1, 0, t0};
  slots_requested urgent{run(2), 1};
  urgent.run = terms(2, 10);
  static_cast<void>(machine.apply(holder, now));
  static_cast<void>(machine.apply(urgent, now));
  static_cast<void>(machine.apply(agent_up{"a", 1}, now));
  EXPECT_NE(show(machine.apply(holders_heard{}, now)).find("preempt(1.1"), std::string::npos);
}

} // namespace
} // namespace troupe
