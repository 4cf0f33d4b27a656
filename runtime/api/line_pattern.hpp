#pragma once
// What a search looks for in lines of logs: a text or a regular expression.

#include "model/result.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace re2 {
class RE2;
}

namespace troupe::api {

/// Looks at a line as a terminal shows it, without the escape sequences that colour it. The syntax of
/// expressions is RE2's, which takes time linear in the line's length. Thread-safe; copies share the compiled
/// expression.
class line_pattern {
public:
  /// Fails with errc::invalid and RE2's message where the expression cannot be read or is longer than 4 kB.
  static result<line_pattern> make(std::string text, bool regex);

  bool in(std::string_view line) const;
  /// The next offset at or after `from` of a line that may match, or npos where no line can. `texts` are
  /// lines that each end with their only newline.
  std::size_t next(std::string_view texts, std::size_t from) const;
  /// The matches in the line as it was printed, each as the offsets in bytes of its begin and end; at most 20
  /// matches, none of them empty.
  std::vector<std::pair<std::size_t, std::size_t>> spans(std::string_view line) const;

private:
  bool in_plain(std::string_view line) const;
  std::size_t next_plain(std::string_view texts, std::size_t from, std::size_t until) const;
  std::vector<std::pair<std::size_t, std::size_t>> spans_plain(std::string_view line) const;

  std::string text_;
  std::shared_ptr<const re2::RE2> regex_; ///< null: the pattern is the text itself
  /// An expression that is matched against many lines at once; null where that could find something else.
  std::shared_ptr<const re2::RE2> texts_;
};

} // namespace troupe::api
