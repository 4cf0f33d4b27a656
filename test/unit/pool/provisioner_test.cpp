// Tests elastic pools in virtual time: how many instances they have, when these are launched, and which end.

#include "actors/provider/provisioner.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

TEST(Provisioner, WantsAsManyAsTheWorkNeedsWithinTheLimitsOfJobs) {
  // The case is scaling_test.go::TestCalculatingDesiredInstanceNum (job limits) of Determined.
  const std::map<std::uint64_t, job_limit> limits{{1, {1}}, {2, {2}}, {4, {10}}};
  EXPECT_EQ(wanted_instances({{1, 1}, {1, 1}, {3, 1}, {4, 2}, {1, 2}, {1, 3}, {3, 3}, {15, 4}, {10, 3}},
                             limits, 5, 10),
            6);
  // Unlike in Determined, the slots that a job with a limit holds count.
  EXPECT_EQ(wanted_instances({{1, 2}, {1, 2}}, {{2, {2, 1}}}, 1, 10), 1);
}

// The case is that of resource_pool_test.go of Determined: no whole number of agents with 4 slots has 5
// slots.
TEST(Provisioner, ScalingInfoAgentSummary) { EXPECT_EQ(wanted_instances({{1}, {5}}, {}, 4, 100), 1); }

TEST(Provisioner, WantsAsManyAsFit) { // scaling_test.go::TestCalculatingDesiredInstanceNum
  struct row {
    const char* what;
    std::vector<waiting_run> waiting;
    /// by aux units of an agent: the instances for 0, 1 and 2 slots of an agent
    std::map<int, std::array<int, 3>> wanted;
  } rows[] = {
    {"1 running + 1 pending one-slot",
     {{1}},
     {{100, {0, 1, 1}}, {0, {0, 1, 1}}, {1, {0, 1, 1}}, {2, {0, 1, 1}}}},
    {"2 + 2 one-slot", {{1}, {1}}, {{100, {0, 2, 1}}, {0, {0, 2, 1}}, {1, {0, 2, 1}}, {2, {0, 2, 1}}}},
    {"one placed, one preempted, same totals",
     {{1}, {1}},
     {{100, {0, 2, 1}}, {0, {0, 2, 1}}, {1, {0, 2, 1}}, {2, {0, 2, 1}}}},
    {"plus one pending zero-slot",
     {{1}, {1}, {0}},
     {{100, {1, 2, 1}}, {0, {0, 2, 1}}, {1, {1, 2, 1}}, {2, {1, 2, 1}}}},
    {"plus a pending 4-slot",
     {{1}, {1}, {0}, {4}},
     {{100, {1, 6, 3}}, {0, {0, 6, 3}}, {1, {1, 6, 3}}, {2, {1, 6, 3}}}},
    {"plus a pending 3-slot",
     {{1}, {1}, {0}, {4}, {3}},
     {{100, {1, 9, 3}}, {0, {0, 9, 3}}, {1, {1, 9, 3}}, {2, {1, 9, 3}}}},
  };
  for (const auto& r : rows)
    for (const auto& [aux, wanted] : r.wanted)
      for (int slots = 0; slots < 3; ++slots)
        EXPECT_EQ(wanted_instances(r.waiting, {}, slots, aux), wanted[static_cast<std::size_t>(slots)])
          << r.what << ", " << aux << " aux, " << slots << " slots";
}

std::string show(const provisioner_step& step) {
  std::string text;
  for (const auto& fact : step.facts) {
    const auto& x = std::get<instance_changed>(fact);
    text += (text.empty() ? "" : " ") + x.what + (x.order ? " " + std::to_string(x.order) : "");
    for (const auto& id : x.ids)
      text += " " + id;
  }
  std::string orders;
  for (const auto& action : step.actions) {
    if (const auto* x = std::get_if<launch_instances>(&action))
      orders += "launch " + std::to_string(x->order) + ":" + std::to_string(x->count) + " ";
    if (const auto* x = std::get_if<terminate_instances>(&action)) {
      orders += "end";
      for (const auto& id : x->ids)
        orders += " " + id;
      orders += " (" + x->why + ") ";
    }
    if (const auto* x = std::get_if<forget_instance>(&action))
      orders += "forget " + x->agent + " ";
    if (const auto* x = std::get_if<drain_instance>(&action))
      orders += (x->on ? "drain " : "undrain ") + x->agent + " ";
    if (std::holds_alternative<provider_done>(action))
      orders += "done ";
  }
  if (!orders.empty())
    orders.pop_back();
  return text + (text.empty() && orders.empty() ? "" : " | ") + orders;
}

class Provision : public ::testing::Test {
protected:
  void SetUp() override { begin({.type = "local", .instance_slots = 1, .max_instances = 3}); }
  void begin(const provisioner_settings& settings, const std::vector<std::string>& own = {}) {
    machine.emplace("gpu", settings);
    twin.emplace("gpu", settings);
    if (!own.empty())
      past({t0, "gpu", "launched", 1, static_cast<int>(own.size()), own, ""});
    static_cast<void>(machine->resume(t0));
  }
  void past(const instance_changed& fact) {
    machine->replay(fact);
    twin->replay(fact);
  }
  /// After every step the machine has to be in the same state as a twin that took only its facts.
  std::string tell(const provisioner_event& ev, duration at) {
    const auto step = machine->apply(ev, t0 + at);
    for (const auto& fact : step.facts)
      twin->replay(decode_as<provider_fact>(encode_as(fact)).value());
    EXPECT_EQ(twin->snapshot(), machine->snapshot());
    for (const auto& action : step.actions)
      lists += std::holds_alternative<list_instances>(action);
    return show(step);
  }
  static cloud_instance one(const std::string& id) {
    return {id, cloud_instance::phase::running, "agent-" + id, t0};
  }
  static instances_listed list(const std::vector<std::string>& ids) {
    instances_listed all;
    for (const auto& id : ids)
      all.all.push_back(one(id));
    return all;
  }
  /// `runs` runs wait, and the agents of these instances exist: "i1" is idle, "i2!" runs something, "i3?" is
  /// away, and a run that waits counts on the idle "i4+".
  static pool_demand work(int runs, const std::vector<std::string>& agents = {}) {
    pool_demand out;
    if (runs > 0)
      out.runs.push_back({1, 0, runs});
    for (auto name : agents) {
      const char how = name.back();
      if (how == '!' || how == '?' || how == '+')
        name.pop_back();
      out.agents.push_back({"agent-" + name, how != '?', how != '!', false, how == '+'});
    }
    return out;
  }
  std::optional<provisioner> machine, twin;
  int lists = 0;
};

TEST_F(Provision, LaunchesForWhatWaitsOnceAndNoMoreThanAllowed) {
  EXPECT_EQ(tell(work(2), 0s), "") << "not before it knows what there is";
  EXPECT_EQ(tell(list({}), 1s), "ordered 1 | launch 1:2") << "the fact before the call";
  EXPECT_EQ(tell(work(2), 2s), "") << "they are on order";
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i2"}, ""}, 3s), "launched 1 i1 i2 | ");
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i2"}, ""}, 3s), "") << "a repeat";
  EXPECT_EQ(tell(work(9), 4s), "ordered 2 | launch 2:1") << "at most three";
  EXPECT_EQ(machine->instances(), 3);
  EXPECT_EQ(machine->starting(), 3);
}

