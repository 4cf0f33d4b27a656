#pragma once
// Regular expressions for the lines of logs. They use RE2, so that the time for a line grows only with its
// length. Pure.

#include "model/result.hpp"
#include "model/value.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

constexpr std::size_t longest_pattern = 4096; ///< in bytes

/// errc::invalid if RE2 does not support the pattern (back references, look-around), or if it is too long or
/// becomes too large when it is compiled.
result<void> check_pattern(const std::string& pattern);

/// Checks the section `log_policies` of a configuration, because a pattern that RE2 does not support would
/// silently match nothing. errc::invalid with the place of the pattern.
result<void> check_log_policies(const value& policies);

/// Many patterns that are looked for in one pass over a line. Thread-safe once it is constructed.
class log_patterns {
public:
  /// A pattern that check_pattern refuses is left out and matches nothing.
  explicit log_patterns(const std::vector<std::string>& patterns);
  ~log_patterns();
  log_patterns(const log_patterns&) = delete;

  /// Appends the numbers of the patterns that match anywhere in the line, ascending.
  void match(std::string_view line, std::vector<std::size_t>& into) const;
  bool empty() const { return !compiled_; }

private:
  struct compiled;
  std::unique_ptr<compiled> compiled_; ///< null if there is nothing to look for
};

} // namespace troupe
