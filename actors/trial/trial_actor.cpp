#include "actors/trial/trial_actor.hpp"

#include "actors/journal/fact_reader_actor.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/checkpoint_place.hpp"
#include "model/names.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<trial_actor>;

class trial_shell_state : durable<trial_shell_state, trial_actor, trial_fact, trial_action> {
  friend class durable<trial_shell_state, trial_actor, trial_fact, trial_action>;

public:
  std::string name = "trial";
  explicit trial_shell_state(base* self) : durable(self) {}

  trial_actor::behavior_type make_behavior(const trial_spec& spec, task_launch launch, trial_peers peers,
                                           const std::vector<trial_fact>& past,
                                           std::vector<allocation_fact> of_open_run) {
    name = entity(spec.id);
    self_->enter(name, entity(launch.experiment));
    spec_ = spec;
    launch_ = std::move(launch);
    peers_ = std::move(peers);
    machine_.emplace(spec);
    for (const auto& fact : past)
      machine_->replay(fact);
    past_of_run_ = std::move(of_open_run);
    self_->set_down_handler([this](const caf::down_msg& down) {
      // An allocation that died without a word is made again from its facts; its run goes on.
      if (!allocation_ || down.source != allocation_.address() || !down.reason || machine_->ended())
        return;
      if (!restarts_.again(run_, self_->now()))
        return leave(to_caf({errc::internal, entity(allocation_id{spec_.id, run_}) +
                                               " died again and again: " + from_caf(down.reason).what}));
      make_again({spec_.id, run_});
    });
    begin(name, past.size(), peers_.journal, machine_->resume());
    return {
      [this](const trial_activate& ev) { step(ev); },
      [this](const trial_pause& ev) { step(ev); },
      [this](const trial_stop& ev) { step(ev); },
      [this](const trial_perturb& ev) { step(ev); },
      [this](task_checkpoint& x) {
        step(checkpoint_saved{x.origin.allocation.run, placed(std::move(x.saved))});
      },
      [this](const allocation_ended& ev) { step(ev); },
      [this](const time_passed& ev) {
        timer_fired();
        step(ev);
      },
      [this](validation_answer& down) {
        if (allocation_ && down.origin.allocation.run == run_)
          self_->send(allocation_, std::move(down));
      },
      [this](task_call& x) {
        return obey<commands_here>(x.name, std::move(x.fields),
                                   [this, &x](auto order) { return on(x.allocation, std::move(order)); });
      },
      [this](const job_changed& x) {
        spec_.job = x.job;
        if (allocation_)
          self_->send(allocation_, x);
      },
      [this](pool_renewed& x) -> caf::result<pool_joined> {
        peers_.pools.all[x.name] = x.pool;
        if (!allocation_)
          return pool_joined{};
        return self_->delegate(allocation_, std::move(x));
      },
      [this](const pool_chosen& x) {
        peers_.pools.all[x.name] = x.pool;
        peers_.pools.own = x.name;
        if (allocation_)
          self_->send(allocation_, x);
      },
    };
  }

private:
  trial& machine() { return *machine_; }
  void end_children(const caf::error& why) {
    if (allocation_)
      self_->send_exit(allocation_, why);
  }
  std::optional<time_point> deadline() const { return machine_->deadline(); }

  // ---- commands; those of its allocation are handed on

  using commands_here =
    commands::join<commands::trial_commands,
                   commands::list<commands::trial_set_metadata, commands::checkpoint_describe>,
                   commands::allocation_commands>;

  caf::result<command_result> on(const allocation_id&, commands::checkpoint_files x) {
    return durably(checkpoint_files_changed{std::move(x.uuid), std::move(x.files)});
  }
  caf::result<command_result> on(const allocation_id&, commands::log_match x) {
    return durably(log_matched{x.run, std::move(x.agent), std::move(x.policy), std::move(x.pattern),
                               std::move(x.line), x.exclude_agent, x.cancel_retries});
  }
  caf::result<command_result> on(const allocation_id&, commands::checkpoint_describe x) {
    return durably(description_given{std::move(x.uuid), std::move(x.by), std::move(x.metadata)});
  }
  caf::result<command_result> on(const allocation_id&, commands::trial_set_metadata x) {
    return durably(metadata_given{std::move(x.metadata)});
  }
  caf::result<command_result> on(const allocation_id& run, const commands::trial_progress& x) {
    return is_open(run) ? durably(progress_told{x.progress}) : over(run);
  }
  caf::result<command_result> on(const allocation_id& run, commands::checkpoint_report x) {
    if (!is_open(run))
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
    if (!is_open(run))
      return over(run);
    return self_->delegate(allocation_, task_call_of(run, std::move(x)));
  }

