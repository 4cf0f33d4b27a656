#pragma once
// What a search decided, read from its facts: brackets, rungs, and each decision with the value behind it.

#include "storage/journal.hpp"

namespace troupe::api {

/// {"searcher", "timeMetric", "metric", "smallerIsBetter", "brackets": [{"rungs": [...]}], "decisions":
/// [...]}.
result<value> search_story(const experiment_row& row, const storage::reader& storage);

} // namespace troupe::api
