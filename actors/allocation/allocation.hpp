#pragma once
// The machine of one allocation: one run of one task on the slots that it was granted, as a gang that starts
// and ends together. The machine asks for slots, makes the placement durable, orders the start, stops the
// task within its time limit, and reports once how the run ended. Pure; its shell is allocation_actor.cpp.

#include "actors/pool/pool_events.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace troupe {

struct allocation_spec {
  allocation_id id;
  int slots = 1;
  duration stop_limit = 3600s; ///< time from a graceful stop to the kill
  /// How long the judgement of a SIGKILL that was not ordered waits for the news that the agent died.
  duration kill_grace = 500ms;
  /// Time from the failure of one part to the kill of the others, in which these may end by themselves.
  duration end_grace = 1s;
  int least = 0;             ///< least number of slots that is accepted; 0: no fewer than `slots`
  duration grow_after = 10s; ///< how long a smaller gang trains before it ends in favour of a larger one
  run_terms run;             ///< what the pool has to know of the run
  std::string home;          ///< name of the run's own pool
};

// Events; they are also messages.
struct slots_granted {
  allocation_id allocation;
  std::vector<placement> on;
  std::string pool;
  bool backfilled = false; ///< a more urgent request waits
  TROUPE_PACKED(allocation, on, pool, backfilled)
};
struct allocation_stop {
  bool kill = false;
  std::string reason; ///< "pause", "pruned", "canceled"; with `kill`, for people: "killed by eve"
  TROUPE_PACKED(kill, reason)
};
struct task_started {
  allocation_id allocation;
  std::string agent;
  std::int64_t pid = 0; ///< pid of rank 0 on its host
  TROUPE_PACKED(allocation, agent, pid)
};
struct task_exited {
  allocation_id allocation;
  std::string agent;
  int exit_code = 0;    ///< exit code of the first rank that failed; 0: none failed
  int signal = 0;       ///< signal that ended that rank; 0: none
  std::string detail;   ///< text for people
  bool certain = true;  ///< false: the sandbox is gone without an exit record
  bool ordered = false; ///< whether the agent had been told to kill the task; then the task has not failed
  /// Whether the task was never connected to its agent, so that it cannot have heard of a stop there. False
  /// also where that is unknown, as after a restart of the agent.
  bool silent = false;
  TROUPE_PACKED(allocation, agent, exit_code, signal, detail, certain, ordered, silent)
};
/// The agent is reachable and has neither the task nor a record of it.
struct task_unknown {
  allocation_id allocation;
  std::string agent;
  time_point placed; ///< time of the placement that was asked about; the epoch: the question had none
  TROUPE_PACKED(allocation, agent, placed)
};
/// The agent's lease is certainly over, or its sandboxes have confirmed their end: nothing runs there any
/// more.
struct agent_lost {
  std::string agent;
  std::string why;
  TROUPE_PACKED(agent, why)
};
/// The agent reports that one rank has failed, or no longer answers, while others run.
struct member_failed {
  allocation_id allocation;
  std::string agent;
  int rank = 0; ///< rank in the gang
  std::string detail;
  bool silent = false; ///< whether the process exists and does not answer
  TROUPE_PACKED(allocation, agent, rank, detail, silent)
};
/// A message of a worker of this allocation, which its stand-in on the agent has checked and passed on.
struct worker_said {
  allocation_id allocation;
  std::string agent;
  int member = 0;   ///< rank that the worker was started with
  std::string word; ///< a word of workers/worker_messages.hpp
  TROUPE_PACKED(allocation, agent, member, word)
};
/// The pool says that an allocation with fewer slots than it asked for could have this many slots, if it were
/// placed again.
struct slots_spare {
  allocation_id allocation;
  int slots = 0;
  TROUPE_PACKED(allocation, slots)
};
using allocation_event =
  std::variant<slots_granted, allocation_stop, task_started, task_exited, task_unknown, agent_lost,
               time_passed, member_failed, worker_said, slots_spare, preempt_allocation, job_changed,
               fall_back, guest_waits, report_unplaceable>;

