#include "actors/trial/trial.hpp"

#include "model/back_off.hpp"
#include "searchers/searcher.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

/// Pause before the next run; it grows with the failures, or losses, since the latest checkpoint.
constexpr duration first_pause = 1s, longest_pause = 30s;

trial::trial(trial_spec spec)
    : spec_(std::move(spec)), checkpoint_(spec_.warm_start), steps_(spec_.warm_start_steps) {}

trial_step trial::apply(const trial_event& ev, time_point now) {
  trial_step s;
  if (continued_ < spec_.continued)
    note(s, trial_continued{now, spec_.continued, run_});
  if (ended_) {
    // The answer to every event is the end that was reached; a late checkpoint is refused.
    if (auto* changed = std::get_if<checkpoint_files_changed>(&ev))
      on(s, *changed, now);
    else if (auto* given = std::get_if<metadata_given>(&ev))
      on(s, *given, now);
    else if (auto* said = std::get_if<description_given>(&ev))
      on(s, *said, now);
    else if (auto* late = std::get_if<checkpoint_saved>(&ev))
      s.actions.push_back(acknowledge_checkpoint{late->run, late->saved.uuid, "the trial has ended"});
    else if (std::holds_alternative<trial_stop>(ev))
      s.actions.push_back(report_trial_end{ended_->state, ended_->exit_reason, ended_->why});
    return s;
  }
  std::visit([&](const auto& x) { on(s, x, now); }, ev);
  if (!ended_)
    advance(s, now);
  TROUPE_ASSERT(!(ended_ && open_));
  return s;
}

void trial::on(trial_step& s, const trial_activate&, time_point now) {
  if (!active_)
    note(s, trial_activated{now});
}

void trial::on(trial_step& s, const trial_pause&, time_point now) {
  if (!active_)
    return;
  note(s, trial_paused{now});
  if (open_)
    s.actions.push_back(stop_order());
}

void trial::on(trial_step& s, const trial_stop& ev, time_point now) {
  if (stop_ && (stop_->kill || !ev.kill))
    return; // a repeat, or weaker than the stop that was ordered
  auto outcome = stop_ ? stop_->outcome : ev.outcome;
  note(s, trial_stop_ordered{now, outcome, ev.kill, ev.why, ev.by});
  if (open_)
    s.actions.push_back(stop_order());
}

void trial::on(trial_step& s, const trial_perturb& ev, time_point now) {
  if (!perturbed_ || perturbed_->number < ev.number) {
    if (stop_)
      return; // the experiment waits for this trial's end
    note(s, trial_perturbed{now, ev.number, run_, ev.checkpoint, ev.steps, ev.hparams});
    if (open_)
      s.actions.push_back(stop_order());
  }
  s.actions.push_back(report_perturbed{perturbed_->number, perturbed_->run});
}

void trial::on(trial_step& s, const checkpoint_saved& ev, time_point now) {
  if (std::find(recorded_.begin(), recorded_.end(), ev.saved.uuid) != recorded_.end()) {
    s.actions.push_back(acknowledge_checkpoint{ev.run, ev.saved.uuid, ""});
    return;
  }
  if (!open_ || ev.run != run_) {
    s.actions.push_back(
      acknowledge_checkpoint{ev.run, ev.saved.uuid, "run " + to_string(ev.run) + " is over"});
    return;
  }
  note(s, checkpoint_recorded{now, ev.run, ev.saved});
  s.actions.push_back(acknowledge_checkpoint{ev.run, ev.saved.uuid, ""});
  if (spec_.tells_checkpoints && !void_run(ev.run))
    s.actions.push_back(report_checkpoint{ev.saved.uuid, ev.saved.steps});
}

