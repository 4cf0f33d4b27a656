#pragma once
// What a command gave, and how it is shown. Pure.

#include "runtime/cli/output.hpp"

#include <string>
#include <vector>

namespace troupe::shell {

enum class shape { none, rows, tree, info, state, stats, text };

struct answer {
  shape how = shape::none;
  value what;                       ///< answer of the server; rows: the array; text: a string or an object
  std::vector<cli::column> columns; ///< columns of a table; other formats show all keys
  std::vector<std::string> notes;   ///< lines for standard error
};

struct look {
  cli::output_format format = cli::output_format::table;
  cli::terminal screen;
  time_point now;
};

/// JSON and csv end in a newline; JSON is one value on one line.
std::string render(const answer& a, const look& how);

/// The parts of a list that is shown row by row: a table's head, or "[" of JSON; then rows; then the end.
std::string stream_head(const answer& a, const look& how);
std::string stream_row(const answer& a, const value& row, bool first, const look& how);
std::string stream_end(const look& how);

/// What `_` and `$x` stand for: the value itself, or the first row's first column (`actor`, `id`, `name`,
/// ...).
std::string id_of(const value& what, const std::vector<cli::column>& columns = {});

/// "9 µs", "1.9 ms", "2.1 s".
std::string micros_text(double us, bool utf8 = true);
/// "12:05:58.114" of an RFC 3339 text; the text itself where it is none.
std::string clock_text(const std::string& at);

/// Rows of the keys that objects in `rows` have, in the order in which they are first met.
std::vector<std::string> keys_of(const value& rows);

} // namespace troupe::shell
