#include "actors/pool/pool_actor.hpp"

#include "actors/pool/capacity.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

#include <set>

namespace troupe {
namespace {

using base = actor_base<pool_actor>;

/// A grant that an allocation has not acknowledged after this time is sent again.
constexpr auto grant_timeout = std::chrono::seconds(30);
constexpr std::size_t most_before = 4;   ///< limit of the earlier handles that are kept for one allocation
constexpr std::size_t most_shown = 1000; ///< limit of the waiting runs in a description of the pool

class pool_state {
public:
  std::string name = "pool";
  explicit pool_state(base* self) : self_(self) {}

  pool_actor::behavior_type make_behavior(const std::string& pool_name, pool::phase begin) {
    name = "pool/" + pool_name;
    pool_name_ = pool_name;
    machine_ = pool(begin, pool_settings{});
    self_->enter(name);
    self_->describe_by([this] { return machine_.describe(); });
    self_->set_down_handler([this](const caf::down_msg& down) {
      if (provisioner_ && down.source == provisioner_.address())
        provisioner_ = nullptr; // no actor has to hear of the demand any more
    });
    return {
      [this](const agent_up& ev) {
        // A twin that was ended may still work off its mailbox, while the agent is in another pool already.
        if (const auto twin = twins_.find(ev.agent);
            twin != twins_.end() && ended_.contains(ev.agent) &&
            caf::actor_cast<caf::strong_actor_ptr>(twin->second) == self_->current_sender())
          return;
        step(ev);
      },
      [this](const agent_down& ev) {
        if (ev.gone)
          ended_.insert(ev.agent);
        step(ev);
      },
      [this](const slots_requested& ev) {
        remember(ev.allocation);
        step(ev);
      },
      [this](const slots_released& ev) {
        step(ev);
        if (ev.agent.empty() || !machine_.knows(ev.allocation)) {
          waiting_.erase(ev.allocation);
          asked_before_.erase(ev.allocation);
        }
      },
      [this](const agent_drain& ev) { step(ev); },
      [this](const watch_by_name& x) {
        const auto from = remember(x.watch.allocation);
        if (auto it = twins_.find(x.agent); it != twins_.end())
          caf::send_as(from, it->second, x.watch);
        else
          self_->send(from, agent_lost{x.agent, "it is no longer known"});
      },
      [this](twin_actor& twin, std::string& agent) {
        auto& known = twins_[agent];
        const auto before = std::exchange(known, twin);
        if (before != twin)
          ended_.erase(agent);
        if (!before && !machine_.has(agent))
          step(agent_down{agent}); // the agent is away, but may register
        if (before && before != twin)
          for (const auto& [id, allocation] : waiting_)
            if (allocation)
              self_->send(allocation, twin_renewed{agent, twin});
      },
      [this](const locate_agents& x) {
        std::vector<twin_actor> out;
        for (const auto& agent : x.names)
          out.push_back(twins_.contains(agent) ? twins_[agent] : twin_actor{});
        return out;
      },
      [this](const describe_pool&) {
        pool_description d{
          machine_.total_slots(), machine_.used_slots(), machine_.agents(), {}, machine_.details()};
        for (const auto& r : machine_.waiting(most_shown))
          d.waiting.emplace_back(r.allocation, r.slots);
        return d;
      },
      [this](const slots_held& ev) {
        remember(ev.allocation);
        step(ev);
        return pool_joined{};
      },
      [this](const holders_heard& ev) { step(ev); },
      [this](const job_changed& ev) { step(ev); },
      [this](const pool_configured& ev) { step(ev); },
      [this](const time_passed& ev) {
        timer_at_.reset();
        step(ev);
      },
      [this](const explain_allocation& x) {
        if (!x.allocation) // no run yet: what the pool could hold
          return allocation_explained{to_value(machine_.capacity())};
        return allocation_explained{machine_.explain(x.allocation, x.outlooks, self_->now())};
      },
      [this](const look_at_agent& x) { return agent_looked_at{machine_.is_idle(x.agent)}; },
      [this](const list_waiting&) { return waiting_listed{machine_.waiting_runs()}; },
      [this](const agent_forgotten& ev) {
        // The twin may have ended before it could tell these allocations that the agent is lost.
        for (const auto& run : machine_.held_on(ev.agent))
          if (const auto at = waiting_.find(run); at != waiting_.end() && at->second)
            self_->send(at->second, agent_lost{ev.agent, "it was removed"});
        twins_.erase(ev.agent);
        step(ev);
      },
      [this](const supply_told& ev) { step(ev); },
      [this](provisioner_actor& x) {
        if (provisioner_)
          self_->demonitor(provisioner_.address());
        provisioner_ = std::move(x);
        self_->monitor(provisioner_);
        told_.clear();
        tell_demand();
      },
    };
  }

private:
  /// Who speaks for it now. One that was made again may have asked already when its predecessor, which has
  /// yet to take its exit, meets a new pool.
  allocation_actor remember(allocation_id id) {
    auto from = caf::actor_cast<allocation_actor>(self_->current_sender());
    auto& known = waiting_[id];
    if (known && known != from) {
      auto& before = asked_before_[id];
      std::erase(before, from);
      before.push_back(known);
      if (before.size() > most_before)
        before.erase(before.begin());
    }
    return known = std::move(from);
  }