void trial::on(trial_step& s, const allocation_ended& ev, time_point now) {
  if (!open_ || ev.run != run_)
    return;
  auto why = ev.why;
  // A trial that was asked to pause or stop answers with a clean exit, which is not the end of its training.
  if (why == end::completed && (stop_ || leaving_) && !ev.finished)
    why = end::stopped;
  int restarts = restarts_ + (why == end::failed && !stop_ ? 1 : 0);
  int losses = why == end::lost ? losses_ + 1 : losses_;
  auto wait = why == end::failed ? back_off(restarts - restarts_then_, first_pause, longest_pause)
              : why == end::lost ? back_off(losses - 1, first_pause, longest_pause)
                                 : duration{0};
  // The run is not repeated if restarts are used up, if a log policy says that it was the last, or if no
  // agent could hold it.
  const auto& no_retry = policies_.no_retry();
  const bool last = !no_retry.empty() || ev.unplaceable;
  const int counted = last ? restarts_ : std::min(restarts, spec_.max_restarts);
  note(s, run_ended{now, ev.run, why, counted, losses, now + wait, ev.detail});
  if (stop_)
    return give_end(s, stop_->outcome, stop_->why,
                    stop_->outcome == trial_state::canceled ? int(searchers::exit_reason::user_canceled) : -1,
                    now);
  switch (why) {
  case end::completed:
    return give_end(s, trial_state::completed, ev.detail, -1, now);
  case end::invalid_hp:
    return give_end(s, trial_state::completed, "its hyperparameters cannot be trained",
                    int(searchers::exit_reason::invalid_hp), now);
  case end::failed:
    if (ev.unplaceable)
      return give_end(s, trial_state::error, ev.detail, int(searchers::exit_reason::errored), now);
    if (!no_retry.empty()) {
      static constexpr auto said = "trial failed and matched logs to a don't retry policy";
      const auto source = "no_retry/" + to_string(ev.run);
      s.actions.push_back(say_in_log{source, said});
      s.actions.push_back(say_in_log{source + "/line", no_retry});
      return give_end(s, trial_state::error, ev.detail + "; " + said + " " + no_retry,
                      int(searchers::exit_reason::errored), now);
    }
    if (restarts > spec_.max_restarts)
      give_end(s, trial_state::error,
               ev.detail + " (restarts: " + std::to_string(spec_.max_restarts) + " of " +
                 std::to_string(spec_.max_restarts) + ")",
               int(searchers::exit_reason::errored), now);
    return;
  case end::lost:
    if (losses >= spec_.max_losses)
      give_end(s, trial_state::error,
               ev.detail + " (" + std::to_string(losses) + " runs lost in a row without a new checkpoint)",
               int(searchers::exit_reason::errored), now);
    return;
  case end::stopped:
    return;
  }
}

void trial::on(trial_step&, const time_passed&, time_point) {}

void trial::on(trial_step& s, const checkpoint_files_changed& ev, time_point now) {
  note(s, checkpoint_changed{now, ev.uuid, ev.left, ev.by});
}

void trial::on(trial_step& s, const metadata_given& ev, time_point now) {
  note(s, trial_metadata_set{now, ev.metadata, ev.by});
}

void trial::on(trial_step& s, const description_given& ev, time_point now) {
  note(s, checkpoint_described{now, ev.by, ev.uuid, ev.metadata});
}

void trial::on(trial_step& s, const log_matched& ev, time_point now) {
  const auto fact = policies_.news(ev, now);
  if (!fact)
    return;
  note(s, *fact);
  if (auto said = policies_.exclusion(*fact))
    s.actions.push_back(std::move(*said));
}

void trial::on(trial_step& s, const progress_told& ev, time_point now) {
  const bool much = std::abs(ev.progress - progress_) >= 0.01 || (ev.progress >= 1 && progress_ < 1);
  if (much && ev.progress >= 0 && ev.progress <= 1)
    note(s, trial_progressed{now, ev.progress});
}

void trial::advance(trial_step& s, time_point now) {
  if (open_)
    return;
  if (stop_)
    return give_end(s, stop_->outcome, stop_->why,
                    stop_->outcome == trial_state::canceled ? int(searchers::exit_reason::user_canceled) : -1,
                    now);
  if (!active_ || now < retry_at_)
    return;
  run_id next{run_.value + 1};
  note(s, run_started{now, next, checkpoint_, steps_});
  s.actions.push_back(start_order());
}

void trial::give_end(trial_step& s, trial_state state, std::string why, int exit_reason, time_point now) {
  note(s, trial_ended{now, state, why, exit_reason});
  s.actions.push_back(report_trial_end{state, exit_reason, std::move(why)});
}

stop_allocation trial::stop_order() const {
  if (!stop_)
    return {run_, false, void_run(run_) ? "perturbed" : "pause"};
  if (stop_->kill)
    return {run_, true, stop_->why};
  return {run_, false, stop_->outcome == trial_state::canceled ? "canceled" : "pruned"};
}

start_allocation trial::start_order() const {
  return {run_,
          checkpoint_,
          steps_,
          perturbed_ ? perturbed_->hparams : value(),
          run_started_at_,
          policies_.not_agents()};
}

bool trial::void_run(run_id run) const { return perturbed_ && run <= perturbed_->run; }

void trial::note(trial_step& s, trial_fact fact) {
  replay(fact);
  s.facts.push_back(std::move(fact));
}

void trial::replay(const trial_fact& fact) {
  std::visit([this](const auto& f) { set(f); }, fact);
}

