// The cases of Determined's tests of schedulers (master/internal/rm/agentrm/*_test.go of 0.38.1), each under
// the name of its test. Where the rule of Troupe is another one, the row says so.

#include "actors/pool/pool.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace troupe {
namespace {

struct step_row {
  const char *finish, *add, *start, *release;
};
struct scheduler_case {
  const char* source;
  scheduler_kind scheduler;
  bool preemption;
  const char* agents; ///< "NAME SLOTS AUX; ..."
  const char* jobs;   ///< "NAME [priority=N] [weight=N] [max=N] [submitted=X]; ..."
  /// the runs that each step adds: "NAME SLOTS JOB [at=AGENT] [stays] [not=AGENT]; ..."
  std::vector<step_row> steps;
  int max_slots = -1; ///< the limit of the pool; -1: no limit
};

std::vector<std::vector<std::string>> lists(const std::string& text) {
  std::vector<std::vector<std::string>> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ';');) {
    std::istringstream words(part);
    std::vector<std::string> list;
    for (std::string word; words >> word;)
      list.push_back(word);
    if (!list.empty())
      out.push_back(list);
  }
  return out;
}

/// A pool whose runs and jobs have names. Each step happens 10 s after the one before.
class named_pool {
public:
  explicit named_pool(const scheduler_case& c) : machine_(pool::phase::placing, settings_of(c)) {
    for (const auto& words : lists(c.agents)) {
      agent_up up{words[0], std::stoi(words[1]), {}, {}};
      up.traits.aux = std::stoi(words[2]);
      events_.push_back(up);
    }
    for (const auto& words : lists(c.jobs)) {
      auto& job = job_of(words[0]);
      job.weight = 0;
      for (std::size_t i = 1; i < words.size(); ++i) {
        const auto at = words[i].find('=');
        const auto key = words[i].substr(0, at);
        const double x = std::stod(words[i].substr(at + 1));
        if (key == "priority")
          job.priority = static_cast<int>(x);
        else if (key == "weight")
          job.weight = x;
        else if (key == "max")
          job.max_slots = static_cast<int>(x);
        else
          job.submitted = time_point{} + 1h + duration(static_cast<std::int64_t>(x * 1e6));
      }
    }
  }

  void step(const step_row& row) {
    now_ += 10s;
    for (const auto& words : lists(row.finish))
      for (const auto& name : words)
        events_.push_back(slots_released{id_of(name)});
    for (const auto& words : lists(row.add)) {
      run_terms run;
      auto& job = job_of(words[2]);
      if (job.submitted == time_point{})
        job.submitted = time_point{} + 1h;
      run.job = job;
      run.started = now_;
      std::string at;
      for (std::size_t i = 3; i < words.size(); ++i)
        if (words[i] == "stays")
          run.preemptible = false;
        else if (words[i].starts_with("not="))
          run.rules.not_agents.push_back(words[i].substr(4));
        else
          at = words[i].substr(3);
      const int slots = std::stoi(words[1]);
      if (at.empty()) {
        events_.push_back(slots_requested{id_of(words[0]), slots, 0, run});
        continue;
      }
      placement on{at, {}};
      for (int i = 0; i < slots; ++i)
        on.slots.push_back(used_[at]++);
      events_.push_back(slots_held{id_of(words[0]), {on}, run, slots, 0, {}});
    }
    std::set<std::string> started, released;
    for (const auto& action : machine_.apply(std::exchange(events_, {}), now_))
      if (const auto* grant = std::get_if<grant_slots>(&action))
        started.insert(name_of(grant->allocation));
      else if (const auto* order = std::get_if<preempt_allocation>(&action))
        released.insert(name_of(order->allocation));
    EXPECT_EQ(started, set_of(row.start));
    EXPECT_EQ(released, set_of(row.release));
  }

private:
  static pool_settings settings_of(const scheduler_case& c) {
    pool_settings s;
    s.scheduler = c.scheduler;
    s.preemption = c.preemption;
    s.gangs = gang_rule::whole; // the rule of Determined
    s.max_slots = c.max_slots;
    return s;
  }
  static std::set<std::string> set_of(const char* text) {
    std::set<std::string> out;
    for (const auto& words : lists(text))
      out.insert(words.begin(), words.end());
    return out;
  }
  job_terms& job_of(const std::string& name) {
    auto [it, made] = jobs_.try_emplace(name);
    if (made)
      it->second.job = {jobs_.size()};
    return it->second;
  }
  allocation_id id_of(const std::string& name) {
    auto [it, made] = ids_.try_emplace(name);
    if (made)
      it->second = {trial_id{ids_.size()}, {1}};
    return it->second;
  }
  std::string name_of(allocation_id id) const {
    for (const auto& [name, one] : ids_)
      if (one == id)
        return name;
    return "?";
  }

