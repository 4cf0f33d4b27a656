#pragma once
// What is kept of an experiment that has ended, by the words of its configuration. Pure; the shell is
// retention_actor.cpp.

#include "model/rows.hpp"

#include <optional>

namespace troupe {

struct retention_policy {
  // How many checkpoints each rule keeps; a checkpoint goes when no rule keeps it.
  std::uint64_t experiment_best = 0, trial_best = 1, trial_latest = 1;
  bool deletes_here = true;    ///< false where checkpoints lie in a bucket, which only its own client reaches
  std::optional<int> log_days; ///< days after a trial's end; -1: for ever; none: it says nothing
};

/// Keys that are absent or null have Determined's defaults.
retention_policy retention_of(const value& config);

/// One checkpoint that is not deleted, beside the validation of the same trial at the same steps.
struct checkpoint_standing {
  trial_id trial;
  std::string uuid;
  std::int64_t steps = 0;
  std::optional<double> metric; ///< the searcher's; none where no validation stands there, or it is no number
};

/// The uuids that no rule keeps, in the order of `all`, which is oldest first within a trial. The rules are
/// Determined's (0.38, deletion of an experiment's checkpoints): the best of the experiment and of each trial
/// count only checkpoints with a metric, the older one first among equals; the latest of a trial are those of
/// the most steps.
std::vector<std::string> superfluous(const retention_policy& policy, bool smaller_is_better,
                                     const std::vector<checkpoint_standing>& all);

/// When the superfluous checkpoints go of an experiment that ended at `ended`: at once where the submitted
/// `source` says how many are kept; else, by the defaults, an hour later, so that whoever waited for the end
/// still finds all of them.
time_point sweep_due(std::string_view source, time_point ended);

/// Days after its end for which the log of a trial is kept, as somebody said of it, of its experiment, or in
/// the configuration; -1: for ever; none: nobody did. `changes` as below.
std::optional<int> log_days(const retention_policy& policy, const std::vector<log_retention_changed>& changes,
                            trial_id trial);

/// Time after its end for which the log of a trial is kept; none: for ever. `changes`: what was said of its
/// experiment since; the last one that is about the trial counts. `usual`: of the cluster, where neither
/// those nor the policy say anything.
std::optional<duration> log_life(const retention_policy& policy,
                                 const std::vector<log_retention_changed>& changes, trial_id trial,
                                 std::optional<duration> usual);

/// May the log go of a task that ended at `ended` (0: it has not)?
bool log_expired(std::optional<duration> life, time_point ended, time_point now);

/// May the files of this checkpoint be removed by its place? Only what is named by the uuid itself.
bool removable(const checkpoint& saved);

} // namespace troupe
