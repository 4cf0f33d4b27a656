#include "runtime/cli/progress_view.hpp"
#include "runtime/cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::cli {
namespace {

std::string text_in(const value& x, const char* key) {
  const auto& at = part(x, key);
  return at.is_string() ? at.get<std::string>() : "";
}
double number_at(const value& x, const char* key, double otherwise = 0) {
  return number_in(part(x, key)).value_or(otherwise);
}
std::uint64_t id_in(const value& x) {
  if (x.is_string())
    return parse_id<trial_id>(x.get<std::string>()).value;
  return x.is_number_integer() && x >= 0 ? x.get<std::uint64_t>() : 0;
}

bool is_end(std::string_view state) {
  return state == "COMPLETED" || state == "CANCELED" || state == "ERROR";
}

std::string singular(std::string unit) {
  if (unit.ends_with("ches"))
    unit.resize(unit.size() - 2);
  else if (unit.size() > 1 && unit.ends_with('s'))
    unit.pop_back();
  return unit;
}

std::string trial_name(trial_id id) { return "trial " + to_string(id); }

/// The number of the trial in "trial/12" or "allocation/12.3".
trial_id trial_of_entity(const std::string& entity) {
  if (entity.starts_with("trial/"))
    return parse_id<trial_id>(std::string_view(entity).substr(6));
  if (entity.starts_with("allocation/"))
    return parse_allocation(std::string_view(entity).substr(11)).trial();
  return {};
}

} // namespace

progress_setup setup_of(const value& answer) {
  const auto& x = part(answer, "experiment").is_object() ? part(answer, "experiment") : answer;
  progress_setup s;
  s.id = experiment_id{id_in(part(x, "id"))};
  s.name = text_in(x, "name");
  const auto& config = part(answer, "config").is_object() ? part(answer, "config") : part(x, "config");
  const auto& searcher = part(config, "searcher");
  s.searcher = text_in(searcher, "name");
  s.metric = text_in(searcher, "metric");
  s.smaller_is_better = part(searcher, "smaller_is_better") != value(false);
  s.max_trials = id_in(part(searcher, "max_trials"));
  if (auto unit = text_in(searcher, "time_metric"); !unit.empty())
    s.unit = unit;
  s.max_units = number_at(searcher, "max_time");
  if (const auto& length = part(searcher, "max_length");
      s.max_units == 0 && length.is_object() && !length.empty()) {
    s.unit = length.begin().key();
    s.max_units = number_in(*length.begin()).value_or(0);
  } else if (s.max_units == 0) {
    s.max_units = number_in(length).value_or(0);
  }
  if (s.searcher == "single")
    s.max_trials = 1;
  s.started = parse_rfc3339(text_in(x, "startTime")).value_or(time_point{});
  return s;
}

progress_view::progress_view(progress_setup setup, bool redraws, int line_budget)
    : setup_(std::move(setup)), redraws_(redraws) {
  // The header, the last lines with the curve, and one line for each trial already have their lines.
  constexpr int fixed = 18;
  budget_ = line_budget - fixed - static_cast<int>(std::min<std::uint64_t>(setup_.max_trials, 1000));
  auto line = fmt::format("experiment {}  {}: {}", to_string(setup_.id), setup_.name, setup_.searcher);
  if (setup_.max_trials)
    line += ", " + std::to_string(setup_.max_trials) + (setup_.max_trials == 1 ? " trial" : " trials");
  if (setup_.max_units > 0)
    line += fmt::format(" of up to {} {}", number_text(setup_.max_units), setup_.unit);
  line += (setup_.smaller_is_better ? ", minimizing " : ", maximizing ") + setup_.metric;
  say(line, paint::bold);
}

bool progress_view::ended() const { return is_end(state_); }

std::size_t progress_view::stopped_early() const {
  return static_cast<std::size_t>(std::count_if(trials_.begin(), trials_.end(),
                                                [](const auto& t) { return t.second.stopped.has_value(); }));
}

std::vector<trial_id> progress_view::running() const {
  std::vector<trial_id> ids;
  for (const auto& [id, t] : trials_)
    if (t.running)
      ids.push_back(id);
  return ids;
}

void progress_view::say(std::string line, paint how) { lines_.emplace_back(printable(line), how); }

void progress_view::say_if_room(std::string line, paint how) {
  if (redraws_ || budget_-- > 0)
    say(std::move(line), how);
}

