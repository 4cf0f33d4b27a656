// The cases of Determined's tests of fitting (master/internal/rm/agentrm/fitting*_test.go of 0.38.1), each
// under the name of its test. Where agents are equal, the one whose name is first is chosen; Determined chose
// by a hash, which gave the same agents in these cases.

#include "actors/pool/fitting.hpp"
#include "actors/pool/pool.hpp"
#include "actors/pool/shares.hpp"
#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>
#include <set>

namespace troupe {
namespace {

struct agent_row {
  const char* name;
  int slots, used, aux_most, aux_used;
};

TEST(Fitting, IsViable) { // fitting_test.go::TestIsViable
  EXPECT_TRUE(viable(2, 4, 0, 100, 0));
  EXPECT_FALSE(viable(2, 1, 0, 100, 0)); // the cases agent2 and agent4 of Determined's test
}

TEST(Fitting, ScoresBest) { // fitting_methods_test.go::TestBestFit
  const std::tuple<int, agent_row, double> rows[] = {
    {0, {"agent1", 0, 0, 0, 0}, 0},     {0, {"agent2", 0, 0, 0, 1}, 0},
    {0, {"agent4", 0, 0, 2, 1}, 0.5},   {1, {"agent5", 1, 1, 100, 0}, 1},
    {1, {"agent7", 9, 0, 100, 0}, 0.1}, {1, {"agent8", 10, 1, 100, 0}, 0.1}};
  for (const auto& [slots, a, score] : rows)
    EXPECT_DOUBLE_EQ(fitting_score(fitting_order::best, slots, a.slots, a.used, a.aux_most, a.aux_used),
                     score)
      << a.name;
}

TEST(Fitting, ScoresWorst) { // fitting_methods_test.go::TestWorstFit
  const std::tuple<int, agent_row, double> rows[] = {
    {0, {"agent1", 0, 0, 0, 0}, 0},   {0, {"agent2", 0, 0, 0, 1}, 0},    {0, {"agent4", 0, 0, 2, 1}, 0.5},
    {1, {"agent5", 1, 0, 100, 0}, 1}, {1, {"agent7", 10, 0, 100, 0}, 1}, {1, {"agent8", 10, 5, 100, 0}, 0.5}};
  for (const auto& [slots, a, score] : rows)
    EXPECT_DOUBLE_EQ(fitting_score(fitting_order::worst, slots, a.slots, a.used, a.aux_most, a.aux_used),
                     score)
      << a.name;
}

/// Agents with these numbers of slots, of which some are used.
class rooms {
public:
  explicit rooms(fitting_order order) : index_(order) {}
  void add(const std::string& name, int total, int used) {
    all_.push_back({name, total, total - used, used == 0 && total > 0});
    index_.insert(all_.back());
  }
  std::string fit(int slots, bool single, gang_rule gangs) const {
    std::string out;
    for (const auto& part : index_.fit(slots, single, gangs))
      out += (out.empty() ? "" : " ") + part.agent->name + ":" + std::to_string(part.slots);
    return out;
  }

private:
  std::deque<agent_room> all_;
  room_index index_;
};

TEST(Fitting, FindsOneAgent) { // fitting_test.go::TestFindFits
  struct row {
    const char* what;
    fitting_order order;
    int slots;
    agent_row a, b;
    const char* chosen;
    bool single = false;
  } rows[] = {
    {"exact beats larger", fitting_order::best, 1, {"agent1", 1, 0, 0, 0}, {"agent2", 4, 0, 0, 0}, "agent1"},
    {"exact beats larger, second",
     fitting_order::best,
     1,
     {"agent1", 4, 0, 0, 0},
     {"agent2", 1, 0, 0, 0},
     "agent2"},
    {"tie", fitting_order::best, 1, {"agent1", 4, 0, 0, 0}, {"agent2", 4, 0, 0, 0}, "agent1"},
    {"tie of free slots", fitting_order::best, 2, {"agent1", 2, 0, 0, 0}, {"agent2", 4, 2, 0, 0}, "agent1"},
    {"less loaded first", fitting_order::worst, 1, {"agent1", 4, 1, 0, 0}, {"agent2", 2, 1, 0, 0}, "agent1"},
    {"ratio, not count", fitting_order::worst, 1, {"agent1", 2, 1, 0, 0}, {"agent2", 5, 3, 0, 0}, "agent1"},
    {"4 slots, tie", fitting_order::worst, 4, {"agent1", 4, 0, 0, 0}, {"agent2", 4, 0, 0, 0}, "agent1"},
    {"4 slots, one exact", fitting_order::worst, 4, {"agent1", 8, 0, 0, 0}, {"agent2", 4, 0, 0, 0}, "agent1"},
    {"both larger", fitting_order::best, 2, {"agent1", 4, 0, 0, 0}, {"agent2", 4, 0, 0, 0}, "agent1"},
    {"both larger, single agent",
     fitting_order::best,
     2,
     {"agent1", 4, 0, 0, 0},
     {"agent2", 4, 0, 0, 0},
     "agent1",
     true},
    {"one too small", fitting_order::best, 2, {"agent1", 1, 0, 0, 0}, {"agent2", 3, 0, 0, 0}, "agent2"},
  };
  for (const auto& r : rows) {
    rooms all(r.order);
    // The agents are added in the opposite order, as the order in which they come does not matter.
    all.add(r.b.name, r.b.slots, r.b.used);
    all.add(r.a.name, r.a.slots, r.a.used);
    EXPECT_EQ(all.fit(r.slots, r.single, gang_rule::whole),
              std::string(r.chosen) + ":" + std::to_string(r.slots))
      << r.what;
  }
}

TEST(Fitting, FindsSeveralAgents) { // fitting_test.go::TestFindDedicatedAgentFits
  struct row {
    const char* what;
    int slots;
    std::vector<int> sizes;
    gang_rule gangs;
    const char* chosen;
  } rows[] = {
    {"one agent covers all", 10, {1, 5, 10}, gang_rule::whole, "c:10"},
    {"several equal agents", 16, {8, 7, 7, 4, 4, 4, 4}, gang_rule::whole, "d:4 e:4 f:4 g:4"},
    {"must be a multiple", 12, {8, 8, 3, 3, 3}, gang_rule::whole, ""},
    {"uses no more than needed", 8, {4, 4, 4, 4, 4}, gang_rule::whole, "a:4 b:4"},
    {"mixed sizes not allowed", 4, {2, 1, 1}, gang_rule::whole, ""},
    {"equal sizes preferred", 4, {2, 1, 1, 1, 1}, gang_rule::whole_mixed, "b:1 c:1 d:1 e:1"},
    {"mixed, not enough", 8, {2, 1, 1}, gang_rule::whole_mixed, ""},
    {"mixed, from the largest",
     63,
     {32, 32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1},
     gang_rule::whole_mixed,
     "a:32 c:16 e:8 g:4 i:2 k:1"},
    // Rule of Troupe: any free slots, on as few agents as possible, in equal parts where possible.
    {"any: equal parts", 6, {4, 4, 1}, gang_rule::any, "a:3 b:3"},
    {"any: as few as can be", 5, {4, 2, 1}, gang_rule::any, "a:4 b:1"},
    {"any: not enough", 8, {4, 2, 1}, gang_rule::any, ""},
  };
  for (const auto& r : rows) {
    rooms all(fitting_order::worst);
    for (std::size_t i = 0; i < r.sizes.size(); ++i)
      all.add(std::string(1, static_cast<char>('a' + i)), r.sizes[i], 0);
    EXPECT_EQ(all.fit(r.slots, false, r.gangs), r.chosen) << r.what;
    EXPECT_EQ(all.fit(r.slots, true, r.gangs).find(' '), std::string::npos) << r.what;
  }
}

TEST(Fitting, LeavesOutBlockedAgents) { // fitting_test.go::TestFindFitDisallowedNodes
  using names = std::vector<std::string>;
  for (const auto& [blocked, left] :
       {std::pair{names{"agent1", "agent2"}, names{}}, {{"agent1"}, {"agent2"}}, {{"agent2"}, {"agent1"}}}) {
    placement_rules rules;
    rules.not_agents = blocked;
    names open;
    for (const char* agent : {"agent1", "agent2"})
      if (refusal(rules, agent, {}).empty())
        open.push_back(agent);
    EXPECT_EQ(open, left);
  }
}

TEST(Fitting, FindsAnAuxUnit) { // fitting_test.go::TestFindFits, the rows without slots
  struct row {
    const char* what;
    std::vector<agent_row> agents; ///< in the order in which they come
  } rows[] = {
    {"idle", {{"agent1", 4, 0, 100, 0}, {"agent2", 4, 0, 100, 0}}},
    {"idle, listed backwards", {{"agent2", 4, 0, 100, 0}, {"agent1", 4, 0, 100, 0}}},
    {"both in use, backwards", {{"agent2", 4, 0, 100, 2}, {"agent1", 4, 0, 100, 2}}},
    {"equal free aux", {{"agent1", 4, 0, 2, 0}, {"agent2", 4, 0, 4, 2}}},
    {"one busier", {{"agent1", 4, 0, 100, 1}, {"agent2", 4, 0, 100, 0}}},
    {"one busier, small limit", {{"agent1", 4, 0, 2, 1}, {"agent2", 4, 0, 2, 0}}},
  };
  for (const auto& r : rows) {
    pool machine(pool::phase::placing, pool_settings{});
    std::uint64_t next = 2;
    for (const auto& agent : r.agents) {
      agent_up up{agent.name, agent.slots, {}, {}};
      up.traits.aux = agent.aux_most;
      static_cast<void>(machine.apply(up, time_point{1s}));
      for (int i = 0; i < agent.aux_used; ++i) {
        slots_held held{{trial_id{next}, {1}}, {{agent.name, {}}}, {}};
        held.run.job.job = {next++};
        static_cast<void>(machine.apply(held, time_point{1s}));
      }
    }
    slots_requested ask{{trial_id{1}, {1}}, 0};
    ask.run.job.job = {1};
    EXPECT_EQ(show(machine.apply(ask, time_point{1s})), "grant(1.1 agent1:)") << r.what;
  }
}

TEST(Fitting, SaysWhatAnAgentLacks) {
  const agent_traits h200{{{"rack", "b2"}}, "NVIDIA H200", 150'000'000'000, -1};
  const auto no = [&](auto set) {
    placement_rules rules;
    set(rules);
    return refusal(rules, "gpu01", h200);
  };
  EXPECT_EQ(no([](auto& r) { r.labels["rack"] = {"a1"}; }), "lacks rack=a1, has rack=b2");
  EXPECT_EQ(no([](auto& r) { r.labels["rack"] = {"a1", "b2"}; }), "");
  EXPECT_EQ(no([](auto& r) { r.not_labels["rack"] = {"b2"}; }), "has rack=b2");
  EXPECT_EQ(no([](auto& r) { r.device_types = {"cpu", "A100"}; }), "lacks device cpu|A100, has NVIDIA H200");
  EXPECT_EQ(no([](auto& r) { r.device_types = {"h200"}; }), "");
  EXPECT_EQ(no([](auto& r) { r.device_types = {"cuda"}; }), "");
  agent_traits host;
  host.device = "cpu AMD EPYC 9354";
  for (const char* type : {"cpu", "epyc", "9354"}) {
    placement_rules r;
    r.device_types = {type};
    EXPECT_EQ(refusal(r, "a", host), "") << type;
  }
  agent_traits other;
  other.device = "cpu Intel(R) Xeon(R) Processor @ 2.60GHz";
  for (const char* type : {"intel", "Xeon", "Intel(R) Xeon(R) Processor @ 2.60GHz"}) {
    placement_rules r;
    r.device_types = {type};
    EXPECT_EQ(refusal(r, "a", other), "") << type;
  }
  for (const char* type : {"cuda", "xeon"}) {
    placement_rules r;
    r.device_types = {type};
    EXPECT_EQ(refusal(r, "a", host), std::string("lacks device ") + type + ", has cpu AMD EPYC 9354");
  }
  EXPECT_NE(no([](auto& r) { r.min_memory_bytes = 200'000'000'000; }), "");
  EXPECT_EQ(no([](auto& r) { r.same_label = "zone"; }), "lacks label zone");
  EXPECT_EQ(no([](auto& r) { r.prefer_labels["rack"] = {"a1"}; }), "");
}

TEST(Fitting, ComparesAgentsThatShareALabel) {
  struct row {
    const char* what;
    fitting_order order;
    int slots;
    std::vector<std::tuple<const char*, int, const char*>> agents; ///< name, slots, rack
    const char* granted;
  } rows[] = {
    {"fewest agents", fitting_order::best, 4, {{"a", 2, "x"}, {"b", 2, "x"}, {"c", 8, "y"}}, "c:0,1,2,3"},
    {"the one that it fills", fitting_order::best, 2, {{"a", 8, "x"}, {"b", 2, "y"}}, "b:0,1"},
    {"as empty: the first name", fitting_order::worst, 1, {{"a", 2, "x"}, {"b", 8, "y"}}, "a:0"},
    {"equal parts",
     fitting_order::best,
     4,
     {{"a", 3, "x"}, {"b", 1, "x"}, {"c", 2, "y"}, {"d", 2, "y"}},
     "c:0,1 d:0,1"},
    {"the ones that it fills",
     fitting_order::best,
     4,
     {{"a", 3, "x"}, {"b", 3, "x"}, {"c", 2, "y"}, {"d", 2, "y"}},
     "c:0,1 d:0,1"},
    {"first names",
     fitting_order::best,
     4,
     {{"b", 2, "x"}, {"d", 2, "x"}, {"a", 2, "y"}, {"e", 2, "y"}},
     "a:0,1 e:0,1"},
  };
  for (const auto& r : rows) {
    pool_settings settings;
    settings.fitting = r.order;
    pool machine(pool::phase::placing, settings);
    for (const auto& [name, slots, rack] : r.agents) {
      agent_up up{name, slots, {}, {}};
      up.traits.labels["rack"] = rack;
      static_cast<void>(machine.apply(up, time_point{1s}));
    }
    slots_requested ask{{trial_id{1}, {1}}, r.slots};
    ask.run.job.job = {1};
    ask.run.rules.same_label = "rack";
    EXPECT_EQ(show(machine.apply(ask, time_point{1s})), "grant(1.1 " + std::string(r.granted) + ")")
      << r.what;
  }
  // Where two racks can hold the run, `best` takes a slot of the fuller agent and `worst` one of the emptier
  // agent.
  for (const auto order : {fitting_order::best, fitting_order::worst}) {
    pool_settings settings;
    settings.fitting = order;
    pool machine(pool::phase::placing, settings);
    for (const auto& [name, rack] : {std::pair{"a", "x"}, {"b", "y"}}) {
      agent_up up{name, 4, {}, {}};
      up.traits.labels["rack"] = rack;
      static_cast<void>(machine.apply(up, time_point{1s}));
    }
    slots_requested ask{{trial_id{1}, {1}}, 1};
    ask.run.job.job = {1};
    ask.run.rules.agents = {"b"};
    EXPECT_EQ(show(machine.apply(ask, time_point{1s})), "grant(1.1 b:0)");
    ask.allocation = {trial_id{2}, {1}};
    ask.run.rules = {};
    ask.run.rules.same_label = "rack";
    EXPECT_EQ(show(machine.apply(ask, time_point{1s})),
              order == fitting_order::best ? "grant(2.1 b:1)" : "grant(2.1 a:0)");
  }
}

TEST(FairShares, AreWeightedMaxMinInWholeSlots) {
  struct row {
    const char* what;
    std::vector<share_demand> of;
    int slots;
    std::vector<int> shares;
  } rows[] = {
    {"weights", {{10, 3, 0}, {30, 7, 0}}, 8, {2, 6}},
    {"what one does not need the others have", {{1, 1, 0}, {1, 9, 0}, {1, 9, 0}}, 9, {1, 4, 4}},
    {"the largest remainder", {{1, 9, 0}, {1, 9, 0}, {2, 9, 0}}, 5, {1, 1, 3}},
    {"a tie goes to who holds it", {{1, 9, 0}, {1, 9, 2}}, 3, {1, 2}},
    {"then to the older", {{1, 9, 0}, {1, 9, 0}}, 3, {2, 1}},
    {"weight 0 has none", {{0, 9, 0}, {1, 2, 0}}, 8, {0, 2}},
    {"no slots", {{1, 9, 0}}, 0, {0}},
  };
  for (const auto& r : rows)
    EXPECT_EQ(fair_shares(r.of, r.slots).shares, r.shares) << r.what;
}

/// Returns a demand with a weight and the caps that it shares with others.
share_demand capped(double weight, int demand, int cap, int other = -1, int held = 0) {
  return {weight, demand, held, {cap, other}};
}

TEST(FairShares, ShareCapsInTheSameWay) {
  struct row {
    const char* what;
    std::vector<share_demand> of;
    int slots;
    std::vector<int> caps, shares;
  } rows[] = {
    {"by weight", {capped(1, 9, 0), capped(3, 9, 0), capped(1, 9, -1)}, 8, {4}, {1, 3, 4}},
    {"weight 0 has none", {capped(0, 9, 0), capped(1, 2, 0)}, 8, {4}, {0, 2}},
    {"what a cap does not need others have",
     {capped(1, 1, 0), capped(1, 9, 0), capped(1, 9, 1)},
     9,
     {4, 3},
     {1, 3, 3}},
    {"a tie goes to who holds it", {capped(1, 9, 0), capped(1, 9, 0, -1, 2)}, 9, {3}, {1, 2}},
    {"then to the older", {capped(1, 9, 0), capped(1, 9, 0)}, 9, {3}, {2, 1}},
    {"two caps", {capped(1, 9, 0, 1), capped(1, 9, 0), capped(1, 9, -1, 1)}, 9, {6, 2}, {1, 5, 1}},
    {"the pool is smaller than the caps", {capped(1, 9, 0), capped(1, 9, 1)}, 4, {8, 8}, {2, 2}},
    {"a cap of nothing", {capped(1, 9, 0), capped(1, 9, -1)}, 4, {0}, {0, 4}},
  };
  for (const auto& r : rows)
    EXPECT_EQ(fair_shares(r.of, r.slots, r.caps).shares, r.shares) << r.what;
}

/// Compares with shares that grow together, a little at a time, until a demand is met or a cap is reached.
TEST(FairShares, BelowCapsAreThoseOfProgressiveFillingWithinASlot) {
  std::mt19937_64 random(2);
  const auto roll = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
  constexpr double weights[] = {1, 1, 0, 2, 0.5, 7};
  for (int round = 0; round < 500 && !::testing::Test::HasFailure(); ++round) {
    std::vector<int> caps(static_cast<std::size_t>(1 + roll(3)));
    for (auto& cap : caps)
      cap = roll(12);
    const auto count = static_cast<int>(caps.size());
    std::vector<share_demand> of(static_cast<std::size_t>(1 + roll(6)));
    for (auto& x : of) {
      x = {weights[roll(5)], roll(12), roll(5), {roll(count) - 1, roll(count) - 1}};
      if (x.groups[0] == x.groups[1])
        x.groups[1] = -1;
    }
    const int slots = roll(25);
    const auto in = [](const share_demand& x, int cap) { return x.groups[0] == cap || x.groups[1] == cap; };
    const auto shares = fair_shares(of, slots, caps).shares;
    const auto room = [&](const auto& given, const share_demand& x) {
      double left = slots;
      for (const auto g : given)
        left -= g;
      for (int cap = 0; cap < count; ++cap)
        if (in(x, cap)) {
          double rest = caps[static_cast<std::size_t>(cap)];
          for (std::size_t i = 0; i < of.size(); ++i)
            if (in(of[i], cap))
              rest -= given[i];
          left = std::min(left, rest);
        }
      return left;
    };
    constexpr double step = 1.0 / 256;
    std::vector<double> exact(of.size(), 0);
    std::vector<bool> grows(of.size(), true);
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < of.size(); ++i) {
        const double more = step * of[i].weight;
        grows[i] = grows[i] && more > 0 && exact[i] + more <= of[i].demand && room(exact, of[i]) >= more;
        if (grows[i])
          exact[i] += more;
        any = any || grows[i];
      }
    }
    for (std::size_t i = 0; i < of.size(); ++i) {
      EXPECT_GE(room(shares, of[i]), 0) << "round " << round;
      EXPECT_GT(shares[i], exact[i] - 1.3) << "round " << round << ", job " << i;
      EXPECT_TRUE(of[i].weight == 0 || shares[i] >= of[i].demand || room(shares, of[i]) < 1)
        << "a slot is left over, round " << round;
      EXPECT_TRUE(of[i].weight > 0 || shares[i] == 0);
    }
  }
}

TEST(FairShares, AreTheSameWhereAChangeIsSaidNotToMatter) {
  std::mt19937_64 random(1);
  const auto roll = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
  constexpr double weights[] = {1, 1, 1, 0, 2, 0.3, 7};
  int spared = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<share_demand> of(static_cast<std::size_t>(1 + roll(7)));
    const auto draw = [&](share_demand& x) {
      x.demand = roll(20);
      x.held = roll(x.demand);
    };
    for (auto& x : of) {
      x.weight = weights[roll(6)];
      draw(x);
    }
    const int slots = roll(40);
    const auto before = fair_shares(of, slots);
    const auto index = static_cast<std::size_t>(roll(static_cast<int>(of.size()) - 1));
    const auto was = of[index];
    draw(of[index]);
    if (changes(before, index, was, of[index]))
      continue;
    ++spared;
    const auto after = fair_shares(of, slots);
    EXPECT_EQ(after.shares, before.shares) << "round " << round;
    EXPECT_EQ(after.level, before.level) << "round " << round;
    EXPECT_EQ(after.even, before.even) << "round " << round;
  }
  EXPECT_GT(spared, 5'000);
}

// ---- agents that are preferred

/// Compares with every possible choice, on a few agents.
TEST(Fitting, TakesAsManyPreferredAgentsAsCanBeOnNoMoreAgents) {
  std::mt19937_64 random(1);
  const auto roll = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  int seen = 0, mixed = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto order = roll(0, 1) ? fitting_order::best : fitting_order::worst;
    const auto gangs = static_cast<gang_rule>(roll(0, 2));
    room_index all(order), preferred(order);
    std::deque<agent_room> agents;
    std::vector<bool> likes;
    for (int i = 0, n = roll(1, 7); i < n; ++i) {
      const int total = roll(1, 4), free = roll(0, total);
      agents.push_back({std::string(1, static_cast<char>('a' + i)), total, free, free == total});
      likes.push_back(roll(0, 1) == 1);
      all.insert(agents.back());
      if (likes.back())
        preferred.insert(agents.back());
    }
    const int slots = roll(2, 14);
    if (!preferred.fit(slots, false, gangs).empty())
      continue;
    const auto plain = all.fit(slots, false, gangs), got = all.fit_beside(preferred, slots, gangs);
    ASSERT_EQ(got.size(), plain.size()) << "round " << round;
    if (got.empty())
      continue;
    ++seen;
    int sum = 0, liked = 0;
    std::set<const agent_room*> chosen;
    std::map<int, int> sizes, liked_of, plain_sizes; // numbers of agents, by the slots that are used of each
    for (const auto& part : got) {
      EXPECT_TRUE(chosen.insert(part.agent).second);
      EXPECT_GT(part.slots, 0);
      EXPECT_LE(part.slots, part.agent->free);
      sum += part.slots;
      liked += preferred.contains(*part.agent);
      ++sizes[part.slots];
      liked_of[part.slots] += preferred.contains(*part.agent);
    }
    EXPECT_EQ(sum, slots) << "round " << round;
    mixed += liked > 0;
    if (got.size() == 1)
      continue;
    if (gangs != gang_rule::any) {
      for (const auto& part : plain)
        ++plain_sizes[part.slots];
      EXPECT_EQ(sizes, plain_sizes) << "round " << round;
      for (const auto& [size, count] : sizes) {
        int there = 0;
        for (std::size_t i = 0; i < agents.size(); ++i)
          there += likes[i] && agents[i].idle && agents[i].free == size;
        EXPECT_EQ(liked_of[size], std::min(there, count)) << "round " << round;
      }
      continue;
    }
    int most = 0;
    bool equal = false; // whether a choice with most preferred agents has equal parts
    for (unsigned set = 0; set < 1U << agents.size(); ++set) {
      int count = 0, free = 0, of_them = 0, least = slots;
      for (std::size_t i = 0; i < agents.size(); ++i)
        if (set >> i & 1) {
          ++count;
          free += agents[i].free;
          of_them += likes[i];
          least = std::min(least, agents[i].free);
        }
      if (count != static_cast<int>(got.size()) || free < slots || of_them < most)
        continue;
      equal = (of_them == most && equal) || (slots % count == 0 && least >= slots / count);
      most = of_them;
    }
    EXPECT_EQ(liked, most) << "round " << round;
    EXPECT_TRUE(!equal || sizes.size() == 1) << "round " << round;
  }
  EXPECT_GT(seen, 1'500);
  EXPECT_GT(mixed, 1'000);
}

/// Places a run in a pool of six agents with two slots each: n1 to n4 are in rack a; p1 and p2, which are
/// fast, are in rack b. n1 to n3 are in zone 1, the other agents in zone 2.
std::string placed_in(pool_settings settings, int slots, const std::function<void(placement_rules&)>& set) {
  pool p(pool::phase::placing, std::move(settings));
  for (const char* name : {"n1", "n2", "n3", "n4", "p1", "p2"}) {
    agent_up up{name, 2, {}, {}};
    up.traits.labels["rack"] = name[0] == 'n' ? "a" : "b";
    up.traits.labels["zone"] = name[0] == 'n' && name[1] < '4' ? "1" : "2";
    if (name[0] == 'p')
      up.traits.labels["fast"] = "yes";
    static_cast<void>(p.apply(up));
  }
  slots_requested ev{{trial_id{1}, {1}}, slots};
  ev.run.job.job = {1};
  set(ev.run.rules);
  std::string out;
  for (const auto& action : p.apply(ev))
    if (const auto* grant = std::get_if<grant_slots>(&action))
      for (const auto& part : grant->on)
        out += (out.empty() ? "" : " ") + part.agent + ":" + std::to_string(part.slots.size());
  return out;
}

TEST(PoolFitting, AGangGoesToAsManyPreferredAgentsAsCanBe) {
  const auto fast = [](placement_rules& r) { r.prefer_labels["fast"] = {"yes"}; };
  for (const auto scheduler :
       {scheduler_kind::fifo, scheduler_kind::round_robin, scheduler_kind::priority, scheduler_kind::fair})
    for (const auto gangs : {gang_rule::any, gang_rule::whole, gang_rule::whole_mixed}) {
      pool_settings settings;
      settings.scheduler = scheduler;
      settings.gangs = gangs;
      EXPECT_EQ(placed_in(settings, 4, fast), "p1:2 p2:2");
      EXPECT_EQ(placed_in(settings, 6, fast), "p1:2 p2:2 n1:2");
      EXPECT_EQ(placed_in(settings, 12, fast), "p1:2 p2:2 n1:2 n2:2 n3:2 n4:2");
      EXPECT_EQ(placed_in(settings, 6, [](auto&) {}), "n1:2 n2:2 n3:2");
    }
}

TEST(PoolFitting, APreferenceNeverLeadsWhereTheConstraintsForbid) {
  EXPECT_EQ(placed_in({}, 2,
                      [](placement_rules& r) {
                        r.labels["rack"] = {"a"};
                        r.prefer_labels["rack"] = {"b"};
                      }),
            "n1:2");
  EXPECT_EQ(placed_in({}, 2,
                      [](placement_rules& r) {
                        r.labels["rack"] = {"a", "b"};
                        r.prefer_labels["rack"] = {"b", "c"};
                      }),
            "p1:2");
}

TEST(PoolFitting, OfGroupsOfOneLabelAGangTakesTheOneWithMorePreferredAgents) {
  const auto zone = [](placement_rules& r) { r.same_label = "zone"; };
  EXPECT_EQ(placed_in({}, 6, zone), "n1:2 n2:2 n3:2");
  EXPECT_EQ(placed_in({}, 6,
                      [&](placement_rules& r) {
                        zone(r);
                        r.prefer_labels["fast"] = {"yes"};
                      }),
            "p1:2 p2:2 n4:2");
}

} // namespace
} // namespace troupe
