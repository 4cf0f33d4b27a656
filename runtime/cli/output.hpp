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
  bool quiet = false;               ///< whether only the first column is printed, without header
  std::vector<std::string> columns; ///< by title or path; empty: all columns
  terminal screen;
  time_point now; ///< "3 min ago" counts from here
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

/// The rows of a list; `json` and `yaml` print `rows` as it is. Fails with errc::invalid on an unknown
/// column.
result<std::string> show_rows(const value& rows, const std::vector<column>& columns,
                              const output_options& options);
/// One thing, as a table of two columns.
result<std::string> show_one(const value& thing, const std::vector<column>& columns,
                             const output_options& options);

/// The part of `x` that a path names; null where it is missing.
const value& part(const value& x, std::string_view path);
/// Text for a table: "COMPLETED" for "STATE_COMPLETED", "3 min ago", "0.9312", "lr=0.01 hidden=64".
std::string shown(const value& x, show_as how, time_point now);
/// A number with at most `digits` significant digits and no trailing zeros; a whole number is exact.
std::string number_text(double x, int digits = 6);
/// Seconds as "1 min 30 s".
std::string span_text(double seconds);
/// A time as "14:03 UTC", or, where it is not of the day of `now`, as "2026-11-28 14:03 UTC".
std::string moment_text(time_point at, time_point now);
std::optional<time_point> parse_rfc3339(std::string_view text);
/// A line of a log as a terminal showed it: the agent has taken the rank and the level off its text. The rank
/// 0 is not shown, because lines of programs without ranks have it too.
std::string log_text(const value& log);
std::string to_yaml(const value& x);
std::string csv_cell(std::string_view text);

} // namespace troupe::cli
