#pragma once
// The one rule about reports that do not count. A run that starts from an older checkpoint, or that begins
// anew, trains some steps again; what earlier runs reported of them is archived. Archived reports stay
// stored, and no list, summary, curve or best value has them.

#include "storage/journal.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage {

/// Whether a report tells how far its trial is. Samples of hosts and of the profiler do not, and a report at
/// step 0 of a group that is neither training nor validation has no step.
bool has_step(std::string_view group, std::int64_t steps);

/// For reports of one group: the step above which those of a run are archived.
class step_limits {
public:
  bool operator()(run_id run, std::int64_t steps) const;

private:
  friend class rollback;
  /// The limit of each run and of those after the run before it, in the order of the runs. The newest one has
  /// none.
  std::vector<std::pair<run_id, std::int64_t>> limits_;
};

/// A later run archives reports of an earlier one
/// - above the step of the checkpoint that it started from,
/// - above the step of any of its own reports, and
/// - at that step, where both are of one group.
/// Reports that have no step (has_step) archive nothing.
class rollback {
public:
  /// Takes the checkpoints that runs started from.
  void start(const std::vector<run_row>& runs);
  /// Takes a report.
  void report(const metric_row& x);
  /// Takes the runs of a trial, and its reports after that row where it has several runs. Returns the last
  /// row that was read.
  result<std::uint64_t> read(const trial_row& of, std::uint64_t after, const reader& from);

  bool archives(const metric_row& x) const;
  /// The same rule for many reports of one group.
  step_limits limits(std::string_view group) const;

  friend bool operator==(const rollback&, const rollback&) = default;

private:
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  struct floor {
    std::int64_t from = none;   ///< the step of its checkpoint
    std::int64_t lowest = none; ///< the lowest step that it reported
    std::map<std::string, std::int64_t, std::less<>> of_group;
    friend bool operator==(const floor&, const floor&) = default;
    /// The step above which reports of earlier runs in this group are archived.
    std::int64_t limit(std::string_view group) const;
  };
  std::map<run_id, floor> floors_; ///< of the runs that may archive something
};

/// The rule for a trial. Reads all of its reports where it has several runs; who asks often keeps the answer
/// (series_columns).
result<rollback> rollback_of(const trial_row& of, const reader& from);

} // namespace troupe::storage
