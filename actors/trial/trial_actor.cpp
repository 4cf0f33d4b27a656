#include "actors/trial/trial_actor.hpp"

#include "actors/allocation/run_owner_part.hpp"
#include "actors/shells/obey.hpp"
#include "model/checkpoint_place.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<trial_actor>;

class trial_shell_state : run_owner<trial_shell_state, trial_actor, trial_fact, trial_action, trial_peers> {
  friend class durable<trial_shell_state, trial_actor, trial_fact, trial_action>;
  friend class run_owner<trial_shell_state, trial_actor, trial_fact, trial_action, trial_peers>;

public:
  std::string name = "trial";
  explicit trial_shell_state(base* self) : run_owner(self) {}

  trial_actor::behavior_type make_behavior(const trial_spec& spec, task_launch launch, trial_peers peers,
                                           const std::vector<trial_fact>& past,
                                           std::vector<allocation_fact> of_open_run) {
    name = entity(spec.id);
    self_->enter(name, entity(launch.experiment));
    spec_ = spec;
    launch_ = std::move(launch);
    machine_.emplace(spec);
    for (const auto& fact : past)
      machine_->replay(fact);
    own(spec.id, std::move(peers), std::move(of_open_run));
    begin(name, past.size(), peers_.journal, resumed());
    return {
      [this](const trial_activate& ev) { step(ev); },
      [this](const trial_pause& ev) { step(ev); },
      [this](const trial_stop& ev) { step(ev); },
      [this](const trial_perturb& ev) { step(ev); },
      [this](task_checkpoint& x) {
        step(checkpoint_saved{x.origin.allocation.run, placed(std::move(x.saved))});
      },
      [this](const progress_heard& x) {
        if (is_open(x.allocation.run))
          step(progress_told{x.done});
      },
      [this](const allocation_ended& ev) { step(ev); },
      [this](const time_passed& ev) {
        timer_fired();
        step(ev);
      },
      [this](validation_answer& down) {
        if (down.origin.allocation.run == run_)
          tell_run(std::move(down));
      },
      [this](task_call& x) {
        return obey<commands_here>(x.name, std::move(x.fields),
                                   [this, &x](auto order) { return on(x.allocation, std::move(order)); });
      },
      [this](const job_changed& x) {
        spec_.job = x.job;
        tell_run(x);
      },
      [this](pool_renewed& x) { return meet(x); },
      [this](const pool_chosen& x) { move_to(x); },
    };
  }

private:
  trial& machine() { return *machine_; }
  std::vector<trial_action> resumed() const { return machine_->resume(); }
  std::optional<time_point> deadline() const { return machine_->deadline(); }

  // ---- commands; commands of the trial's allocation are passed on to it

  using commands_here =
    commands::join<commands::trial_commands,
                   commands::list<commands::trial_set_metadata, commands::checkpoint_describe>,
                   commands::allocation_commands>;

  caf::result<command_result> on(const allocation_id&, commands::checkpoint_files x) {
    return durably(checkpoint_files_changed{std::move(x.uuid), std::move(x.files), std::move(x.by)});
  }
  caf::result<command_result> on(const allocation_id&, commands::log_match x) {
    return durably(log_matched{x.run, std::move(x.agent), std::move(x.policy), std::move(x.pattern),
                               std::move(x.line), x.exclude_agent, x.cancel_retries});
  }
  caf::result<command_result> on(const allocation_id&, commands::checkpoint_describe x) {
    return durably(description_given{std::move(x.uuid), std::move(x.by), std::move(x.metadata)});
  }
  caf::result<command_result> on(const allocation_id&, commands::trial_set_metadata x) {
    return durably(metadata_given{std::move(x.metadata), std::move(x.by)});
  }
  caf::result<command_result> on(const allocation_id& run, const commands::trial_progress& x) {
    return is_open(run.run) ? durably(progress_told{x.progress}) : over(run);
  }
  caf::result<command_result> on(const allocation_id& run, commands::checkpoint_report x) {
    if (!is_open(run.run))
      return over(run);
    checkpoint saved;
    saved.uuid = std::move(x.uuid);
    saved.steps = x.steps;
    saved.files = std::move(x.files);
    saved.metadata = std::move(x.metadata);
    return durably(checkpoint_saved{run.run, placed(std::move(saved))});
  }
  checkpoint placed(checkpoint saved) const {
    saved.place = {launch_.checkpoint_store, saved.uuid};
    saved.path = folder_of(saved.place);
    return saved;
  }
  template <class OfAllocation>
  caf::result<command_result> on(const allocation_id& run, OfAllocation x) {
    return hand_on(run, std::move(x));
  }

  void run(const start_allocation& x) {
    if (begins(x.run))
      start(x);
  }
  void run(const stop_allocation& x) {
    if (x.run == run_)
      tell_run(allocation_stop{x.kill, x.reason});
  }
  void run(const acknowledge_checkpoint& x) {
    if (x.run == run_)
      tell_run(checkpoint_answer{{spec_.id, x.run}, x.uuid, x.refused});
  }
  void run(const report_checkpoint& x) {
    self_->send(peers_.experiment, checkpoint_reported{spec_.id, x.uuid, x.steps});
  }
  void run(const report_perturbed& x) {
    self_->send(peers_.experiment, perturbation_taken{spec_.id, x.number, x.run});
  }
  void run(const say_in_log& x) { say(x.source, x.text, "WARNING"); }
  void run(const report_trial_end& x) {
    self_->send(peers_.experiment, trial_finished{spec_.id, x.state, x.exit_reason, x.why});
    self_->quit();
  }

  void start(const start_allocation& x) {
    launch_.resume = x.from_checkpoint;
    launch_.resume_steps = x.from_steps;
    if (!x.hparams.is_null())
      launch_.hparams = x.hparams;
    allocation_spec allocation{{spec_.id, x.run}, spec_.slots};
    allocation.least = spec_.least_slots;
    allocation.run = {spec_.job, x.started, "", true, spec_.rules};
    if (spec_.stop_limit)
      allocation.stop_limit = *spec_.stop_limit;
    start_run(std::move(allocation), launch_, x.not_agents, {});
  }

  trial_spec spec_;
  task_launch launch_;
  std::optional<trial> machine_;
};

} // namespace

trial_actor spawn_trial_actor(caf::actor_system& sys, const trial_spec& spec, task_launch launch,
                              trial_peers peers, const std::vector<trial_fact>& past,
                              std::vector<allocation_fact> of_open_run) {
  using impl = shell<trial_shell_state, trial_actor, trial_spec, task_launch, trial_peers,
                     std::vector<trial_fact>, std::vector<allocation_fact>>;
  return sys.spawn<impl>(spec, std::move(launch), std::move(peers), past, std::move(of_open_run));
}

} // namespace troupe
