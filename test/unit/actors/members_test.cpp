// Tests who may use a name, which pool an agent joins, what operators order, and which actor is made again.

#include "actors/cluster/members.hpp"

#include "model/config/cluster_config.hpp"
#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};

value with_pools(std::initializer_list<const char*> names, const char* pool_of_a = nullptr) {
  value pools = value::object(), nodes = value::array();
  bool first = true;
  for (const char* name : names)
    pools[name] = {{"default", std::exchange(first, false)}};
  if (pool_of_a)
    nodes.push_back({{"name", "a"}, {"pool", pool_of_a}});
  return {{"pools", pools}, {"nodes", nodes}};
}

agent_asked asks(std::string name, std::string id, int slots = 2, std::uint64_t life = 0) {
  return {{t0, std::move(name), std::move(id), slots, "host"}, life};
}

struct row {
  members_event event;
  std::chrono::seconds at;
  std::string step; ///< "FACTS | ACTIONS", or the refusal
};

members play(members machine, const std::vector<row>& rows, const value& configuration = {}) {
  members twin({45s, t0, configuration});
  for (const auto& r : rows) {
    std::string got;
    if (auto no = machine.refuses(r.event, t0 + r.at)) {
      got = "no: " + no->what.substr(0, no->what.find('\n'));
    } else {
      auto step = machine.apply(r.event, t0 + r.at);
      for (const auto& fact : step.facts)
        twin.replay(*decode_as<cluster_fact>(encode_as(fact)));
      got = show(step);
    }
    EXPECT_EQ(got, r.step) << "at " << r.at.count() << " s";
    EXPECT_EQ(twin.snapshot(), machine.snapshot()) << "after " << r.step;
  }
  return machine;
}
members fresh(const value& configuration = {}) {
  members machine({45s, t0, configuration});
  static_cast<void>(machine.resume());
  return machine;
}

