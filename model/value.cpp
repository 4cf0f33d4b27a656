#include "model/value.hpp"

#include <cmath>
#include <limits>
#include <msgpack.hpp>

namespace troupe {
namespace {

constexpr std::size_t max_depth = 512;

/// Whether a copy is needed, in which NaN and infinities are strings.
bool has_odd_number(const value& x) {
  if (x.is_number_float())
    return !std::isfinite(x.get_ref<const double&>());
  if (x.is_structured())
    for (const auto& part : x)
      if (has_odd_number(part))
        return true;
  return false;
}

void name_odd_numbers(value& x) {
  if (x.is_number_float()) {
    double d = x.get<double>();
    if (std::isnan(d))
      x = "NaN";
    else if (std::isinf(d))
      x = d > 0 ? "Infinity" : "-Infinity";
  } else if (x.is_structured()) {
    for (auto& part : x)
      name_odd_numbers(part);
  }
}

auto depth_guard(bool& too_deep) {
  return [&too_deep](int depth, value::parse_event_t, value&) {
    too_deep = too_deep || depth > static_cast<int>(max_depth);
    return !too_deep;
  };
}

/// Makes the value that msgpack's parser meets. Facts and rows are full of values, and the parser of the JSON
/// library takes their bytes one by one.
class value_builder : public msgpack::null_visitor {
public:
  value made;
  bool too_deep = false;

  bool visit_nil() { return put(nullptr); }
  bool visit_boolean(bool x) { return put(x); }
  bool visit_positive_integer(std::uint64_t x) { return put(x); }
  /// Of a signed format, which may hold positive numbers too.
  bool visit_negative_integer(std::int64_t x) { return put(x); }
  bool visit_float32(float x) { return put(static_cast<double>(x)); }
  bool visit_float64(double x) { return put(x); }
  bool visit_str(const char* text, std::uint32_t size) {
    if (!in_key_)
      return put(std::string(text, size));
    auto& members = open_.back()->get_ref<value::object_t&>();
    place_ = &members.emplace_hint(members.end(), std::string(text, size), nullptr)->second;
    return true;
  }
  bool visit_bin(const char* bytes, std::uint32_t size) {
    return put(value::binary(std::vector<std::uint8_t>(bytes, bytes + size)));
  }
  bool visit_ext(const char* bytes, std::uint32_t size) { // the first byte is its type
    return put(
      value::binary(std::vector<std::uint8_t>(bytes + 1, bytes + size), static_cast<std::uint8_t>(*bytes)));
  }
  bool start_array(std::uint32_t) { return put(value::array()) && open(); }
  bool end_array() { return close(); }
  bool start_map(std::uint32_t) { return put(value::object()) && open(); }
  bool start_map_key() { return in_key_ = true; }
  bool end_map_key() {
    in_key_ = false;
    return true;
  }
  bool end_map() { return close(); }

private:
  bool put(value x) {
    too_deep = too_deep || open_.size() > max_depth;
    if (too_deep || in_key_) // a key has to be a string
      return false;
    if (open_.empty())
      place_ = &made;
    else if (open_.back()->is_array())
      place_ = &open_.back()->emplace_back();
    *place_ = std::move(x);
    return true;
  }
  bool open() {
    open_.push_back(place_);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  /// Arrays and objects around the value that comes next. None of them moves while it is in this list.
  std::vector<value*> open_;
  value* place_ = nullptr; ///< the value that was put last, or the member whose value comes next
  bool in_key_ = false;
};

} // namespace

std::string to_json(const value& x, int indent) {
  constexpr auto lenient = value::error_handler_t::replace;
  if (!has_odd_number(x))
    return x.dump(indent, ' ', false, lenient);
  value copy = x;
  name_odd_numbers(copy);
  return copy.dump(indent, ' ', false, lenient);
}

result<value> parse_json(std::string_view text) {
  try {
    bool too_deep = false;
    auto x = value::parse(text.begin(), text.end(), depth_guard(too_deep));
    if (too_deep)
      return error{errc::invalid, "JSON nested deeper than 512 levels"};
    return x;
  } catch (const value::exception& fault) {
    std::string_view what = fault.what();                      // after the fault's name, in brackets
    for (const char* quote : {"; last read: '", " parsing '"}) // what stands there may be a secret
      what = what.substr(0, what.find(quote));
    return error{errc::invalid,
                 std::string(what.substr(what.find(']') == what.npos ? 0 : what.find(']') + 2))};
  }
}

std::string to_msgpack(const value& x) {
  std::string bytes;
  value::to_msgpack(x, bytes);
  return bytes;
}

result<value> parse_msgpack(std::string_view bytes) {
  value_builder builds;
  std::size_t used = 0;
  bool whole = false;
  try {
    whole = msgpack::parse(bytes.data(), bytes.size(), used, builds);
  } catch (const msgpack::unpack_error& fault) { // a size that no value has
    return error{errc::corrupt, fault.what()};
  }
  if (builds.too_deep)
    return error{errc::invalid, "msgpack nested deeper than 512 levels"};
  if (!whole || used != bytes.size())
    return error{errc::corrupt, "not the msgpack bytes of one value"};
  return std::move(builds.made);
}

std::optional<double> number_in(const value& x) {
  if (x.is_number())
    return x.get<double>();
  if (const auto* text = x.get_ptr<const std::string*>()) {
    if (*text == "NaN" || *text == "Nan")
      return std::numeric_limits<double>::quiet_NaN();
    if (*text == "Infinity")
      return std::numeric_limits<double>::infinity();
    if (*text == "-Infinity")
      return -std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

} // namespace troupe