TEST_F(Provision, ListsEveryFiveSecondsAndOneAtATime) {
  EXPECT_EQ(tell(list({}), 0s), "");
  EXPECT_EQ(machine->deadline(), t0 + 5s);
  static_cast<void>(tell(time_passed{}, 5s));
  EXPECT_EQ(lists, 1);
  static_cast<void>(tell(time_passed{}, 20s));
  EXPECT_EQ(lists, 1) << "the first has no answer yet";
  static_cast<void>(tell(instances_listed{{}, "no network"}, 21s));
  EXPECT_EQ(machine->supply().error, "no network");
  static_cast<void>(tell(time_passed{}, 25s));
  EXPECT_EQ(lists, 1) << "it backs off";
  static_cast<void>(tell(time_passed{}, 26s));
  EXPECT_EQ(lists, 2);
  static_cast<void>(tell(list({}), 26s));
  EXPECT_EQ(machine->supply().error, "");
}

TEST_F(Provision, ReplacesWhatNeverComes) {
  static_cast<void>(tell(work(1), 0s));
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:1");
  EXPECT_EQ(tell(instances_launched{1, {"i1"}, ""}, 1s), "launched 1 i1 | ");
  EXPECT_EQ(tell(list({"i1"}), 20min), "");
  EXPECT_EQ(tell(time_passed{}, 20min + 1s), "ended i1 | end i1 (never came)");
  EXPECT_EQ(tell(time_passed{}, 20min + 6s), "ordered 2 | launch 2:1") << "after a pause: it is a failure";
}

TEST_F(Provision, EndsNothingWhoseAgentNoListCouldName) {
  static_cast<void>(tell(work(1), 0s));
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:1");
  EXPECT_EQ(tell(instances_launched{1, {"i1"}, ""}, 1s), "launched 1 i1 | ");
  static_cast<void>(tell(instances_listed{{}, "no network"}, 2s));
  static_cast<void>(tell(work(0, {"i1!"}), 10s)); // the name of its agent is another than its own
  EXPECT_EQ(tell(time_passed{}, 20min + 1s), "");
  static_cast<void>(tell(instances_listed{{}, "no network"}, 21min));
  EXPECT_EQ(tell(work(0, {"i1?"}), 22min), "ended i1 | end i1 (never came)") << "nobody has come";
}

TEST_F(Provision, AListThatNamesItsAgentSavesAnInstance) {
  static_cast<void>(tell(work(2), 0s));
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:2");
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i2"}, ""}, 1s), "launched 1 i1 i2 | ");
  static_cast<void>(tell(instances_listed{{}, "no network"}, 2s));
  static_cast<void>(tell(work(1, {"i1!"}), 10s));
  static_cast<void>(tell(time_passed{}, 20min + 1s));
  EXPECT_EQ(tell(list({"i1", "i2"}), 21min), "ended i2 | end i2 (never came)");
}

TEST_F(Provision, EndsWhatIsIdleOrDisconnectedForLong) {
  begin({.instance_slots = 1, .max_instances = 3}, {"i1", "i2"});
  EXPECT_EQ(tell(list({"i1", "i2"}), 0s), "");
  EXPECT_EQ(tell(work(0, {"i1", "i2!"}), 1s), "");
  EXPECT_EQ(tell(work(0, {"i1", "i2?"}), 60s), "");
  EXPECT_EQ(tell(time_passed{}, 60s + 10min), "ended i2 | end i2 (disconnected)");
  EXPECT_EQ(tell(list({"i1", "i2"}), 10min + 70s), "") << "it was ordered to end";
  EXPECT_EQ(tell(list({"i1", "i2"}), 12min + 10s), " | end i2 (ordered before)") << "and again";
  EXPECT_EQ(tell(list({"i1"}), 12min + 20s), "");
  EXPECT_EQ(tell(time_passed{}, 1s + 20min), "ended i1 | drain agent-i1 end i1 (idle) forget agent-i2");
}

TEST_F(Provision, EndsWhatIsDrainedThoughWorkWaits) {
  begin({.instance_slots = 1, .max_instances = 2}, {"i1", "i2"});
  EXPECT_EQ(tell(list({"i1", "i2"}), 0s), "");
  auto waits = work(1, {"i1!", "i2"});
  waits.agents[1].drained = true;
  EXPECT_EQ(tell(waits, 1s), "");
  const auto then = tell(time_passed{}, 1s + 20min);
  EXPECT_NE(then.find("end i2 (idle)"), then.npos) << then;
  EXPECT_EQ(then.find("end i1"), then.npos) << then;
}

TEST_F(Provision, KeepsWhatIsIdleWhileWorkWaits) {
  begin({.instance_slots = 1, .max_instances = 1}, {"i1"});
  EXPECT_EQ(tell(list({"i1"}), 0s), "");
  EXPECT_EQ(tell(work(1, {"i1+"}), 1s), "") << "as many as there may be";
  EXPECT_EQ(tell(time_passed{}, 60min), "");
}

TEST_F(Provision, EndsWhatIsIdleThoughWorkWaitsThatCannotUseIt) {
  begin({.instance_slots = 1, .max_instances = 1}, {"i1"});
  EXPECT_EQ(tell(list({"i1"}), 0s), "");
  EXPECT_EQ(tell(work(1, {"i1"}), 1s), "");
  EXPECT_EQ(tell(time_passed{}, 1s + 20min), "ended i1 | drain agent-i1 end i1 (idle)");
}

TEST_F(Provision, LaunchesNothingWhileThePoolHearsWhatIsHeld) {
  auto hears = work(2);
  hears.whole = false;
  EXPECT_EQ(tell(hears, 0s), "");
  EXPECT_EQ(tell(list({}), 1s), "");
  EXPECT_EQ(tell(work(2), 2s), "ordered 1 | launch 1:2");
}

TEST_F(Provision, LaunchesForAGangOnceWhereItsInstancesComeOneByOne) {
  begin({.type = "local", .instance_slots = 2, .max_instances = 9});
  const auto gang = [](int slots, const std::vector<std::string>& agents) {
    auto out = work(0, agents);
    out.runs.push_back({slots, 1});
    return out;
  };
  EXPECT_EQ(tell(gang(8, {}), 0s), "");
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:4");
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i2", "i3", "i4"}, ""}, 1s), "launched 1 i1 i2 i3 i4 | ");
  EXPECT_EQ(tell(list({"i1", "i2", "i3", "i4"}), 2s), "");
  EXPECT_EQ(tell(gang(6, {"i1+"}), 4s), "");
  EXPECT_EQ(tell(gang(4, {"i1+", "i2+"}), 8s), "");
  EXPECT_EQ(tell(gang(4, {"i1+", "i2+", "i3!"}), 12s), "ordered 2 | launch 2:1") << "another run has one";
}

TEST_F(Provision, TellsHowItsAgentsAreCalled) {
  begin({.type = "local", .instance_slots = 1, .max_instances = 3}, {"i1"});
  EXPECT_EQ(machine->supply().prefix, "gpu-");
  EXPECT_EQ(machine->supply().agents, std::set<std::string>{"i1"});
  EXPECT_EQ(tell(list({"i1"}), 0s), "");
  EXPECT_EQ(machine->supply().agents, std::set<std::string>{"agent-i1"});
  EXPECT_EQ(tell(provider_configured{{{"type", "command"}}}, 1s), "");
  EXPECT_EQ(machine->supply().prefix, "");
  EXPECT_EQ(machine->supply().changes, 1u);
}

