#pragma once
// Words that people type: the nearest known word, and the word that an abbreviation means. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b);

/// A known word that is at most 2 steps away (1 for words below 4 letters).
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// The known words that `word` abbreviates; only `word` where it is a known word.
std::vector<std::string> expand(std::string_view word, const std::vector<std::string>& known);

} // namespace troupe::cli