  pool machine_;
  std::vector<pool_event> events_;
  time_point now_ = time_point{} + 1h;
  std::map<std::string, job_terms> jobs_;
  std::map<std::string, allocation_id> ids_;
  std::map<std::string, int> used_;
};

// Some rows of Determined put more on a slot than it holds, which no pool of Troupe does. These rows have as
// many slots as runs here, and a pool whose max_slots was lowered to the slots of the row in Determined.
TEST(PoolCases, OfDeterminedsSchedulers) {
  const scheduler_case rows[] = {
    {"fair_share_test.go::TestFairShareMaxSlots",
     scheduler_kind::fair,
     true,
     "agent 4 0",
     "group1 weight=1 max=1; group2 weight=0",
     {{"",
       "task1 1 group1; task2 1 group1; task3 1 group1; task4 1 group1; task5 1 group2; task6 1 group2; "
       "task7 1 group2; task8 1 group2",
       "task1 task5 task6 task7", ""}}},
    {"fair_share_test.go::TestFairShareWeights",
     scheduler_kind::fair,
     true,
     "agent 8 0",
     "group1 weight=10 max=100; group2 weight=30 max=100",
     {{"",
       "task1 1 group1; task2 1 group1; task3 1 group1; task4 1 group2; task5 1 group2; task6 1 group2; "
       "task7 1 group2; task8 1 group2; task9 1 group2; task10 1 group2",
       "task1 task2 task4 task5 task6 task7 task8 task9", ""}}},
    // Unlike in Determined, the newest runs are released first.
    {"fair_share_test.go::TestFairShareMaxSlotsReleaseAllocatedTasks",
     scheduler_kind::fair,
     true,
     "agent 4 0",
     "group1 weight=1 max=2",
     {{"",
       "task1 1 group1 at=agent; task2 1 group1 at=agent; task3 1 group1 at=agent; task4 1 group1 at=agent",
       "", "task3 task4"}}},
    {"fair_share_test.go::TestFairShareUnscheduled",
     scheduler_kind::fair,
     true,
     "agent1 2 0; agent2 2 0",
     "group1 weight=1 max=2",
     {{"", "task1 2 group1; task2 1 group1 at=agent1; task3 1 group1 at=agent2", "", ""}}},
    {"fair_share_test.go::TestFairShareBigTask",
     scheduler_kind::fair,
     true,
     "agent 4 0",
     "group1 weight=0; group2 weight=0",
     {{"", "task1 5 group1; task2 4 group2", "task2", ""}}},
    {"fair_share_test.go::TestFairShareActiveTasks",
     scheduler_kind::fair,
     true,
     "agent1 4 0; agent2 3 0",
     "group1 weight=0; group2 weight=0; group3 weight=0; group4 weight=0",
     {{"", "task1 3 group1; task2 1 group2; task3 1 group2 at=agent2; task4 4 group3; task5 1 group4",
       "task1 task2 task5", ""}}},
    {"fair_share_test.go::TestFairSharePreemptible",
     scheduler_kind::fair,
     true,
     "agent 2 0",
     "job1; job2",
     {{"", "task1 1 job1 at=agent; task2 1 job2 at=agent", "", "task2"}},
     1},
    {"fair_share_test.go::TestFairShareHonorsNonPreemptibleInAGroup (first order)",
     scheduler_kind::fair,
     true,
     "agent 2 0",
     "group1 weight=1 max=2",
     {{"", "task1 1 group1 at=agent; task2 1 group1 at=agent stays", "", "task1"}},
     1},
    {"fair_share_test.go::TestFairShareHonorsNonPreemptibleNilGroup (first order)",
     scheduler_kind::fair,
     true,
     "agent 2 0",
     "job1; job2",
     {{"", "task1 1 job1 at=agent; task2 1 job2 at=agent stays", "", "task1"}},
     1},
    {"fair_share_test.go::TestFairShareHonorsNonPreemptibleNilGroup (reverse order)",
     scheduler_kind::fair,
     true,
     "agent 2 0",
     "job1; job2",
     {{"", "task1 1 job1 at=agent stays; task2 1 job2 at=agent", "", "task2"}},
     1},
    {"fair_share_test.go::TestFairShareBlocklistEqual",
     scheduler_kind::fair,
     true,
     "agent0 3 0",
     "job0; job1; job2; job3",
     {{"",
       "task0.1 1 job0 not=agent0; task1.1 1 job1 at=agent0; task2.1 1 job2 at=agent0; task3.1 1 job3 "
       "at=agent0",
       "", "task2.1 task3.1"}},
     1},
    // Unlike in Determined, a job without weight has no share, so no other job is preempted for it.
    {"fair_share_test.go::TestFairShareBlocklistPreemptible",
     scheduler_kind::fair,
     true,
     "agent0 1 0; agent1 1 0",
     "job0; job1; job2; job3",
     {{"",
       "task0.1 1 job0 not=agent0 not=agent1; task1.1 1 job1 at=agent0; task2.1 1 job2 not=agent0; task3.1 1 "
       "job3 at=agent1",
       "", ""}}},
    // Unlike in Determined, no more slots are offered than fit.
    {"fair_share_test.go::TestFairShareBlocklistMultiple",
     scheduler_kind::fair,
     true,
     "agent0 4 0; agent1 4 0; agent2 4 0; agent3 4 0",
     "group0 weight=0; group1 weight=0",
     {{"", "task0.1 8 group0 not=agent2 not=agent3; task1.1 8 group1 not=agent2 not=agent3", "task0.1", ""}}},
    {"priority_test.go::TestPrioritySchedulingMaxZeroSlotContainer",
     scheduler_kind::priority,
     true,
     "agent1 4 0",
     "group1 priority=50 weight=0; group2 priority=40 weight=0",
     {{"", "task1 4 group2; task6 0 group1", "task1", ""}}},
    {"priority_test.go::TestPrioritySchedulingPreemptionDisabled",
     scheduler_kind::priority,
     false,
     "agent1 4 100; agent2 4 100",
     "group1 priority=50 weight=0; group2 priority=40 weight=0",
     {{"", "task1 4 group1; task2 1 group1; task3 1 group2; task4 0 group2; task5 4 group2; task6 0 group1",
       "task2 task3 task4 task5 task6", ""}}},
    {"priority_test.go::TestPrioritySchedulingPreemptionDisabledAddTasks",
     scheduler_kind::priority,
     false,
     "agent1 4 100; agent2 4 100",
     "group1 priority=50 weight=0; group2 priority=40 weight=0",
     {{"", "task1 4 group1; task2 1 group1; task3 1 group2; task4 0 group2; task5 4 group2; task6 0 group1",
       "task2 task3 task4 task5 task6", ""},
      {"", "task7 1 group1; task8 1 group1; task9 1 group1", "task7 task8", ""}}},
    {"priority_test.go::TestPrioritySchedulingPreemptionDisabledAllSlotsAllocated",
     scheduler_kind::priority,
     false,
     "agent1 4 0; agent2 4 0",
     "group1 priority=50 weight=0; group2 priority=40 weight=0",
     {{"", "task1 4 group1; task2 1 group1; task3 1 group2; task4 1 group2; task5 4 group2; task6 1 group1",
       "task2 task3 task4 task5 task6", ""},
      {"", "task7 1 group2; task8 1 group2", "", ""}}},
    {"priority_test.go::TestPrioritySchedulingPreemptionDisabledTaskFinished",
     scheduler_kind::priority,
     false,
     "agent1 4 100",
     "group1 priority=40 weight=0",
     {{"", "task1 4 group1", "task1", ""},
      {"task1", "task7 1 group1; task8 1 group1; task9 0 group1", "task7 task8 task9", ""}}},
    {"priority_test.go::TestPrioritySchedulingPreemptionDisabledAllTasksFinished",
     scheduler_kind::priority,
     false,
     "agent1 4 0; agent2 4 0",
     "group1 priority=50 weight=0; group2 priority=40 weight=0",
     {{"", "task1 4 group1; task2 1 group1; task3 1 group2; task4 1 group2; task5 4 group2; task6 1 group1",
       "task2 task3 task4 task5 task6", ""},
      {"task2 task3 task4 task5 task6", "task7 4 group2", "task1 task7", ""}}},
    {"priority_test.go::TestPrioritySchedulingPreemption",
     scheduler_kind::priority,
     true,
     "agent1 4 0; agent2 4 0",
     "group1 priority=50 weight=0; group2 priority=45 weight=0; group3 priority=40 weight=0",
     {{"",
       "low-waiting 1 group1; medium-running 4 group2 at=agent1; high-running 4 group3 at=agent2; "
       "high-waiting 4 group3; high-oversized 8 group3",
       "", "medium-running"}}},
    {"priority_test.go::TestPrioritySchedulingBackfilling",
     scheduler_kind::priority,
     true,
     "agent1 4 0; agent2 4 0",
     "group1 priority=55 weight=0; group2 priority=50 weight=0; group3 priority=45 weight=0; group4 "
     "priority=40 weight=0",
     {{"",
       "lowest-running 1 group1 at=agent1; lower-waiting 1 group2; medium-waiting 1 group3; high-running 4 "
       "group4 at=agent2; high-waiting 2 group4; high-oversized 8 group4",
       "medium-waiting high-waiting", "lowest-running"}}},
    {"priority_test.go::TestPrioritySchedulingBackfillingZeroSlotTask",
     scheduler_kind::priority,
     true,
     "agent1 0 4; agent2 0 1",
     "group1 priority=55 weight=0; group2 priority=50 weight=0; group3 priority=45 weight=0; group4 "
     "priority=40 weight=0",
     {{"",
       "low-waiting 0 group1; medium-running 0 group2 at=agent1; high-running 0 group3 at=agent2; "
       "high-waiting 0 group3",
       "low-waiting high-waiting", ""}}},
    {"priority_test.go::TestPrioritySchedulingPreemptOneByPosition (positions 1 / 2 / 1.5)",
     scheduler_kind::priority,
     true,
     "agent1 4 0; agent2 4 0",
     "1 priority=42 weight=0 submitted=1; 2 priority=42 weight=0 submitted=2; 3 priority=42 weight=0 "
     "submitted=1.5",
     {{"", "a1 1 1 at=agent1; a2 4 2 at=agent2; a3 4 3", "", "a2"}}},
    {"priority_test.go::TestPrioritySchedulingNoPreemptionByPosition",
     scheduler_kind::priority,
     true,
     "agent1 4 0; agent2 4 0",
     "1 priority=42 weight=0 submitted=1; 2 priority=42 weight=0 submitted=2; 3 priority=42 weight=0 "
     "submitted=1.5",
     {{"", "a1 1 1 at=agent1; a2 4 2 at=agent2; a3 8 3", "", ""}}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.source);
    named_pool p(row);
    for (const auto& step : row.steps)
      p.step(step);
  }
}

