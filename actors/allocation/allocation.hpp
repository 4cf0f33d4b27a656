#pragma once
// One run of one task on the slots it was granted: a gang that starts together and ends together. It asks
// for slots, makes the placement durable, orders the start, stops it in time, and says once how it ended.
// Pure; its shell is allocation_actor.cpp beside it.

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
  duration kill_grace = 500ms; ///< a SIGKILL nobody ordered waits so long for the news that its agent died
  duration end_grace =
    1s; ///< time from the failure of one part to the kill of the others, which end by themselves before
  int least = 0;             ///< fewer than `slots` that will do as well; 0: none
  duration grow_after = 10s; ///< how long a smaller gang trains before it makes room for a larger one
  run_terms run;             ///< what its pool has to know of it
  std::string home;          ///< its own pool
};

// Events; they are also messages.
struct slots_granted {
  allocation_id allocation;
  std::vector<placement> on;
  std::string pool;
  bool backfilled = false; ///< while a more urgent request waits
  MSGPACK_DEFINE_ARRAY(allocation, on, pool, backfilled)
};
struct allocation_stop {
  bool kill = false;
  std::string reason; ///< "pause", "pruned", "canceled", "killed"
  MSGPACK_DEFINE_ARRAY(kill, reason)
};
struct task_started {
  allocation_id allocation;
  std::string agent;
  std::int64_t pid = 0; ///< pid of rank 0 on its host
  MSGPACK_DEFINE_ARRAY(allocation, agent, pid)
};
struct task_exited {
  allocation_id allocation;
  std::string agent;
  int exit_code = 0;    ///< exit code of the first rank that failed; 0: none failed
  int signal = 0;       ///< signal that ended it; 0: none
  std::string detail;   ///< text for people
  bool certain = true;  ///< false: the sandbox is gone without an exit record
  bool ordered = false; ///< whether its agent had been told to kill it; then it has not failed
  /// Whether it was never connected to its agent, so that it cannot have heard of a stop there. False also
  /// where nobody knows, as after a restart of the agent.
  bool silent = false;
  MSGPACK_DEFINE_ARRAY(allocation, agent, exit_code, signal, detail, certain, ordered, silent)
};
/// The agent is reachable and has neither the task nor a record of it.
struct task_unknown {
  allocation_id allocation;
  std::string agent;
  time_point placed; ///< time of the placement that was asked about; zero: nobody said
  MSGPACK_DEFINE_ARRAY(allocation, agent, placed)
};
/// The agent's lease is certainly over, or its sandboxes confirmed: nothing of it runs any more.
struct agent_lost {
  std::string agent;
  std::string why;
  MSGPACK_DEFINE_ARRAY(agent, why)
};
/// From its agent: one rank has failed, or says nothing any more, while others run.
struct member_failed {
  allocation_id allocation;
  std::string agent;
  int rank = 0; ///< rank in the gang
  std::string detail;
  bool silent = false; ///< whether the process is there and does not run
  MSGPACK_DEFINE_ARRAY(allocation, agent, rank, detail, silent)
};
/// From a worker of this allocation, as its stand-in on the agent lets it through.
struct worker_said {
  allocation_id allocation;
  std::string agent;
  int member = 0;   ///< the rank it was started with
  std::string word; ///< a word of workers/worker_messages.hpp
  MSGPACK_DEFINE_ARRAY(allocation, agent, member, word)
};
/// By the pool: an allocation that has fewer slots than it would take could have so many, were it placed
/// anew.
struct slots_spare {
  allocation_id allocation;
  int slots = 0;
  MSGPACK_DEFINE_ARRAY(allocation, slots)
};
using allocation_event =
  std::variant<slots_granted, allocation_stop, task_started, task_exited, task_unknown, agent_lost,
               time_passed, member_failed, worker_said, slots_spare, preempt_allocation, job_changed,
               fall_back, guest_waits, report_unplaceable>;