std::string progress_view::metric_text(double x) const { return setup_.metric + " " + number_text(x, 4); }
std::string progress_view::units_text(double x) const { return singular(setup_.unit) + " " + number_text(x); }

progress_view::one_trial& progress_view::trial(const value& id) { return trials_[trial_id{id_in(id)}]; }

void progress_view::note_metric(trial_id id, one_trial& t, double metric) {
  t.latest = metric;
  if (std::isnan(metric))
    return;
  if (!t.best || better(metric, *t.best))
    t.best = metric;
  if (!best_ || better(metric, *best_)) {
    best_ = metric;
    best_trial_ = id;
  }
}

void progress_view::take_snapshot(const value& experiment, const value& trials) {
  const auto& x = part(experiment, "experiment").is_object() ? part(experiment, "experiment") : experiment;
  if (auto state = shown(part(x, "state"), show_as::state, {}); state != "-")
    state_ = state;
  progress_ = number_at(x, "progress");
  if (ended())
    ended_at_ = parse_rfc3339(text_in(x, "endTime"));
  std::size_t old_ends = 0;
  for (const auto& row : part(trials, "trials")) {
    trial_id id{id_in(part(row, "id"))};
    auto& t = trials_[id];
    t.state = shown(part(row, "state"), show_as::state, {});
    t.hparams = part(row, "hparams");
    t.restarts = static_cast<int>(number_at(row, "restarts"));
    if (auto best = number_in(part(row, "best.metric")))
      note_metric(id, t, *best);
    t.latest = number_in(part(row, "latest.metric"));
    if (auto units = number_in(part(row, "latest.units")))
      t.units = *units;
    else if (setup_.unit == "batches")
      t.units = number_at(row, "totalBatches");
    t.stopped = stop_in(part(row, "stop"));
    t.ended = is_end(t.state);
    t.running = !t.ended && t.state != "QUEUED" && t.state != "PAUSED";
    if (const auto& agents = part(row, "agents"); agents.is_array())
      for (const auto& a : agents)
        t.agents += (t.agents.empty() ? "" : " ") + shown(a, show_as::plain, {});
    if (t.running)
      t.since = parse_rfc3339(text_in(row, "startTime"));
    old_ends += t.ended ? 1 : 0;
  }
  if (old_ends > 0)
    say(
      std::to_string(old_ends) + " of its trials had ended before" +
      (best_ ? fmt::format("; best so far trial {}, {}", to_string(best_trial_), metric_text(*best_)) : ""));
}

void progress_view::take(const value& event) {
  auto type = text_in(event, "type");
  auto at = parse_rfc3339(text_in(event, "at"));
  if (type == "search_stepped")
    return on_search(event);
  if (type == "experiment_changed") {
    auto state = shown(part(event, "state"), show_as::state, {});
    if (state == state_)
      return;
    state_ = state;
    if (ended())
      ended_at_ = at;
    auto why = text_in(event, "why");
    if (!ended() && !state.starts_with("STOPPING_COMPLETED"))
      say(fmt::format("experiment {} {}{}", to_string(setup_.id), state, why.empty() ? "" : ": " + why),
          paint::yellow);
    return;
  }
  auto id = trial_of_entity(text_in(event, "entity"));
  if (!id)
    return;
  auto& t = trials_[id];
  if (type == "run_started") {
    t.running = true;
    t.state = "RUNNING";
    t.run = id_in(part(event, "run"));
    t.since = at;
    if (t.run > 1 && !text_in(event, "fromCheckpoint").empty())
      say_if_room(trial_name(id) + "  resumes from its checkpoint at step " +
                  number_text(number_at(event, "fromSteps"), 12));
  } else if (type == "allocation_placed") {
    t.slots = 0;
    t.agents.clear();
    for (const auto& place : part(event, "on")) {
      t.slots += static_cast<int>(part(place, "slots").size());
      t.agents += (t.agents.empty() ? "" : " ") + text_in(place, "agent");
    }
  } else if (type == "run_ended") {
    on_run_ended(id, t, event);
  } else if (type == "trial_paused") {
    t.state = "PAUSED";
  } else if (type == "trial_activated" && t.state == "PAUSED") {
    t.state = "QUEUED";
  } else if (type == "trial_ended") {
    on_trial_ended(id, t, event);
  }
}