TEST(Members, GiveANameToOneAgentAtATime) {
  play(fresh(),
       {
         {asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
         {asks("a", "id1"), 1s, " | "},               // the same registration again
         {asks("a", "id1", 4), 2s, "joined(a 4) | "}, // the same agent with another number of slots
         {asks("a", "id2"), 3s, "no: another agent named 'a' is alive; give this one another --name"},
         {agent_went_away{"a"}, 10s, " | "},
         {asks("a", "id2"), 54s, "no: another agent named 'a' is alive; give this one another --name"},
         {asks("a", "id2"), 55s, "joined(a 2) | "}, // the runs of the first agent are given away
         {asks("", "id3"), 60s, "no: an agent's name has 1 to 128 characters"},
         {asks(std::string(129, 'x'), "id3"), 60s, "no: an agent's name has 1 to 128 characters"},
       });
}

TEST(Members, DoNotBelieveAnEarlierProcessOfAnAgent) {
  play(fresh(), {
                  {asks("a", "id1", 2, 5), 0s, "joined(a 2) | twin(a in default)"},
                  // the link was cut, and the same process registers again
                  {asks("a", "id1", 2, 5), 1s, " | "},
                  {asks("a", "id1", 2, 6), 2s, " | "},
                  {asks("a", "id1", 2, 5), 3s, "no: a later process of agent 'a' has registered"},
                  {asks("a", "id1"), 4s, " | "}, // an older build does not tell the number of its process
                  {agent_went_away{"a"}, 10s, " | "},
                  // an agent with another folder counts its processes separately
                  {asks("a", "id2", 2, 1), 60s, "joined(a 2) | "},
                });
}

TEST(Members, RememberWhatOperatorsOrdered) {
  const auto after = play(
    fresh(),
    {
      {agent_ordered{"a", -1, true, "eve"}, 0s, "no: no agent 'a'"},
      {asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
      {agent_ordered{"a", -1, true, "eve"}, 1s, "changed(a draining by eve) | drain(a)"},
      {agent_ordered{"a", -1, true, "bob"}, 2s, " | "},
      {agent_ordered{"a", 1, true, "bob"}, 3s, "changed(a draining -1 by bob) | drain(a -1)"},
      {agent_ordered{"a", 0, true, "bob"}, 3s, "changed(a draining -0 -1 by bob) | drain(a -0 -1)"},
      {agent_ordered{"a", -1, false, "eve"}, 4s, "changed(a -0 -1 by eve) | undrain(a -0 -1)"},
      {agent_ordered{"a", 1, false, "eve"}, 5s, "changed(a -0 by eve) | undrain(a -0)"},
      {agent_ordered{"a", 2, true, "eve"}, 6s, "no: agent 'a' has no slot 2"},
      {agent_ordered{"a", -1, true, "old", true}, 7s, "no: facts already tell what was ordered of agent 'a'"},
      {asks("b", "id2"), 8s, "joined(b 2) | twin(b in default)"},
      {agent_ordered{"b", -1, true, "old", true}, 9s, "changed(b draining by old) | drain(b)"},
    });
  EXPECT_EQ(after.agents().at("a").disabled, std::vector<int>{0});
  EXPECT_TRUE(after.agents().at("b").draining);
}

TEST(Members, TellPoolsOfOrdersAfterAStart) {
  members again({45s, t0, value()});
  again.replay(agent_joined{t0, "a", "id1", 2, "host"});
  again.replay(agent_changed{t0, "a", true, {1}, "eve", true, {1}});
  EXPECT_EQ(show(again.resume()), "pool(default) drain(a -1 !1 !) twin(a in default)");
}

TEST(Members, KnowAfterAStartWhenAnAgentRegistered) {
  members again({45s, t0 + 9s, value()});
  again.replay(agent_joined{t0 + 1s, "a", "id1", 2, "host"});
  again.replay(agent_changed{t0 + 2s, "a", true, {}, "eve"});
  EXPECT_EQ(again.agents().at("a").joined, t0 + 1s);
  again.replay(agent_joined{t0 + 3s, "a", "id1", 4, "host"});
  EXPECT_EQ(again.agents().at("a").joined, t0 + 3s);
}

TEST(Members, EndWhatRunsWhereAnOperatorSaysSo) {
  const auto end = [](int slot, bool off, bool ends) {
    return agent_ordered{"a", slot, off, "eve", false, ends};
  };
  play(fresh(), {
                  {asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
                  {end(1, true, false), 1s, "changed(a -1 by eve) | undrain(a -1)"},
                  {end(1, true, true), 2s, "changed(a -1 !1 by eve) | undrain(a -1 !1)"},
                  {end(1, true, true), 3s, " | "}, // the order is repeated
                  {end(1, true, false), 4s, "changed(a -1 by eve) | undrain(a -1)"},
                  {end(-1, true, true), 5s, "changed(a draining -1 ! by eve) | drain(a -1 !)"},
                  {end(-1, false, false), 6s, "changed(a -1 by eve) | undrain(a -1)"},
                  {end(1, false, false), 7s, "changed(a by eve) | undrain(a)"},
                });
}

TEST(Members, PutAnAgentIntoThePoolThatItAsksForWhereTheFileSaysNothing) {
  const auto wants = [](const char* agent, const char* pool) {
    return agent_asked{{t0, agent, std::string("id-") + agent, 2, "host", pool}};
  };
  play(fresh(with_pools({"p", "q"}, "q")),
       {
         {wants("b", "q"), 0s, "joined(b 2 for q) | twin(b in q)"},
         // the agent was started again with another pool
         {wants("b", "p"), 1s, "joined(b 2 for p) | drain(b for p) watch(b in q)"},
         {agent_is_idle{"b", "q"}, 1s, " | end_twin(b in q) undrain(b)"},
         {wants("b", "p"), 1s, " | twin(b in p)"},
         {wants("c", "r"), 2s, "no: agent 'c': there is no pool 'r' in this cluster"},
         // the configuration decides before the agent
         {wants("a", "p"), 3s, "joined(a 2 for p) | twin(a in q)"},
         {wants("d", ""), 4s, "joined(d 2) | twin(d in p)"},
       },
       with_pools({"p", "q"}, "q"));
}

// The name is that of a test in agent_state_test.go of Determined 0.38.1. Determined refuses an agent whose
// pool has changed; here the agent moves once nothing is held on it.
TEST(Members, Test_agentState_checkAgentResourcePoolMatch) {
  const auto wants = [](const char* pool) { return agent_asked{{t0, "a", "id1", 2, "host", pool}}; };
  const auto configuration = with_pools({"default", "pool1", "pool2"});
  play(fresh(configuration),
       {
         {wants("pool1"), 0s, "joined(a 2 for pool1) | twin(a in pool1)"},
         {wants("pool1"), 1s, " | "},
         {wants("default"), 2s, "joined(a 2 for default) | drain(a for default) watch(a in pool1)"},
         {agent_is_idle{"a", "pool1"}, 3s, " | end_twin(a in pool1) undrain(a)"},
         {wants("default"), 4s, " | twin(a in default)"},
         {wants("pool1"), 5s, "joined(a 2 for pool1) | drain(a for pool1) watch(a in default)"},
         {agent_is_idle{"a", "default"}, 6s, " | end_twin(a in default) undrain(a)"},
         {wants("pool1"), 7s, " | twin(a in pool1)"},
         {wants("pool2"), 8s, "joined(a 2 for pool2) | drain(a for pool2) watch(a in pool1)"},
         {wants("pool2"), 9s, " | "},
         {wants("default"), 10s, "joined(a 2 for default) | drain(a for default)"},
         {agent_is_idle{"a", "pool1"}, 11s, " | end_twin(a in pool1) undrain(a)"},
       },
       configuration);
}

TEST(Members, KeepTheChosenPoolOfAnExperiment) {
  const auto two = with_pools({"p", "q"});
  const auto after = play(fresh(two),
                          {
                            {experiment_entered{{1}, value::object(), ""}, 0s, " | "},
                            {experiment_entered{{2}, value::object(), "q"}, 0s, " | "},
                            {experiment_entered{{3}, value::object(), "gone"}, 0s, " | "},
                            {experiment_placed{{1}, "r"}, 1s, "no: there is no pool 'r' in this cluster"},
                            {experiment_placed{{1}, "q"}, 1s, " | "},
                          },
                          two);
  EXPECT_EQ(after.pool_of(experiment_id{1}), "q");
  EXPECT_EQ(after.pool_of(experiment_id{2}), "q");
  EXPECT_EQ(after.pool_of(experiment_id{3}), "p") << "a pool that is gone stands for the default one";
}

TEST(Members, ForgetAnAgentThatIsGoneForGood) {
  play(fresh(),
       {
         {agent_removed{"a", "eve"}, 0s, "no: no agent 'a'"},
         {asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
         {agent_ordered{"a", -1, true, "eve"}, 1s, "changed(a draining by eve) | drain(a)"},
         {agent_removed{"a", "eve"}, 2s, "no: agent 'a' is connected, so it is not gone"},
         {agent_went_away{"a"}, 10s, " | "},
         {agent_removed{"a", "eve"}, 54s,
          "no: agent 'a' went away only lately, and its runs are not given away yet"},
         {agent_removed{"a", "eve"}, 55s, "left(a by eve) | end_twin(a in default) forget(a in default)"},
         {agent_removed{"a", "eve"}, 56s, "no: no agent 'a'"},
         {asks("a", "id1"), 60s, "joined(a 2) | twin(a in default)"}, // the agent is new, and not drained
         {agent_ordered{"a", -1, true, "old", true}, 61s,
          "no: facts already tell what was ordered of agent 'a'"},
       });
  members again({45s, t0, value()}); // After a restart of the master, the agent has not registered again.
  again.replay(agent_joined{t0, "a", "id1", 2, "host"});
  static_cast<void>(again.resume());
  EXPECT_TRUE(again.refuses(agent_removed{"a", "eve"}, t0 + 44s));
  EXPECT_FALSE(again.refuses(agent_removed{"a", "eve"}, t0 + 45s));
}

/// A twin that is ended before that time tells no allocation that its run is lost.
TEST(Members, LeaveATwinThatWasMadeAgainItsTimeToGiveRunsAway) {
  const auto too_early = "no: agent 'a' went away only lately, and its runs are not given away yet";
  play(fresh(),
       {
         {asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
         {agent_went_away{"a"}, 10s, " | "},
         {twin_died{"a", "a bug"}, 40s, " | twin(a in default again)"},
         {agent_removed{"a", "eve"}, 55s, too_early},
         {agent_removed{"a", "eve"}, 84s, too_early},
         {asks("a", "id2"), 84s, "no: another agent named 'a' is alive; give this one another --name"},
         {agent_removed{"a", "eve"}, 85s, "left(a by eve) | end_twin(a in default) forget(a in default)"},
       });
  const auto registered = play(fresh(), {
                                          {asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
                                          {twin_died{"a", "a bug"}, 40s, " | twin(a in default again)"},
                                          {asks("a", "id1"), 41s, " | "},
                                          {agent_went_away{"a"}, 42s, " | "},
                                          {agent_removed{"a", "eve"}, 86s, too_early},
                                        });
  EXPECT_EQ(registered.gives_away("a"), t0 + 87s) << "that twin has heard the agent";
  auto sandbox = play(fresh(), {
                                 {asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
                                 {agent_went_away{"a"}, 10s, " | "},
                                 {twin_died{"a", "a bug"}, 40s, " | twin(a in default again)"},
                               });
  EXPECT_FALSE(sandbox.judge_sandbox("a", false, false, t0 + 84s).kill) << "its slots are kept so long";
  EXPECT_TRUE(sandbox.judge_sandbox("a", false, false, t0 + 85s).kill);
}

/// The agent may hold a lease that an earlier life of the master granted.
TEST(Members, CountLeasesOfEarlierLives) {
  const auto fact = [](const char* give_away) {
    return configuration_changed{t0, "eve", 1, {{"cluster", {{"leases", {{"give_away", give_away}}}}}}};
  };
  members machine({4s, t0, value(), 8s});
  machine.replay(agent_joined{t0, "a", "id1", 2, "host"});
  EXPECT_EQ(machine.first_give_away(), 8s);
  machine.replay(fact("60s"));
  machine.replay(fact("2s"));
  static_cast<void>(machine.resume());
  EXPECT_EQ(machine.first_give_away(), 60s);
  EXPECT_TRUE(machine.refuses(agent_removed{"a", "eve"}, t0 + 59s));
  EXPECT_FALSE(machine.refuses(agent_removed{"a", "eve"}, t0 + 60s));
  static_cast<void>(machine.apply(asks("a", "id1"), t0 + 61s));
  static_cast<void>(machine.apply(agent_went_away{"a"}, t0 + 62s));
  EXPECT_EQ(machine.gives_away("a"), t0 + 66s) << "this life has given it the lease";
  static_cast<void>(machine.apply(twin_died{"a", "a bug"}, t0 + 63s));
  EXPECT_EQ(machine.gives_away("a"), t0 + 63s + 60s) << "as the twin counts";
  // A change of the configuration counts from the next start of the master, for agents too.
  static_cast<void>(machine.apply(configured{fact("90s").configuration}, t0 + 64s));
  EXPECT_EQ(machine.first_give_away(), 60s);
}

value with_provider(const char* type, const char* pool = "q") {
  auto out = with_pools({"p"});
  if (*pool)
    out["pools"][pool] = type ? value{{"provider", {{"type", type}}}} : value::object();
  return out;
}

/// Returns the settings of the last supply_pool action for pool "q", or null if there is none.
value supplied(const std::vector<members_action>& actions) {
  value out;
  for (const auto& action : actions)
    if (const auto* x = std::get_if<supply_pool>(&action); x && x->pool == "q")
      out = x->settings;
  return out;
}

bool ends_pool(const std::vector<members_action>& actions) {
  return std::any_of(actions.begin(), actions.end(),
                     [](const auto& x) { return std::holds_alternative<end_pool>(x); });
}

TEST(Members, RememberTheProvidersThatAPoolHad) {
  auto machine = fresh(with_provider("local"));
  const value local = config::provider_settings(with_provider("local"), "q");
  auto command = config::provider_settings(with_provider("command"), "q");
  command["former"].push_back(local);
  EXPECT_EQ(supplied(machine.apply(configured{with_provider("command")}, t0).actions), command);
  members again({45s, t0, with_provider(nullptr)}); // the master has restarted, and the pool has no provider
  for (const char* type : {"command", "local", static_cast<const char*>(nullptr)})
    again.replay(configuration_changed{t0, "eve", 1, with_provider(type)});
  const auto told = supplied(again.resume());
  ASSERT_EQ(told["former"].size(), 2u);
  EXPECT_EQ(told["former"][0], local) << "the newest first";
  EXPECT_FALSE(told.contains("type"));
}

TEST(Members, APoolThatIsDroppedLivesUntilItsProviderHasNothingLeft) {
  auto machine = fresh(with_provider("local"));
  auto step = machine.apply(configured{with_provider(nullptr, "")}, t0);
  EXPECT_EQ(supplied(step.actions)["dropped"], true);
  EXPECT_FALSE(ends_pool(step.actions));
  step = machine.apply(provider_retired{"q"}, t0 + 1s);
  EXPECT_TRUE(ends_pool(step.actions));
  // The master died before the provider had ended everything.
  members again({45s, t0, with_provider(nullptr, "")});
  again.replay(configuration_changed{t0, "eve", 1, with_provider("local")});
  EXPECT_EQ(supplied(again.resume())["dropped"], true);
  EXPECT_TRUE(ends_pool(again.apply(provider_retired{"q"}, t0 + 1s).actions));
}

TEST(Members, AProviderThatIsNamedAgainWhileItEndsBeginsAgain) {
  auto machine = fresh(with_provider("local"));
  static_cast<void>(machine.apply(configured{with_provider(nullptr)}, t0));
  static_cast<void>(machine.apply(configured{with_provider("local")}, t0 + 1s));
  EXPECT_TRUE(supplied(machine.apply(provider_retired{"q"}, t0 + 2s).actions).contains("type"));
  static_cast<void>(machine.apply(configured{with_provider(nullptr)}, t0 + 3s));
  EXPECT_TRUE(machine.apply(provider_retired{"q"}, t0 + 4s).actions.empty());
  EXPECT_TRUE(supplied(machine.apply(configured{with_provider("local")}, t0 + 5s).actions).contains("type"));
}

TEST(Members, MoveAnAgentWhenNothingIsHeldOnIt) {
  const auto before = with_pools({"p", "q"}), after = with_pools({"p", "q"}, "q"),
             without = with_pools({"q"});
  play(
    fresh(before),
    {
      {asks("a", "id1"), 0s, "joined(a 2) | twin(a in p)"},
      {experiment_entered{{1}, value::object()}, 1s, " | "},
      {configured{after}, 2s, " | drain(a for q) watch(a in p)"},
      {configured{without}, 3s, "no: pools.p: 1 experiment is in it; end or move them before the pool goes"},
      {agent_is_idle{"a", "q"}, 3s, " | "}, // the message comes from the twin in another pool
      {agent_is_idle{"a", "p"}, 4s, " | end_twin(a in p) undrain(a)"},
      {agent_is_idle{"a", "p"}, 4s, " | "},
      {asks("a", "id1"), 5s, " | twin(a in q)"},
      {experiment_gone{{1}}, 6s, " | "},
      {configured{without}, 7s, " | end_pool(p)"},
    },
    before);
}

TEST(Members, AnAgentThatIsToLeaveAndThenToStayGetsWorkAgain) {
  const auto before = with_pools({"p", "q"}), after = with_pools({"p", "q"}, "q");
  const auto machine = play(fresh(before),
                            {
                              {asks("a", "id1"), 0s, "joined(a 2) | twin(a in p)"},
                              {configured{after}, 1s, " | drain(a for q) watch(a in p)"},
                              {configured{before}, 2s, " | drain(a) undrain(a)"},
                              {agent_is_idle{"a", "p"}, 3s, " | "},
                            },
                            before);
  EXPECT_EQ(machine.pool_of("a"), "p");
}

TEST(Members, AnAgentThatHoldsSomethingStaysWhereItWasOverARestart) {
  members machine({45s, t0, with_pools({"p", "q"}, "q")});
  machine.replay(agent_joined{t0, "a", "id1", 2, "host"});
  machine.replay(agent_joined{t0, "b", "id2", 2, "host"});
  machine.stay_in({{"a", "p"}, {"b", "gone"}});
  EXPECT_EQ(show(machine.resume()),
            "pool(p) pool(q) twin(a in p) pool(gone) twin(b in gone) drain(a for q) watch(a in p) "
            "drain(b for p) watch(b in gone)");
  EXPECT_EQ(show(machine.apply(agent_is_idle{"a", "p"}, t0 + 1s)), " | end_twin(a in p) undrain(a)");
  EXPECT_EQ(show(machine.apply(agent_is_idle{"b", "gone"}, t0 + 1s)),
            " | end_twin(b in gone) undrain(b) end_pool(gone)");
  EXPECT_EQ(show(machine.apply(asks("a", "id1"), t0 + 2s)), " | twin(a in q)");
}

TEST(Members, AnAgentThatHoldsRunsOfADroppedPoolComesBackToIt) {
  const auto before = with_pools({"p", "q"}), without = with_pools({"p"});
  const agent_asked wants{{t0, "b", "id1", 2, "host", "q"}};
  const auto no = "no: agent 'b': there is no pool 'q' in this cluster";
  play(fresh(before),
       {
         {wants, 0s, "joined(b 2 for q) | twin(b in q)"},
         {configured{without}, 1s, " | drain(b) watch(b in q)"},
         {agent_went_away{"b"}, 2s, " | "},
         {wants, 3s, " | "},
         {agent_is_idle{"b", "q"}, 4s, " | end_twin(b in q) undrain(b) end_pool(q)"},
         {wants, 5s, no},
         {configured{before}, 6s, " | pool(q)"},
         {wants, 7s, " | twin(b in q)"},
       },
       before);
}

TEST(Members, APoolThatIsDroppedLivesWhileRunsOfAnExperimentThatHasMovedSaveThere) {
  const auto before = with_pools({"p", "q"}, "q"), without = with_pools({"p"});
  play(
    fresh(before),
    {
      {asks("a", "id1"), 0s, "joined(a 2) | twin(a in q)"},
      {experiment_entered{{1}, value::object(), "q"}, 1s, " | "},
      {configured{without}, 2s, "no: pools.q: 1 experiment is in it; end or move them before the pool goes"},
      {experiment_placed{{1}, "p"}, 3s, " | "}, // the runs of the experiment are saving on agent a
      {configured{without}, 3s, " | drain(a for p) watch(a in q)"},
      {agent_went_away{"a"}, 4s, " | "},
      {experiment_gone{{1}}, 5s, " | "},
      {asks("a", "id1"), 6s, " | "},
      {agent_is_idle{"a", "q"}, 7s, " | end_twin(a in q) undrain(a) end_pool(q)"},
    },
    before);
}

TEST(Members, APoolThatIsDroppedLivesWhileAGuestRunsOnItsAgent) {
  const auto before = with_pools({"p", "q"}, "q"), without = with_pools({"p"});
  play(fresh(before),
       {
         {asks("a", "id1"), 0s, "joined(a 2) | twin(a in q)"},
         // the experiment falls back to pool q
         {experiment_entered{{1}, {{"resources", {{"resource_pool", "p"}}}}}, 1s, " | "},
         {configured{without}, 2s, " | drain(a for p) watch(a in q)"},
         {agent_is_idle{"a", "q"}, 60s, " | end_twin(a in q) undrain(a) end_pool(q)"},
         {asks("a", "id1"), 61s, " | twin(a in p)"},
       },
       before);
}

TEST(Members, MakeAPoolAndATwinAgainFiveTimesAMinute) {
  std::vector<row> rows{{asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"},
                        {agent_ordered{"a", -1, true, "eve"}, 0s, "changed(a draining by eve) | drain(a)"}};
  for (int i = 1; i <= 5; ++i) {
    rows.push_back(
      {pool_died{"default", "a bug"}, std::chrono::seconds(i), " | pool(default again) drain(a)"});
    rows.push_back({twin_died{"a", "a bug"}, std::chrono::seconds(i), " | twin(a in default again)"});
  }
  auto lasting = rows;
  rows.push_back({pool_died{"default", "a bug"}, 60s,
                  " | give_up: the resource pool default died again and again: a bug"});
  rows.push_back(
    {twin_died{"a", "a bug"}, 60s, " | give_up: the twin of agent a died again and again: a bug"});
  play(fresh(), rows);
  lasting.push_back({pool_died{"default", "a bug"}, 61s, " | pool(default again) drain(a)"});
  lasting.push_back({pool_died{"other", "a bug"}, 61s, " | "}); // there is no pool of this name
  lasting.push_back({twin_died{"b", "a bug"}, 61s, " | "});
  play(fresh(), lasting);
}

/// A run whose actor died too often: its slots are held where its processes may live.
TEST(Members, EndTheProcessesOfARunWhoseOwnerIsGone) {
  const auto of = [](std::uint64_t trial, std::uint32_t number) {
    return allocation_id{trial_id{trial}, {number}};
  };
  const auto run = of(7, 2), other = of(8, 1);
  const auto configuration = with_pools({"default", "gpu"}, "gpu");
  auto machine = fresh(configuration);
  machine =
    play(std::move(machine),
         {
           {asks("a", "id1"), 0s, "joined(a 2) | twin(a in gpu)"},
           {asks("b", "id2"), 0s, "joined(b 2) | twin(b in default)"},
           {run_let_go{run, {{"a", {0, 1}}}}, 1s, " | end(7.2 on a) release(7.2 in default)"},
           {run_let_go{other, {{"b", {0}}, {"gone", {0, 1}}}}, 2s,
            " | end(8.1 on b) release(8.1 in default on gone) release(8.1 in gpu)"},
           {run_let_go{of(9, 1), {{"gone", {0}}}}, 2s, " | release(9.1 in default) release(9.1 in gpu)"},
           {run_let_go{of(10, 1), {}}, 2s, " | release(10.1 in default) release(10.1 in gpu)"},
           {twin_died{"a", "a bug"}, 3s, " | twin(a in gpu again, ends 7.2 on 2)"},
           {twin_died{"b", "a bug"}, 3s, " | twin(b in default again, ends 8.1 on 1)"},
           {asks("a", "id1"), 4s, " | "},
           {run_let_go{of(11, 1), {}}, 92s, " | release(11.1 in default) release(11.1 in gpu)"},
           {twin_died{"a", "a bug"}, 93s, " | twin(a in gpu again)"}, // no lease is so long
           {twin_died{"b", "a bug"}, 93s, " | twin(b in default again, ends 8.1 on 1)"},
         },
         configuration);
}

TEST(Members, JudgeASandboxOnlyWhileItsAgentIsAway) {
  auto machine = play(fresh(), {{asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"}});
  const auto judge = [&](const char* agent, bool dead) {
    return machine.judge_sandbox(agent, dead, true, t0);
  };
  EXPECT_FALSE(judge("a", false).kill);
  EXPECT_FALSE(judge("a", true).tell_twin) << "it speaks for its sandboxes";
  static_cast<void>(machine.apply(agent_went_away{"a"}, t0));
  EXPECT_TRUE(judge("a", false).kill);
  EXPECT_TRUE(judge("a", true).tell_twin);
  EXPECT_FALSE(judge("a", true).kill);
  EXPECT_FALSE(judge("stranger", false).kill);
}

TEST(Members, LetASandboxWhoseWorkIsSavedNowhereWaitForItsAgent) {
  auto machine = play(fresh(), {{asks("a", "id1"), 0s, "joined(a 2) | twin(a in default)"}});
  const auto judge = [&](bool dead, duration later) {
    return machine.judge_sandbox("a", dead, false, t0 + later);
  };
  static_cast<void>(machine.apply(agent_went_away{"a"}, t0));
  EXPECT_FALSE(judge(false, 1s).kill);
  EXPECT_TRUE(judge(true, 1s).tell_twin) << "its host has ended it";
  EXPECT_TRUE(judge(false, 1h).kill) << "its slots are given away";
  static_cast<void>(machine.apply(asks("a", "id1"), t0 + 1h));
  EXPECT_FALSE(judge(false, 2h).kill) << "the agent is back";
  members later({45s, t0, {}}); // a new master, with which the agent has not registered yet
  for (const auto& fact : fresh().apply(asks("a", "id1"), t0).facts)
    later.replay(fact);
  static_cast<void>(later.resume());
  EXPECT_FALSE(later.judge_sandbox("a", false, false, t0 + 44s).kill);
  EXPECT_TRUE(later.judge_sandbox("a", false, false, t0 + 45s).kill);
  EXPECT_FALSE(later.judge_sandbox("a", false, true, t0 + 4s).kill) << "its agent may come and adopt it";
  EXPECT_TRUE(later.judge_sandbox("a", false, true, t0 + 5s).kill) << "a trial begins elsewhere";
}

} // namespace
} // namespace troupe