// What the task says of itself over the HTTP API; the shell makes these of `task_call`.
/// It asks whether it has to stop, so it is one of Determined's client, which agrees to a stop before it
/// follows it.
struct signal_polled {};
/// The script agrees to stop. `outside`: something outside of the cluster told it to.
struct stop_agreed {
  bool outside = false;
};
struct hyperparameters_refused {}; ///< the script cannot train with them, and ends by itself
struct part_called {               ///< the part of this node rank has come to the rendezvous
  int node_rank = 0;
};
struct part_left_alone { ///< the end of this part does not count
  int node_rank = 0;
};
/// From an operator: besides the schedule of a trial in C++. Each is done, so a repeat is another one.
struct work_wanted {
  enum class work { validate, checkpoint } what = work::validate;
};
using allocation_task_event = std::variant<signal_polled, stop_agreed, hyperparameters_refused, part_called,
                                           part_left_alone, work_wanted>;

// Actions.
struct request_slots {
  int slots = 1;
  int least = 0; ///< smallest number of slots; 0: all of them
};
struct release_slots {
  std::string agent; ///< only those on it; empty: all
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
/// To the twin of its agent, after the start order: tell me how this task fares as soon as the agent is
/// known. An order that the agent has not answered is given again.
struct watch_task {
  std::string agent;
  std::vector<int> slots;
  time_point placed; ///< time of the placement
};
/// The end of the task is durable: the agent may drop the record. Until its twin has taken this, it is said
/// again.
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
/// To a pool that was made again: these slots are this allocation's.
struct hold_slots {
  std::vector<placement> on;
};
struct answer_signals {}; ///< whoever waits for the word to stop hears it
struct answer_gang {};    ///< whoever waits for the rest of the gang hears where it is
struct order_worker {     ///< an order to one rank of a trial in C++
  std::string agent;
  int member = 0;
  std::string order; ///< an order of workers/worker_messages.hpp
};
/// It waits at home, and asks this pool for what is left over there.
struct ask_pool {
  std::string pool;
};
/// It wants nothing of this pool any more.
struct leave_pool {
  std::string pool;
};
using allocation_action = std::variant<request_slots, release_slots, start_task, preempt_task, kill_task,
                                       watch_task, forget_task, report_allocation_end, answer_signals,
                                       answer_gang, order_worker, hold_slots, ask_pool, leave_pool>;
using allocation_step = step_of<allocation_fact, allocation_action>;

/// Not thread-safe: one actor owns it.
///
///   asking --granted--> running --------------- asked to stop ---> stopping --its time is over--> killing
///     ^-- never started --' '-- a part failed --> failing --asked to stop--^                       ^
///                                                    '------------- its time is over --------------'
///   From each, once all parts are over (asking: when it is asked to stop, or to wait is in vain): closed.
class allocation {
public:
  explicit allocation(allocation_spec spec);

  [[nodiscard]] allocation_step apply(const allocation_event& ev, time_point now);
  [[nodiscard]] allocation_step apply(const allocation_task_event& ev, time_point now);
  void replay(const allocation_fact& fact);
  /// A fresh one asks for slots; a placed one asks its agents how it fares; a closed one says so again.
  [[nodiscard]] std::vector<allocation_action> resume();
  /// What a pool that was made again has to know: what this one holds, or waits for. It may know twins that
  /// this one has not heard of, so all agents are asked anew.
  [[nodiscard]] std::vector<allocation_action> meet_pool() const;
  [[nodiscard]] std::vector<allocation_action> ask_agents() const;
  /// The same for the twin of `agent`: what was ordered of the dead one may not have reached the agent.
  [[nodiscard]] std::vector<allocation_action> meet_twin(const std::string& agent) const;
  /// The same for a pool that it asked beside its own one.
  [[nodiscard]] std::vector<allocation_action> meet_guest_pool(const std::string& pool) const;
  /// While it waits: an operator chose another pool for its job.
  [[nodiscard]] std::vector<allocation_action> move_home(std::string pool);
  std::optional<time_point> deadline() const;
  std::string snapshot() const; ///< bytes of the state that facts hold
  value describe() const;       ///< the state, for people
  const char* shown() const;    ///< the state in one word, a literal