void progress_view::on_search(const value& event) {
  progress_ = number_at(event, "progress", progress_);
  for (const auto& made : part(event, "created"))
    trial(part(made, "trial")).hparams = part(made, "hparams");
  if (text_in(event, "input") == "validated") {
    trial_id id{id_in(part(event, "trial"))};
    auto& t = trials_[id];
    const auto& metrics = part(event, "metrics");
    auto find = [&](const std::string& name) -> std::optional<double> {
      auto at = metrics.is_object() ? metrics.find(name) : metrics.end();
      return metrics.is_object() && at != metrics.end() ? number_in(*at) : std::nullopt;
    };
    t.units = find(setup_.unit).value_or(number_at(event, "steps"));
    auto best_before = best_;
    if (auto metric = find(setup_.metric))
      note_metric(id, t, *metric);
    auto at = parse_rfc3339(text_in(event, "at"));
    bool soon = best_said_ && at && *at - *best_said_ < std::chrono::seconds(3); // a search begins with many
    if (best_ != best_before && !redraws_ && !soon) {
      best_said_ = at;
      say_if_room(
        fmt::format("{}  {}: {}, best so far", trial_name(id), units_text(t.units), metric_text(*best_)));
    }
  }
  for (const auto& s : part(event, "stopped"))
    on_stop(trial_id{id_in(part(s, "trial"))}, s);
}

void progress_view::on_stop(trial_id id, const value& event) {
  auto x = stop_in(event);
  if (!x)
    return; // the trial reached its full length: its end gets a line
  trials_[id].stopped = x;
  auto line = trial_name(id) + "  stopped early";
  if (x->rung >= 0 && std::isfinite(x->metric) && std::isfinite(x->needed))
    line += fmt::format(" at {}: {} at rung {}, had to beat {}", units_text(x->units), metric_text(x->metric),
                        x->rung, number_text(x->needed, 4));
  else if (!x->why.empty())
    line += ": " + x->why;
  say(line, paint::yellow);
}

std::optional<progress_view::stop> progress_view::stop_in(const value& x) {
  if (!x.is_object())
    return std::nullopt;
  stop s{static_cast<int>(number_at(x, "rung", -1)), number_at(x, "units"), number_at(x, "metric"),
         number_at(x, "needed"), text_in(x, "why")};
  bool full_length = s.rung >= 0 && std::isnan(s.needed);
  return full_length ? std::nullopt : std::optional(s);
}

void progress_view::on_run_ended(trial_id id, one_trial& t, const value& event) {
  t.running = false;
  t.since.reset();
  t.slots = 0;
  auto why = text_in(event, "why");
  auto detail = text_in(event, "detail");
  int restarts = static_cast<int>(number_at(event, "restarts", t.restarts));
  std::transform(why.begin(), why.end(), why.begin(), [](unsigned char c) { return std::tolower(c); });
  if (why == "failed")
    say(trial_name(id) + "  failed" + (detail.empty() ? "" : ": " + detail) +
          (restarts > t.restarts ? "; restart " + std::to_string(restarts) : ""),
        paint::red);
  else if (why == "lost")
    say_if_room(fmt::format("{}  lost its run{}; it runs again, no restart is counted", trial_name(id),
                            detail.empty() ? "" : " (" + detail + ")"),
                paint::yellow);
  t.restarts = restarts;
  t.state = "QUEUED";
}

void progress_view::on_trial_ended(trial_id id, one_trial& t, const value& event) {
  t.running = false;
  t.ended = true;
  t.state = shown(part(event, "state"), show_as::state, {});
  auto why = text_in(event, "why");
  if (t.state == "COMPLETED" && t.stopped)
    return; // the trial has its line already
  auto line = trial_name(id) + "  " + (t.state == "COMPLETED" ? "completed" : t.state);
  if (t.units > 0)
    line += " at " + units_text(t.units);
  if (t.state == "COMPLETED" && t.best)
    line += ": " + metric_text(t.latest.value_or(*t.best)) +
            (id == best_trial_    ? ", best so far"
             : t.latest != t.best ? ", at best " + number_text(*t.best, 4)
                                  : "");
  else if (!why.empty())
    line += ": " + why;
  if (t.state == "ERROR")
    line += fmt::format("   (troupe trial logs {})", to_string(id));
  say(line, t.state == "ERROR" ? paint::red : t.state == "COMPLETED" ? paint::green : paint::yellow);
}

void progress_view::take_lost(const std::string& why) {
  lost_ = true;
  say(fmt::format("lost the cluster ({}); dialling it again", why), paint::yellow);
}