  bool is_open(const allocation_id& run) const { return allocation_ && run.run == machine_->open_run(); }
  static command_result over(const allocation_id& run) {
    return refused({errc::conflict, "allocation " + to_string(run) + " is over"});
  }

  template <class Event>
  caf::result<command_result> durably(const Event& ev) {
    auto promise = self_->make_response_promise<command_result>();
    step(ev, [promise](const caf::error& why) mutable {
      promise.deliver(why ? refused(from_caf(why)) : answered());
    });
    return promise;
  }

  void run(const start_allocation& x) {
    if (std::exchange(run_, x.run) != x.run) // else a repeat
      start(x);
  }
  void run(const stop_allocation& x) {
    if (allocation_ && x.run == run_)
      self_->send(allocation_, allocation_stop{x.kill, x.reason});
  }
  void run(const acknowledge_checkpoint& x) {
    if (allocation_ && x.run == run_)
      self_->send(allocation_, checkpoint_answer{{spec_.id, x.run}, x.uuid, x.refused});
  }
  void run(const report_checkpoint& x) {
    self_->send(peers_.experiment, checkpoint_reported{spec_.id, x.uuid, x.steps});
  }
  void run(const report_perturbed& x) {
    self_->send(peers_.experiment, perturbation_taken{spec_.id, x.number, x.run});
  }
  void run(const say_in_log& x) {
    log_line line;
    line.at = self_->now();
    line.allocation = {spec_.id, run_};
    line.stream = "troupe";
    line.level = "WARNING";
    line.text = x.text;
    self_
      ->request(peers_.journal, journal_timeout,
                append_log{spec_.id, {std::move(line)}, name + "/" + x.source, 1})
      .then([](const committed&) {}, [](const caf::error&) {});
  }
  void run(const report_trial_end& x) {
    self_->send(peers_.experiment, trial_finished{spec_.id, x.state, x.exit_reason, x.why});
    self_->quit();
  }

  /// What the run has in the journal is read on another thread than this one, which many share.
  void make_again(const allocation_id& id) {
    self_->request(spawn_fact_reader(self_->system(), peers_.reads), journal_timeout, read_facts{entity(id)})
      .then(
        [this](const facts_read& stored) {
          if (machine_->ended())
            return;
          past_of_run_.clear();
          for (const auto& bytes : stored.facts)
            if (auto fact = decode_as<allocation_fact>(bytes))
              past_of_run_.push_back(std::move(*fact));
          run_ = {};
          for (auto& action : machine_->resume()) // the stop it may have carried is ordered again
            std::visit([this](auto& x) { run(x); }, action);
        },
        [this](const caf::error& why) { leave(why); });
  }

  void start(const start_allocation& x) {
    allocation_id id{spec_.id, x.run};
    const auto past = std::exchange(past_of_run_, {}); // a new run has none
    launch_.resume = x.from_checkpoint;
    launch_.resume_steps = x.from_steps;
    launch_.allocation_name = allocation_name(launch_.experiment, id);
    launch_.session_token = peers_.tokens.session ? peers_.tokens.session(id) : std::string();
    if (!x.hparams.is_null())
      launch_.hparams = x.hparams;
    allocation_spec allocation{id, spec_.slots};
    allocation.least = spec_.least_slots;
    allocation.run = {spec_.job, x.started, "", true, spec_.rules};
    auto& kept_away = allocation.run.rules.not_agents;
    kept_away.insert(kept_away.end(), x.not_agents.begin(), x.not_agents.end());
    allocation.run.excluded = x.not_agents;
    if (spec_.stop_limit)
      allocation.stop_limit = *spec_.stop_limit;
    const auto& own = peers_.pools.own;
    const auto placed = placement_in(past);
    const auto pool = placed ? placed->pool : own;
    allocation.home = placed && !placed->home.empty() ? placed->home : pool;
    allocation_ = spawn_allocation(
      self_->system(), allocation, launch_,
      {allocation_owner{trial_actor{self_}}, peers_.journal, peers_.pools.find(pool), pool, peers_.pools},
      past);
    self_->monitor(allocation_);
    if (allocation.home != own) // the master died before the run heard that it has to move
      self_->send(allocation_, pool_chosen{own, peers_.pools.find(own)});
  }

  /// A run that was placed is known to the pool that placed it.
  std::optional<allocation_placed> placement_in(const std::vector<allocation_fact>& past) const {
    for (const auto& fact : past)
      if (const auto* placed = std::get_if<allocation_placed>(&fact);
          placed && peers_.pools.all.contains(placed->pool))
        return *placed;
    return std::nullopt;
  }

  trial_spec spec_;
  task_launch launch_;
  trial_peers peers_;
  std::optional<trial> machine_;
  run_id run_;
  allocation_actor allocation_;
  child_restarts<run_id> restarts_;
  std::vector<allocation_fact> past_of_run_; ///< of the open run, until it has its allocation
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
