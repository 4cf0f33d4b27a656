#include "actors/task/task.hpp"

#include "model/commands/check_account.hpp"
#include "model/time.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe {

constexpr duration between_uses = 60s; ///< least time between two facts that note a use
constexpr duration patience_after_start = 120s;

namespace {

/// A duration as Go writes it: "1h0m0s", "5m0s", "30s".
std::string written(duration x) {
  const auto all = std::chrono::duration_cast<std::chrono::seconds>(x).count();
  const auto hours = all / 3600, minutes = all / 60 % 60, seconds = all % 60;
  std::string text;
  if (hours > 0)
    text += std::to_string(hours) + "h";
  if (hours > 0 || minutes > 0)
    text += std::to_string(minutes) + "m";
  return text + std::to_string(seconds) + "s";
}

} // namespace

task::task(task_spec spec) : spec_(std::move(spec)) {}

std::vector<task_fact> task::birth(task_created made) {
  const auto at = made.at;
  return {std::move(made), run_started{at, run_id{1}, "", 0}};
}

std::optional<error> task::refuses(const task_event& ev) const {
  const auto no = [&](const char* what) {
    return error{errc::conflict, std::string("cannot ") + what + " task " + to_string(spec_.id) +
                                   " as it is in state " + std::string(name(state_))};
  };
  if (std::holds_alternative<task_pause_wanted>(ev)) {
    if (!spec_.preemptible)
      return error{errc::conflict,
                   "cannot pause task " + to_string(spec_.id) + ": only generic tasks are paused"};
    return state_ == task_state::active ? std::nullopt : std::optional{no("pause")};
  }
  if (std::holds_alternative<task_unpause_wanted>(ev))
    return state_ == task_state::paused || state_ == task_state::stopping_paused
             ? std::nullopt
             : std::optional{no("unpause")};
  if (std::holds_alternative<task_priority_wanted>(ev) && ended())
    return error{errc::conflict, no("change").what};
  if (const auto* said = std::get_if<task_service_answers>(&ev))
    for (const auto& as : said->runs_as)
      if (auto fine = check_account({as.uid, as.gid, as.user, as.group}); !fine)
        return fine.error();
  return std::nullopt;
}

task_step task::apply(const task_event& ev, time_point now) {
  task_step s;
  if (ended()) {
    if (std::holds_alternative<task_kill_wanted>(ev))
      s.actions.push_back(report_task_end{});
    return s;
  }
  std::visit([&](const auto& x) { on(s, x, now); }, ev);
  TROUPE_ASSERT(!(ended() && open_));
  return s;
}

void task::on(task_step& s, const task_kill_wanted& ev, time_point now) {
  if (state_ == task_state::stopping_canceled)
    return; // a repeat
  note(s, task_stop_ordered{now, ev.why, ev.by});
  if (open_)
    s.actions.push_back(stop_order());
  else
    finish(s, task_state::canceled, -1, why_, now);
}

void task::on(task_step& s, const task_pause_wanted& ev, time_point now) {
  if (state_ != task_state::active)
    return;
  note(s, task_paused{now, true, ev.by});
  if (open_)
    s.actions.push_back(stop_order());
}

void task::on(task_step& s, const task_unpause_wanted& ev, time_point now) {
  if (state_ != task_state::paused && state_ != task_state::stopping_paused)
    return;
  note(s, task_paused{now, false, ev.by});
  if (!open_) // otherwise the next run begins when the one that was asked to exit is over
    begin_run(s, now);
}

void task::on(task_step& s, const task_priority_wanted& ev, time_point now) {
  if (ev.priority == spec_.job.priority)
    return;
  note(s, task_prioritized{now, ev.by, ev.priority});
  s.actions.push_back(tell_task_job{spec_.job});
}

void task::on(task_step& s, const task_service_answers& ev, time_point now) {
  if (!open_ || ev.run != run_ || ready_run_ == run_)
    return;
  note(s, task_ready{now, run_, ev.runs_as});
  s.actions.push_back(say_task_ready{});
}

void task::on(task_step& s, const task_used&, time_point now) {
  seen_ = std::max(seen_, now);
  if (open_ && now - active_at_ >= between_uses)
    note(s, task_active{now});
}

void task::on(task_step& s, const allocation_ended& ev, time_point now) {
  if (!open_ || ev.run != run_)
    return;
  auto why = ev.why == end::invalid_hp ? end::completed : ev.why;
  // A task that was asked to pause answers with a clean exit, which is not the end of its work.
  if (why == end::completed && (leaving_ || state_ == task_state::stopping_canceled) && !ev.finished)
    why = end::stopped;
  const bool leaving = leaving_;
  note(s, run_ended{now, ev.run, why, 0, 0, now, ev.detail});
  if (state_ == task_state::stopping_canceled)
    return finish(s, task_state::canceled, ev.exit_code, why_, now);
  switch (why) {
  case end::completed:
  case end::invalid_hp:
    return finish(s, task_state::completed, 0, "", now);
  case end::failed:
    if (has_tries())
      return begin_run(s, now);
    return finish(s, task_state::error, ev.exit_code, ev.detail, now);
  case end::lost:
    if (ev.unbegun && leaving && state_ == task_state::paused)
      return;
    if (ev.unbegun || has_tries())
      return begin_run(s, now);
    return finish(s, task_state::error, -1, "the cluster lost it: " + ev.detail, now);
  case end::stopped:
    if (leaving && state_ == task_state::paused)
      return;
    // The task was unpaused in the meantime, or its pool took the slots.
    if (leaving || spec_.preemptible || has_tries())
      return begin_run(s, now);
    const auto why = ev.detail.empty() ? std::string("its agent had to end it") : ev.detail;
    s.actions.push_back(say_in_log{"end/" + to_string(ev.run), "the task ends: " + why});
    return finish(s, task_state::error, -1, why, now);
  }
}

