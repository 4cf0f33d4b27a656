#pragma once
// One task that is not a trial, as a state machine: run, pause, resume, end. It has no checkpoint, so that it
// does not restart after a failure or a loss, unless its settings give it more tries; else only a preemptible
// task that its pool has stopped, and a gang of which no part had begun, run again. Pure: no CAF, no clock,
// no I/O. Its shell is task_actor.cpp beside it.

#include "actors/allocation/matched_policies.hpp"
#include "actors/allocation/owner.hpp"
#include "actors/pool/pool_events.hpp"

#include <optional>
#include <string>

namespace troupe {

struct task_spec {
  task_id id;
  int slots = 0;            ///< 0: the task takes a unit of its agent instead
  bool preemptible = false; ///< whether it may be paused, and its pool may stop it for another task
  duration idle_limit{0};   ///< time without a use after which the task ends; 0: never
  int tries = 1;            ///< number of runs, also after failures and losses; the last one's end counts
  std::optional<duration>
    stop_limit;          ///< time from a graceful stop to the kill; none: the default of allocation_spec
  job_terms job;         ///< what the pool has to know of the task
  placement_rules rules; ///< which agents may hold the task
};

// Events.
struct task_kill_wanted {
  std::string why; ///< text for people: "killed by eve"
  std::string by;  ///< empty: nobody asked
};
struct task_pause_wanted {
  std::string by;
};
struct task_unpause_wanted {
  std::string by;
};
struct task_priority_wanted {
  std::string by;
  int priority = 0;
};
struct task_service_answers { ///< the service reports by itself that it answers
  run_id run;
  std::vector<unix_account> runs_as = {}; ///< account under which the service runs; none or one
};
struct task_used {}; ///< somebody uses the task now
using task_event =
  std::variant<task_kill_wanted, task_pause_wanted, task_unpause_wanted, task_priority_wanted,
               task_service_answers, task_used, allocation_ended, time_passed, log_matched>;

// Actions.
struct start_task_run {
  run_id run;
  time_point started;                  ///< `at` of run_started
  std::vector<std::string> not_agents; ///< agents on which the run is not placed
};
/// Graceful unless `kill`: the program is asked to exit.
struct stop_task_run {
  run_id run;
  bool kill = false;
  std::string reason; ///< "pause"; with `kill`, text for people: "killed by eve"
};
struct tell_task_job { ///< tells the pool what the task may have from now on
  job_terms job;
};
struct say_task_ready {}; ///< writes into the task's log that it is ready
struct report_task_end {};
using task_action =
  std::variant<start_task_run, stop_task_run, tell_task_job, say_task_ready, report_task_end, say_in_log>;
using task_step = step_of<task_fact, task_action>;

/// Not thread-safe: one actor owns it.
///
///   active --paused--> stopping_paused --run over--> paused --unpaused--> active
///   active --exit, loss--> completed, error;  any --killed--> stopping_canceled --run over--> canceled
class task {
public:
  explicit task(task_spec spec);

  /// The facts of a new task, whose first run begins at once.
  [[nodiscard]] static std::vector<task_fact> birth(task_created made);

  /// Why an event is refused in the present state; nothing if it is accepted. A refused event must not be
  /// applied.
  std::optional<error> refuses(const task_event& ev) const;
  /// Decides at wall time `now`: append the facts, then run the actions, in order.
  [[nodiscard]] task_step apply(const task_event& ev, time_point now);
  /// Takes the facts of the journal, oldest first; never decides.
  void replay(const task_fact& fact);
  /// The actions for what is still waited for; to be called once, after replay. A task counts as used until
  /// two minutes after `now`, because nobody could report a use while the master was away.
  [[nodiscard]] std::vector<task_action> resume(time_point now);

  std::optional<time_point> deadline() const; ///< when `time_passed` can next matter, if at all
  std::string snapshot() const;               ///< the state as bytes, without soft state
  value describe() const;                     ///< the state, for people
  const char* shown() const;                  ///< the state in one word, a literal

  bool ended() const { return terminal(state_); }
  task_state state() const { return state_; }
  run_id open_run() const { return open_ ? run_ : run_id{}; }
  const job_terms& job() const { return spec_.job; }

private:
  void on(task_step& s, const task_kill_wanted& ev, time_point now);
  void on(task_step& s, const task_pause_wanted& ev, time_point now);
  void on(task_step& s, const task_unpause_wanted& ev, time_point now);
  void on(task_step& s, const task_priority_wanted& ev, time_point now);
  void on(task_step& s, const task_service_answers& ev, time_point now);
  void on(task_step& s, const task_used& ev, time_point now);
  void on(task_step& s, const allocation_ended& ev, time_point now);
  void on(task_step& s, const time_passed&, time_point now);
  void on(task_step& s, const log_matched& ev, time_point now);
  void begin_run(task_step& s, time_point now);
  void finish(task_step& s, task_state state, int exit_code, std::string why, time_point now);
  start_task_run start_order() const { return {run_, run_started_at_, policies_.not_agents()}; }
  stop_task_run stop_order() const;
  std::optional<time_point> idle_end() const;
  bool has_tries() const { return state_ == task_state::active && run_.value < std::uint64_t(spec_.tries); }
  void note(task_step& s, task_fact fact);

  void set(const task_created& f);
  void set(const task_ready& f);
  void set(const task_active& f);
  void set(const task_paused& f);
  void set(const task_stop_ordered& f);
  void set(const task_prioritized& f);
  void set(const task_ended& f);
  void set(const run_started& f);
  void set(const run_ended& f);
  void set(const log_policy_matched& f) { policies_.replay(f); }

  task_spec spec_;
  task_state state_ = task_state::active;
  bool open_ = false;    ///< whether run_ is open
  bool leaving_ = false; ///< a pause asked run_ to exit; a later unpause does not take that back
  run_id run_;           ///< the newest run
  run_id ready_run_;     ///< the newest run whose service has answered
  time_point run_started_at_, active_at_;
  std::string why_; ///< why the task has to end, or has ended
  int exit_code_ = -1;
  matched_policies policies_; ///< log policies that matched; no failure is repeated in any case
  time_point seen_;           ///< newest use; soft state: facts note uses once a minute
  time_point patient_till_;   ///< before this time, the task does not end for being idle; soft state
};

} // namespace troupe
