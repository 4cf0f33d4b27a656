#include "actors/journal/log_patterns.hpp"

#include <algorithm>
#include <re2/re2.h>
#include <re2/set.h>
#include <set>

namespace troupe {
namespace {

RE2::Options options() {
  RE2::Options how;
  how.set_log_errors(false);
  // Lines are bytes; a pattern in UTF-8 matches its own bytes.
  how.set_encoding(RE2::Options::EncodingLatin1);
  how.set_max_mem(16 << 20);
  return how;
}
constexpr std::size_t most_known = 64;

} // namespace

result<void> check_pattern(const std::string& pattern) {
  if (pattern.size() > longest_pattern)
    return error{errc::invalid,
                 "a regular expression has at most " + std::to_string(longest_pattern) + " bytes"};
  // Nearly all submissions name the patterns of the cluster's defaults, and to compile two takes 0.1 ms.
  thread_local std::set<std::string> known;
  if (known.contains(pattern))
    return {};
  const RE2 made(pattern, options());
  if (!made.ok())
    return error{errc::invalid, "'" + pattern.substr(0, 100) +
                                  "' is not a regular expression that RE2 reads: " + made.error()};
  if (known.size() >= most_known)
    known.clear();
  known.insert(pattern);
  return {};
}

result<void> check_log_policies(const value& policies) {
  for (std::size_t i = 0; policies.is_array() && i < policies.size(); ++i) {
    const auto pattern = policies[i].is_object() ? policies[i].value("pattern", value()) : value();
    if (!pattern.is_string())
      continue;
    if (auto fine = check_pattern(pattern); !fine)
      return error{errc::invalid, "log_policies[" + std::to_string(i) + "].pattern: " + fine.error().what};
  }
  return {};
}

struct log_patterns::compiled {
  RE2::Set set{options(), RE2::UNANCHORED};
  std::vector<std::size_t> numbers; ///< number of each pattern, by its number in `set`
};

log_patterns::log_patterns(const std::vector<std::string>& patterns) {
  auto made = std::make_unique<compiled>();
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (check_pattern(patterns[i]) && made->set.Add(patterns[i], nullptr) >= 0)
      made->numbers.push_back(i);
  if (!made->numbers.empty() && made->set.Compile())
    compiled_ = std::move(made);
}

log_patterns::~log_patterns() = default;

void log_patterns::match(std::string_view line, std::vector<std::size_t>& into) const {
  if (!compiled_)
    return;
  std::vector<int> hits;
  if (!compiled_->set.Match({line.data(), line.size()}, &hits))
    return;
  const auto first = into.size();
  for (const int hit : hits)
    into.push_back(compiled_->numbers[static_cast<std::size_t>(hit)]);
  std::sort(into.begin() + static_cast<std::ptrdiff_t>(first), into.end());
}

} // namespace troupe
