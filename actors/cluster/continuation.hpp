#pragma once
// Decides which trials of an ended experiment run again, and with which configuration. Pure.

#include "actors/pool/capacity.hpp"
#include "model/config/cluster_config.hpp"
#include "model/facts.hpp"
#include "model/rows.hpp"

#include <optional>

namespace troupe {

/// What a continuation has to know of the cluster and of the experiment's workspace as they are now.
struct continuation_terms {
  std::string checkpoint_dir;               ///< the cluster's checkpoint folder, absolute
  value cluster;                            ///< configuration in force; may be null
  value constraints;                        ///< constraints by policies; null: none
  value invariant;                          ///< values that policies fix; null: none
  std::optional<config::pool_choice> pools; ///< pools that the workspace may use; none: all
};

/// `row` is an experiment that has ended. `overrides` is laid over its configuration and what users have said
/// and set since, as text or as an object; null: nothing is. With the searcher `single` its trial runs again,
/// with others all trials that have not completed. All errors are errc::invalid, with the texts that
/// Determined's clients know.
result<experiment_continued> to_continue(const experiment_row& row, const std::vector<trial_row>& trials,
                                         const value& overrides, const continuation_terms& terms,
                                         time_point now);

/// Days for which `config`, to which `overrides` have led, keeps logs; none where the overrides do not name
/// them.
std::optional<int> log_days_named(const value& overrides, const value& config);

/// Whether a text that is laid over a configuration changes nothing.
bool says_nothing(const value& overrides);

/// Why a trial of this complete configuration is too large for the pool of this name; nothing where it is
/// not, or the pool also takes trials that are larger than what the pool has now (`launch_error`).
std::optional<error> too_large(const value& settings, const std::string& name, const pool_capacity& pool);

/// The codes of warnings of a trial of this complete configuration; an empty list where it waits for nothing
/// but the end of other runs.
value launch_warnings(const value& settings, const pool_capacity& pool);

/// Why the trials of this complete configuration may not have `max_slots` as their limit; nothing where at
/// least one trial can run below it.
std::optional<error> below_one_trial(const value& settings, std::int64_t max_slots);

} // namespace troupe
