#pragma once
// Lines of a log that are committed together lie in one row, under the number of the last one, so that a
// search looks through their texts at once. A row of several begins with 0xc1, which no msgpack value does;
// then come their count and the length of the head (4 bytes each, big-endian), the head, and the texts, each
// with a newline behind it. A row without that byte is one packed line: such are those of older data, and
// texts that hold a newline themselves.

#include "model/rows.hpp"
#include "storage/store.hpp"

#include <span>
#include <vector>

namespace troupe::storage {

/// Puts `lines`, whose numbers begin with `first`, whatever they say themselves.
void write_log_rows(batch& into, task_id task, std::uint64_t first, std::span<const log_line> lines);

/// A row that was read. It points into the cursor's strings.
class log_row {
public:
  static result<log_row> open(std::string_view key, std::string_view data);

  std::uint64_t first() const { return last_ - count_ + 1; }
  std::uint64_t last() const { return last_; }
  bool of_one() const { return head_.empty(); }
  /// Of a row of several: their texts, each with a newline behind it, none with another one.
  std::string_view texts() const { return texts_; }
  /// Its lines with numbers in [from, until). errc::corrupt.
  result<std::vector<log_line>> lines(std::uint64_t from, std::uint64_t until) const;

private:
  std::uint64_t last_ = 0, count_ = 1;
  std::string_view head_, texts_; ///< of a row of one: no head, and the whole row
};

} // namespace troupe::storage
