// Tests when the agents of a cluster file are started, given up and started again.

#include "runtime/launch/kept_nodes.hpp"

#include <gtest/gtest.h>

namespace troupe::launch {
namespace {

using namespace std::chrono_literals;

constexpr time_point t0{1'700'000'000s};

std::string show(const start_agent& x) { return "start(" + x.name + ")"; }
std::string show(const kill_ssh& x) { return "kill(" + x.name + ")"; }
std::string show(const end_agent& x) { return "end(" + x.name + ")"; }
std::string show(const say_line& x) { return "say(" + x.text.substr(0, x.text.find("; its log")) + ")"; }

struct row {
  keeper_event event;
  duration at;
  std::string actions;
};

void play(const std::vector<row>& rows) {
  kept_nodes machine("logs");
  for (const auto& r : rows) {
    std::string got;
    for (const auto& action : machine.apply(r.event, t0 + r.at))
      got += (got.empty() ? "" : " ") + std::visit([](const auto& x) { return show(x); }, action);
    EXPECT_EQ(got, r.actions) << "at " << r.at / 1ms << " ms";
  }
}

value here(const char* name, int slots = 1) { return {{"name", name}, {"slots", slots}}; }
value over_ssh(const char* name) { return {{"name", name}, {"host", "h"}, {"ssh", {{"user", "u"}}}}; }
value by_hand(const char* name) { return {{"name", name}, {"manual", true}}; }
nodes_wanted want(std::initializer_list<value> nodes) { return {value(value::array_t(nodes))}; }

TEST(KeptNodes, StartWhatIsWantedAndEndWhatIsNot) {
  play({
    {want({here("a"), here("b"), by_hand("c")}), 0s, "start(a) start(b)"},
    {start_tried{"a", ""}, 0s, ""},
    {clock_ticked{}, 1s, ""},
    {want({here("a"), here("b")}), 2s, ""}, // the same nodes again
    {want({here("a", 2)}), 3s,
     "say(node a: its agent is started again) end(a) say(node b: its agent is stopped) end(b) start(a)"},
    {child_ended{"b", 0, 0}, 4s, ""}, // node b is no longer wanted
  });
}

TEST(KeptNodes, ANodeInAnotherPoolRunsOn) {
  auto moved = here("a");
  moved["pool"] = "gpu";
  auto larger = here("a", 2);
  larger["pool"] = "gpu";
  play({
    {want({here("a")}), 0s, "start(a)"},
    {start_tried{"a", ""}, 0s, ""},
    {want({moved}), 1s, ""},
    {want({larger}), 2s, "say(node a: its agent is started again) end(a) start(a)"},
  });
}

TEST(KeptNodes, StartAgainLaterEachTime) {
  std::vector<row> rows{{want({here("a")}), 0s, "start(a)"}};
  duration at = 0s;
  for (int wait : {500, 1000, 2000, 4000, 8000, 16000, 30000, 30000}) {
    rows.push_back(
      {child_ended{"a", 1, 0}, at,
       "say(node a: its agent ended with exit code 1; again in " + std::to_string(wait) + " ms)"});
    rows.push_back({clock_ticked{}, at + std::chrono::milliseconds(wait - 1), ""});
    at += std::chrono::milliseconds(wait);
    rows.push_back({clock_ticked{}, at, "start(a)"});
  }
  at += 61s; // after more than a minute of running the wait begins anew
  rows.push_back(
    {child_ended{"a", -1, 9}, at, "say(node a: its agent was killed by signal 9; again in 500 ms)"});
  play(rows);
}

TEST(KeptNodes, TryAgainWhatCannotBeStarted) {
  play({
    {want({here("a")}), 0s, "start(a)"},
    {start_tried{"a", "no such file"}, 0s, "say(node a: cannot start it: no such file)"},
    {clock_ticked{}, 499ms, ""},
    {clock_ticked{}, 500ms, "start(a)"},
  });
}

TEST(KeptNodes, LookForAnAgentOverSshAgainAndAgain) {
  play({
    {want({over_ssh("r")}), 0s, "start(r)"},
    {child_ended{"r", 0, 0}, 2s, "say(node r: its agent runs on h)"},
    {clock_ticked{}, 21s, ""},
    {clock_ticked{}, 22s, "start(r)"},
    {child_ended{"r", 0, 0}, 23s, ""}, // that the agent runs is said only once
    {clock_ticked{}, 43s, "start(r)"},
    {child_ended{"r", 255, 0}, 44s, "say(node r: ssh ended with exit code 255; again in 500 ms)"},
    {clock_ticked{}, 45s, "start(r)"},
    {clock_ticked{}, 165s, ""},
    {clock_ticked{}, 166s, "kill(r)"}, // the call of ssh has hung for more than two minutes
    {child_ended{"r", -1, 9}, 166s, "say(node r: ssh was killed by signal 9; again in 500 ms)"},
    {clock_ticked{}, 167s, "start(r)"},
    {child_ended{"r", 0, 0}, 168s, "say(node r: its agent runs on h)"},
  });
}

TEST(KeptNodes, EndAllAtTheEnd) {
  kept_nodes machine("logs");
  static_cast<void>(machine.apply(want({here("a"), over_ssh("r")}), t0));
  const auto all = machine.stop();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_TRUE(is_remote(all[1].node));
  EXPECT_TRUE(machine.stop().empty());
}

} // namespace
} // namespace troupe::launch
