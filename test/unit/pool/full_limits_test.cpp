// Tests who is preempted, and who is served, where a limit of a pool, a user, a workspace or a job is full.

#include "actors/pool/pool.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

/// A pool with one agent of 8 slots, and jobs with users, priorities and weights.
class limited_pool {
public:
  explicit limited_pool(pool_settings settings) : machine_(pool::phase::placing, std::move(settings)) {
    tell(agent_up{"a", 8, {}, {}});
  }
  job_terms& job(std::uint64_t id, const std::string& user, int priority = 42, double weight = 1) {
    auto& terms = jobs_[id];
    terms.job = {id};
    terms.submitted = t0 + std::chrono::seconds(id);
    terms.user = user;
    terms.priority = priority;
    terms.weight = weight;
    terms.workspace = "Uncategorized";
    return terms;
  }
  std::string ask(std::uint64_t trial, std::uint64_t job, int slots = 1, int least = 0) {
    slots_requested ev{{trial_id{trial}, {1}}, slots};
    ev.least = least;
    ev.run.job = jobs_.at(job);
    ev.run.started = now;
    return tell(ev);
  }
  std::string end(std::uint64_t trial) { return tell(slots_released{{trial_id{trial}, {1}}, {}}); }
  std::string wait(duration d) {
    now += d;
    return tell(time_passed{});
  }
  /// Returns what the pool does, as "grant 3; preempt 1 for 3 priority; ".
  std::string tell(const pool_event& ev) {
    std::string said;
    for (const auto& action : machine_.apply(ev, now))
      if (const auto* grant = std::get_if<grant_slots>(&action))
        said += "grant " + std::to_string(grant->allocation.trial().value) + "; ";
      else if (const auto* order = std::get_if<preempt_allocation>(&action))
        said += "preempt " + std::to_string(order->allocation.trial().value) + " for " +
                (order->wanted_by ? std::to_string(order->wanted_by.trial().value) : "none") + " " +
                order->reason + "; ";
    return said;
  }
  std::string why(std::uint64_t trial) {
    return machine_.explain({trial_id{trial}, {1}}, now)["reason"]["code"].get<std::string>();
  }
  value explain(std::uint64_t trial) { return machine_.explain({trial_id{trial}, {1}}, {}, now); }
  int share(std::uint64_t job) {
    const auto details = machine_.details();
    for (const auto& one : details["jobs"])
      if (one["experiment"] == job)
        return one["share"].get<int>();
    return -1;
  }
  std::optional<time_point> deadline() const { return machine_.deadline(); }
  time_point now = t0;

private:
  pool machine_;
  std::map<std::uint64_t, job_terms> jobs_;
};

pool_settings preempting(scheduler_kind scheduler) {
  pool_settings s;
  s.scheduler = scheduler;
  s.preemption = true;
  s.min_run = 0s;
  return s;
}
slot_quota of_user(const std::string& name, int slots) { return {name, "", slots}; }

TEST(FullLimits, AnUrgentRunPreemptsWhoFillsItsQuotaAndNobodyElse) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 2)};
  limited_pool p(s);
  p.job(1, "ada", 50);
  p.job(2, "bob", 90);
  p.job(3, "ada", 10);
  EXPECT_EQ(p.ask(1, 1), "grant 1; ");
  EXPECT_EQ(p.ask(2, 1), "grant 2; ");
  EXPECT_EQ(p.ask(3, 2, 4), "grant 3; ") << "two slots stay free";
  EXPECT_EQ(p.ask(4, 3), "preempt 2 for 4 priority; ");
  EXPECT_EQ(p.why(4), "quota") << "the quota is full until the victim has ended";
  EXPECT_EQ(p.ask(5, 1), "") << "no run gets the room that is claimed";
  EXPECT_EQ(p.wait(60s), "") << "nobody is preempted twice for one need";
  EXPECT_EQ(p.ask(6, 3), "preempt 1 for 6 priority; ") << "another need";
  EXPECT_EQ(p.end(2), "grant 4; ");
  EXPECT_EQ(p.end(1), "grant 6; ");
  EXPECT_EQ(p.ask(7, 3), "") << "those that fill the quota are as urgent, and came first";
  EXPECT_EQ(p.why(7), "quota");
  EXPECT_EQ(p.end(4), "grant 7; ") << "the more urgent first";
  EXPECT_EQ(p.end(6), "grant 5; ");
}

