#pragma once
// The machine of one agent decides what happens on its host: which tasks run, what has to be reported, and
// when leases are renewed. Pure; the shell is agent_actor.cpp. Its memory is the task folders on disk, which
// are read at the start and come in as `task_adopted`.

#include "actors/agent_twin/agent_twin.hpp"

namespace troupe {

// Events besides the orders of agent_twin.hpp.
struct link_up {
  std::uint64_t epoch = 0; ///< epoch of the accepted registration
  time_point sent;         ///< when that registration was sent
  duration heartbeat{0};   ///< pause between two heartbeats; 0: unchanged
};
/// The connection to the master is down. To be applied before the next registration is sent, even when this
/// side closed the connection.
struct link_down {};
struct order_received {
  std::uint64_t epoch = 0;
  agent_order order;
};
struct heartbeat_acked {
  std::uint64_t epoch = 0; ///< 0: the master has given this agent up, although the connection lives
  time_point sent;         ///< when the agent sent the heartbeat, by the agent's clock
};
/// Comes once for each task folder that a worker runtime finds when it starts. The runtime may be made again,
/// and then finds folders again.
struct task_adopted {
  task_report task;
};
struct task_launched {
  allocation_id allocation;
  std::int64_t pid = 0;
};
struct task_is_over {
  task_report task;
};
/// `member_failed` comes from the sandbox, or from the stand-in of a worker that does not answer;
/// `worker_said` comes from a stand-in.
using agent_event = std::variant<link_up, link_down, order_received, heartbeat_acked, task_adopted,
                                 task_launched, task_is_over, time_passed, member_failed, worker_said>;

// Actions. A lease lasts for the time `freeze` (default: 30 s) from `lease_from`, when the agent sent the
// newest message that the master has answered. The master has renewed its own, longer lease later than that.
// A lease is never shortened.
struct launch_task {
  allocation_id allocation;
  std::vector<int> slots;
  launch_spec spec;
  time_point lease_from; ///< a task whose lease is over already starts frozen
};
struct stop_task { ///< asks the script to end by itself
  allocation_id allocation;
  std::string reason; ///< reason that the script is told
};
struct destroy_task { ///< sends SIGKILL to the whole sandbox
  allocation_id allocation;
};
struct drop_task { ///< removes the record and the folder of the task
  allocation_id allocation;
};
struct renew_leases { ///< renews the leases of all sandboxes, and thaws those that are frozen
  time_point lease_from;
};
struct send_heartbeat {
  std::uint64_t epoch = 0;
  time_point sent;
};
struct report_to_twin {
  std::variant<task_started, task_exited, member_failed, worker_said> report;
};
/// The master has given the agent up: `link_down` follows, and then the next registration.
struct register_again {};
struct tell_worker { ///< gives the order to the stand-in of the worker
  worker_ordered order;
};
struct open_service { ///< opens a connection to a service for the master
  service_ordered order;
  bool runs = true; ///< false: the task is not here or has ended, and the master is told so
};
using agent_action = std::variant<launch_task, stop_task, destroy_task, drop_task, renew_leases,
                                  send_heartbeat, report_to_twin, tell_worker, open_service, register_again>;

/// Not thread-safe: one actor owns the machine. Its times are those of a host clock that never jumps
/// (CLOCK_BOOTTIME), as leases depend on them; no fact holds such a time.
class agent {
public:
  agent(std::string name, duration heartbeat = 1s);

  [[nodiscard]] std::vector<agent_action> apply(const agent_event& ev, time_point now);
  std::optional<time_point> deadline() const;
  /// The reports of all tasks, for the next registration.
  std::vector<task_report> inventory() const;
  std::uint64_t epoch() const { return epoch_; }
  bool runs(allocation_id id) const;
  value describe() const;    ///< the state, for people
  const char* shown() const; ///< the state in one word, a literal

private:
  using out = std::vector<agent_action>;
  struct task {
    task_report report;
    std::optional<launch_spec> waits_with; ///< launch order, while a task that ends holds a slot of this one
    std::vector<member_failed> lost;       ///< failed ranks, which every new master is told again
    std::optional<time_point> end_at;      ///< when the other ranks are killed; none: no rank has failed
    std::string failure;                   ///< reason that the first failed worker gave
  };
  void on(out& o, const link_up& ev, time_point now);
  void on(out& o, const link_down& ev, time_point now);
  void on(out& o, const order_received& ev, time_point now);
  void on(out& o, const heartbeat_acked& ev, time_point now);
  void on(out& o, const task_adopted& ev, time_point now);
  void on(out& o, const task_launched& ev, time_point now);
  void on(out& o, const task_is_over& ev, time_point now);
  void on(out& o, const time_passed& ev, time_point now);
  void on(out& o, const member_failed& ev, time_point now);
  void on(out& o, const worker_said& ev, time_point now);
  void obey(out& o, const start_ordered& x);
  void obey(out& o, const preempt_ordered& x);
  void obey(out& o, const kill_ordered& x);
  void obey(out& o, const forget_ordered& x);
  void obey(out& o, const worker_ordered& x);
  void obey(out& o, const service_ordered& x);
  void destroy(out& o, task& t);
  void never_start(out& o, task& t, int signal, std::string detail);
  void launch_waiting(out& o);
  bool slots_free(const task& wanted) const;
  void report(out& o, const task& t) const;

  std::string name_;
  duration heartbeat_;
  std::uint64_t epoch_ = 0;
  bool linked_ = false;
  time_point linked_at_; ///< when the registration in force was sent
  time_point next_heartbeat_;
  time_point lease_from_;
  std::map<allocation_id, task> tasks_;
  std::vector<order_received> early_; ///< orders of a registration whose acceptance has not arrived yet
  /// Newest dropped run of each task; an order to start it, or an older run, is a repeat.
  std::map<task_id, run_id> dropped_;
};

} // namespace troupe
