#pragma once
// What a search decided, told from its facts: brackets, rungs, and each decision with the value that it rests
// on.

#include "storage/journal.hpp"

namespace troupe::api {

/// {"searcher", "timeMetric", "metric", "smallerIsBetter", "brackets": [{"rungs": [...]}], "decisions":
/// [...]}.
result<value> search_story(const experiment_row& row, const storage::reader& storage);

} // namespace troupe::api
