#pragma once
// How lines of a log are stored. Lines of one log that are committed together share a row, whose key is the
// number of its last line. So a search reads all their texts as one piece.
//
// Such a row: the byte 0xc1, which begins no msgpack value; the number of lines and the length of the head (4
// bytes each, big-endian); the head; the texts, each followed by a newline.
// Any other row is one packed log_line: rows of data before schema 3, and lines whose text has a newline in
// it.

#include "model/rows.hpp"
#include "storage/store.hpp"

#include <functional>
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
  /// Its lines whose numbers are wanted; `wanted` is called once for each line, in order. errc::corrupt.
  result<std::vector<log_line>> lines(const std::function<bool(std::uint64_t number)>& wanted) const;

private:
  std::uint64_t last_ = 0, count_ = 1;
  std::string_view head_, texts_; ///< a row of one line has no head, and its packed line is in `texts_`
};

} // namespace troupe::storage
