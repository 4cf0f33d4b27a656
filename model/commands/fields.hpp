#pragma once
// The fields of a command. Each is a member of a struct with a name, a sentence and limits, given once. The
// list of fields gives reading with exact errors, writing, the JSON schema and the rows of documents.
//
//   struct trial_kill {
//     trial_id id;
//     static constexpr auto fields() { return std::tuple{need("id", &trial_kill::id, "number of the trial")};
//     }
//   };

#include "model/ids.hpp"
#include "model/result.hpp"
#include "model/value.hpp"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::commands {

/// Bytes that are not text: binary in a value.
struct bytes {
  std::string held;
  friend bool operator==(const bytes&, const bytes&) = default;
};

enum class shape { any, object, list }; ///< of a field that is a value

/// Limits of one field; the documents show them.
struct field_rules {
  const char* name = "";
  const char* doc = "";
  bool required = false;
  double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
  const char* one_of = nullptr; ///< "error, warning, info"
  shape as = shape::any;
};

template <class C, class T>
struct field : field_rules {
  T C::*at;
  using type = T;
  constexpr field(field_rules rules, T C::*member) : field_rules(rules), at(member) {}
  constexpr field between(double from, double to) const {
    auto out = *this;
    out.least = from;
    out.most = to;
    return out;
  }
  constexpr field one_of_these(const char* choices) const {
    auto out = *this;
    out.one_of = choices;
    return out;
  }
  constexpr field an_object() const {
    auto out = *this;
    out.as = shape::object;
    return out;
  }
  constexpr field a_list() const {
    auto out = *this;
    out.as = shape::list;
    return out;
  }
};

template <class C, class T>
constexpr auto need(const char* name, T C::*at, const char* doc) {
  return field<C, T>({name, doc, true}, at);
}
/// May be missing: then the struct's own default holds.
template <class C, class T>
constexpr auto maybe(const char* name, T C::*at, const char* doc) {
  return field<C, T>({name, doc, false}, at);
}

template <class T>
concept with_fields = requires {
  T::fields();
};

/// How strictly fields are read.
struct reading {
  bool numbers_as_text =
    false; ///< whether text that reads as a number, flag or object becomes one, as where it was typed by hand
  bool known_only = false; ///< whether an unknown field is an error; otherwise it is ignored, because a newer
                           ///< peer may send it
};

