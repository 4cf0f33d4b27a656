#pragma once
// How people name experiments and trials, and what a list shows of experiments.

#include "runtime/cli/session.hpp"

namespace troupe::cli {

/// "7", or "last" for the newest. Fails with errc::invalid on other words and errc::not_found where there is
/// none.
result<experiment_id> named_experiment(client::server& cluster, const std::string& word);
result<trial_id> named_trial(const std::string& word);
const std::vector<column>& experiment_columns();
/// What the cluster warned of when it made something, by its code; nothing for a code that says nothing to
/// people.
void say_warning(session& s, const std::string& code);

} // namespace troupe::cli
