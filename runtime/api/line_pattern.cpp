#include "runtime/api/line_pattern.hpp"

#include <algorithm>
#include <cstring>
#include <re2/re2.h>

namespace troupe::api {
namespace {

constexpr std::size_t most_spans = 20, most_bytes = 4096;

constexpr char escape = '\x1b';

/// The length in bytes of the escape sequence at the beginning of `text`; 0 where there is none. It has to
/// match what web/src/terminal.ts leaves out.
std::size_t sequence_length(std::string_view text) {
  const auto in = [&](std::size_t i, char low, char high) {
    return i < text.size() && text[i] >= low && text[i] <= high;
  };
  const auto behind = [&](std::size_t i, char low, char high) {
    while (in(i, low, high))
      ++i;
    return i;
  };
  if (text.size() > 1 && text[1] == '[') {
    const auto at = behind(behind(2, '0', '?'), ' ', '/');
    if (in(at, '@', '~'))
      return at + 1;
  }
  if (text.size() > 1 && std::string_view("]P^_X").find(text[1]) != std::string_view::npos) {
    const auto at = std::min(text.find_first_of("\a\x1b", 2), text.size());
    if (at == text.size() || text[at] == '\a')
      return std::min(at + 1, text.size());
    return at + 1 < text.size() && text[at + 1] == '\\' ? at + 2 : at;
  }
  const auto at = behind(1, ' ', '/');
  return in(at, '0', '~') ? at + 1 : 0;
}

/// A line as a terminal shows it, without escape sequences.
struct shown_line {
  std::string text;
  /// The offset of each part in `text`, and in the line as it was printed.
  std::vector<std::pair<std::size_t, std::size_t>> parts;

  /// The offset in the printed line of the byte at `at` of `text`.
  std::size_t printed_at(std::size_t at) const {
    const auto part = std::prev(std::upper_bound(
      parts.begin(), parts.end(), at, [](std::size_t x, const auto& one) { return x < one.first; }));
    return part->second + (at - part->first);
  }
};

shown_line shown_of(std::string_view line) {
  shown_line out;
  for (std::size_t at = 0; at < line.size();) {
    auto length = line[at] == escape ? sequence_length(line.substr(at)) : 0;
    if (length) {
      at += length;
      continue;
    }
    length = std::min(line.find(escape, at + 1), line.size()) - at;
    out.parts.emplace_back(out.text.size(), at);
    out.text += line.substr(at, length);
    at += length;
  }
  return out;
}

re2::StringPiece piece_of(std::string_view text) { return {text.data(), text.size()}; }

/// Whether the expression matches the same when it is applied to many lines at once, with ^ and $ at the ends
/// of each line. It may not where it names the ends of the whole text (\A, \z) or any byte (\C), or sets
/// flags.
bool goes_over_lines(std::string_view regex) {
  for (std::size_t i = 0; i + 1 < regex.size(); ++i) {
    if (regex[i] == '\\' && std::string_view("AzC").find(regex[++i]) != std::string_view::npos)
      return false;
    if (regex[i] == '(' && regex[i + 1] == '?' &&
        (i + 2 == regex.size() || std::string_view(":P").find(regex[i + 2]) == std::string_view::npos))
      return false;
  }
  return true;
}

std::shared_ptr<const re2::RE2> over_lines(const std::string& regex) {
  if (!goes_over_lines(regex))
    return nullptr;
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(8 << 20);
  options.set_never_nl(true);
  auto compiled = std::make_shared<re2::RE2>("(?m:" + regex + ")", options);
  return compiled->ok() ? compiled : nullptr;
}

} // namespace

result<line_pattern> line_pattern::make(std::string text, bool regex) {
  line_pattern out;
  if (regex) {
    if (text.size() > most_bytes)
      return error{errc::invalid, "the regular expression has more than 4096 bytes"};
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_max_mem(8 << 20);
    auto compiled = std::make_shared<re2::RE2>(text, options);
    if (!compiled->ok())
      return error{errc::invalid, "the regular expression cannot be read: " + compiled->error() +
                                    "\nhint: the syntax is RE2's, without references and look-around"};
    out.regex_ = std::move(compiled);
    out.texts_ = over_lines(text);
  }
  out.text_ = std::move(text);
  return out;
}

bool line_pattern::in(std::string_view line) const {
  return line.find(escape) == line.npos ? in_plain(line) : in_plain(shown_of(line).text);
}

bool line_pattern::in_plain(std::string_view line) const {
  return regex_ ? re2::RE2::PartialMatch(piece_of(line), *regex_) : line.find(text_) != line.npos;
}

/// A line with an escape sequence always counts as one that may match: the caller checks it again without the
/// sequence.
std::size_t line_pattern::next(std::string_view texts, std::size_t from) const {
  constexpr std::size_t window = 16'384; // bytes searched in one step, because only the nearest place counts
  while (from < texts.size()) {
    const auto line_end = texts.find('\n', std::min(from + window, texts.size() - 1));
    const auto until = line_end == texts.npos ? texts.size() : line_end + 1;
    auto found = next_plain(texts, from, until);
    found = std::min(found, texts.substr(0, std::min(found, until)).find(escape, from));
    if (found != texts.npos)
      return found;
    from = until;
  }
  return texts.npos;
}

std::size_t line_pattern::next_plain(std::string_view texts, std::size_t from, std::size_t until) const {
  if (!regex_) {
    const auto* at = memmem(texts.data() + from, until - from, text_.data(), text_.size());
    return at ? static_cast<std::size_t>(static_cast<const char*>(at) - texts.data()) : texts.npos;
  }
  if (texts_) {
    re2::StringPiece found;
    return texts_->Match(piece_of(texts), from, until, re2::RE2::UNANCHORED, &found, 1)
             ? static_cast<std::size_t>(found.data() - texts.data())
             : texts.npos;
  }
  while (from < until) {
    const auto end = texts.find('\n', from);
    if (in_plain(texts.substr(from, end - from)))
      return from;
    from = end + 1;
  }
  return texts.npos;
}

std::vector<std::pair<std::size_t, std::size_t>> line_pattern::spans(std::string_view line) const {
  if (line.find(escape) == line.npos)
    return spans_plain(line);
  const auto shown = shown_of(line);
  auto out = spans_plain(shown.text);
  for (auto& [begin, end] : out) {
    begin = shown.printed_at(begin);
    end = shown.printed_at(end - 1) + 1;
  }
  return out;
}

std::vector<std::pair<std::size_t, std::size_t>> line_pattern::spans_plain(std::string_view line) const {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  std::size_t from = 0;
  if (!regex_) {
    for (auto at = line.find(text_); at != line.npos && out.size() < most_spans;
         at = line.find(text_, at + text_.size()))
      out.emplace_back(at, at + text_.size());
    return out;
  }
  re2::StringPiece found;
  while (from <= line.size() && out.size() < most_spans &&
         regex_->Match(piece_of(line), from, line.size(), re2::RE2::UNANCHORED, &found, 1)) {
    const auto at = static_cast<std::size_t>(found.data() - line.data());
    if (!found.empty())
      out.emplace_back(at, at + found.size());
    from = std::max(from + 1, at + std::max<std::size_t>(found.size(), 1));
  }
  return out;
}

} // namespace troupe::api
