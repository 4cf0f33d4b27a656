#include "runtime/cli/words.hpp"

#include <algorithm>

namespace troupe::cli {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > 64)
    return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_steps = word.size() < 4 ? 2 : 3;
  for (const auto& candidate : known)
    if (auto steps = distance(word, candidate); steps < best_steps) {
      best_steps = steps;
      best = candidate;
    }
  return best;
}

std::vector<std::string> expand(std::string_view word, const std::vector<std::string>& known) {
  std::vector<std::string> meant;
  for (const auto& candidate : known) {
    if (candidate == word)
      return {candidate};
    if (!word.empty() && candidate.starts_with(word))
      meant.push_back(candidate);
  }
  if (meant.size() > 1) // later verbs take no short form from earlier ones
    std::erase_if(meant, [](const auto& x) {
      return x == "apply" || x == "check" || x == "explain" || x == "install-service" || x == "events";
    });
  return meant;
}

} // namespace troupe::cli
