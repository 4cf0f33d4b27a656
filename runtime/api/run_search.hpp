#pragma once
// What actions on many runs share with the search for runs.

#include "runtime/api/route.hpp"

namespace troupe::api {

/// The runs that a filter accepts, in ascending order; project 0 stands for all projects. The filter says
/// whether archived runs count.
result<std::vector<trial_id>> runs_that_fit(const call& c, project_id project, const std::string& filter);

/// Whether the experiment searches: it may have more than one run.
bool is_search(const experiment_row& row);

/// The routes of actions on runs.
std::vector<route> run_action_routes();

} // namespace troupe::api
