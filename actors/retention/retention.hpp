#pragma once
// What is kept of an experiment that has ended, according to its configuration. Pure; the shell is
// retention_actor.cpp.

#include "model/rows.hpp"

#include <optional>

namespace troupe {

struct retention_policy {
  // Number of checkpoints that each rule keeps; a checkpoint is removed when no rule keeps it.
  std::uint64_t experiment_best = 0, trial_best = 1, trial_latest = 1;
  /// False if checkpoints lie in a bucket that only the bucket's own client reaches.
  bool deletes_here = true;
  std::optional<int> log_days; ///< days after a trial's end; -1: for ever; none: not configured
};

/// Keys that are absent or null have Determined's defaults.
retention_policy retention_of(const value& config);

/// One checkpoint that is not deleted, beside the validation of the same trial at the same steps.
struct checkpoint_standing {
  trial_id trial;
  std::string uuid;
  std::int64_t steps = 0;
  /// The searcher's metric; none if there is no validation at these steps, or the metric is not a number.
  std::optional<double> metric;
};

/// The uuids that no rule keeps, in the order of `all`, which is oldest first within a trial. The rules are
/// those of Determined (0.38, deletion of an experiment's checkpoints): the best checkpoints of the
/// experiment and of each trial are chosen among those with a metric, and the older one is better among
/// equals; the latest checkpoints of a trial are those with the most steps.
std::vector<std::string> superfluous(const retention_policy& policy, bool smaller_is_better,
                                     const std::vector<checkpoint_standing>& all);

/// When the superfluous checkpoints of an experiment that ended at `ended` are removed: at once if the
/// submitted `source` says how many checkpoints are kept, or if `policy`, which a template, the cluster file
/// or a later change may have set, differs from the default numbers. With the default numbers, they are
/// removed an hour later, so that a user who waited for the end still finds all of them.
time_point sweep_due(std::string_view source, const retention_policy& policy, time_point ended);

/// Days after a trial's end for which its log is kept, as somebody set it for the trial, for its experiment,
/// or in the configuration; -1: for ever; none: nobody set it. `changes` as below.
std::optional<int> log_days(const retention_policy& policy, const std::vector<log_retention_changed>& changes,
                            trial_id trial);

/// Time after its end for which the log of a trial is kept; none: for ever. `changes`: what was set for the
/// experiment since it was made; the last change that concerns the trial counts. `usual`: the cluster's
/// setting, used if neither the changes nor the policy say anything.
std::optional<duration> log_life(const retention_policy& policy,
                                 const std::vector<log_retention_changed>& changes, trial_id trial,
                                 std::optional<duration> usual);

/// Whether the log of a task may be erased. `ended`: when the task ended; 0: it has not ended.
bool log_expired(std::optional<duration> life, time_point ended, time_point now);

/// Whether the files of this checkpoint may be removed by its place: only if the uuid itself names the place.
bool removable(const checkpoint& saved);

} // namespace troupe
