#pragma once
// The master's picture of one agent: its lease, its slots, and the tasks that run there. The twin decides
// whether the agent is alive, away or lost, and compares both pictures after every registration. Pure; the
// shell is agent_twin_actor.cpp.

#include "actors/allocation/allocation.hpp"
#include "actors/allocation/launch_spec.hpp"
#include "actors/pool/pool_events.hpp"

#include <set>

namespace troupe {

/// The report of an agent on one task, as the agent sends it at its registration.
struct task_report {
  allocation_id allocation;
  std::vector<int> slots;
  bool exited = false;
  std::int64_t pid = 0;
  int exit_code = 0, signal = 0;
  std::string detail;
  bool certain = true;
  bool ordered = false; ///< the agent was told to kill the task
  bool silent = false;  ///< see task_exited
  TROUPE_PACKED(allocation, slots, exited, pid, exit_code, signal, detail, certain, ordered, silent)
};

// Events of the twin. Events of the agent carry the epoch of its registration; one of an older epoch changes
// nothing.
struct agent_registered {
  std::uint64_t epoch = 0;
  int slots = 0;
  std::vector<task_report> inventory;
  agent_traits traits;
  TROUPE_PACKED(epoch, slots, inventory, traits)
};
struct agent_heartbeat {
  std::uint64_t epoch = 0;
  time_point sent; ///< time of the agent's clock, which the acknowledgement returns; not used here
  TROUPE_PACKED(epoch, sent)
};
struct link_lost {
  std::uint64_t epoch = 0;
  std::string why;
  TROUPE_PACKED(epoch, why)
};
/// `spec` is the launch order of the allocation's shell; the machines do not read it.
struct start_ordered {
  allocation_id allocation;
  std::vector<int> slots;
  launch_spec spec;
  time_point placed; ///< time of the placement, which an answer "unknown" refers to
  TROUPE_PACKED(allocation, slots, spec, placed)
};
struct preempt_ordered {
  allocation_id allocation;
  std::string reason;
  TROUPE_PACKED(allocation, reason)
};
struct kill_ordered {
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
struct forget_ordered {
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
struct watch_ordered {
  allocation_id allocation;
  std::vector<int> slots;
  time_point placed; ///< time of the placement, as in start_ordered; the epoch: from the journal, unknown
  TROUPE_PACKED(allocation, slots, placed)
};
/// An order to one rank of a trial in C++. Its stand-in on the agent passes it on, and refuses orders for
/// others.
struct worker_ordered {
  allocation_id allocation;
  int member = 0;             ///< rank that the worker was started with
  std::uint64_t protocol = 0; ///< version of workers/worker_messages.hpp
  std::string order;
  TROUPE_PACKED(allocation, member, protocol, order)
};
/// Opens one connection to a service of the task and brings it to the master's HTTP port (runtime/proxy/).
struct service_ordered {
  allocation_id allocation;
  std::string service;            ///< task_service::id
  std::string connection, secret; ///< name of the connection at the master, and its proof; valid once
  TROUPE_PACKED(allocation, service, connection, secret)
};
/// The sandbox of an agent that is away says that all its processes are dead.
struct death_confirmed {
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
using twin_event =
  std::variant<agent_registered, agent_heartbeat, link_lost, task_started, task_exited, start_ordered,
               preempt_ordered, kill_ordered, forget_ordered, watch_ordered, death_confirmed, time_passed,
               worker_ordered, member_failed, worker_said, service_ordered>;

// Actions. Orders to the agent carry the current epoch.
using agent_order =
  std::variant<start_ordered, preempt_ordered, kill_ordered, forget_ordered, worker_ordered, service_ordered>;
struct tell_allocation {
  allocation_id allocation;
  allocation_event event;
};
struct tell_pool {
  pool_event event;
};
struct acknowledge_heartbeat {
  std::uint64_t epoch = 0; ///< 0: the agent was given up and has to register again
  time_point sent;         ///< `sent` of the heartbeat, unchanged
};
using twin_action = std::variant<agent_order, tell_allocation, tell_pool, acknowledge_heartbeat>;

struct lease_times {
  duration freeze = 30s;    ///< a sandbox freezes itself when its lease is this old
  duration give_away = 45s; ///< the master gives a run away when its agent has been silent for this long
  duration heartbeat = 1s;  ///< pause between two heartbeats of an agent
  duration adopt = 200ms;   ///< how long a sandbox waits for a new agent before it asks the master
  /// The value of `give_away` after the start of the master, for leases of its earlier lives; at least
  /// give_away.
  duration first_give_away = 45s;
};

/// Not thread-safe: one actor owns the machine. All state is soft.
///
/// After a recovery the shell applies watch_ordered for every placed part of an open allocation before it
/// lets the agent register, as a task that no allocation waits for is killed. An allocation that watches a
/// task is told the newest report again; where there is none, the agent gets the order to start once more.
class agent_twin {
public:
  enum class status { away, alive, lost };

