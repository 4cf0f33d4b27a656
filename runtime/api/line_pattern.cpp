#include "runtime/api/line_pattern.hpp"

#include <cstring>
#include <re2/re2.h>

namespace troupe::api {
namespace {

constexpr std::size_t most_spans = 20, most_bytes = 4096;

re2::StringPiece piece_of(std::string_view text) { return {text.data(), text.size()}; }

/// Whether the expression finds the same when it is matched against many lines at once, with ^ and $ at the
/// ends of each line. It may not where it names the ends of the whole text (\A, \z) or any byte (\C), or sets
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
  return regex_ ? re2::RE2::PartialMatch(piece_of(line), *regex_) : line.find(text_) != line.npos;
}

std::size_t line_pattern::next(std::string_view texts, std::size_t from) const {
  if (!regex_) {
    const auto* at = from < texts.size()
                       ? memmem(texts.data() + from, texts.size() - from, text_.data(), text_.size())
                       : nullptr;
    return at ? static_cast<std::size_t>(static_cast<const char*>(at) - texts.data()) : texts.npos;
  }
  if (texts_) {
    re2::StringPiece found;
    return from < texts.size() &&
               texts_->Match(piece_of(texts), from, texts.size(), re2::RE2::UNANCHORED, &found, 1)
             ? static_cast<std::size_t>(found.data() - texts.data())
             : texts.npos;
  }
  while (from < texts.size()) {
    const auto end = texts.find('\n', from);
    if (in(texts.substr(from, end - from)))
      return from;
    from = end + 1;
  }
  return texts.npos;
}

std::vector<std::pair<std::size_t, std::size_t>> line_pattern::spans(std::string_view line) const {
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
