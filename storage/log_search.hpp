#pragma once
// Looks for a text in the lines of a log without decoding those that do not hold it.

#include "storage/journal.hpp"

namespace troupe::storage {

struct line_search {
  task_id task;
  std::uint64_t after = 0; ///< lines above it
  std::string_view text;   ///< lines without it are left out; empty: none is
  std::size_t most_looked_at = 0, most_found = 0;
};

struct lines_found {
  std::vector<log_line> lines; ///< each may hold the text in another place than `log_line::text`: look again
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
