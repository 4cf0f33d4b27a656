#pragma once
// What a pool could hold if nothing ran in it: its present agents, and the instances that a provider may
// bring. Placement, explanations and the demand of an elastic pool ask here as well as the checks of a
// submission.

#include "actors/pool/fitting.hpp"

#include <map>
#include <string>

namespace troupe {

/// Whether empty agents hold some number of slots from `least` > 0 to `most`. `agents`: how many agents there
/// are of each number of slots.
bool empty_agents_hold(const std::map<int, int>& agents, int least, int most, bool single_node,
                       gang_rule gangs);

/// The number of slots that instances of `size` slots are launched for, for a run that takes `least` > 0 to
/// `most` slots: the least that fill whole instances, or `least` where that is less than one instance. 0:
/// none is launched for the run.
int slots_launched(int least, int most, int size);

struct pool_capacity {
  std::map<int, int> agents; ///< how many present agents there are of each number of slots
  int instance_slots = 0;    ///< slots of an instance; 0: the pool has no provider
  int max_instances = 0;
  int largest =
    -1; ///< slots of the largest agent, whether it is here or away, or of an instance; -1: unknown
  gang_rule gangs = gang_rule::any;
  int max_slots = -1;        ///< limit of the slots in use; below 0: no limit
  bool launch_error = false; ///< what is larger than most() is refused
  /// The most slots that all runs together can hold, now or with all instances.
  std::int64_t most() const;
};
value to_value(const pool_capacity& x);
pool_capacity capacity_of(const value& x); ///< takes what to_value() has made

/// The code of the warning of Determined's API or of ours, where a run of `least` to `most` slots waits for
/// more than other runs to end; empty: it does not. A run without slots gets none.
std::string launch_warning(const pool_capacity& pool, int least, int most, bool single_node);

} // namespace troupe
