#pragma once
// The filter and sort language of experiments-search and of runs: a tree of conditions on columns, as JSON,
// and `column=asc|desc,...`. Pure: what a column is worth for a row is asked from outside.

#include "model/result.hpp"
#include "model/value.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::api {

/// Which part of a row a column is of.
enum class column_of { row, metric, hyperparameter, metadata };

/// What a column holds: where it is told, a condition's value has to be of it.
enum class column_kind { any, text, number, date, flag };

struct column_name {
  column_of of = column_of::row;
  std::string name; ///< of a hyperparameter or metadata without "hp." and "metadata."
  column_kind kind = column_kind::any;
};
/// A column of the row itself.
struct known_column {
  std::string name;
  column_kind kind = column_kind::any;
};

/// What a row has under a column: null where it has nothing. A hyperparameter of a search is its section of
/// the configuration: {"type": "int", "minval": 1, "maxval": 8}.
using row_values = std::function<result<value>(const column_name&)>;

/// What a condition `=` or `!=` compares with in place of its value: where a thing has more names than one.
using wanted_value = std::function<value(const column_name&, const value&)>;

class search_filter {
public:
  /// An empty text takes every row. errc::invalid where it is no filter, or names no column of `known`;
  /// nested at most 32 levels deep, with at most 500 conditions.
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

struct sort_key {
  column_name column;
  bool down = false;
};
/// errc::invalid `invalid sort parameter`, `invalid sort direction`, `invalid sort col`.
result<std::vector<sort_key>> read_sort(const std::string& text, const std::vector<known_column>& known);
/// Whether `a` stands before `b` by these keys; what is unset comes last. Both have one value for each key.
bool sorts_before(const std::vector<sort_key>& by, const std::vector<value>& a, const std::vector<value>& b);

} // namespace troupe::api
