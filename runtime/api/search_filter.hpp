#pragma once
// The language of filters and of sorting for experiments-search and for runs: a tree of conditions on columns
// as JSON, and `column=asc|desc,...`. Pure: the caller passes in what a row has under a column.

#include "model/result.hpp"
#include "model/value.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::api {

/// The part of a row that a column belongs to.
enum class column_of { row, metric, hyperparameter, metadata };

/// What a column holds. Where the kind is not `any`, the value of a condition has to be of that kind.
enum class column_kind { any, text, number, date, flag };

struct column_name {
  column_of of = column_of::row;
  std::string name; ///< without "hp." of a hyperparameter and without "metadata."
  column_kind kind = column_kind::any;
};
/// A column of the row itself, with what it holds.
struct known_column {
  std::string name;
  column_kind kind = column_kind::any;
};

/// Gives what a row has under a column, or null. For a hyperparameter of a search this is its section of the
/// configuration, as {"type": "int", "minval": 1, "maxval": 8}.
using row_values = std::function<result<value>(const column_name&)>;

/// Gives what a condition `=` or `!=` compares with in place of its value, where a thing has several names.
using wanted_value = std::function<value(const column_name&, const value&)>;

class search_filter {
public:
  /// Reads a filter; an empty text accepts every row. Fails with errc::invalid where the text is not a
  /// filter, names a column that `known` lacks, is nested more than 32 levels deep, or has more than 500
  /// conditions.
  static result<search_filter> read(const std::string& text, const std::vector<known_column>& known,
                                    const wanted_value& wanted = {});

  bool show_archived() const { return show_archived_; }
  result<bool> takes(const row_values& of) const;

private:
  struct node;
  static result<void> check_wanted(const node& x);
  static result<std::shared_ptr<const node>> read_node(const value& x, const std::vector<known_column>& known,
                                                       const wanted_value& wanted, int depth,
                                                       int& conditions);
  static result<bool> holds(const node& x, const row_values& of);

  std::shared_ptr<const node> root_;
  bool show_archived_ = true;
};

/// Whether the text is compared as a time in a column that may hold times, as metadata may: RFC 3339, or a
/// day or a month alone.
bool reads_as_time(const std::string& text);

struct sort_key {
  column_name column;
  bool down = false;
};
/// Reads sort keys. Fails with errc::invalid: `invalid sort parameter`, `invalid sort direction` or `invalid
/// sort col`.
result<std::vector<sort_key>> read_sort(const std::string& text, const std::vector<known_column>& known);
/// Whether `a` stands before `b` by these keys; unset values come last. Both have one value for each key.
bool sorts_before(const std::vector<sort_key>& by, const std::vector<value>& a, const std::vector<value>& b);

} // namespace troupe::api