TEST_F(Provision, TellsOfAChangeOnlyWhereItsInstancesAreOthers) {
  const value first{
    {"type", "command"},         {"instance_slots", 1},           {"labels", {{"zone", "a"}}},
    {"list", {"cloud", "list"}}, {"launch", {"cloud", "launch"}}, {"terminate", {"cloud", "terminate"}}};
  struct row {
    const char* key;
    value to;
    bool others;
  } rows[] = {
    {"min_instances", 1, false},
    {"max_instances", 9, false},
    {"max_idle_agent_period", "1m", false},
    {"max_agent_starting_period", "1m", false},
    {"launch_error_timeout", "1m", false},
    {"launch_error_retries", 3, false},
    {"aux_per_agent", 7, false},
    {"former", {{{"type", "local"}}}, false},
    {"type", "local", true},
    {"instance_slots", 2, true},
    {"labels", {{"zone", "b"}}, true},
    {"list", {"cloud", "list", "b"}, true},
    {"launch", {"cloud", "launch", "b"}, true},
    {"terminate", {"cloud", "terminate", "b"}, true},
  };
  for (const auto& r : rows) {
    begin(provisioner_settings_of(first));
    auto next = first;
    next[r.key] = r.to;
    static_cast<void>(tell(provider_configured{next}, 1s));
    EXPECT_EQ(machine->supply().changes, r.others ? 1u : 0u) << r.key;
    static_cast<void>(tell(provider_configured{next}, 2s));
    EXPECT_EQ(machine->supply().changes, r.others ? 1u : 0u) << r.key << ", the same again";
  }
}

TEST_F(Provision, KeepsTheLeastNumberAndEndsWhatIsTooMany) {
  begin({.instance_slots = 1, .min_instances = 1, .max_instances = 2});
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:1");
  EXPECT_EQ(tell(instances_launched{1, {"i1"}, ""}, 1s), "launched 1 i1 | ");
  EXPECT_EQ(tell(work(0, {"i1"}), 2s), "");
  EXPECT_EQ(tell(list({"i1"}), 59min), "") << "one stays";
  EXPECT_EQ(tell(work(0, {"i1!"}), 60min), "");
  EXPECT_EQ(tell(provider_configured{{{"type", "local"}, {"max_instances", 0}}}, 61min),
            "ended i1 | drain agent-i1 end i1 (too many)");
}

TEST_F(Provision, EndsTheIdleBeforeTheBusyWhereThereAreTooMany) {
  begin({.instance_slots = 1, .max_instances = 1}, {"i1", "i2", "i3"});
  EXPECT_EQ(tell(work(0, {"i1!", "i2"}), 0s), "");
  EXPECT_EQ(tell(list({"i1", "i2", "i3"}), 1s), "ended i2 i3 | drain agent-i2 end i2 i3 (too many)");
}

TEST_F(Provision, BacksOffAfterFailuresAndLaunchesNoStorm) {
  static_cast<void>(tell(work(3), 0s));
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:3");
  EXPECT_EQ(tell(instances_launched{1, {}, "no quota"}, 1s), "failed 1 | ");
  EXPECT_EQ(machine->supply().error, "no quota");
  EXPECT_EQ(tell(list({}), 2s), "");
  EXPECT_EQ(tell(time_passed{}, 6s), "ordered 2 | launch 2:3");
  EXPECT_EQ(tell(instances_launched{2, {}, "no quota"}, 7s), "failed 2 | ");
  EXPECT_EQ(tell(time_passed{}, 16s), "");
  EXPECT_EQ(tell(time_passed{}, 17s), "ordered 3 | launch 3:3");
  EXPECT_EQ(tell(instances_launched{3, {"i1", "i2", "i3", "i4"}, ""}, 18s),
            "launched 3 i1 i2 i3 i4 ended i4 | end i4 (too many)")
    << "more than it ordered";
  EXPECT_EQ(machine->supply().error, "");
  EXPECT_EQ(machine->supply().faults.size(), 1u) << "that it launches more is said";
}

TEST_F(Provision, SaysAnErrorOnlyAfterTheRetriesAndTheTimeItWasGiven) {
  begin({.type = "local", .instance_slots = 1, .error_timeout = 10s, .error_retries = 1});
  static_cast<void>(tell(work(1), 0s));
  static_cast<void>(tell(list({}), 0s));
  static_cast<void>(tell(instances_launched{1, {}, "no quota"}, 1s));
  EXPECT_EQ(machine->supply().error, "");
  EXPECT_EQ(tell(time_passed{}, 6s), "ordered 2 | launch 2:1");
  static_cast<void>(tell(instances_launched{2, {}, "no quota"}, 7s));
  EXPECT_EQ(machine->supply().error, "") << "ten seconds are not over";
  EXPECT_EQ(tell(time_passed{}, 17s), "ordered 3 | launch 3:1");
  static_cast<void>(tell(instances_launched{3, {}, "no quota"}, 18s));
  EXPECT_EQ(machine->supply().error, "no quota");
}

TEST_F(Provision, ForgetsFailedLaunchesOnceAnAgentCameAlsoWhereItsNameIsToldLater) {
  static_cast<void>(tell(work(1), 0s));
  static_cast<void>(tell(list({}), 0s));
  static_cast<void>(tell(instances_launched{1, {}, "no quota"}, 1s));
  static_cast<void>(tell(time_passed{}, 6s));
  static_cast<void>(tell(instances_launched{2, {"i1"}, ""}, 7s));
  static_cast<void>(tell(work(0, {"i1"}), 8s));
  EXPECT_EQ(machine->supply().failed_launches, 1) << "nobody knows yet whose agent it is";
  static_cast<void>(tell(list({"i1"}), 9s));
  EXPECT_EQ(machine->supply().failed_launches, 0);
}

TEST_F(Provision, WaitsLongerEachTimeThatAnInstanceBringsTheAgentOfAnother) {
  static_cast<void>(tell(work(2), 0s));
  static_cast<void>(tell(list({}), 0s));
  static_cast<void>(tell(instances_launched{1, {"i1", "i2"}, ""}, 1s));
  static_cast<void>(tell(work(1, {"i1!"}), 2s));
  auto all = list({"i1", "i2"});
  all.all[1].agent = "agent-i1";
  EXPECT_EQ(tell(all, 3s), "ended i2 | end i2 (reported twice)") << "no launch at once";
  EXPECT_EQ(machine->supply().retry_at, t0 + 8s);
  EXPECT_EQ(tell(time_passed{}, 8s), "ordered 2 | launch 2:1");
  static_cast<void>(tell(instances_launched{2, {"i3"}, ""}, 9s));
  all.all[1].id = "i3";
  EXPECT_EQ(tell(all, 10s), "ended i3 | end i3 (reported twice)");
  EXPECT_EQ(machine->supply().failed_launches, 2);
  EXPECT_EQ(machine->supply().retry_at, t0 + 20s);
}