void task::on(task_step& s, const time_passed&, time_point now) {
  if (const auto due = idle_end(); due && now >= *due)
    on(s, task_kill_wanted{"idle for more than " + written(spec_.idle_limit) + ": service is inactive", {}},
       now);
}

void task::on(task_step& s, const log_matched& ev, time_point now) {
  const auto fact = policies_.news(ev, now);
  if (!fact)
    return;
  note(s, *fact);
  if (auto said = policies_.exclusion(*fact))
    s.actions.push_back(std::move(*said));
}

void task::begin_run(task_step& s, time_point now) {
  note(s, run_started{now, {run_.value + 1}, "", 0});
  s.actions.push_back(start_order());
}

void task::finish(task_step& s, task_state state, int exit_code, std::string why, time_point now) {
  note(s, task_ended{now, state, exit_code, std::move(why)});
  s.actions.push_back(report_task_end{});
}

stop_task_run task::stop_order() const {
  const bool kill = state_ == task_state::stopping_canceled;
  return {run_, kill, kill ? why_ : "pause"};
}

/// The time at which the task ends because nobody used it; none before its service has answered.
std::optional<time_point> task::idle_end() const {
  if (spec_.idle_limit <= duration{0} || !open_ || ready_run_ != run_ || state_ != task_state::active)
    return std::nullopt;
  return std::max(std::max(seen_, active_at_) + spec_.idle_limit, patient_till_);
}

void task::note(task_step& s, task_fact fact) {
  replay(fact);
  s.facts.push_back(std::move(fact));
}

void task::replay(const task_fact& fact) {
  std::visit([this](const auto& f) { set(f); }, fact);
}

void task::set(const task_created&) {}
void task::set(const task_ready& f) {
  ready_run_ = f.run;
  active_at_ = f.at;
}
void task::set(const task_active& f) { active_at_ = f.at; }
void task::set(const task_paused& f) {
  leaving_ = leaving_ || (f.paused && open_);
  state_ = !f.paused ? task_state::active : open_ ? task_state::stopping_paused : task_state::paused;
}
void task::set(const task_stop_ordered& f) {
  state_ = task_state::stopping_canceled;
  why_ = f.why;
}
void task::set(const task_prioritized& f) { spec_.job.priority = f.priority; }
void task::set(const task_ended& f) {
  state_ = f.state;
  exit_code_ = f.exit_code;
  why_ = f.why;
}
void task::set(const run_started& f) {
  run_ = f.run;
  run_started_at_ = f.at;
  open_ = true;
  leaving_ = false;
}
void task::set(const run_ended&) {
  open_ = leaving_ = false;
  if (state_ == task_state::stopping_paused)
    state_ = task_state::paused;
}

std::vector<task_action> task::resume(time_point now) {
  if (ended())
    return {report_task_end{}};
  // While the master was away, nobody could report a use of the task.
  if (open_ && ready_run_ == run_)
    patient_till_ = std::max(now + patience_after_start,
                             // A use that was heard, and that no fact notes, may be as late as this.
                             std::min(now, active_at_ + between_uses) + spec_.idle_limit);
  std::vector<task_action> actions;
  if (!open_)
    return actions;
  actions.push_back(start_order());
  if (leaving_ || state_ == task_state::stopping_canceled)
    actions.push_back(stop_order());
  return actions;
}

std::optional<time_point> task::deadline() const { return ended() ? std::nullopt : idle_end(); }

std::string task::snapshot() const {
  return pack(std::tuple{state_, open_, leaving_, run_, ready_run_, run_started_at_, active_at_, why_,
                         exit_code_, spec_.job.priority, policies_.snapshot()});
}

value task::describe() const {
  const auto end = idle_end();
  return {{"state", shown()},
          {"kind", name(spec_.id.kind())},
          {"slots", spec_.slots},
          {"run", {{"number", run_.value}, {"open", open_}, {"asked_to_leave", leaving_}}},
          {"ready", open_ && ready_run_ == run_},
          {"active", active_at_ == time_point{} ? value() : value(to_rfc3339(std::max(seen_, active_at_)))},
          {"idle_end", end ? value(to_rfc3339(*end)) : value()},
          {"priority", spec_.job.priority},
          {"why", why_}};
}

const char* task::shown() const { return name(state_).data(); }

} // namespace troupe
