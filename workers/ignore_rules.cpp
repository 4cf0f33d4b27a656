#include "workers/ignore_rules.hpp"

namespace troupe::workers {
namespace {

/// Length of the bracket expression at the start of `pattern`, 0 where it is not closed.
std::size_t bracket_length(std::string_view pattern) {
  std::size_t at = 1;
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^'))
    ++at;
  if (at < pattern.size() && pattern[at] == ']')
    ++at;
  at = pattern.find(']', at);
  return at == std::string_view::npos ? 0 : at + 1;
}

bool in_bracket(std::string_view set, char c) { // `set` without its brackets
  bool negated = !set.empty() && (set[0] == '!' || set[0] == '^');
  if (negated)
    set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != negated;
}

} // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  while (!pattern.empty()) {
    if (pattern.starts_with("**")) {
      auto rest = pattern.substr(2);
      bool whole_folders = rest.starts_with("/"); // "**/x" also matches "x"
      if (whole_folders && matches_pattern(rest.substr(1), text))
        return true;
      for (std::size_t at = 0; at <= text.size(); ++at)
        if (matches_pattern(rest, text.substr(at)))
          return true;
      return false;
    }
    if (pattern[0] == '*') {
      for (std::size_t at = 0; at <= text.size(); ++at) {
        if (matches_pattern(pattern.substr(1), text.substr(at)))
          return true;
        if (at < text.size() && text[at] == '/')
          return false;
      }
      return false;
    }
    if (text.empty())
      return false;
    std::size_t used = 1;
    if (pattern[0] == '[' && bracket_length(pattern) > 0) {
      used = bracket_length(pattern);
      if (text[0] == '/' || !in_bracket(pattern.substr(1, used - 2), text[0]))
        return false;
    } else if (pattern[0] == '?') {
      if (text[0] == '/')
        return false;
    } else {
      if (pattern[0] == '\\' && pattern.size() > 1)
        pattern.remove_prefix(1);
      if (pattern[0] != text[0])
        return false;
    }
    pattern.remove_prefix(used);
    text.remove_prefix(1);
  }
  return text.empty();
}

ignore_rules::ignore_rules(std::string_view text) {
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.remove_suffix(1);
    if (line.empty() || line[0] == '#')
      continue;
    rule r;
    if ((r.takes_back = line[0] == '!'))
      line.remove_prefix(1);
    if ((r.folders_only = line.ends_with('/')))
      line.remove_suffix(1);
    r.anchored = line.find('/') != std::string_view::npos;
    if (line.starts_with('/'))
      line.remove_prefix(1);
    if (line.starts_with("./"))
      line.remove_prefix(2);
    if (line.empty())
      continue;
    r.pattern = line;
    rules_.push_back(std::move(r));
  }
}

bool ignore_rules::ignores(std::string_view path, bool is_folder) const {
  auto slash = path.rfind('/');
  auto base = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (auto r = rules_.rbegin(); r != rules_.rend(); ++r) {
    if (r->folders_only && !is_folder)
      continue;
    if (matches_pattern(r->pattern, r->anchored ? path : base))
      return !r->takes_back;
  }
  return false;
}

} // namespace troupe::workers
