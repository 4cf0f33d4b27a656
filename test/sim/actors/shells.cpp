#include "test/sim/actors/shells.hpp"

#include "test/sim/actors/hosts.hpp"

namespace troupe::sim {

// ---- cluster

cluster_shell::cluster_shell(master& m, id_counters ids)
    : shell(m, at(role::cluster), cluster_entity,
            {cluster(ids), members({m.w.plan.lease.give_away, m.w.now(), {}})}) {}

void cluster_shell::tell_members(const members_event& ev, done_callback done) {
  auto s = machine.who.apply(ev, w_.now());
  take(std::move(s.facts), std::move(s.actions), std::move(done));
}

void cluster_shell::run(const make_twin& x) {
  if (x.again)
    return m.make_twin_again(x.agent);
  m.twins[x.agent] = std::make_unique<twin_shell>(m, m.machines.index_of(x.agent), m.w.plan.lease);
}

// ---- experiment

experiment_shell::experiment_shell(master& m, experiment_id id)
    : shell(m, at(role::experiment, id.value), entity(id), experiment({id, "loss", "batches", {}, true, 5})),
      id(id) {}

/// Makes the searcher from the events of its snapshot and then those of `past`.
void experiment_shell::make_search_of(std::vector<searchers::search_event> past) {
  auto plan = m.w.plan.search;
  plan.seed = mix64(plan.seed + id.value);
  searcher_ = make_search(plan);
  heard_.clear();
  if (auto kept = journal_.snapshots.find(entity_); kept != journal_.snapshots.end())
    heard_ = kept->second.heard;
  for (auto& event : past)
    heard_.push_back(std::move(event));
  for (const auto& event : heard_)
    if (auto step = searcher_->apply(event); !step)
      fail("the search cannot be replayed: " + step.error().what);
}

void experiment_shell::searcher_dies() {
  if (!searcher_)
    return;
  searcher_.reset();
  ++searcher_life_;
  w_.send(
    at(role::searcher, id.value), self_,
    [this, life = guard()] {
      if (life())
        renew_searcher();
    },
    repeats::never);
}

void experiment_shell::renew_searcher() {
  take({}, {}, [this] {
    if (searcher_ || terminal(machine.state()))
      return;
    experiment before({id, "loss", "batches", {}, true, 5});
    std::uint64_t number = 0, known = 0;
    if (auto kept = journal_.snapshots.find(entity_); kept != journal_.snapshots.end()) {
      known = kept->second.facts;
      if (auto ok = before.restore(kept->second.machine); !ok)
        fail(ok.error().what);
    }
    for (const auto& bytes : journal_.facts_of(entity_))
      if (number++ >= known)
        before.replay(*decode_as<experiment_fact>(bytes));
    make_search_of(before.take_history());
    if (open_question_)
      ask();
  });
}

void experiment_shell::start() {
  make_search_of(machine.take_history());
  begin(machine.resume(w_.now()));
  // Hands on reports that became durable just before a crash and on which nothing was decided yet.
  for (const auto& [trial, heard] : machine.heard_rows())
    if (auto it = journal_.reports().find(trial); it != journal_.reports().end())
      for (auto row = heard; row < it->second.size(); ++row) {
        const auto& r = it->second[row];
        step(validation_recorded{trial, {}, row + 1, r.steps, r.metrics, r.allocation.run});
      }
}

void experiment_shell::run(const ask_searcher& x) {
  open_question_ = x;
  if (searcher_)
    ask();
}

void experiment_shell::ask() {
  auto back = at(role::searcher, id.value);
  w_.send(
    self_, back,
    [this, x = *open_question_, back, asked = searcher_life_, life = guard()] {
      if (!life() || asked != searcher_life_)
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
            auto first = m.cluster_->machine.ids.reserve_trials(out.created.size());
            for (std::size_t i = 0; i < out.created.size(); ++i)
              out.created[i].trial = {first.value + i};
          }
          open_question_.reset();
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
  t->pool_life = pool_life;
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
  w_.send(self_, at(role::searcher, id.value), [this, x, asked = searcher_life_, life = guard()] {
    if (life() && searcher_ && asked == searcher_life_)
      journal_.snapshots[entity_] = {x.facts, x.machine, heard_};
  });
}

void experiment_shell::run(const tell_resources&) {}

void experiment_shell::run(const report_experiment_end&) {
  m.graveyard.push_back([&m = m, id = id] { m.experiments.erase(id); });
}

// ---- trial

trial_shell::trial_shell(master& m, experiment_id owner, const trial_spec& spec)
    : shell(m, at(role::trial, spec.id.value), entity(spec.id), trial(spec)), owner(owner), spec(spec) {}

trial_shell::~trial_shell() { // an owner outlives what it owns, so the allocation ends here
  if (run_)
    m.allocations.erase({spec.id, run_});
}

void trial_shell::run(const start_allocation& x) {
  if (std::exchange(run_, x.run) == x.run)
    return;
  allocation_spec wanted{{spec.id, x.run}, spec.slots, w_.plan.stop_limit};
  wanted.run.started = x.started;
  auto& a = m.allocations[wanted.id];
  a = std::make_unique<allocation_shell>(m, wanted, x.from_steps);
  a->pool_life = pool_life;
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
    if (auto it = m.trials.find(id); it != m.trials.end() && it->second->incarnation == inc) {
      it->second->run_ = {}; // the allocation ends by itself
      m.trials.erase(it);
    }
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
  auto& twin = twins[agent];
  if (!twin) // the CAF shell asks the pool for the twin
    twin = m.twins.at(agent)->incarnation;
  m.tell_twin(self_, agent, x, twin, id, incarnation);
}

void allocation_shell::run(const request_slots& x) {
  m.tell_pool_actor(self_, machine.request(x), pool_life, incarnation);
}
void allocation_shell::run(const release_slots& x) {
  m.tell_pool_actor(self_, slots_released{id, x.agent}, pool_life);
}
void allocation_shell::run(const hold_slots& x) {
  m.tell_pool_actor(self_, machine.holding(x.on), pool_life, incarnation, std::exchange(met_, {}));
}
void allocation_shell::meet_pool(std::uint64_t life, std::function<void()> met) {
  pool_life = life;
  met_ = std::move(met);
  for (const auto& action : machine.meet_pool())
    std::visit([this](const auto& x) { run(x); }, action);
  take({}, machine.ask_agents());
  if (met_)
    std::exchange(met_, {})();
}
void allocation_shell::meet_twin(const std::string& agent, std::uint64_t incarnation_) {
  auto actions = machine.meet_twin(agent);
  if (actions.empty() && !twins.contains(agent))
    return;
  twins[agent] = incarnation_;
  take({}, std::move(actions));
}
void allocation_shell::run(const start_task& x) {
  auto owner = m.trials.at(id.trial())->owner;
  send_to(x.on.agent,
          start_ordered{id, x.on.slots,
                        std::to_string(x.node_rank) + " " + std::to_string(x.nodes) + " " +
                          std::to_string(from_steps_) + " " + to_string(owner) + " " + m.keys[id.trial()],
                        x.placed});
}
void allocation_shell::run(const preempt_task& x) { send_to(x.agent, preempt_ordered{id, x.reason}); }
void allocation_shell::run(const kill_task& x) { send_to(x.agent, kill_ordered{id}); }
/// Sends through the pool, which has the newest handle and sends in this allocation's name. So the order
/// arrives after what this allocation has already sent to the twin, but later orders may overtake it.
void allocation_shell::run(const watch_task& x) {
  w_.send(self_, at(role::pool),
          [&m = m, x, id = id, self = self_, incarnation = incarnation, life = pool_life, here = m.guard()] {
            if (!here() || life != m.pool_life)
              return;
            m.asked_[id] = std::max(m.asked_[id], incarnation);
            m.tell_twin(self, x.agent, watch_ordered{id, x.slots, x.placed}, m.twins.at(x.agent)->incarnation,
                        id, incarnation);
          });
}
void allocation_shell::run(const forget_task& x) { forget(x.agent); }

/// Sends until a living twin has taken the order, as the CAF shell does.
void allocation_shell::forget(const std::string& agent) {
  auto& twin = twins[agent];
  if (!twin)
    twin = m.twins.at(agent)->incarnation;
  ++unsent_;
  const auto heard = [this, agent, twin = twin, life = guard(),
                      once = std::make_shared<bool>(true)](bool taken) {
    if (!life() || !std::exchange(*once, false))
      return;
    w_.clock.at(w_.now() + (taken ? w_.between(20us, 300us) : w_.between(50ms, 5s)), [=, this] {
      if (!life())
        return;
      if (!taken) {
        if (twins[agent] == twin)
          twins.erase(agent);
        forget(agent);
      }
      --unsent_;
      leave_if_done();
    });
  };
  m.tell_twin(self_, agent, forget_ordered{id}, twin, id, incarnation, heard);
}
void allocation_shell::run(const report_allocation_end& x) {
  m.tell_trial(self_, id.trial(),
               allocation_ended{id.run, x.why, x.detail, x.finished, x.exit_code, x.unplaceable, x.unbegun});
  told_ = true;
  leave_if_done();
}

/// Destroys the shell after a while in which its last messages may still be under way: what arrives late must
/// change nothing.
void allocation_shell::leave_if_done() {
  if (told_ && unsent_ == 0 && !std::exchange(leaving_, true))
    w_.clock.at(w_.now() + w_.between(0us, 30s), [&m = m, id = id, life = guard()] {
      if (life())
        m.allocations.erase(id);
    });
}
void allocation_shell::refused() { m.restart_allocation(id); }

template <class Message>
void allocation_shell::to_agents(const Message& x) {
  for (const auto& [agent, twin] : twins)
    m.tell_twin(self_, agent, x, twin);
}
template void allocation_shell::to_agents(const validation_answer&);
template void allocation_shell::to_agents(const checkpoint_answer&);

} // namespace troupe::sim
