#pragma once
// What the actions on many runs take of the search for runs.

#include "runtime/api/route.hpp"

namespace troupe::api {

/// The runs that a filter takes, ascending; project 0: of all projects. Archived ones as the filter says.
result<std::vector<trial_id>> runs_that_fit(const call& c, project_id project, const std::string& filter);

/// Whether the experiment searches: it may have more than one run.
bool is_search(const experiment_row& row);

/// Rows of the table of routes.
std::vector<route> run_action_routes();

} // namespace troupe::api
