#include "actors/retention/globs.hpp"

#include "model/chosen_name.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t from = 0; from <= text.size();) {
    auto slash = text.find('/', from);
    if (slash == text.npos)
      slash = text.size();
    out.push_back(text.substr(from, slash - from));
    from = slash + 1;
  }
  return out;
}

/// Returns the length of the set at the beginning of `pattern`, 0 if the set is not closed. `in` tells
/// whether `c` is in the set.
std::size_t set_at(std::u32string_view pattern, char32_t c, bool& in) {
  const bool negated = pattern.size() > 1 && pattern[1] == '!';
  const auto end = pattern.find(U']', negated ? 3 : 2); // a bracket that comes first is in the set
  if (end == pattern.npos)
    return 0;
  in = false;
  for (std::size_t i = negated ? 2 : 1; i < end; ++i)
    if (i + 2 < end && pattern[i + 1] == '-') {
      in = in || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else
      in = in || pattern[i] == c;
  in = in != negated;
  return end + 1;
}

/// Whether a pattern matches a text. Only the last `*` is ever tried with another length.
bool letters_match(std::u32string_view pattern, std::u32string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, then = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      then = t;
      continue;
    }
    bool same = false;
    std::size_t step = 1;
    if (p < pattern.size() && pattern[p] == '[') {
      const auto length = set_at(pattern.substr(p), text[t], same);
      step = length ? length : 1;
      if (!length)
        same = text[t] == '[';
    } else
      same = p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]);
    if (same) {
      p += step;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++then;
    } else
      return false;
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

/// Whether a pattern matches one part of a path: by characters, or by bytes where one of them is not UTF-8.
bool part_matches(std::string_view pattern, std::string_view text) {
  const auto wanted = code_points(pattern), given = code_points(text);
  if (wanted && given)
    return letters_match(*wanted, *given);
  const auto bytes = [](std::string_view x) {
    std::u32string out;
    for (const unsigned char c : x)
      out += char32_t(c);
    return out;
  };
  return letters_match(bytes(pattern), bytes(text));
}

/// Whether the path is that of a folder, as lists of files write it.
bool is_folder(std::string_view path) { return path.ends_with('/'); }

std::string_view without_slashes(std::string_view text) {
  while (is_folder(text))
    text.remove_suffix(1);
  return text;
}

} // namespace

result<void> check_glob(const std::string& pattern) {
  if (pattern.empty())
    return error{errc::invalid, "cannot have empty string glob"};
  if (pattern.front() == '/' || pattern.size() > 1024 || pattern.find('\0') != pattern.npos ||
      pattern.find('\\') != pattern.npos)
    return error{errc::invalid, "glob '" + pattern.substr(0, 100) +
                                  "': at most 1024 characters, not absolute, without back slashes"};
  for (const auto part : parts_of(pattern))
    if (part == "..")
      return error{errc::invalid, "glob '" + pattern.substr(0, 100) + "' cannot contain '..'"};
  return {};
}

result<void> check_path_of_file(const std::string& path) {
  if (path.empty())
    return error{errc::invalid, "the path of a file must not be empty"};
  const auto shown = "the path of a file, '" + in_one_line(path.substr(0, 100)) + "', ";
  if (path.front() == '/')
    return error{errc::invalid, shown + "must not be absolute"};
  if (std::any_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return error{errc::invalid, shown + "must not hold control characters"};
  for (const auto part : parts_of(path))
    if (part == "..")
      return error{errc::invalid, shown + "must not lead out of the checkpoint"};
  return {};
}

bool matches_glob(std::string_view pattern, std::string_view path) {
  const auto wanted = parts_of(without_slashes(pattern)), given = parts_of(without_slashes(path));
  // reached[j]: whether the patterns so far match the first j parts of the path
  std::vector<char> reached(given.size() + 1, 0);
  reached[0] = 1;
  for (const auto part : wanted) {
    std::vector<char> next(given.size() + 1, 0);
    if (part == "**") {
      char any = 0;
      for (std::size_t j = 0; j <= given.size(); ++j)
        next[j] = any = static_cast<char>(any | reached[j]);
    } else
      for (std::size_t j = 0; j < given.size(); ++j)
        next[j + 1] = reached[j] && part_matches(part, given[j]);
    reached = std::move(next);
  }
  const bool only_folders = is_folder(pattern) || wanted.back() == "**";
  if (only_folders && !is_folder(path))
    reached.pop_back();
  return std::find(reached.begin(), reached.end(), 1) != reached.end();
}

bool is_removed(const std::vector<std::string>& globs, std::string_view path) {
  return globs.empty() ||
         std::any_of(globs.begin(), globs.end(), [&](const auto& glob) { return matches_glob(glob, path); });
}

std::map<std::string, std::int64_t> left_by(const std::vector<std::string>& globs,
                                            std::map<std::string, std::int64_t> files) {
  std::erase_if(files, [&](const auto& one) { return is_removed(globs, one.first); });
  if (std::all_of(files.begin(), files.end(), [](const auto& one) { return is_folder(one.first); }))
    files.clear();
  return files;
}

} // namespace troupe
