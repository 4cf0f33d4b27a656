#pragma once
// One experiment: its state, its trials, and what its search has heard and decided. The searcher gets one
// input at a time; the input and the decision on it become one fact. Pure; the shell is experiment_actor.cpp.

#include "actors/machine.hpp"
#include "searchers/searcher.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>

namespace troupe {

struct experiment_spec {
  experiment_id id;
  std::string metric;                     ///< metric by which the searcher judges trials
  std::string time_metric;                ///< metric that counts a trial's progress; empty: number of reports
  std::vector<std::string> more_metrics;  ///< further metrics by which the search compares trials
  bool hears_checkpoints = false;         ///< whether the search wants to know of checkpoints
  std::uint64_t snapshot_every = 4096;    ///< number of facts in the stream between two snapshots
  experiment_resources_changed resources; ///< what the configuration asks of the pool
};

/// Names the report that waits for the decision on it.
struct report_origin {
  allocation_id allocation;
  std::int32_t rank = 0;
  std::string process;
  std::uint64_t sequence = 0;
  TROUPE_PACKED(allocation, rank, process, sequence)
};

// Events; they are also messages.
struct experiment_activate {
  std::string by; ///< user who ordered it, as in the two events below; empty: nobody did
  TROUPE_PACKED(by)
};
struct experiment_pause {
  std::string by;
  TROUPE_PACKED(by)
};
struct experiment_stop {
  bool kill = false;
  std::string why;
  bool broken = false; ///< whether a stream of the experiment cannot be replayed: then it ends as ERROR
  std::string by;
  TROUPE_PACKED(kill, why, broken, by)
};
/// From a user: what the experiment may have of its pool from now on.
struct experiment_set {
  std::string by;
  int priority = 0;   ///< 1..99; 0: unchanged
  double weight = -1; ///< below 0: unchanged
  int max_slots = -2; ///< -1: any number; below -1: unchanged
  std::string pool;   ///< empty: unchanged
  TROUPE_PACKED(by, priority, weight, max_slots, pool)
};
struct validation_recorded { ///< from the journal: the report is durable
  trial_id trial;
  report_origin origin; ///< empty after recovery: nobody waits for an answer
  std::uint64_t row = 0;
  std::int64_t steps = 0;
  std::string metrics; ///< the metrics as a msgpack map
  run_id run;          ///< run that reported
  TROUPE_PACKED(trial, origin, row, steps, metrics, run)
};
struct checkpoint_reported { ///< from the trial: the checkpoint is durable and holds the trial's own weights
  trial_id trial;
  std::string uuid;
  std::int64_t steps = 0;
  TROUPE_PACKED(trial, uuid, steps)
};
struct perturbation_taken { ///< from the trial: reports of `run` and of earlier runs no longer count
  trial_id trial;
  std::uint32_t number = 0;
  run_id run;
  TROUPE_PACKED(trial, number, run)
};
struct search_orders { ///< from the external process that drives a `custom` search
  value orders;
  std::uint64_t request = 0; ///< names the request that waits for the answer
  TROUPE_PACKED(orders, request)
};
struct trial_finished {
  trial_id trial;
  trial_state state = trial_state::completed;
  int exit_reason = -1;
  std::string why;
  TROUPE_PACKED(trial, state, exit_reason, why)
};
struct search_decided {
  std::vector<trial_created> created; ///< created trials, with the ids that the cluster assigned
  /// Stops by the searcher's key of the trial; `trial` is not set.
  std::vector<std::pair<std::string, trial_stop_decided>> stopped;
  bool shut_down = false, cancel = false, failure = false;
  double progress = 0;
  std::string fault;               ///< why the searcher could not answer; empty: it answered
  std::vector<std::string> paused; ///< trials by key, as in all fields below
  std::vector<std::pair<std::string, double>> resumed;
  struct perturbation {
    std::string trial, source, checkpoint;
    value hparams;
    TROUPE_PACKED(trial, source, checkpoint, hparams)
  };
  std::vector<perturbation> perturbed;
  std::string refused; ///< why the orders were refused; refused orders change nothing; empty: accepted
  TROUPE_PACKED(created, stopped, shut_down, cancel, failure, progress, fault, paused, resumed, perturbed,
                refused)
};
/// From the cluster, which owns the fact: an experiment that had ended runs on. A repeat changes nothing.
struct experiment_resume {
  std::uint32_t number = 0;     ///< counts from 1
  std::vector<trial_id> trials; ///< trials that run again
  bool configured = false; ///< whether the configuration states anew what the experiment may have of its pool
  value hparams;           ///< hyperparameters, as in experiment_resumed
};
using experiment_event =
  std::variant<experiment_activate, experiment_pause, experiment_stop, validation_recorded,
               checkpoint_reported, perturbation_taken, search_orders, trial_finished, search_decided,
               experiment_set, experiment_resume>;

// Actions.
struct ask_searcher {
  searchers::search_event event;
};
struct spawn_trial {
  trial_created trial;
  bool active = true;
  /// Perturbation that the trial must hear before all other messages.
  std::optional<trial_perturb_decided> perturb;
  std::uint32_t continued = 0; ///< number of the continuation that runs it again; 0: none
};
struct order_trial {
  enum class kind { activate, pause, stop, perturb } what = kind::activate;
  trial_id trial;
  trial_state outcome = trial_state::completed; ///< end state if `what` is stop
  bool kill = false;
  std::string why;
  trial_perturb_decided perturb; ///< what to do if `what` is perturb
};
struct answer_validation {
  report_origin origin;
  bool stop = false;
  std::string reason; ///< if `stop`: "pause", "perturbed", "pruned" or "canceled"
};
struct answer_orders {
  std::uint64_t request = 0;
  std::string refused; ///< why the orders were refused; empty: accepted
  /// Number of facts in the experiment's stream, which is the id of its newest event.
  std::uint64_t heard = 0;
  std::vector<std::pair<std::string, trial_id>> created;
};
/// The state after `facts` facts of the stream. The searcher has heard nothing beyond them, so that a start
/// with this state and the searcher's own snapshot of the same moment need not replay these facts.
struct keep_snapshot {
  std::uint64_t facts = 0;
  std::string machine;
};
struct report_experiment_end {
  experiment_state state = experiment_state::completed;
};
/// Tells the pool and the trials what the experiment may have from now on.
struct tell_resources {
  experiment_resources_changed now;
};
using experiment_action = std::variant<ask_searcher, spawn_trial, order_trial, answer_validation,
                                       answer_orders, report_experiment_end, keep_snapshot, tell_resources>;
using experiment_step = step_of<experiment_fact, experiment_action>;

/// Not thread-safe: one actor owns it.
///
///   active <-> paused;  both --search over--> completed, error;  --cancel, kill--> stopping --trials
///   ended--> canceled;  an end --continued--> active
class experiment {
public:
  explicit experiment(experiment_spec spec);

