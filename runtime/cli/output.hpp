#pragma once
// The four output formats of every read verb. Pure.

#include "model/time.hpp"
#include "model/value.hpp"
#include "runtime/cli/terminal.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

enum class output_format { table, json, csv, yaml };

struct output_options {
  output_format format = output_format::table;
  bool header = true;
  bool quiet = false;               ///< only the first column, without header
  std::vector<std::string> columns; ///< columns by title or path; empty: all
  terminal screen;
  time_point now; ///< time that "3 min ago" is counted from
};

/// How a table shows a value; the other formats show it as it is.
enum class show_as {
  plain,
  state,
  number,
  age,
  percent,
  compact /* {"a":1} as a=1 */,
  bytes,
  count,
  span /* seconds */
};

struct column {
  std::string_view title; ///< "BEST TRIAL"
  std::string_view path;  ///< keys with dots: "bestValidation.totalBatches"
  show_as how = show_as::plain;
};

/// Rows of a list, `rows` being what `json` and `yaml` print. Fails with errc::invalid on an unknown column.
result<std::string> show_rows(const value& rows, const std::vector<column>& columns,
                              const output_options& options);
/// One thing: a table of two columns.
result<std::string> show_one(const value& thing, const std::vector<column>& columns,
                             const output_options& options);

/// The part of `x` that a path names; null where there is none.
const value& part(const value& x, std::string_view path);
/// Text as in a table: "COMPLETED" for "STATE_COMPLETED", "3 min ago", "0.9312", "lr=0.01 hidden=64".
std::string shown(const value& x, show_as how, time_point now);
/// A number with at most `digits` significant digits, without needless zeros.
std::string number_text(double x, int digits = 6);
/// "1 min 30 s" from seconds.
std::string span_text(double seconds);
std::optional<time_point> parse_rfc3339(std::string_view text);
std::string to_yaml(const value& x);
std::string csv_cell(std::string_view text);

} // namespace troupe::cli
