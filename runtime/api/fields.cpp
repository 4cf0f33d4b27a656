#include "runtime/api/fields.hpp"

#include "model/ids.hpp"
#include "runtime/api/http.hpp"

#include <charconv>
#include <cmath>

namespace troupe::api {
namespace {

const value no_object = value::object();
const value no_list = value::array();

} // namespace

fields::fields(const value& object, std::string where)
    : object_(object.is_object() ? object : no_object), where_(std::move(where)) {
  if (!object.is_object() && !object.is_null())
    bad_ = error{errc::invalid, (where_.empty() ? "the request" : where_) + " has to be a JSON object"};
}

const value* fields::get(const char* name) const {
  auto found = object_.find(name);
  if (found == object_.end())
    found = object_.find(to_snake(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool fields::has(const char* name) const { return get(name) != nullptr; }

void fields::fault(const char* name, const std::string& what) {
  if (!bad_)
    bad_ = error{errc::invalid, (where_.empty() ? "" : where_ + ".") + name + ": " + what};
}

void fields::need(const char* name) {
  if (!has(name))
    fault(name, "is missing");
}

std::string fields::text(const char* name, std::string otherwise) {
  const auto* x = get(name);
  if (!x)
    return otherwise;
  if (x->is_string())
    return x->get<std::string>();
  if (x->is_number_integer())
    return x->dump();
  fault(name, "expected text");
  return otherwise;
}

std::int64_t fields::number(const char* name, std::int64_t otherwise) {
  const auto* x = get(name);
  if (!x)
    return otherwise;
  if (x->is_number_unsigned() && x->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    fault(name, "is too large");
    return otherwise;
  }
  if (x->is_number_integer())
    return x->get<std::int64_t>();
  if (x->is_number_float()) {
    double d = x->get<double>();
    if (std::floor(d) == d && std::abs(d) < 9e15)
      return static_cast<std::int64_t>(d);
  }
  if (const auto* s = x->get_ptr<const std::string*>()) {
    std::int64_t n = 0;
    auto [end, bad] = std::from_chars(s->data(), s->data() + s->size(), n);
    if (bad == std::errc{} && end == s->data() + s->size())
      return n;
  }
  fault(name, "expected a whole number");
  return otherwise;
}

std::optional<double> fields::real(const char* name) {
  const auto* x = get(name);
  if (!x)
    return std::nullopt;
  if (auto d = number_in(*x))
    return d;
  if (const auto* s = x->get_ptr<const std::string*>()) {
    double d = 0;
    auto [end, bad] = std::from_chars(s->data(), s->data() + s->size(), d);
    if (bad == std::errc{} && end == s->data() + s->size())
      return d;
  }
  fault(name, "expected a number");
  return std::nullopt;
}

bool fields::flag(const char* name, bool otherwise) {
  const auto* x = get(name);
  if (!x)
    return otherwise;
  if (x->is_boolean())
    return x->get<bool>();
  fault(name, "expected true or false");
  return otherwise;
}

const value& fields::object(const char* name) {
  const auto* x = get(name);
  if (!x)
    return no_object;
  if (x->is_object())
    return *x;
  fault(name, "expected an object");
  return no_object;
}

const value& fields::list(const char* name) {
  const auto* x = get(name);
  if (!x)
    return no_list;
  if (x->is_array())
    return *x;
  fault(name, "expected a list");
  return no_list;
}

std::vector<std::uint64_t> fields::numbers_above_0(const char* name) {
  std::vector<std::uint64_t> out;
  for (const auto& one : list(name)) {
    const auto text = one.is_string() ? one.get<std::string>() : one.dump();
    const auto [number] = parse_id<experiment_id>(text);
    if (number == 0 || number > static_cast<std::uint64_t>(INT64_MAX))
      fault((name + ("[" + std::to_string(out.size()) + "]")).c_str(),
            "has to be a number above 0 and below 2^63, and is '" + text.substr(0, 50) + "'");
    out.push_back(number);
  }
  return out;
}

std::vector<std::string> fields::texts(const char* name) {
  std::vector<std::string> out;
  for (const auto& one : list(name))
    if (one.is_string())
      out.push_back(one);
    else
      fault(name, "expected a list of texts");
  return out;
}

result<value> parse_object(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == body.npos)
    return value::object();
  auto x = parse_json(body);
  if (!x)
    return error{errc::invalid, "the body is not JSON: " + x.error().what};
  if (!x->is_object())
    return error{errc::invalid, "the body has to be a JSON object"};
  return x;
}

} // namespace troupe::api
