#pragma once
// Words that people type: the nearest known one, and which one an abbreviation means. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// Insertions, deletions, replacements and swaps of neighbours that make `b` of `a`.
std::size_t distance(std::string_view a, std::string_view b);

/// The known word at most 2 steps away (1 for words below 4 letters), if any.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// The known words that `word` abbreviates; only itself where it is one.
std::vector<std::string> expand(std::string_view word, const std::vector<std::string>& known);

} // namespace troupe::cli
