#pragma once
// What lists have in common: how they look for text, and how they sort.

#include "runtime/api/http.hpp"
#include "storage/journal.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

namespace troupe::api {

std::string folded(std::string_view text); ///< the text without upper and lower case, for comparisons
bool contains_folded(std::string_view text, std::string_view part);
bool is_descending(const query_list& query); ///< whether `orderBy` asks for descending order

/// Sorts rows by the optional that `key` gives for each. Rows without a value come last in either direction.
/// Stable.
template <class Rows, class Key>
void sort_unset_last(Rows& rows, bool descending, const Key& key) {
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    const auto x = key(a), y = key(b);
    if (x.has_value() != y.has_value())
      return x.has_value();
    return x && (descending ? *y < *x : *x < *y);
  });
}

/// Reads a duration as Go writes it, "720h" or "1h30m". Fails with errc::invalid for anything else, and for a
/// negative one.
result<duration> go_duration(const std::string& text);

/// The message that all users are shown now; null where there is none. `begun`: leaves out a message that
/// begins later.
result<value> cluster_message(const storage::reader& storage, time_point now, bool begun);

} // namespace troupe::api
