#pragma once
// What operators did, one JSON object a line, only ever appended. A row is on disk when `append` returns.

#include "model/value.hpp"

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>

namespace troupe::storage {

/// One thread at a time.
class audit_log {
public:
  /// Opens or makes the file (mode 0600); a line that a crash cut off is ended, and skipped by `rows`.
  static result<std::unique_ptr<audit_log>> open(const std::filesystem::path& file);
  ~audit_log();
  audit_log(const audit_log&) = delete;

  /// errc::no_space or errc::io; then it has no effect that a later open would show.
  result<void> append(const value& row);
  /// The newest ones, oldest first; at most `kept`.
  const std::deque<value>& rows() const { return rows_; }
  static constexpr std::size_t kept = 4096;

  /// Every row from the first, for who rebuilds what was ordered.
  static result<void> replay(const std::filesystem::path& file,
                             const std::function<void(const value&)>& take);

private:
  explicit audit_log(int fd, std::filesystem::path file);
  int fd_;
  std::filesystem::path file_;
  std::deque<value> rows_;
};

} // namespace troupe::storage
