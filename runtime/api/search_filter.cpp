#include "runtime/api/search_filter.hpp"

#include "model/time.hpp"
#include "runtime/api/listing.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace troupe::api {
namespace {

constexpr int most_depth = 32, most_conditions = 500;

const char* const operators[] = {"=",  "!=",       "<",           "<=",      ">",
                                 ">=", "contains", "notContains", "isEmpty", "notEmpty"};
/// Types that clients may name. They are not used, because the kind of each column is known.
const char* const types[] = {"COLUMN_TYPE_UNSPECIFIED", "COLUMN_TYPE_TEXT", "COLUMN_TYPE_NUMBER",
                             "COLUMN_TYPE_DATE", "COLUMN_TYPE_ARRAY"};

std::string text_at(const value& x, const char* key) {
  auto at = x.find(key);
  return at != x.end() && at->is_string() ? at->get<std::string>() : std::string();
}

/// Whether the name has the form "validation.loss.last"; the name of the metric may contain dots.
bool names_metric(std::string_view name) {
  const auto first = name.find('.'), last = name.rfind('.');
  if (first == 0 || first == name.npos || last == first)
    return false;
  const auto how = name.substr(last + 1);
  return how == "last" || how == "min" || how == "max" || how == "mean";
}

const known_column* find_column(const std::vector<known_column>& known, const std::string& name) {
  const auto at = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.name == name; });
  return at == known.end() ? nullptr : &*at;
}

/// Whether texts in the column that can be read as times are compared as times.
bool holds_times(const column_name& column) {
  return column.of == column_of::metadata || column.kind == column_kind::date;
}
/// Whether "STATE_COMPLETED" and "COMPLETED" mean the same in the column.
bool holds_states(const column_name& column) { return column.of == column_of::row && column.name == "state"; }

result<column_name> column_in(const std::string& name, const std::string& location,
                              const std::vector<known_column>& known) {
  const auto is = [&](const char* tail) { return location == std::string("LOCATION_TYPE_") + tail; };
  if (name.empty() || name.size() > 500)
    return error{errc::invalid, "invalid filter: a column has a name of at most 500 characters"};
  if (is("VALIDATIONS") || is("TRAINING") || is("CUSTOM_METRIC")) {
    if (!names_metric(name))
      return error{errc::invalid,
                   "invalid filter: a metric's column is GROUP.NAME.last, min, max or mean: '" +
                     name.substr(0, 50) + "'"};
    return column_name{column_of::metric, name};
  }
  if (is("HYPERPARAMETERS") || is("RUN_HYPERPARAMETERS"))
    return column_name{column_of::hyperparameter, name.starts_with("hp.") ? name.substr(3) : name};
  if (is("RUN_METADATA"))
    return column_name{column_of::metadata, name.starts_with("metadata.") ? name.substr(9) : name};
  if (!location.empty() && !is("EXPERIMENT") && !is("RUN") && !is("UNSPECIFIED"))
    return error{errc::invalid, "invalid filter: unknown location '" + location.substr(0, 50) + "'"};
  const auto* found = find_column(known, name);
  if (!found)
    return error{errc::invalid, "invalid filter: unknown column '" + name.substr(0, 50) + "'"};
  return column_name{column_of::row, name, found->kind};
}

bool empty(const value& x) { return x.is_null() || x == "" || x == "[]" || (x.is_array() && x.empty()); }

std::string without_prefix(const std::string& text) {
  return text.starts_with("STATE_") ? text.substr(6) : text;
}

std::string as_text(const value& x) { return x.is_string() ? x.get<std::string>() : to_json(x); }

/// Reads a number, also from a text.
std::optional<double> read_number(const value& x) {
  if (x.is_boolean())
    return std::nullopt;
  if (auto number = number_in(x))
    return number;
  const auto* text = x.get_ptr<const std::string*>();
  if (!text || text->empty())
    return std::nullopt;
  double number = 0;
  auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), number);
  return fault == std::errc{} && end == text->data() + text->size() ? std::optional{number} : std::nullopt;
}

/// Reads true or false, also from a text, because columns of booleans are announced as texts.
std::optional<bool> read_flag(const value& x) {
  if (x.is_boolean())
    return x.get<bool>();
  const auto text = x.is_string() ? folded(x.get<std::string>()) : std::string();
  return text == "true" ? std::optional{true} : text == "false" ? std::optional{false} : std::nullopt;
}