// Events that tell what the task says of itself over the HTTP API; the shell makes them of `task_call`.
/// The task asks whether it has to stop. So it uses Determined's client, which agrees to a stop before it
/// follows it.
struct signal_polled {};
/// The script agrees to stop. `outside`: something outside of the cluster told it to.
struct stop_agreed {
  bool outside = false;
};
struct hyperparameters_refused {}; ///< the script cannot train with its hyperparameters, and ends by itself
struct part_called {               ///< the part of this node rank has come to the rendezvous
  int node_rank = 0;
};
struct part_left_alone { ///< the end of this part does not count for the run
  int node_rank = 0;
};
/// An operator wants a validation or a checkpoint of a trial in C++, besides its schedule. Each such event is
/// carried out, so a repeat gives another one.
struct work_wanted {
  enum class work { validate, checkpoint } what = work::validate;
};
using allocation_task_event = std::variant<signal_polled, stop_agreed, hyperparameters_refused, part_called,
                                           part_left_alone, work_wanted>;

// Actions.
struct request_slots {
  int slots = 1;
  int least = 0; ///< least number of slots that is accepted; 0: no fewer than `slots`
};
struct release_slots {
  std::string agent; ///< only the slots on this agent are released; empty: all slots
};
struct start_task {
  placement on;
  int node_rank = 0, nodes = 1;
  time_point placed; ///< time of the placement
};
struct preempt_task {
  std::string agent, reason;
};
struct kill_task {
  std::string agent;
};
/// Asks the twin of the agent, after the order to start, to tell the state of this task as soon as the agent
/// is connected. The twin then repeats an order to start that the agent has not answered.
struct watch_task {
  std::string agent;
  std::vector<int> slots;
  time_point placed; ///< time of the placement
};
/// Tells the agent that the end of the task is durable, so that it may drop its record. It is repeated until
/// the twin of the agent has taken it.
struct forget_task {
  std::string agent;
};
struct report_allocation_end {
  end why = end::completed;
  std::string detail;
  bool finished = false;    ///< see allocation_closed
  int exit_code = 0;        ///< see allocation_closed
  bool unplaceable = false; ///< see allocation_closed
  bool unbegun = false;     ///< see allocation_closed
};
/// Tells a pool that was made again that this allocation holds these slots.
struct hold_slots {
  std::vector<placement> on;
};
struct answer_signals {}; ///< answers the calls that wait until the task has to stop
struct answer_gang {};    ///< answers the calls that wait for the rest of the gang, with its addresses
struct order_worker {     ///< gives an order to one rank of a trial in C++
  std::string agent;
  int member = 0;
  std::string order; ///< an order of workers/worker_messages.hpp
};
/// Asks this pool for slots that are left over there; the run also waits in its own pool.
struct ask_pool {
  std::string pool;
};
/// Tells this pool that the run no longer wants anything of it.
struct leave_pool {
  std::string pool;
};
using allocation_action = std::variant<request_slots, release_slots, start_task, preempt_task, kill_task,
                                       watch_task, forget_task, report_allocation_end, answer_signals,
                                       answer_gang, order_worker, hold_slots, ask_pool, leave_pool>;
using allocation_step = step_of<allocation_fact, allocation_action>;

/// Not thread-safe: one actor owns the machine.
///
///   asking --granted--> running --------------- asked to stop ---> stopping --its time is over--> killing
///     ^-- never started --' '-- a part failed --> failing --asked to stop--^                       ^
///                                                    '------------- its time is over --------------'
///   Each phase ends in `closed` once all parts are over; `asking` does so when the run is asked to stop, or
///   when it makes no sense to wait.
class allocation {
public:
  explicit allocation(allocation_spec spec);

