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

/// Expressions are those of RE2, whose time is linear in the line. Thread-safe; copies share what is
/// compiled.
class line_pattern {
public:
  /// invalid, with RE2's own words, where the expression cannot be read or is longer than 4 kB.
  static result<line_pattern> make(std::string text, bool regex);

  bool in(std::string_view line) const;
  /// A text that every line it is in holds; empty where none is known.
  std::string_view needs() const { return regex_ ? std::string_view{} : text_; }
  /// Where it stands, as offsets in bytes of begin and end; at most 20 places, none of them empty.
  std::vector<std::pair<std::size_t, std::size_t>> spans(std::string_view line) const;

private:
  std::string text_;
  std::shared_ptr<const re2::RE2> regex_; ///< null: the text itself
};

} // namespace troupe::api