/// Reads an RFC 3339 text. A day or a month alone stands for its beginning.
std::optional<time_point> read_time(const std::string& text) {
  if (const auto whole = from_rfc3339(text))
    return *whole;
  const bool day = text.size() == 10, month = text.size() == 7;
  if (!day && !month)
    return std::nullopt;
  const auto at = from_rfc3339(text + (day ? "" : "-01") + "T00:00:00Z");
  return at ? std::optional{*at} : std::nullopt;
}

/// Compares two values: <0, 0 or >0; nullopt where they cannot be compared.
std::optional<int> compared(const value& a, const value& b, const column_name& of) {
  // Two texts that look like numbers are compared as texts.
  const bool numbers = a.is_number() || b.is_number();
  const auto x = numbers ? read_number(a) : std::nullopt, y = numbers ? read_number(b) : std::nullopt;
  if (x && y)
    return *x < *y ? -1 : *x > *y ? 1 : *x == *y ? std::optional{0} : std::nullopt; // nullopt for NaN
  if (a.is_boolean() || b.is_boolean()) {
    const auto left = read_flag(a), right = read_flag(b);
    return left && right ? std::optional{int(*left) - int(*right)} : std::nullopt;
  }
  if (!a.is_string() || !b.is_string())
    return std::nullopt;
  const auto left = a.get<std::string>(), right = b.get<std::string>();
  const auto t = holds_times(of) ? read_time(left) : std::nullopt, u = t ? read_time(right) : std::nullopt;
  if (t && u)
    return *t < *u ? -1 : *t > *u ? 1 : 0;
  return holds_states(of) ? without_prefix(left).compare(without_prefix(right)) : left.compare(right);
}

bool is_unset(const value& x) { return x.is_null() || (x.is_number_float() && std::isnan(x.get<double>())); }

bool contains(const value& x, const value& wanted, bool folded_case) {
  if (x.is_array())
    return std::any_of(x.begin(), x.end(),
                       [&](const value& one) { return contains(one, wanted, folded_case); });
  const auto text = as_text(x), part = as_text(wanted);
  return folded_case ? contains_folded(text, part) : text.find(part) != text.npos;
}

bool plain_condition(const std::string& op, const value& x, const value& wanted, const column_name& of) {
  const bool folded_case = of.of == column_of::row;
  if (op == "contains")
    return !x.is_null() && contains(x, wanted, folded_case);
  if (op == "notContains")
    return x.is_null() || !contains(x, wanted, folded_case);
  const auto order = x.is_null() ? std::nullopt : compared(x, wanted, of);
  if (op == "=")
    return order == 0;
  if (op == "!=")
    return order != 0;
  if (!order)
    return false;
  return op == "<" ? *order < 0 : op == "<=" ? *order <= 0 : op == ">" ? *order > 0 : *order >= 0;
}

/// Whether a hyperparameter's section fulfils a condition: a const compares its value, a list compares with
/// each of its values, a range compares its bounds.
bool searched_condition(const std::string& op, const value& section, const value& wanted,
                        const column_name& of) {
  const auto type = text_at(section, "type");
  if (type == "const")
    return plain_condition(op, section.value("val", value()), wanted, of);
  if (type == "categorical") {
    const auto all = section.value("vals", value::array());
    const bool any =
      std::any_of(all.begin(), all.end(), [&](const value& one) { return compared(one, wanted, of) == 0; });
    return op == "contains" || op == "=" ? any : op == "notContains" || op == "!=" ? !any : false;
  }
  const auto least = section.value("minval", value()), most = section.value("maxval", value());
  const auto low = number_in(least), high = number_in(most), at = number_in(wanted);
  if (!low || !high || !at)
    return op == "!=" || op == "notContains";
  const bool inside = *low <= *at && *at <= *high;
  return op == "=" || op == "contains"       ? inside
         : op == "!=" || op == "notContains" ? !inside
         : op == "<"                         ? *low < *at
         : op == "<="                        ? *low <= *at
         : op == ">"                         ? *high > *at
                                             : *high >= *at;
}

