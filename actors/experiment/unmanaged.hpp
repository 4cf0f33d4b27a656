#pragma once
// What becomes of the trials of an unmanaged experiment, which are processes outside of the cluster: they
// begin and end by themselves, and say that they live. Pure, over rows of the journal; the shell is
// actors/cluster/cluster_unmanaged_part.hpp.
//
//   trial:       made (queued) --start, a sign of life--> running --it says so--> completed, canceled, error
//                running --5 min without a sign of life--> error; an ended one --start, a sign of life-->
//                running
//   experiment:  the furthest of its trials, in the order paused (none runs or ran), canceled, error,
//   completed,
//                active (one runs)

#include "actors/experiment/experiment.hpp"
#include "model/rows.hpp"

#include <optional>

namespace troupe::unmanaged {

inline constexpr auto patience = std::chrono::minutes(5);   ///< without a sign of life
inline constexpr auto least_gap = std::chrono::seconds(30); ///< between two facts of one life
inline constexpr auto again = std::chrono::seconds(10);     ///< between two looks at one that is silent

/// When a trial is next looked at, which was heard of at `heard` and last looked at in vain at `looked` (0:
/// never): its end may not be durable yet, or the disk takes nothing.
time_point next_look(time_point heard, time_point looked);

/// errc::invalid where the experiment is archived: it gets no trials and no runs.
result<void> takes_runs(const experiment_row& experiment);

/// The next run of a trial.
struct started {
  std::vector<trial_fact> facts;
  run_id run;
  std::string checkpoint; ///< the newest that is not deleted; empty: there is none
  std::int64_t steps = 0; ///< that it holds
};
/// `newest`: the checkpoint to go on from. errc::conflict where the trial has run and `resume` is false.
result<started> start(const trial_row& trial, bool resume, const std::optional<checkpoint>& newest,
                      time_point now);

/// A sign of life. One that a user has ended stays ended: its process is told nothing, and harms nobody.
std::vector<trial_fact> alive(const trial_row& trial, time_point now);

/// Its process, or a user, says that it has ended. Nothing where it has.
std::vector<trial_fact> ended(const trial_row& trial, trial_state as, const std::string& why, time_point now);

/// Not heard of since `heard` for longer than `patience`: it ended then. Its run stays open, as nobody knows
/// whether the process is gone.
std::vector<trial_fact> silent(const trial_row& trial, time_point heard, time_point now);

/// Where the experiment's state is not what its trials say: the fact that makes it so.
std::vector<experiment_fact> settle(const experiment_row& experiment, const std::vector<trial_row>& trials,
                                    time_point now);

/// Whether webhooks are told, at a start of the master, that the experiment has ended; the same end gives no
/// second event. `untold`: no fact says that they were told of any of its ends. Else it may have ended again
/// since, which no fact tells, so that ends of the last 24 hours count; where untold, those of 30 days.
bool told_at_start(const experiment_row& experiment, bool untold, time_point now);

/// A validation, as a search would have heard it: the rows of trial and experiment show the best.
search_stepped heard_validation(const experiment_spec& of, const validation_recorded& x, time_point now);

} // namespace troupe::unmanaged
