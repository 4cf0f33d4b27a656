#pragma once
// What an output stream can show, and text that fits it.

#include <string>
#include <string_view>

namespace troupe::cli {

struct terminal {
  bool interactive = false; ///< whether it is a terminal, so that lines may be drawn again
  bool colour = false;
  bool utf8 = true;
  int width = 80; ///< in columns
  int height = 24;
};

enum class colour_when { automatic, always, never };
colour_when colour_when_of(std::string_view text); ///< "auto", "always", "never"

/// Asks the system about a file descriptor. `no_colour` says whether NO_COLOR is set and not empty, `force`
/// the same for CLICOLOR_FORCE.
terminal terminal_of(int fd, colour_when colours, bool no_colour, bool force);
/// Reads only the size, which may change while a display runs.
void refresh_size(int fd, terminal& t);

enum class paint { plain, bold, dim, red, green, yellow, blue, cyan };
std::string painted(std::string_view text, paint how, const terminal& t);

/// Columns that a text takes: escapes and combining marks take none, East Asian wide letters two.
int width_of(std::string_view text);
/// Cuts the text to `columns`, with an ellipsis at its end; never cuts a letter. Only for text without
/// escapes.
std::string fitted(std::string_view text, int columns, bool utf8);
/// Pads the text with blanks to `columns`, at the right or at the left.
std::string padded(std::string_view text, int columns, bool right_aligned = false);
/// Replaces control characters (also '\n') and bidirectional ones, so that text from elsewhere can neither
/// move the cursor nor reorder the text beside it.
std::string printable(std::string_view text);

} // namespace troupe::cli