TEST_F(Provision, TellsWhichLaunchesFailedAndWhenTheyAreTriedAgain) {
  begin({.type = "local", .instance_slots = 1, .error_retries = 1});
  const auto told = [&] {
    const auto x = machine->supply();
    const auto at = [](time_point t) {
      return t == time_point{}
               ? "-"
               : std::to_string(std::chrono::duration_cast<std::chrono::seconds>(t - t0).count());
    };
    return x.error + " | " + std::to_string(x.failed_launches) + " " + at(x.launch_failed_at) + " " +
           x.launch_failure + " | " + at(x.retry_at);
  };
  static_cast<void>(tell(work(1), 0s));
  static_cast<void>(tell(list({}), 0s));
  EXPECT_EQ(told(), " | 0 -  | -");
  static_cast<void>(tell(instances_launched{1, {}, "no quota"}, 1s));
  EXPECT_EQ(told(), " | 1 1 no quota | 6") << "it is no error yet";
  static_cast<void>(tell(time_passed{}, 6s));
  static_cast<void>(tell(instances_launched{2, {}, "no quota"}, 7s));
  EXPECT_EQ(told(), "no quota | 2 7 no quota | 17");
  static_cast<void>(tell(work(0), 8s));
  EXPECT_EQ(told(), "no quota | 2 7 no quota | 17") << "nothing waits, and its time says how old it is";
  static_cast<void>(tell(provider_configured{{{"type", "local"}, {"instance_slots", 1}}}, 9s));
  EXPECT_EQ(told(), " | 0 -  | -") << "other settings are tried at once";
  EXPECT_EQ(tell(work(1), 10s), "ordered 3 | launch 3:1");
  static_cast<void>(tell(instances_launched{3, {}, "no quota"}, 11s));
  EXPECT_EQ(tell(time_passed{}, 16s), "ordered 4 | launch 4:1");
  static_cast<void>(tell(instances_launched{4, {"i1"}, ""}, 17s));
  EXPECT_EQ(told(), " | 1 11 no quota | -") << "whether it is right shows when its agent registers";
  static_cast<void>(tell(list({"i1"}), 18s));
  static_cast<void>(tell(work(0, {"i1!"}), 19s));
  EXPECT_EQ(told(), " | 0 -  | -");
  static_cast<void>(tell(instances_listed{{}, "no network"}, 20s));
  EXPECT_EQ(told(), "no network | 0 -  | 25");
}

TEST_F(Provision, TellsEachCallThatFails) {
  begin({.instance_slots = 1, .max_instances = 3}, {"i1"});
  static_cast<void>(tell(work(2), 0s));
  EXPECT_EQ(tell(list({"i1", "x1"}), 0s), "ended x1 ordered 1 | end x1 (unknown) launch 1:1");
  EXPECT_EQ(tell(instances_launched{1, {}, "no quota"}, 1s), "failed 1 | ");
  static_cast<void>(tell(instances_ended{{"x1"}, "cannot end"}, 1s));
  EXPECT_EQ(machine->supply().error, "no quota");
  const auto is_told = [this] {
    const auto faults = machine->supply().faults;
    return std::find(faults.begin(), faults.end(), "cannot end") != faults.end();
  };
  EXPECT_TRUE(is_told()) << "beside the error";
  static_cast<void>(tell(instances_ended{{"x1"}, ""}, 2s));
  EXPECT_FALSE(is_told());
}

TEST_F(Provision, TakesFewerThanOrderedAndAsksForTheRestLater) {
  static_cast<void>(tell(work(3), 0s));
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:3");
  EXPECT_EQ(tell(instances_launched{1, {"i1"}, ""}, 1s), "launched 1 i1 | ");
  EXPECT_EQ(tell(list({"i1"}), 3s), "") << "not at once";
  EXPECT_EQ(tell(time_passed{}, 6s), "ordered 2 | launch 2:2");
}

TEST_F(Provision, SameIdAgainIsNoNewInstanceAndNoStorm) {
  static_cast<void>(tell(work(2), 0s));
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:2");
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i1"}, ""}, 1s), "launched 1 i1 | ");
  EXPECT_EQ(tell(time_passed{}, 6s), "ordered 2 | launch 2:1");
  EXPECT_EQ(tell(instances_launched{2, {"i1"}, ""}, 7s), "failed 2 | ");
  EXPECT_EQ(tell(time_passed{}, 8s), "");
}

TEST_F(Provision, TakesTheFirstOfTwoThatClaimOneAgent) {
  begin({.instance_slots = 1, .max_instances = 3}, {"i1", "i2"});
  auto all = list({"i1", "i2"});
  all.all[1].agent = "agent-i1";
  EXPECT_EQ(tell(all, 0s), "ended i2 | end i2 (reported twice)");
  EXPECT_EQ(machine->supply().faults.size(), 1u);
}

TEST_F(Provision, EndsWhatHasStoppedAndTakesAnother) {
  begin({.instance_slots = 1, .max_instances = 2}, {"i1"});
  static_cast<void>(tell(work(0, {"i1!"}), 0s));
  EXPECT_EQ(tell(list({"i1"}), 0s), "");
  auto all = list({"i1", "x1"});
  for (auto& one : all.all)
    one.state = cloud_instance::phase::stopped;
  EXPECT_EQ(tell(all, 1s), "ended i1 x1 | drain agent-i1 end i1 x1 (stopped)");
  EXPECT_EQ(machine->supply().faults.size(), 0u);
  EXPECT_EQ(tell(work(1), 2s), "ordered 1 | launch 1:1");
  EXPECT_EQ(tell(all, 6s), "") << "it is being ended";
}

TEST_F(Provision, WhatDoesNotEndCountsAmongThoseThatThereMayBe) {
  begin({.instance_slots = 1, .max_instances = 1}, {"i1"});
  EXPECT_EQ(tell(work(1), 0s), "");
  EXPECT_EQ(tell(list({"i1"}), 0s), "");
  EXPECT_EQ(tell(time_passed{}, 20min), "ended i1 | end i1 (never came)");
  EXPECT_EQ(tell(instances_ended{{"i1"}, "no answer"}, 20min), "");
  EXPECT_EQ(tell(list({"i1"}), 20min + 4s), "") << "a second one would be above the limit";
  auto told = machine->supply();
  EXPECT_EQ(told.instances, 0);
  EXPECT_EQ(told.stopping, 1);
  EXPECT_NE(told.faults.size() + told.error.size(), 0u);
  auto at =
    20min + 5s; // the order is repeated after 5 s, and later ones after pauses that double up to 5 minutes
  for (const auto pause : {10s, 20s, 40s, 80s, 160s, 300s, 300s}) {
    EXPECT_EQ(tell(list({"i1"}), at), " | end i1 (ordered before)") << at.count();
    EXPECT_EQ(tell(instances_ended{{"i1"}, "no answer"}, at), "");
    EXPECT_EQ(tell(list({"i1"}), at + pause - 1s), "");
    at += pause;
  }
  EXPECT_EQ(tell(list({"i1"}), at), " | end i1 (ordered before)");
  EXPECT_EQ(tell(instances_ended{{"i1"}, ""}, at), "ordered 1 | launch 1:1") << "it ends";
}

TEST_F(Provision, TellsWhatItCannotEndUntilThatIsGone) {
  begin({.instance_slots = 1, .max_instances = 2}, {"i1", "i2"});
  const auto told = [this] {
    const auto is = machine->supply();
    return std::tuple(is.instances, is.stopping, is.error,
                      is.retry_at == time_point{} ? 0s : is.retry_at - t0 - 20min);
  };
  const std::string why = "terminate: exit code 1";
  EXPECT_EQ(tell(work(0, {"i1", "i2"}), 0s), "");
  EXPECT_EQ(tell(list({"i1", "i2"}), 0s), "");
  EXPECT_EQ(tell(time_passed{}, 20min), "ended i1 i2 | drain agent-i1 drain agent-i2 end i1 i2 (idle)");
  EXPECT_EQ(told(), std::tuple(0, 2, "", 0s));
  EXPECT_EQ(tell(instances_ended{{"i1", "i2"}, why}, 20min), "");
  EXPECT_EQ(told(), std::tuple(0, 2, why, 5s));
  EXPECT_EQ(tell(list({"i1", "i2"}), 20min + 5s), " | end i1 i2 (ordered before)");
  EXPECT_EQ(tell(instances_ended{{"i1"}, ""}, 20min + 5s), "");
  EXPECT_EQ(std::get<2>(told()), why) << "of i2";
  EXPECT_EQ(tell(list({}), 20min + 10s), "");
  EXPECT_EQ(told(), std::tuple(0, 0, "", 0s)) << "both have gone by themselves";
}

