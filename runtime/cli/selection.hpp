#pragma once
// The web page's filter language and order, for the lists of the command line: `--where` and `--sort`. Pure.
//
//   state=RUNNING 'best>0.9' name~digits 'owner=''ada l''' digits
//
// Conditions parted by blanks, all of which must hold. `key=value`, `!=`, `<`, `<=`, `>`, `>=`, `~`
// (contains);
// '...' quotes, '' is one of them; a bare word is looked for in some of the columns. Keys are those of the
// page's grids; `hp.` may be left out. What is missing matches no comparison. Numbers are compared as
// numbers, texts without regard to case. Missing values and NaN sort last in both directions.

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
  /// What a row has in a column: a number, a text, true, false, or null.
  using cell = std::function<value(const value& row)>;
  std::map<std::string, cell> columns; ///< by key
  std::vector<std::string> bare;       ///< keys in which a bare word is looked for
};

struct condition {
  std::string key; ///< empty: a bare word
  std::string op;
  std::string text;
};

/// Whether a cell is as `c` wants it; its key does not matter here.
bool holds(const value& cell, const condition& c);
/// Whether a row with the cell `a` stands before one with `b`.
bool before(const value& a, const value& b, bool descending);

/// The conditions of `text`, each key one of `of`. Fails with errc::invalid, naming the place.
result<std::vector<condition>> conditions_in(const std::string& text, const grid& of);
/// The keys that a filter and a sort name, without looking whether there are such columns.
std::vector<std::string> keys_named(const std::string& where, const std::string& sort);
/// Those of `rows` (a list) for which `where` holds, in the order of `sort` ("-best": descending; empty: as
/// they are). Fails with errc::invalid.
result<value> selected(value rows, const grid& of, const std::string& where, const std::string& sort);

// ---- the page's grids

grid experiment_grid(time_point now);
/// `rows` and `metrics` ("validation.loss") say which hyperparameters and metrics there are.
grid trial_grid(const value& rows, const std::vector<std::string>& metrics, time_point now);
/// Of `keys` those metrics that a trial's columns "m.training.loss.min" are of.
std::vector<std::string> metrics_named(const std::vector<std::string>& keys,
                                       const std::vector<std::string>& known);
grid checkpoint_grid();
grid report_grid(const value& rows);
grid agent_grid();
grid queue_grid(); ///< rows with "explain" beside what the route says, where `why` or `free` is asked for
grid fact_grid();
grid desk_grid();

} // namespace troupe::cli
