#pragma once
// Decides about the trials of an unmanaged experiment, which are processes outside of the cluster: they begin
// and end by themselves, and report signs of life. Pure, over rows of the journal; the shell is
// actors/cluster/cluster_unmanaged_part.hpp.
//
//   trial:       made (queued) --start, a sign of life--> running --it says so--> completed, canceled, error
//                running --5 min without a sign of life--> error
//                ended --start, a sign of life--> running
//   experiment:  the furthest of its trials, in the order paused (none runs or ran), canceled, error,
//                completed, active (one runs)

#include "actors/experiment/experiment.hpp"
#include "actors/journal/line_matched.hpp"
#include "model/rows.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>

namespace troupe::unmanaged {

inline constexpr auto patience = std::chrono::minutes(5); ///< longest silence of a trial that runs
/// Least time between two facts that note a trial's signs of life.
inline constexpr auto least_gap = std::chrono::seconds(30);
inline constexpr auto again = std::chrono::seconds(10); ///< time between two looks at a trial that is silent

/// When a trial is looked at next. `heard`: its latest sign of life; `looked`: the latest look that changed
/// nothing (0: none), because the trial's end may not be durable yet, or the disk takes nothing.
time_point next_look(time_point heard, time_point looked);

/// errc::invalid if the experiment is archived: an archived experiment gets no trials and no runs.
result<void> takes_runs(const experiment_row& experiment);

/// The next run of a trial.
struct started {
  std::vector<trial_fact> facts;
  run_id run;
  std::string checkpoint; ///< the newest checkpoint that is not deleted; empty: none
  std::int64_t steps = 0; ///< steps of that checkpoint
};
/// `newest`: the checkpoint from which the trial resumes. errc::conflict if the trial has run and `resume` is
/// false.
result<started> start(const trial_row& trial, bool resume, const std::optional<checkpoint>& newest,
                      time_point now);

/// A sign of life. A trial that a user has ended stays ended: its process gets no message and changes
/// nothing.
std::vector<trial_fact> alive(const trial_row& trial, time_point now);

/// The trial's process, or a user, reports that the trial has ended. No fact if it had ended before.
std::vector<trial_fact> ended(const trial_row& trial, trial_state as, const std::string& why, time_point now);

/// The trial was silent since `heard` for longer than `patience`: it ended at that time. Its run stays open,
/// because nobody knows whether the process still exists.
std::vector<trial_fact> silent(const trial_row& trial, time_point heard, time_point now);

/// The latest of `heard` and of the times of reports, checkpoints and lines. Processes say these times, so
/// that times after `now` do not count.
time_point latest_sign(time_point heard, const std::vector<time_point>& said, time_point now);

/// A line of the trial's log matched a pattern of `log_policies`; `known`: the patterns that matched before.
/// No agent can be excluded and no restart be canceled, as the cluster starts nothing of the trial.
std::vector<trial_fact> matched(const std::set<std::string>& known, const line_matched& line, time_point now);

/// The trials of one experiment, as far as their keys and the experiment's state need them. A change of one
/// trial, and each question, takes time in the logarithm of their number.
class known_trials {
public:
  /// Takes the present row of a trial, which may be new.
  void note(const trial_row& trial);
  std::size_t size() const { return all_.size(); }
  trial_id with_key(const std::string& key) const; ///< 0: no trial has the key
  /// If the experiment's state is not the one that follows from its trials: the fact that changes it.
  std::vector<experiment_fact> settle(const experiment_row& experiment, time_point now) const;

private:
  struct known_trial {
    trial_state state = trial_state::queued;
    time_point ended;
    std::string why;
  };

  std::map<trial_id, known_trial> all_;
  std::map<std::string, trial_id> by_key_;
  std::array<std::set<trial_id>, 5> of_rank_; ///< by the rank of their state, from paused to running
  std::set<std::pair<time_point, trial_id>> by_end_;
};

/// The answer of known_trials::settle where these are all trials.
std::vector<experiment_fact> settle(const experiment_row& experiment, const std::vector<trial_row>& trials,
                                    time_point now);

/// Whether webhooks are told, at a start of the master, that the experiment has ended; the same end gives no
/// second event. `untold`: no fact says that webhooks were told of any end of the experiment; then an end in
/// the last 30 days is told. Otherwise the experiment may have ended again since webhooks were told, which no
/// fact records, so that an end in the last 24 hours is told.
bool told_at_start(const experiment_row& experiment, bool untold, time_point now);

/// A validation as a search would have heard it; with it, the rows of trial and experiment show the best
/// metric.
search_stepped heard_validation(const experiment_spec& of, const validation_recorded& x, time_point now);

} // namespace troupe::unmanaged
