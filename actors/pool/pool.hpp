#pragma once
// Who runs where: the queue and the free slots of one resource pool. All soft state: rebuilt after a restart
// from the agents' inventories and the allocations' requests. Two interfaces: `policy` (who next) here, and
// supply (agents today), which reaches the pool as agent_up and agent_down.

#include "actors/machine.hpp"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace troupe {

// Events.
/// An agent's slots, all of them; `busy` are those that its inventory says are taken, by allocation.
struct agent_up {
  std::string agent;
  int slots = 0;
  std::map<std::string, std::vector<int>> busy; ///< by allocation id as text
  MSGPACK_DEFINE_ARRAY(agent, slots, busy)
};
struct agent_down {
  std::string agent;
  MSGPACK_DEFINE_ARRAY(agent)
};
struct slots_requested {
  allocation_id allocation;
  int slots = 1;
  int least = 0; ///< that will do; 0: no fewer. By one that holds some: it would take more
  MSGPACK_DEFINE_ARRAY(allocation, slots, least)
};
/// Also withdraws a request that waits. Unknown allocations are no error.
struct slots_released {
  allocation_id allocation;
  std::string agent; ///< only those on it; empty: all
  MSGPACK_DEFINE_ARRAY(allocation, agent)
};
/// What may be placed on this agent from now on; it replaces what was said before. Known or not: the agent
/// may come later.
struct agent_drain {
  std::string agent;
  bool on = true;            ///< nothing new is placed on any slot
  std::vector<int> disabled; ///< nothing new is placed on these slots
  MSGPACK_DEFINE_ARRAY(agent, on, disabled)
};
/// To a pool that was made again: an earlier one granted these slots to the allocation.
struct slots_held {
  allocation_id allocation;
  std::vector<placement> on;
  MSGPACK_DEFINE_ARRAY(allocation, on)
};
/// Every allocation has told the pool that was made again what it holds: from now on it places.
struct holders_heard {
  MSGPACK_DEFINE_ARRAY()
};
/// The agent is gone for good: what an operator said of it is forgotten.
struct agent_forgotten {
  std::string agent;
  MSGPACK_DEFINE_ARRAY(agent)
};
using pool_event = std::variant<agent_up, agent_down, slots_requested, slots_released, agent_drain,
                                slots_held, holders_heard, agent_forgotten>;

// Actions.
struct grant_slots {
  allocation_id allocation;
  std::vector<placement> on;
};
/// All slots of this pool together could not hold it now. Said once per request; the request stays queued,
/// and lets smaller ones pass. Also a message to the allocation.
struct report_unplaceable {
  allocation_id allocation;
  int slots = 0; ///< wanted
  int total = 0; ///< of the pool
  MSGPACK_DEFINE_ARRAY(allocation, slots, total)
};
/// An allocation that holds fewer slots than it would take could have `slots` of them, were it placed anew.
/// Said once per number, while nobody waits for the free ones.
struct report_spare {
  allocation_id allocation;
  int slots = 0;
};
using pool_action = std::variant<grant_slots, report_unplaceable, report_spare>;

/// What a policy sees of the queue and of the free slots; it answers with the next request to place, and
/// where.
struct pool_view {
  struct request {
    allocation_id allocation;
    int slots = 1;
    std::uint64_t order = 0; ///< of arrival
    int least = 0;           ///< that will do; 0: no fewer
  };
  const std::deque<request>& waiting;
  const std::map<std::string, std::vector<int>>& free; ///< free slots by agent, ascending
  int total = 0;                                       ///< slots of the pool, free or held
};
struct choice {
  std::size_t index = 0; ///< into `waiting`
  std::vector<placement> on;
};

/// Who next. Pure; called again until it has no choice.
class pool_policy {
public:
  virtual ~pool_policy() = default;
  virtual std::optional<choice> next(const pool_view& view) const = 0;
};

/// First come, first placed; nobody overtakes what the pool can hold, so a large request is never starved.
/// Fit: the agent with the fewest free slots that holds it alone, else over several agents, most free slots
/// first.
std::unique_ptr<pool_policy> make_fifo_policy();

/// Not thread-safe: one actor owns it. Invariant: a slot is held by one allocation at most.
///
///   recovering --holders_heard--> placing
///
/// A pool that replaces one that died begins as recovering: it hears what agents and allocations hold, and
/// places nothing.
class pool {
public:
  enum class phase { placing, recovering };
  explicit pool(phase begin = phase::placing, std::unique_ptr<pool_policy> policy = make_fifo_policy());

  [[nodiscard]] std::vector<pool_action> apply(const pool_event& ev);

  int total_slots() const;
  int used_slots() const;
  const std::deque<pool_view::request>& waiting() const { return waiting_; }
  /// The allocation in each slot of an agent; an empty id where it is free.
  const std::map<std::string, std::vector<allocation_id>>& agents() const { return slots_; }
  std::string snapshot() const;
  value describe() const; ///< the state, for people

private:
  void on(std::vector<pool_action>& out, const agent_up& ev);
  void on(std::vector<pool_action>& out, const agent_down& ev);
  void on(std::vector<pool_action>& out, const slots_requested& ev);
  void on(std::vector<pool_action>& out, const slots_released& ev);
  void on(std::vector<pool_action>& out, const agent_drain& ev);
  void on(std::vector<pool_action>& out, const slots_held& ev);
  void on(std::vector<pool_action>& out, const holders_heard& ev);
  void on(std::vector<pool_action>& out, const agent_forgotten& ev);
  bool open_slot(const std::string& agent, int slot) const;
  void place(std::vector<pool_action>& out);
  void offer_rest(std::vector<pool_action>& out);
  void keep_granted(std::vector<allocation_id>& slots) const;
  std::vector<placement> held_by(allocation_id id) const;

  std::unique_ptr<pool_policy> policy_;
  phase phase_ = phase::placing;
  std::map<std::string, std::vector<allocation_id>> slots_;
  std::map<std::string, std::vector<allocation_id>>
    away_;                                     ///< of agents that are down: only what was granted here
  std::map<std::string, agent_drain> drained_; ///< where an operator has ordered something
  std::set<allocation_id> granted_;            ///< by this pool and not released: no inventory takes it back
  std::deque<pool_view::request> waiting_;
  struct elastic_state {
    int most = 0, offered = 0;
  };
  std::map<allocation_id, elastic_state> elastic_; ///< of those that would take fewer or more slots
  std::uint64_t next_order_ = 0;
};

} // namespace troupe
