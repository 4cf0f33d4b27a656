#include "model/config/schema.hpp"
#include "model/config/complete.hpp"
#include "model/config/shapes.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::config {

bool key::is_forbidden() const { return !nullable && what->kinds == bit(kind::null); }

namespace {

std::size_t name_hash(std::string_view name) {
  if (name.empty())
    return 0;
  auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(name[i])); };
  return name.size() * 7 + at(0) * 31 + at(name.size() / 2) * 11 + at(name.size() - 1);
}

} // namespace

const key* shape::find(std::string_view wanted) const {
  if (places.empty()) {
    for (const auto& k : keys)
      if (k.name == wanted)
        return &k;
    return nullptr;
  }
  auto mask = places.size() - 1;
  for (auto i = name_hash(wanted) & mask; places[i] != 0; i = (i + 1) & mask)
    if (const auto& k = keys[places[i] - 1u]; k.name == wanted)
      return &k;
  return nullptr;
}

const member* shape::member_named(std::string_view wanted) const {
  for (const auto& m : members)
    if (m.value == wanted)
      return &m;
  return nullptr;
}

namespace {

template <class Text>
const shape& narrowed_by(const shape& s, kind k, const Text& discriminator_text) {
  if (!s.alternatives.empty()) {
    for (const auto* one : s.alternatives)
      if (one->takes(k))
        return *one;
    return s;
  }
  if (!s.members.empty())
    if (auto text = discriminator_text())
      if (const auto* m = s.member_named(*text))
        return *m->what;
  return s;
}

kind kind_of(const value& x) {
  switch (x.type()) {
  case value::value_t::boolean:
    return kind::boolean;
  case value::value_t::number_integer:
  case value::value_t::number_unsigned:
    return kind::integer;
  case value::value_t::number_float: {
    double d = x.get<double>();
    return d == std::trunc(d) && std::abs(d) < 0x1p63 ? kind::integer : kind::number;
  }
  case value::value_t::string:
    return kind::string;
  case value::value_t::array:
    return kind::list;
  case value::value_t::object:
    return kind::map;
  default:
    return kind::null;
  }
}

} // namespace

const shape& narrowed(const shape& s, const node& x) {
  return narrowed_by(s, x.is_integer() ? kind::integer : x.type, [&]() -> std::optional<std::string_view> {
    const auto* found = x.find(s.discriminator);
    if (!found || !found->is(kind::string))
      return std::nullopt;
    return found->text;
  });
}

const shape& narrowed(const shape& s, const value& x) {
  return narrowed_by(s, kind_of(x), [&]() -> std::optional<std::string_view> {
    if (!x.is_object())
      return std::nullopt;
    auto found = x.find(s.discriminator);
    if (found == x.end() || !found->is_string())
      return std::nullopt;
    return found->get_ref<const std::string&>();
  });
}

schema_table::schema_table() {
  add_lengths(*this);
  add_hyperparameters(*this);
  add_policies(*this);
  add_searchers(*this);
  add_storage(*this);
  add_environment(*this);
  add_resources(*this);
  add_integrations(*this);
  add_experiment(*this);
  add_cluster(*this);
  add_master_and_agent(*this);
  add_cluster_file(*this);
  finish();
}

namespace {

/// Calls `visit` with every shape that `s` is made of.
template <class Visit>
void each_part(const shape& s, Visit visit) {
  for (const auto& k : s.keys)
    visit(*k.what);
  for (const auto& m : s.members)
    visit(*m.what);
  for (const auto* one : s.alternatives)
    visit(*one);
  if (s.items)
    visit(*s.items);
  if (s.values)
    visit(*s.values);
}

bool lacks_itself(const shape& s) {
  return std::any_of(s.keys.begin(), s.keys.end(), [](const key& k) { return k.needed == need::to_run; }) ||
         std::any_of(s.rules.begin(), s.rules.end(), [](const rule& r) { return r.level == need::to_run; });
}

bool fills_itself(const shape& s) {
  return !s.standard.is_null() || std::any_of(s.keys.begin(), s.keys.end(), [](const key& k) {
    return !k.ignored && !k.quiet && k.fallback.has_value();
  });
}

void index_keys(shape& s) {
  TROUPE_ASSERT(s.keys.size() < 255);
  std::size_t size = 4;
  while (size < 2 * s.keys.size() + 1)
    size *= 2;
  s.places.assign(size, 0);
  for (std::size_t n = 0; n < s.keys.size(); ++n) {
    auto i = name_hash(s.keys[n].name) & (size - 1);
    while (s.places[i] != 0)
      i = (i + 1) & (size - 1);
    s.places[i] = static_cast<std::uint8_t>(n + 1);
  }
}

} // namespace

