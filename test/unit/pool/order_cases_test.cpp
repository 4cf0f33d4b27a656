// The cases of Determined's tests of the order of jobs and runs, and of what an agent offers (0.38.1), each
// under the name of its test. Where the rule of Troupe is another one, the row says so.

#include "actors/pool/pool.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

class ordered_pool {
public:
  explicit ordered_pool(scheduler_kind scheduler, bool preemption = false, int default_priority = 42) {
    pool_settings settings;
    settings.scheduler = scheduler;
    settings.preemption = preemption;
    settings.default_priority = default_priority;
    machine = pool(pool::phase::placing, settings);
  }
  job_terms& job(std::uint64_t id, int priority = 0, double weight = 1) {
    auto& terms = jobs[id];
    if (!terms.job) {
      terms.job = {id};
      terms.submitted = t0 + std::chrono::seconds(id);
    }
    terms.priority = priority ? priority : terms.priority;
    terms.weight = weight;
    return terms;
  }
  /// Run `trial` of `job_id` asks for slots; it has waited for `age`.
  void ask(std::uint64_t trial, int slots, std::uint64_t job_id, duration age = {}) {
    slots_requested ev{{trial_id{trial}, {1}}, slots};
    ev.run.job = jobs.at(job_id);
    ev.run.started = t0 + 1h - age;
    events.push_back(ev);
  }
  std::vector<pool_action> decide() { return machine.apply(std::exchange(events, {}), t0 + 1h); }
  std::vector<std::uint64_t> waiting(bool slotted) const {
    std::vector<std::uint64_t> out;
    for (const auto& one : machine.waiting())
      if ((one.slots > 0) == slotted)
        out.push_back(one.allocation.trial().value);
    return out;
  }
  /// Returns how many jobs have a run before the first waiting run of job `id`, or -1 if no run of the job
  /// waits.
  int ahead(std::uint64_t id) {
    std::set<std::uint64_t> before;
    for (const auto& one : machine.waiting_runs()) {
      if (one.job.value == id)
        return static_cast<int>(before.size());
      before.insert(one.job.value);
    }
    return -1;
  }
  int used(std::uint64_t id) {
    const auto details = machine.details();
    for (const auto& one : details["jobs"])
      if (one["experiment"] == id)
        return one["used"].get<int>();
    return 0;
  }
  pool machine;
  std::map<std::uint64_t, job_terms> jobs;
  std::vector<pool_event> events;
};

using ids = std::vector<std::uint64_t>;

TEST(OrderCases, TestSortTasksByPriorityAndTimestamps) {
  ordered_pool p(scheduler_kind::priority);
  p.job(1, 50);
  p.job(2, 40);
  p.ask(1, 4, 1);
  p.ask(2, 1, 1, 900s);
  p.ask(3, 0, 2);
  p.ask(4, 0, 2, 900s);
  p.ask(5, 4, 2);
  p.ask(6, 4, 2, 900s);
  static_cast<void>(p.decide());
  EXPECT_EQ(p.waiting(true), (ids{6, 5, 2, 1})) << "40: task6, task5; 50: task2, task1";
  EXPECT_EQ(p.waiting(false), (ids{4, 3}));
}

TEST(OrderCases, TestAllocationRequestComparator) {
  ordered_pool p(scheduler_kind::priority);
  auto& old = p.job(1, 42);
  old.submitted = t0;
  auto& fresh = p.job(2, 42);
  fresh.submitted = t0 + 900s;
  p.ask(1, 1, 2);
  p.ask(2, 1, 1, 900s);
  p.ask(4, 1, 1, 900s);
  p.ask(3, 1, 1, 900s);
  static_cast<void>(p.decide());
  EXPECT_EQ(p.waiting(true), (ids{2, 3, 4, 1})) << "old tasks first; the last resort is the id";
}

TEST(OrderCases, TestJobOrder_priority) {
  ordered_pool p(scheduler_kind::priority);
  for (std::uint64_t id : {1, 3, 4})
    p.job(id, 50);
  p.job(2, 40);
  p.events.push_back(agent_up{"agent1", 1});
  p.ask(11, 1, 1);
  p.ask(12, 1, 1);
  p.ask(21, 1, 2);
  p.ask(31, 1, 3);
  p.ask(41, 1, 4);
  p.ask(42, 0, 4);
  static_cast<void>(p.decide());
  EXPECT_EQ(p.used(1), 0);
  EXPECT_EQ(p.used(2), 1) << "SCHEDULED";
  EXPECT_EQ(p.ahead(1), 0) << "of those that wait; Determined counts job2, which runs, before it";
  EXPECT_EQ(p.ahead(3), 1);
  EXPECT_EQ(p.ahead(4), 2);
}