TEST(FullLimits, TheMaxSlotsOfAPool) {
  auto s = preempting(scheduler_kind::priority);
  s.max_slots = 2;
  limited_pool p(s);
  p.job(1, "ada", 50);
  p.job(2, "bob", 40);
  EXPECT_EQ(p.ask(1, 1, 2), "grant 1; ");
  EXPECT_EQ(p.ask(2, 2, 1), "preempt 1 for 2 priority; ");
  EXPECT_EQ(p.end(1), "grant 2; ");
}

TEST(FullLimits, TheMaxSlotsOfAJobPreemptNoneOfItsOwnRuns) {
  auto s = preempting(scheduler_kind::priority);
  limited_pool p(s);
  p.job(1, "ada", 50).max_slots = 1;
  EXPECT_EQ(p.ask(1, 1), "grant 1; ");
  EXPECT_EQ(p.ask(2, 1), "");
  EXPECT_EQ(p.why(2), "max_slots");
}

/// The limit and the free slots both need victims, and no victim is superfluous.
TEST(FullLimits, VictimsServeTheLimitAndTheSlots) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 4)};
  limited_pool p(s);
  p.job(1, "bob", 90);
  p.job(2, "ada", 60);
  p.job(3, "ada", 20);
  for (std::uint64_t trial = 1; trial <= 5; ++trial)
    EXPECT_FALSE(p.ask(trial, 1).empty());
  EXPECT_EQ(p.ask(6, 2, 3), "grant 6; ");
  EXPECT_EQ(p.ask(7, 3, 4), "preempt 6 for 7 priority; preempt 5 for 7 priority; ")
    << "three slots of ada and one of bob";
}

TEST(FullLimits, WhoCannotBeServedIsTriedAgainWhenThatChanges) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 4)};
  limited_pool p(s);
  p.job(1, "ada", 10);
  p.job(2, "ada", 50);
  p.job(3, "ada", 60);
  EXPECT_EQ(p.ask(1, 1, 3), "grant 1; ");
  EXPECT_EQ(p.ask(2, 2, 4), "");
  EXPECT_EQ(p.ask(3, 3, 1), "grant 3; ") << "what exceeds a limit holds nobody up";
  EXPECT_EQ(p.end(1), "preempt 3 for 2 priority; ");
  EXPECT_EQ(p.end(3), "grant 2; ");
  auto& urgent = p.job(4, "ada", 70);
  EXPECT_EQ(p.ask(4, 4), "");
  urgent.priority = 20;
  EXPECT_EQ(p.tell(job_changed{urgent}), "preempt 2 for 4 priority; ") << "a new priority";
}

/// The limit of the run is full, and it fits nowhere even if all runs end that may be preempted.
TEST(FullLimits, WhoFitsNowhereIsTriedAgainWhenSlotsAreReleased) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 4)};
  limited_pool p(s);
  p.job(1, "bob", 1);
  p.job(2, "ada", 50);
  p.job(3, "ada", 10);
  EXPECT_EQ(p.ask(1, 1, 5), "grant 1; ");
  EXPECT_EQ(p.ask(2, 2, 2), "grant 2; ");
  EXPECT_EQ(p.ask(3, 3, 4), "") << "three slots could be had";
  EXPECT_EQ(p.end(1), "preempt 2 for 3 priority; ");
}

/// What it lacks is room below two limits, and it stands aside for the first of them.
TEST(FullLimits, WhoWaitsForTwoLimitsIsTriedAgainWhenOneOfThemHasRoom) {
  auto s = preempting(scheduler_kind::priority);
  s.max_slots = 4;
  s.quotas = {of_user("ada", 2)};
  limited_pool p(s);
  p.job(1, "bob", 1);
  p.job(2, "ada", 50);
  p.job(3, "ada", 10);
  EXPECT_EQ(p.ask(1, 1, 2), "grant 1; ");
  EXPECT_EQ(p.ask(2, 1), "grant 2; ");
  EXPECT_EQ(p.ask(3, 2), "grant 3; ");
  EXPECT_EQ(p.ask(4, 3, 2), "") << "one slot could be had";
  EXPECT_EQ(p.end(2), "preempt 3 for 4 priority; ");
}