  [[nodiscard]] allocation_step apply(const allocation_event& ev, time_point now);
  [[nodiscard]] allocation_step apply(const allocation_task_event& ev, time_point now);
  void replay(const allocation_fact& fact);
  /// A new allocation asks for slots, a placed one asks its agents for the state of its tasks, and a closed
  /// one reports its end again.
  [[nodiscard]] std::vector<allocation_action> resume();
  /// Tells a pool that was made again what this allocation holds or waits for.
  [[nodiscard]] std::vector<allocation_action> meet_pool() const;
  /// Asks all agents again for the state of their parts. This follows meet_pool(), as the new pool may know
  /// twins that this allocation has not heard of.
  [[nodiscard]] std::vector<allocation_action> ask_agents() const;
  /// Repeats to the new twin of `agent` what was ordered of the dead one, which may not have passed it on.
  [[nodiscard]] std::vector<allocation_action> meet_twin(const std::string& agent) const;
  /// The same as meet_pool() for a pool that was asked beside the own one.
  [[nodiscard]] std::vector<allocation_action> meet_guest_pool(const std::string& pool) const;
  /// To be called while the run waits, when an operator has chosen another pool for its job.
  [[nodiscard]] std::vector<allocation_action> move_home(std::string pool);
  std::optional<time_point> deadline() const;
  std::string snapshot() const; ///< bytes of the state that facts hold
  value describe() const;       ///< the state, for people
  const char* shown() const;    ///< the state in one word, a literal

  bool closed() const { return std::holds_alternative<allocation_closed>(phase_); }
  const std::vector<placement>& placed() const { return on_; }
  const std::string& pool() const { return pool_; } ///< pool that placed the run; empty: none, or unknown
  const std::string& home() const { return spec_.home; }
  int wanted() const { return spec_.slots; }
  int least() const { return spec_.least; }
  const std::set<std::string>& asked() const { return asked_; } ///< pools asked beside the own one
  /// The messages to a pool: the request for slots, and what the allocation holds.
  slots_requested request(const request_slots& x) const;
  slots_held holding(const std::vector<placement>& on) const;
  bool stopping() const { return stop() || (yielded_ && *yielded_); } ///< whether the task has to stop
  std::vector<int> led() const;         ///< the ranks of a trial in C++ that take orders now
  bool ready() const { return ready_; } ///< whether every part has come to the rendezvous

private:
  struct asking {}; ///< the allocation waits for slots
  struct running {
    /// Time of the placement; none: the allocation was recovered, and the task is not yet known to run.
    std::optional<time_point> since;
    std::optional<time_point> grow_at;
  };
  /// A part has failed, or the task says that it cannot be trained; the other parts may end by themselves.
  struct failing {
    time_point kill_at;
  };
  struct stopping_phase { ///< the task is asked to end by itself
    allocation_stop order;
    time_point kill_at;
  };
  struct killing_phase { ///< all parts that are left are killed; the order is repeated every 30 s
    std::optional<allocation_stop> order;
    time_point again_at;
  };
  using phase = std::variant<asking, running, failing, stopping_phase, killing_phase, allocation_closed>;

  enum class part { ordered, watched, running, over };
  struct part_state {
    part state = part::ordered;
    std::optional<task_exited> exit; ///< how the part ended, where that is certain or was ordered
    bool unbegun = false;            ///< whether the part is over and never began
  };

