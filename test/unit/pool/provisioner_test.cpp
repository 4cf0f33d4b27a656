// Elastic pools: how many instances, when they are launched, and which end. Virtual time.

#include "actors/provider/provisioner.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

TEST(Provisioner, WantsAsManyAsTheWorkNeedsWithinTheLimitsOfJobs) {
  // scaling_test.go::TestCalculatingDesiredInstanceNum (job limits)
  const std::map<std::uint64_t, job_limit> limits{{1, {1}}, {2, {2}}, {4, {10}}};
  EXPECT_EQ(wanted_instances({{1, 1}, {1, 1}, {3, 1}, {4, 2}, {1, 2}, {1, 3}, {3, 3}, {15, 4}, {10, 3}},
                             limits, 5, 10),
            6);
  // Not as Determined: what a capped job holds counts.
  EXPECT_EQ(wanted_instances({{1, 2}, {1, 2}}, {{2, {2, 1}}}, 1, 10), 1);
}

TEST(Provisioner, WantsAsManyAsFit) { // scaling_test.go::TestCalculatingDesiredInstanceNum
  struct row {
    const char* what;
    std::vector<waiting_run> waiting;
    std::map<int, std::array<int, 3>> wanted; ///< by aux per agent: for 0, 1 and 2 slots per agent
  } rows[] = {
    {"1 running + 1 pending one-slot",
     {{1}},
     {{100, {0, 1, 1}}, {0, {0, 1, 1}}, {1, {0, 1, 1}}, {2, {0, 1, 1}}}},
    {"2 + 2 one-slot", {{1}, {1}}, {{100, {0, 2, 1}}, {0, {0, 2, 1}}, {1, {0, 2, 1}}, {2, {0, 2, 1}}}},
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

std::string show(const std::vector<provisioner_action>& actions) {
  std::string text;
  for (const auto& action : actions) {
    if (const auto* x = std::get_if<launch_instances>(&action))
      text += "launch " + std::to_string(x->order) + ":" + std::to_string(x->count) + " ";
    if (const auto* x = std::get_if<terminate_instances>(&action)) {
      text += "end";
      for (const auto& id : x->ids)
        text += " " + id;
      text += " (" + x->why + ") ";
    }
  }
  return text.empty() ? text : text.substr(0, text.size() - 1);
}

class Provision : public ::testing::Test {
protected:
  std::string tell(const provisioner_event& ev, duration at) { return show(machine.apply(ev, t0 + at)); }
  static instances_listed list(std::vector<std::string> ids) {
    instances_listed all;
    for (const auto& id : ids)
      all.all.push_back({id, cloud_instance::phase::running, "agent-" + id, t0});
    return all;
  }
  static work_waits work(int runs) { return {std::vector<waiting_run>(static_cast<std::size_t>(runs)), {}}; }
  provisioner machine{provisioner_settings{.instance_slots = 1, .max_instances = 3}};
};

TEST_F(Provision, LaunchesForWhatWaitsOnceAndNoMoreThanAllowed) {
  EXPECT_EQ(tell(work(2), 0s), "") << "not before it knows what there is";
  EXPECT_EQ(tell(list({}), 1s), "launch 1:2");
  EXPECT_EQ(tell(work(2), 2s), "") << "they are on order";
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i2"}}, 3s), "");
  EXPECT_EQ(tell(instances_launched{1, {"i1", "i2"}}, 3s), "") << "a repeat";
  EXPECT_EQ(tell(work(9), 4s), "launch 2:1") << "at most three";
  EXPECT_EQ(machine.instances(), 3);
}

TEST_F(Provision, ReplacesWhatNeverComes) {
  static_cast<void>(tell(work(1), 0s));
  EXPECT_EQ(tell(list({}), 0s), "launch 1:1");
  EXPECT_EQ(tell(instances_launched{1, {"i1"}}, 1s), "");
  ASSERT_EQ(machine.deadline(), t0 + 1s + 20min);
  EXPECT_EQ(tell(time_passed{}, 20min), "");
  EXPECT_EQ(tell(time_passed{}, 20min + 1s), "end i1 (never came) launch 2:1");
}

TEST_F(Provision, EndsWhatIsIdleOrDisconnectedForLong) {
  EXPECT_EQ(tell(list({"i1", "i2"}), 0s), "");
  EXPECT_EQ(tell(pool_agent_seen{"agent-i1", true, true}, 1s), "");
  EXPECT_EQ(tell(pool_agent_seen{"agent-i2", true, false}, 1s), "");
  EXPECT_EQ(tell(pool_agent_seen{"agent-i2", false, false}, 60s), "");
  EXPECT_EQ(tell(time_passed{}, 60s + 10min), "end i2 (disconnected)");
  EXPECT_EQ(tell(list({"i1", "i2"}), 11min + 10s), "") << "it was ordered to end";
  EXPECT_EQ(tell(time_passed{}, 1s + 20min), "end i1 (idle)");
}

TEST_F(Provision, KeepsTheLeastNumberAndEndsWhatIsTooMany) {
  machine = provisioner(provisioner_settings{.instance_slots = 1, .min_instances = 1, .max_instances = 2});
  EXPECT_EQ(tell(list({}), 0s), "launch 1:1");
  EXPECT_EQ(tell(instances_launched{1, {"i1"}}, 1s), "");
  EXPECT_EQ(tell(list({"i1"}), 2s), "");
  EXPECT_EQ(tell(pool_agent_seen{"agent-i1", true, true}, 2s), "");
  EXPECT_EQ(tell(time_passed{}, 60min), "") << "one stays";
  EXPECT_EQ(tell(pool_agent_seen{"agent-i1", true, false}, 60min), "");
  EXPECT_EQ(tell(list({"i1", "i2", "i3"}), 61min), "end i2 (too many)")
    << "those that start before those that run";
}

TEST_F(Provision, BacksOffAfterFailuresAndLaunchesNoStorm) {
  static_cast<void>(tell(work(3), 0s));
  EXPECT_EQ(tell(list({}), 0s), "launch 1:3");
  EXPECT_EQ(tell(launch_failed{1, "no quota"}, 1s), "");
  EXPECT_EQ(machine.error(), "no quota");
  EXPECT_EQ(tell(list({}), 2s), "");
  EXPECT_EQ(tell(time_passed{}, 6s), "launch 2:3");
  EXPECT_EQ(tell(launch_failed{2, "no quota"}, 7s), "");
  EXPECT_EQ(tell(time_passed{}, 16s), "");
  EXPECT_EQ(tell(time_passed{}, 17s), "launch 3:3");
  EXPECT_EQ(tell(instances_launched{3, {"i1", "i2", "i3", "i4"}}, 18s), "end i1 (too many)")
    << "more than it ordered";
  EXPECT_EQ(machine.error(), "");
}

TEST_F(Provision, TakesTheFirstOfTwoThatClaimOneAgent) {
  instances_listed all = list({"i1", "i2"});
  all.all[1].agent = "agent-i1";
  EXPECT_EQ(tell(all, 0s), "end i2 (reported twice)");
}

} // namespace
} // namespace troupe
