#pragma once
// Regular expressions over the lines of logs: RE2, so that a line costs time in its length alone. Pure.

#include "model/result.hpp"
#include "model/value.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

constexpr std::size_t longest_pattern = 4096; ///< in bytes

/// errc::invalid where RE2 does not read it (back references, look-around), or where it is too long or would
/// compile to too much.
result<void> check_pattern(const std::string& pattern);

/// The section `log_policies` of a configuration: a pattern that cannot be looked for would match nothing,
/// without a word. errc::invalid with its place.
result<void> check_log_policies(const value& policies);

/// Many patterns that are looked for in one pass over the line. Thread-safe once made.
class log_patterns {
public:
  /// A pattern that check_pattern refuses is left out: it matches nothing.
  explicit log_patterns(const std::vector<std::string>& patterns);
  ~log_patterns();
  log_patterns(const log_patterns&) = delete;

  /// Appends the numbers of the patterns that match anywhere in the line, ascending.
  void match(std::string_view line, std::vector<std::size_t>& into) const;
  bool empty() const { return !compiled_; }

private:
  struct compiled;
  std::unique_ptr<compiled> compiled_; ///< null where there is nothing to look for
};

} // namespace troupe
