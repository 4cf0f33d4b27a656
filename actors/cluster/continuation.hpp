#pragma once
// What of an experiment that has ended runs again, and by which configuration. Pure.

#include "model/facts.hpp"
#include "model/rows.hpp"

#include <functional>

namespace troupe {

/// What holds now where the experiment would go on.
struct continuation_terms {
  std::string checkpoint_dir;                           ///< as for accept_config
  value cluster;                                        ///< configuration in force; may be null
  value constraints;                                    ///< policies of its workspace; null: none
  value invariant;                                      ///< what these policies fix; null: nothing
  std::function<bool(const std::string& pool)> may_use; ///< of its workspace
  std::function<int(const std::string& pool)> slots_in; ///< of the agents that are there
};

/// `overrides`: what is laid over its configuration, as text or as an object; null: nothing. Of a search
/// `single` its trial runs again, of others those that have not completed. Errors, all errc::invalid, are
/// those that Determined's clients know. `row` has ended.
result<experiment_continued> to_continue(const experiment_row& row, const std::vector<trial_row>& trials,
                                         const value& overrides, const continuation_terms& terms,
                                         time_point now);

/// Whether a text that is laid over a configuration changes nothing.
bool says_nothing(const value& overrides);

/// Where its pool takes nothing that is larger than what it has now (`launch_error`): why not. `settings`: a
/// complete configuration.
std::optional<error> too_large(const value& settings, const value& cluster,
                               const std::function<int(const std::string& pool)>& slots_in);

} // namespace troupe
