#include "actors/experiment/experiment.hpp"

#include <algorithm>

namespace troupe {

experiment::experiment(experiment_spec spec) : spec_(std::move(spec)) {}

experiment_step experiment::apply(const experiment_event& ev, time_point now) {
  experiment_step s;
  if (terminal(state_)) {
    if (auto* late = std::get_if<validation_recorded>(&ev))
      s.actions.push_back(answer_validation{late->origin, true, "canceled"});
    return s;
  }
  std::visit([&](const auto& x) { on(s, x, now); }, ev);
  conclude(s, now);
  if (!terminal(state_))
    ask_next(s.actions);
  return s;
}

void experiment::on(experiment_step& s, const experiment_activate&, time_point now) {
  if (state_ != experiment_state::paused)
    return;
  note(s, experiment_changed{now, experiment_state::active, ""});
  order_all(s.actions, {order_trial::kind::activate});
}

void experiment::on(experiment_step& s, const experiment_pause&, time_point now) {
  if (state_ != experiment_state::active)
    return;
  note(s, experiment_changed{now, experiment_state::paused, ""});
  order_all(s.actions, {order_trial::kind::pause});
}

void experiment::on(experiment_step& s, const experiment_stop& ev, time_point now) {
  auto want = ev.broken ? experiment_state::stopping_error
              : ev.kill ? experiment_state::stopping_killed
                        : experiment_state::stopping_canceled;
  if (stopping(state_) && !(state_ == experiment_state::stopping_canceled && (ev.kill || ev.broken)))
    return; // stopping states only get stronger
  note(s, experiment_changed{now, want, ev.why});
  drop_inputs(s);
  asking_ = false;
  order_all(s.actions, {order_trial::kind::stop, {}, trial_state::canceled, ev.kill, ev.why});
}

void experiment::on(experiment_step& s, const validation_recorded& ev, time_point) {
  auto it = trials_.find(ev.trial);
  bool known = it != trials_.end() && !it->second.exited;
  if (!known || stopping(state_) || over_) {
    s.actions.push_back(answer_validation{ev.origin, true, "canceled"});
    return;
  }
  if (ev.row <= it->second.heard_row) { // heard before a crash; the answer is what was decided then
    s.actions.push_back(answer_validation{ev.origin, !it->second.stop_why.empty(), "pruned"});
    return;
  }
  auto queued = [&](const input& x) { return x.trial == ev.trial && x.row == ev.row; };
  if (auto same = std::find_if(inputs_.begin(), inputs_.end(), queued); same != inputs_.end()) {
    same->origin = ev.origin;
    return;
  }
  inputs_.push_back({search_input::validated, ev.trial, ev.origin, ev.row, ev.steps, relevant(ev.metrics, ev.steps)});
}

void experiment::on(experiment_step&, const trial_finished& ev, time_point) {
  auto it = trials_.find(ev.trial);
  if (it == trials_.end() || it->second.finished || it->second.exited)
    return;
  it->second.finished = true;
  if (stopping(state_) || over_)
    return;
  if (ev.exit_reason >= 0)
    inputs_.push_back({.kind = search_input::exited_early, .trial = ev.trial, .reason = ev.exit_reason});
  inputs_.push_back({.kind = search_input::exited, .trial = ev.trial});
}

void experiment::on(experiment_step& s, const search_decided& ev, time_point now) {
  if (!asking_ || inputs_.empty())
    return; // asked before a stop
  asking_ = false;
  auto heard = std::move(inputs_.front());
  inputs_.pop_front();
  if (!ev.fault.empty()) {
    if (heard.origin.sequence)
      s.actions.push_back(answer_validation{heard.origin, true, "canceled"});
    note(s, experiment_changed{now, experiment_state::stopping_error, ev.fault});
    drop_inputs(s);
    order_all(s.actions, {order_trial::kind::stop, {}, trial_state::error, true, "the search failed"});
    return;
  }
  search_stepped fact{now, heard.kind, heard.trial, heard.row, heard.steps, heard.metrics, heard.reason, ev.created};
  for (const auto& [key, stop] : ev.stopped)
    if (auto it = by_key_.find(key); it != by_key_.end()) {
      fact.stopped.push_back(stop);
      fact.stopped.back().trial = it->second;
    }
  fact.shut_down = ev.shut_down;
  fact.cancel = ev.cancel;
  fact.failure = ev.failure;
  fact.progress = ev.progress;
  note(s, fact);
  for (const auto& made : fact.created)
    s.actions.push_back(spawn_trial{made, state_ == experiment_state::active});
  for (const auto& stop : fact.stopped)
    s.actions.push_back(order_trial{order_trial::kind::stop, stop.trial, trial_state::completed, false, stop.why});
  if (heard.origin.sequence)
    s.actions.push_back(answer_validation{heard.origin, !trials_[heard.trial].stop_why.empty(), "pruned"});
  if (over_)
    drop_inputs(s); // the search hears nothing more
}

void experiment::drop_inputs(experiment_step& s) {
  for (const auto& x : inputs_)
    if (x.origin.sequence)
      s.actions.push_back(answer_validation{x.origin, true, "canceled"});
  inputs_.clear();
}

void experiment::ask_next(std::vector<experiment_action>& out) {
  if (asking_ || inputs_.empty() || stopping(state_) || over_)
    return;
  asking_ = true;
  out.push_back(ask_searcher{event_of(inputs_.front())});
}

void experiment::conclude(experiment_step& s, time_point now) {
  if (stopping(state_)) {
    if (live_trials() > 0)
      return;
    auto last = state_ == experiment_state::stopping_error       ? experiment_state::error
                : state_ == experiment_state::stopping_completed ? experiment_state::completed
                                                                 : experiment_state::canceled;
    note(s, experiment_changed{now, last, ""});
    s.actions.push_back(report_experiment_end{last});
  } else if (over_ && live_trials() == 0) {
    auto last = over_->failure  ? experiment_state::error
                : over_->cancel ? experiment_state::canceled
                                : experiment_state::completed;
    note(s, experiment_changed{now, last, over_->failure ? "every trial failed" : ""});
    s.actions.push_back(report_experiment_end{last});
  }
}

void experiment::order_all(std::vector<experiment_action>& out, order_trial order) const {
  for (const auto& [id, t] : trials_)
    if (!t.exited && !t.finished) {
      order.trial = id;
      out.push_back(order);
    }
}

void experiment::note(experiment_step& s, experiment_fact fact) {
  replay(fact);
  s.facts.push_back(std::move(fact));
}

void experiment::replay(const experiment_fact& fact) {
  if (auto* changed = std::get_if<experiment_changed>(&fact)) {
    state_ = changed->state;
    return;
  }
  const auto& f = std::get<search_stepped>(fact);
  history_.push_back(event_of({f.input, f.trial, {}, f.row, f.steps, f.metrics, f.reason}));
  started_ = true;
  if (auto it = trials_.find(f.trial); it != trials_.end()) {
    it->second.heard_row = std::max(it->second.heard_row, f.row);
    it->second.exited |= f.input == search_input::exited;
  }
  for (const auto& made : f.created) {
    trials_[made.trial] = {made};
    by_key_[made.key] = made.trial;
  }
  for (const auto& stop : f.stopped)
    trials_[stop.trial].stop_why = stop.why;
  if (f.shut_down)
    over_ = f;
}

std::optional<error> experiment::refuses(const experiment_event& ev) const {
  bool runs = state_ == experiment_state::active || state_ == experiment_state::paused;
  bool asks = std::holds_alternative<experiment_activate>(ev) || std::holds_alternative<experiment_pause>(ev);
  if (runs || !asks)
    return std::nullopt;
  return error{errc::conflict, "experiment " + to_string(spec_.id) + " is " + std::string(name(state_))};
}

std::vector<experiment_action> experiment::resume(time_point) {
  if (terminal(state_))
    return {report_experiment_end{state_}};
  std::vector<experiment_action> out;
  for (const auto& [id, t] : trials_)
    for (auto& action : resume_trial(id))
      out.push_back(std::move(action));
  if (!started_)
    inputs_.push_front({});
  ask_next(out);
  return out;
}

std::vector<experiment_action> experiment::resume_trial(trial_id id) const {
  auto it = trials_.find(id);
  if (terminal(state_) || it == trials_.end() || it->second.exited)
    return {};
  const auto& t = it->second;
  std::vector<experiment_action> out{spawn_trial{t.made, state_ == experiment_state::active}};
  if (stopping(state_)) {
    bool broken = state_ == experiment_state::stopping_error;
    out.push_back(order_trial{order_trial::kind::stop, id, broken ? trial_state::error : trial_state::canceled,
                              state_ != experiment_state::stopping_canceled, "the experiment was stopped"});
  } else if (!t.stop_why.empty()) {
    out.push_back(order_trial{order_trial::kind::stop, id, trial_state::completed, false, t.stop_why});
  }
  return out;
}

searchers::search_event experiment::event_of(const input& x) const {
  auto it = trials_.find(x.trial);
  std::string key = it == trials_.end() ? "" : it->second.made.key;
  switch (x.kind) {
  case search_input::started: return searchers::search_started{};
  case search_input::validated: return searchers::trial_validated{key, x.metrics};
  case search_input::exited_early: return searchers::trial_exited_early{key, searchers::exit_reason(x.reason)};
  case search_input::exited: return searchers::trial_exited{key};
  }
  return searchers::search_started{};
}

value experiment::relevant(const std::string& metrics, std::int64_t steps) const {
  auto all = parse_msgpack(metrics);
  value out = value::object();
  if (all && all->is_object())
    for (const auto& name : {spec_.metric, spec_.time_metric})
      if (auto it = all->find(name); it != all->end())
        out[name] = *it;
  if (spec_.time_metric == "batches" && !out.contains("batches"))
    out["batches"] = steps; // the steps of a report are its batches, as Determined's trainer adds them
  return out;
}

std::size_t experiment::live_trials() const {
  return static_cast<std::size_t>(std::count_if(trials_.begin(), trials_.end(), [&](const auto& t) {
    return !t.second.exited && !(t.second.finished && (stopping(state_) || over_));
  }));
}

std::map<trial_id, std::uint64_t> experiment::heard_rows() const {
  std::map<trial_id, std::uint64_t> rows;
  for (const auto& [id, t] : trials_)
    if (!t.exited)
      rows[id] = t.heard_row;
  return rows;
}

std::string experiment::snapshot() const {
  std::vector<std::tuple<trial_id, std::string, std::uint64_t, bool, std::string>> trials;
  for (const auto& [id, t] : trials_)
    trials.emplace_back(id, t.made.key, t.heard_row, t.exited, t.stop_why);
  return pack(std::tuple{state_, started_, over_.has_value(), trials, history_.size()});
}

} // namespace troupe
