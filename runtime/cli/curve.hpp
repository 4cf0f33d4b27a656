#pragma once
// A small curve in the terminal. Pure.

#include "runtime/cli/terminal.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

/// Draws points of rising x, without those that are not finite. Returns `rows` lines of at most `columns`
/// columns, labels included, never wider than the screen, each ended by a newline: in braille dots, or in `*`
/// where the screen has no UTF-8. Empty where no point is finite.
std::string draw_curve(const std::vector<std::pair<double, double>>& points, const terminal& screen,
                       int columns = 64, int rows = 6);

} // namespace troupe::cli
