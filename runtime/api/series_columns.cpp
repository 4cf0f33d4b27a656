#include "runtime/api/series_columns.hpp"

#include "runtime/api/http.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace troupe::api {
namespace {

constexpr std::size_t batch = 1000;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Walks over msgpack bytes without building values. After a fault `ok` is false and everything reads as
/// empty.
class cursor {
public:
  explicit cursor(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  bool ok() const { return ok_; }
  const char* place() const { return at_; }

  std::uint64_t map_size() {
    const auto tag = byte();
    if (tag >= 0x80 && tag <= 0x8f)
      return tag & 0x0fu;
    return tag == 0xde ? big(2) : tag == 0xdf ? big(4) : fail();
  }
  std::string_view text() {
    const auto tag = byte();
    const auto size = tag >= 0xa0 && tag <= 0xbf ? tag & 0x1fu
                      : tag == 0xd9              ? big(1)
                      : tag == 0xda              ? big(2)
                      : tag == 0xdb              ? big(4)
                                                 : fail();
    return taken(size);
  }
  /// Reads the number at this place; nullopt where it is something else. Moves past it in either case.
  std::optional<double> number() {
    const auto from = at_;
    const auto tag = byte();
    if (tag <= 0x7f)
      return tag;
    if (tag >= 0xe0)
      return static_cast<double>(static_cast<std::int8_t>(tag));
    switch (tag) {
    case 0xca:
      return std::bit_cast<float>(static_cast<std::uint32_t>(big(4)));
    case 0xcb:
      return std::bit_cast<double>(big(8));
    case 0xcc:
      return static_cast<double>(big(1));
    case 0xcd:
      return static_cast<double>(big(2));
    case 0xce:
      return static_cast<double>(big(4));
    case 0xcf:
      return static_cast<double>(big(8));
    case 0xd0:
      return static_cast<double>(static_cast<std::int8_t>(big(1)));
    case 0xd1:
      return static_cast<double>(static_cast<std::int16_t>(big(2)));
    case 0xd2:
      return static_cast<double>(static_cast<std::int32_t>(big(4)));
    case 0xd3:
      return static_cast<double>(static_cast<std::int64_t>(big(8)));
    default:
      at_ = from;
    }
    if ((tag >= 0xa0 && tag <= 0xbf) || (tag >= 0xd9 && tag <= 0xdb)) {
      const auto said = text();
      if (said == "NaN" || said == "Nan")
        return nan;
      if (said == "Infinity" || said == "-Infinity")
        return said.front() == '-' ? -std::numeric_limits<double>::infinity()
                                   : std::numeric_limits<double>::infinity();
      return std::nullopt;
    }
    skip();
    return std::nullopt;
  }
  void skip() {
    for (std::uint64_t left = 1; left > 0 && ok_; --left) {
      const auto tag = byte();
      if (tag <= 0x7f || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3)
        continue;
      if (tag <= 0x8f)
        left += 2ull * (tag & 0x0fu);
      else if (tag <= 0x9f)
        left += tag & 0x0fu;
      else if (tag <= 0xbf)
        taken(tag & 0x1fu);
      else if (tag == 0xc4 || tag == 0xd9)
        taken(big(1));
      else if (tag == 0xc5 || tag == 0xda)
        taken(big(2));
      else if (tag == 0xc6 || tag == 0xdb)
        taken(big(4));
      else if (tag == 0xc7)
        taken(big(1) + 1);
      else if (tag == 0xc8)
        taken(big(2) + 1);
      else if (tag == 0xc9)
        taken(big(4) + 1);
      else if (tag == 0xca || tag == 0xce || tag == 0xd2)
        taken(4);
      else if (tag == 0xcb || tag == 0xcf || tag == 0xd3)
        taken(8);
      else if (tag == 0xcc || tag == 0xd0)
        taken(1);
      else if (tag == 0xcd || tag == 0xd1)
        taken(2);
      else if (tag >= 0xd4 && tag <= 0xd8)
        taken((1ull << (tag - 0xd4)) + 1);
      else if (tag == 0xdc)
        left += big(2);
      else if (tag == 0xdd)
        left += big(4);
      else if (tag == 0xde)
        left += 2 * big(2);
      else if (tag == 0xdf)
        left += 2 * big(4);
      else
        fail();
    }
  }

private:
  std::uint8_t byte() {
    if (!ok_ || at_ == end_)
      return static_cast<std::uint8_t>(fail() | 0xc1u); // this tag is never used by msgpack
    return static_cast<std::uint8_t>(*at_++);
  }
  std::uint64_t big(std::size_t bytes) {
    std::uint64_t out = 0;
    for (char c : taken(bytes))
      out = out << 8 | static_cast<std::uint8_t>(c);
    return out;
  }
  std::string_view taken(std::uint64_t bytes) {
    if (!ok_ || bytes > static_cast<std::uint64_t>(end_ - at_)) {
      fail();
      return {};
    }
    std::string_view out{at_, bytes};
    at_ += bytes;
    return out;
  }
  unsigned fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }

