#include "actors/experiment/unmanaged.hpp"

#include <algorithm>

namespace troupe::unmanaged {
namespace {

constexpr const char* by_silence = "no sign of life for 5 minutes";

const run_row* open_run(const trial_row& trial) {
  return !trial.runs.empty() && trial.runs.back().ended == time_point{} ? &trial.runs.back() : nullptr;
}

void end_run(std::vector<trial_fact>& facts, const trial_row& trial, end why, const std::string& detail,
             time_point now) {
  if (const auto* run = open_run(trial))
    facts.emplace_back(run_ended{now, run->run, why, trial.restarts, 0, {}, detail});
}

std::size_t rank(trial_state state) {
  switch (state) {
  case trial_state::canceled:
    return 1;
  case trial_state::error:
    return 2;
  case trial_state::completed:
    return 3;
  case trial_state::running:
  case trial_state::stopping:
    return 4;
  case trial_state::queued:
  case trial_state::paused:
    break;
  }
  return 0;
}

constexpr experiment_state of_rank[] = {experiment_state::paused, experiment_state::canceled,
                                        experiment_state::error, experiment_state::completed,
                                        experiment_state::active};

} // namespace

time_point next_look(time_point heard, time_point looked) {
  return looked == time_point{} ? heard + patience : std::max(heard + patience, looked + again);
}

result<void> takes_runs(const experiment_row& experiment) {
  if (experiment.archived)
    return error{errc::invalid,
                 "experiment " + to_string(experiment.id) + " is archived: unarchive it first"};
  return {};
}

result<started> start(const trial_row& trial, bool resume, const std::optional<checkpoint>& newest,
                      time_point now) {
  if (!trial.runs.empty() && !resume)
    return error{errc::conflict, "trial has already been started"};
  started out;
  out.run = {trial.runs.empty() ? 1 : trial.runs.back().run.value + 1};
  if (newest) {
    out.checkpoint = newest->uuid;
    out.steps = newest->steps;
  }
  end_run(out.facts, trial, end::lost, "it was started again", now);
  out.facts.emplace_back(run_started{now, out.run, out.checkpoint, out.steps});
  out.facts.emplace_back(trial_heard{now});
  return out;
}

std::vector<trial_fact> alive(const trial_row& trial, time_point now) {
  if (terminal(trial.state) && trial.why != by_silence)
    return {};
  if (trial.state == trial_state::running && now - trial.heard < least_gap)
    return {};
  return {trial_heard{now}};
}

std::vector<trial_fact> ended(const trial_row& trial, trial_state as, const std::string& why,
                              time_point now) {
  if (terminal(trial.state) && trial.why != by_silence)
    return {};
  std::vector<trial_fact> facts;
  end_run(facts, trial,
          as == trial_state::completed ? end::completed
          : as == trial_state::error   ? end::failed
                                       : end::stopped,
          why, now);
  facts.emplace_back(trial_ended{now, as, why});
  return facts;
}

std::vector<trial_fact> silent(const trial_row& trial, time_point heard, time_point now) {
  heard = std::max(heard, trial.heard); // a trial that was started again has lived since that start
  if (trial.state != trial_state::running || now - heard < patience)
    return {};
  return {trial_ended{heard, trial_state::error, by_silence}};
}

time_point latest_sign(time_point heard, const std::vector<time_point>& said, time_point now) {
  for (const auto at : said)
    if (at <= now)
      heard = std::max(heard, at);
  return heard;
}

std::vector<trial_fact> matched(const std::set<std::string>& known, const line_matched& line,
                                time_point now) {
  if (known.contains(line.pattern))
    return {}; // after a restart the journal reports a match again
  return {log_policy_matched{now, line.allocation.run, line.policy, line.pattern, line.line, {}, false}};
}

void known_trials::note(const trial_row& trial) {
  auto [it, fresh] = all_.try_emplace(trial.id);
  auto& known = it->second;
  if (fresh)
    by_key_[trial.key] = trial.id;
  of_rank_[rank(known.state)].erase(trial.id);
  by_end_.erase({known.ended, trial.id});
  known = {trial.state, trial.ended, trial.why};
  of_rank_[rank(known.state)].insert(trial.id);
  if (known.ended != time_point{})
    by_end_.insert({known.ended, trial.id});
}

trial_id known_trials::with_key(const std::string& key) const {
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? trial_id{} : at->second;
}

std::vector<experiment_fact> known_trials::settle(const experiment_row& experiment, time_point now) const {
  std::size_t furthest = of_rank_.size() - 1;
  while (furthest > 0 && of_rank_[furthest].empty())
    --furthest;
  const auto state = of_rank[furthest];
  if (state == experiment.state || experiment.state >= experiment_state::deleting)
    return {};
  if (!terminal(state))
    return {experiment_changed{now, state, ""}};
  auto last = *of_rank_[furthest].begin(); // the experiment ends when its last trial does
  if (!by_end_.empty() && by_end_.rbegin()->first > all_.at(last).ended)
    last = by_end_.lower_bound({by_end_.rbegin()->first, trial_id{}})->second;
  const auto& known = all_.at(last);
  return {experiment_changed{known.ended, state,
                             state == experiment_state::error ? "trial " + to_string(last) + ": " + known.why
                                                              : ""}};
}

std::vector<experiment_fact> settle(const experiment_row& experiment, const std::vector<trial_row>& trials,
                                    time_point now) {
  known_trials known;
  for (const auto& trial : trials)
    known.note(trial);
  return known.settle(experiment, now);
}

bool told_at_start(const experiment_row& experiment, bool untold, time_point now) {
  constexpr auto day = std::chrono::hours(24);
  return experiment.unmanaged && terminal(experiment.state) &&
         experiment.state < experiment_state::deleting && now - experiment.ended < (untold ? 30 * day : day);
}

search_stepped heard_validation(const experiment_spec& of, const validation_recorded& x, time_point now) {
  search_stepped out;
  out.at = now;
  out.input = search_input::validated;
  out.trial = x.trial;
  out.row = x.row;
  out.steps = x.steps;
  out.run = x.run;
  out.metrics = value::object();
  if (const auto all = parse_msgpack(x.metrics); all && all->is_object())
    for (const auto& name : {of.metric, of.time_metric})
      if (const auto it = all->find(name); it != all->end())
        out.metrics[name] = *it;
  return out;
}

} // namespace troupe::unmanaged
