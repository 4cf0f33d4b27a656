#include "actors/pool/pool_actor.hpp"

#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<pool_actor>;

class pool_state {
public:
  std::string name = "pool";
  explicit pool_state(base* self) : self_(self) {}

  pool_actor::behavior_type make_behavior(const std::string& pool_name) {
    name = "pool/" + pool_name;
    self_->enter(name);
    self_->describe_by([this] { return machine_.describe(); });
    return {
      [this](const agent_up& ev) { step(ev); },
      [this](const agent_down& ev) { step(ev); },
      [this](const slots_requested& ev) {
        waiting_[ev.allocation] = caf::actor_cast<allocation_actor>(self_->current_sender());
        step(ev);
      },
      [this](const slots_released& ev) {
        if (ev.agent.empty())
          waiting_.erase(ev.allocation);
        step(ev);
      },
      [this](const agent_drain& ev) { step(ev); },
      [this](const watch_by_name& x) {
        auto from = caf::actor_cast<allocation_actor>(self_->current_sender());
        if (auto it = twins_.find(x.agent); it != twins_.end())
          caf::send_as(from, it->second, x.watch);
        else
          self_->send(from, agent_lost{x.agent, "it is no longer known"});
      },
      [this](twin_actor& twin, std::string& agent) { twins_[std::move(agent)] = std::move(twin); },
      [this](const locate_agents& x) {
        std::vector<twin_actor> out;
        for (const auto& agent : x.names)
          out.push_back(twins_.contains(agent) ? twins_[agent] : twin_actor{});
        return out;
      },
      [this](const describe_pool&) {
        pool_description d{machine_.total_slots(), machine_.used_slots(), machine_.agents(), {}};
        for (const auto& r : machine_.waiting())
          d.waiting.emplace_back(r.allocation, r.slots);
        return d;
      },
    };
  }

private:
  void step(const pool_event& ev) {
    auto actions = machine_.apply(ev);
    self_->trace_decision([&] {
      return "grants: " + std::to_string(actions.size()) + ", used " + std::to_string(machine_.used_slots()) +
             " of " + std::to_string(machine_.total_slots());
    });
    for (auto& action : actions)
      std::visit([this](auto& x) { run(x); }, action);
  }
  void run(const grant_slots& x) {
    auto it = waiting_.find(x.allocation);
    if (it == waiting_.end() || !it->second)
      return self_->send(pool_actor{self_}, slots_released{x.allocation}); // nobody is there to use it
    self_->request(it->second, caf::infinite, slots_granted{x.allocation, x.on})
      .then([] {},
            [this, x, who = it->second](const caf::error&) {
              // It died before it heard. Unless it was made again and has asked, the slots are nobody's.
              if (auto now = waiting_.find(x.allocation); now != waiting_.end() && now->second == who)
                step(slots_released{x.allocation});
            });
  }
  void run(const report_spare& x) {
    if (auto it = waiting_.find(x.allocation); it != waiting_.end() && it->second)
      self_->send(it->second, slots_spare{x.allocation, x.slots});
  }
  void run(const report_unplaceable& x) {
    if (auto it = waiting_.find(x.allocation); it != waiting_.end() && it->second)
      self_->send(it->second, x);
  }

  base* self_;
  pool machine_;
  std::map<allocation_id, allocation_actor> waiting_; ///< and those that hold slots
  std::map<std::string, twin_actor> twins_;
};

} // namespace

pool_actor spawn_pool(caf::actor_system& sys, std::string name) {
  return sys.spawn<shell<pool_state, pool_actor, std::string>>(std::move(name));
}

} // namespace troupe
