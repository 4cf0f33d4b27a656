#include "actors/cluster/explanations.hpp"

#include "actors/task/task_settings.hpp"
#include "model/config/cluster_config.hpp"
#include "model/states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace troupe {
namespace {

double seconds_from(time_point from, time_point to) {
  return std::chrono::duration<double>(std::max(to - from, duration{0})).count();
}

const run_row* find_run(const std::vector<run_row>& runs, run_id run) {
  const auto at = std::find_if(runs.begin(), runs.end(), [&](const run_row& r) { return r.run == run; });
  return at == runs.end() ? nullptr : &*at;
}

const value& resources_of(const experiment_row& row) {
  static const value none = value::object();
  if (!row.config->is_object())
    return none;
  const auto at = row.config->find("resources");
  return at != row.config->end() && at->is_object() ? *at : none;
}

int slots_of(const experiment_row& row) {
  auto slots = resources_of(row).value("slots_per_trial", value(1));
  if (slots.is_object())
    slots = slots.value("max", value(1));
  return slots.is_number_integer() ? slots.get<int>() : 1;
}

int priority_of(const explained_run& of) {
  if (!of.experiment.resources.empty() && of.experiment.resources.front().priority > 0)
    return of.experiment.resources.front().priority;
  const auto given = resources_of(of.experiment).value("priority", value());
  return given.is_number_integer() ? given.get<int>() : of.default_priority;
}

double weight_of(const experiment_row& row) {
  if (!row.resources.empty())
    return row.resources.front().weight;
  const auto given = resources_of(row).value("weight", value());
  return given.is_number() ? given.get<double>() : 1;
}

/// Seconds that the trial has worked at `at`, in its run `last`, for what it has then. What a run before that
/// one did after its newest checkpoint is lost and does not count.
double worked(const trial_row& trial, run_id last, time_point at) {
  double all = 0;
  const auto continuation = continuation_of(trial.continued, last);
  for (const auto& one : trial.runs) {
    const bool counts =
      one.placed != time_point{} && continuation_of(trial.continued, one.run) == continuation;
    const auto until = one.run == last ? at : one.run < last ? one.saved : time_point{};
    all += counts ? seconds_from(one.placed, until) : 0;
  }
  return all;
}

struct standing {
  const char* state;
  const char* code;
  std::string text;
  time_point since;
};

/// Why the search stopped the trial. Most searches give a reason such as
/// "rung 1 (4 epochs): 0.8417, needed 0.9123".
std::string of_stop(const trial_stop_decided& stop) {
  if (stop.rung < 0)
    return "the search stopped it: " + stop.why;
  const bool told = stop.why.starts_with("rung ") && stop.why.find(": ") != stop.why.npos;
  const auto place = told ? stop.why.substr(0, stop.why.find(": "))
                          : fmt::format("rung {} (after {:.6g})", stop.rung, stop.units);
  if (stop.why.ends_with("full length reached"))
    return fmt::format("it reached its full length, {}, with {:.6g}", place, stop.metric);
  if (told && (std::isnan(stop.needed) || !std::isfinite(stop.metric)))
    return "stopped at " + stop.why;
  auto text = fmt::format("stopped at {}: {:.6g}", place, stop.metric);
  if (!std::isnan(stop.needed))
    text += fmt::format(" against {:.6g} that it had to beat", stop.needed);
  return told ? text : text + ". " + stop.why;
}

std::string of_end(const trial_row& row) {
  if (row.stop())
    return of_stop(*row.stop());
  if (row.state == trial_state::completed)
    return row.why.empty() ? "it came to its end" : row.why;
  const bool by_order = row.state != trial_state::error && !row.why.empty(); // `why` says who gave it
  const auto why =
    !by_order && !row.runs.empty() && !row.runs.back().detail.empty() ? row.runs.back().detail : row.why;
  return (row.state == trial_state::error ? "failed after " + std::to_string(row.restarts) +
                                              (row.restarts == 1 ? " restart: " : " restarts: ")
                                          : std::string("was ended: ")) +
         (why.empty() ? std::string("no reason was given") : why);
}

/// Whether a process of the user decides what the search does.
bool has_driver(const experiment_row& row) {
  return row.config->is_object() &&
         row.config->value(value::json_pointer("/searcher/name"), std::string()) == "custom";
}

standing between_runs(const explained_run& of) {
  const auto& trial = of.trial;
  if (trial.state == trial_state::stopping)
    return {"STOPPING", "stopping", "it is being ended: " + trial.why, trial.created};
  const auto since = trial.runs.empty() ? trial.created : trial.runs.back().ended;
  const bool by_search = trial.why.starts_with("paused by the search");
  if (of.experiment.state == experiment_state::paused || (trial.state == trial_state::paused && !by_search))
    return {"PAUSED", "paused",
            "experiment " + to_string(of.experiment.id) + " is paused; troupe experiment activate " +
              to_string(of.experiment.id),
            since};
  if (by_search)
    return {"PAUSED", "search",
            has_driver(of.experiment) ? "it is paused, as the search's driver ordered"
                                      : "it is paused by the search until it is promoted",
            since};
  if (trial.runs.empty())
    return {"STARTING", "starting", "its first run is about to ask for slots", since};
  const auto& last = trial.runs.back();
  return {"BACK_OFF", "back_off",
          "run " + to_string(last.run) + " ended (" +
            (last.detail.empty() ? std::string(name(last.why)) : last.detail) + "), and the next one " +
            (of.retry_at > last.ended ? "waits until " + to_rfc3339(of.retry_at).substr(11, 8) + " UTC"
                                      : std::string("is about to ask for slots")),
          since};
}

std::string agents_of(const run_row& run) {
  std::string out;
  for (const auto& part : run.on)
    out += (out.empty() ? "" : ", ") + part.agent;
  return out;
}

/// A clause that says how the run before this one ended; empty where there was none.
std::string after(const std::vector<run_row>& runs, const run_row& run) {
  const auto n = &run - runs.data();
  if (n == 0)
    return {};
  const auto& before = runs[static_cast<std::size_t>(n - 1)];
  return "; run " + to_string(before.run) +
         " ended: " + (before.detail.empty() ? std::string(name(before.why)) : before.detail);
}

standing of_open_run(const std::vector<run_row>& runs, const run_row& run, const value& said,
                     const std::string& doing) {
  const auto& reason = said.is_object() ? said.at("reason") : value();
  const auto code = reason.is_object() ? reason.at("code").get<std::string>() : std::string();
  const auto since = run.on.empty() ? run.started : run.placed;
  if (code == "stopping" || doing == "STOPPING" || doing == "KILLING") {
    const auto heir = code == "stopping" ? said.value("behind", value()) : value();
    const auto to = parse_allocation(heir.is_string() ? heir.get<std::string>() : std::string());
    if (code == "stopping" && run.preempted == "disabled")
      return {"STOPPING", "stopping", reason.at("text").get<std::string>(), since}; // the text names the user
    return {"STOPPING", "stopping",
            (run.preempted.empty()         ? "it was asked to save and end"
             : run.preempted == "disabled" ? "its agent or its slots were disabled, so it is killed"
                                           : "it was preempted (" + run.preempted + "), and saves") +
              (to ? "; its slots go to " + std::string(name(to.task.kind())) + " " + to_string(to.task) : ""),
            since};
  }
  if (!run.on.empty() && (code.empty() || code == "running"))
    return doing == "STARTING"
             ? standing{"STARTING", "starting", "its task starts on " + agents_of(run), since}
             : standing{"RUNNING", "running", "it runs on " + agents_of(run) + after(runs, run), since};
  if (code.empty() || code == "running") // the placement is not durable yet, or the run has just asked
    return {"STARTING", "starting", "it is about to be placed", since};
  return {"QUEUED", "", reason.at("text").get<std::string>(), since}; // the pool gives the code
}

standing of_ended(const run_row& run) {
  return {"ENDED", "ended",
          !run.detail.empty()      ? run.detail
          : !run.preempted.empty() ? "it was preempted (" + run.preempted + ")"
                                   : std::string(name(run.why)),
          run.ended};
}

std::string of_end(const task_detail& task) {
  if (task.state == task_state::completed)
    return task.why.empty() ? "it came to its end" : task.why;
  return (task.state == task_state::error ? "failed: " : "was ended: ") +
         (task.why.empty() ? std::string("no reason was given") : task.why);
}

standing between_runs(const task_detail& task) {
  const auto since = task.runs.empty() ? task.made.at : task.runs.back().ended;
  if (task.state == task_state::paused)
    return {"PAUSED", "paused", "it is paused; troupe task unpause " + to_string(task.made.id), since};
  if (task.state != task_state::active)
    return {"STOPPING", "stopping", "it is being ended" + (task.why.empty() ? "" : ": " + task.why), since};
  return {"STARTING", "starting", "its run is about to ask for slots", since};
}

/// A collection of checkpoints that the master itself reaches.
standing collecting(const task_detail& task) {
  return {"RUNNING", "running", "the master removes files of checkpoints", task.made.at};
}

/// Adds to `out` the state `here` and, where the run waits, what the pool says of it.
value answer(const standing& here, value out, const value& said, time_point now) {
  out.update({{"also", value::array()},
              {"agents", value::array()},
              {"wouldFree", value::array()},
              {"position", nullptr},
              {"reservation", nullptr},
              {"estimate", nullptr},
              {"advice", ""},
              {"behind", nullptr},
              {"waitedSeconds", nullptr}});
  out["state"] = here.state;
  out["since"] = to_rfc3339(here.since);
  out["reason"] = {{"code", here.code}, {"text", here.text}};
  if (said.is_object() && out["state"] == "STOPPING" && said.at("reason").at("code") == "stopping")
    out["behind"] = said.value("behind", value()); // the run that gets the slots
  if (!said.is_object() || out["state"] != "QUEUED")
    return out;
  for (const char* key : {"reason", "also", "agents", "wouldFree", "position", "reservation", "estimate",
                          "advice", "behind", "slots", "priority", "weight"})
    out[key] = said.at(key);
  if (out["reason"]["code"] == "no_agents" && out["advice"] != "") // a pool does not know its own name
    out["advice"] = "start an agent of this pool: troupe agent --pool " + out["pool"].get<std::string>();
  out["waitedSeconds"] = static_cast<std::int64_t>(seconds_from(here.since, now));
  return out;
}

} // namespace