/// The rank of a value's kind. Values of different kinds are sorted by it, because comparing them with each
/// other would give no consistent order.
int kind_rank(const value& x, const column_name& of) {
  return x.is_number()                                        ? 0
         : x.is_boolean()                                     ? 1
         : !x.is_string()                                     ? 4
         : holds_times(of) && read_time(x.get<std::string>()) ? 2
                                                              : 3;
}

/// Orders any two values that are set: <0, 0 or >0.
int in_order(const value& a, const value& b, const column_name& of) {
  const int x = kind_rank(a, of), y = kind_rank(b, of);
  return x != y ? x - y : compared(a, b, of).value_or(as_text(a).compare(as_text(b)));
}

/// The value by which a search's hyperparameter is sorted: its value, its list of values, or the lower end of
/// its range.
const value& sorted_value(const sort_key& by, const value& x) {
  if (by.column.of == column_of::hyperparameter && x.is_object() && x.contains("type"))
    for (const char* key : {"val", "vals", "minval"})
      if (const auto at = x.find(key); at != x.end())
        return *at;
  return x;
}

} // namespace

struct search_filter::node {
  bool any = false, group = false; ///< `any`: whether one child of a group is enough
  std::vector<std::shared_ptr<const node>> children;
  column_name column;
  std::string op;
  value wanted;
};

/// Checks that a condition on a column of the row itself compares with a value of the column's kind.
result<void> search_filter::check_wanted(const node& x) {
  if (x.wanted.is_null() || x.op.size() > 2)
    return {};
  const auto* text = x.wanted.get_ptr<const std::string*>();
  if (x.column.kind == column_kind::number && !read_number(x.wanted))
    return error{errc::invalid, "invalid filter: column '" + x.column.name + "' is compared with a number"};
  if (x.column.kind == column_kind::flag && !read_flag(x.wanted))
    return error{errc::invalid,
                 "invalid filter: column '" + x.column.name + "' is compared with true or false"};
  if (x.column.kind == column_kind::date && !(text && read_time(*text)))
    return error{errc::invalid, "invalid filter: column '" + x.column.name +
                                  "' is compared with a time, as \"2026-11-26T12:00:00Z\""};
  return {};
}

result<std::shared_ptr<const search_filter::node>>
search_filter::read_node(const value& x, const std::vector<known_column>& known, const wanted_value& instead,
                         int depth, int& conditions) {
  if (!x.is_object())
    return error{errc::invalid, "invalid filter: a condition has to be an object"};
  if (depth > most_depth || ++conditions > most_conditions)
    return error{errc::invalid, "invalid filter: at most 32 levels and 500 conditions"};
  auto made = std::make_shared<node>();
  const auto kind = text_at(x, "kind");
  if (kind == "group") {
    made->group = true;
    const auto how = text_at(x, "conjunction");
    if (how != "and" && how != "or")
      return error{errc::invalid, "invalid filter: a group has the conjunction `and` or `or`"};
    made->any = how == "or";
    const auto children = x.find("children");
    if (children == x.end() || !children->is_array())
      return error{errc::invalid, "invalid filter: a group has children"};
    for (const auto& one : *children) {
      auto child = read_node(one, known, instead, depth + 1, conditions);
      if (!child)
        return child.error();
      made->children.push_back(std::move(*child));
    }
    return std::shared_ptr<const node>(std::move(made));
  }
  if (kind != "field")
    return error{errc::invalid, "invalid filter: unknown kind '" + kind.substr(0, 50) + "'"};
  auto column = column_in(text_at(x, "columnName"), text_at(x, "location"), known);
  if (!column)
    return column.error();
  made->column = std::move(*column);
  made->op = text_at(x, "operator");
  if (std::none_of(std::begin(operators), std::end(operators),
                   [&](const char* op) { return made->op == op; }))
    return error{errc::invalid, "invalid filter: unknown operator '" + made->op.substr(0, 50) + "'"};
  if (auto wanted = x.find("value"); wanted != x.end())
    made->wanted = *wanted;
  const auto type = text_at(x, "type");
  if (!type.empty() &&
      std::none_of(std::begin(types), std::end(types), [&](const char* one) { return type == one; }))
    return error{errc::invalid, "invalid filter: unknown type '" + type.substr(0, 50) + "'"};
  if (auto fine = check_wanted(*made); !fine)
    return fine.error();
  if (const auto flag = made->column.kind == column_kind::flag ? read_flag(made->wanted) : std::nullopt)
    made->wanted = *flag;
  if (instead && (made->op == "=" || made->op == "!="))
    made->wanted = instead(made->column, made->wanted);
  return std::shared_ptr<const node>(std::move(made));
}

