#include "runtime/cli/follow.hpp"
#include "runtime/cli/experiments.hpp"
#include "runtime/cli/interrupt.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/client/event_stream.hpp"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace troupe::cli {
namespace {

using link = client::event_stream::step::link;

/// Prints lines that stay, and below them a frame that is replaced.
class painter {
public:
  explicit painter(const canvas& on) : on_(on), screen_(on.screen) {}

  const terminal& screen() {
    if (on_.fd >= 0 && screen_.interactive)
      refresh_size(on_.fd, screen_);
    return screen_;
  }

  /// A frame without lines waits until the last drawing is `pace` old, so that many reports do not cause as
  /// many drawings.
  void draw(const std::vector<std::string>& lines, const std::vector<std::string>& frame) {
    auto now = std::chrono::steady_clock::now();
    if (lines.empty() && (frame == frame_ || (!frame.empty() && now - drawn_ < pace)))
      return;
    drawn_ = now;
    std::string text;
    if (!frame_.empty()) // goes back to where the last frame began, and clears what is below
      text += "\x1b[" + std::to_string(frame_.size()) + "A\r\x1b[J";
    for (const auto& line : lines)
      text += line + "\n";
    for (const auto& line : frame)
      text += line + "\n";
    frame_ = frame;
    on_.out << text;
    on_.out.flush();
  }

private:
  static constexpr std::chrono::milliseconds pace{80};
  const canvas& on_;
  terminal screen_;
  std::chrono::steady_clock::time_point drawn_{};
  std::vector<std::string> frame_;
};

struct opening {
  progress_view view;
  std::uint64_t sequence = 0;
};

/// The experiment as it is now, and the number from which its stream must be read.
result<opening> open_view(client::server& cluster, experiment_id id, bool redraws) {
  auto experiment = cluster.get("/api/v1/experiments/" + to_string(id));
  if (!experiment)
    return experiment.error();
  auto trials = cluster.get("/troupe/v1/experiments/" + to_string(id) + "/trials");
  if (!trials)
    return trials.error();
  opening o{progress_view(setup_of(experiment->body), redraws), 0};
  // The stream repeats facts that came between the two reads; facts after the older read must not be missed.
  o.sequence = std::min(experiment->sequence.value_or(0), trials->sequence.value_or(0));
  o.view.take_snapshot(experiment->body, trials->body);
  return o;
}

void take_step(progress_view& view, const client::event_stream::step& step) {
  if (step.change == link::lost)
    view.take_lost(step.why);
  if (step.change == link::back)
    view.take_back();
  for (const auto& event : step.events)
    view.take(event);
}

/// The validations of a trial by step, without archived ones.
std::vector<std::pair<double, double>> curve_of(client::server& cluster, const value& trial,
                                                const std::string& metric) {
  std::map<double, double> by_step;
  auto rows = cluster.get("/troupe/v1/trials/" + to_json(trial) + "/metrics", {{"group", "validation"}});
  if (rows && rows->body.is_array())
    for (const auto& row : rows->body) {
      const auto& metrics = part(row, "metrics");
      auto at = metrics.is_object() ? metrics.find(metric) : metrics.end();
      if (!metrics.is_object() || at == metrics.end() || part(row, "archived") == value(true))
        continue;
      if (auto y = number_in(*at))
        by_step[number_in(part(row, "totalBatches")).value_or(0)] = *y;
    }
  return {by_step.begin(), by_step.end()};
}

/// The last lines of the first trial that failed; empty where none failed.
failed_log failed_log_of(client::server& cluster, experiment_id id) {
  failed_log out;
  auto got = cluster.get("/troupe/v1/experiments/" + to_string(id) + "/trials");
  if (!got)
    return out;
  for (const auto& trial : part(got->body, "trials")) {
    if (shown(part(trial, "state"), show_as::state, {}) != "ERROR")
      continue;
    out.trial = {trial.value("id", std::uint64_t{0})};
    if (auto lines = last_lines(cluster, out.trial, 5))
      out.lines = *std::move(lines);
    break;
  }
  return out;
}

result<std::vector<std::string>> report(client::server& cluster, const progress_view& view,
                                        const terminal& screen, time_point now) {
  auto outcome = cluster.get("/troupe/v1/experiments/" + to_string(view.setup().id) + "/outcome");
  if (!outcome)
    return outcome.error();
  std::vector<std::pair<double, double>> curve;
  if (part(outcome->body, "bestTrial").is_object())
    curve = curve_of(cluster, part(outcome->body, "bestTrialId"), view.setup().metric);
  failed_log failed;
  if (shown(part(outcome->body, "state"), show_as::state, {}) == "ERROR")
    failed = failed_log_of(cluster, view.setup().id);
  return final_report(view, outcome->body, curve, failed, screen, now);
}

} // namespace