bool explained_run::open() const {
  const auto* row = find_run(trial.runs, run);
  return row && row->ended == time_point{} && !terminal(trial.state);
}

bool explained_task::open() const {
  const auto* row = find_run(task.runs, run);
  return row && row->ended == time_point{} && !terminal(task.state);
}

value explanation_of(const explained_run& of, const value& said, const std::string& doing, time_point now) {
  const auto* run = find_run(of.trial.runs, of.run);
  const bool of_newest = !run || run == &of.trial.runs.back();
  const auto here = terminal(of.trial.state) ? standing{"ENDED", "ended", of_end(of.trial), of.trial.ended}
                    : run && !of_newest      ? of_ended(*run)
                    : !of.open()             ? between_runs(of)
                    : of.experiment.unmanaged
                      ? standing{"RUNNING", "running",
                                 "it runs outside of the cluster: its own process reports", run->started}
                      : of_open_run(of.trial.runs, *run, said, doing);
  return answer(here,
                {{"allocation", run ? value(to_string(of.allocation())) : value()},
                 {"trial", of.trial.id.value},
                 {"experiment", of.experiment.id.value},
                 {"pool", of.pool},
                 {"slots", slots_of(of.experiment)},
                 {"priority", priority_of(of)},
                 {"weight", weight_of(of.experiment)},
                 {"user", of.experiment.owner}},
                said, now);
}

