#include "runtime/shell/line.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::shell {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Number of bytes in the UTF-8 sequence that starts with `c`; 0 where none does.
std::size_t bytes_of(unsigned char c) {
  return c < 0x80 ? 1 : c >= 0xf8 ? 0 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
}

class reader {
public:
  explicit reader(std::string_view text) : text_(text) {}

  result<parsed_line> read() {
    parsed_line out;
    while (skip_blanks(), !at_end()) {
      if (text_[at_] == ';') {
        ++at_;
        continue;
      }
      auto one = read_statement();
      if (!one)
        return one.error();
      if (open_)
        break;
      out.statements.push_back(*std::move(one));
    }
    out.open = open_;
    return out;
  }

private:
  bool at_end() const { return at_ >= text_.size(); }

  void skip_blanks() {
    while (!at_end() && blank(text_[at_]))
      ++at_;
    if (!at_end() && text_[at_] == '#') // a comment ends with its line
      while (!at_end() && text_[at_] != '\n')
        ++at_;
    if (!at_end() && blank(text_[at_]))
      skip_blanks();
  }

  error fault(std::size_t at, const std::string& what) const {
    auto before = text_.substr(0, at);
    auto column = std::count_if(before.begin(), before.end(), [](char c) { return (c & 0xc0) != 0x80; });
    return {errc::invalid, "column " + std::to_string(column + 1) + ": " + what};
  }

  result<statement> read_statement() {
    statement out;
    if (auto ok = read_words(out.words); !ok)
      return ok.error();
    while (!open_ && !at_end()) {
      auto place = at_;
      if (text_[at_] == '|') {
        if (out.words.empty())
          return fault(place, "nothing stands before '|'\nhint: ps | first 3");
        if (out.to)
          return fault(place, "the output goes to a file already\nhint: put '>' last");
        ++at_;
        auto next = read_stage(place);
        if (!next)
          return next.error();
        bool last = !next->host.empty();
        out.pipes.push_back(*std::move(next));
        if (last)
          break;
      } else if (text_[at_] == '>') {
        if (out.words.empty())
          return fault(place, "nothing stands before '>'\nhint: ps > actors.txt");
        if (auto ok = read_redirection(out, place); !ok)
          return ok.error();
      } else {
        break; // ';'
      }
    }
    return out;
  }

  result<void> read_redirection(statement& out, std::size_t place) {
    if (out.to)
      return fault(place, "a second '>'");
    bool append = text_.substr(at_).starts_with(">>");
    at_ += append ? 2 : 1;
    std::vector<word> words;
    if (auto ok = read_words(words); !ok)
      return ok.error();
    if (open_)
      return {};
    if (words.empty())
      return fault(place, "'>' needs a file\nhint: ps > actors.txt");
    if (words.size() > 1)
      return fault(words[1].at,
                   "unexpected word after the file of '>'\nhint: quote the text with '>' in it: 'backlog>5'");
    out.to = redirection{std::move(words.front()), append};
    return {};
  }

  result<stage> read_stage(std::size_t place) {
    while (!at_end() && blank(text_[at_]))
      ++at_;
    auto end = at_;
    while (end < text_.size() && !blank(text_[end]) && text_[end] != '|' && text_[end] != ';' &&
           text_[end] != '>')
      ++end;
    std::string first(text_.substr(at_, end - at_));
    const auto& ours = filter_names();
    stage out;
    if (std::find(ours.begin(), ours.end(), first) != ours.end()) {
      if (auto ok = read_words(out.words); !ok)
        return ok.error();
      return out;
    }
    auto start = at_;
    char quote = 0;
    for (; !at_end(); ++at_) {
      char c = text_[at_];
      if (quote) {
        if (c == '\\' && quote == '"' && at_ + 1 < text_.size())
          ++at_;
        else if (c == quote)
          quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '\\') {
        if (++at_ >= text_.size())
          break;
      } else if (c == ';') {
        break;
      }
    }
    if (quote || at_ > text_.size()) {
      open_ = true;
      return out;
    }
    out.host = std::string(text_.substr(start, at_ - start));
    while (!out.host.empty() && blank(out.host.back()))
      out.host.pop_back();
    if (out.host.empty())
      return fault(place, "'|' needs a command\nhint: ps | grep trial");
    return out;
  }

  result<void> read_words(std::vector<word>& words) {
    while (skip_blanks(), !at_end() && !open_) {
      char c = text_[at_];
      if (c == '|' || c == ';' || c == '>')
        return {};
      auto one = read_word();
      if (!one)
        return one.error();
      if (one->quoted || !one->parts.empty()) // otherwise only a joint between two lines
        words.push_back(*std::move(one));
    }
    return {};
  }

