// A fault as people read it: the place, the line, a caret, the hint.

#include "model/config/experiment_config.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

constexpr std::size_t widest = 120; ///< characters of a line that are shown

std::string line_of(std::string_view text, int line) {
  std::size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    const auto end = text.find('\n', begin);
    if (end == std::string_view::npos)
      return {};
    begin = end + 1;
  }
  auto shown = line_without_secrets(text, begin);
  if (shown.ends_with('\r'))
    shown.pop_back();
  return shown;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

} // namespace

std::string render(const diagnostic& fault, std::string_view text) {
  std::string out = fault.file.empty() ? "" : fault.file + ":";
  if (fault.line > 0)
    out += std::to_string(fault.line) + ":" + std::to_string(fault.column) + ":";
  out += (out.empty() ? "" : " ") + std::string(fault.is_warning ? "warning: " : "") +
         (fault.path.empty() ? fault.message : fault.path + ": " + fault.message) + "\n";
  if (fault.line > 0) {
    const auto line = line_of(text, fault.line);
    auto column = static_cast<std::size_t>(std::max(fault.column, 1) - 1);
    auto skipped = column > widest - 20 ? column - widest / 2 : 0;
    std::string shown, caret;
    std::size_t character = 0;
    for (char c : line) {
      character += begins_character(c);
      if (character <= skipped)
        continue;
      if (character > skipped + widest)
        break;
      shown += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
      if (begins_character(c) && character <= column)
        caret += c == '\t' ? '\t' : ' ';
    }
    if (!shown.empty())
      out += "  " + shown + "\n  " + caret + "^\n";
  }
  if (!fault.hint.empty())
    out += "hint: " + fault.hint + "\n";
  return out;
}

} // namespace troupe::config