value explanation_of(const explained_task& of, const value& said, const std::string& doing, time_point now) {
  const auto& [task, id, pool, usual] = of;
  const auto* run = find_run(task.runs, id);
  const auto here = terminal(task.state)              ? standing{"ENDED", "ended", of_end(task), task.ended}
                    : run && run != &task.runs.back() ? of_ended(*run)
                    : collected_experiment(task) && !collects_on_agent(task.made) ? collecting(task)
                    : !of.open()                                                  ? between_runs(task)
                                 : of_open_run(task.runs, *run, said, doing);
  const auto given = [&](const char* key, value otherwise) {
    return task.made.config.is_object()
             ? task.made.config.value(value::json_pointer(key), std::move(otherwise))
             : otherwise;
  };
  const auto priority = given("/resources/priority", value());
  return answer(here,
                {{"allocation", run ? value(to_string(of.allocation())) : value()},
                 {"task", to_string(task.made.id)},
                 {"kind", name(task.made.id.kind())},
                 {"trial", nullptr},
                 {"experiment", nullptr},
                 {"pool", pool},
                 {"slots", given("/resources/slots", value(0))},
                 {"priority", task.priority > 0              ? value(task.priority)
                              : priority.is_number_integer() ? priority
                                                             : value(usual)},
                 {"weight", given("/resources/weight", value(1))},
                 {"user", task.made.owner}},
                said, now);
}

