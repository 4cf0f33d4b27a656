#include "actors/allocation/allocation_actor.hpp"

#include "actors/durable_actor.hpp"
#include "model/names.hpp"

#include <caf/all.hpp>

#include <random>

namespace troupe {
namespace {

using base = actor_base<allocation_actor>;

/// 128 random bits as hex: opens the harness gateway to the processes of one allocation.
std::string make_token() {
  std::random_device device;
  char text[33];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", device(), device(), device(), device());
  return text;
}

class allocation_state : durable<allocation_state, allocation_actor, allocation_fact, allocation_action> {
  friend class durable<allocation_state, allocation_actor, allocation_fact, allocation_action>;

public:
  std::string name = "allocation";
  explicit allocation_state(base* self) : durable(self) {}

  allocation_actor::behavior_type make_behavior(const allocation_spec& spec, task_launch launch, allocation_peers peers,
                                                const std::vector<allocation_fact>& past) {
    name = entity(spec.id);
    self_->enter(name);
    id_ = spec.id;
    launch_ = std::move(launch);
    peers_ = std::move(peers);
    launch_["token"] = make_token();
    machine_.emplace(spec);
    for (const auto& fact : past)
      machine_->replay(fact);
    begin(name, past.size(), peers_.journal, machine_->resume());
    return {
      [this](const slots_granted& ev) {
        locate(ev);
      },
      [this](const report_unplaceable& x) { say_it_waits(x); },
      [this](const allocation_stop& ev) { step(ev); },
      [this](const task_started& ev) { from_twin(ev); },
      [this](const task_exited& ev) { from_twin(ev); },
      [this](const task_unknown& ev) { from_twin(ev); },
      [this](const agent_lost& ev) { step(ev); },
      [this](const time_passed& ev) {
        timer_fired();
        step(ev);
      },
      [this](task_checkpoint& up) { self_->send(peers_.trial, std::move(up)); },
      [this](checkpoint_answer& down) { to_all(down); },
      [this](validation_answer& down) { to_all(down); },
    };
  }

private:
  allocation& machine() { return *machine_; }
  void end_children(const caf::error&) {}
  std::optional<time_point> deadline() const { return machine_->deadline(); }

  /// The machine thinks in names; the handles of its agents' twins are learned before it hears of a grant.
  void locate(const slots_granted& ev) {
    std::vector<std::string> names;
    for (const auto& part : ev.on)
      names.push_back(part.agent);
    self_->request(peers_.pool, journal_timeout, locate_agents{names})
      .then(
        [this, ev, names](const std::vector<twin_actor>& twins) {
          for (std::size_t i = 0; i < names.size() && i < twins.size(); ++i)
            twins_[names[i]] = twins[i];
          step(ev);
        },
        [this](const caf::error& why) { leave(why); });
  }

  /// Into the log of its trial; once, however often it is said.
  void say_it_waits(const report_unplaceable& x) {
    log_line line;
    line.at = self_->now();
    line.allocation = id_;
    line.stream = "troupe";
    line.level = "WARNING";
    line.text = "waits for " + std::to_string(x.slots) + " slots; all agents together have " + std::to_string(x.total) +
                " (troupe agent list). Start more agents, or lower resources.slots_per_trial";
    self_->request(peers_.journal, journal_timeout, append_log{id_.trial, {std::move(line)}, "pool/" + to_string(id_), 1})
      .then([](const committed&) {}, [](const caf::error&) {});
  }

  /// A recovered allocation learns the handles of its agents' twins from their first word.
  template <class Event>
  void from_twin(const Event& ev) {
    twins_[ev.agent] = caf::actor_cast<twin_actor>(self_->current_sender());
    step(ev);
  }

  template <class Message>
  void to_all(const Message& x) {
    for (const auto& [agent, twin] : twins_)
      if (twin)
        self_->send(twin, x);
  }

  void run(const request_slots& x) { self_->send(peers_.pool, slots_requested{id_, x.slots}); }
  void run(const release_slots&) { self_->send(peers_.pool, slots_released{id_}); }
  void run(const start_task& x) {
    auto spec = launch_;
    spec["node_rank"] = x.node_rank;
    spec["nodes"] = x.nodes;
    spec["resources_id"] = part_name(id_, x.node_rank);
    spec["slots"] = x.on.slots;
    send_to(x.on.agent, start_ordered{id_, x.on.slots, to_msgpack(spec)});
  }
  void run(const preempt_task& x) { send_to(x.agent, preempt_ordered{id_, x.reason}); }
  void run(const kill_task& x) { send_to(x.agent, kill_ordered{id_}); }
  void run(const forget_task& x) { send_to(x.agent, forget_ordered{id_}); }
  void run(const watch_task& x) { self_->send(peers_.pool, watch_by_name{x.agent, {id_, x.slots}}); }
  void run(const report_allocation_end& x) {
    self_->send(peers_.trial, allocation_ended{id_.run, x.why, x.detail});
    quit_if_done();
  }
  void quit_if_done() {
    if (machine_->closed() && unsent_ == 0)
      self_->quit();
  }

  /// After recovery the handle is not known yet: it is asked for, and what is to be sent waits, in order. The actor
  /// lives until it is sent.
  template <class Message>
  void send_to(const std::string& agent, Message message) {
    if (auto it = twins_.find(agent); it != twins_.end()) {
      if (it->second)
        self_->send(it->second, std::move(message));
      return;
    }
    ++unsent_;
    self_->request(peers_.pool, journal_timeout, locate_agents{{agent}})
      .then(
        [this, agent, message](const std::vector<twin_actor>& twins) mutable {
          --unsent_;
          twins_[agent] = twins.empty() ? twin_actor{} : twins.front();
          send_to(agent, std::move(message));
          quit_if_done();
        },
        [this](const caf::error& why) { leave(why); });
  }

  allocation_id id_;
  task_launch launch_;
  allocation_peers peers_;
  std::optional<allocation> machine_;
  std::map<std::string, twin_actor> twins_;
  int unsent_ = 0; ///< messages that wait for the handle of their twin
};

} // namespace

allocation_actor spawn_allocation(caf::actor_system& sys, const allocation_spec& spec, task_launch launch,
                                  allocation_peers peers, const std::vector<allocation_fact>& past) {
  using impl = shell<allocation_state, allocation_actor, allocation_spec, task_launch, allocation_peers,
                     std::vector<allocation_fact>>;
  return sys.spawn<impl>(spec, std::move(launch), std::move(peers), past);
}

} // namespace troupe
