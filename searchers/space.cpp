#include "searchers/space.hpp"

#include "searchers/portable_math.hpp"

#include "model/rng.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace troupe::searchers {
namespace {

/// Which of the n equal parts of [0, 1) `unit` falls in.
std::uint64_t cell(double unit, std::uint64_t n) {
  auto index = static_cast<std::uint64_t>(std::max(0.0, unit) * static_cast<double>(n));
  return std::min(index, n - 1);
}

std::string joined(const std::vector<std::string>& path) {
  std::string text;
  for (const auto& part : path)
    text += (text.empty() ? "" : ".") + part;
  return text;
}

/// Reads one hyperparameter object `{type: ...}`; each fault is named with its path.
class spec_reader {
public:
  spec_reader(const value& spec, const std::vector<std::string>& path, std::vector<std::string>& faults)
      : spec_(spec), where_("hyperparameters." + joined(path)), faults_(faults) {}

  void fault(const std::string& what) { faults_.push_back(where_ + ": " + what); }

  void allow(std::set<std::string> keys) {
    keys.insert("type");
    for (const auto& [key, unused] : spec_.items())
      if (!keys.contains(key))
        fault("unknown key `" + key + "`");
  }

  double number(const char* key) {
    auto it = spec_.find(key);
    if (it != spec_.end() && it->is_number() && std::isfinite(it->get<double>()))
      return it->get<double>();
    fault(std::string("`") + key + "` must be a finite number");
    return 0;
  }

  std::int64_t integer(const char* key) {
    auto it = spec_.find(key);
    if (it != spec_.end() && it->is_number_integer())
      return it->get<std::int64_t>();
    if (it != spec_.end() && it->is_number() && std::abs(it->get<double>()) < 0x1p53 &&
        it->get<double>() == std::floor(it->get<double>()))
      return static_cast<std::int64_t>(it->get<double>());
    fault(std::string("`") + key + "` must be an integer");
    return 0;
  }

  std::int64_t count() {
    auto it = spec_.find("count");
    if (it == spec_.end() || it->is_null())
      return 0;
    auto n = integer("count");
    if (n < 1)
      fault("`count` must be at least 1");
    return std::max<std::int64_t>(n, 0);
  }

private:
  const value& spec_;
  std::string where_;
  std::vector<std::string>& faults_;
};

} // namespace

std::uint64_t dimension::values() const {
  switch (kind) {
  case axis::categorical:
    return choices.size();
  case axis::integer:
    return static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) + 1;
  default:
    return 0;
  }
}

value dimension::at(double coordinate) const {
  switch (kind) {
  case axis::categorical:
    return choices[std::min(static_cast<std::size_t>(std::max(0.0, coordinate)), choices.size() - 1)];
  case axis::integer:
    return least + static_cast<std::int64_t>(cell(coordinate, values()));
  case axis::real:
    return std::clamp(low + (high - low) * coordinate, low, high);
  case axis::logarithmic:
    return portable_pow(base, std::clamp(low + (high - low) * coordinate, low, high));
  }
  return nullptr;
}

double dimension::settle(double coordinate) const {
  if (kind == axis::integer) {
    auto n = values();
    return (static_cast<double>(cell(coordinate, n)) + 0.5) / static_cast<double>(n);
  }
  if (kind == axis::categorical)
    return std::floor(std::clamp(coordinate, 0.0, static_cast<double>(choices.size() - 1)));
  return std::clamp(coordinate, 0.0, 1.0);
}

double dimension::coordinate_of(const value& x) const {
  switch (kind) {
  case axis::categorical: {
    auto it = std::find(choices.begin(), choices.end(), x);
    return it == choices.end() ? 0.0 : static_cast<double>(it - choices.begin());
  }
  case axis::integer:
    return x.is_number()
             ? (x.get<double>() - static_cast<double>(least) + 0.5) / static_cast<double>(values())
             : 0.5;
  case axis::real:
    return x.is_number() ? (x.get<double>() - low) / (high - low) : 0.5;
  case axis::logarithmic:
    return x.is_number() && x.get<double>() > 0
             ? (portable_log(x.get<double>()) / portable_log(base) - low) / (high - low)
             : 0.5;
  }
  return 0.5;
}

std::string dimension::name() const { return joined(path); }

std::uint64_t dimension::grid_count() const {
  switch (kind) {
  case axis::categorical:
    return choices.size();
  case axis::integer:
    return values() == 0 ? static_cast<std::uint64_t>(count)
                         : std::min(static_cast<std::uint64_t>(count), values());
  default:
    return static_cast<std::uint64_t>(count);
  }
}

value dimension::grid_value(std::uint64_t index) const {
  if (kind == axis::categorical)
    return choices[index];
  auto n = grid_count();
  double a = kind == axis::integer ? static_cast<double>(least) : low;
  double b = kind == axis::integer ? static_cast<double>(most) : high;
  double x = n == 1 ? (a + b) / 2 : a + static_cast<double>(index) * (b - a) / static_cast<double>(n - 1);
  if (kind == axis::integer)
    return static_cast<std::int64_t>(std::round(x));
  return kind == axis::real ? x : portable_pow(base, x);
}

