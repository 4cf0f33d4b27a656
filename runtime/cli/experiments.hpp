#pragma once
// How people name experiments and trials, and the columns of a list of experiments.

#include "runtime/cli/session.hpp"

namespace troupe::cli {

/// "7", or "last" for the newest one. Fails with errc::invalid on other words, and with errc::not_found where
/// there is none.
result<experiment_id> named_experiment(client::server& cluster, const std::string& word);
result<trial_id> named_trial(const std::string& word);
const std::vector<column>& experiment_columns();
/// The last lines of a trial's log, oldest first, as a terminal showed them.
result<std::vector<std::string>> last_lines(client::server& cluster, trial_id id, std::size_t most);
/// Prints what the cluster warned of when it made something, by the warning's code; some codes have no text.
void say_warning(session& s, const std::string& code);

} // namespace troupe::cli