TEST(OrderCases, TestJobOrder_fair_share) {
  ordered_pool p(scheduler_kind::fair);
  p.job(1, 50, 0.5);
  for (std::uint64_t id : {2, 3, 4})
    p.job(id);
  p.events.push_back(agent_up{"agent1", 1});
  p.ask(11, 1, 1);
  p.ask(12, 1, 1);
  p.ask(21, 1, 2);
  p.ask(31, 1, 3);
  p.ask(41, 1, 4);
  p.ask(42, 0, 4);
  static_cast<void>(p.decide());
  EXPECT_EQ(p.used(1) + p.used(2) + p.used(3) + p.used(4), 1);
  EXPECT_TRUE(p.waiting(false).empty()) << "job4 is SCHEDULED by its task without slots";
}

TEST(OrderCases, TestJobOrderPriority) {
  ordered_pool p(scheduler_kind::priority);
  p.job(1, 50);
  p.job(2, 40);
  p.events.push_back(agent_up{"agent1", 1});
  p.ask(11, 1, 1);
  p.ask(12, 1, 1);
  static_cast<void>(p.decide());
  EXPECT_EQ(p.used(1), 1);
  p.ask(21, 1, 2);
  EXPECT_TRUE(p.decide().empty()) << "nobody is preempted";
  EXPECT_EQ(p.used(1), 1);
  EXPECT_EQ(p.ahead(2), 0);
  EXPECT_EQ(p.ahead(1), 1);
}

TEST(OrderCases, TestSettingGroupPriority) {
  ordered_pool p(scheduler_kind::priority, false, 50);
  p.job(1);
  p.ask(11, 1, 1);
  static_cast<void>(p.decide());
  EXPECT_EQ(p.machine.details()["jobs"][0]["priority"], 50);
  p.events.push_back(job_changed{p.job(1, 22)});
  static_cast<void>(p.decide());
  EXPECT_EQ(p.machine.details()["jobs"][0]["priority"], 22);
  p.events.push_back(slots_released{{trial_id{11}, {1}}, ""});
  static_cast<void>(p.decide());
  EXPECT_TRUE(p.machine.details()["jobs"].empty()) << "its group disappears with the job";
}

TEST(OrderCases, TestRoundRobinResourcePoolDeprecation) {
  EXPECT_TRUE(pool_settings_of({{"scheduler", "round_robin"}})) << "not as Determined: ours has one";
}

TEST(OrderCases, TestSlotStates) {
  ordered_pool p(scheduler_kind::fifo);
  p.job(1);
  p.events.push_back(agent_up{"a", 2});
  static_cast<void>(p.decide());
  const auto fits = [&](int slots) {
    p.ask(99, slots, 1);
    const auto done = p.decide();
    const bool granted = std::any_of(done.begin(), done.end(),
                                     [](const auto& x) { return std::holds_alternative<grant_slots>(x); });
    p.events.push_back(slots_released{{trial_id{99}, {1}}, ""});
    static_cast<void>(p.decide());
    return granted;
  };
  EXPECT_TRUE(fits(2)) << "connect";
  p.events.push_back(agent_drain{"a", false, {0}, false, {}});
  static_cast<void>(p.decide());
  EXPECT_FALSE(fits(2)) << "slot 0 drains";
  EXPECT_TRUE(fits(1));
  p.events.push_back(agent_drain{"a", false, {}, false, {}});
  static_cast<void>(p.decide());
  EXPECT_TRUE(fits(2)) << "all slots are enabled";
  p.ask(1, 1, 1);
  static_cast<void>(p.decide());
  p.events.push_back(agent_drain{"a", true, {}, false, {}});
  EXPECT_TRUE(p.decide().empty()) << "who runs there goes on";
  EXPECT_FALSE(fits(1));
  p.events.push_back(slots_released{{trial_id{1}, {1}}, ""});
  p.events.push_back(agent_drain{"a", true, {}, true, {}});
  static_cast<void>(p.decide());
  EXPECT_FALSE(fits(1)) << "disabled";
  p.events.push_back(agent_drain{"a", false, {}, false, {}});
  static_cast<void>(p.decide());
  EXPECT_TRUE(fits(2)) << "enabled";
}