  const char *at_, *end_;
  bool ok_ = true;
};

bool all_numbers(const value& list) {
  return std::all_of(list.begin(), list.end(), [](const value& x) { return number_in(x).has_value(); });
}

/// Whether `x` is a list of maps of which one has all keys that any of them has.
bool is_of_like_maps(const value& x) {
  std::set<std::string> keys;
  std::size_t most = 0;
  for (const auto& one : x) {
    if (!one.is_object())
      return false;
    most = std::max(most, one.size());
    for (const auto& [key, ignored] : one.items())
      keys.insert(key);
  }
  return most > 0 && keys.size() == most;
}

bool is_matrix(const value& x) {
  return x.is_array() && !x.empty() && x[0].is_array() &&
         std::all_of(x.begin(), x.end(), [&](const value& row) {
           return row.is_array() && row.size() == x[0].size() && all_numbers(row);
         });
}

void add(metric_summary& to, std::optional<double> y, time_point at, std::int64_t steps) {
  if (steps > 0 && steps == to.steps)
    static_cast<metric_numbers&>(to) = to.before;
  else
    to.before = to;
  to.steps = steps;
  ++to.reports;
  to.newest = std::max(to.newest, at);
  if (!y)
    return;
  to.last = *y;
  if (!std::isfinite(*y))
    return;
  to.min = std::isnan(to.min) ? *y : std::min(to.min, *y);
  to.max = std::isnan(to.max) ? *y : std::max(to.max, *y);
  to.sum += *y;
  ++to.finite;
}

constexpr std::size_t most_value_bytes = 4096; ///< limit of the bytes that are kept of a value

/// The beginning of a text, at most 4 KiB, cut between characters.
std::string beginning_of(std::string text) {
  if (text.size() <= most_value_bytes)
    return text;
  auto end = most_value_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  text.resize(end);
  return text;
}

const char* determined_type(const value& x) {
  return number_in(x)     ? "number"
         : x.is_null()    ? "null"
         : x.is_boolean() ? "boolean"
         : x.is_array()   ? "array"
         : x.is_object()  ? "object"
                          : "string";
}

void add(metric_summaries& to, const metric_row& row) {
  auto& group = to[row.group];
  each_entry(row.metrics, [&](std::string_view key, std::string_view bytes) {
    const auto y = cursor(bytes).number();
    auto found = group.find(std::string(key));
    if (found == group.end()) {
      const auto whole = y ? result<value>(value(0)) : parse_msgpack(bytes);
      found = group.emplace(std::string(key), metric_summary{}).first;
      found->second.kind = whole ? kind_of(*whole) : metric_kind::other;
      found->second.type = whole ? determined_type(*whole) : "null";
    }
    auto& known = found->second;
    add(known, y, row.at, row.steps);
    if (known.kind == metric_kind::text) {
      if (const auto whole = parse_msgpack(bytes); whole && whole->is_string())
        known.text = beginning_of(whole->get<std::string>());
    } else if (known.kind != metric_kind::number) {
      known.text = bytes.size() <= most_value_bytes ? std::string(bytes) : std::string();
    }
  });
}

} // namespace

const char* name(metric_kind kind) {
  switch (kind) {
  case metric_kind::number:
    return "number";
  case metric_kind::matrix:
    return "matrix";
  case metric_kind::table:
    return "table";
  case metric_kind::vector:
    return "vector";
  case metric_kind::text:
    return "text";
  case metric_kind::other:
    return "other";
  }
  return "other";
}

bool replaces(const series_point& x, const series_point& before, std::string_view group) {
  return x.steps == before.steps && x.run == before.run && x.steps > 0 && storage::has_step(group, x.steps);
}

metric_kind kind_of(const value& x) {
  if (number_in(x))
    return metric_kind::number;
  if (x.is_string())
    return metric_kind::text;
  if (is_matrix(x) || (x.is_object() && x.contains("matrix") && is_matrix(x["matrix"])))
    return metric_kind::matrix;
  if (x.is_object() && x.contains("columns") && x.contains("rows") && x["columns"].is_array() &&
      x["rows"].is_array())
    return metric_kind::table;
  if (x.is_array() && !x.empty() && all_numbers(x))
    return metric_kind::vector;
  if (x.is_array() && is_of_like_maps(x))
    return metric_kind::table;
  return metric_kind::other;
}

