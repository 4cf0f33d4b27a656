#pragma once
// Looks for lines of a log by their texts, without decoding the other lines.

#include "storage/journal.hpp"

#include <functional>

namespace troupe::storage {

struct line_search {
  task_id task;
  std::uint64_t after = 0; ///< only lines with a greater number are looked at
  /// Returns the next place at or behind `from` in `texts` that lies in a line that may be wanted, or npos.
  /// Each text in `texts` ends with its only newline. An empty function means that every line is wanted.
  std::function<std::size_t(std::string_view texts, std::size_t from)> next;
  std::size_t most_looked_at = 0, most_found = 0;
};

struct lines_found {
  std::vector<log_line> lines; ///< lines that may be wanted; the caller checks each one again
  std::uint64_t last = 0;      ///< the last line that was looked at
  std::uint64_t looked_at = 0;
  bool at_end = false; ///< whether `last` is the end of the log as it is now
};

/// What a reader over a store offers in addition to `reader`.
class line_finder {
public:
  virtual ~line_finder() = default;
  virtual result<lines_found> find_lines(const line_search& what) const = 0;
};

/// Asks the reader where it is a line_finder, and otherwise reads through `logs`.
result<lines_found> find_lines(const reader& in, const line_search& what);

} // namespace troupe::storage