  [[nodiscard]] experiment_step apply(const experiment_event& ev, time_point now);
  void replay(const experiment_fact& fact);
  /// Why a user's event is refused in the present state ("experiment 7 is COMPLETED"); nothing if it is
  /// accepted.
  std::optional<error> refuses(const experiment_event& ev) const;
  /// Spawns the trials whose end the search has not heard, then asks the searcher again.
  [[nodiscard]] std::vector<experiment_action> resume(time_point now);
  /// Does what `resume` does for one trial whose actor died: orders to it may not have reached its journal.
  [[nodiscard]] std::vector<experiment_action> resume_trial(trial_id id) const;
  /// The state as versioned bytes: all that the facts hold, without the events that the searcher has heard.
  std::string snapshot() const;
  value describe() const;    ///< the state, for people
  const char* shown() const; ///< the state in one word, a literal
  /// Takes the state from a snapshot; only for a fresh machine, which is then as if it had replayed the facts
  /// before the snapshot. With `errc::corrupt` or `unsupported` it stays fresh.
  result<void> restore(std::string_view snapshot);

  experiment_state state() const { return state_; }
  std::uint32_t continued() const { return continued_; } ///< number of the latest continuation; 0: none
  const std::optional<experiment_resources_changed>& resources() const { return resources_; }
  std::size_t live_trials() const;
  std::uint64_t facts() const { return facts_; } ///< number of facts in the stream so far
  /// Number of the newest validation row that the search has heard, for each trial that has not ended.
  std::map<trial_id, std::uint64_t> heard_rows() const;
  /// Returns the events that the searcher has answered since the snapshot, oldest first: a fresh or restored
  /// searcher that takes them reaches the same state. From now on these events are not kept.
  std::vector<searchers::search_event> take_history();

private:
  struct trial_entry {
    trial_created made;
    std::uint64_t heard_row = 0;
    bool exited = false;  ///< whether the search has heard of the trial's end
    std::string stop_why; ///< why the searcher wants the trial to end; empty: it does not
    bool paused = false;  ///< whether the search has paused the trial
    std::optional<trial_perturb_decided> perturb; ///< the latest perturbation
    std::uint64_t reports = 0;
    std::vector<std::pair<std::int64_t, double>> times; ///< steps and time metric of the latest reports
    // Soft state.
    bool finished = false; ///< whether the trial has reported its end
    run_id void_until;     ///< newest run whose reports no longer count after the perturbation
    bool taken = true;     ///< whether the trial has taken `perturb`
    std::vector<validation_recorded> held; ///< reports that wait until `taken`
    /// Number of the latest continuation that runs the trial again; durable.
    std::uint32_t continued = 0;
  };
  struct input {
    search_input kind = search_input::started;
    trial_id trial;
    report_origin origin;
    std::uint64_t row = 0;
    std::int64_t steps = 0;
    value metrics;
    int reason = 0;
    std::string checkpoint;
    double time = 0;
    std::uint64_t request = 0;
    run_id run;
  };
  void on(experiment_step& s, const experiment_activate& ev, time_point now);
  void on(experiment_step& s, const experiment_pause& ev, time_point now);
  void on(experiment_step& s, const experiment_stop& ev, time_point now);
  void on(experiment_step& s, const validation_recorded& ev, time_point now);
  void on(experiment_step& s, const checkpoint_reported& ev, time_point now);
  void on(experiment_step& s, const perturbation_taken& ev, time_point now);
  void on(experiment_step& s, const search_orders& ev, time_point now);
  void on(experiment_step& s, const trial_finished& ev, time_point now);
  void on(experiment_step& s, const search_decided& ev, time_point now);
  void on(experiment_step& s, const experiment_set& ev, time_point now);
  void on(experiment_step& s, const experiment_resume& ev, time_point now);
  void set(const experiment_resumed& f);
  search_stepped decided(const input& heard, const search_decided& ev, time_point now) const;
  void carry_out(experiment_step& s, const search_stepped& fact);
  void drop_inputs(experiment_step& s); ///< drops all inputs and answers those who wait for a decision
  void drop_inputs_of(experiment_step& s, trial_id trial);
  void release_held(experiment_step& s, trial_entry& t, const std::string& reason);
  void ask_next(std::vector<experiment_action>& out);
  void conclude(experiment_step& s, time_point now);
  void order_all(std::vector<experiment_action>& out, order_trial order) const;
  void note(experiment_step& s, experiment_fact fact);
  searchers::search_event event_of(const input& x) const;
  answer_validation answer_to(const report_origin& origin, const trial_entry& t) const;
  double time_of(const trial_entry& t, std::int64_t steps) const;
  void remember_time(trial_entry& t, const search_stepped& f) const;
  value relevant(const std::string& metrics, std::int64_t steps) const;

  experiment_spec spec_;
  experiment_state state_ = experiment_state::active;
  /// What a user has set since the experiment was made.
  std::optional<experiment_resources_changed> resources_;
  bool started_ = false; ///< whether the search has been started
  std::uint64_t facts_ = 0;
  std::optional<search_stepped> over_;
  std::uint32_t continued_ = 0; ///< number of the latest continuation
  /// Keys of the trials that run again, until the search has heard of them.
  std::optional<value> to_continue_;
  std::map<trial_id, trial_entry> trials_;
  std::map<std::string, trial_id> by_key_;
  /// Steps of the checkpoints that the search has heard of.
  std::map<std::string, std::int64_t> checkpoint_steps_;
  std::vector<searchers::search_event> history_;
  // Soft state.
  std::deque<input> inputs_;
  bool asking_ = false;
  bool remembers_ = true;  ///< whether the inputs of the searcher are kept for `take_history`
  std::uint64_t kept_ = 0; ///< number of facts in the newest snapshot
};

} // namespace troupe