std::optional<double> number_of(std::string_view bytes, std::string_view name) {
  cursor at(bytes);
  for (auto left = at.map_size(); left > 0 && at.ok(); --left) {
    if (at.text() == name) {
      const auto y = at.number();
      return at.ok() ? y : std::nullopt; // bytes that end too early are not a number
    }
    at.skip();
  }
  return std::nullopt;
}

void each_entry(std::string_view bytes,
                const std::function<void(std::string_view key, std::string_view bytes)>& each) {
  cursor at(bytes);
  for (auto left = at.map_size(); left > 0 && at.ok(); --left) {
    const auto key = at.text();
    const auto* from = at.place();
    at.skip();
    if (at.ok())
      each(key, {from, static_cast<std::size_t>(at.place() - from)});
  }
}

result<std::shared_ptr<const storage::rollback>> series_columns::rollback(const trial_row& of,
                                                                          const storage::reader& from) {
  static const auto nothing = std::make_shared<const storage::rollback>();
  if (of.runs.size() < 2)
    return nothing;
  std::shared_ptr<rollback_entry> one;
  {
    std::lock_guard lock{mutex_};
    if (rollbacks_.size() > most_trials)
      rollbacks_.clear();
    auto& place = rollbacks_[of.id.value];
    if (!place)
      place = std::make_shared<rollback_entry>();
    one = place;
  }
  std::lock_guard alone{one->mutex};
  if (!one->known)
    one->known = nothing;
  auto next = *one->known;
  auto read = next.read(of, one->up_to, from);
  if (!read)
    return read.error();
  one->up_to = *read;
  if (next != *one->known) // whoever made something of the former rule sees that it is another one
    one->known = std::make_shared<const storage::rollback>(std::move(next));
  return one->known;
}

result<std::shared_ptr<const series_column>> series_columns::column(const trial_row& of,
                                                                    const std::string& group,
                                                                    const std::string& metric,
                                                                    const storage::reader& from) {
  const key name{of.id.value, group, metric};
  std::shared_ptr<entry> one;
  {
    std::lock_guard lock{mutex_};
    auto& place = columns_[name];
    if (!place) {
      place = std::make_shared<entry>();
      recent_.push_front(name);
      place->used = recent_.begin();
    } else {
      recent_.splice(recent_.begin(), recent_, place->used);
    }
    one = place;
  }
  std::lock_guard alone{one->mutex};
  std::shared_ptr<series_column> points = one->points;
  std::size_t added = 0;
  for (bool more = true; more;) {
    auto rows = from.metrics(of.id, one->up_to, batch, group);
    if (!rows)
      return rows.error();
    if (!rows->empty() && points == one->points) // readers keep the column that they were given
      points = points.use_count() > 2 ? std::make_shared<series_column>(*points) : points;
    for (const auto& row : *rows) {
      one->up_to = row.row;
      if (auto y = number_of(row.metrics, metric)) {
        points->push_back({row.row, row.steps, row.at.time_since_epoch().count(),
                           static_cast<std::uint32_t>(row.run.value), *y});
        ++added;
      }
    }
    more = rows->size() == batch;
    one->points = points;
  }
  if (added > 0)
    forget_old(added);
  return std::shared_ptr<const series_column>(points);
}

void series_columns::forget_old(std::size_t added) {
  std::lock_guard lock{mutex_};
  points_ += added;
  while (points_ > most_points && recent_.size() > 1) {
    auto old = columns_.find(recent_.back());
    points_ -= std::min(points_, old->second->points->size());
    columns_.erase(old);
    recent_.pop_back();
  }
}

result<std::shared_ptr<const metric_summaries>>
series_columns::summaries(const trial_row& of, const storage::reader& from, const std::string& group) {
  auto gone = rollback(of, from);
  if (!gone)
    return gone.error();
  std::shared_ptr<summary_entry> one;
  {
    std::lock_guard lock{mutex_};
    if (summaries_.size() > most_trials)
      summaries_.clear();
    auto& place = summaries_[{of.id.value, group}];
    if (!place)
      place = std::make_shared<summary_entry>();
    one = place;
  }
  std::lock_guard alone{one->mutex};
  if (*gone != one->gone) {
    one->gone = *gone;
    one->up_to = 0;
    one->made = std::make_shared<metric_summaries>();
  }
  std::shared_ptr<metric_summaries> next;
  for (bool more = true; more;) {
    auto rows = from.metrics(of.id, one->up_to, batch, group);
    if (!rows)
      return rows.error();
    if (!rows->empty() && !next)
      next = std::make_shared<metric_summaries>(*one->made);
    for (const auto& row : *rows) {
      one->up_to = row.row;
      if (!(*gone)->archives(row))
        add(*next, row);
    }
    more = rows->size() == batch;
  }
  if (next)
    one->made = next;
  return one->made;
}