namespace detail {

/// What is wrong: the place inside the field, and what was expected there.
struct fault {
  std::string path, expected, given;
};
using outcome = std::optional<fault>;

outcome take(value& from, std::string& to, const field_rules& rules, reading how);
outcome take(value& from, bool& to, const field_rules& rules, reading how);
outcome take(value& from, double& to, const field_rules& rules, reading how);
outcome take(value& from, std::int64_t& to, const field_rules& rules, reading how);
outcome take(value& from, std::uint64_t& to, const field_rules& rules, reading how);
outcome take(value& from, value& to, const field_rules& rules, reading how);
outcome take(value& from, bytes& to, const field_rules& rules, reading how);
fault wrong(const value& given, std::string expected, std::string path = {});
error error_of(const char* command, const char* field, const fault& what);
error missing(const char* command, const field_rules& field);
error unknown_field(const char* command, const std::string& given, const std::vector<const char*>& known);

inline outcome take(value& from, int& to, const field_rules& rules, reading how) {
  std::int64_t wide = 0;
  auto within = rules;
  within.least = std::max(rules.least, -2147483648.0);
  within.most = std::min(rules.most, 2147483647.0);
  auto no = take(from, wide, within, how);
  if (!no)
    to = static_cast<int>(wide);
  return no;
}
template <class Tag>
outcome take(value& from, strong_id<Tag>& to, const field_rules&, reading how) {
  return take(from, to.value, field_rules{}, how);
}
template <with_fields C>
outcome take(value& from, C& to, const field_rules& rules, reading how);
template <class T>
outcome take(value& from, std::vector<T>& to, const field_rules& rules, reading how);
template <class T>
outcome take(value& from, std::map<std::string, T>& to, const field_rules& rules, reading how);
template <class T>
outcome take(value& from, std::optional<T>& to, const field_rules& rules, reading how) {
  if (from.is_null()) {
    to.reset();
    return {};
  }
  return take(from, to.emplace(), rules, how);
}
template <class T>
outcome take(value& from, std::vector<T>& to, const field_rules& rules, reading how) {
  if (!from.is_array())
    return wrong(from, "a list");
  to.clear();
  for (auto& one : from)
    if (auto no = take(one, to.emplace_back(), rules, how)) {
      no->path = "[" + std::to_string(to.size() - 1) + "]" + no->path;
      return no;
    }
  return {};
}
template <class T>
outcome take(value& from, std::map<std::string, T>& to, const field_rules& rules, reading how) {
  if (!from.is_object())
    return wrong(from, "an object");
  to.clear();
  for (auto& [key, one] : from.items())
    if (auto no = take(one, to[key], rules, how)) {
      no->path = "." + key + no->path;
      return no;
    }
  return {};
}

template <class T>
constexpr bool takes_null = std::is_same_v<T, value>;
template <class T>
constexpr bool takes_null<std::optional<T>> = true;

/// Reads one member; returns false and the error where it is wrong.
template <class C, class F>
std::optional<fault> take_field(value& object, C& out, const F& f, reading how) {
  auto it = object.find(f.name);
  if (it == object.end() || (it->is_null() && !takes_null<typename F::type>))
    return f.required ? outcome{fault{"", "", ""}} : outcome{};
  auto no = take(*it, out.*f.at, f, how);
  if (no && no->expected.empty()) // a member of a member is missing
    no->expected = "there";
  return no;
}

template <with_fields C>
outcome take(value& from, C& to, const field_rules&, reading how) {
  if (!from.is_object())
    return wrong(from, "an object");
  outcome first;
  std::apply(
    [&](const auto&... f) {
      (void)((((first = take_field(from, to, f, how))
                 ? (first->path = "." + std::string(f.name) + first->path, true)
                 : false)) ||
             ...);
    },
    C::fields());
  return first;
}

// ---- writing

inline value give(const std::string& x) { return x; }
inline value give(std::string&& x) { return std::move(x); }
inline value give(bool x) { return x; }
inline value give(double x) { return x; }
inline value give(int x) { return x; }
inline value give(std::int64_t x) { return x; }
inline value give(std::uint64_t x) { return x; }
inline value give(const value& x) { return x; }
inline value give(value&& x) { return std::move(x); }
value give(const bytes& x);
template <class Tag>
value give(strong_id<Tag> x) {
  return x.value;
}
template <with_fields C>
value give(C x);
template <class T>
value give(std::map<std::string, T> x);
template <class T>
value give(std::vector<T> x) {
  value out = value::array();
  for (auto& one : x)
    out.push_back(give(std::move(one)));
  return out;
}
template <class T>
value give(std::map<std::string, T> x) {
  value out = value::object();
  for (auto& [key, one] : x)
    out[key] = give(std::move(one));
  return out;
}
template <class T>
void give_field(value& to, const char* name, T&& x) {
  to[name] = give(std::forward<T>(x));
}
template <class T>
void give_field(value& to, const char* name, std::optional<T>&& x) {
  if (x)
    to[name] = give(std::move(*x));
}
template <with_fields C>
value give(C x) {
  value out = value::object();
  std::apply([&](const auto&... f) { (give_field(out, f.name, std::move(x.*f.at)), ...); }, C::fields());
  return out;
}

// ---- schema: for OpenAPI 3.0, and with a word for documents

struct described {
  value schema;
  const char* word; ///< "text", "number", "flag", "object", "list"
};
described describe(const std::string*, const field_rules&);
described describe(const bool*, const field_rules&);
described describe(const double*, const field_rules&);
described describe(const std::int64_t*, const field_rules&);
described describe(const std::uint64_t*, const field_rules&);
described describe(const int*, const field_rules&);
described describe(const value*, const field_rules&);
described describe(const bytes*, const field_rules&);
template <class Tag>
described describe(const strong_id<Tag>*, const field_rules& rules) {
  return describe(static_cast<const std::uint64_t*>(nullptr), rules);
}
template <with_fields C>
described describe(const C*, const field_rules&);
template <class T>
described describe(const std::vector<T>*, const field_rules& rules);
template <class T>
described describe(const std::map<std::string, T>*, const field_rules& rules);
template <class T>
described describe(const std::optional<T>*, const field_rules& rules) {
  return describe(static_cast<const T*>(nullptr), rules);
}
template <class T>
described describe(const std::vector<T>*, const field_rules& rules) {
  return {{{"type", "array"}, {"items", describe(static_cast<const T*>(nullptr), rules).schema}}, "list"};
}
template <class T>
described describe(const std::map<std::string, T>*, const field_rules& rules) {
  return {
    {{"type", "object"}, {"additionalProperties", describe(static_cast<const T*>(nullptr), rules).schema}},
    "object"};
}

} // namespace detail

/// One field as documents and clients show it.
struct field_row {
  field_rules rules;
  std::string type; ///< "text", "number", "flag", "object", "list", "any"
  value schema;
};

template <with_fields C>
std::vector<field_row> field_rows() {
  std::vector<field_row> out;
  std::apply(
    [&](const auto&... f) {
      (
        [&] {
          using T = typename std::decay_t<decltype(f)>::type;
          auto what = detail::describe(static_cast<const T*>(nullptr), f);
          out.push_back({f, what.word, std::move(what.schema)});
        }(),
        ...);
    },
    C::fields());
  return out;
}

/// The schema {type: object, properties, required} of OpenAPI 3.0.
value schema_of(const std::vector<field_row>& rows);
template <with_fields C>
value schema_of() {
  return schema_of(field_rows<C>());
}

namespace detail {
template <with_fields C>
described describe(const C*, const field_rules&) {
  return {schema_of<C>(), "object"};
}
} // namespace detail

/// Reads the struct from `from`; `what` names the command or body. Fails with errc::invalid, and names the
/// field and what it must be.
template <with_fields C>
result<C> read(const char* what, value from, reading how = {}) {
  if (from.is_null())
    from = value::object();
  if (!from.is_object())
    return error{errc::invalid, std::string(what) + ": the fields have to be an object"};
  C out;
  std::optional<error> no;
  std::apply(
    [&](const auto&... f) {
      if (how.known_only)
        for (const auto& [key, x] : from.items())
          if (!((key == f.name) || ...)) {
            no = detail::unknown_field(what, key, {f.name...});
            return;
          }
      (void)([&] {
        auto fault = detail::take_field(from, out, f, how);
        if (!fault)
          return false;
        no = fault->expected.empty() ? detail::missing(what, f) : detail::error_of(what, f.name, *fault);
        return true;
      }() || ...);
    },
    C::fields());
  return no ? result<C>(std::move(*no)) : result<C>(std::move(out));
}

/// The fields by name; leaves out members without a value.
template <with_fields C>
value write(C x) {
  return detail::give(std::move(x));
}

} // namespace troupe::commands