canvas standard_canvas(const std::string& color) {
  bool no_colour = !client::process_environment("NO_COLOR").empty();
  bool force = !client::process_environment("CLICOLOR_FORCE").empty();
  return {std::cout, terminal_of(STDOUT_FILENO, colour_when_of(color), no_colour, force), STDOUT_FILENO,
          [] { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }};
}

followed follow(client::server& cluster, experiment_id id, const canvas& on,
                const std::atomic<bool>& interrupt) {
  auto begun = open_view(cluster, id, on.screen.interactive);
  if (!begun)
    return {followed::by::fault, "", begun.error()};
  auto& view = begun->view;
  painter p(on);
  client::event_stream events(cluster, id, begun->sequence);
  p.draw(view.lines(p.screen()), view.frame(p.screen(), on.now()));
  while (!view.ended()) {
    if (interrupt) {
      p.draw(view.lines(p.screen()), {});
      return {followed::by::interrupt, view.state(), {}};
    }
    auto step = events.poll(std::chrono::milliseconds(100));
    if (!step) {
      p.draw(view.lines(p.screen()), {});
      return {followed::by::fault, view.state(), step.error()};
    }
    take_step(view, *step);
    p.draw(view.lines(p.screen()), view.frame(p.screen(), on.now()));
  }
  auto last = report(cluster, view, p.screen(), on.now());
  p.draw(last ? *last : std::vector<std::string>{}, {});
  if (!last)
    return {followed::by::fault, view.state(), last.error()};
  return {followed::by::end, view.state(), {}};
}

paused follow_pause(client::server& cluster, experiment_id id, const canvas& on, std::chrono::seconds limit,
                    const std::atomic<bool>& interrupt) {
  using clock = std::chrono::steady_clock;
  auto until = clock::now() + limit;
  auto begun = open_view(cluster, id, on.screen.interactive);
  if (!begun)
    return {paused::by::fault, {}, "", begun.error()};
  auto& view = begun->view;
  painter p(on);
  static_cast<void>(view.lines(p.screen())); // the header was shown before
  client::event_stream events(cluster, id, begun->sequence);
  auto shown_for = view.running();
  bool first = true;
  for (;;) {
    auto left =
      std::chrono::duration_cast<std::chrono::seconds>(until - clock::now() + std::chrono::milliseconds(999));
    auto lines = view.lines(p.screen());
    auto running = view.running();
    auto text = view.pause_text(std::max(left, std::chrono::seconds(0)));
    if (!p.screen().interactive && (first || running != shown_for))
      lines.push_back(text);
    first = false;
    shown_for = running;
    bool over = running.empty() || view.ended();
    p.draw(lines, p.screen().interactive && !over
                    ? std::vector<std::string>{fitted(text, p.screen().width - 1, p.screen().utf8)}
                    : std::vector<std::string>{});
    if (view.ended())
      return {paused::by::ended, {}, view.state(), {}};
    if (over)
      return {paused::by::done, {}, view.state(), {}};
    if (interrupt)
      return {paused::by::interrupt, running, view.state(), {}};
    if (clock::now() >= until)
      return {paused::by::timeout, running, view.state(), {}};
    auto step = events.poll(std::chrono::milliseconds(100));
    if (!step)
      return {paused::by::fault, running, view.state(), step.error()};
    take_step(view, *step);
  }
}

int follow_to_exit(session& s, client::server& cluster, experiment_id id) {
  interrupt_watch watch;
  auto options = s.output();
  std::ostringstream nowhere;
  bool quiet = options.quiet || options.format != output_format::table;
  terminal none;
  canvas on{quiet ? nowhere : s.io.out, quiet ? none : s.io.screen, quiet ? -1 : s.io.out_fd, s.io.now};
  auto how = follow(cluster, id, on, watch.flag());
  if (how.why == followed::by::fault)
    return s.fail(how.fault);
  if (how.why == followed::by::interrupt) {
    s.io.err << "left; experiment " << to_string(id) << " continues\n"
             << "  to see it again:  troupe experiment follow " << to_string(id) << "\n"
             << "  to end it:        troupe experiment cancel " << to_string(id) << "\n";
    return exit_interrupted;
  }
  return exit_of_state(how.state);
}

} // namespace troupe::cli