TEST_F(Provision, EndsWhatNobodyKnowsByItsTag) {
  EXPECT_EQ(tell(list({"x1"}), 0s), "ended x1 | end x1 (unknown)");
}

TEST_F(Provision, TakesWhatWasLaunchedWhileTheMasterDied) {
  past({t0, "gpu", "ordered", 1, 2, {}, ""}); // the answer to this order was lost
  static_cast<void>(tell(work(2), 0s));
  EXPECT_EQ(tell(list({"i1", "i2", "x3"}), 1s), "adopted 1 i1 i2 ended x3 | end x3 (unknown)");
  EXPECT_EQ(machine->instances(), 2);
}

TEST_F(Provision, TakesWhatALaunchBringsLateThatOutlivedTheMaster) {
  begin({.type = "command", .instance_slots = 1, .max_instances = 3});
  past({t0, "gpu", "ordered", 1, 2, {}, "command"}); // the command still runs
  EXPECT_EQ(tell(work(2), 0s), "");
  EXPECT_EQ(tell(list({}), 1s), "") << "it may still bring them";
  EXPECT_EQ(machine->instances(), 2);
  EXPECT_EQ(tell(work(0, {"i1!"}), 20s), "") << "a run is placed on the first one";
  EXPECT_EQ(tell(list({"i1"}), 30s), "adopted 1 i1 | ");
  EXPECT_EQ(machine->instances(), 2) << "one more may come";
  EXPECT_EQ(tell(list({"i1", "i2", "x3"}), 79s), "adopted 1 i2 ended x3 | end x3 (unknown)");
  EXPECT_EQ(machine->instances(), 2);
}

TEST_F(Provision, KnowsNothingOfWhatComesAfterTheTimeLimitOfALaunch) {
  begin({.type = "command", .instance_slots = 1, .max_instances = 3});
  past({t0, "gpu", "ordered", 1, 2, {}, "command"});
  EXPECT_EQ(tell(work(2), 0s), "");
  EXPECT_EQ(tell(list({"i1"}), 40s), "adopted 1 i1 | ");
  EXPECT_EQ(tell(list({"i1"}), 79s), "");
  EXPECT_EQ(tell(list({"i1"}), 80s), "failed 1 ordered 2 | launch 2:1");
  EXPECT_EQ(tell(instances_launched{2, {"i3"}, ""}, 81s), "launched 2 i3 | ");
  EXPECT_EQ(tell(list({"i1", "i2", "i3"}), 82s), "ended i2 | end i2 (unknown)");
}

TEST_F(Provision, CountsOnceWhoseAgentRegistersBeforeItIsNamed) {
  begin({.type = "command", .instance_slots = 2, .max_instances = 9});
  const auto gang = [](int slots, std::vector<pool_agent_state> agents) {
    auto out = work(0);
    if (slots > 0)
      out.runs.push_back({slots, 1});
    out.agents = std::move(agents);
    return out;
  };
  const auto unnamed = [](const char* name) {
    return pool_agent_state{name, true, true, false, false, false};
  };
  const auto awaited = [](const char* name) { return pool_agent_state{name, true, true, false, true, true}; };
  EXPECT_EQ(tell(gang(6, {}), 0s), "");
  EXPECT_EQ(tell(list({}), 0s), "ordered 1 | launch 1:3");
  EXPECT_EQ(tell(gang(6, {unnamed("i1")}), 1s), "") << "the launch has not answered yet";
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i2", "i3"}, ""}, 2s), "launched 1 i1 i2 i3 | ");
  EXPECT_EQ(machine->starting(), 2);
  EXPECT_EQ(tell(gang(4, {awaited("i1")}), 2s), "") << "the pool has heard of the first one";
  EXPECT_EQ(tell(gang(4, {awaited("i1"), unnamed("gpu2")}), 3s), "") << "the list does not name it yet";
  auto all = list({"i1", "i2", "i3"});
  all.all[0].agent = all.all[2].agent = "";
  all.all[1].agent = "gpu2";
  EXPECT_EQ(tell(all, 4s), "");
  EXPECT_EQ(machine->starting(), 1);
  EXPECT_EQ(tell(gang(2, {awaited("i1"), awaited("gpu2")}), 4s), "");
  EXPECT_EQ(tell(gang(4, {awaited("i1"), awaited("gpu2")}), 5s), "ordered 2 | launch 2:1") << "another run";
}

TEST_F(Provision, OrdersAnewWhereTheMasterDiedBeforeTheCall) {
  past({t0, "gpu", "ordered", 1, 2, {}, "local"}); // such a launch ends with the master
  static_cast<void>(tell(work(2), 0s));
  EXPECT_EQ(tell(list({}), 1s), "failed 1 ordered 2 | launch 2:2");
}

TEST_F(Provision, KeepsOneThatTheProviderForgetsWhileItsAgentIsThere) {
  begin({.instance_slots = 1, .max_instances = 3}, {"i1", "i2"});
  static_cast<void>(tell(list({"i1", "i2"}), 0s));
  static_cast<void>(tell(work(0, {"i1!", "i2?"}), 1s));
  EXPECT_EQ(tell(list({}), 1min), "gone i2 | ") << "a spot instance that went";
  EXPECT_EQ(machine->supply().faults.size(), 1u);
  EXPECT_EQ(machine->instances(), 1);
}

TEST_F(Provision, KeepsTheNameOfAnAgentThatAListLeavesOut) {
  begin({.instance_slots = 1, .max_instances = 3, .max_starting = 1min}, {"i1", "i2"});
  static_cast<void>(tell(list({"i1"}), 0s));
  static_cast<void>(tell(work(0, {"i1!"}), 1s));
  auto all = list({"i1", "i2"});
  all.all[0].agent = all.all[1].agent = "";
  EXPECT_EQ(tell(all, 30s), "");
  EXPECT_EQ(machine->supply().agents, (std::set<std::string>{"agent-i1", "i2"}));
  EXPECT_EQ(machine->starting(), 1);
  all.all[1].agent = "agent-i1";
  EXPECT_EQ(tell(all, 31s), "ended i2 | end i2 (reported twice)") << "the first has that name still";
  all.all[0].agent = "other";
  EXPECT_EQ(tell(all, 32s), " | drain agent-i1") << "it is that of the one that ends";
  EXPECT_EQ(machine->supply().agents, std::set<std::string>{"other"});
}