void schema_table::finish() {
  for (auto& s : shapes_) {
    index_keys(s);
    s.may_lack = lacks_itself(s);
    s.may_fill = fills_itself(s);
  }
  for (bool changed = true; changed;) { // shapes may hold themselves
    changed = false;
    for (auto& s : shapes_)
      each_part(s, [&](const shape& part) {
        changed = changed || (part.may_lack && !s.may_lack) || (part.may_fill && !s.may_fill);
        s.may_lack = s.may_lack || part.may_lack;
        s.may_fill = s.may_fill || part.may_fill;
      });
  }
  for (auto& s : shapes_)
    for (auto& k : s.keys)
      if (k.fallback && !k.fallback->is_null()) {
        auto whole = *k.fallback;
        normalize(whole, *k.what);
        fill_defaults(whole, *k.what);
        k.filled = std::move(whole);
      }
}

shape& schema_table::make(std::string name) {
  auto& made = shapes_.emplace_back();
  if (!name.empty())
    named_[name] = &made;
  made.name = std::move(name);
  return made;
}

shape_ref schema_table::find(std::string_view name) const {
  auto found = named_.find(name);
  return found == named_.end() ? nullptr : found->second;
}

shape_ref schema_table::at(std::string_view name) const {
  auto found = find(name);
  TROUPE_ASSERT(found != nullptr);
  return found;
}

const schema_table& schemas() {
  static const schema_table table;
  return table;
}

namespace {

shape& of_kinds(schema_table& t, unsigned kinds) {
  auto& s = t.make();
  s.kinds = kinds;
  return s;
}

} // namespace

shape_ref anything(schema_table& t) {
  auto& s = of_kinds(t, 0);
  s.open = true;
  return &s;
}
shape_ref text(schema_table& t) { return &of_kinds(t, text_bit); }
shape_ref boolean(schema_table& t) { return &of_kinds(t, flag_bit); }
shape_ref any_map(schema_table& t) {
  auto& s = of_kinds(t, map_bit);
  s.open = true;
  s.merge = merging::by_key;
  return &s;
}

shape_ref integer(schema_table& t, range r) {
  auto& s = of_kinds(t, whole_bit);
  s.least = r.least, s.above = r.above, s.most = r.most;
  return &s;
}

shape_ref number(schema_table& t, range r) {
  auto& s = of_kinds(t, number_bit | whole_bit);
  s.least = r.least, s.above = r.above, s.most = r.most;
  return &s;
}

shape_ref one_of(schema_table& t, std::vector<value> allowed, std::string hint) {
  auto& s = of_kinds(t, text_bit);
  s.allowed = std::move(allowed);
  s.allowed_hint = std::move(hint);
  return &s;
}

shape_ref list_of(schema_table& t, shape_ref items) {
  auto& s = of_kinds(t, list_bit);
  s.items = items;
  return &s;
}

shape_ref map_of(schema_table& t, shape_ref values) {
  auto& s = of_kinds(t, map_bit);
  s.values = values;
  s.merge = merging::by_key;
  return &s;
}

shape_ref either(schema_table& t, std::vector<shape_ref> alternatives, std::string name) {
  auto& s = t.make(std::move(name));
  for (const auto* one : alternatives)
    s.kinds |= one->kinds;
  s.alternatives = std::move(alternatives);
  return &s;
}

key given(std::string name, shape_ref what, value fallback, std::string doc, std::string unit) {
  key k;
  k.name = std::move(name);
  k.what = what;
  k.fallback = std::move(fallback);
  k.doc = std::move(doc);
  k.unit = std::move(unit);
  return k;
}

key unset(std::string name, shape_ref what, std::string doc, std::string unit) {
  return given(std::move(name), what, nullptr, std::move(doc), std::move(unit));
}

key required(std::string name, shape_ref what, std::string doc, std::string unit) {
  auto k = unset(std::move(name), what, std::move(doc), std::move(unit));
  k.fallback.reset();
  k.needed = need::always;
  k.nullable = false;
  return k;
}

key to_run(key k) {
  k.needed = need::to_run;
  return k;
}

key quiet(key k) {
  k.quiet = true;
  return k;
}

key ignored(key k) {
  k.ignored = k.quiet = true;
  return k;
}

key native(key k) {
  k.since = "troupe";
  k.quiet = true;
  return k;
}

} // namespace troupe::config
