#include "model/config/scalar.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace troupe::config {
namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (auto word : words)
    if (text == word)
      return true;
  return false;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_float(std::string_view text) {
  std::size_t i = 0;
  auto digits = [&] {
    auto begin = i;
    while (i < text.size() && is_digit(text[i]))
      ++i;
    return i - begin;
  };
  if (i < text.size() && (text[i] == '+' || text[i] == '-'))
    ++i;
  auto before = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0 && before == 0)
      return false;
  } else if (before == 0) {
    return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-'))
      ++i;
    if (digits() == 0)
      return false;
  }
  return i == text.size();
}

/// Reads decimal, 0x, 0o, 0b, and octal with a leading 0, with a sign.
bool resolve_integer(node& out, std::string_view text) {
  bool minus = text.starts_with('-');
  if (minus || text.starts_with('+'))
    text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && one_of(text.substr(1, 1), {"x", "X"}))
    base = 16;
  else if (text.size() > 2 && text[0] == '0' && one_of(text.substr(1, 1), {"o", "O"}))
    base = 8;
  else if (text.size() > 2 && text[0] == '0' && one_of(text.substr(1, 1), {"b", "B"}))
    base = 2;
  if (base != 10)
    text.remove_prefix(2);
  else if (text.size() > 1 && text[0] == '0')
    base = 8;
  std::uint64_t size = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), size, base);
  if (fault != std::errc{} || end != text.data() + text.size() || text.empty())
    return false;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (size > most + (minus ? 1 : 0))
    return false;
  out.type = kind::integer;
  out.whole = minus ? static_cast<std::int64_t>(0 - size) : static_cast<std::int64_t>(size);
  return true;
}

} // namespace

bool resolve_number(node& out, std::string_view text) {
  if (text.empty())
    return false;
  char first = text[0];
  if (!is_digit(first) && first != '+' && first != '-' && first != '.')
    return false;
  if (one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) {
    out.type = kind::number;
    out.real = std::numeric_limits<double>::infinity();
    return true;
  }
  if (one_of(text, {"-.inf", "-.Inf", "-.INF"})) {
    out.type = kind::number;
    out.real = -std::numeric_limits<double>::infinity();
    return true;
  }
  if (one_of(text, {".nan", ".NaN", ".NAN"})) {
    out.type = kind::number;
    out.real = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  std::string plain;
  if (first != '_' && text.find('_') != std::string_view::npos) {
    for (char c : text)
      if (c != '_')
        plain += c;
    text = plain;
  }
  if (resolve_integer(out, text))
    return true;
  if (!looks_like_float(text))
    return false;
  if (text.starts_with('+'))
    text.remove_prefix(1);
  out.type = kind::number;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out.real);
  if (fault == std::errc::result_out_of_range) { // as strtod: infinite if too large, 0 if too small
    bool small = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    out.real =
      std::copysign(small ? 0.0 : std::numeric_limits<double>::infinity(), text[0] == '-' ? -1.0 : 1.0);
    return true;
  }
  return fault == std::errc{};
}

std::string resolve(node& out, std::string_view written, bool plain, std::string_view tag) {
  constexpr std::string_view core = "tag:yaml.org,2002:";
  if (tag == "!" || tag == "tag:yaml.org,2002:str" || (!plain && tag.empty())) {
    out.type = kind::string;
    out.text = written;
    return {};
  }
  if (!tag.empty() && !tag.starts_with(core))
    return "the tag '" + std::string(tag) + "' has no meaning here";
  auto want = tag.empty() ? std::string_view() : tag.substr(core.size());
  bool may_be_word =
    written.size() <= 5 &&
    (written.empty() || std::string_view("~nNtTfFyYoO").find(written[0]) != std::string_view::npos);
  if (may_be_word && one_of(written, {"", "~", "null", "Null", "NULL"}))
    out.type = kind::null;
  else if (may_be_word && one_of(written, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}))
    out.type = kind::boolean, out.flag = true;
  else if (may_be_word && one_of(written, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}))
    out.type = kind::boolean, out.flag = false;
  else if (!resolve_number(out, written))
    out.type = kind::string;
  if (want == "float" && out.is(kind::integer)) {
    out.type = kind::number;
    out.real = static_cast<double>(out.whole);
  }
  out.text = written;
  bool fits = want.empty() || (want == "int" && out.is(kind::integer)) ||
              (want == "float" && out.is(kind::number)) || (want == "bool" && out.is(kind::boolean)) ||
              (want == "null" && out.is(kind::null)) || (want == "timestamp" && out.is(kind::string));
  return fits ? std::string() : "'" + std::string(written) + "' is no !!" + std::string(want);
}

} // namespace troupe::config