TEST_F(Provision, WithoutAProviderEndsOnlyWhatIsIdle) {
  begin({.type = "local", .instance_slots = 1, .max_instances = 3}, {"i1", "i2"});
  static_cast<void>(tell(list({"i1", "i2"}), 0s));
  static_cast<void>(tell(work(0, {"i1!", "i2"}), 1s));
  EXPECT_EQ(tell(provider_configured{}, 2s), "ended i2 | drain agent-i2 end i2 (idle) drain agent-i1");
  EXPECT_EQ(tell(work(5, {"i1!"}), 3s), "");
  EXPECT_EQ(machine->supply().type, "");
  const std::set<std::string> both{"agent-i1", "agent-i2"};
  EXPECT_EQ(machine->supply().ended, both) << "i1 ends once it is idle";
  EXPECT_EQ(tell(list({"i1"}), 3s), "");
  EXPECT_EQ(machine->supply().ended, both) << "until the cluster forgets it";
  machine->forgotten("agent-i2");
  EXPECT_EQ(machine->supply().ended, std::set<std::string>{"agent-i1"});
  EXPECT_EQ(tell(work(5, {"i1"}), 4s), "ended i1 | drain agent-i1 end i1 (idle)");
}

// ---- agents of instances that are gone

TEST_F(Provision, HasTheAgentOfAnInstanceThatIsGoneForgotten) {
  begin({.type = "local", .instance_slots = 1, .max_instances = 3}, {"i1", "i2"});
  static_cast<void>(tell(list({"i1", "i2"}), 0s));
  static_cast<void>(tell(work(0, {"i1", "i2!"}), 1s));
  EXPECT_EQ(tell(time_passed{}, 1h), "ended i1 | drain agent-i1 end i1 (idle)");
  EXPECT_EQ(tell(work(0, {"i1?", "i2!"}), 1h + 1s), "") << "it may still end";
  EXPECT_EQ(tell(list({"i2"}), 1h + 2s), "");
  EXPECT_EQ(tell(time_passed{}, 1h + 3s), " | forget agent-i1");
  EXPECT_EQ(tell(time_passed{}, 1h + 12s), "");
  EXPECT_EQ(tell(time_passed{}, 1h + 13s), " | forget agent-i1") << "its runs are not given away yet";
  machine->forgotten("agent-i1");
  EXPECT_EQ(tell(list({}), 1h + 30s), "") << "the agent is connected";
  EXPECT_EQ(tell(work(0, {"i2?"}), 1h + 31s), "");
  EXPECT_EQ(tell(list({}), 1h + 32s), "gone i2 | ") << "a spot instance went";
  EXPECT_EQ(tell(time_passed{}, 1h + 33s), " | forget agent-i2");
}

TEST_F(Provision, ForgetsNoAgentWhoseNameIsUsedAgain) {
  static_cast<void>(tell(work(1), 0s));
  static_cast<void>(tell(list({}), 0s));
  static_cast<void>(tell(instances_launched{1, {"i1"}, ""}, 1s));
  static_cast<void>(tell(list({}), 30s));
  static_cast<void>(tell(time_passed{}, 36s));
  EXPECT_EQ(tell(instances_launched{2, {"i1"}, ""}, 37s), "launched 2 i1 | undrain i1");
  EXPECT_EQ(tell(time_passed{}, 50s), "");
}

TEST_F(Provision, ForgetsTheAgentOfWhatNobodyKnows) {
  struct row {
    const char* what;
    std::string told;  ///< agent that `list` names when it first shows the instance
    std::string agent; ///< agent of the pool when the instance is ended
    std::string late;  ///< agent that registers later
    std::string told_late;
    const char *ended, *drained, *forgotten;
  } rows[] = {
    {"named", "a", "a", "a", "a", "ended x1 | drain a end x1 (unknown)", "", " | forget a"},
    {"named, and registers late", "a", "", "a", "a", "ended x1 | end x1 (unknown)", " | drain a",
     " | forget a"},
    {"named late", "", "a", "a", "a", "ended x1 | end x1 (unknown)", " | drain a", " | forget a"},
    {"named once", "a", "a", "a", "", "ended x1 | drain a end x1 (unknown)", "", " | forget a"},
    {"named, beside an agent of its id", "a", "x1", "a", "a", "ended x1 | end x1 (unknown)", " | drain a",
     " | forget a"},
    {"has its id", "", "x1", "x1", "", "ended x1 | drain x1 end x1 (unknown)", "", " | forget x1"},
    {"has its id, and registers late", "", "", "x1", "", "ended x1 | end x1 (unknown)", " | drain x1",
     " | forget x1"},
    {"never came, unnamed", "", "", "", "", "ended x1 | end x1 (unknown)", "", ""},
    {"claims the agent of another", "agent-i1", "", "", "agent-i1", "ended x1 | end x1 (unknown)", "", ""},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.what);
    begin({.type = "local", .instance_slots = 1, .max_instances = 3}, {"i1"});
    const auto here = [](const std::string& agent) {
      auto out = work(0, {"i1!"});
      if (!agent.empty())
        out.agents.push_back({agent, true});
      return out;
    };
    static_cast<void>(tell(list({"i1"}), 0s));
    static_cast<void>(tell(here(r.agent), 1s));
    auto all = list({"i1", "x1"});
    all.all[1].agent = r.told;
    EXPECT_EQ(tell(all, 2s), r.ended);
    all.all[1].agent = r.told_late;
    EXPECT_EQ(tell(here(r.late), 3s) + tell(all, 4s), r.drained);
    EXPECT_EQ(tell(work(0, {"i1!"}), 5s) + tell(list({"i1"}), 6s), "");
    EXPECT_EQ(tell(time_passed{}, 7s), r.forgotten);
  }
}

TEST_F(Provision, ForgetsTheAgentOfWhatHasStoppedAndNobodyKnows) {
  auto all = list({"x1"});
  all.all[0].state = cloud_instance::phase::stopped;
  static_cast<void>(tell(work(0, {"x1"}), 0s));
  EXPECT_EQ(tell(all, 1s), "ended x1 | drain agent-x1 end x1 (stopped)");
  EXPECT_EQ(tell(list({}), 2s), "");
  EXPECT_EQ(tell(time_passed{}, 3s), " | forget agent-x1");
}

TEST_F(Provision, UndrainsTheAgentOfWhatNobodyKnewForANewInstanceOfItsName) {
  static_cast<void>(tell(work(0, {"x1"}), 0s));
  EXPECT_EQ(tell(list({"x1"}), 1s), "ended x1 | drain agent-x1 end x1 (unknown)");
  EXPECT_EQ(tell(work(1), 2s), "ordered 1 | launch 1:1");
  EXPECT_EQ(tell(instances_launched{1, {"i1"}, ""}, 3s), "launched 1 i1 | ");
  auto all = list({"i1"});
  all.all[0].agent = "agent-x1";
  EXPECT_EQ(tell(all, 4s), " | undrain agent-x1") << "nor is it forgotten";
  EXPECT_EQ(tell(time_passed{}, 6s), "");
}

TEST_F(Provision, GivesAgentsTheirTimeToComeBackAfterARestart) {
  machine.emplace("gpu", provisioner_settings{.type = "local", .instance_slots = 1, .max_instances = 3});
  twin.emplace("gpu", provisioner_settings{});
  past({t0, "gpu", "ordered", 1, 1, {}, "local"});
  past({t0, "gpu", "launched", 1, 1, {"i1"}, ""});
  static_cast<void>(machine->resume(t0 + 5h));
  EXPECT_EQ(tell(list({"i1"}), 5h + 1s), "") << "it was launched long ago";
  EXPECT_EQ(tell(time_passed{}, 5h + 20min), "ended i1 | end i1 (never came)");
}