trial_news news_of(const std::vector<std::string>& facts) {
  trial_news out;
  for (const auto& bytes : facts)
    if (const auto known = decode(bytes)) {
      if (const auto* told = std::get_if<trial_progressed>(&*known))
        out.progressed = told->at;
      else if (const auto* ended = std::get_if<run_ended>(&*known))
        out.retry_at = ended->retry_at;
    }
  return out;
}

run_outlook outlook_of(const trial_row& trial, const std::vector<trial_row>& siblings, time_point now,
                       time_point progressed) {
  run_outlook out;
  if (trial.runs.empty() || trial.runs.back().on.empty())
    return out;
  const auto& run = trial.runs.back();
  out.allocation = {trial.id, run.run};
  out.saved = run.saved != time_point{} ? run.saved : run.placed;
  std::vector<double> times;
  for (const auto& other : siblings)
    for (const auto& one : other.runs)
      if (one.ended != time_point{} && one.placed != time_point{} && one.why == end::completed)
        times.push_back(worked(other, one.run, one.ended));
  if (!times.empty()) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    out.seconds = *middle;
    out.from = "history";
  } else if (trial.progress > 0) {
    const auto at = progressed == time_point{} ? now : std::min(progressed, now);
    auto last = trial.runs.end(); // the run that reported the progress
    for (auto it = trial.runs.begin(); it != trial.runs.end(); ++it)
      if (it->placed != time_point{} && it->placed <= at)
        last = it;
    if (last == trial.runs.end())
      return out;
    out.seconds = worked(trial, last->run, at) / trial.progress;
    out.from = "progress";
  }
  if (!out.from.empty())
    out.seconds = std::max(0.0, out.seconds - worked(trial, run.run, now));
  return out;
}

trial_place place_of(const trial_row& trial, const experiment_row& experiment) {
  if (terminal(trial.state))
    return trial_place::elsewhere;
  if (!trial.runs.empty() && trial.runs.back().ended == time_point{})
    return trial.runs.back().on.empty() && !experiment.unmanaged ? trial_place::waiting
                                                                 : trial_place::running;
  if (trial.state == trial_state::paused || experiment.state == experiment_state::paused ||
      trial.why.starts_with("paused by the search"))
    return trial_place::paused;
  const bool goes_on = !trial.runs.empty() && trial.state != trial_state::stopping &&
                       experiment.state == experiment_state::active && !experiment.unmanaged;
  return goes_on ? trial_place::waiting : trial_place::elsewhere;
}

namespace {

/// Why an experiment has ended that has no reason of its own: that of the trial that ended last.
std::string why_by_trial(const std::vector<trial_row>& trials) {
  const trial_row* last = nullptr;
  for (const auto& trial : trials)
    if (terminal(trial.state) && trial.state != trial_state::completed &&
        (!last || trial.ended > last->ended))
      last = &trial;
  return last ? "trial " + to_string(last->id) + " " + of_end(*last) : "no reason was given";
}

} // namespace

