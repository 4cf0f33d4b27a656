#pragma once
// Decides which agents hold a run. Grants, preemption, reservations, capacity and explanations all ask here.
// Pure arithmetic over free slots; which run may have them is decided elsewhere.

#include "actors/pool/node_memory.hpp"
#include "actors/pool/pool_events.hpp"

#include <absl/container/btree_set.h>
#include <absl/container/inlined_vector.h>

#include <memory>

namespace troupe {

enum class fitting_order { best, worst };
/// How a gang is spread: over any free slots; over whole idle agents of one size; over whole idle agents of
/// any size.
enum class gang_rule { any, whole, whole_mixed };

/// The scores of Determined: a higher score is better. `best` prefers the busiest agent, `worst` the
/// emptiest. The score of a task without slots depends on the agent's aux units.
bool viable(int slots, int agent_slots, int used, int aux_most, int aux_used);
double fitting_score(fitting_order order, int slots, int agent_slots, int used, int aux_most, int aux_used);

/// What fitting has to know of an agent: how many of its slots are available.
struct agent_room {
  std::string name;
  int total = 0;           ///< number of slots
  int free = 0;            ///< number of slots that are available
  bool idle = false;       ///< whether all open slots are available
  std::uint64_t order = 0; ///< grows with the names, as numbers are compared faster; equal: names count
};
struct share_of_agent {
  const agent_room* agent = nullptr;
  int slots = 0;
};
using agent_shares = absl::InlinedVector<share_of_agent, 1>;

/// Agents by their free slots. The index holds pointers, so an agent has to be erased before it is changed.
class room_index {
public:
  explicit room_index(fitting_order order = fitting_order::best) : order_(order) {}
  void insert(const agent_room& agent);
  void erase(const agent_room& agent);
  int free() const { return free_; }
  int most() const;                                 ///< free slots of the agent that has the most
  std::vector<const agent_room*> with_room() const; ///< all agents that have free slots, by name
  /// The `count` agents with the most free slots, or all that have any; without those of `but`. Of equal
  /// agents the first by name.
  std::vector<const agent_room*> largest(int count, const room_index* but = nullptr) const;

  /// The agents that hold `slots` > 0 slots, best agents first; empty where the slots do not fit.
  agent_shares fit(int slots, bool single_node, gang_rule gangs) const;
  /// Whether some number of slots from `least` > 0 to `most` fits. Whole agents may hold a larger number
  /// where they do not hold a smaller one.
  bool holds(int least, int most, bool single_node, gang_rule gangs) const;
  /// The same for a gang that is too large for the agents of `preferred`, which are some of these: it takes
  /// no more agents than without a preference, and as many preferred ones among them as possible.
  agent_shares fit_beside(const room_index& preferred, int slots, gang_rule gangs) const;
  bool contains(const agent_room& agent) const;
  /// Whether a run is placed on `a` rather than on `b`. Both have the same number of slots and are not empty.
  /// Fewer agents are better, then equal parts, then agents that the order prefers, then the first names.
  bool better(const agent_shares& a, const agent_shares& b) const;

private:
  struct bucket {
    int free = 0, total = 0;
    bool idle = false;
    friend auto operator<=>(const bucket&, const bucket&) = default;
  };
  struct by_name {
    bool operator()(const agent_room* a, const agent_room* b) const {
      return a->order != b->order ? a->order < b->order : a->name < b->name;
    }
  };
  using members = absl::btree_set<const agent_room*, by_name>;

  const agent_room* best(int slots) const;
  std::vector<const agent_room*> choose(int count, int least_free, bool idle) const;
  static void take_first(members& to, const members& from, int count, const members* but = nullptr);
  const members* like(const bucket& b) const;
  int fewest(int slots) const;
  agent_shares spread(int slots) const;
  agent_shares spread_beside(const room_index& preferred, int slots) const;
  agent_shares whole(int slots, bool mixed, const room_index* preferred = nullptr) const;

  fitting_order order_;
  std::map<bucket, members, std::less<bucket>, node_allocator<std::pair<const bucket, members>>> buckets_;
  int free_ = 0;
};

/// Whether the slots of an agent with this `agent_traits::device` are artificial: the device is empty, "cpu",
/// or "cpu" and the name of the processor, whose words a run may ask for, too.
bool is_processor(const std::string& device);
/// Why the agent may not hold a run with these rules; empty where it may.
std::string refusal(const placement_rules& rules, const std::string& agent, const agent_traits& traits);

} // namespace troupe
