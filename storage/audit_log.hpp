#pragma once
// What operators did, one JSON object a line, only ever appended. A row is on disk when `append` returns.

#include "model/value.hpp"

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>

namespace troupe::storage {

/// Not thread-safe: one thread at a time uses it.
class audit_log {
public:
  /// Opens or makes the file (mode 0600). A line that a crash cut off is ended here, and `rows` skips it.
  static result<std::unique_ptr<audit_log>> open(const std::filesystem::path& file);
  ~audit_log();
  audit_log(const audit_log&) = delete;

  /// Fails with errc::no_space or errc::io; a later open then shows nothing of the row.
  result<void> append(const value& row);
  /// The newest rows, at most `kept`, oldest first.
  const std::deque<value>& rows() const { return rows_; }
  static constexpr std::size_t kept = 4096;

  /// Gives every row from the first to `take`, so that a caller can rebuild what was ordered.
  static result<void> replay(const std::filesystem::path& file,
                             const std::function<void(const value&)>& take);

private:
  explicit audit_log(int fd, std::filesystem::path file);
  int fd_;
  std::filesystem::path file_;
  std::deque<value> rows_;
};

} // namespace troupe::storage
