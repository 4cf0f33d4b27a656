#include "actors/agent/agent.hpp"

#include "test/unit/actors/show.hpp"
#include "workers/worker_messages.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
const allocation_id x{{1}, {1}}, y{{2}, {1}};
order_received start(allocation_id id, std::uint64_t epoch = 1, int slot = 0) {
  return {epoch, start_ordered{id, {slot}, "spec"}};
}
task_is_over ended(allocation_id id, int code) { return {{id, {}, true, 7, code}}; }

struct row {
  agent_event event;
  std::chrono::seconds at;
  std::string actions;
};

agent play(const std::vector<row>& rows) {
  agent a("a");
  for (const auto& r : rows)
    EXPECT_EQ(show(a.apply(r.event, t0 + r.at)), r.actions)
      << "on " << show(r.event) << " at " << r.at.count() << " s";
  return a;
}
const row up{link_up{1, t0}, 0s, "beat"};

TEST(Agent, StartsReportsAndForgets) {
  auto a = play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {task_launched{x, 7}, 2s, "up(1.1 a)"},
    {order_received{1, preempt_ordered{x, "pause"}}, 3s, "ask(1.1 pause)"},
    {ended(x, 0), 4s, "exit(1.1 a 0)"},
    {ended(x, 1), 4s, ""}, // the end is reported twice
    {order_received{1, forget_ordered{x}}, 5s, "drop(1.1)"},
  });
  EXPECT_TRUE(a.inventory().empty());
}

TEST(Agent, KnowsARepeatedStart) {
  play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {start(x), 1s, ""},
    {task_launched{x, 7}, 2s, "up(1.1 a)"},
    {start(x), 3s, "up(1.1 a)"},
    {ended(x, 1), 4s, "exit(1.1 a 1)"},
    {start(x), 5s, "exit(1.1 a 1)"},
    {order_received{1, forget_ordered{x}}, 6s, "drop(1.1)"},
    {start(x), 7s, ""}, // The start stays known after its task is forgotten.
  });
}

TEST(Agent, SaysWhatAWorkerFailedOfAlsoWhereTheLinkWasDownThen) {
  const auto said = [](const std::string& why) {
    return worker_said{x, "", 0, workers::encode_worker(workers::worker_word{workers::worker_failure{why}})};
  };
  const auto end_of = [](const agent& a) { return a.inventory().at(0).detail; };
  const row start_it{start(x), 1s, "launch(1.1)"};
  const auto over = [](int code) {
    return task_is_over{
      {.allocation = x, .exited = true, .exit_code = code, .detail = "exit code " + std::to_string(code)}};
  };
  EXPECT_EQ(end_of(play({up,
                         start_it,
                         {link_down{}, 2s, ""},
                         {said("another version"), 3s, ""},
                         {said("a second one"), 3s, ""},
                         {over(1), 4s, ""}})),
            "another version (exit code 1)");
  EXPECT_EQ(end_of(play({up, start_it, {link_down{}, 2s, ""}, {over(1), 4s, ""}})), "exit code 1");
  EXPECT_EQ(
    end_of(play(
      {up, start_it, {link_down{}, 2s, ""}, {said("nothing that mattered"), 3s, ""}, {over(0), 4s, ""}})),
    "exit code 0");
}

TEST(Agent, AnswersEveryKill) {
  play({
    up,
    {order_received{1, kill_ordered{x}}, 1s, "exit(1.1 a signal 9)"}, // the task was not running
    {start(x), 1s, "launch(1.1)"},
    {order_received{1, kill_ordered{x}}, 2s, "destroy(1.1)"},
    {task_is_over{{x, {}, true, 0, -1, 9}}, 3s, "exit(1.1 a signal 9)"},
    {order_received{1, kill_ordered{x}}, 4s, "exit(1.1 a signal 9)"},
  });
}

TEST(Agent, WaitsWithAStartUntilItsSlotIsFree) {
  play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {start(y), 2s, ""},
    {order_received{1, kill_ordered{x}}, 3s, "destroy(1.1)"},
    {ended(x, -1), 4s, "exit(1.1 a -1) launch(2.1)"},
  });
  play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {start(y), 2s, ""},
    {order_received{1, preempt_ordered{y, "pause"}}, 3s, "exit(2.1 a 0)"}, // the task never ran
    {ended(x, 0), 4s, "exit(1.1 a 0)"},
  });
}

TEST(Agent, RefusesOrdersOfAnotherRegistration) {
  play({
    up,
    {start(x, 0), 1s, ""},
    {link_down{}, 2s, ""},
    {start(x), 2s, ""},    // the link is lost, and the next inventory will not name the task
    {start(x, 2), 3s, ""}, // the start came before the acceptance of registration 2
    {link_up{2, t0 + 2s}, 4s, "beat launch(1.1)"},
  });
}

TEST(Agent, SaysAfterAcceptanceWhatChangedSinceTheInventory) {
  play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {task_launched{x, 7}, 1s, "up(1.1 a)"},
    {link_down{}, 2s, ""},
    {ended(x, 1), 3s, ""},
    {link_up{2, t0 + 2s}, 4s, "beat exit(1.1 a 1)"},
  });
}

