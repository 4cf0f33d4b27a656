// Strict JSON with places. YAML readers fail on its surrogate pairs and long keys.

#include "model/config/document.hpp"
#include "model/config/scalar.hpp"

#include <charconv>
#include <unordered_map>

namespace troupe::config {
namespace {

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

class json_reader {
public:
  json_reader(std::string_view text, std::string_view file, const limits& bound)
      : text_(text), file_(file), bound_(bound) {}

  document read() {
    skip_space();
    if (read_value(out_.root, 1)) {
      skip_space();
      if (at_ != text_.size())
        stop("text after the end of the JSON value");
    }
    return std::move(out_);
  }

private:
  bool read_value(node& out, int depth) {
    if (depth > bound_.depth)
      return stop("nested deeper than " + std::to_string(bound_.depth) + " levels");
    if (++nodes_ > bound_.nodes)
      return stop("more than " + std::to_string(bound_.nodes) + " values");
    out.at = here();
    if (at_ >= text_.size())
      return stop("the text ends where a value should begin");
    switch (text_[at_]) {
    case '{':
      return read_map(out, depth);
    case '[':
      return read_list(out, depth);
    case '"':
      out.type = kind::string;
      return read_string(out.text);
    default:
      return read_word(out);
    }
  }

  bool read_map(node& out, int depth) {
    out.type = kind::map;
    step();
    skip_space();
    if (take('}'))
      return true;
    std::unordered_map<std::string, int> seen;
    while (true) {
      skip_space();
      auto key_at = here();
      std::string key;
      if (at_ >= text_.size() || text_[at_] != '"')
        return stop("expected a key in double quotes");
      if (!read_string(key))
        return false;
      skip_space();
      if (!take(':'))
        return stop("expected ':' after the key");
      skip_space();
      trail::guard guard(trail_, key);
      auto [known, is_new] = seen.emplace(key, key_at.line);
      if (!is_new)
        fault(key_at,
              "the key '" + key + "' is given twice; the first is at line " + std::to_string(known->second),
              "remove one of the two");
      node made;
      if (!read_value(made, depth + 1))
        return false;
      if (is_new)
        out.entries.push_back({key, key_at, std::move(made)});
      skip_space();
      if (take('}'))
        return true;
      if (!take(','))
        return stop("expected ',' or '}'");
    }
  }

  bool read_list(node& out, int depth) {
    out.type = kind::list;
    step();
    skip_space();
    if (take(']'))
      return true;
    while (true) {
      skip_space();
      trail::guard guard(trail_, out.items.size());
      if (!read_value(out.items.emplace_back(), depth + 1))
        return false;
      skip_space();
      if (take(']'))
        return true;
      if (!take(','))
        return stop("expected ',' or ']'");
    }
  }

  bool read_string(std::string& out) {
    step();
    while (at_ < text_.size()) {
      auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        step();
        return true;
      }
      if (c < 0x20)
        return stop("a control character in a string; the quote may not be closed");
      if (c == '\\') {
        if (!read_escape(out))
          return false;
        continue;
      }
      if (!copy_character(out, c))
        return stop("a byte that is not UTF-8");
    }
    return stop("the quote is never closed");
  }

  /// Copies one UTF-8 character of one to four bytes.
  bool copy_character(std::string& out, unsigned char first) {
    std::size_t size = first < 0x80                    ? 1
                       : first >= 0xc2 && first < 0xe0 ? 2
                       : (first & 0xf0) == 0xe0        ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
    if (size == 0 || at_ + size > text_.size())
      return false;
    for (std::size_t i = 1; i < size; ++i)
      if ((static_cast<unsigned char>(text_[at_ + i]) & 0xc0) != 0x80)
        return false;
    auto second = size > 1 ? static_cast<unsigned char>(text_[at_ + 1]) : 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
      return false;
    out.append(text_.substr(at_, size));
    at_ += size;
    ++column_;
    return true;
  }

  bool read_hex4(std::uint32_t& out) {
    if (at_ + 4 > text_.size())
      return false;
    auto [end, wrong] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, out, 16);
    if (wrong != std::errc{} || end != text_.data() + at_ + 4)
      return false;
    step(4);
    return true;
  }

  bool read_escape(std::string& out) {
    step();
    if (at_ >= text_.size())
      return stop("the text ends in an escape");
    char c = text_[at_];
    step();
    constexpr std::string_view plain = "\"\\/bfnrt", means = "\"\\/\b\f\n\r\t";
    if (auto i = plain.find(c); i != std::string_view::npos) {
      out += means[i];
      return true;
    }
    std::uint32_t code = 0;
    if (c != 'u' || !read_hex4(code))
      return stop("an unknown escape");
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      step(2);
      std::uint32_t low = 0;
      if (!read_hex4(low) || low < 0xdc00 || low > 0xdfff)
        return stop("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code < 0xe000) {
      return stop("half of a surrogate pair");
    }
    append_utf8(out, code);
    return true;
  }

  bool read_word(node& out) {
    auto begin = at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n,]}:").find(text_[at_]) == std::string_view::npos)
      step();
    auto word = text_.substr(begin, at_ - begin);
    out.text = word;
    if (word == "null") {
      out.type = kind::null;
    } else if (word == "true" || word == "false") {
      out.type = kind::boolean;
      out.flag = word == "true";
    } else if (!is_json_number(word) || !resolve_number(out, word)) {
      return stop("'" + std::string(word.substr(0, 40)) + "' is not a JSON value");
    }
    return true;
  }

  static bool is_json_number(std::string_view word) {
    if (word.starts_with('-'))
      word.remove_prefix(1);
    if (word.empty() || word[0] < '0' || word[0] > '9')
      return false;
    return (word[0] != '0' || word.size() == 1 || word[1] == '.' || word[1] == 'e' || word[1] == 'E') &&
           word.back() != '.' && word.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  }

  place here() const { return {line_, column_}; }
  void step(std::size_t count = 1) {
    at_ += count;
    column_ += static_cast<int>(count);
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    step();
    return true;
  }
  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '\n')
        ++line_, column_ = 1;
      else if (c == ' ' || c == '\t' || c == '\r')
        ++column_;
      else
        return;
    }
  }

  void fault(place at, std::string message, std::string hint) {
    if (out_.faults.size() < most_faults)
      out_.faults.push_back({file_, at.line, at.column, trail_.text(), std::move(message), std::move(hint)});
  }
  bool stop(std::string message) {
    if (out_.readable)
      fault(here(), "cannot read this as JSON: " + std::move(message), "");
    return out_.readable = false;
  }

  std::string_view text_;
  std::string file_;
  limits bound_;
  document out_;
  trail trail_;
  std::size_t at_ = 0, nodes_ = 0;
  int line_ = 1, column_ = 1;
};

} // namespace

document read_json(std::string_view text, std::string_view file, const limits& bound) {
  return json_reader(text, file, bound).read();
}

} // namespace troupe::config
