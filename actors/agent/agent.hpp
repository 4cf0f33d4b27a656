#pragma once
// What happens on one host: which tasks it runs, what it still has to report, and when their leases are
// renewed. Pure; the shell is agent_actor.cpp. Its memory is the task folder on disk, read at start through
// `task_adopted`.

#include "actors/agent_twin/agent_twin.hpp"

namespace troupe {

// Events besides the orders of agent_twin.hpp.
struct link_up {
  std::uint64_t epoch = 0; ///< of the registration that was accepted
  time_point sent;         ///< when that registration was sent
  duration heartbeat{0};   ///< pause between two heartbeats; 0: unchanged
};
/// To apply before the next registration is sent, also when this side gave the link up.
struct link_down {};
struct order_received {
  std::uint64_t epoch = 0;
  agent_order order;
};
struct heartbeat_acked {
  std::uint64_t epoch = 0; ///< 0: the master has given this agent up, though the connection lives
  time_point sent;         ///< when the agent sent the heartbeat, by its own clock
};
/// Once for each task folder that a worker runtime finds when it starts, which may be made again.
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
/// `member_failed` comes from the sandbox, or from the stand-in of a worker that is silent; `worker_said`
/// from a stand-in.
using agent_event = std::variant<link_up, link_down, order_received, heartbeat_acked, task_adopted,
                                 task_launched, task_is_over, time_passed, member_failed, worker_said>;

// Actions. A lease of freeze = 30 s counts from `lease_from`, the time at which the agent sent the newest
// word that the master has answered: the master has then renewed its own, longer one later than that. A lease
// never shrinks.
struct launch_task {
  allocation_id allocation;
  std::vector<int> slots;
  std::string spec;
  time_point lease_from; ///< a task whose lease is over at birth is born frozen
};
struct stop_task {
  allocation_id allocation;
  std::string reason; ///< the script is asked
};
struct destroy_task {
  allocation_id allocation; ///< SIGKILL to the whole sandbox
};
struct drop_task {
  allocation_id allocation; ///< its record and folder may go
};
struct renew_leases { ///< of all sandboxes; thaws those that froze
  time_point lease_from;
};
struct send_heartbeat {
  std::uint64_t epoch = 0;
  time_point sent;
};
struct report_to_twin {
  std::variant<task_started, task_exited, member_failed, worker_said> report;
};
/// The master knows it no more: `link_down` follows, then the next registration.
struct register_again {};
struct tell_worker { ///< through its stand-in
  worker_ordered order;
};
struct open_service { ///< a connection to it, for the master
  service_ordered order;
  bool runs = true; ///< whether the task is here and has not ended; else the master is told that it is not
};
using agent_action = std::variant<launch_task, stop_task, destroy_task, drop_task, renew_leases,
                                  send_heartbeat, report_to_twin, tell_worker, open_service, register_again>;

/// Not thread-safe: one actor owns it. Its clock is one of the host that never jumps (CLOCK_BOOTTIME): leases
/// hang on it, no fact does.
class agent {
public:
  agent(std::string name, duration heartbeat = 1s);

  [[nodiscard]] std::vector<agent_action> apply(const agent_event& ev, time_point now);
  std::optional<time_point> deadline() const;
  /// For the next registration.
  std::vector<task_report> inventory() const;
  std::uint64_t epoch() const { return epoch_; }
  bool runs(allocation_id id) const;
  value describe() const;    ///< the state, for people
  const char* shown() const; ///< in one word, a literal

private:
  using out = std::vector<agent_action>;
  struct task {
    task_report report;
    std::optional<std::string> waits_with; ///< its spec, while a task that ends holds one of its slots
    std::vector<member_failed> lost;       ///< its ranks that failed, said again to every new master
    std::optional<time_point> end_at;      ///< the others had time to end by themselves
    std::string failure;                   ///< what the first of its workers that failed said
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
  std::vector<order_received> early_; ///< of a registration whose acceptance has not arrived yet
  std::map<task_id, run_id>
    dropped_; ///< the newest run of a task that was forgotten here: its start is a repeat
};

} // namespace troupe