  void on(allocation_step& s, const slots_granted& ev, time_point now);
  void on(allocation_step& s, const allocation_stop& ev, time_point now);
  void on(allocation_step& s, const task_started& ev, time_point now);
  void on(allocation_step& s, const task_exited& ev, time_point now);
  void on(allocation_step& s, const task_unknown& ev, time_point now);
  void on(allocation_step& s, const agent_lost& ev, time_point now);
  void on(allocation_step& s, const time_passed& ev, time_point now);
  void on(allocation_step& s, const member_failed& ev, time_point now);
  void on(allocation_step& s, const worker_said& ev, time_point now);
  void on(allocation_step& s, const slots_spare& ev, time_point now);
  void on(allocation_step& s, const preempt_allocation& ev, time_point now);
  void on(allocation_step& s, const job_changed& ev, time_point now);
  void on(allocation_step& s, const fall_back& ev, time_point now);
  void on(allocation_step& s, const guest_waits& ev, time_point now);
  void on(allocation_step& s, const report_unplaceable& ev, time_point now);
  void ask_next(allocation_step& s);
  bool unheard(const std::string& agent) const;
  std::optional<time_point> ask_at() const;
  void ask_again(allocation_step& s, time_point now);
  void on(allocation_step& s, const signal_polled& ev, time_point now);
  void on(allocation_step& s, const stop_agreed& ev, time_point now);
  void on(allocation_step& s, const hyperparameters_refused& ev, time_point now);
  void on(allocation_step& s, const part_called& ev, time_point now);
  void on(allocation_step& s, const part_left_alone& ev, time_point now);
  void on(allocation_step& s, const work_wanted& ev, time_point now);
  void part_over(allocation_step& s, const std::string& agent, end why, int code, std::string detail,
                 time_point now);
  const allocation_stop* stop() const; ///< the stop that was ordered; null: none
  bool killing() const { return std::holds_alternative<killing_phase>(phase_); }
  std::optional<time_point> kill_at() const;
  void enter_stop(const allocation_stop& order, time_point now);
  void kill_by(time_point at);
  void order_stop(allocation_step& s, time_point now);
  bool go_on_without(allocation_step& s, const std::string& agent, const std::string& why, time_point now);
  void grow(allocation_step& s, time_point now);
  void lead(allocation_step& s, int member);
  std::vector<int> ranks_on(const std::string& agent) const;
  std::string agent_of(int member) const;
  void kill_rest(allocation_step& s, time_point now);
  void judge_silent();
  void close_if_over(allocation_step& s, time_point now);
  void close(allocation_step& s, end why, int code, std::string detail, time_point now,
             bool unplaceable = false);
  void note(allocation_step& s, allocation_fact fact);

  allocation_spec spec_;
  std::vector<placement> on_; ///< the durable placement; empty: none
  std::string pool_;          ///< name of the pool that placed the run
  time_point placed_at_;
  std::optional<allocation_preempted> preempted_; ///< newest order of the pool
  bool ready_ = false;
  std::optional<bool> yielded_; ///< the script agreed to stop; true: something outside told it to
  std::optional<time_point> gave_up_;
  std::set<std::string> daemons_;  ///< agents whose part does not count for the end
  std::uint32_t generation_ = 0;   ///< number of the group of ranks
  std::vector<int> members_;       ///< ranks of the group; empty: all ranks
  std::set<std::string> given_up_; ///< agents without which the group continues
  std::set<int> lost_;             ///< ranks whose loss is noted
  phase phase_;                    ///< facts hold only whether it was placed, gave up or is closed
  // Soft state.
  std::map<std::string, part_state> parts_;
  time_point ask_at_;     ///< when agents that have not reported on their part are asked
  duration ask_pause_{0}; ///< back-off of these questions; zero: after a recovery, which has just asked
  std::vector<std::string> fallback_; ///< pools that the run may ask, in this order
  std::set<std::string> asked_;       ///< pools asked for slots, beside the own one
  std::string answers_next_;          ///< name of the pool whose answer is missing; empty: none is
  bool polls_ = false;   ///< whether the script asks if it should stop; heard again soon after a recovery
  std::set<int> called_; ///< node ranks that came to the rendezvous
  bool finished_ = false;
  struct worker_state { ///< state of one rank of a trial in C++
    std::int64_t step = 0, until = 0;
    std::uint32_t generation = 0;
    std::int64_t batches = 0;
  };
  std::map<int, worker_state> workers_;
  std::string failure_;                       ///< reason that the first failed worker gave
  std::optional<member_failed> failed_first_; ///< the first failed rank; none: none failed, or its host died
  int spare_ = 0; ///< number of slots that the run could have; 0: no more than now
  struct verdict {
    end why = end::completed;
    int code = 0;
    std::string detail;
    std::string agent;
    /// Until when the agent may turn out to be lost; none: the verdict is certain.
    std::optional<time_point> certain_at;
  };
  std::optional<verdict> verdict_; ///< verdict on the first part that ended badly, or on all parts
};

} // namespace troupe