TEST(FullLimits, VictimsArePreemptedTogether) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 4)};
  limited_pool p(s);
  p.job(1, "ada", 50);
  auto& urgent = p.job(3, "ada", 70);
  for (std::uint64_t trial = 11; trial <= 14; ++trial)
    EXPECT_FALSE(p.ask(trial, 1).empty());
  for (std::uint64_t trial = 31; trial <= 34; ++trial)
    EXPECT_EQ(p.ask(trial, 3), "");
  urgent.priority = 10;
  EXPECT_EQ(p.tell(job_changed{urgent}), "preempt 14 for 31 priority; preempt 13 for 32 priority; "
                                         "preempt 12 for 33 priority; preempt 11 for 34 priority; ");
}

/// A gang that may start with fewer slots takes no room that is claimed.
TEST(FullLimits, AnElasticGangLeavesTheRoomOfAClaim) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 4)};
  limited_pool p(s);
  p.job(1, "ada", 50);
  p.job(2, "ada", 10);
  p.job(3, "ada", 60);
  EXPECT_EQ(p.ask(1, 1, 2), "grant 1; ");
  EXPECT_EQ(p.ask(2, 2, 3), "preempt 1 for 2 priority; ");
  EXPECT_EQ(p.ask(3, 3, 3, 1), "grant 3; ");
  EXPECT_EQ(p.end(1), "grant 2; ");
}

/// The room that one run leaves and what less urgent runs hold serve the next run together.
TEST(FullLimits, WhoComesAfterOneThatWasServedPreemptsTheRest) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 4)};
  limited_pool p(s);
  p.job(1, "ada", 90);
  p.job(2, "ada", 10);
  p.job(3, "ada", 1);
  EXPECT_EQ(p.ask(3, 3, 3), "grant 3; ");
  EXPECT_EQ(p.ask(1, 1, 1), "grant 1; ");
  EXPECT_EQ(p.ask(21, 2, 2), "");
  EXPECT_EQ(p.ask(22, 2, 2), "");
  EXPECT_EQ(p.end(3), "grant 21; preempt 1 for 22 priority; ");
}

/// A new priority counts at once among the runs that wait for one limit, also where nobody is preempted.
TEST(FullLimits, ANewPriorityCountsAmongThoseThatWaitForALimit) {
  pool_settings s;
  s.quotas = {of_user("ada", 1)};
  limited_pool p(s);
  p.job(1, "ada");
  p.job(2, "ada");
  auto& second = p.job(3, "ada");
  p.job(4, "bob");
  p.job(5, "cyd", 1);
  EXPECT_EQ(p.ask(1, 1), "grant 1; ");
  EXPECT_EQ(p.ask(4, 4, 7), "grant 4; ");
  EXPECT_EQ(p.ask(2, 2) + p.ask(3, 3) + p.ask(5, 5), "");
  EXPECT_EQ(p.end(1), "grant 5; ");
  second.priority = 10;
  EXPECT_EQ(p.tell(job_changed{second}), "");
  EXPECT_EQ(p.explain(3)["position"], 1);
  EXPECT_EQ(p.end(4), "grant 3; ");
}

/// Who waits for a limit holds nobody up, and comes after the others in the queue.
TEST(FullLimits, WhoWaitsForALimitComesAfterTheOthersInTheQueue) {
  pool_settings s;
  s.quotas = {of_user("ada", 1)};
  limited_pool p(s);
  p.job(1, "ada", 10);
  p.job(2, "bob", 50);
  EXPECT_EQ(p.ask(1, 1), "grant 1; ");
  EXPECT_EQ(p.ask(2, 2, 7), "grant 2; ");
  EXPECT_EQ(p.ask(3, 1) + p.ask(4, 1) + p.ask(5, 2), "");
  EXPECT_EQ(p.explain(5)["position"], 1);
  EXPECT_EQ(p.explain(3)["position"], 2);
  EXPECT_EQ(p.explain(4)["position"], 3);
}