TEST_F(Provision, ReplacesAtOnceWhatEndedWithTheMaster) {
  const auto start_again = [&] {
    machine.emplace("gpu", provisioner_settings{
                             .type = "local", .instance_slots = 1, .min_instances = 1, .max_instances = 3});
    twin.emplace("gpu", provisioner_settings{});
    past({t0, "gpu", "ordered", 1, 1, {}, "local"});
    past({t0, "gpu", "launched", 1, 1, {"i1"}, ""});
    static_cast<void>(machine->resume(t0 + 5h));
  };
  start_again();
  EXPECT_EQ(tell(work(0), 5h), "");
  EXPECT_EQ(tell(list({}), 5h + 1s), "gone i1 ordered 2 | launch 2:1");
  EXPECT_EQ(machine->supply().error, "") << "its agent had registered before";

  start_again();
  lists = 0;
  EXPECT_EQ(tell(list({}), 5h + 1s), "") << "the pool has not told whether something runs there";
  EXPECT_EQ(tell(work(0), 5h + 2s), "");
  EXPECT_EQ(lists, 1) << "which it looks at once more";
  EXPECT_EQ(tell(list({}), 5h + 3s), "gone i1 ordered 2 | launch 2:1");

  start_again();
  pool_demand runs;
  runs.agents.push_back({"i1", false, false});
  EXPECT_EQ(tell(runs, 5h), "");
  EXPECT_EQ(tell(list({}), 5h + 19s), "") << "its agent may come back";
  EXPECT_EQ(tell(list({}), 5h + 20s), "gone i1 ordered 2 | launch 2:1");
}

TEST_F(Provision, TakesNoNewsOfTheAgentThatEndedWithTheMasterForTheNewOneOfItsName) {
  begin({.type = "local", .instance_slots = 2, .max_instances = 4}, {"i1"});
  const auto runs = [](int waiting, bool here, bool idle) {
    auto out = work(waiting);
    out.agents.push_back({"i1", here, idle, false, here && idle});
    return out;
  };
  EXPECT_EQ(tell(runs(0, false, false), 0s), "")
    << "two runs are held on the agent, which does not come back";
  EXPECT_EQ(tell(list({}), 1s), "");
  EXPECT_EQ(tell(runs(1, false, false), 5s), "ordered 1 | launch 1:1") << "the first of them is given up";
  EXPECT_EQ(tell(instances_launched{1, {"i1"}, ""}, 6s), "launched 1 i1 | ") << "the lowest number is free";
  EXPECT_EQ(tell(runs(2, false, true), 7s), "") << "the second one is given up; one instance is for both";
  EXPECT_EQ(machine->starting(), 1);
  EXPECT_EQ(tell(runs(4, false, true), 8s), "ordered 2 | launch 2:1");
  EXPECT_EQ(tell(instances_launched{2, {"i1"}, ""}, 9s), "failed 2 | ") << "it is the one that starts";
  EXPECT_EQ(tell(runs(0, true, true), 10s), "") << "it has registered";
  EXPECT_EQ(machine->starting(), 0);
}

TEST_F(Provision, UndrainsTheNameOfWhatItLaunches) {
  const provisioner_settings settings{.type = "local", .instance_slots = 1, .max_instances = 3};
  machine.emplace("gpu", settings, std::set<std::string>{"i1"});
  twin.emplace("gpu", settings);
  past({t0, "gpu", "ordered", 1, 1, {}, "local"});
  past({t0, "gpu", "launched", 1, 1, {"i1"}, ""});
  past({t0, "gpu", "ended", 0, 0, {"i1"}, "idle"}); // it was drained, and it ended when the master died
  EXPECT_EQ(show({{}, machine->resume(t0 + 1h)}), " | forget i1") << "refused until its lease is over";
  EXPECT_EQ(tell(work(1), 1h), "");
  EXPECT_EQ(tell(list({}), 1h + 1s), "ordered 2 | launch 2:1");
  EXPECT_EQ(tell(instances_launched{2, {"i1"}, ""}, 1h + 2s), "launched 2 i1 | undrain i1");
  auto comes = work(1);
  comes.agents.push_back({"i1", true, true, true, false});
  EXPECT_EQ(tell(comes, 1h + 3s), "") << "its agent registers before the drain is taken back";
  EXPECT_EQ(machine->starting(), 1);
  comes.agents[0] = {"i1", true, false, false, false};
  EXPECT_EQ(tell(comes, 1h + 4s), "ordered 3 | launch 3:1") << "it runs something, and another run waits";
  comes.agents[0].drained = true;
  EXPECT_EQ(tell(comes, 1h + 5s), "");
  EXPECT_EQ(machine->starting(), 1) << "the one on order: it is an operator who drains the agent later";
}

TEST_F(Provision, UndrainsTheNameOfWhatWasLaunchedWhileTheMasterDied) {
  past({t0, "gpu", "ordered", 1, 1, {}, "local"});
  past({t0, "gpu", "launched", 1, 1, {"agent-i1"}, ""});
  past({t0, "gpu", "ended", 0, 0, {"agent-i1"}, "idle"});
  past({t0, "gpu", "ordered", 2, 1, {}, "local"});
  EXPECT_EQ(tell(list({"i1"}), 1s), "adopted 2 i1 | undrain agent-i1");
}

TEST_F(Provision, RemembersWhoIsGoneAfterARestart) {
  const provisioner_settings settings{.type = "local", .instance_slots = 1, .max_instances = 3};
  machine.emplace("gpu", settings, std::set<std::string>{"i1", "i2", "other"});
  for (const instance_changed& fact : {instance_changed{t0, "gpu", "ordered", 1, 3, {}, "local"},
                                       instance_changed{t0, "gpu", "launched", 1, 3, {"i1", "i2", "i3"}, ""},
                                       instance_changed{t0, "gpu", "ended", 0, 0, {"i1", "i2", "i3"}, "idle"},
                                       instance_changed{t0, "gpu", "ordered", 2, 1, {}, "local"},
                                       instance_changed{t0, "gpu", "launched", 2, 1, {"i2"}, ""}})
    machine->replay(fact);
  EXPECT_EQ(show({{}, machine->resume(t0)}), " | forget i1") << "i2 is there again, nobody knows i3";
}

// ---- another provider, or none

TEST_F(Provision, TheInstancesOfAFormerTypeEndFirst) {
  begin({.type = "local", .instance_slots = 1, .max_instances = 3});
  static_cast<void>(tell(work(2), 0s));
  static_cast<void>(tell(list({}), 0s));
  static_cast<void>(tell(instances_launched{1, {"i1", "i2"}, ""}, 1s));
  static_cast<void>(tell(work(0, {"i1!", "i2"}), 2s));
  static_cast<void>(tell(list({"i1", "i2"}), 3s));
  const value next{{"type", "command"}, {"max_instances", 5}, {"former", {{{"type", "local"}}}}};
  EXPECT_EQ(tell(provider_configured{next}, 4s), "ended i2 | drain agent-i2 end i2 (idle) drain agent-i1");
  EXPECT_EQ(machine->provider_type(), "local");
  EXPECT_EQ(machine->supply().type, "command");
  EXPECT_EQ(machine->supply().error, "the instances of its former provider (local) end first: i1");
  EXPECT_TRUE(machine->supply().agents.empty()) << "they are not like those of the next one";
  EXPECT_EQ(tell(work(3, {"i1!"}), 5s), "") << "nothing new of either";
  EXPECT_EQ(tell(list({"i1"}), 6s), "");
  EXPECT_EQ(tell(work(3, {"i1"}), 7s), "ended i1 | drain agent-i1 end i1 (idle) forget agent-i2")
    << "its run has ended";
  // The master dies before the instances have ended, and lists them after its restart.
  const auto facts = machine->snapshot();
  machine.emplace("gpu", provisioner_settings_of(next));
  for (const auto& fact : {instance_changed{t0, "gpu", "ordered", 1, 2, {}, "local"},
                           instance_changed{t0, "gpu", "launched", 1, 2, {"i1", "i2"}, ""},
                           instance_changed{t0, "gpu", "ended", 0, 0, {"i2", "i1"}, "idle"}})
    machine->replay(fact);
  EXPECT_EQ(machine->snapshot(), facts);
  static_cast<void>(machine->resume(t0 + 8s));
  EXPECT_EQ(machine->provider_type(), "local");
  EXPECT_EQ(tell(work(3, {"i1"}), 8s), "");
  EXPECT_EQ(tell(list({"i1"}), 9s), "ended i1 | drain agent-i1 end i1 (unknown)");
  EXPECT_EQ(machine->provider_type(), "local");
  EXPECT_EQ(tell(list({}), 14s), "gone | ");
  EXPECT_EQ(machine->provider_type(), "command");
  EXPECT_EQ(machine->supply().error, "");
  EXPECT_EQ(tell(list({}), 15s), "ordered 2 | launch 2:3 forget agent-i1");
}