void trial::set(const trial_activated&) { active_ = true; }
void trial::set(const trial_paused&) {
  active_ = false;
  leaving_ = open_;
  retry_at_ = {}; // a later activation wants the trial to start at once
}
void trial::set(const trial_stop_ordered& f) { stop_ = f; }
void trial::set(const run_started& f) {
  run_ = f.run;
  run_started_at_ = f.at;
  open_ = true;
  leaving_ = false;
  recorded_.clear();
}
void trial::set(const checkpoint_recorded& f) {
  recorded_.push_back(f.saved.uuid);
  if (void_run(f.run)) // a run that was asked to exit saved the weights that were given up
    return;
  checkpoint_ = f.saved.uuid;
  own_checkpoint_ = true;
  steps_ = f.saved.steps;
  losses_ = 0;
  restarts_then_ = restarts_;
  earlier_.emplace_back(f.saved.uuid, f.saved.steps);
}
void trial::set(const checkpoint_changed& f) {
  if (!f.files.empty())
    return;
  std::erase_if(earlier_, [&](const auto& one) { return one.first == f.uuid; });
  if (f.uuid != checkpoint_)
    return;
  // No run can start from this checkpoint any more: the next run starts from the one before.
  own_checkpoint_ = !earlier_.empty();
  checkpoint_ = own_checkpoint_ ? earlier_.back().first
                : perturbed_    ? perturbed_->checkpoint
                                : spec_.warm_start;
  steps_ = own_checkpoint_ ? earlier_.back().second : perturbed_ ? perturbed_->steps : spec_.warm_start_steps;
}
void trial::set(const run_ended& f) {
  open_ = false;
  restarts_ = f.restarts;
  losses_ = f.losses;
  retry_at_ = f.retry_at;
}
void trial::set(const trial_ended& f) { ended_ = f; }
void trial::set(const trial_continued& f) {
  continued_ = f.number;
  ended_.reset();
  stop_.reset();
  active_ = leaving_ = false;
  restarts_ = restarts_then_ = losses_ = 0;
  retry_at_ = {};
  progress_ = 0;
  policies_.forget_matches();
}
void trial::set(const trial_perturbed& f) {
  perturbed_ = f;
  earlier_.clear(); // these hold the weights that were given up
  checkpoint_ = f.checkpoint;
  own_checkpoint_ = false;
  steps_ = f.steps;
  leaving_ = open_;
  retry_at_ = {};
}

std::vector<trial_action> trial::resume() const {
  const bool goes_on = continued_ < spec_.continued; // the first event then continues the trial
  if (ended_ && goes_on)
    return {};
  if (ended_)
    return {report_trial_end{ended_->state, ended_->exit_reason, ended_->why}};
  std::vector<trial_action> actions;
  if (spec_.tells_checkpoints && own_checkpoint_)
    actions.push_back(report_checkpoint{checkpoint_, steps_});
  if (open_) {
    actions.push_back(start_order());
    if ((stop_ || leaving_) && !goes_on)
      actions.push_back(stop_order());
  }
  return actions;
}

std::optional<time_point> trial::deadline() const {
  if (ended_ || open_ || (!active_ && !stop_))
    return std::nullopt;
  return stop_ ? time_point{} : retry_at_;
}

std::string trial::snapshot() const {
  return pack(std::tuple{active_,
                         open_,
                         leaving_,
                         run_,
                         restarts_,
                         restarts_then_,
                         losses_,
                         retry_at_,
                         checkpoint_,
                         steps_,
                         recorded_,
                         earlier_,
                         progress_,
                         stop_ ? encode(*stop_) : "",
                         ended_ ? encode(*ended_) : "",
                         perturbed_ ? encode(*perturbed_) : "",
                         own_checkpoint_,
                         run_started_at_,
                         continued_,
                         policies_.snapshot()});
}

value trial::describe() const {
  value earlier = value::array();
  for (const auto& [uuid, steps] : earlier_)
    earlier.push_back({{"uuid", uuid}, {"steps", steps}});
  return {{"state", shown()},
          {"active", active_},
          {"slots", spec_.slots},
          {"run", {{"number", run_.value}, {"open", open_}, {"asked_to_leave", leaving_}}},
          {"restarts", restarts_},
          {"losses", losses_},
          {"retry_at", retry_at_ == time_point{} ? value() : value(to_rfc3339(retry_at_))},
          {"checkpoint", {{"uuid", checkpoint_}, {"steps", steps_}, {"own", own_checkpoint_}}},
          {"checkpoints", earlier},
          {"recorded_by_run", recorded_},
          {"progress", progress_},
          {"stop", stop_
                     ? value{{"outcome", name(stop_->outcome)}, {"kill", stop_->kill}, {"why", stop_->why}}
                     : value()},
          {"perturbed", perturbed_ ? value(perturbed_->number) : value()},
          {"ended", ended_ ? value{{"state", name(ended_->state)}, {"why", ended_->why}} : value()}};
}

const char* trial::shown() const {
  if (ended_)
    return name(ended_->state).data();
  if (stop_)
    return "STOPPING";
  if (open_)
    return leaving_ ? "LEAVING" : "RUNNING";
  return active_ ? "WAITING" : "PAUSED";
}

} // namespace troupe
