#include "runtime/cli/search_commands/preview_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {
namespace {

std::string trials(std::int64_t n) { return fmt::format("{} trial{}", n, n == 1 ? "" : "s"); }

void add_bracket(std::string& text, std::size_t index, const searchers::bracket& b, double divisor,
                 const std::string& unit, std::int64_t most) {
  text += fmt::format("\nbracket {}: {}, {} at once\n", index + 1, trials(b.max_trials), b.max_concurrent);
  auto reach = searchers::survivors(b, divisor);
  for (std::size_t k = 0; k < reach.size(); ++k) {
    auto end = reach[k] - (k + 1 < reach.size() ? reach[k + 1] : 0);
    auto width = std::max<std::int64_t>(1, (reach[k] * 40 + most - 1) / most);
    text += fmt::format("  {:>9} {} {:<40} {} to here, {} end\n", b.units[k], unit,
                        std::string(static_cast<std::size_t>(width), '#'), reach[k], end);
  }
}

} // namespace

std::string preview_text(const searchers::search_preview& p, double divisor) {
  auto unit = p.time_metric.empty() ? std::string("units") : p.time_metric;
  auto at_once = p.max_concurrent == 0 ? "all at once" : fmt::format("at most {} at once", p.max_concurrent);
  std::string text = fmt::format("{}: {}, {}\n\n", p.name, trials(p.max_trials), at_once);
  text += fmt::format("  {:>10}  {}\n", "trials", "trained for");
  for (const auto& row : p.rows)
    text += fmt::format("  {:>10}  {}\n", row.trials,
                        row.units == 0 ? std::string("their full length")
                                       : fmt::format("{:.10g} {}", row.units, unit));
  std::int64_t most = 1;
  for (const auto& b : p.brackets)
    most = std::max(most, b.max_trials);
  for (std::size_t i = 0; i < p.brackets.size(); ++i)
    add_bracket(text, i, p.brackets[i], divisor, unit, most);
  if (p.total_units > 0) {
    text += fmt::format("\ntotal: {:.10g} {}", p.total_units, unit);
    if (!p.brackets.empty()) {
      double full = 0;
      for (const auto& b : p.brackets)
        full += static_cast<double>(b.max_trials) * static_cast<double>(b.units.back());
      text += fmt::format(" of training; {:.10g} without stopping ({:.3g} times as much)", full,
                          full / p.total_units);
    }
    text += '\n';
  } else {
    text += "\ntotal: not known, as the configuration gives no `max_time`\n";
  }
  return text;
}

} // namespace troupe::cli
