#pragma once
// How lines of a log are stored. Lines of one log that are committed together share a row, whose key is the
// number of the last line. So a search reads all their texts as one piece.
//
// A row of several lines holds: the byte 0xc1, which begins no msgpack value; the number of lines and the
// length of the head (4 bytes each, big-endian); the head; the texts, each followed by a newline.
// Any other row is one packed log_line: a row written before schema 3, or a line whose text has a newline.

#include "model/rows.hpp"
#include "storage/store.hpp"

#include <functional>
#include <span>
#include <vector>

namespace troupe::storage {

/// Writes `lines` under numbers from `first` on; the numbers in the lines themselves are ignored.
void write_log_rows(batch& into, task_id task, std::uint64_t first, std::span<const log_line> lines);

/// A row that was read. It points into the cursor's strings and is valid as long as they are.
class log_row {
public:
  static result<log_row> open(std::string_view key, std::string_view data);

  std::uint64_t first() const { return last_ - count_ + 1; }
  std::uint64_t last() const { return last_; }
  bool of_one() const { return head_.empty(); }
  /// In a row of several lines: their texts, each followed by its only newline.
  std::string_view texts() const { return texts_; }
  /// The row's lines with numbers in [from, until). Fails with errc::corrupt.
  result<std::vector<log_line>> lines(std::uint64_t from, std::uint64_t until) const;
  /// The row's lines that `wanted` accepts; it is called once for each line, in order. Fails with
  /// errc::corrupt.
  result<std::vector<log_line>> lines(const std::function<bool(std::uint64_t number)>& wanted) const;

private:
  std::uint64_t last_ = 0, count_ = 1;
  std::string_view head_, texts_; ///< a row of one line: no head, and `texts_` is the packed line
};

} // namespace troupe::storage