TEST(Agent, CountsLeasesFromTheSendingTime) {
  agent a("a");
  static_cast<void>(a.apply(link_up{1, t0 + 1s}, t0 + 3s));
  auto lease_of = [](const std::vector<agent_action>& actions) {
    return std::get<renew_leases>(actions.at(0)).lease_from;
  };
  // The order has been under way for a long time.
  EXPECT_EQ(std::get<launch_task>(a.apply(start(x), t0 + 20s).at(0)).lease_from, t0 + 1s);
  EXPECT_EQ(lease_of(a.apply(heartbeat_acked{1, t0 + 3s}, t0 + 21s)), t0 + 3s);
  // a lease never becomes shorter
  EXPECT_EQ(lease_of(a.apply(heartbeat_acked{1, t0 + 2s}, t0 + 22s)), t0 + 3s);
  EXPECT_TRUE(a.apply(heartbeat_acked{2, t0 + 9s}, t0 + 23s).empty());
}

TEST(Agent, RegistersAgainWhereItsMasterHasGivenItUp) {
  play({
    {link_up{1, t0 + 1s}, 1s, "beat"},
    {heartbeat_acked{0, t0}, 2s, ""}, // the answer to a heartbeat of an earlier registration
    {heartbeat_acked{0, t0 + 1s}, 2s, "register"},
    {link_down{}, 2s, ""},
    {heartbeat_acked{0, t0 + 1s}, 3s, ""},
    {link_up{2, t0 + 4s}, 4s, "beat"},
    {heartbeat_acked{0, t0 + 2s}, 4s, ""},
    {heartbeat_acked{2, t0 + 4s}, 5s, "renew"},
  });
}

TEST(Agent, BeatsWhileItIsLinked) {
  play({
    up,
    {time_passed{}, 0s, ""},
    {time_passed{}, 1s, "beat"},
    {link_down{}, 1s, ""},
    {time_passed{}, 2s, ""},
  });
}

TEST(Agent, AdoptsWhatItsPredecessorLeft) {
  auto a = play({
    {task_adopted{{x, {0}, false, 7}}, 0s, ""},
    // The task was killed while no agent was there: whatever killed the agent may have killed the task.
    {task_adopted{{y, {1}, true, 8, -1, 9}}, 0s, ""},
    {link_up{1, t0}, 1s, "beat up(1.1 a) exit(2.1 a unsure)"},
    {start(x), 2s, "up(1.1 a)"},
  });
  EXPECT_TRUE(a.runs(x));
  EXPECT_FALSE(a.runs(y));
  EXPECT_EQ(a.inventory().size(), 2u);
}

TEST(Agent, TakesWhatARuntimeThatWasMadeAgainFindsForWhatItKnows) {
  const auto killed = [](allocation_id id) { return task_adopted{{id, {}, true, 7, -1, 9}}; };
  play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {order_received{1, kill_ordered{x}}, 2s, "destroy(1.1)"},
    {task_is_over{{x, {}, true, 7, -1, 9}}, 3s, "exit(1.1 a signal 9)"},
    {killed(x), 4s, ""}, // The dead runtime has already told this end.
    {start(x), 5s, "exit(1.1 a signal 9)"},
    {order_received{1, forget_ordered{x}}, 6s, "drop(1.1)"},
    // The dead runtime had the order to drop the task but had not carried it out.
    {killed(x), 7s, "drop(1.1)"},
  });
}

TEST(Agent, EndsTheOthersFiveSecondsAfterOneRankFailed) {
  const member_failed gone{x, "", 1, "signal 9"};
  auto a = play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {task_launched{x, 7}, 1s, "up(1.1 a)"},
    {gone, 2s, "failed(1.1 a/1)"},
    {gone, 2s, ""}, // the same failure is noticed twice
    {member_failed{x, "", 0, "exit code 1"}, 3s, "failed(1.1 a/0)"},
    {time_passed{}, 6s, "beat"},
    {time_passed{}, 7s, "destroy(1.1) beat"},
    {ended(x, 1), 8s, "exit(1.1 a 1)"},
    {time_passed{}, 20s, "beat"},
  });
  EXPECT_EQ(a.deadline(), t0 + 21s);
}

TEST(Agent, EndsARankThatIsSilentAtOnce) {
  play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {task_launched{x, 7}, 1s, "up(1.1 a)"},
    {member_failed{x, "", 0, "silent for 20 s", true}, 2s, "failed(1.1 a/0) destroy(1.1)"},
  });
}

TEST(Agent, TellsANewMasterWhatFailedMeanwhile) {
  play({
    up,
    {start(x), 1s, "launch(1.1)"},
    {task_launched{x, 7}, 1s, "up(1.1 a)"},
    {link_down{}, 2s, ""},
    {member_failed{x, "", 1, "signal 9"}, 3s, ""},
    {time_passed{}, 8s, "destroy(1.1)"}, // the other ranks are ended even without a master
    {link_up{2, t0 + 9s}, 9s, "beat failed(1.1 a/1) up(1.1 a)"},
  });
}

} // namespace
} // namespace troupe
