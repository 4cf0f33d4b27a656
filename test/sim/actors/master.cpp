#include "test/sim/actors/master.hpp"

#include "test/sim/actors/hosts.hpp"
#include "test/sim/actors/shells.hpp"

namespace troupe::sim {
namespace {

address of_twin(const std::string& agent) { return at(role::twin, std::stoul(agent.substr(1)) + 1); }

template <class Event>
constexpr repeats how_often =
  std::is_same_v<Event, allocation_ended> || std::is_same_v<Event, trial_finished> ? repeats::late
                                                                                   : repeats::at_once;

} // namespace

// ---- twin

twin_shell::twin_shell(master& m, int host, lease_times lease)
    : m(m), host(host), machine("h" + std::to_string(host), lease, m.w.now()),
      incarnation(m.next_incarnation++), pool_life(m.pool_life) {
  arm();
}

void twin_shell::step(const twin_event& ev) {
  if (dead)
    return;
  auto actions = machine.apply(ev, m.w.now());
  m.w.trace([&] { return "twin " + machine.name() + ": " + show(ev) + " -> " + show(actions); });
  run(std::move(actions));
  arm();
}

void twin_shell::meet_pool(std::uint64_t life) {
  if (dead)
    return;
  pool_life = life;
  run(machine.meet_pool());
}

void twin_shell::run(std::vector<twin_action> actions) {
  auto self = of_twin(machine.name());
  for (auto& action : actions)
    std::visit(
      overloaded{
        [&](const agent_order& x) {
          if (std::holds_alternative<start_ordered>(x) && m.lost_to_agents > 0)
            --m.lost_to_agents;
          else if (line)
            m.machines.send_down(
              line, self,
              [h = &m.machines, host = host, epoch = machine.epoch(), x](agent_process& a) {
                h->order(a, host, epoch, x);
              },
              repeats::late);
        },
        [&](const tell_allocation& x) {
          auto it = known.find(x.allocation);
          if (it != known.end())
            std::visit(
              [&](const auto& e) { m.tell_allocation_actor(self, x.allocation, it->second, e, incarnation); },
              x.event);
        },
        [&](const tell_pool& x) { m.tell_pool_actor(self, x.event, pool_life); },
        [&](const acknowledge_heartbeat& x) {
          if (line)
            m.machines.send_down(
              line, self, [h = &m.machines, host = host, x](agent_process& a) { h->acked(a, host, x); });
        },
      },
      action);
}

void twin_shell::arm() {
  auto deadline = machine.deadline();
  if (!deadline || (armed && *armed <= *deadline))
    return;
  armed = *deadline;
  m.w.clock.at(*deadline, [this, life = m.guard(), mine = alive] {
    if (!life() || !mine())
      return;
    armed.reset();
    step(time_passed{});
  });
}

void twin_shell::up(const task_checkpoint& x) {
  if (auto it = known.find(x.allocation); it != known.end())
    m.tell_allocation_actor(of_twin(machine.name()), x.allocation, it->second, x);
}
void twin_shell::down(const validation_answer& x) {
  if (line)
    m.machines.send_down(line, of_twin(machine.name()),
                         [h = &m.machines, host = host, x](agent_process&) { h->answer(host, x); });
}
void twin_shell::down(const checkpoint_answer& x) {
  if (line)
    m.machines.send_down(line, of_twin(machine.name()),
                         [h = &m.machines, host = host, x](agent_process&) { h->answer(host, x); });
}

// ---- master

master::master(world& w, fake_journal& journal, hosts& h, int life)
    : w(w), journal(journal), machines(h), life(life) {
  // Recovery reads ids and agents from the cluster's stream, then makes the twins with the tasks that they
  // have to wait for, then everything else.
  id_counters ids;
  std::vector<experiment_id> open;
  for (const auto& [entity, facts] : journal.facts())
    if (entity.starts_with("experiment/"))
      for (const auto& bytes : facts)
        if (auto fact = decode_as<experiment_fact>(bytes); auto* step = std::get_if<search_stepped>(&*fact))
          for (const auto& made : step->created)
            ids.newest_trial = std::max(ids.newest_trial, made.trial);
  for (const auto& bytes : journal.facts_of(cluster_entity))
    if (auto fact = decode_as<cluster_fact>(bytes); auto* made = std::get_if<experiment_created>(&*fact))
      open.push_back(made->id);
  cluster_ = std::make_unique<cluster_shell>(*this, ids);
  cluster_->start();
  for (const auto& [agent, tasks] : tasks_in_journal())
    for (const auto& task : tasks)
      twins.at(agent)->step(task);
  for (auto id : open) {
    experiments[id] = std::make_unique<experiment_shell>(*this, id);
    experiments[id]->start();
  }
  bury();
}

/// The tasks that run on each agent according to the journal.
std::map<std::string, std::vector<watch_ordered>> master::tasks_in_journal() const {
  std::map<std::string, std::vector<watch_ordered>> by_agent;
  for (const auto& [entity, facts] : journal.facts()) {
    if (!entity.starts_with("trial/"))
      continue;
    trial probe({});
    for (const auto& bytes : facts)
      probe.replay(*decode_as<trial_fact>(bytes));
    allocation_id id{parse_id<trial_id>(std::string_view(entity).substr(6)), probe.open_run()};
    if (!id.run)
      continue;
    allocation placed({id});
    for (const auto& bytes : journal.facts_of(troupe::entity(id)))
      placed.replay(*decode_as<allocation_fact>(bytes));
    if (!placed.closed())
      for (const auto& part : placed.placed())
        by_agent[part.agent].push_back({id, part.slots});
  }
  return by_agent;
}

master::~master() {
  *alive_.flag = false;
  trials.clear(); // trials end their allocations
}

void master::bury() {
  while (!graveyard.empty()) {
    auto done = std::exchange(graveyard, {});
    for (auto& end : done)
      end();
  }
}

void master::create_experiment(const std::string& key, std::function<void(experiment_id)> done) {
  experiment_created wanted;
  wanted.at = w.now();
  wanted.key = key;
  auto made = cluster_->machine.create(wanted);
  bool fresh = !made.facts.empty();
  cluster_->take(std::move(made.facts), {}, [this, id = made.id, fresh, done] {
    if (fresh) {
      experiments[id] = std::make_unique<experiment_shell>(*this, id);
      experiments[id]->start();
    }
    done(id);
  });
}

void master::wish(user_wish what, std::function<void()> done) {
  auto it = experiments.begin();
  if (it == experiments.end())
    return done(); // the experiment has ended
  switch (what) {
  case user_wish::pause:
    return it->second->step(experiment_pause{}, done);
  case user_wish::activate:
    return it->second->step(experiment_activate{}, done);
  case user_wish::cancel:
    return it->second->step(experiment_stop{false, "cancel"}, done);
  case user_wish::kill:
    return it->second->step(experiment_stop{true, "kill"}, done);
  }
}

void master::agent_registers(link_ptr line, agent_joined who, std::vector<task_report> inventory,
                             time_point sent) {
  const agent_asked asked{who, static_cast<std::uint64_t>(line->agent_life) + 1};
  auto& newest = machines.newest_life[line->host];
  newest = std::max(newest, line->agent_life);
  if (auto no = cluster_->machine.who.refuses(asked, w.now())) {
    if (line->agent_life == newest) // otherwise the agent is dead, and its message came late
      fail("an agent was refused: " + no->what);
    return;
  }
  cluster_->tell_members(asked, [this, line, who, inventory = std::move(inventory), sent] {
    auto& twin = twins.at(who.agent);
    line->epoch = ++machines.newest_epoch;
    if (twin->line)
      twin->line->master_side = false;
    twin->line = line;
    // The answer and the twin's orders come from two actors, so either may arrive first.
    machines.send_down(line, at(role::cluster), [h = &machines, line, sent](agent_process& a) {
      h->accepted(a, line, line->epoch, sent);
    });
    twin->step(agent_registered{line->epoch, who.slots, inventory});
  });
}

void master::link_closed(const link_ptr& line) {
  line->master_side = false;
  if (!line->epoch)
    return;
  auto it = twins.find("h" + std::to_string(line->host));
  if (it != twins.end() && it->second->line == line) {
    it->second->line.reset();
    cluster_->tell_members(agent_went_away{it->first});
    it->second->step(link_lost{line->epoch, "the connection closed"});
  }
}

void master::report(const link_ptr& line, report_row row) {
  auto origin = report_origin{row.allocation, 0, row.process, row.sequence};
  auto trial = row.allocation.trial();
  auto stored = std::make_shared<fake_journal::received>(fake_journal::received::stored);
  auto done = [this, origin, trial, line, stored, row, life = guard()](std::uint64_t number) {
    if (!life())
      return;
    if (*stored == fake_journal::received::stored) {
      // The real journal knows the trial's experiment; here there is only one.
      for (const auto& [id, e] : experiments)
        tell_experiment(
          at(role::journal), id,
          validation_recorded{trial, origin, number, row.steps, row.metrics, row.allocation.run});
    } else {
      machines.send_down(line, at(role::journal), [h = &machines, host = line->host, origin](agent_process&) {
        h->answer(host, validation_answer{origin, false});
      });
    }
  };
  *stored = journal.report(row, done);
  if (*stored == fake_journal::received::fenced)
    machines.send_down(line, at(role::journal), [h = &machines, host = line->host, row](agent_process&) {
      h->refuse_report(host, row.allocation, row.process);
    });
}

void master::pool_step(const pool_event& ev) {
  auto before = pool_.agents();
  auto actions = pool_.apply(ev, w.now());
  w.trace([&] { return "pool: " + show(ev) + " -> " + show(actions); });
  if (!std::holds_alternative<agent_up>(ev))
    for (const auto& [name, slots] : pool_.agents())
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (const auto& held = before[name]; i < held.size() && held[i] && slots[i] && held[i] != slots[i])
          if (auto* released = std::get_if<slots_released>(&ev); !released || released->allocation != held[i])
            fail("slot " + name + ":" + std::to_string(i) + " went from " + to_string(held[i]) + " to " +
                 to_string(slots[i]) + " without a release");
  for (const auto& action : actions)
    if (auto* x = std::get_if<grant_slots>(&action)) {
      auto it = asked_.find(x->allocation);
      auto a = allocations.find(x->allocation);
      if (it != asked_.end() && a != allocations.end() && a->second->incarnation == it->second)
        tell_allocation_actor(at(role::pool), x->allocation, it->second, slots_granted{x->allocation, x->on});
      else // the allocation that asked is not there any more
        tell_pool_actor(at(role::pool), slots_released{x->allocation}, pool_life);
    }
}

void master::tell_pool_actor(address from, pool_event ev, std::uint64_t to, std::uint64_t incarnation,
                             std::function<void()> heard) {
  auto again = std::holds_alternative<slots_requested>(ev) ? repeats::late : repeats::at_once;
  w.send(
    from, at(role::pool),
    [this, ev = std::move(ev), to, incarnation, heard = std::move(heard), life = guard()] {
      if (!life())
        return;
      const auto from_whom = [&](allocation_id id) { // the message of a dead allocation may come late
        asked_[id] = std::max(asked_[id], incarnation);
      };
      if (to == pool_life) {
        if (auto* x = std::get_if<slots_requested>(&ev))
          from_whom(x->allocation);
        if (auto* x = std::get_if<slots_held>(&ev))
          from_whom(x->allocation);
        pool_step(ev);
      }
      if (heard) // without this call the sender's request fails
        heard();
    },
    again);
}

/// Does what cluster_members::introduce does, and what the actors below it do with pool_renewed.
void master::introduce_pool() {
  const auto to = pool_life;
  auto left = std::make_shared<int>(1);
  const auto one_less = [this, left, to] {
    if (--*left == 0)
      tell_pool_actor(at(role::cluster), holders_heard{}, to);
  };
  const auto answer = [this, one_less](address from) {
    w.send(
      from, at(role::cluster),
      [one_less, life = guard()] {
        if (life())
          one_less();
      },
      repeats::never);
  };
  const auto ask = [this](address from, address whom, std::function<void()> what) {
    w.send(
      from, whom,
      [what = std::move(what), life = guard()] {
        if (life())
          what();
      },
      repeats::never);
  };
  for (const auto& [agent, twin] : twins)
    ask(at(role::cluster), of_twin(agent), [this, agent = agent, to] { twins.at(agent)->meet_pool(to); });
  for (const auto& [id, experiment] : experiments) {
    ++*left;
    const auto here = at(role::experiment, id.value);
    ask(at(role::cluster), here, [=, this, id = id] {
      if (auto e = experiments.find(id); e != experiments.end()) {
        e->second->pool_life = to;
        for (const auto& [number, each] : trials) {
          if (each->owner != id)
            continue;
          ++*left;
          const auto there = at(role::trial, number.value);
          ask(here, there, [=, this, number = number] {
            auto t = trials.find(number);
            auto a = t == trials.end() ? allocations.end() : allocations.find({number, t->second->run_});
            if (t != trials.end())
              t->second->pool_life = to;
            if (a == allocations.end())
              return answer(there);
            ask(there, at(a->first), [=, this, run = a->first] {
              auto still = allocations.find(run);
              if (still == allocations.end())
                return answer(at(run));
              still->second->meet_pool(to, [answer, run] { answer(at(run)); });
            });
          });
        }
      }
      answer(here);
    });
  }
  one_less();
}

void master::make_twin_again(const std::string& agent) {
  const auto host = machines.index_of(agent);
  const auto line = twins.at(agent)->line;
  auto& twin = twins[agent];
  twin = std::make_unique<twin_shell>(*this, host, w.plan.lease);
  auto tasks = tasks_in_journal();
  for (const auto& task : tasks[agent])
    twin->step(task);
  // As in cluster_members, this is in the pool's mailbox before any host can have met the new twin. The pool
  // tells the allocations that it knows.
  pool_step(agent_down{agent});
  for (const auto& [id, asked] : asked_)
    if (auto a = allocations.find(id); a != allocations.end() && a->second->incarnation == asked)
      w.send(
        at(role::pool), at(id),
        [this, id = id, agent, incarnation = twin->incarnation, mine = a->second->guard()] {
          if (mine())
            allocations.at(id)->meet_twin(agent, incarnation);
        },
        repeats::never);
  if (line)
    machines.twin_died(host, line);
}

template <class Event>
void master::tell_trial(address from, trial_id to, Event ev) {
  auto it = trials.find(to);
  if (it == trials.end())
    return;
  w.send(
    from, at(role::trial, to.value),
    [this, to, ev = std::move(ev), life = it->second->guard()] {
      if (!life())
        return;
      auto& t = *trials.at(to);
      if constexpr (std::is_same_v<Event, validation_answer>) {
        if (auto a = allocations.find({to, t.run_});
            a != allocations.end() && ev.origin.allocation.run == t.run_)
          tell_allocation_actor(at(role::trial, to.value), a->first, a->second->incarnation, ev);
      } else {
        t.step(ev);
      }
    },
    how_often<Event>);
}
template void master::tell_trial(address, trial_id, trial_activate);
template void master::tell_trial(address, trial_id, trial_pause);
template void master::tell_trial(address, trial_id, trial_stop);
template void master::tell_trial(address, trial_id, trial_perturb);
template void master::tell_trial(address, trial_id, allocation_ended);
template void master::tell_trial(address, trial_id, checkpoint_saved);
template void master::tell_trial(address, trial_id, validation_answer);

template <class Event>
void master::tell_experiment(address from, experiment_id to, Event ev) {
  auto it = experiments.find(to);
  if (it == experiments.end())
    return;
  w.send(
    from, at(role::experiment, to.value),
    [this, to, ev = std::move(ev), life = it->second->guard()] {
      if (life())
        experiments.at(to)->step(ev);
    },
    how_often<Event>);
}
template void master::tell_experiment(address, experiment_id, trial_finished);
template void master::tell_experiment(address, experiment_id, checkpoint_reported);
template void master::tell_experiment(address, experiment_id, perturbation_taken);

template <class Event>
void master::tell_allocation_actor(address from, allocation_id to, std::uint64_t incarnation, Event ev,
                                   std::uint64_t twin) {
  auto it = allocations.find(to);
  if (it == allocations.end() || it->second->incarnation != incarnation)
    return;
  w.send(from, at(to),
         [this, to, incarnation, ev = std::move(ev), twin, pool = pool_life, life = it->second->guard(),
          here = guard()] {
           if (!life()) {
             // The pool watches the allocations that it grants slots to.
             if constexpr (std::is_same_v<Event, slots_granted>)
               if (here() && pool == pool_life && asked_[to] == incarnation)
                 tell_pool_actor(at(role::pool), slots_released{to}, pool_life);
             return;
           }
           auto& a = *allocations.at(to);
           if constexpr (requires { ev.agent; })
             if (twin)
               a.twins[ev.agent] = twin;
           if constexpr (std::is_same_v<Event, slots_granted>) {
             if (pool != pool_life)
               return; // a dead pool cannot tell the twins' handles
             if (planted == planted_bug::late_grant_kept && a.machine.closed())
               return;
             for (const auto& part : ev.on)
               a.twins[part.agent] = twins.at(part.agent)->incarnation;
           }
           if constexpr (std::is_same_v<Event, validation_answer> || std::is_same_v<Event, checkpoint_answer>)
             a.to_agents(ev);
           else if constexpr (std::is_same_v<Event, task_checkpoint>)
             tell_trial(at(to), to.trial(), checkpoint_saved{to.run, ev.saved});
           else
             a.step(ev);
         });
}
template void master::tell_allocation_actor(address, allocation_id, std::uint64_t, allocation_stop,
                                            std::uint64_t);
template void master::tell_allocation_actor(address, allocation_id, std::uint64_t, checkpoint_answer,
                                            std::uint64_t);

template <class Event>
void master::tell_twin(address from, const std::string& agent, Event ev, std::uint64_t twin,
                       allocation_id sender, std::uint64_t incarnation, std::function<void(bool)> heard) {
  if (!twins.contains(agent))
    fail("no twin of agent " + agent);
  if (std::is_same_v<Event, start_ordered> && lost_to_twins > 0) {
    --lost_to_twins;
    return;
  }
  w.send(
    from, of_twin(agent),
    [this, agent, ev = std::move(ev), twin, sender, incarnation, heard = std::move(heard), life = guard()] {
      if (!life())
        return;
      const bool lives = twins.at(agent)->incarnation == twin && !twins.at(agent)->dead;
      if (heard)
        heard(lives);
      if (!lives)
        return;
      auto& t = *twins.at(agent);
      if (sender)
        t.known[sender] = incarnation;
      if constexpr (std::is_same_v<Event, validation_answer> || std::is_same_v<Event, checkpoint_answer>)
        t.down(ev);
      else
        t.step(ev);
      if constexpr (std::is_same_v<Event, forget_ordered>)
        t.known.erase(ev.allocation);
    });
}
template void master::tell_twin(address, const std::string&, start_ordered, std::uint64_t, allocation_id,
                                std::uint64_t, std::function<void(bool)>);
template void master::tell_twin(address, const std::string&, preempt_ordered, std::uint64_t, allocation_id,
                                std::uint64_t, std::function<void(bool)>);
template void master::tell_twin(address, const std::string&, kill_ordered, std::uint64_t, allocation_id,
                                std::uint64_t, std::function<void(bool)>);
template void master::tell_twin(address, const std::string&, watch_ordered, std::uint64_t, allocation_id,
                                std::uint64_t, std::function<void(bool)>);
template void master::tell_twin(address, const std::string&, forget_ordered, std::uint64_t, allocation_id,
                                std::uint64_t, std::function<void(bool)>);
template void master::tell_twin(address, const std::string&, validation_answer, std::uint64_t, allocation_id,
                                std::uint64_t, std::function<void(bool)>);
template void master::tell_twin(address, const std::string&, checkpoint_answer, std::uint64_t, allocation_id,
                                std::uint64_t, std::function<void(bool)>);

void master::kill_actor(fault_kind kind, std::uint64_t pick) {
  if (kind == fault_kind::trial_actor_dies && !trials.empty()) {
    auto it = trials.begin();
    std::advance(it, pick % trials.size());
    w.trace([&] { return "the actor of trial " + to_string(it->first) + " dies"; });
    restart_trial(it->first);
  } else if (kind == fault_kind::allocation_actor_dies && !allocations.empty()) {
    auto it = allocations.begin();
    std::advance(it, pick % allocations.size());
    w.trace([&] { return "the actor of allocation " + to_string(it->first) + " dies"; });
    restart_allocation(it->first);
  } else if (kind == fault_kind::pool_actor_dies) {
    w.trace([] { return "the pool's actor dies"; });
    ++pool_life; // messages to the dead pool are lost
    pool_ = pool(pool::phase::recovering);
    asked_.clear();
    w.send(
      at(role::pool), at(role::cluster),
      [this, life = guard()] {
        if (life())
          cluster_->tell_members(pool_died{"default", "a fault"});
      },
      repeats::never);
  } else if (kind == fault_kind::twin_actor_dies && !twins.empty()) {
    auto it = twins.begin();
    std::advance(it, pick % twins.size());
    w.trace([&] { return "the twin of " + it->first + " dies"; });
    it->second->die();
    w.send(
      of_twin(it->first), at(role::cluster),
      [this, agent = it->first, life = guard()] {
        if (life())
          cluster_->tell_members(twin_died{agent, "a fault"});
      },
      repeats::never);
  } else if (kind == fault_kind::searcher_actor_dies && !experiments.empty()) {
    w.trace([] { return "the searcher dies"; });
    experiments.begin()->second->searcher_dies();
  }
}

void master::restart_trial(trial_id id) {
  graveyard.push_back([this, id] {
    auto it = trials.find(id);
    if (it == trials.end())
      return;
    auto owner = it->second->owner;
    auto spec = it->second->spec;
    trials.erase(it);
    // The trial's experiment hears of the death and makes the trial again from durable facts.
    w.send(
      at(role::trial, id.value), at(role::experiment, owner.value),
      [this, owner, spec, life = guard()] {
        auto e = experiments.find(owner);
        if (!life() || e == experiments.end() || trials.contains(spec.id))
          return;
        e->second->take({}, e->second->machine.resume_trial(spec.id));
      },
      repeats::never);
  });
}

void master::restart_allocation(allocation_id id) {
  graveyard.push_back([this, id] {
    if (!allocations.erase(id))
      return;
    if (auto it = trials.find(id.trial()); it != trials.end() && it->second->run_ == id.run)
      w.send(
        at(id), at(role::trial, id.trial().value),
        [this, id, life = it->second->guard()] {
          if (life() && trials.at(id.trial())->run_ == id.run && !allocations.contains(id))
            trials.at(id.trial())->resume_allocation();
        },
        repeats::never);
  });
}

bool master::all_over() const { return experiments.empty() && trials.empty(); }

void master::check_quiet() const {
  if (pool_.used_slots() != 0)
    for (const auto& [name, slots] : pool_.agents())
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i])
          fail("slot " + name + ":" + std::to_string(i) + " is still held by " + to_string(slots[i]));
  if (!pool_.waiting().empty())
    fail("allocation " + to_string(pool_.waiting().front().allocation) + " still waits in the pool");
}

} // namespace troupe::sim
