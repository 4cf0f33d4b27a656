#pragma once
// Which agents hold a run: the only place that decides it, for grants, preemption, reservations, capacity and
// explanations alike. Pure arithmetic over free slots; who may have them is decided elsewhere.

#include "actors/pool/node_memory.hpp"
#include "actors/pool/pool_events.hpp"

#include <absl/container/btree_set.h>
#include <absl/container/inlined_vector.h>

#include <memory>

namespace troupe {

enum class fitting_order { best, worst };
/// How a gang spreads: over any free slots; whole idle agents of one size; whole idle agents of any size.
enum class gang_rule { any, whole, whole_mixed };

/// Determined's scores, the higher the better. `best` fills the busiest agent, `worst` the emptiest; a task
/// without slots is placed by its aux units.
bool viable(int slots, int agent_slots, int used, int aux_most, int aux_used);
double fitting_score(fitting_order order, int slots, int agent_slots, int used, int aux_most, int aux_used);

/// An agent as far as fitting goes: how many of its slots may be had.
struct agent_room {
  std::string name;
  int total = 0;           ///< slots
  int free = 0;            ///< that may be had
  bool idle = false;       ///< all that are open may be had
  std::uint64_t order = 0; ///< grows with the names, where the rooms have one: numbers are compared sooner
};
struct share_of_agent {
  const agent_room* agent = nullptr;
  int slots = 0;
};
using agent_shares = absl::InlinedVector<share_of_agent, 1>;

/// Agents by their free slots. It holds pointers: whoever changes an agent takes it out first.
class room_index {
public:
  explicit room_index(fitting_order order = fitting_order::best) : order_(order) {}
  void insert(const agent_room& agent);
  void erase(const agent_room& agent);
  int free() const { return free_; }
  int most() const;                                 ///< free slots of the agent that has most
  std::vector<const agent_room*> with_room() const; ///< all that have free slots, by name

  /// Where `slots` > 0 go, best agents first; none where they do not fit.
  agent_shares fit(int slots, bool single_node, gang_rule gangs) const;
  /// The same of a gang that is too large for some of these agents, which are `preferred`: on no more agents
  /// than else, as many of them preferred as can be.
  agent_shares fit_beside(const room_index& preferred, int slots, gang_rule gangs) const;
  bool contains(const agent_room& agent) const;
  /// Whether `a` is where a run goes sooner than `b`, both of as many slots and none empty: fewer agents,
  /// then equal parts, then the agents that the order prefers, then the names that are first.
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
  std::vector<const agent_room*> largest(int count, const room_index* but = nullptr) const;
  agent_shares spread(int slots) const;
  agent_shares spread_beside(const room_index& preferred, int slots) const;
  agent_shares whole(int slots, bool mixed, const room_index* preferred = nullptr) const;

  fitting_order order_;
  std::map<bucket, members, std::less<bucket>, node_allocator<std::pair<const bucket, members>>> buckets_;
  int free_ = 0;
};

/// Whether the slots of an agent with this `agent_traits::device` are artificial: "cpu", or "cpu" and the
/// name of its processor, whose words may be asked for too.
bool is_processor(const std::string& device);
/// Why an agent may not hold a run: "" where it may.
std::string refusal(const placement_rules& rules, const std::string& agent, const agent_traits& traits);

} // namespace troupe
