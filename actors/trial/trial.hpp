#pragma once
// One training trial as a state machine: run, restart from the latest checkpoint, back off, pause, give up.
// Pure: no CAF, no clock, no I/O. Its shell is trial_actor.cpp beside it.

#include "actors/allocation/matched_policies.hpp"
#include "actors/allocation/owner.hpp"
#include "actors/pool/pool_events.hpp"

#include <map>
#include <optional>
#include <string>

namespace troupe {

struct trial_spec {
  trial_id id;
  int slots = 1;          ///< granted all together or not at all
  int max_restarts = 0;   ///< limit of restarts after failed runs; a lost run (agent, master) does not count
  int max_losses = 100;   ///< limit of lost runs in a row without a new checkpoint
  std::string warm_start; ///< uuid of another trial's checkpoint to start from; empty: none
  std::int64_t warm_start_steps = 0; ///< number of steps at which the first run begins to count
  bool tells_checkpoints = false;    ///< whether the search wants to hear of checkpoints
  int least_slots = 0;               ///< fewest slots, below `slots`, that are accepted; 0: only `slots`
  job_terms job;                     ///< what the pool has to know of the experiment
  placement_rules rules;             ///< which agents may hold the trial
  std::optional<duration>
    stop_limit; ///< time from a graceful stop to the kill; none: the default of allocation_spec
  std::uint32_t continued = 0; ///< number of the continuation that runs it again; 0: none
};

// Events; they are also messages.
struct trial_activate {
  TROUPE_PACKED()
};
struct trial_pause {
  TROUPE_PACKED()
};
/// From the experiment: the searcher, a cancel or a kill wants the trial to end as `outcome`.
struct trial_stop {
  trial_state outcome = trial_state::completed;
  bool kill = false;
  std::string why;
  std::string by; ///< user who stops this trial alone; empty: the experiment does
  TROUPE_PACKED(outcome, kill, why, by)
};
/// From the experiment: its search wants the trial to continue with other hyperparameters, from the
/// checkpoint of another trial.
struct trial_perturb {
  std::uint32_t number = 0; ///< counts from 1; a repeat is answered again
  std::string checkpoint;
  std::int64_t steps = 0; ///< steps of the checkpoint
  value hparams;
  TROUPE_PACKED(number, checkpoint, steps, hparams)
};
struct checkpoint_saved {
  run_id run;
  checkpoint saved;
  TROUPE_PACKED(run, saved)
};
// The shell makes the following events from `task_call`.
/// A user or the script has removed files; no file left: the checkpoint is deleted.
struct checkpoint_files_changed {
  std::string uuid;
  std::map<std::string, std::int64_t> left;
  std::string by; ///< empty: the script
};
struct metadata_given {
  value metadata;
  std::string by; ///< empty: the script
};
struct description_given { ///< a user has described a checkpoint
  std::string uuid, by;
  value metadata;
};
struct progress_told {
  double progress = 0; ///< 0..1
};
using trial_event = std::variant<trial_activate, trial_pause, trial_stop, trial_perturb, checkpoint_saved,
                                 allocation_ended, time_passed, checkpoint_files_changed, metadata_given,
                                 progress_told, description_given, log_matched>;

// Actions.
struct start_allocation {
  run_id run;
  std::string from_checkpoint;
  std::int64_t from_steps = 0;
  value hparams;                       ///< null: the hyperparameters with which the trial was created
  time_point started;                  ///< `at` of run_started
  std::vector<std::string> not_agents; ///< agents on which the run is not placed
};
/// Graceful unless `kill`: the script is asked to checkpoint and exit.
struct stop_allocation {
  run_id run;
  bool kill = false;
  std::string reason; ///< "pause", "perturbed", "pruned", "canceled"; with `kill`, text: "killed by eve"
};
struct acknowledge_checkpoint {
  run_id run;
  std::string uuid;
  std::string refused; ///< why the checkpoint was refused; empty: it is recorded
};
/// A checkpoint of the trial's own weights is recorded.
struct report_checkpoint {
  std::string uuid;
  std::int64_t steps = 0;
};
/// The trial has taken the order `number`: reports of run `run` and of earlier runs no longer count.
struct report_perturbed {
  std::uint32_t number = 0;
  run_id run;
};
struct report_trial_end {
  trial_state state = trial_state::completed;
  int exit_reason = -1;
  std::string why;
};
using trial_action = std::variant<start_allocation, stop_allocation, acknowledge_checkpoint,
                                  report_checkpoint, report_perturbed, report_trial_end, say_in_log>;
using trial_step = step_of<trial_fact, trial_action>;

/// Not thread-safe: one actor owns it.
///
///   waiting --active and due--> running --completed, stopped for good, given up--> ended
///      ^-- paused, perturbed; failed: backs off; lost: at once, then backs off --|
///      ^-- ended, and its experiment was continued: as new, from the newest checkpoint
class trial {
public:
  explicit trial(trial_spec spec);