TEST(OrderCases, TestGetResourceSummary) {
  const auto device = [](std::vector<std::pair<std::string, int>> agents) {
    ordered_pool p(scheduler_kind::fifo);
    int n = 0;
    for (const auto& [kind, slots] : agents) {
      agent_up up{"agent" + std::to_string(++n), slots};
      up.traits.device = kind;
      p.events.push_back(up);
    }
    static_cast<void>(p.decide());
    return p.machine.details()["device"].get<std::string>();
  };
  EXPECT_EQ(device({{"cuda", 1}, {"cuda", 2}}), "cuda");
  EXPECT_EQ(device({}), "cpu") << "Determined says nothing here";
  EXPECT_EQ(device({{"cuda", 0}, {"cpu", 0}, {"rocm", 0}}), "cpu") << "nor here: none has a slot";
}

// Determined refuses an agent that reconnects with other devices. Troupe takes the devices that the agent has
// now.
TEST(OrderCases, Test_agentState_checkAgentStartedDevicesMatch) {
  ordered_pool p(scheduler_kind::priority);
  p.job(1);
  const auto grants = [&](int slots, const char* device) {
    slots_requested ev{{trial_id{1}, {1}}, slots};
    ev.run.job = p.job(1);
    ev.run.rules.device_types = {device};
    p.events.push_back(ev);
    const auto done = p.decide();
    p.events.push_back(slots_released{ev.allocation, ""});
    static_cast<void>(p.decide());
    return std::any_of(done.begin(), done.end(),
                       [](const auto& x) { return std::holds_alternative<grant_slots>(x); });
  };
  const auto comes = [&](int slots, const char* device) {
    agent_up up{"a", slots, {}, {}};
    up.traits.device = device;
    p.events.push_back(up);
    static_cast<void>(p.decide());
  };
  comes(1, "nvda 3090");
  comes(1, "nvda 3090");
  EXPECT_TRUE(grants(1, "3090")) << "same";
  comes(0, "nvda 3090");
  EXPECT_FALSE(grants(1, "3090")) << "gone";
  comes(2, "nvda 3090");
  EXPECT_TRUE(grants(2, "3090")) << "extra";
  comes(1, "nvda 4090");
  EXPECT_FALSE(grants(1, "3090")) << "other properties";
  EXPECT_TRUE(grants(1, "4090"));
}

// The four variants of Determined (StopsWithError, Panics, StopsNormally, ReleaseResources) are one event
// here.
TEST(OrderCases, TestCleanUpTaskWhenTaskActor) {
  ordered_pool p(scheduler_kind::priority);
  p.job(1);
  p.events.push_back(agent_up{"a", 1});
  p.ask(1, 1, 1);
  EXPECT_EQ(p.decide().size(), 1u);
  EXPECT_EQ(p.machine.details()["jobs"].size(), 1u);
  EXPECT_EQ(p.machine.used_slots(), 1);
  p.events.push_back(slots_released{{trial_id{1}, {1}}, ""});
  EXPECT_TRUE(p.decide().empty());
  EXPECT_TRUE(p.machine.details()["jobs"].empty());
  EXPECT_EQ(p.machine.used_slots(), 0);
}

TEST(OrderCases, TestAgentStatePersistence) {
  const allocation_id held{trial_id{1}, {1}};
  ordered_pool p(scheduler_kind::priority);
  p.machine = pool(pool::phase::recovering);
  p.job(1);
  p.job(2);
  agent_up up{"a", 1, {{"1.1", {0}}}, {}};
  p.events.push_back(up);
  p.ask(2, 1, 2);
  p.events.push_back(holders_heard{});
  EXPECT_TRUE(p.decide().empty()) << "what the agent says runs there survives a restart of the master";
  slots_held again{held, {{"a", {0}}}, {}, 1};
  again.run.job = p.job(1);
  p.events.push_back(again);
  EXPECT_TRUE(p.decide().empty()) << "and is kept when it is told again";
  EXPECT_EQ(p.machine.used_slots(), 1);
  p.events.push_back(slots_released{held, ""});
  EXPECT_EQ(p.decide().size(), 1u) << "it is forgotten when it ends";
  p.events.push_back(slots_released{{trial_id{2}, {1}}, ""});
  p.events.push_back(agent_drain{"a"});
  p.events.push_back(agent_down{"a", true});
  p.events.push_back(agent_forgotten{"a"});
  p.events.push_back(agent_up{"a", 1});
  p.ask(3, 1, 2);
  EXPECT_EQ(p.decide().size(), 1u) << "with the agent went what was said of it";
}

} // namespace
} // namespace troupe
