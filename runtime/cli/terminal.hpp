#pragma once
// What the other end of an output stream can show, and text that fits it.

#include <string>
#include <string_view>

namespace troupe::cli {

struct terminal {
  bool interactive = false; ///< a terminal, so that lines may be redrawn
  bool colour = false;
  bool utf8 = true;
  int width = 80; ///< columns
  int height = 24;
};

enum class colour_when { automatic, always, never };
colour_when colour_when_of(std::string_view text); ///< "auto", "always", "never"

/// Asks the system about a file descriptor. `no_colour` is whether NO_COLOR is set and not empty, `force`
/// likewise CLICOLOR_FORCE.
terminal terminal_of(int fd, colour_when colours, bool no_colour, bool force);
/// Only the size, which changes while a display runs.
void refresh_size(int fd, terminal& t);

enum class paint { plain, bold, dim, red, green, yellow, blue, cyan };
std::string painted(std::string_view text, paint how, const terminal& t);

/// Columns that a text takes: escapes none, combining marks none, East Asian wide letters two.
int width_of(std::string_view text);
/// Cuts to `columns`, ending in an ellipsis; never within a letter. Only for text without escapes.
std::string fitted(std::string_view text, int columns, bool utf8);
/// Pads with blanks to `columns`, at the right or at the left.
std::string padded(std::string_view text, int columns, bool right_aligned = false);
/// Replaces control characters, '\n' too, and bidirectional ones, so that text from elsewhere can neither
/// move the cursor nor reorder what stands beside it.
std::string printable(std::string_view text);

} // namespace troupe::cli
