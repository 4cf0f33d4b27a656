// Tests the answer of a pool to a submission: whether a trial of this size waits for more than other runs to
// end.

#include "actors/pool/capacity.hpp"
#include "actors/pool/pool.hpp"
#include "test/unit/pool/supply.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr const char* exceeds = "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED";
constexpr const char* no_whole = "LAUNCH_WARNING_NO_WHOLE_INSTANCES";
constexpr const char* larger = "LAUNCH_WARNING_LARGER_THAN_INSTANCES";

/// The answer as the cluster gets it, for a pool whose agents have these slots.
std::string warned(const value& settings, const std::optional<supply_told>& told,
                   const std::vector<int>& agents, int least, int most, bool single_node) {
  pool machine{pool::phase::placing, pool_settings{}};
  static_cast<void>(machine.apply(pool_configured{settings}));
  if (told)
    static_cast<void>(machine.apply(*told));
  for (std::size_t i = 0; i < agents.size(); ++i)
    static_cast<void>(machine.apply(agent_up{"a" + std::to_string(i), agents[i]}));
  static_cast<void>(machine.apply(agent_up{"gone", 64}));
  static_cast<void>(machine.apply(agent_down{"gone"}));
  return launch_warning(capacity_of(to_value(machine.capacity())), least, most, single_node);
}

TEST(PoolCapacity, WarnsOfWhatThePoolNeverHoldsAtOnce) {
  const struct {
    const char* what;
    value settings;
    std::vector<int> agents;
    int slots;
    const char* warning = "";
    bool single_node = false;
  } rows[] = {
    {"it is there", value::object(), {4, 4}, 8},
    {"no agent is there", value::object(), {}, 1, exceeds},
    {"more than there is", value::object(), {4, 4}, 9, exceeds},
    {"without slots", value::object(), {}, 0},
    {"max_slots of the pool", {{"max_slots", 2}}, {8}, 3, exceeds},
    {"below it", {{"max_slots", 2}}, {8}, 2},
    {"on one agent", value::object(), {4, 4}, 4, "", true},
    {"on one agent, and none has as many", value::object(), {4, 4}, 6, exceeds, true},
    {"whole agents do not make it up", {{"gangs", "whole"}}, {4, 4}, 6, exceeds},
    {"agents of one size do not make it up", {{"gangs", "whole"}}, {4, 2}, 6, exceeds},
    {"agents of any sizes make it up", {{"gangs", "whole_mixed"}}, {4, 2}, 6},
  };
  for (const auto& r : rows)
    EXPECT_EQ(warned(r.settings, {}, r.agents, r.slots, r.slots, r.single_node), r.warning) << r.what;
}

TEST(PoolCapacity, WarnsOfAGangThatInstancesDoNotHold) {
  const struct {
    const char* what;
    int slots, instances; ///< an instance has two slots, and there may be three
    const char* warning = "";
    const char* gangs = "any";
    bool single_node = false;
    int other = 0; ///< slots of an agent that is not an instance; 0: there is none
  } rows[] = {
    {"no multiple", 3, 0, no_whole},
    {"some instances are there", 5, 2, no_whole},
    {"whole instances", 4, 0},
    {"less than one instance", 1, 0},
    {"what is there could hold it", 3, 2},
    {"parts of what is there do not hold it", 3, 2, no_whole, "whole"},
    {"the same, of any sizes", 3, 2, no_whole, "whole_mixed"},
    {"whole ones of what is there", 4, 2, "", "whole"},
    {"one agent that is no instance", 3, 1, "", "whole", false, 4},
    {"more than all instances", 7, 2, exceeds, "whole"},
    {"on one node, a multiple", 4, 0, larger, "any", true},
    {"on one node, no multiple", 3, 0, larger, "any", true},
    {"on one node, some instances are there", 4, 2, larger, "any", true},
    {"on one node, more than all instances", 8, 0, larger, "any", true},
    {"on one node, one instance", 2, 0, "", "any", true},
    {"on one node, one agent that is no instance", 4, 1, "", "any", true, 4},
  };
  for (const auto& r : rows) {
    std::vector<int> agents(static_cast<std::size_t>(r.instances), 2);
    if (r.other > 0)
      agents.push_back(r.other);
    EXPECT_EQ(
      warned({{"gangs", r.gangs}}, supply(2, 3, r.instances), agents, r.slots, r.slots, r.single_node),
      r.warning)
      << r.what;
  }
}

TEST(PoolCapacity, ARangeIsHeldWhereOneOfItsNumbersIs) {
  const struct {
    const char* what;
    int least, most;
    const char* warning = "";
    std::vector<int> agents = {};
    const char* gangs = "any";
    bool elastic = true;
  } rows[] = {
    {"a number fills whole instances", 3, 4},
    {"no number does", 3, 3, no_whole},
    {"the one that does is more than all instances", 5, 8},
    {"all are more than all instances", 7, 8, exceeds},
    {"whole agents hold the larger number", 3, 4, "", {2, 2}, "whole", false},
    {"whole agents hold none", 3, 3, exceeds, {2, 2}, "whole", false},
  };
  for (const auto& r : rows)
    EXPECT_EQ(warned({{"gangs", r.gangs}}, r.elastic ? std::optional(supply(2, 3)) : std::nullopt, r.agents,
                     r.least, r.most, false),
              r.warning)
      << r.what;
}

TEST(PoolCapacity, CountsTheInstancesThatAreLaunched) {
  const struct {
    int least, most, size, count;
  } rows[] = {
    {1, 1, 2, 1}, {2, 2, 2, 2}, {3, 3, 2, 0}, {4, 4, 2, 4}, {3, 4, 2, 4}, {3, 5, 2, 4},
    {1, 5, 2, 1}, {1, 3, 4, 1}, {3, 5, 4, 3}, {5, 7, 4, 0}, {1, 1, 0, 0}, {3, 2, 4, 0},
  };
  for (const auto& r : rows)
    EXPECT_EQ(slots_launched(r.least, r.most, r.size), r.count)
      << r.least << " to " << r.most << " on instances of " << r.size;
}

TEST(PoolCapacity, TellsTheLargestAgentThatMayHoldATask) {
  pool machine{pool::phase::placing, pool_settings{}};
  const auto largest = [&machine](const pool_event& ev) {
    static_cast<void>(machine.apply(ev));
    return machine.capacity().largest;
  };
  EXPECT_EQ(machine.capacity().largest, -1) << "no agent is known";
  EXPECT_EQ(largest(agent_up{"a", 2}), 2);
  EXPECT_EQ(largest(agent_up{"b", 4}), 4);
  EXPECT_EQ(largest(agent_down{"b"}), 4) << "it may come back";
  EXPECT_EQ(largest(agent_down{"b", true}), 2);
  EXPECT_EQ(largest(supply(8, 1)), 8) << "an instance";
  EXPECT_EQ(largest(agent_down{"c"}), -1) << "of it only the name is known";
  EXPECT_EQ(largest(agent_up{"c", 1}), 8);
}

TEST(PoolCapacity, SaysWhetherThePoolRefusesWhatIsLarger) {
  pool machine{pool::phase::placing, pool_settings{}};
  static_cast<void>(machine.apply(agent_up{"a", 4}));
  EXPECT_FALSE(machine.capacity().launch_error);
  static_cast<void>(machine.apply(pool_configured{{{"launch_error", true}, {"max_slots", 3}}}));
  const auto told = capacity_of(to_value(machine.capacity()));
  EXPECT_TRUE(told.launch_error);
  EXPECT_EQ(told.most(), 3);
}

} // namespace
} // namespace troupe
