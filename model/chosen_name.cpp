#include "model/chosen_name.hpp"

#include <algorithm>
#include <cctype>
#include <clocale>
#include <cwctype>

namespace troupe {
namespace {

/// The C library's locale C.UTF-8, which knows the cases of all scripts; never freed. Where it is missing,
/// only ASCII has cases.
locale_t cases() {
  static const locale_t made = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return made;
}

bool white(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0d) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x2060 || c == 0x3000 || c == 0xfeff;
}

bool controls(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || c == 0x61c ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void append(std::string& to, char32_t c) {
  const auto more = [&](int shift) { to += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xc0 | (c >> 6));
    more(0);
  } else if (c < 0x10000) {
    to += static_cast<char>(0xe0 | (c >> 12));
    more(6);
    more(0);
  } else {
    to += static_cast<char>(0xf0 | (c >> 18));
    more(12);
    more(6);
    more(0);
  }
}

} // namespace

std::optional<std::u32string> code_points(std::string_view utf8) {
  std::u32string out;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto first = static_cast<unsigned char>(utf8[i]);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (!length || i + length > utf8.size())
      return std::nullopt;
    char32_t c = length == 1 ? first : first & (0x7f >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(utf8[i + k]);
      if ((next & 0xc0) != 0x80)
        return std::nullopt;
      c = c << 6 | (next & 0x3f);
    }
    const bool longer_than_need = (length == 3 && c < 0x800) || (length == 4 && c < 0x10000);
    if (longer_than_need || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
      return std::nullopt;
    out += c;
    i += length;
  }
  return out;
}

bool is_blank(std::string_view utf8) {
  const auto text = code_points(utf8);
  return text && std::all_of(text->begin(), text->end(), white);
}

result<void> check_chosen_name(const std::string& what, std::string_view name, std::size_t most) {
  const auto text = code_points(name);
  if (!text || text->empty() || text->size() > most || std::all_of(text->begin(), text->end(), white) ||
      std::any_of(text->begin(), text->end(), controls))
    return error{errc::invalid, what + " has 1 to " + std::to_string(most) +
                                  " characters, not all blank and none a control character"};
  return {};
}

result<void> check_submitters_key(std::string_view key) {
  return key.empty() ? result<void>{} : check_chosen_name("the key", key, 255);
}

std::string in_one_line(std::string_view name) {
  const auto text = code_points(name);
  if (!text)
    return std::string(name);
  std::string out;
  for (const auto c : *text)
    append(out, controls(c) ? U' ' : c);
  const auto first = out.find_first_not_of(' ');
  return first == out.npos ? "" : out.substr(first, out.find_last_not_of(' ') - first + 1);
}

result<void> check_name_in_address(const std::string& what, std::string_view name) {
  if (name.find_first_of("/\\") != name.npos)
    return error{errc::invalid, what + " cannot have slashes"};
  if (name == "." || name == "..") // clients drop them from an address
    return error{errc::invalid, what + " cannot be . or .."};
  return {};
}

std::string case_folded(std::string_view utf8) {
  const auto text = code_points(utf8);
  if (!text)
    return std::string(utf8);
  std::string out;
  for (const auto c : *text) // up and down again: letters with two small forms, as sigma, become one
    append(out, cases()
                  ? static_cast<char32_t>(towlower_l(towupper_l(static_cast<wint_t>(c), cases()), cases()))
                : c < 0x80 ? static_cast<char32_t>(std::tolower(static_cast<int>(c)))
                           : c);
  return out;
}

} // namespace troupe
