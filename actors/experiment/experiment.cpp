#include "actors/experiment/experiment.hpp"

#include <algorithm>

namespace troupe {

experiment::experiment(experiment_spec spec) : spec_(std::move(spec)) {}

experiment_step experiment::apply(const experiment_event& ev, time_point now) {
  experiment_step s;
  const auto* again = std::get_if<experiment_resume>(&ev);
  if (terminal(state_) && !(again && again->number > continued_)) {
    if (auto* late = std::get_if<validation_recorded>(&ev))
      s.actions.push_back(answer_validation{late->origin, true, "canceled"});
    if (auto* late = std::get_if<search_orders>(&ev))
      s.actions.push_back(answer_orders{
        late->request, "experiment " + to_string(spec_.id) + " is " + std::string(name(state_)), facts_, {}});
    return s;
  }
  std::visit([&](const auto& x) { on(s, x, now); }, ev);
  conclude(s, now);
  if (!terminal(state_))
    ask_next(s.actions);
  return s;
}

void experiment::on(experiment_step& s, const experiment_activate& ev, time_point now) {
  if (state_ != experiment_state::paused)
    return;
  note(s, experiment_changed{now, experiment_state::active, "", ev.by});
  order_all(s.actions, {order_trial::kind::activate});
}

void experiment::on(experiment_step& s, const experiment_pause& ev, time_point now) {
  if (state_ != experiment_state::active)
    return;
  note(s, experiment_changed{now, experiment_state::paused, "", ev.by});
  order_all(s.actions, {order_trial::kind::pause});
}

void experiment::on(experiment_step& s, const experiment_stop& ev, time_point now) {
  auto want = ev.broken ? experiment_state::stopping_error
              : ev.kill ? experiment_state::stopping_killed
                        : experiment_state::stopping_canceled;
  if (stopping(state_) && !(state_ == experiment_state::stopping_canceled && (ev.kill || ev.broken)))
    return; // a stopping state changes only to a stronger one
  note(s, experiment_changed{now, want, ev.why, ev.by});
  drop_inputs(s);
  asking_ = false;
  order_all(s.actions, {order_trial::kind::stop, {}, trial_state::canceled, ev.kill, ev.why});
}

void experiment::on(experiment_step& s, const experiment_set& ev, time_point now) {
  auto next = resources_.value_or(spec_.resources);
  next.at = now;
  next.by = ev.by;
  if (ev.priority > 0)
    next.priority = ev.priority;
  if (ev.weight >= 0)
    next.weight = ev.weight;
  if (ev.max_slots >= -1)
    next.max_slots = ev.max_slots;
  if (!ev.pool.empty())
    next.pool = ev.pool;
  note(s, next);
  s.actions.push_back(tell_resources{next});
}

void experiment::on(experiment_step& s, const experiment_resume& ev, time_point now) {
  if (ev.number <= continued_)
    return;
  note(s, experiment_resumed{now, ev.number, ev.trials, ev.configured, ev.hparams});
  for (auto& action : resume(now))
    s.actions.push_back(std::move(action));
}

void experiment::on(experiment_step& s, const validation_recorded& ev, time_point) {
  auto it = trials_.find(ev.trial);
  bool known = it != trials_.end() && !it->second.exited;
  if (!known || stopping(state_) || over_) {
    s.actions.push_back(answer_validation{ev.origin, true, "canceled"});
    return;
  }
  auto& t = it->second;
  if (ev.row <= t.heard_row) { // heard before a crash; the answer is the decision of that time
    s.actions.push_back(answer_to(ev.origin, t));
    return;
  }
  if (!t.taken) { // it is not known yet whether the report's run still counts
    auto same = std::find_if(t.held.begin(), t.held.end(), [&](const auto& x) { return x.row == ev.row; });
    if (same != t.held.end())
      *same = ev;
    else
      t.held.push_back(ev);
    return;
  }
  if (ev.run && ev.run <= t.void_until) {
    s.actions.push_back(answer_validation{ev.origin, true, "perturbed"});
    return;
  }
  auto queued = [&](const input& x) { return x.trial == ev.trial && x.row == ev.row; };
  if (auto same = std::find_if(inputs_.begin(), inputs_.end(), queued); same != inputs_.end()) {
    same->origin = ev.origin;
    return;
  }
  inputs_.push_back({.kind = search_input::validated,
                     .trial = ev.trial,
                     .origin = ev.origin,
                     .row = ev.row,
                     .steps = ev.steps,
                     .metrics = relevant(ev.metrics, ev.steps),
                     .run = ev.run});
}

void experiment::on(experiment_step&, const checkpoint_reported& ev, time_point) {
  auto it = trials_.find(ev.trial);
  if (!spec_.hears_checkpoints || it == trials_.end() || stopping(state_) || over_)
    return;
  const auto& t = it->second;
  auto queued = [&](const input& x) { return x.checkpoint == ev.uuid; };
  if (t.exited || t.finished || !t.taken || checkpoint_steps_.contains(ev.uuid) ||
      std::any_of(inputs_.begin(), inputs_.end(), queued))
    return;
  inputs_.push_back(
    {.kind = search_input::checkpointed, .trial = ev.trial, .steps = ev.steps, .checkpoint = ev.uuid});
}

void experiment::on(experiment_step& s, const perturbation_taken& ev, time_point now) {
  auto it = trials_.find(ev.trial);
  if (it == trials_.end() || !it->second.perturb || it->second.perturb->number != ev.number)
    return;
  auto& t = it->second;
  t.void_until = ev.run;
  t.taken = true;
  for (const auto& report : std::exchange(t.held, {}))
    on(s, report, now);
}

void experiment::on(experiment_step& s, const search_orders& ev, time_point) {
  if (stopping(state_) || over_)
    s.actions.push_back(answer_orders{ev.request, "the search is over", facts_, {}});
  else
    inputs_.push_back({.kind = search_input::ordered, .metrics = ev.orders, .request = ev.request});
}

void experiment::on(experiment_step& s, const trial_finished& ev, time_point) {
  auto it = trials_.find(ev.trial);
  if (it == trials_.end() || it->second.finished || it->second.exited)
    return;
  it->second.finished = true;
  release_held(s, it->second, "canceled");
  if (stopping(state_) || over_)
    return;
  if (ev.exit_reason >= 0)
    inputs_.push_back({.kind = search_input::exited_early, .trial = ev.trial, .reason = ev.exit_reason});
  inputs_.push_back({.kind = search_input::exited, .trial = ev.trial});
}

void experiment::on(experiment_step& s, const search_decided& ev, time_point now) {
  if (!asking_ || inputs_.empty())
    return; // the searcher was asked before the experiment was stopped
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
  if (!ev.refused.empty()) {
    s.actions.push_back(answer_orders{heard.request, ev.refused, facts_, {}});
    return;
  }
  auto fact = decided(heard, ev, now);
  note(s, fact);
  if (facts_ >= kept_ + spec_.snapshot_every) {
    kept_ = facts_;
    s.actions.push_back(keep_snapshot{facts_, snapshot()});
  }
  carry_out(s, fact);
  if (heard.origin.sequence)
    s.actions.push_back(answer_to(heard.origin, trials_[heard.trial]));
  if (heard.request) {
    answer_orders answer{heard.request, "", facts_, {}};
    for (const auto& made : fact.created)
      answer.created.emplace_back(made.key, made.trial);
    s.actions.push_back(std::move(answer));
  }
  if (over_)
    drop_inputs(s); // from now on the search hears no more inputs
}

search_stepped experiment::decided(const input& heard, const search_decided& ev, time_point now) const {
  search_stepped fact{now,         heard.kind,    heard.trial,  heard.row,
                      heard.steps, heard.metrics, heard.reason, ev.created};
  fact.run = heard.run;
  auto id_of = [&](const std::string& key) {
    auto it = by_key_.find(key);
    if (it != by_key_.end())
      return it->second;
    auto made =
      std::find_if(ev.created.begin(), ev.created.end(), [&](const auto& x) { return x.key == key; });
    return made == ev.created.end() ? trial_id{} : made->trial;
  };
  auto steps_of = [&](const std::string& checkpoint) {
    auto it = checkpoint_steps_.find(checkpoint);
    return it == checkpoint_steps_.end() ? std::int64_t{0} : it->second;
  };
  for (auto& made : fact.created)
    made.source_steps = steps_of(made.source_checkpoint);
  for (const auto& [key, stop] : ev.stopped)
    if (auto id = id_of(key)) {
      fact.stopped.push_back(stop);
      fact.stopped.back().trial = id;
    }
  for (const auto& key : ev.paused)
    if (auto id = id_of(key))
      fact.paused.push_back(id);
  for (const auto& [key, until] : ev.resumed)
    if (auto id = id_of(key))
      fact.resumed.push_back({id, until});
  for (const auto& x : ev.perturbed)
    if (auto it = trials_.find(id_of(x.trial)); it != trials_.end()) {
      auto number = it->second.perturb ? it->second.perturb->number + 1 : 1;
      fact.perturbed.push_back(
        {it->first, id_of(x.source), x.checkpoint, steps_of(x.checkpoint), x.hparams, number});
    }
  fact.shut_down = ev.shut_down;
  fact.cancel = ev.cancel;
  fact.failure = ev.failure;
  fact.progress = ev.progress;
  fact.checkpoint = heard.checkpoint;
  fact.time = heard.time;
  return fact;
}

void experiment::carry_out(experiment_step& s, const search_stepped& fact) {
  bool active = state_ == experiment_state::active;
  for (const auto& made : fact.created)
    s.actions.push_back(spawn_trial{made, active && !trials_[made.trial].paused, {}});
  for (auto id : fact.paused)
    s.actions.push_back(order_trial{order_trial::kind::pause, id});
  for (const auto& x : fact.resumed)
    if (active)
      s.actions.push_back(order_trial{order_trial::kind::activate, x.trial});
  for (const auto& x : fact.perturbed) {
    drop_inputs_of(s, x.trial);
    order_trial order{order_trial::kind::perturb, x.trial};
    order.perturb = x;
    s.actions.push_back(std::move(order));
  }
  for (const auto& stop : fact.stopped)
    s.actions.push_back(
      order_trial{order_trial::kind::stop, stop.trial, trial_state::completed, false, stop.why});
}

void experiment::drop_inputs(experiment_step& s) {
  for (const auto& x : inputs_) {
    if (x.origin.sequence)
      s.actions.push_back(answer_validation{x.origin, true, "canceled"});
    if (x.request)
      s.actions.push_back(answer_orders{x.request, "the search is over", facts_, {}});
  }
  inputs_.clear();
  for (auto& [id, t] : trials_)
    release_held(s, t, "canceled");
}

/// Drops the inputs of a trial that was perturbed: what the trial reported before no longer counts.
void experiment::drop_inputs_of(experiment_step& s, trial_id trial) {
  std::erase_if(inputs_, [&](const input& x) {
    bool dropped =
      x.trial == trial && (x.kind == search_input::validated || x.kind == search_input::checkpointed);
    if (dropped && x.origin.sequence)
      s.actions.push_back(answer_validation{x.origin, true, "perturbed"});
    return dropped;
  });
}

void experiment::release_held(experiment_step& s, trial_entry& t, const std::string& reason) {
  for (const auto& report : std::exchange(t.held, {}))
    if (report.origin.sequence)
      s.actions.push_back(answer_validation{report.origin, true, reason});
}

answer_validation experiment::answer_to(const report_origin& origin, const trial_entry& t) const {
  if (!t.stop_why.empty())
    return {origin, true, "pruned"};
  if (t.paused)
    return {origin, true, "pause"};
  if (t.perturb && (!t.taken || origin.allocation.run <= t.void_until))
    return {origin, true, "perturbed"};
  return {origin, false, ""};
}

void experiment::ask_next(std::vector<experiment_action>& out) {
  if (asking_ || inputs_.empty() || stopping(state_) || over_)
    return;
  asking_ = true;
  auto& next = inputs_.front();
  if (next.kind == search_input::checkpointed)
    next.time = time_of(trials_.at(next.trial), next.steps);
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
    if (!t.exited && !t.finished && !(t.paused && order.what == order_trial::kind::activate)) {
      order.trial = id;
      out.push_back(order);
    }
}

void experiment::note(experiment_step& s, experiment_fact fact) {
  replay(fact);
  s.facts.push_back(std::move(fact));
}

void experiment::replay(const experiment_fact& fact) {
  ++facts_;
  if (auto* changed = std::get_if<experiment_changed>(&fact)) {
    state_ = changed->state;
    return;
  }
  if (auto* changed = std::get_if<experiment_resources_changed>(&fact)) {
    resources_ = *changed;
    return;
  }
  if (auto* again = std::get_if<experiment_resumed>(&fact)) {
    set(*again);
    return;
  }
  const auto& f = std::get<search_stepped>(fact);
  if (remembers_)
    history_.push_back(
      event_of({f.input, f.trial, {}, f.row, f.steps, f.metrics, f.reason, f.checkpoint, f.time}));
  started_ = true;
  if (f.input == search_input::continued)
    to_continue_.reset();
  if (auto it = trials_.find(f.trial); it != trials_.end()) {
    it->second.heard_row = std::max(it->second.heard_row, f.row);
    it->second.exited |= f.input == search_input::exited;
    if (f.input == search_input::validated)
      remember_time(it->second, f);
  }
  if (f.input == search_input::checkpointed)
    checkpoint_steps_[f.checkpoint] = f.steps;
  for (const auto& made : f.created) {
    trials_[made.trial] = {made};
    by_key_[made.key] = made.trial;
  }
  for (const auto& stop : f.stopped)
    trials_[stop.trial].stop_why = stop.why;
  for (auto id : f.paused)
    trials_[id].paused = true;
  for (const auto& x : f.resumed)
    trials_[x.trial].paused = false;
  for (const auto& x : f.perturbed) {
    auto& t = trials_[x.trial];
    t.perturb = x;
    t.made.hparams = x.hparams;
    t.times.clear();
    t.taken = false;
  }
  if (f.shut_down)
    over_ = f;
}

void experiment::set(const experiment_resumed& f) {
  continued_ = f.number;
  state_ = experiment_state::active;
  over_.reset();
  if (f.configured)
    resources_.reset();
  to_continue_ = value::array();
  for (const auto id : f.trials) {
    auto it = trials_.find(id);
    if (it == trials_.end())
      continue;
    auto& t = it->second;
    t.continued = f.number;
    // Until the search has a slot for the trial; the search believes that the other trials run.
    t.paused = t.exited;
    t.exited = t.finished = false;
    t.stop_why.clear();
    if (!f.hparams.is_null())
      t.made.hparams = f.hparams;
    to_continue_->push_back(t.made.key);
  }
}

std::optional<error> experiment::refuses(const experiment_event& ev) const {
  bool runs = state_ == experiment_state::active || state_ == experiment_state::paused;
  bool asks = std::holds_alternative<experiment_activate>(ev) || std::holds_alternative<experiment_pause>(ev);
  bool sets = std::holds_alternative<experiment_set>(ev) && terminal(state_); // its end may not be stored yet
  if ((runs || !asks) && !sets)
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
  if (to_continue_)
    inputs_.push_front({.kind = search_input::continued, .metrics = *to_continue_});
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
  std::vector<experiment_action> out{
    spawn_trial{t.made, state_ == experiment_state::active && !t.paused, t.perturb, t.continued}};
  if (stopping(state_)) {
    bool broken = state_ == experiment_state::stopping_error;
    out.push_back(order_trial{order_trial::kind::stop, id,
                              broken ? trial_state::error : trial_state::canceled,
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
  case search_input::started:
    return searchers::search_started{};
  case search_input::validated:
    return searchers::trial_validated{key, x.metrics};
  case search_input::exited_early:
    return searchers::trial_exited_early{key, searchers::exit_reason(x.reason)};
  case search_input::exited:
    return searchers::trial_exited{key};
  case search_input::checkpointed:
    return searchers::trial_checkpointed{key, x.time, x.checkpoint};
  case search_input::ordered:
    return searchers::search_ordered{x.metrics};
  case search_input::continued: {
    searchers::search_continued event;
    for (const auto& one : x.metrics)
      event.trials.push_back(one.get<std::string>());
    return event;
  }
  }
  return searchers::search_started{};
}

/// Progress of the trial at `steps`, in units of the time metric, as far as its reports tell. A checkpoint
/// may arrive before the report of its step: if batches were equal to steps so far, they are taken as equal
/// at that checkpoint, too.
double experiment::time_of(const trial_entry& t, std::int64_t steps) const {
  if (spec_.time_metric.empty())
    return static_cast<double>(t.reports);
  for (auto it = t.times.rbegin(); it != t.times.rend(); ++it)
    if (it->first <= steps)
      return spec_.time_metric == "batches" && it->second == static_cast<double>(it->first)
               ? static_cast<double>(steps)
               : it->second;
  return spec_.time_metric == "batches" ? static_cast<double>(steps) : 0;
}

void experiment::remember_time(trial_entry& t, const search_stepped& f) const {
  constexpr std::size_t most = 64;
  if (!spec_.hears_checkpoints)
    return;
  ++t.reports;
  auto it = f.metrics.is_object() ? f.metrics.find(spec_.time_metric) : f.metrics.end();
  auto time = it == f.metrics.end() ? std::nullopt : number_in(*it);
  if (!time)
    return;
  if (t.times.size() == most)
    t.times.erase(t.times.begin());
  t.times.emplace_back(f.steps, *time);
}

value experiment::relevant(const std::string& metrics, std::int64_t steps) const {
  auto all = parse_msgpack(metrics);
  value out = value::object();
  auto keep = [&](const std::string& name) {
    if (auto it = all->find(name); it != all->end())
      out[name] = *it;
  };
  if (all && all->is_object()) {
    keep(spec_.metric);
    keep(spec_.time_metric);
    for (const auto& name : spec_.more_metrics)
      keep(name);
  }
  if (spec_.time_metric == "batches" && !out.contains("batches"))
    out["batches"] = steps; // steps of a report are batches, as Determined's trainer counts them
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

std::vector<searchers::search_event> experiment::take_history() {
  remembers_ = false;
  return std::exchange(history_, {});
}

namespace {

constexpr std::uint32_t snapshot_version = 1;

struct kept_trial {
  trial_created made;
  std::uint64_t heard_row = 0;
  bool exited = false, paused = false;
  std::string stop_why;
  std::vector<trial_perturb_decided> perturb; ///< none or one
  std::uint64_t reports = 0;
  std::vector<std::pair<std::int64_t, double>> times;
  std::uint32_t continued = 0;
  TROUPE_PACKED(made, heard_row, exited, paused, stop_why, perturb, reports, times, continued)
};

struct kept_experiment {
  std::uint32_t version = snapshot_version;
  experiment_state state = experiment_state::active;
  bool started = false;
  std::uint64_t facts = 0;
  std::vector<search_stepped> over; ///< none or one
  std::vector<kept_trial> trials;
  std::map<std::string, std::int64_t> checkpoint_steps;
  std::vector<experiment_resources_changed> resources; ///< none or one
  std::uint32_t continued = 0;
  std::vector<value> to_continue; ///< none or one
  TROUPE_PACKED(version, state, started, facts, over, trials, checkpoint_steps, resources, continued,
                to_continue)
};

} // namespace

std::string experiment::snapshot() const {
  kept_experiment kept{snapshot_version,  state_, started_,   facts_, {}, {},
                       checkpoint_steps_, {},     continued_, {}};
  if (to_continue_)
    kept.to_continue.push_back(*to_continue_);
  if (resources_)
    kept.resources.push_back(*resources_);
  if (over_)
    kept.over.push_back(*over_);
  for (const auto& [id, t] : trials_) {
    kept.trials.push_back(
      {t.made, t.heard_row, t.exited, t.paused, t.stop_why, {}, t.reports, t.times, t.continued});
    if (t.perturb)
      kept.trials.back().perturb.push_back(*t.perturb);
  }
  return pack(kept);
}

result<void> experiment::restore(std::string_view snapshot) {
  auto kept = unpack<kept_experiment>(snapshot);
  if (!kept)
    return kept.error();
  if (kept->version != snapshot_version)
    return error{errc::unsupported, "a snapshot of version " + std::to_string(kept->version)};
  state_ = kept->state;
  started_ = kept->started;
  facts_ = kept_ = kept->facts;
  if (!kept->over.empty())
    over_ = kept->over.front();
  checkpoint_steps_ = std::move(kept->checkpoint_steps);
  if (!kept->resources.empty())
    resources_ = std::move(kept->resources.front());
  continued_ = kept->continued;
  if (!kept->to_continue.empty())
    to_continue_ = std::move(kept->to_continue.front());
  for (auto& k : kept->trials) {
    const auto id = k.made.trial;
    by_key_[k.made.key] = id;
    auto& t = trials_[id];
    t = {.made = std::move(k.made),
         .heard_row = k.heard_row,
         .exited = k.exited,
         .stop_why = std::move(k.stop_why),
         .paused = k.paused,
         .reports = k.reports,
         .times = std::move(k.times)};
    if (!k.perturb.empty())
      t.perturb = k.perturb.front();
    t.taken = !t.perturb;
    t.continued = k.continued;
  }
  return {};
}

value experiment::describe() const {
  value trials = value::object();
  for (const auto& [id, t] : trials_)
    trials[to_string(id)] = {{"key", t.made.key},      {"heard_row", t.heard_row}, {"exited", t.exited},
                             {"finished", t.finished}, {"stop", t.stop_why},       {"paused", t.paused},
                             {"reports", t.reports},   {"held", t.held.size()}};
  return {{"state", shown()},         {"search_started", started_}, {"search_over", over_.has_value()},
          {"facts", facts_},          {"trials", trials},           {"asking_searcher", asking_},
          {"inputs", inputs_.size()}, {"snapshot_at", kept_}};
}

const char* experiment::shown() const { return name(state_).data(); }

} // namespace troupe