void progress_view::take_back() {
  lost_ = false;
  say("the cluster is back; going on where the stream broke", paint::green);
}

std::vector<std::string> progress_view::lines(const terminal& screen) {
  std::vector<std::string> out;
  for (auto& [line, how] : lines_)
    out.push_back(
      painted(screen.interactive ? fitted(line, screen.width - 1, screen.utf8) : line, how, screen));
  lines_.clear();
  return out;
}

std::string progress_view::bar(double share, int cells, const terminal& screen) const {
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  share = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0);
  int fine = static_cast<int>(std::floor(share * cells * (screen.utf8 ? 8 : 1) + 1e-9));
  std::string out;
  int full = screen.utf8 ? fine / 8 : fine;
  for (int i = 0; i < full; ++i)
    out += screen.utf8 ? "█" : "#";
  int used = full;
  if (screen.utf8 && fine % 8) {
    out += eighths[fine % 8];
    ++used;
  }
  for (; used < cells; ++used)
    out += screen.utf8 ? "·" : ".";
  return out;
}

std::string progress_view::row(trial_id id, const one_trial& t, const terminal& screen,
                               time_point now) const {
  int cells = screen.width >= 100 ? 20 : screen.width >= 60 ? 12 : 6;
  auto units =
    setup_.max_units > 0 ? number_text(t.units) + "/" + number_text(setup_.max_units) : number_text(t.units);
  auto line = fmt::format("{} {} {}", padded(trial_name(id), 10),
                          bar(setup_.max_units > 0 ? t.units / setup_.max_units : 0, cells, screen),
                          padded(units + " " + setup_.unit, 12));
  line += "  " + padded(t.latest ? metric_text(*t.latest) : "-", width_of(setup_.metric) + 8);
  line += "  best " + padded(t.best ? number_text(*t.best, 4) : "-", 8);
  if (t.slots > 0)
    line += " " + std::to_string(t.slots) + (t.slots == 1 ? " slot" : " slots");
  if (!t.agents.empty())
    line += " on " + t.agents;
  if (t.since)
    line += "  " + span_text(std::chrono::duration<double>(now - *t.since).count());
  return fitted(line, screen.width - 1, screen.utf8);
}

std::string progress_view::summary(const terminal& screen, time_point now) const {
  std::size_t done = 0, active = 0, waiting = 0;
  for (const auto& [id, t] : trials_)
    ++(t.ended ? done : t.running ? active : waiting);
  auto line =
    fmt::format("experiment {} {} {} {} %  {}{} done, {} running{}", to_string(setup_.id),
                lost_ ? "(cluster away)" : state_, bar(progress_, screen.width >= 80 ? 12 : 6, screen),
                number_text(std::floor(progress_ * 100)), done,
                setup_.max_trials ? "/" + std::to_string(setup_.max_trials) : "", active,
                waiting ? ", " + std::to_string(waiting) + " waiting" : "");
  if (setup_.started != time_point{})
    line += "  " + span_text(std::chrono::duration<double>(now - setup_.started).count());
  if (best_)
    line += fmt::format("  best {} ({})", metric_text(*best_), trial_name(best_trial_));
  return fitted(line, screen.width - 1, screen.utf8);
}

std::vector<std::string> progress_view::frame(const terminal& screen, time_point now) const {
  std::vector<std::string> out;
  if (!redraws_ || ended())
    return out;
  auto room = static_cast<std::size_t>(std::max(1, screen.height - 4));
  std::size_t hidden = 0;
  for (const auto& [id, t] : trials_) {
    if (!t.running)
      continue;
    if (out.size() < room)
      out.push_back(row(id, t, screen, now));
    else
      ++hidden;
  }
  if (hidden > 0)
    out.push_back(fmt::format("... and {} more running", hidden));
  out.push_back(painted(summary(screen, now), paint::bold, screen));
  return out;
}

std::string progress_view::pause_text(std::chrono::seconds left) const {
  auto ids = running();
  if (ids.empty())
    return "pausing: every trial has stopped";
  std::string line = "pausing: waiting for the checkpoint of trial";
  line += ids.size() == 1 ? "" : "s";
  for (std::size_t i = 0; i < ids.size() && i < 8; ++i)
    line += (i ? ", " : " ") + to_string(ids[i]);
  if (ids.size() > 8)
    line += fmt::format(" and {} more", ids.size() - 8);
  return fmt::format("{} (at most {} s; Ctrl-C again ends it at once)", line, left.count());
}

} // namespace troupe::cli