  bool closed() const { return std::holds_alternative<allocation_closed>(phase_); }
  const std::vector<placement>& placed() const { return on_; }
  const std::string& pool() const { return pool_; } ///< the one that placed it; empty: none, or nobody said
  const std::string& home() const { return spec_.home; }
  int wanted() const { return spec_.slots; }
  int least() const { return spec_.least; }
  const std::set<std::string>& asked() const { return asked_; } ///< pools beside its own
  /// What it says to a pool: of itself, and of the slots that it holds.
  slots_requested request(const request_slots& x) const;
  slots_held holding(const std::vector<placement>& on) const;
  bool stopping() const { return stop() || (yielded_ && *yielded_); } ///< whether the task has to stop
  std::vector<int> led() const;         ///< the ranks of a trial in C++ that take orders now
  bool ready() const { return ready_; } ///< every part has come to the rendezvous

private:
  struct asking {}; ///< asks for slots
  struct running {
    std::optional<time_point>
      since; ///< time of the placement; none after a recovery, until the task is known to run
    std::optional<time_point> grow_at;
  };
  struct failing { ///< a part has failed, or the task says that it cannot be trained: the rest ends by itself
    time_point kill_at;
  };
  struct stopping_phase { ///< asked to end by itself
    allocation_stop order;
    time_point kill_at;
  };
  struct killing_phase { ///< all parts that are left are killed, and again every 30 s
    std::optional<allocation_stop> order;
    time_point again_at;
  };
  using phase = std::variant<asking, running, failing, stopping_phase, killing_phase, allocation_closed>;

  enum class part { ordered, watched, running, over };
  struct part_state {
    part state = part::ordered;
    std::optional<task_exited> exit; ///< how it ended, where that is certain or was ordered
    bool unbegun = false;            ///< it is over, and never began
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
  const allocation_stop* stop() const; ///< the stop that was asked for; null: none
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
  std::vector<placement> on_; ///< durable
  std::string pool_;          ///< name of the pool that placed it
  time_point placed_at_;
  std::optional<allocation_preempted> preempted_; ///< the newest order of its pool
  bool ready_ = false;
  std::optional<bool> yielded_; ///< and whether something outside asked it
  std::optional<time_point> gave_up_;
  std::set<std::string> daemons_;  ///< agents whose part does not count
  std::uint32_t generation_ = 0;   ///< number of the group of ranks
  std::vector<int> members_;       ///< ranks of the group; empty: all
  std::set<std::string> given_up_; ///< agents that the group goes on without
  std::set<int> lost_;             ///< ranks of which that was noted
  phase phase_;                    ///< of what is durable only whether it was placed, gave up or is closed
  // Soft state.
  std::map<std::string, part_state> parts_;
  time_point ask_at_;     ///< time at which agents that have not spoken of their part are asked
  duration ask_pause_{0}; ///< back-off of that; zero: after a recovery, when they have just been asked
  std::vector<std::string> fallback_; ///< pools that it may ask, in their order
  std::set<std::string> asked_;       ///< names of the pools asked for slots
  std::string answers_next_;          ///< name of the pool that has not answered yet
  bool polls_ = false;   ///< whether the script asks if it should stop; learned again soon after a recovery
  std::set<int> called_; ///< node ranks that came to the rendezvous
  bool finished_ = false;
  struct worker_state { ///< state of one rank of a trial in C++
    std::int64_t step = 0, until = 0;
    std::uint32_t generation = 0;
    std::int64_t batches = 0;
  };
  std::map<int, worker_state> workers_;
  std::string failure_;                       ///< reason that the first failed worker told
  std::optional<member_failed> failed_first_; ///< while its part still ends
  int spare_ = 0;                             ///< slots that it could have
  struct verdict {
    end why = end::completed;
    int code = 0;
    std::string detail;
    std::string agent;
    std::optional<time_point>
      certain_at; ///< time until which its agent may turn out to be lost; none: certain
  };
  std::optional<verdict> verdict_; ///< verdict on the first part that did not end well, or on all
};

} // namespace troupe
