#include "runtime/api/explanation.hpp"

#include "model/names.hpp"
#include "runtime/api/shapes.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::api {
namespace {

constexpr std::size_t last_lines = 5;

value made(std::string state, time_point since, const char* code, std::string text, std::string advice = {}) {
  return {{"state", std::move(state)},
          {"since", to_rfc3339(since)},
          {"reason", {{"code", code}, {"text", std::move(text)}}},
          {"wouldFree", value::array()},
          {"advice", std::move(advice)}};
}

std::string number(double x) { return to_json(x); }

std::string places(const run_row& run) {
  std::string out;
  for (const auto& part : run.on)
    out += (out.empty() ? "" : ", ") + part.agent;
  return out;
}

/// Numbers of the last lines that a task wrote itself.
result<value> last_of_log(trial_id id, const storage::reader& storage) {
  auto lines = storage.logs_before(id, std::numeric_limits<std::uint64_t>::max(), last_lines);
  if (!lines)
    return lines.error();
  value out = value::array();
  for (auto line = lines->rbegin(); line != lines->rend(); ++line)
    out.push_back(line->number);
  return out;
}

std::string of_stop(const trial_row& row) {
  const auto stop = *row.stop();
  if (stop.rung < 0)
    return "the search stopped it: " + stop.why;
  std::string text = "stopped at rung " + std::to_string(stop.rung) + " (after " + number(stop.units) +
                     "): " + number(stop.metric);
  if (!std::isnan(stop.needed))
    text += " against " + number(stop.needed) + " that it had to beat";
  return text + ". " + stop.why;
}

result<value> of_ended(const trial_row& row, const storage::reader& storage) {
  const auto state = state_name(row.state);
  if (row.stop())
    return made(state, row.ended, "stopped_by_search", of_stop(row));
  if (row.state == trial_state::completed)
    return made(state, row.ended, "completed", row.why.empty() ? "it came to its end" : row.why);
  const auto why = !row.runs.empty() && !row.runs.back().detail.empty() ? row.runs.back().detail : row.why;
  auto out =
    made(state, row.ended, row.state == trial_state::error ? "failed" : "canceled",
         (row.state == trial_state::error ? "failed after " + std::to_string(row.restarts) + " restarts: "
                                          : "was ended: ") +
           (why.empty() ? std::string("no reason was given") : why),
         row.state == trial_state::error ? "look at the last lines of its log" : "");
  if (row.state == trial_state::error) {
    auto lines = last_of_log(row.id, storage);
    if (!lines)
      return lines.error();
    out["log"] = std::move(*lines);
  }
  return out;
}

int slots_of(const experiment_row& row) {
  const auto resources =
    row.config.is_object() ? row.config.value("resources", value::object()) : value::object();
  const auto slots = resources.value("slots_per_trial", value(1));
  return slots.is_number_integer() ? slots.get<int>() : 1;
}

/// A trial that has no slots yet: behind whom it stands, and who holds what it needs.
result<value> of_waiting(const trial_row& row, time_point since, const storage::reader& storage) {
  auto experiment = storage.experiment(row.experiment);
  if (!experiment)
    return experiment.error();
  auto open = storage.open_tasks();
  if (!open)
    return open.error();
  value holders = value::array();
  std::string names;
  std::size_t behind = 0, held = 0;
  for (const auto& task : *open) {
    auto runs = storage.runs(task.id);
    if (!runs)
      return runs.error();
    if (runs->empty() || task.id == task_id{row.id})
      continue;
    const auto& run = runs->back();
    if (run.on.empty()) {
      behind += run.started < since;
      continue;
    }
    for (const auto& part : run.on)
      held += part.slots.size();
    if (holders.size() < 20) {
      holders.push_back("trial " + to_string(task.id));
      if (holders.size() <= 3)
        names += (names.empty() ? "" : ", ") + holders.back().get<std::string>();
    }
  }
  const int slots = slots_of(*experiment);
  std::string text = "waits for " + std::to_string(slots) + (slots == 1 ? " slot" : " slots");
  if (behind > 0)
    text += ", behind " + std::to_string(behind) + (behind == 1 ? " other request" : " other requests");
  if (held > 0)
    text += "; " + std::to_string(held) + (held == 1 ? " is" : " are") + " held by " + names +
            (holders.size() > 3 ? " and others" : "");
  auto out = made(state_name(row.state), since, "waits_for_slots", std::move(text),
                  held > 0 ? "" : "no agent offers that many slots: start one, or ask for fewer slots");
  out["wouldFree"] = std::move(holders);
  return out;
}

} // namespace

result<value> explained(const trial_row& row, const storage::reader& storage) {
  if (terminal(row.state))
    return of_ended(row, storage);
  if (row.state == trial_state::paused)
    return made(state_name(row.state), row.created, "paused",
                row.why.empty() ? "it is paused" : "paused: " + row.why);
  if (row.runs.empty())
    return made(state_name(row.state), row.created, "begins", "its first run is about to be asked for");
  const auto& run = row.runs.back();
  if (run.ended != time_point{})
    return made(
      state_name(row.state), run.ended, "restarts",
      "its run " + to_string(run.run) + " ended (" +
        (run.detail.empty() ? std::string(name(run.why)) : run.detail) + "); the next one begins from " +
        (row.latest_checkpoint.empty() ? std::string("the start") : "checkpoint " + row.latest_checkpoint));
  if (run.on.empty())
    return of_waiting(row, run.started, storage);
  std::string text = "runs on " + places(run) + " (run " + to_string(run.run) + ")";
  if (row.runs.size() > 1) {
    const auto& before = row.runs[row.runs.size() - 2];
    text += "; run " + to_string(before.run) +
            " ended: " + (before.detail.empty() ? std::string(name(before.why)) : before.detail);
  }
  return made(state_name(row.state), run.started, "runs", std::move(text));
}

result<value> explained(const experiment_row& row, const storage::reader& storage) {
  auto trials = storage.trials(row.id);
  if (!trials)
    return trials.error();
  std::map<std::string, std::size_t> by;
  for (const auto& t : *trials)
    ++by[terminal(t.state) ? "ended"
         : !t.runs.empty() && t.runs.back().ended == time_point{}
           ? t.runs.back().on.empty() ? "waiting" : "running"
           : "between runs"];
  std::string parts;
  for (const auto& [what, n] : by)
    parts += (parts.empty() ? "" : ", ") + std::to_string(n) + " " + what;
  const auto state = state_name(row.state);
  if (terminal(row.state))
    return made(state, row.ended, row.state == experiment_state::error ? "failed" : "ended",
                row.why.empty() ? "all its trials have ended" : row.why);
  if (row.state == experiment_state::paused)
    return made(state, row.created, "paused", row.why.empty() ? "it was paused" : row.why,
                "Resume lets it go on");
  if (!by.contains("running") && by.contains("waiting"))
    for (const auto& t : *trials)
      if (!terminal(t.state) && !t.runs.empty() && t.runs.back().ended == time_point{}) {
        auto why = explained(t, storage);
        if (why)
          (*why)["state"] = state;
        return why;
      }
  return made(state, row.created, "runs",
              std::to_string(trials->size()) + " trials so far: " + (parts.empty() ? "none" : parts));
}

} // namespace troupe::api
