#pragma once
// Which experiments a request is about that may say so by filters.

#include "runtime/api/fields.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {

/// The numbers under `key`, each above 0; else a fault of `f`.
std::vector<std::uint64_t> ids_under(fields& f, const char* key);

/// Those of `experimentIds`, or where `filters` are given the ones that fit them; of one project, or of all.
result<std::vector<experiment_id>> chosen_experiments(const call& c, fields& f, project_id in);

} // namespace troupe::api
