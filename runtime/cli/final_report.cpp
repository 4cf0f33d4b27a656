#include "runtime/cli/curve.hpp"
#include "runtime/cli/output.hpp"
#include "runtime/cli/progress_view.hpp"

#include <fmt/format.h>

namespace troupe::cli {
namespace {

std::string plain(const value& x, const char* path, show_as how = show_as::plain) {
  return printable(shown(part(x, path), how, {}));
}

/// Adds lines of two columns.
void add_pair(std::vector<std::string>& out, const std::string& name, const std::string& text,
              const terminal& screen) {
  out.push_back("  " + painted(padded(name, 17), paint::dim, screen) + text);
}

void add_best(std::vector<std::string>& out, const progress_view& view, const value& outcome,
              const std::vector<std::pair<double, double>>& curve, const terminal& screen) {
  const auto& setup = view.setup();
  const auto& best = part(outcome, "bestTrial");
  auto id = plain(outcome, "bestTrialId");
  out.push_back(painted(
    fmt::format("best trial {}: {} {}", id, setup.metric, plain(outcome, "bestMetric", show_as::number)),
    paint::bold, screen));
  add_pair(out, "hyperparameters", plain(best, "hparams", show_as::compact), screen);
  const auto& validation = part(best, "bestValidation");
  if (validation.is_object())
    add_pair(out, "metrics",
             fmt::format("{}  (step {})", plain(validation, "metrics.avgMetrics", show_as::compact),
                         plain(validation, "totalBatches")),
             screen);
  const auto& checkpoint = part(outcome, "bestCheckpoint");
  add_pair(out, "checkpoint", checkpoint.is_object() ? plain(checkpoint, "path") : "none was saved", screen);
  if (auto text = draw_curve(curve, screen, 64, 6); curve.size() > 1 && !text.empty())
    for (std::size_t at = 0; at < text.size();) {
      auto end = text.find('\n', at);
      out.push_back("  " + text.substr(at, end - at));
      at = end + 1;
    }
  out.push_back(fmt::format(
    "show it again:  troupe trial describe {}   troupe trial metrics {}   troupe web experiments/{}", id, id,
    to_string(setup.id)));
}

} // namespace

std::vector<std::string> final_report(const progress_view& view, const value& outcome,
                                      const std::vector<std::pair<double, double>>& curve,
                                      const failed_log& failed, const terminal& screen, time_point now) {
  std::vector<std::string> out;
  auto state = plain(outcome, "state", show_as::state);
  auto line = fmt::format("experiment {} {}", to_string(view.setup().id), state);
  if (view.setup().started != time_point{})
    line +=
      " in " +
      span_text(std::chrono::duration<double>(view.ended_at().value_or(now) - view.setup().started).count());
  auto count = plain(outcome, "numTrials", show_as::number);
  line += ": " + count + (count == "1" ? " trial" : " trials");
  if (auto early = view.stopped_early())
    line += fmt::format(", {} stopped early", early);
  if (auto why = part(outcome, "why"); why.is_string() && !why.get<std::string>().empty())
    line += "; " + printable(why.get<std::string>());
  out.push_back(painted(line,
                        state == "COMPLETED" ? paint::green
                        : state == "ERROR"   ? paint::red
                                             : paint::yellow,
                        screen));
  if (part(outcome, "bestTrial").is_object())
    add_best(out, view, outcome, curve, screen);
  else
    out.push_back(fmt::format("no trial reported {}   (troupe experiment logs {})", view.setup().metric,
                              to_string(view.setup().id)));
  if (!failed.lines.empty()) {
    out.push_back(fmt::format("trial {} said last:", to_string(failed.trial)));
    for (const auto& text : failed.lines)
      out.push_back("  " + printable(text.substr(0, text.find_last_not_of('\n') + 1)));
  }
  return out;
}

} // namespace troupe::cli