/// The case is scheduler_test.go::TestJobStats: how many runs wait and how many hold slots, in both
/// schedulers.
TEST(PoolCases, CountWhoWaitsAndWhoHolds) {
  for (const auto scheduler : {scheduler_kind::priority, scheduler_kind::fair}) {
    pool_settings s;
    s.scheduler = scheduler;
    pool p(pool::phase::placing, s);
    agent_up up{"agent1", 1, {}, {}};
    up.traits.aux = 1;
    static_cast<void>(p.apply(up, time_point{} + 1h));
    std::uint64_t next = 1;
    std::size_t granted = 0;
    for (const auto& [slots, priority] : {std::pair{1, 50}, {1, 40}, {0, 50}, {0, 50}}) {
      slots_requested ev{{trial_id{next}, {1}}, slots};
      ev.run.job.job = {next++};
      ev.run.job.priority = priority;
      granted += p.apply(ev, time_point{} + 1h).size();
    }
    EXPECT_EQ(granted, 2u);
    EXPECT_EQ(p.waiting().size(), 2u);
    pool large(pool::phase::placing, s); // In the second case all runs are larger than the pool.
    static_cast<void>(large.apply(up, time_point{} + 1h));
    next = 1;
    for (const std::uint64_t job : {1, 1, 1, 2, 3, 4}) {
      slots_requested ev{{trial_id{next++}, {1}}, 2};
      ev.run.job.job = {job};
      static_cast<void>(large.apply(ev, time_point{} + 1h));
    }
    EXPECT_EQ(large.used_slots(), 0);
    EXPECT_EQ(large.details()["jobs"].size(), 4u);
  }
}

} // namespace
} // namespace troupe
