#include "runtime/cli/terminal.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::cli {
namespace {

bool locale_is_utf8() { // decides as setlocale does, without its cost
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* text = std::getenv(name); text && *text) {
      std::string lower(text);
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
    }
  return false;
}

/// The next letter and its bytes; a broken sequence counts as one letter of one byte.
char32_t next_letter(std::string_view text, std::size_t& bytes) {
  auto first = static_cast<unsigned char>(text[0]);
  std::size_t want = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
  bytes = 1;
  if (want == 0 || want > text.size())
    return 0xfffd;
  char32_t letter = want == 1 ? first : first & (0xff >> (want + 1));
  for (std::size_t i = 1; i < want; ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xc0) != 0x80)
      return 0xfffd;
    letter = letter << 6 | (c & 0x3f);
  }
  bytes = want;
  return letter;
}

int columns_of(char32_t c) {
  if (c == 0 || (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f) || (c >= 0xfe00 && c <= 0xfe0f))
    return 0;
  bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
              (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
              (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1f64f) ||
              (c >= 0x20000 && c <= 0x3fffd);
  return wide ? 2 : 1;
}

} // namespace

colour_when colour_when_of(std::string_view text) {
  return text == "always"  ? colour_when::always
         : text == "never" ? colour_when::never
                           : colour_when::automatic;
}

terminal terminal_of(int fd, colour_when colours, bool no_colour, bool force) {
  terminal t;
  const char* kind = std::getenv("TERM");
  bool dumb = !kind || std::strcmp(kind, "dumb") == 0 || !*kind;
  bool tty = ::isatty(fd) == 1;
  t.interactive = tty && !dumb;
  t.colour = colours == colour_when::always ||
             (colours == colour_when::automatic && ((t.interactive && !no_colour) || (force && !no_colour)));
  t.utf8 = locale_is_utf8();
  refresh_size(fd, t);
  return t;
}

void refresh_size(int fd, terminal& t) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    t.width = size.ws_col;
    t.height = size.ws_row > 0 ? size.ws_row : t.height;
  } else if (const char* text = std::getenv("COLUMNS"); text && std::atoi(text) > 0) {
    t.width = std::atoi(text);
  }
}

std::string painted(std::string_view text, paint how, const terminal& t) {
  static constexpr const char* codes[] = {"", "1", "2", "31", "32", "33", "34", "36"};
  if (!t.colour || how == paint::plain || text.empty())
    return std::string(text);
  return "\x1b[" + std::string(codes[static_cast<int>(how)]) + "m" + std::string(text) + "\x1b[0m";
}

int width_of(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    if (text[0] == '\x1b') {
      auto end = text.find('m');
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      continue;
    }
    std::size_t bytes = 0;
    columns += columns_of(next_letter(text, bytes));
    text.remove_prefix(bytes);
  }
  return columns;
}

std::string fitted(std::string_view text, int columns, bool utf8) {
  if (width_of(text) <= columns)
    return std::string(text);
  std::string_view dots = utf8 ? "…" : "~";
  if (columns < 1)
    return "";
  std::string out;
  int used = 0;
  while (!text.empty()) {
    std::size_t bytes = 0;
    int more = columns_of(next_letter(text, bytes));
    if (used + more > columns - 1)
      break;
    out += text.substr(0, bytes);
    used += more;
    text.remove_prefix(bytes);
  }
  return out + std::string(dots);
}

std::string padded(std::string_view text, int columns, bool right_aligned) {
  std::string blanks(static_cast<std::size_t>(std::max(0, columns - width_of(text))), ' ');
  return right_aligned ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t bytes = 0;
    auto c = next_letter(text, bytes);
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool reorders = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                          (c >= 0x2066 && c <= 0x2069);
    out += control                   ? std::string_view(" ")
           : reorders || c == 0xfffd ? std::string_view("?")
                                     : text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

} // namespace troupe::cli