TEST(FullLimits, ThoseOfOnePriorityRunForMinRunFirst) {
  auto s = preempting(scheduler_kind::priority);
  s.min_run = 30s;
  s.quotas = {of_user("ada", 1)};
  limited_pool p(s);
  p.job(1, "ada");
  p.job(2, "ada");
  EXPECT_EQ(p.ask(2, 2), "grant 2; ");
  EXPECT_EQ(p.ask(1, 1), "");
  ASSERT_TRUE(p.deadline());
  EXPECT_LE(*p.deadline(), t0 + 30s);
  EXPECT_EQ(p.wait(30s), "preempt 2 for 1 priority; ");
  EXPECT_EQ(p.end(2), "grant 1; ");
}

TEST(FullLimits, AdviceNamesThePriorityThatPreemptsWhoFillsTheQuota) {
  auto s = preempting(scheduler_kind::priority);
  s.quotas = {of_user("ada", 1)};
  limited_pool p(s);
  p.job(1, "ada", 30);
  p.job(2, "ada", 40);
  p.job(3, "bob", 50);
  EXPECT_EQ(p.ask(1, 1), "grant 1; ");
  EXPECT_EQ(p.ask(3, 3), "grant 3; ");
  EXPECT_EQ(p.ask(2, 2), "");
  const auto said = p.explain(2);
  EXPECT_EQ(said["advice"], "troupe experiment set 2 --priority 29");
  ASSERT_EQ(said["wouldFree"].size(), 1u);
  EXPECT_EQ(said["wouldFree"][0]["allocation"], "1.1");
  EXPECT_EQ(said["wouldFree"][0]["fromPriority"], 29);
}

// ---- shares within a quota

TEST(FullLimits, SharesOfAQuotaGoByWeight) {
  auto s = preempting(scheduler_kind::fair);
  s.quotas = {of_user("ada", 4)};
  limited_pool p(s);
  p.job(1, "ada", 42, 0);
  p.job(2, "ada", 42, 1);
  p.job(3, "ada", 42, 3);
  p.job(4, "bob", 42, 1);
  for (std::uint64_t trial = 11; trial <= 14; ++trial)
    EXPECT_FALSE(p.ask(trial, 1).empty());
  EXPECT_EQ(p.ask(21, 2), "preempt 14 for 21 fair_share; ") << "weight 0 has what is left over";
  EXPECT_EQ(p.share(1), 0);
  EXPECT_EQ(p.end(14), "grant 21; ");
  for (std::uint64_t trial = 22; trial <= 24; ++trial) {
    const auto victim = std::to_string(trial == 22 ? 13 : trial == 23 ? 12 : 11);
    EXPECT_EQ(p.ask(trial, 2), "preempt " + victim + " for " + std::to_string(trial) + " fair_share; ");
    EXPECT_EQ(p.end(std::stoull(victim)), "grant " + std::to_string(trial) + "; ");
  }
  for (std::uint64_t trial = 41; trial <= 45; ++trial)
    p.ask(trial, 4);
  EXPECT_EQ(p.ask(31, 3), "preempt 24 for 31 fair_share; ");
  EXPECT_EQ(p.ask(32, 3), "preempt 23 for 32 fair_share; ");
  EXPECT_EQ(p.ask(33, 3), "preempt 22 for 33 fair_share; ");
  EXPECT_EQ(p.ask(34, 3), "") << "job 2 is at its share";
  EXPECT_EQ(p.share(2), 1);
  EXPECT_EQ(p.share(3), 3);
  EXPECT_EQ(p.share(4), 4) << "the rest of the pool";
}

TEST(FullLimits, AFreeSlotOfAQuotaGoesToWhoIsFurthestBelow) {
  for (const auto scheduler : {scheduler_kind::fair, scheduler_kind::round_robin}) {
    pool_settings s;
    s.scheduler = scheduler;
    s.quotas = {of_user("ada", 2)};
    limited_pool p(s);
    p.job(1, "ada");
    p.job(2, "ada");
    for (std::uint64_t trial = 11; trial <= 14; ++trial)
      p.ask(trial, 1);
    EXPECT_EQ(p.ask(21, 2), "");
    EXPECT_EQ(p.ask(22, 2), "");
    EXPECT_EQ(p.end(11), "grant 21; ");
    EXPECT_EQ(p.end(12), "grant 13; ") << "job 1 is below now";
    EXPECT_EQ(p.end(21), "grant 22; ");
  }
}

