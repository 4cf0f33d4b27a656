#pragma once
// What a search looks for in lines of logs: a text, or a regular expression.

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

/// Looks at a line as a terminal shows it, without the escape sequences that colour it. Expressions are those
/// of RE2, whose time is linear in the line. Thread-safe; copies share what is compiled.
class line_pattern {
public:
  /// invalid, with RE2's own words, where the expression cannot be read or is longer than 4 kB.
  static result<line_pattern> make(std::string text, bool regex);

  bool in(std::string_view line) const;
  /// The next place at or behind `from` where a line stands that it may be in, npos where none is. Each of
  /// the texts ends with a newline and holds no other one.
  std::size_t next(std::string_view texts, std::size_t from) const;
  /// Where it stands, as offsets in bytes of begin and end in the line as it was printed; at most 20 places,
  /// none of them empty.
  std::vector<std::pair<std::size_t, std::size_t>> spans(std::string_view line) const;

private:
  bool in_plain(std::string_view line) const;
  std::size_t next_plain(std::string_view texts, std::size_t from, std::size_t until) const;
  std::vector<std::pair<std::size_t, std::size_t>> spans_plain(std::string_view line) const;

  std::string text_;
  std::shared_ptr<const re2::RE2> regex_; ///< null: the text itself
  std::shared_ptr<const re2::RE2>
    texts_; ///< matched against many lines at once; null where that could find something else
};

} // namespace troupe::api
