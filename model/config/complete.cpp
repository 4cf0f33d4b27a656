#include "model/config/complete.hpp"

#include "model/config/merge.hpp"

#include <cmath>

namespace troupe::config {
namespace {

bool is_hyperparameter(const shape& s) { return s.merge == merging::hyperparameter; }

void normalize_hyperparameter(value& x) {
  if (!x.is_object()) {
    auto constant = value::object();
    constant["type"] = "const";
    constant["val"] = std::move(x);
    x = std::move(constant);
    return;
  }
  auto type = x.find("type");
  if (type == x.end()) {
    for (auto& [name, part] : x.items())
      normalize_hyperparameter(part);
    return;
  }
  static const auto& kinds = *schemas().at("hyperparameter")->alternatives.front();
  if (type->is_string())
    if (const auto* kind = kinds.member_named(type->get_ref<const std::string&>()))
      normalize(x, *kind->what);
}

void to_integer(value& x) {
  if (x.is_number_float() && x.get<double>() == std::trunc(x.get<double>()) &&
      std::abs(x.get<double>()) < 0x1p63)
    x = static_cast<std::int64_t>(x.get<double>());
}

bool only_integers(const shape& s) { return s.takes(kind::integer) && !s.takes(kind::number); }

void normalize_map(value& x, const shape& s) {
  auto& entries = x.get_ref<value::object_t&>();
  for (auto it = entries.begin(); it != entries.end();) {
    const auto* k = s.find(it->first);
    if (k && (k->ignored || (it->second.is_null() && k->nullable && k->fallback))) {
      it = entries.erase(it);
      continue;
    }
    if (k)
      normalize(it->second, *k->what);
    else if (s.values)
      normalize(it->second, *s.values);
    ++it;
  }
}

} // namespace

void normalize(value& x, const shape& s) {
  if (is_hyperparameter(s)) {
    if (s.name == "hyperparameters") {
      if (x.is_object())
        for (auto& [name, part] : x.items())
          normalize_hyperparameter(part);
    } else {
      normalize_hyperparameter(x);
    }
    return;
  }
  if (s.shim)
    s.shim(x);
  const auto& one = narrowed(s, x);
  if (&one != &s)
    return normalize(x, one);
  if (x.is_object())
    normalize_map(x, s);
  else if (x.is_array() && s.items)
    for (auto& item : x)
      normalize(item, *s.items);
  else if (only_integers(s))
    to_integer(x);
}

void fill_defaults(value& x, const shape& s) {
  if (!s.may_fill)
    return;
  const auto& one = narrowed(s, x);
  if (&one != &s)
    return fill_defaults(x, one);
  if (x.is_array() && !s.standard.is_null())
    x = merged(std::move(x), s.standard, s);
  if (x.is_array() && s.items)
    for (auto& item : x)
      fill_defaults(item, *s.items);
  if (!x.is_object() || is_hyperparameter(s))
    return;
  for (const auto& k : s.keys) {
    if (k.ignored)
      continue;
    auto found = x.find(k.name);
    if (found == x.end() || (found->is_null() && k.nullable)) {
      if (k.quiet || !k.fallback)
        continue;
      auto& made = x[k.name];
      made = k.filled ? *k.filled : *k.fallback;
      if (!made.is_null() && !k.filled) {
        normalize(made, *k.what);
        fill_defaults(made, *k.what);
      }
    } else {
      fill_defaults(*found, *k.what);
    }
  }
}

void fill_nulls(value& x, const shape& s) {
  const auto& one = narrowed(s, x);
  if (&one != &s)
    return fill_nulls(x, one);
  if (x.is_array() && s.items)
    for (auto& item : x)
      fill_nulls(item, *s.items);
  if (!x.is_object() || is_hyperparameter(s))
    return;
  for (const auto& k : s.keys) {
    auto found = x.find(k.name);
    if (found != x.end())
      fill_nulls(*found, *k.what);
    else if (!k.ignored && !k.quiet && k.fallback)
      x[k.name] = nullptr;
  }
}

} // namespace troupe::config