  void step(const pool_event& ev) {
    auto actions = machine_.apply(ev, self_->now());
    self_->trace_decision([&] {
      return "grants: " + std::to_string(actions.size()) + ", used " + std::to_string(machine_.used_slots()) +
             " of " + std::to_string(machine_.total_slots());
    });
    for (auto& action : actions)
      std::visit([this](auto& x) { run(x); }, action);
    arm_timer();
    tell_demand();
  }
  /// Tells the provisioner of an elastic pool when the demand or the agents have changed.
  void tell_demand() {
    if (!provisioner_)
      return;
    auto demand = machine_.demand();
    if (auto bytes = pack(demand); bytes != told_) {
      told_ = std::move(bytes);
      self_->send(provisioner_, std::move(demand));
    }
  }
  /// Arms one timer at a time, unless a new deadline is earlier. The machine ignores a timer that comes too
  /// soon.
  void arm_timer() {
    const auto at = machine_.deadline();
    if (!at || (timer_at_ && *timer_at_ <= *at))
      return;
    timer_at_ = at;
    self_->delayed_send(pool_actor{self_}, std::max<duration>(*at - self_->now(), duration{0}),
                        time_passed{});
  }
  void run(const grant_slots& x) {
    auto it = waiting_.find(x.allocation);
    if (it == waiting_.end() || !it->second)
      return self_->send(pool_actor{self_}, slots_released{x.allocation}); // no allocation can use the grant
    self_->request(it->second, grant_timeout, slots_granted{x.allocation, x.on, pool_name_, x.backfilled})
      .then([] {},
            [this, x, who = it->second](const caf::error& why) {
              auto now = waiting_.find(x.allocation);
              if (now == waiting_.end() || now->second != who)
                return; // the slots were released, or the allocation was made again and has asked again
              if (why == caf::sec::request_timeout)
                return run(x); // the grant may be lost; a repeat changes nothing
              if (auto before = asked_before_.find(x.allocation); before != asked_before_.end()) {
                now->second = std::move(before->second.back());
                before->second.pop_back();
                if (before->second.empty())
                  asked_before_.erase(before);
                return run(x);
              }
              step(slots_released{x.allocation}); // the allocation died before the grant arrived
            });
  }
  void run(const preempt_allocation& x) {
    if (auto it = waiting_.find(x.allocation); it != waiting_.end() && it->second)
      self_->send(it->second, x);
  }
  void run(const fall_back& x) {
    if (auto it = waiting_.find(x.allocation); it != waiting_.end() && it->second)
      self_->send(it->second, x);
  }
  void run(const guest_waits& x) {
    if (auto it = waiting_.find(x.allocation); it != waiting_.end() && it->second)
      self_->send(it->second, guest_waits{x.allocation, pool_name_});
  }
  void run(const reserve_slots&) {} // the machine keeps the slots, and explanations tell of them
  void run(const drop_reservation&) {}
  void run(const report_spare& x) {
    if (auto it = waiting_.find(x.allocation); it != waiting_.end() && it->second)
      self_->send(it->second, slots_spare{x.allocation, x.slots});
  }
  void run(const report_unplaceable& x) {
    if (auto it = waiting_.find(x.allocation); it != waiting_.end() && it->second)
      self_->send(it->second, x);
  }

  base* self_;
  std::string pool_name_;
  pool machine_;
  std::optional<time_point> timer_at_;
  std::map<allocation_id, allocation_actor> waiting_; ///< allocations that wait or hold slots
  /// Other actors that spoke for an allocation, the latest last. One of them may live.
  std::map<allocation_id, std::vector<allocation_actor>> asked_before_;
  std::map<std::string, twin_actor> twins_;
  std::set<std::string> ended_;   ///< agents whose twin, as it is known here, has been ended
  provisioner_actor provisioner_; ///< null: the pool is not elastic
  std::string told_;              ///< bytes of the demand that the provisioner was told last
};

} // namespace

pool_actor spawn_pool(caf::actor_system& sys, std::string name, pool::phase begin) {
  return sys.spawn<shell<pool_state, pool_actor, std::string, pool::phase>>(std::move(name), begin);
}

} // namespace troupe
