#pragma once
// What a command returned, and how it is shown. Pure.

#include "runtime/cli/output.hpp"

#include <string>
#include <vector>

namespace troupe::shell {

enum class shape { none, rows, tree, info, state, stats, text };

struct answer {
  shape how = shape::none;
  value what;                       ///< the server's answer: rows are an array, text is a string or an object
  std::vector<cli::column> columns; ///< of a table; other formats show all keys
  std::vector<std::string> notes;   ///< for standard error
};

struct look {
  cli::output_format format = cli::output_format::table;
  cli::terminal screen;
  time_point now;
};

/// JSON and csv end in a newline; JSON is one value on one line.
std::string render(const answer& a, const look& how);

/// The parts of a list that is shown row by row: first a table's head or JSON's "[", then rows, then the end.
std::string stream_head(const answer& a, const look& how);
std::string stream_row(const answer& a, const value& row, bool first, const look& how);
std::string stream_end(const look& how);

/// What `_` and `$x` stand for: the value itself, or the first column of the first row (`actor`, `id`,
/// `name`, ...).
std::string id_of(const value& what, const std::vector<cli::column>& columns = {});

/// Microseconds as "9 µs", "1.9 ms", "2.1 s".
std::string micros_text(double us, bool utf8 = true);
/// "12:05:58.114" from an RFC 3339 text; any other text stays as it is.
std::string clock_text(const std::string& at);

/// The keys of the objects in `rows`, in the order in which they first occur.
std::vector<std::string> keys_of(const value& rows);

} // namespace troupe::shell
