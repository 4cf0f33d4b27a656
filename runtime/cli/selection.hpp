#pragma once
// The web page's filter language and order, for the lists of the command line: `--where` and `--sort`. Pure.
//
//   state=RUNNING 'best>0.9' name~digits 'owner=''ada l''' digits
//
// Conditions are separated by blanks, and all must hold. `key=value`, `!=`, `<`, `<=`, `>`, `>=`, `~`
// (contains); '...' quotes, and '' in it is one quote. A bare word is searched in some of the columns. Keys
// are those of the page's grids; `hp.` may be left out. A missing value matches no comparison. Numbers are
// compared as numbers, texts without regard to case. Missing values and NaN sort last in both directions.

#include "model/result.hpp"
#include "model/time.hpp"
#include "model/value.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

struct grid {
  /// The value of a row in a column: a number, a text, true, false, or null.
  using cell = std::function<value(const value& row)>;
  std::map<std::string, cell> columns; ///< by key
  std::vector<std::string> bare;       ///< keys in which a bare word is looked for
};

struct condition {
  std::string key; ///< empty: a bare word
  std::string op;
  std::string text;
};

/// Whether a cell is as `c` wants it; the key of `c` does not matter here.
bool holds(const value& cell, const condition& c);
/// Whether a row with cell `a` comes before one with cell `b`.
bool before(const value& a, const value& b, bool descending);

/// The conditions in `text`; each key must be one of `of`. Fails with errc::invalid and names the place.
result<std::vector<condition>> conditions_in(const std::string& text, const grid& of);
/// The keys that a filter and a sort name, whether or not such columns exist.
std::vector<std::string> keys_named(const std::string& where, const std::string& sort);
/// The rows of the list for which `where` holds, in the order of `sort` ("-best": descending; empty:
/// unchanged). Fails with errc::invalid.
result<value> selected(value rows, const grid& of, const std::string& where, const std::string& sort);

// ---- the page's grids

grid experiment_grid(time_point now);
/// `rows` and `metrics` ("validation.loss") say which hyperparameters and metrics exist.
grid trial_grid(const value& rows, const std::vector<std::string>& metrics, time_point now);
/// The metrics whose columns, such as "m.training.loss.min", are among `keys`.
std::vector<std::string> metrics_named(const std::vector<std::string>& keys,
                                       const std::vector<std::string>& known);
grid checkpoint_grid();
grid report_grid(const value& rows);
grid agent_grid();
grid queue_grid(); ///< its rows have "explain" beside what the route says, where `why` or `free` is asked for
grid fact_grid();
grid desk_grid();

} // namespace troupe::cli
