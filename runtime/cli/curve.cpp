#include "runtime/cli/curve.hpp"
#include "runtime/cli/output.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace troupe::cli {
namespace {

/// A grid of dots; (0, 0) is at the lower left.
class raster {
public:
  raster(int width, int height) : width_(width), dots_(static_cast<std::size_t>(width) * height) {}

  void set(int x, int y) { dots_[static_cast<std::size_t>(y) * width_ + x] = true; }
  bool at(int x, int y) const { return dots_[static_cast<std::size_t>(y) * width_ + x]; }

  void line(int x0, int y0, int x1, int y1) {
    int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    auto between = [steps](int from, int to, int i) {
      return from + static_cast<int>(std::lround(static_cast<double>(to - from) * i / steps));
    };
    for (int i = 0; i <= steps; ++i)
      set(between(x0, x1, i), between(y0, y1, i));
  }

private:
  int width_;
  std::vector<bool> dots_;
};

std::string braille(int bits) {
  int letter = 0x2800 + bits;
  return {static_cast<char>(0xe0 | letter >> 12), static_cast<char>(0x80 | (letter >> 6 & 0x3f)),
          static_cast<char>(0x80 | (letter & 0x3f))};
}

std::string cell(const raster& dots, int column, int row_from_below, bool utf8) {
  if (!utf8)
    return dots.at(column, row_from_below) ? "*" : " ";
  static constexpr int bit[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}; // [x][y from below]
  int bits = 0;
  for (int x = 0; x < 2; ++x)
    for (int y = 0; y < 4; ++y)
      if (dots.at(column * 2 + x, row_from_below * 4 + y))
        bits |= bit[x][y];
  return bits == 0 ? " " : braille(bits);
}

} // namespace

std::string draw_curve(const std::vector<std::pair<double, double>>& points, const terminal& screen,
                       int columns, int rows) {
  std::vector<std::pair<double, double>> finite;
  for (const auto& p : points)
    if (std::isfinite(p.first) && std::isfinite(p.second))
      finite.push_back(p);
  if (finite.empty())
    return "";
  auto [low_at, high_at] = std::minmax_element(
    finite.begin(), finite.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  double low = low_at->second, high = high_at->second;
  double first = finite.front().first, last = finite.back().first;
  auto top = number_text(high, 4), bottom = number_text(low, 4);
  int label = std::max(width_of(top), width_of(bottom)) + 1;
  int width = std::max(8, std::min(columns, screen.width - 1) - label - 1);
  int height = std::max(2, rows - 1); // the last line holds the labels of x
  int fine_x = screen.utf8 ? 2 : 1, fine_y = screen.utf8 ? 4 : 1;
  raster dots(width * fine_x, height * fine_y);
  auto scale = [](double v, double from, double to, int cells) {
    return to > from ? static_cast<int>(std::lround((v / 2 - from / 2) / (to / 2 - from / 2) * (cells - 1)))
                     : 0;
  };
  int x_before = 0, y_before = 0;
  for (std::size_t i = 0; i < finite.size(); ++i) {
    int x = scale(finite[i].first, first, last, width * fine_x);
    int y = high > low ? scale(finite[i].second, low, high, height * fine_y) : height * fine_y / 2;
    dots.line(i == 0 ? x : x_before, i == 0 ? y : y_before, x, y);
    x_before = x;
    y_before = y;
  }
  std::string out;
  for (int row = height - 1; row >= 0; --row) {
    out += padded(row == height - 1 ? top : row == 0 ? bottom : "", label, true) + (screen.utf8 ? "┤" : "|");
    std::string line;
    for (int column = 0; column < width; ++column)
      line += cell(dots, column, row, screen.utf8);
    while (line.ends_with(' '))
      line.pop_back();
    out += line + "\n";
  }
  auto from = number_text(first, 6), to = number_text(last, 6);
  out += std::string(static_cast<std::size_t>(label) + 1, ' ') + from +
         padded(to, std::max(width - width_of(from), width_of(to) + 1), true) + "\n";
  return out;
}

} // namespace troupe::cli