  /// Decides at wall time `now`: append the facts, then run the actions, in order.
  /// An event of another run than the open one is late: it changes nothing.
  [[nodiscard]] trial_step apply(const trial_event& ev, time_point now);

  /// Takes the facts of the journal, oldest first; never decides.
  void replay(const trial_fact& fact);

  /// The actions for what is still waited for; to be called once, after replay.
  [[nodiscard]] std::vector<trial_action> resume() const;

  std::optional<time_point> deadline() const; ///< when `time_passed` can next matter, if at all
  std::string snapshot() const;               ///< the state as bytes
  value describe() const;                     ///< the state, for people
  const char* shown() const;                  ///< the state in one word, a literal

  bool ended() const { return ended_.has_value(); }
  run_id open_run() const { return open_ ? run_ : run_id{}; }

private:
  void on(trial_step& s, const trial_activate&, time_point now);
  void on(trial_step& s, const trial_pause&, time_point now);
  void on(trial_step& s, const trial_stop& ev, time_point now);
  void on(trial_step& s, const trial_perturb& ev, time_point now);
  void on(trial_step& s, const checkpoint_saved& ev, time_point now);
  void on(trial_step& s, const allocation_ended& ev, time_point now);
  void on(trial_step& s, const time_passed&, time_point now);
  void on(trial_step& s, const checkpoint_files_changed& ev, time_point now);
  void on(trial_step& s, const metadata_given& ev, time_point now);
  void on(trial_step& s, const progress_told& ev, time_point now);
  void on(trial_step& s, const description_given& ev, time_point now);
  void on(trial_step& s, const log_matched& ev, time_point now);
  void advance(trial_step& s, time_point now);
  void give_end(trial_step& s, trial_state state, std::string why, int exit_reason, time_point now);
  void note(trial_step& s, trial_fact fact);
  stop_allocation stop_order() const;
  start_allocation start_order() const;
  bool void_run(run_id run) const; ///< whether the weights of this run were given up

  void set(const trial_activated&);
  void set(const trial_paused&);
  void set(const trial_stop_ordered& f);
  void set(const run_started& f);
  void set(const checkpoint_recorded& f);
  void set(const run_ended& f);
  void set(const trial_ended& f);
  void set(const trial_perturbed& f);
  void set(const checkpoint_changed& f);
  void set(const trial_metadata_set&) {}
  void set(const checkpoint_described&) {}
  void set(const trial_progressed& f) { progress_ = f.progress; }
  void set(const trial_continued& f);
  void set(const log_policy_matched& f) { policies_.replay(f); }
  void set(const trial_heard&) {} // only unmanaged trials have these, which this machine does not run

  trial_spec spec_;
  bool active_ = false;
  bool open_ = false; ///< whether run_ is open
  /// Whether a pause or perturbation asked run_ to exit; a later activation does not take that back.
  bool leaving_ = false;
  run_id run_; ///< the latest run
  int restarts_ = 0, losses_ = 0;
  /// restarts_ at the latest checkpoint, because a trial that makes progress does not back off long.
  int restarts_then_ = 0;
  time_point retry_at_;
  std::string checkpoint_;      ///< the latest checkpoint; empty: none
  bool own_checkpoint_ = false; ///< whether checkpoint_ is of this trial's own weights
  std::int64_t steps_ = 0;      ///< steps of checkpoint_
  time_point run_started_at_;
  /// Checkpoints of the trial's own weights that are not deleted, with their steps; the latest is last.
  std::vector<std::pair<std::string, std::int64_t>> earlier_;
  double progress_ = 0;
  std::vector<std::string> recorded_; ///< uuids recorded by the open run: a repeat is only acknowledged
  std::optional<trial_stop_ordered> stop_;
  std::optional<trial_perturbed> perturbed_; ///< the latest perturbation
  std::optional<trial_ended> ended_;
  std::uint32_t continued_ = 0; ///< number of the latest continuation
  matched_policies policies_;
};

} // namespace troupe
