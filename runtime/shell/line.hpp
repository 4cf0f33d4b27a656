#pragma once
// What a typed line means, as values. Pure: nothing is run, looked up or expanded here.
//
//   line      = statement { ";" statement } [ "#" comment ]
//   statement = command { "|" filter } [ "|" host command ] [ ">" file | ">>" file ]
//
// Blanks separate words. 'Single quotes' keep everything. "Double quotes" keep all but $x and the backslash's
// \" \\ \$ \n \t. A bare backslash keeps the next character. $x, ${x} and ${x.field} name a variable, a bare
// _ the last result. Text after a "|" that does not begin with one of our own filters goes to the host's
// shell as it is.

#include "model/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::shell {

/// Limit of one line with its continuations, in bytes; a longer one is refused before it is parsed.
constexpr std::size_t most_line_bytes = 64 * 1024;

struct word_part {
  std::string text; ///< the text itself, or "x" and "x.field" for a variable
  bool variable = false;
  friend bool operator==(const word_part&, const word_part&) = default;
};

struct word {
  std::vector<word_part> parts;
  bool quoted = false; ///< at least in part; a quoted word names no command and is not an option
  std::size_t at = 0;  ///< offset of the first byte in the line
  friend bool operator==(const word& a, const word& b) { return a.parts == b.parts && a.quoted == b.quoted; }
};

struct stage {
  std::vector<word> words; ///< words of one of our filters; empty where `host` is set
  std::string host;        ///< text for /bin/sh
  friend bool operator==(const stage&, const stage&) = default;
};

struct redirection {
  word file;
  bool append = false;
  friend bool operator==(const redirection&, const redirection&) = default;
};

struct statement {
  std::vector<word> words; ///< never empty
  std::vector<stage> pipes;
  std::optional<redirection> to;
};

struct parsed_line {
  std::vector<statement> statements;
  bool open =
    false; ///< whether a quote is open or the last character is a backslash: the next line belongs to it
};

/// The words that begin our own filters after a "|".
const std::vector<std::string>& filter_names();

/// Fails with errc::invalid and names the column, counted from 1 in characters.
result<parsed_line> parse_line(std::string_view text);

/// The text of a variable, or an error that names it.
using lookup = std::function<result<std::string>(const std::string&)>;
result<std::string> expanded(const word& w, const lookup& variables);
result<std::vector<std::string>> expanded(const std::vector<word>& words, const lookup& variables);

/// The word as it can be typed again: in quotes where it needs them.
std::string quoted(std::string_view text);

/// Whether `text` is UTF-8 without control characters other than tab and newline.
bool is_text(std::string_view text);

} // namespace troupe::shell