result<search_filter> search_filter::read(const std::string& text, const std::vector<known_column>& known,
                                          const wanted_value& wanted) {
  search_filter out;
  if (text.empty())
    return out;
  if (text.size() > 256 << 10)
    return error{errc::invalid, "invalid filter: at most 256 KiB"};
  auto whole = parse_json(text);
  if (!whole || !whole->is_object())
    return error{errc::invalid, "invalid filter: it has to be a JSON object"};
  if (auto archived = whole->find("showArchived"); archived != whole->end() && !archived->is_null()) {
    if (!archived->is_boolean())
      return error{errc::invalid, "invalid filter: showArchived has to be true or false"};
    out.show_archived_ = archived->get<bool>();
  }
  auto group = whole->find("filterGroup");
  if (group == whole->end() || group->is_null())
    return out;
  int conditions = 0;
  auto root = read_node(*group, known, wanted, 1, conditions);
  if (!root)
    return root.error();
  out.root_ = std::move(*root);
  return out;
}

result<bool> search_filter::holds(const node& x, const row_values& of) {
  if (x.group) {
    for (const auto& child : x.children) {
      auto one = holds(*child, of);
      if (!one || *one == x.any)
        return one;
    }
    return x.children.empty() || !x.any;
  }
  const bool asks_empty = x.op == "isEmpty" || x.op == "notEmpty";
  if (x.wanted.is_null() && !asks_empty)
    return true;
  auto has = of(x.column);
  if (!has)
    return has.error();
  if (asks_empty)
    return empty(*has) == (x.op == "isEmpty");
  if (x.column.of == column_of::hyperparameter && has->is_object() && has->contains("type"))
    return searched_condition(x.op, *has, x.wanted, x.column);
  return plain_condition(x.op, *has, x.wanted, x.column);
}

result<bool> search_filter::takes(const row_values& of) const {
  return root_ ? holds(*root_, of) : result<bool>(true);
}

bool reads_as_time(const std::string& text) { return read_time(text).has_value(); }

result<std::vector<sort_key>> read_sort(const std::string& text, const std::vector<known_column>& known) {
  std::vector<sort_key> out;
  for (std::size_t from = 0, end = 0; !text.empty() && end < text.size();) {
    end = std::min(text.find(',', from), text.size());
    const auto one = text.substr(from, end - from);
    from = end + 1;
    const auto equals = one.rfind('=');
    if (equals == one.npos || out.size() == 20)
      return error{errc::invalid,
                   "invalid sort parameter: '" + one.substr(0, 50) + "' is not column=asc or column=desc"};
    const auto name = one.substr(0, equals), way = one.substr(equals + 1);
    if (way != "asc" && way != "desc")
      return error{errc::invalid, "invalid sort direction: '" + way.substr(0, 50) + "'"};
    sort_key key;
    key.down = way == "desc";
    if (name.starts_with("hp.") && name != "hp.")
      key.column = {column_of::hyperparameter, name.substr(3)};
    else if (name.starts_with("metadata.") && name != "metadata.")
      key.column = {column_of::metadata, name.substr(9)};
    else if (const auto* found = find_column(known, name))
      key.column = {column_of::row, name, found->kind};
    else if (names_metric(name))
      key.column = {column_of::metric, name};
    else
      return error{errc::invalid, "invalid sort col: '" + name.substr(0, 50) + "'"};
    out.push_back(std::move(key));
  }
  return out;
}

bool sorts_before(const std::vector<sort_key>& by, const std::vector<value>& a, const std::vector<value>& b) {
  for (std::size_t i = 0; i < by.size(); ++i) {
    const auto &x = sorted_value(by[i], a[i]), &y = sorted_value(by[i], b[i]);
    const bool unset_a = is_unset(x), unset_b = is_unset(y);
    if (unset_a || unset_b) {
      if (unset_a != unset_b)
        return unset_b;
      continue;
    }
    if (const auto order = in_order(x, y, by[i].column); order != 0)
      return by[i].down ? order > 0 : order < 0;
  }
  return false;
}

} // namespace troupe::api
