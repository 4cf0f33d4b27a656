#include "test/sim/actors/shells.hpp"

#include "test/sim/actors/hosts.hpp"

namespace troupe::sim {

// ---- experiment

experiment_shell::experiment_shell(master& m, experiment_id id)
    : shell(m, at(role::experiment, id.value), entity(id), experiment({id, "loss", "batches", {}, true, 5})),
      id(id) {}

void experiment_shell::start() {
  auto plan = m.w.plan.search;
  plan.seed = mix64(plan.seed + id.value);
  searcher_ = make_search(plan);
  if (auto kept = journal_.snapshots.find(entity_); kept != journal_.snapshots.end())
    heard_ = kept->second.heard;
  for (auto& event : machine.take_history())
    heard_.push_back(std::move(event));
  for (const auto& event : heard_)
    if (auto step = searcher_->apply(event); !step)
      fail("the search cannot be replayed: " + step.error().what);
  begin(machine.resume(w_.now()));
  // What became durable just before a crash and was not decided upon.
  for (const auto& [trial, heard] : machine.heard_rows())
    if (auto it = journal_.reports().find(trial); it != journal_.reports().end())
      for (auto row = heard; row < it->second.size(); ++row) {
        const auto& r = it->second[row];
        step(validation_recorded{trial, {}, row + 1, r.steps, r.metrics, r.allocation.run});
      }
}

void experiment_shell::run(const ask_searcher& x) {
  auto back = at(role::searcher, id.value);
  w_.send(
    self_, back,
    [this, x, back, life = guard()] {
      if (!life())
        return;
      heard_.push_back(x.event);
      auto step_ = searcher_->apply(x.event);
      search_decided out;
      if (!step_)
        out.fault = step_.error().what;
      else
        for (auto& action : *step_)
          std::visit(overloaded{
                       [&](searchers::create_trial& a) {
                         out.created.push_back({{}, a.trial, a.hparams, a.trial_seed, a.source_checkpoint});
                       },
                       [&](searchers::stop_trial& a) {
                         out.stopped.emplace_back(a.trial, trial_stop_decided{{}, a.why});
                       },
                       [&](searchers::pause_trial& a) { out.paused.push_back(a.trial); },
                       [&](searchers::resume_trial& a) { out.resumed.emplace_back(a.trial, a.until); },
                       [&](searchers::perturb_trial& a) {
                         out.perturbed.push_back({a.trial, a.source, a.checkpoint, a.hparams});
                       },
                       [&](searchers::shut_down&) { out.shut_down = true; },
                     },
                     action);
      w_.send(
        back, self_,
        [this, out, life]() mutable {
          if (!life())
            return;
          if (!out.created.empty()) {
            auto first = m.cluster_->machine.reserve_trials(out.created.size());
            for (std::size_t i = 0; i < out.created.size(); ++i)
              out.created[i].trial = {first.value + i};
          }
          step(out);
        },
        repeats::never);
    },
    repeats::never);
}

void experiment_shell::run(const spawn_trial& x) {
  auto id_ = x.trial.trial;
  trial_spec spec{id_, w_.plan.trial_slots, w_.plan.max_restarts};
  spec.tells_checkpoints = true;
  m.keys[id_] = x.trial.key;
  auto& t = m.trials[id_];
  t = std::make_unique<trial_shell>(m, id, spec);
  t->start();
  if (x.perturb)
    m.tell_trial(
      self_, id_,
      trial_perturb{x.perturb->number, x.perturb->checkpoint, x.perturb->steps, x.perturb->hparams});
  if (x.active)
    m.tell_trial(self_, id_, trial_activate{});
  else
    m.tell_trial(self_, id_, trial_pause{});
}

void experiment_shell::run(const order_trial& x) {
  switch (x.what) {
  case order_trial::kind::activate:
    return m.tell_trial(self_, x.trial, trial_activate{});
  case order_trial::kind::pause:
    return m.tell_trial(self_, x.trial, trial_pause{});
  case order_trial::kind::stop:
    return m.tell_trial(self_, x.trial, trial_stop{x.outcome, x.kill, x.why});
  case order_trial::kind::perturb:
    return m.tell_trial(
      self_, x.trial,
      trial_perturb{x.perturb.number, x.perturb.checkpoint, x.perturb.steps, x.perturb.hparams});
  }
}

void experiment_shell::run(const answer_validation& x) {
  if (x.origin.sequence)
    m.tell_trial(self_, x.origin.allocation.trial(), validation_answer{x.origin, x.stop});
}

void experiment_shell::run(const keep_snapshot& x) {
  w_.send(self_, at(role::searcher, id.value), [this, x, life = guard()] {
    if (life())
      journal_.snapshots[entity_] = {x.facts, x.machine, heard_};
  });
}

void experiment_shell::run(const report_experiment_end&) {
  m.graveyard.push_back([&m = m, id = id] { m.experiments.erase(id); });
}

// ---- trial

trial_shell::trial_shell(master& m, experiment_id owner, const trial_spec& spec)
    : shell(m, at(role::trial, spec.id.value), entity(spec.id), trial(spec)), owner(owner), spec(spec) {}

trial_shell::~trial_shell() { // an owner outlives what it owns
  if (run_)
    m.allocations.erase({spec.id, run_});
}

void trial_shell::run(const start_allocation& x) {
  if (std::exchange(run_, x.run) == x.run)
    return;
  allocation_spec wanted{{spec.id, x.run}, spec.slots, w_.plan.stop_limit};
  auto& a = m.allocations[wanted.id];
  a = std::make_unique<allocation_shell>(m, wanted, x.from_steps);
  a->start();
}

void trial_shell::run(const stop_allocation& x) {
  if (x.run == run_)
    if (auto it = m.allocations.find({spec.id, run_}); it != m.allocations.end())
      m.tell_allocation_actor(self_, it->first, it->second->incarnation, allocation_stop{x.kill, x.reason});
}

void trial_shell::run(const acknowledge_checkpoint& x) {
  if (auto it = m.allocations.find({spec.id, x.run}); it != m.allocations.end())
    m.tell_allocation_actor(self_, it->first, it->second->incarnation,
                            checkpoint_answer{it->first, x.uuid, x.refused});
}

void trial_shell::run(const report_checkpoint& x) {
  m.tell_experiment(self_, owner, checkpoint_reported{spec.id, x.uuid, x.steps});
}

void trial_shell::run(const report_perturbed& x) {
  m.tell_experiment(self_, owner, perturbation_taken{spec.id, x.number, x.run});
}

void trial_shell::run(const report_trial_end& x) {
  m.tell_experiment(self_, owner, trial_finished{spec.id, x.state, x.exit_reason, x.why});
  m.graveyard.push_back([&m = m, id = spec.id, inc = incarnation] {
    if (auto it = m.trials.find(id); it != m.trials.end() && it->second->incarnation == inc)
      m.trials.erase(it);
  });
}

void trial_shell::refused() { m.restart_trial(spec.id); }

void trial_shell::resume_allocation() {
  run_ = {};
  take({}, machine.resume());
}

// ---- allocation

allocation_shell::allocation_shell(master& m, const allocation_spec& spec, std::int64_t from_steps)
    : shell(m, at(spec.id), entity(spec.id), allocation(spec)), id(spec.id), from_steps_(from_steps) {}

template <class Order>
void allocation_shell::send_to(const std::string& agent, const Order& x) {
  agents_.insert(agent);
  m.tell_twin(self_, agent, x, id, incarnation);
}

void allocation_shell::run(const request_slots& x) {
  m.tell_pool_actor(self_, slots_requested{id, x.slots, x.least}, incarnation);
}
void allocation_shell::run(const release_slots& x) { m.tell_pool_actor(self_, slots_released{id, x.agent}); }
void allocation_shell::run(const start_task& x) {
  auto owner = m.trials.at(id.trial())->owner;
  send_to(x.on.agent,
          start_ordered{id, x.on.slots,
                        std::to_string(x.node_rank) + " " + std::to_string(x.nodes) + " " +
                          std::to_string(from_steps_) + " " + to_string(owner) + " " + m.keys[id.trial()]});
}
void allocation_shell::run(const preempt_task& x) { send_to(x.agent, preempt_ordered{id, x.reason}); }
void allocation_shell::run(const kill_task& x) { send_to(x.agent, kill_ordered{id}); }
void allocation_shell::run(const watch_task& x) { send_to(x.agent, watch_ordered{id, x.slots}); }
void allocation_shell::run(const forget_task& x) { send_to(x.agent, forget_ordered{id}); }
void allocation_shell::run(const report_allocation_end& x) {
  m.tell_trial(self_, id.trial(), allocation_ended{id.run, x.why, x.detail, x.finished});
  // It stays for a while, as its last mails do: what arrives late must change nothing.
  if (machine.closed() && !std::exchange(leaving_, true))
    w_.clock.at(w_.now() + w_.between(0us, 30s), [&m = m, id = id, life = guard()] {
      if (life())
        m.allocations.erase(id);
    });
}
void allocation_shell::refused() { m.restart_allocation(id); }

template <class Message>
void allocation_shell::to_agents(const Message& x) {
  for (const auto& agent : agents_)
    m.tell_twin(self_, agent, x);
}
template void allocation_shell::to_agents(const validation_answer&);
template void allocation_shell::to_agents(const checkpoint_answer&);

} // namespace troupe::sim