std::shared_ptr<const std::string> curve_texts::find(const name& of, const curve_source& made_of) const {
  std::lock_guard lock{mutex_};
  const auto at = all_.find(of);
  return at != all_.end() && at->second.points.is(made_of.points) && at->second.beside.is(made_of.beside) &&
             at->second.gone == made_of.gone
           ? at->second.text
           : nullptr;
}

void curve_texts::keep(const name& of, const curve_source& made_of, std::shared_ptr<const std::string> text) {
  std::lock_guard lock{mutex_};
  if (const auto old = all_.find(of); old != all_.end()) {
    bytes_ -= old->second.text->size();
    all_.erase(old);
  }
  if (bytes_ + text->size() > most_bytes) {
    all_.clear();
    bytes_ = 0;
  }
  bytes_ += text->size();
  all_.try_emplace(of, entry{column(made_of.points), column(made_of.beside), made_of.gone, std::move(text)});
}

std::vector<std::size_t> chosen_points(const std::vector<double>& y, std::size_t most) {
  std::vector<std::size_t> out;
  if (y.size() <= most) {
    for (std::size_t i = 0; i < y.size(); ++i)
      out.push_back(i);
    return out;
  }
  constexpr std::size_t of_each = 5;
  const auto buckets = std::max<std::size_t>(1, most / of_each);
  for (std::size_t b = 0; b < buckets; ++b) {
    const auto first = b * y.size() / buckets, last = (b + 1) * y.size() / buckets;
    constexpr auto none = static_cast<std::size_t>(-1);
    auto low = none, high = none, odd = none;
    for (auto i = first; i < last; ++i) {
      if (!std::isfinite(y[i]))
        odd = odd == none ? i : odd;
      else {
        low = low == none || y[i] < y[low] ? i : low;
        high = high == none || y[i] > y[high] ? i : high;
      }
    }
    std::vector<std::size_t> some;
    for (auto i : {first, last - 1, low, high, odd}) // takes the first of these where `most` is below five
      if (i != none && some.size() < most && std::find(some.begin(), some.end(), i) == some.end())
        some.push_back(i);
    std::sort(some.begin(), some.end());
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

result<std::vector<metric_name>> metric_names(std::string_view text) {
  std::vector<metric_name> all;
  for (const auto& one : list_elements(text)) {
    const auto dot = one.find('.');
    if (dot == one.npos || dot == 0)
      return error{errc::invalid, "'" + one.substr(0, 100) +
                                    "' does not name a metric; write GROUP.NAME, as validation.loss"};
    all.push_back({one.substr(0, dot), one.substr(dot + 1)});
  }
  return all;
}

value summaries_shape(const metric_summaries& known, const std::vector<metric_name>& wanted) {
  value out = value::object();
  for (const auto& one : wanted) {
    const auto group = known.find(one.group);
    if (group == known.end())
      continue;
    const auto found = group->second.find(one.metric);
    if (found == group->second.end() || found->second.kind != metric_kind::number)
      continue;
    const auto& s = found->second;
    out[one.group + "." + one.metric] = {{"last", s.last}, {"min", s.min}, {"max", s.max}};
  }
  return out;
}

result<value> summary_metrics(const trial_row& of, series_columns& columns, const storage::reader& from) {
  auto known = columns.summaries(of, from);
  if (!known)
    return known.error();
  value summary = value::object();
  for (const auto& [group, metrics] : **known) {
    if (group == profiler_group || metrics.empty())
      continue;
    auto& in = summary[group == "training"     ? "avg_metrics"
                       : group == "validation" ? "validation_metrics"
                                               : group];
    for (const auto& [name, one] : metrics) {
      auto& to = in[name];
      to = {{"type", one.type}, {"count", one.reports}};
      if (one.kind == metric_kind::number) {
        for (const auto& [key, number] : {std::pair{"min", one.min},
                                          {"max", one.max},
                                          {"sum", one.finite ? one.sum : nan},
                                          {"mean", one.mean()}})
          if (std::isfinite(number))
            to[key] = number;
        to["last"] = one.last;
      } else if (one.kind == metric_kind::text) {
        if (from_rfc3339(one.text))
          to["type"] = "date";
        to["last"] = one.text;
      } else if (!one.text.empty()) {
        if (auto last = parse_msgpack(one.text))
          to["last"] = std::move(*last);
      }
    }
  }
  return summary;
}

} // namespace troupe::api