TEST_F(Provision, AFormerProviderThatCannotBeCalledHoldsNobodyUp) {
  machine.emplace("gpu", provisioner_settings_of(
                           {{"type", "local"}, {"max_instances", 1}, {"former", {{{"type", "command"}}}}}));
  twin.emplace("gpu", provisioner_settings{});
  past({t0, "gpu", "ordered", 1, 1, {}, "command"});
  past({t0, "gpu", "launched", 1, 1, {"i1"}, ""});
  past({t0, "gpu", "ended", 0, 0, {"i1"}, "idle"});
  static_cast<void>(machine->resume(t0));
  static_cast<void>(tell(work(1), 0s));
  EXPECT_EQ(tell(instances_listed{{}, "no such file"}, 1s), "");
  EXPECT_EQ(tell(time_passed{}, 6s), "");
  EXPECT_EQ(tell(instances_listed{{}, "no such file"}, 7s), "");
  EXPECT_EQ(tell(time_passed{}, 27s), "");
  EXPECT_EQ(machine->provider_type(), "command");
  EXPECT_EQ(tell(instances_listed{{}, "no such file"}, 28s), "gone | ");
  EXPECT_EQ(machine->provider_type(), "local");
  EXPECT_EQ(tell(list({}), 29s), "ordered 2 | launch 2:1");
}

TEST_F(Provision, AFormerProviderThatCannotBeCalledIsGivenUpWithWhatHasNoAgent) {
  machine.emplace("gpu", provisioner_settings_of(
                           {{"type", "local"}, {"max_instances", 1}, {"former", {{{"type", "command"}}}}}));
  twin.emplace("gpu", provisioner_settings{});
  past({t0, "gpu", "ordered", 1, 3, {}, "command"});
  past({t0, "gpu", "launched", 1, 3, {"i1", "i2", "i3"}, ""});
  past({t0, "gpu", "ended", 0, 0, {"i3"}, "idle"});
  past({t0, "gpu", "ordered", 2, 1, {}, "command"}); // the answer to this order was lost
  static_cast<void>(machine->resume(t0));
  const auto here = [](bool connected) {
    auto out = work(1);
    out.agents.push_back({"i1", connected, false});
    return out;
  };
  static_cast<void>(tell(here(true), 0s));
  int n = 0;
  const auto fails = [&](duration at) {
    static_cast<void>(tell(time_passed{}, at));
    EXPECT_EQ(lists, n++) << "the first list was ordered at the start";
    return tell(instances_listed{{}, "no such file"}, at);
  };
  for (const auto at : {1s, 21s, 41s, 61s})
    EXPECT_EQ(fails(at), "");
  EXPECT_EQ(fails(12min), "") << "what has an agent is not given up";
  EXPECT_EQ(machine->provider_type(), "command");
  EXPECT_EQ(tell(here(false), 13min), "failed 2 gone i1 i2 gone | ");
  EXPECT_EQ(machine->provider_type(), "local");
  EXPECT_EQ(machine->supply().error, "");
  EXPECT_EQ(machine->supply().faults,
            std::vector<std::string>{"its former provider (command) cannot be called: no such file; look for "
                                     "yourself whether these instances have ended: i1, i2"});
  EXPECT_EQ(tell(list({}), 13min + 1s), "ordered 3 | launch 3:1 forget i1 forget i2");
  EXPECT_EQ(machine->supply().faults.size(), 1u) << "until the settings change";
}

TEST_F(Provision, OneThatWasDroppedEndsWhatItHasAfterARestartToo) {
  const value none{{"former", {{{"type", "command"}}}}};
  machine.emplace("gpu", provisioner_settings_of(none), std::set<std::string>{"agent-i1"});
  twin.emplace("gpu", provisioner_settings{});
  past({t0, "gpu", "ordered", 1, 1, {}, "command"});
  past({t0, "gpu", "launched", 1, 1, {"i1"}, ""});
  static_cast<void>(machine->resume(t0));
  EXPECT_EQ(machine->provider_type(), "command");
  EXPECT_EQ(tell(work(1, {"i1!"}), 0s), "");
  EXPECT_EQ(tell(list({"i1"}), 1s), " | drain agent-i1");
  EXPECT_EQ(tell(work(0, {"i1"}), 2s), "ended i1 | drain agent-i1 end i1 (idle)");
  EXPECT_EQ(tell(list({}), 7s), "gone | ");
  EXPECT_EQ(tell(time_passed{}, 8s), " | forget agent-i1");
  EXPECT_EQ(machine->deadline(), t0 + 18s) << "it does not list any more";
  machine->forgotten("agent-i1");
  EXPECT_EQ(tell(time_passed{}, 9s), " | done");
}

TEST_F(Provision, OneWhosePoolWasDroppedWaitsForNoAgent) {
  begin({.type = "local", .instance_slots = 1, .max_instances = 3}, {"i1", "i2"});
  static_cast<void>(tell(list({"i1", "i2"}), 0s));
  static_cast<void>(tell(work(0, {"i1!"}), 1s));
  EXPECT_EQ(tell(provider_configured{{{"former", {{{"type", "local"}}}}, {"dropped", true}}}, 2s),
            "ended i2 | end i2 (idle) drain agent-i1");
}

TEST_F(Provision, OneThatIsNamedAgainGoesOnWithWhatItHas) {
  begin({.type = "local", .instance_slots = 1, .max_instances = 3}, {"i1"});
  static_cast<void>(tell(list({"i1"}), 0s));
  static_cast<void>(tell(work(0, {"i1!"}), 1s));
  EXPECT_EQ(tell(provider_configured{{{"former", {{{"type", "local"}}}}}}, 2s), " | drain agent-i1");
  EXPECT_EQ(tell(provider_configured{{{"type", "local"}}}, 3s), " | undrain agent-i1");
  EXPECT_EQ(tell(work(0, {"i1"}), 4s), "");
}

TEST_F(Provision, HasNothingToDoWhereNothingIsLeft) {
  machine.emplace("gpu", provisioner_settings_of({{"former", {{{"type", "local"}}}}}));
  EXPECT_EQ(show({{}, machine->resume(t0)}), " | done");
  EXPECT_EQ(machine->deadline(), std::nullopt);
}

} // namespace
} // namespace troupe