space space::parse(const value& hyperparameters, std::vector<std::string>& faults) {
  space s;
  if (hyperparameters.is_null())
    return s;
  if (!hyperparameters.is_object()) {
    faults.push_back("hyperparameters: must be an object of names and values or ranges");
    return s;
  }
  std::vector<std::string> path;
  for (const auto& [name, spec] : hyperparameters.items()) {
    path.push_back(name);
    s.add(spec, path, s.skeleton_[name], faults);
    path.pop_back();
  }
  return s;
}

void space::add(const value& spec, std::vector<std::string>& path, value& skeleton,
                std::vector<std::string>& faults) {
  if (path.size() > 64) {
    faults.push_back("hyperparameters." + joined(path) + ": nested deeper than 64 levels");
    return;
  }
  if (!spec.is_object()) {
    skeleton = spec;
    return;
  }
  // An object whose `type` is itself a hyperparameter object is a nested space with a member `type`.
  if (!spec.contains("type") || spec["type"].is_object()) {
    skeleton = value::object();
    for (const auto& [name, inner] : spec.items()) {
      path.push_back(name);
      add(inner, path, skeleton[name], faults);
      path.pop_back();
    }
    return;
  }
  spec_reader in(spec, path, faults);
  auto type = spec["type"].is_string() ? spec["type"].get<std::string>() : std::string{};
  dimension d;
  d.path = path;
  if (type == "const") {
    in.allow({"val"});
    if (!spec.contains("val"))
      in.fault("a const needs `val`");
    else
      skeleton = spec["val"];
    return;
  }
  if (type == "categorical") {
    in.allow({"vals"});
    d.kind = axis::categorical;
    if (!spec.contains("vals") || !spec["vals"].is_array() || spec["vals"].empty())
      in.fault("a categorical needs `vals`, a list of at least one value");
    else
      d.choices = spec["vals"].get<std::vector<value>>();
  } else if (type == "int") {
    in.allow({"minval", "maxval", "count"});
    d.kind = axis::integer;
    d.least = in.integer("minval");
    d.most = in.integer("maxval");
    d.count = in.count();
    if (d.least >= d.most)
      in.fault("`minval` must be less than `maxval`");
    else if (d.values() == 0 || d.values() > (std::uint64_t{1} << 62))
      in.fault("the range of an int must be below 2^62");
  } else if (type == "double" || type == "log") {
    d.kind = type == "log" ? axis::logarithmic : axis::real;
    in.allow(type == "log" ? std::set<std::string>{"minval", "maxval", "count", "base"}
                           : std::set<std::string>{"minval", "maxval", "count"});
    d.low = in.number("minval");
    d.high = in.number("maxval");
    d.count = in.count();
    if (type == "log" && spec.contains("base") && !spec["base"].is_null())
      d.base = in.number("base");
    if (!(d.low < d.high))
      in.fault("`minval` must be less than `maxval`");
    if (!(d.base > 0))
      in.fault("`base` must be above 0");
  } else {
    in.fault("unknown type " + to_json(spec["type"]) + "; one of const, categorical, int, double, log");
    return;
  }
  dimensions_.push_back(std::move(d));
}

value space::assemble(std::vector<value> values) const {
  value sample = skeleton_;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    value* at = &sample;
    for (const auto& part : dimensions_[i].path)
      at = &(*at)[part];
    *at = std::move(values[i]);
  }
  return sample;
}

value space::assemble(std::span<const double> coordinates) const {
  value sample = skeleton_;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    value* at = &sample;
    for (const auto& part : dimensions_[i].path)
      at = &(*at)[part];
    *at = dimensions_[i].at(coordinates[i]);
  }
  return sample;
}

point space::locate(const value& hparams) const {
  point p;
  for (const auto& d : dimensions_) {
    const value* at = &hparams;
    for (const auto& part : d.path)
      if (auto it = at->find(part); at->is_object() && it != at->end())
        at = &*it;
    p.push_back(d.settle(d.coordinate_of(*at)));
  }
  return p;
}

double space::sample_dimension(std::size_t index, std::uint64_t bits) const {
  const auto& d = dimensions_[index];
  auto n = d.values();
  if (n == 0)
    return unit(bits);
  auto k = static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
  return d.categorical() ? static_cast<double>(k) : (static_cast<double>(k) + 0.5) / static_cast<double>(n);
}

point space::sample(std::uint64_t seed, std::uint64_t stream, std::uint64_t trial,
                    std::uint64_t attempt) const {
  point p(dimensions_.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    p[i] = sample_dimension(i, random_bits(seed, stream, trial, i, attempt));
  return p;
}

std::uint64_t space::grid_size() const {
  unsigned __int128 n = 1;
  for (const auto& d : dimensions_) {
    n *= d.grid_count();
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return 0;
  }
  return static_cast<std::uint64_t>(n);
}

value space::grid_point(std::uint64_t index) const {
  std::vector<value> values(dimensions_.size());
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    auto n = dimensions_[i].grid_count();
    values[i] = dimensions_[i].grid_value(index % n);
    index /= n;
  }
  return assemble(std::move(values));
}

} // namespace troupe::searchers
