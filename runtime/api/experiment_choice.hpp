#pragma once
// The experiments that a request is about, where it may choose them by ids or by filters.

#include "runtime/api/fields.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {

/// The experiments that `experimentIds` names, or that `filters` accept where the request has them. `in` is
/// the project to look in; 0: all projects. `usual_state` is the state that filters without `states` accept,
/// as the API names it; empty: any.
result<std::vector<experiment_id>> chosen_experiments(const call& c, fields& f, project_id in,
                                                      const std::string& usual_state = "");

} // namespace troupe::api
