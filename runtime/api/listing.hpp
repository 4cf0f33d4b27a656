#pragma once
// What lists have in common: how text is looked for, and which way they are sorted.

#include "runtime/api/http.hpp"
#include "storage/journal.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

namespace troupe::api {

std::string folded(std::string_view text); ///< lower case, ASCII only
bool contains_folded(std::string_view text, std::string_view part);
bool is_descending(const query_list& query); ///< by `orderBy`

/// Sorts rows by what `key` gives of each, an optional: those without a value come last either way. Stable.
template <class Rows, class Key>
void sort_unset_last(Rows& rows, bool descending, const Key& key) {
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    const auto x = key(a), y = key(b);
    if (x.has_value() != y.has_value())
      return x.has_value();
    return x && (descending ? *y < *x : *x < *y);
  });
}

/// A duration as Go writes it, "720h" or "1h30m"; errc::invalid for anything else, and for one below 0.
result<duration> go_duration(const std::string& text);

/// What everybody is told now, null where there is nothing; `begun`: not what begins later.
result<value> cluster_message(const storage::reader& storage, time_point now, bool begun);

} // namespace troupe::api