value explanation_of(const experiment_row& row, const std::vector<trial_row>& trials, const std::string& pool,
                     value waiting) {
  std::map<trial_place, std::size_t> counts;
  auto newest = row.created, oldest_run = time_point::max();
  for (const auto& trial : trials) {
    const auto place = place_of(trial, row);
    ++counts[place];
    if (place == trial_place::running)
      oldest_run = std::min(oldest_run, row.unmanaged ? trial.runs.back().started : trial.runs.back().placed);
    newest = std::max({newest, trial.created, trial.runs.empty() ? time_point{} : trial.runs.back().ended});
  }
  const auto count = [&](trial_place place) { return std::to_string(counts[place]); };
  const auto why = !row.why.empty() ? row.why : why_by_trial(trials);
  value out{{"experiment", row.id.value},
            {"pool", pool},
            {"state", name(row.state)},
            {"trials",
             {{"running", counts[trial_place::running]},
              {"waiting", counts[trial_place::waiting]},
              {"paused", counts[trial_place::paused]}}},
            {"wouldFree", value::array()},
            {"advice", ""}};
  const auto say = [&](const char* code, std::string text, time_point since) {
    out["reason"] = {{"code", code}, {"text", std::move(text)}};
    out["since"] = to_rfc3339(since);
  };
  if (row.state == experiment_state::completed)
    say("ended",
        row.why.empty() ? "its search came to its end, with " + std::to_string(trials.size()) +
                            (trials.size() == 1 ? " trial" : " trials")
                        : row.why,
        row.ended);
  else if (row.state == experiment_state::delete_failed)
    say("ended", "could not be deleted: " + why, row.ended);
  else if (terminal(row.state))
    say("ended", (row.state == experiment_state::error ? "failed: " : "was ended: ") + why, row.ended);
  else if (row.state != experiment_state::active && row.state != experiment_state::paused)
    say("stopping", "it is being ended: " + why, newest);
  else if (row.state == experiment_state::paused) {
    say("paused", row.why.empty() ? "it is paused" : row.why, newest);
    if (!row.unmanaged)
      out["advice"] = "troupe experiment activate " + to_string(row.id);
  } else if (counts[trial_place::running] > 0) {
    auto text = count(trial_place::running) + " running";
    if (counts[trial_place::waiting] > 0)
      text += ", " + count(trial_place::waiting) + " waiting";
    if (counts[trial_place::paused] > 0)
      text += ", " + count(trial_place::paused) + " paused";
    say("running", std::move(text), oldest_run);
  } else if (!waiting.empty()) {
    const auto& first = waiting.front();
    out["reason"] = {{"code", first.at("reason").at("code")},
                     {"text", "trial " + to_json(first.at("trial")) + ": " +
                                first.at("reason").at("text").get<std::string>()}};
    for (const char* key : {"since", "wouldFree", "advice"})
      out[key] = first.at(key);
  } else if (counts[trial_place::paused] > 0)
    say("search", "its trials wait for what the search decides", newest);
  else if (const auto live =
             std::find_if(trials.begin(), trials.end(), [](const auto& x) { return !terminal(x.state); });
           live != trials.end()) {
    explained_run one;
    one.experiment = row;
    one.trial = *live;
    const auto here = between_runs(one);
    say(here.code, "trial " + to_string(live->id) + ": " + here.text, here.since);
  } else if (has_driver(row))
    say("search", "its driver has not ordered the next trial yet", newest);
  else
    say("starting", "its next trial is about to be created", newest);
  out["waiting"] = std::move(waiting);
  return out;
}

std::string pool_name_of(const members& who, const experiment_row& row) {
  if (auto pool = who.pool_of(row.id); !pool.empty())
    return pool;
  const auto& configuration = who.configuration();
  if (!row.resources.empty() && config::has_pool(configuration, row.resources.front().pool))
    return row.resources.front().pool;
  auto named = config::pool_of_experiment(configuration, row.config);
  return named ? *named : config::default_pool(configuration);
}

} // namespace troupe
