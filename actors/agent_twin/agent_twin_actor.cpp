#include "actors/agent_twin/agent_twin_actor.hpp"

#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<twin_actor>;

class twin_state {
public:
  std::string name = "agent";
  explicit twin_state(base* self) : self_(self) {}

  twin_actor::behavior_type make_behavior(const std::string& agent, lease_times lease, pool_actor pool) {
    name = "agent/" + agent;
    self_->enter(name);
    pool_ = std::move(pool);
    machine_.emplace(agent, lease, self_->now());
    self_->describe_by([this] { return machine_->describe(); });
    self_->show(machine_->shown());
    self_->set_down_handler([this](const caf::down_msg& down) {
      if (agent_ && down.source == agent_.address())
        step(link_lost{machine_->epoch(), "the connection closed"});
    });
    arm();
    return {
      [this](const agent_registered& ev, agent_actor& who) {
        if (agent_) // also for the same actor, as each monitor call would report its end
          self_->demonitor(agent_.address());
        agent_ = std::move(who);
        self_->monitor(agent_);
        step(ev);
      },
      [this](const agent_heartbeat& ev) { step(ev); },
      [this](const link_report& x) {
        if (x.epoch != machine_->epoch())
          return;
        for (const auto& ev : x.started)
          step(ev);
        for (const auto& ev : x.exited)
          step(ev);
        for (const auto& ev : x.failed)
          step(ev);
        for (const auto& ev : x.said)
          step(ev);
      },
      [this](const start_ordered& ev) { from_allocation(ev); },
      [this](const preempt_ordered& ev) { from_allocation(ev); },
      [this](const kill_ordered& ev) { from_allocation(ev); },
      [this](const forget_ordered& ev) {
        step(ev);
        allocations_.erase(ev.allocation);
      },
      [this](const watch_ordered& ev) { from_allocation(ev); },
      [this](const expect_tasks& x) {
        for (const auto& ev : x.tasks)
          step(ev);
      },
      [this](const death_confirmed& ev) { step(ev); },
      [this](const time_passed& ev) {
        armed_.reset();
        step(ev);
      },
      [this](task_checkpoint& up) {
        // Where the allocation is not known yet, the message is dropped: the gateway repeats it.
        if (auto it = allocations_.find(up.origin.allocation); it != allocations_.end())
          self_->send(it->second, std::move(up));
      },
      [this](const progress_heard& up) {
        if (auto it = allocations_.find(up.allocation); it != allocations_.end())
          self_->send(it->second, up);
      },
      [this](const checkpoint_answer& down) { to_agent(down); },
      [this](const validation_answer& down) { to_agent(down); },
      [this](const worker_ordered& ev) { from_allocation(ev); },
      [this](const service_ordered& ev) { from_allocation(ev); },
      [this](pool_renewed& x) {
        pool_ = std::move(x.pool);
        run_all(machine_->meet_pool());
        return pool_joined{};
      },
    };
  }

private:
  template <class Event>
  void from_allocation(const Event& ev) {
    allocations_[ev.allocation] = caf::actor_cast<allocation_actor>(self_->current_sender());
    step(ev);
  }

  void step(const twin_event& ev) {
    auto actions = machine_->apply(ev, self_->now());
    self_->trace_decision([&] { return "actions: " + std::to_string(actions.size()); });
    run_all(std::move(actions));
    self_->show(machine_->shown());
    arm();
  }
  void run_all(std::vector<twin_action> actions) {
    for (auto& action : actions)
      std::visit([this](auto& x) { run(x); }, action);
  }
  void run(const agent_order& x) {
    link_order order{machine_->epoch()};
    std::visit(overloaded{
                 [&](const start_ordered& o) { order.start = {o}; },
                 [&](const preempt_ordered& o) { order.preempt = {o}; },
                 [&](const kill_ordered& o) { order.kill = {o}; },
                 [&](const forget_ordered& o) { order.forget = {o}; },
                 [&](const worker_ordered& o) { order.worker = {o}; },
                 [&](const service_ordered& o) { order.services = {o}; },
               },
               x);
    to_agent(std::move(order));
  }
  void run(tell_allocation& x) {
    auto it = allocations_.find(x.allocation);
    if (it == allocations_.end())
      return;
    std::visit(
      [&](auto& ev) {
        using type = std::decay_t<decltype(ev)>;
        if constexpr (!std::is_same_v<type, time_passed>)
          self_->send(it->second, std::move(ev));
      },
      x.event);
  }
  void run(tell_pool& x) {
    std::visit(
      [&](auto& ev) {
        using type = std::decay_t<decltype(ev)>;
        if constexpr (!std::is_same_v<type, slots_requested> && !std::is_same_v<type, slots_held>)
          self_->send(pool_, std::move(ev));
      },
      x.event);
  }
  void run(const acknowledge_heartbeat& x) { to_agent(heartbeat_ack{x.epoch, x.sent}); }

  template <class Message>
  void to_agent(Message x) {
    if (agent_)
      self_->send(agent_, std::move(x));
  }

  void arm() {
    auto deadline = machine_->deadline();
    if (!deadline || (armed_ && *armed_ <= *deadline))
      return;
    armed_ = *deadline;
    self_->delayed_send(twin_actor{self_}, std::max<duration>(*deadline - self_->now(), duration{0}),
                        time_passed{});
  }

  base* self_;
  pool_actor pool_;
  agent_actor agent_;
  std::optional<agent_twin> machine_;
  std::map<allocation_id, allocation_actor> allocations_;
  std::optional<time_point> armed_;
};

} // namespace

twin_actor spawn_twin(caf::actor_system& sys, std::string agent, lease_times lease, pool_actor pool) {
  return sys.spawn<shell<twin_state, twin_actor, std::string, lease_times, pool_actor>>(
    std::move(agent), lease, std::move(pool));
}

} // namespace troupe