  /// The agent counts as away since `now`; for a twin that is made at a recovery, that is the master's start.
  agent_twin(std::string name, lease_times lease, time_point now);

  [[nodiscard]] std::vector<twin_action> apply(const twin_event& ev, time_point now);
  std::optional<time_point> deadline() const;
  /// Tells a pool that was made again what it has to know of this agent.
  [[nodiscard]] std::vector<twin_action> meet_pool() const;

  status state() const { return status_; }
  const std::string& name() const { return name_; }
  std::uint64_t epoch() const { return epoch_; }
  int slots() const { return slots_; }
  std::string snapshot() const;
  value describe() const;    ///< the state, for people
  const char* shown() const; ///< the state in one word, a literal

private:
  using out = std::vector<twin_action>;
  struct task {
    std::vector<int> slots;
    std::optional<allocation_event> said; ///< newest report: task_started, task_exited or agent_lost
    time_point placed;
    std::optional<start_ordered> order; ///< the order to start, until the agent has answered it
  };
  void on(out& o, const agent_registered& ev, time_point now);
  void on(out& o, const agent_heartbeat& ev, time_point now);
  void on(out& o, const link_lost& ev, time_point now);
  void on(out& o, const task_started& ev, time_point now);
  void on(out& o, const task_exited& ev, time_point now);
  void on(out& o, const start_ordered& ev, time_point now);
  void on(out& o, const preempt_ordered& ev, time_point now);
  void on(out& o, const kill_ordered& ev, time_point now);
  void on(out& o, const forget_ordered& ev, time_point now);
  void on(out& o, const watch_ordered& ev, time_point now);
  void on(out& o, const death_confirmed& ev, time_point now);
  void on(out& o, const time_passed& ev, time_point now);
  void on(out& o, const worker_ordered& ev, time_point now);
  void on(out& o, const member_failed& ev, time_point now);
  void on(out& o, const worker_said& ev, time_point now);
  void on(out& o, const service_ordered& ev, time_point now);
  void lose(out& o, const std::string& why);
  void tell(out& o, allocation_id id, allocation_event news);
  void say_unknown(out& o, allocation_id id, time_point placed);

  std::string name_;
  lease_times lease_;
  status status_ = status::away;
  std::uint64_t epoch_ = 0;
  int slots_ = 0;
  agent_traits traits_;
  time_point lease_until_;
  std::map<allocation_id, task> tasks_;         ///< tasks that an allocation waits for
  std::map<allocation_id, time_point> unknown_; ///< newest placement of each task that the agent did not know
  /// Tasks of the inventory that no allocation waits for, with their slots; they are being killed.
  std::map<allocation_id, std::vector<int>> strays_;
  std::vector<std::pair<time_point, service_ordered>> awaited_; ///< orders to an absent agent, with times
};

} // namespace troupe