  result<word> read_word() {
    word out;
    out.at = at_;
    std::string literal;
    auto flush = [&] {
      if (!literal.empty())
        out.parts.push_back({std::move(literal), false});
      literal.clear();
    };
    while (!at_end() && !blank(text_[at_]) && text_[at_] != '|' && text_[at_] != ';' && text_[at_] != '>') {
      char c = text_[at_];
      if (c == '\'') {
        auto end = text_.find('\'', at_ + 1);
        if (end == text_.npos)
          return open_ = true, out;
        literal += text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        out.quoted = true;
      } else if (c == '"') {
        out.quoted = true;
        ++at_;
        while (!at_end() && text_[at_] != '"') {
          if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
            char next = text_[at_ + 1];
            literal += next == 'n'                                  ? "\n"
                       : next == 't'                                ? "\t"
                       : next == '"' || next == '\\' || next == '$' ? std::string(1, next)
                                                                    : std::string{'\\', next};
            at_ += 2;
          } else if (text_[at_] == '$') {
            if (auto ok = read_variable(out, literal, flush); !ok)
              return ok.error();
          } else {
            literal += text_[at_++];
          }
        }
        if (at_end())
          return open_ = true, out;
        ++at_;
      } else if (c == '\\') {
        if (at_ + 1 >= text_.size())
          return open_ = true, at_ = text_.size(), out;
        if (text_[at_ + 1] != '\n') { // a backslash before the end of a line joins the lines
          literal += text_[at_ + 1];
          out.quoted = true;
        }
        at_ += 2;
      } else if (c == '$') {
        if (auto ok = read_variable(out, literal, flush); !ok)
          return ok.error();
      } else {
        literal += c;
        ++at_;
      }
    }
    if (!out.quoted && out.parts.empty() && literal == "_") {
      out.parts.push_back({"_", true});
      return out;
    }
    flush();
    return out;
  }

  template <class Flush>
  result<void> read_variable(word& out, std::string& literal, const Flush& flush) {
    auto start = at_++;
    std::string name;
    if (!at_end() && text_[at_] == '{') {
      auto end = text_.find('}', at_);
      if (end == text_.npos)
        return fault(start, "'${' without '}'\nhint: ${x.backlog}");
      name = std::string(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      if (name.empty() || !name_start(name[0]))
        return fault(start, "'${" + name + "}' names no variable\nhint: ${x.backlog}");
    } else if (!at_end() && name_start(text_[at_])) {
      while (!at_end() && name_char(text_[at_]))
        name += text_[at_++];
    } else { // a lone dollar stands for itself
      literal += '$';
      return {};
    }
    flush();
    out.parts.push_back({std::move(name), true});
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool open_ = false;
};

} // namespace

const std::vector<std::string>& filter_names() {
  static const std::vector<std::string> names = {"where", "columns", "order", "first", "last", "count"};
  return names;
}

result<parsed_line> parse_line(std::string_view text) {
  if (text.size() > most_line_bytes)
    return error{errc::invalid, "a line of " + std::to_string(text.size()) + " bytes; at most " +
                                  std::to_string(most_line_bytes) +
                                  " are read\nhint: put long values into a file"};
  if (!is_text(text))
    return error{errc::invalid,
                 "the line holds bytes that are not text (control characters, or not UTF-8)\nhint: the shell "
                 "reads commands; `help` lists them"};
  return reader(text).read();
}

result<std::string> expanded(const word& w, const lookup& variables) {
  std::string out;
  for (const auto& p : w.parts) {
    if (!p.variable) {
      out += p.text;
      continue;
    }
    auto text = variables(p.text);
    if (!text)
      return text.error();
    out += *text;
  }
  return out;
}

result<std::vector<std::string>> expanded(const std::vector<word>& words, const lookup& variables) {
  std::vector<std::string> out;
  for (const auto& w : words) {
    auto text = expanded(w, variables);
    if (!text)
      return text.error();
    out.push_back(*std::move(text));
  }
  return out;
}

std::string quoted(std::string_view text) {
  auto plain = [](unsigned char c) {
    return std::isalnum(c) || c >= 0x80 ||
           std::string_view("_-./:=,@+%[]").find(char(c)) != std::string_view::npos;
  };
  if (!text.empty() && text != "_" && std::all_of(text.begin(), text.end(), plain))
    return std::string(text);
  std::string out = "'";
  for (char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

bool is_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    auto c = static_cast<unsigned char>(text[i]);
    auto count = bytes_of(c);
    if (count == 0 || i + count > text.size() || (c < 0x20 && c != '\t' && c != '\n' && c != '\r') ||
        c == 0x7f)
      return false;
    for (std::size_t k = 1; k < count; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80)
        return false;
    i += count;
  }
  return true;
}

} // namespace troupe::shell