/// A job also gets its part of a quota where its share grows because a job of another user has ended.
TEST(FullLimits, AShareThatGrowsPreempts) {
  auto s = preempting(scheduler_kind::fair);
  s.quotas = {of_user("ada", 6)};
  s.min_run = 30s;
  limited_pool p(s);
  p.job(1, "ada");
  p.job(2, "ada");
  p.job(3, "bob", 42, 6);
  for (std::uint64_t trial = 11; trial <= 16; ++trial)
    EXPECT_FALSE(p.ask(trial, 1).empty());
  for (std::uint64_t trial = 31; trial <= 32; ++trial)
    EXPECT_FALSE(p.ask(trial, 3).empty());
  for (std::uint64_t trial = 33; trial <= 38; ++trial)
    EXPECT_EQ(p.ask(trial, 3), "");
  EXPECT_EQ(p.ask(21, 2, 3), "");
  EXPECT_EQ(p.share(2), 1) << "a gang that is larger than its share preempts nobody";
  p.now += 10s;
  for (std::uint64_t trial = 33; trial <= 38; ++trial)
    EXPECT_EQ(p.end(trial), "");
  EXPECT_EQ(p.share(2), 3);
  EXPECT_EQ(p.wait(20s),
            "preempt 14 for 21 fair_share; preempt 15 for 21 fair_share; preempt 16 for 21 fair_share; ");
}

/// The newest run of the job above its share would be taken in vain, and its other runs could not be then.
TEST(FullLimits, AGangGetsItsPartFromTheRunThatIsLargeEnough) {
  auto s = preempting(scheduler_kind::fair);
  limited_pool p(s);
  p.job(1, "ada");
  p.job(2, "bob");
  EXPECT_EQ(p.ask(1, 1, 3), "grant 1; ");
  EXPECT_EQ(p.ask(2, 1, 3), "grant 2; ");
  EXPECT_EQ(p.ask(3, 1, 2), "grant 3; ");
  EXPECT_EQ(p.ask(4, 2, 3), "preempt 2 for 4 fair_share; ");
}

/// Slots of a run that stops for nobody go to whose turn it is when they are free.
TEST(FullLimits, WhatStopsForNobodyIsForWhoIsNextThen) {
  auto s = preempting(scheduler_kind::priority);
  limited_pool p(s);
  auto& lowered = p.job(9, "bob", 42);
  p.job(1, "ada");
  p.job(2, "ada");
  EXPECT_EQ(p.ask(9, 9, 8), "grant 9; ");
  lowered.max_slots = 4;
  EXPECT_EQ(p.tell(job_changed{lowered}), "preempt 9 for none max_slots; ");
  EXPECT_EQ(p.ask(2, 2, 8), "");
  EXPECT_EQ(p.ask(1, 1, 8), "") << "its job is the older one";
  EXPECT_EQ(p.explain(1)["position"], 1);
  EXPECT_EQ(p.end(9), "grant 1; ");
}

/// A job that loses its weight loses the slots that were on their way to it.
TEST(FullLimits, AClaimIsJudgedAnewWhenItsJobChanges) {
  auto s = preempting(scheduler_kind::fair);
  limited_pool p(s);
  p.job(1, "ada");
  auto& fades = p.job(2, "ada");
  p.job(3, "ada");
  EXPECT_EQ(p.ask(1, 1, 4) + p.ask(11, 1, 4), "grant 1; grant 11; ");
  EXPECT_EQ(p.ask(2, 2, 4), "preempt 11 for 2 fair_share; ");
  EXPECT_EQ(p.ask(3, 3, 2), "");
  fades.weight = 0;
  EXPECT_EQ(p.tell(job_changed{fades}), "");
  EXPECT_EQ(p.end(11), "grant 3; ");
}

} // namespace
} // namespace troupe
