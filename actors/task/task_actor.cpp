#include "actors/task/task_actor.hpp"

#include "actors/allocation/run_owner_part.hpp"
#include "actors/shells/obey.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<task_actor>;

class task_shell_state : run_owner<task_shell_state, task_actor, task_fact, task_action, task_peers> {
  friend class durable<task_shell_state, task_actor, task_fact, task_action>;
  friend class run_owner<task_shell_state, task_actor, task_fact, task_action, task_peers>;

public:
  std::string name = "task";
  explicit task_shell_state(base* self) : run_owner(self) {}

  task_actor::behavior_type make_behavior(task_settings settings, task_peers peers,
                                          const std::vector<task_fact>& past,
                                          std::vector<allocation_fact> of_open_run) {
    name = entity(settings.spec.id);
    self_->enter(name);
    settings_ = std::move(settings);
    machine_.emplace(settings_.spec);
    for (const auto& fact : past)
      machine_->replay(fact);
    own(settings_.spec.id, std::move(peers), std::move(of_open_run));
    begin(name, past.size(), peers_.journal, resumed());
    return {
      [this](const task_checkpoint& x) {
        tell_run(checkpoint_answer{x.origin.allocation, x.saved.uuid, "only trials have checkpoints"});
      },
      [](const progress_heard&) {}, // nobody waits for the progress of such a task
      [this](const allocation_ended& ev) { step(ev); },
      [this](const time_passed& ev) {
        timer_fired();
        step(ev);
      },
      [this](task_call& x) {
        return obey<commands_here>(x.name, std::move(x.fields),
                                   [this, &x](auto order) { return on(x.allocation, std::move(order)); });
      },
      [this](pool_renewed& x) { return meet(x); },
      [this](const pool_chosen& x) { move_to(x); },
    };
  }

private:
  task& machine() { return *machine_; }
  std::vector<task_action> resumed() { return machine_->resume(self_->now()); }
  std::optional<time_point> deadline() const { return machine_->deadline(); }

  // ---- commands; commands of the task's allocation are passed on to it. The field `by` of a
  // command names the user who asked.

  using commands_here =
    commands::join<commands::work_calls,
                   commands::list<commands::task_stop, commands::task_hold, commands::task_set,
                                  commands::task_use, commands::log_match>,
                   commands::allocation_commands>;

  caf::result<command_result> on(const allocation_id&, commands::task_stop x) {
    return durably(task_kill_wanted{std::move(x.why), std::move(x.by)});
  }
  caf::result<command_result> on(const allocation_id&, commands::task_hold x) {
    if (x.on)
      return durably(task_pause_wanted{std::move(x.by)});
    return durably(task_unpause_wanted{std::move(x.by)});
  }
  caf::result<command_result> on(const allocation_id&, const commands::task_set& x) {
    return durably(task_priority_wanted{x.by, static_cast<int>(x.priority)});
  }
  caf::result<command_result> on(const allocation_id&, const commands::task_use&) {
    step(task_used{}); // losing a use costs the task a minute at most
    return answered();
  }
  caf::result<command_result> on(const allocation_id&, commands::log_match x) {
    return durably(log_matched{x.run, std::move(x.agent), std::move(x.policy), std::move(x.pattern),
                               std::move(x.line), x.exclude_agent, x.cancel_retries});
  }
  caf::result<command_result> on(const allocation_id& run, const commands::task_answers& x) {
    if (!is_open(run.run))
      return over(run);
    task_service_answers said{run.run};
    if (x.runs_as)
      said.runs_as = {{x.runs_as->uid, x.runs_as->gid, x.runs_as->user, x.runs_as->group}};
    return durably(said);
  }
  template <class OfAllocation>
  caf::result<command_result> on(const allocation_id& run, OfAllocation x) {
    return hand_on(run, std::move(x));
  }

  template <class Event>
  caf::result<command_result> durably(const Event& ev) {
    if (auto no = machine_->refuses(ev))
      return refused(*no);
    return run_owner::durably(ev);
  }

  void run(const start_task_run& x) {
    if (begins(x.run))
      start(x);
  }
  void run(const stop_task_run& x) {
    if (x.run == run_)
      tell_run(allocation_stop{x.kill, x.reason});
  }
  void run(const tell_task_job& x) {
    settings_.spec.job = x.job;
    if (auto pool = peers_.pools.find(peers_.pools.own))
      self_->send(pool, job_changed{x.job});
    // The allocation asks its pool with the terms that it was told last.
    tell_run(job_changed{x.job});
  }
  void run(const say_task_ready&) {
    say(to_string(run_) + "/ready", "Service of " + settings_.title + " is available", "INFO");
  }
  void run(const say_in_log& x) { say(x.source, x.text, "WARNING"); }
  void run(const report_task_end&) {
    self_->send(peers_.cluster, task_finished{id_});
    self_->quit();
  }

  void start(const start_task_run& x) {
    allocation_spec allocation{{id_, x.run}, settings_.spec.slots};
    allocation.run = {machine_->job(), x.started, "", settings_.spec.preemptible, settings_.spec.rules};
    if (settings_.spec.stop_limit)
      allocation.stop_limit = *settings_.spec.stop_limit;
    start_run(std::move(allocation), settings_.launch, x.not_agents, settings_.title);
  }

  task_settings settings_;
  std::optional<task> machine_;
};

} // namespace

task_actor spawn_task_actor(caf::actor_system& sys, task_settings settings, task_peers peers,
                            const std::vector<task_fact>& past, std::vector<allocation_fact> of_open_run) {
  using impl = shell<task_shell_state, task_actor, task_settings, task_peers, std::vector<task_fact>,
                     std::vector<allocation_fact>>;
  return sys.spawn<impl>(std::move(settings), std::move(peers), past, std::move(of_open_run));
}

} // namespace troupe
