#pragma once
// Looks for lines of a log by their texts, without decoding the others.

#include "storage/journal.hpp"

#include <functional>

namespace troupe::storage {

struct line_search {
  task_id task;
  std::uint64_t after = 0; ///< lines above it
  /// The next place at or behind `from` in `texts` where a line stands that may be wanted, npos where none
  /// is. Each of the texts ends with a newline and holds no other one. Empty: every line is wanted.
  std::function<std::size_t(std::string_view texts, std::size_t from)> next;
  std::size_t most_looked_at = 0, most_found = 0;
};

struct lines_found {
  std::vector<log_line> lines; ///< those that may be wanted; the caller looks at each again
  std::uint64_t last = 0;      ///< the last line that was looked at
  std::uint64_t looked_at = 0;
  bool at_end = false; ///< of the log as it is now
};

/// What a reader over a store can do as well.
class line_finder {
public:
  virtual ~line_finder() = default;
  virtual result<lines_found> find_lines(const line_search& what) const = 0;
};

/// By the reader itself where it is a line_finder, else through `logs`.
result<lines_found> find_lines(const reader& in, const line_search& what);

} // namespace troupe::storage
