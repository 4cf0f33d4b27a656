#include "test/sim/pools/watched.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

[[noreturn]] void fail(std::string what) { throw violation{std::move(what)}; }

bool among(const std::vector<placement>& on, const std::string& agent, int slot) {
  return std::any_of(on.begin(), on.end(), [&](const auto& part) {
    return part.agent == agent && std::find(part.slots.begin(), part.slots.end(), slot) != part.slots.end();
  });
}

} // namespace

void watched_pool::hear(const pool_event& ev, time_point now) {
  std::visit(overloaded{
               [&](const agent_up& x) {
                 agents_[x.agent] = x;
                 if (reserved_)
                   return;
               },
               [&](const agent_down& x) { agents_.erase(x.agent); },
               [&](const agent_drain& x) { orders_[x.agent] = x; },
               [&](const holders_heard&) { placing = true; },
               [&](const pool_configured& x) {
                 settings_ = *pool_settings_of(x.settings);
                 pool_limits_.emplace_back(now, settings_.max_slots);
                 configured_at_ = now;
               },
               [&](const job_changed& x) {
                 if (!has(x.job.job))
                   return; // the job's next run brings the terms
                 told_.insert(x.job.job);
                 take(x.job, now);
               },
               [&](const slots_requested& x) {
                 if (!has(x.run.job.job))
                   told_.erase(x.run.job.job);
                 if (!told_.contains(x.run.job.job))
                   take(x.run.job, now);
                 const auto known = waits_.find(x.allocation);
                 if (known != waits_.end() && x.home.empty()) // a guest may have made this pool its home
                   known->second.request.home.clear();
                 else if (known == waits_.end() && !holds_.contains(x.allocation))
                   waits_[x.allocation] = {x};
               },
               [&](const slots_held& x) {
                 if (!has(x.run.job.job))
                   told_.erase(x.run.job.job);
                 if (!told_.contains(x.run.job.job))
                   take(x.run.job, now);
                 waits_.erase(x.allocation);
                 if (!holds_.contains(x.allocation))
                   holds_[x.allocation] = {x.on, x.run, 1, x.since, false};
               },
               [&](const slots_released& x) {
                 if (x.agent.empty()) {
                   holds_.erase(x.allocation);
                   waits_.erase(x.allocation);
                   claims_.erase(x.allocation);
                 } else if (auto it = holds_.find(x.allocation); it != holds_.end()) {
                   std::erase_if(it->second.on, [&](const auto& part) { return part.agent == x.agent; });
                 }
               },
               [](const auto&) {},
             },
             ev);
}

/// Whether the pool has a run of the job.
bool watched_pool::has(experiment_id job) const {
  return std::any_of(waits_.begin(), waits_.end(),
                     [&](const auto& x) { return x.second.request.run.job.job == job; }) ||
         std::any_of(holds_.begin(), holds_.end(),
                     [&](const auto& x) { return x.second.run.job.job == job; });
}

void watched_pool::take(const job_terms& job, time_point now) {
  jobs_[job.job] = job;
  auto& limits = limits_[job.job];
  if (limits.empty() || limits.back().second != job.max_slots)
    limits.emplace_back(now, job.max_slots);
}

/// Whether the job's limits have not changed for a while.
bool watched_pool::steady(experiment_id job, time_point now) const {
  const auto it = limits_.find(job);
  return now > configured_at_ + 10s &&
         (it == limits_.end() || it->second.size() < 2 || it->second.back().first + 10s < now);
}

/// The larger of the limit in force and the limits of a moment ago; below 0: no limit.
int watched_pool::limit_of(experiment_id job, time_point now) const {
  const auto it = limits_.find(job);
  if (it == limits_.end() || it->second.empty())
    return -1;
  int most = it->second.back().second;
  auto until = it->second.back().first; // an earlier limit was in force until then
  for (auto before = std::next(it->second.rbegin()); before != it->second.rend() && until + 10s > now;
       ++before) {
    most = before->second < 0 || most < 0 ? -1 : std::max(most, before->second);
    until = before->first;
  }
  return most;
}

/// The number of slots that the limits leave for one more run of this job when the runs of `ended` have
/// ended.
int watched_pool::room(const job_terms& of, time_point now, const std::vector<allocation_id>& ended) const {
  int left = 1'000'000, job = 0, user = 0, all = 0;
  for (const auto& [id, h] : holds_) {
    if (std::find(ended.begin(), ended.end(), id) != ended.end())
      continue;
    const int n = slots_in(h.on);
    all += n;
    job += h.run.job.job == of.job ? n : 0;
    user += h.run.job.user == of.user ? n : 0;
  }
  if (const int limit = limit_of(of.job, now); limit >= 0)
    left = std::min(left, limit - job);
  if (now > configured_at_ + 10s || pool_limits_.size() < 2)
    if (settings_.max_slots >= 0)
      left = std::min(left, settings_.max_slots - all);
  for (const auto& q : settings_.quotas)
    if (q.user == of.user)
      left = std::min(left, q.max_slots - user);
  return left;
}

bool watched_pool::open(const std::string& agent, int slot) const {
  const auto it = orders_.find(agent);
  return it == orders_.end() ||
         (!it->second.on && std::find(it->second.disabled.begin(), it->second.disabled.end(), slot) ==
                              it->second.disabled.end());
}

/// Whether `w` should have got the slots that `run`, which has the same shape, got.
bool watched_pool::passes(const waiter& w, const run_terms& run) const {
  if (w.guest() || settings_.scheduler == scheduler_kind::fair ||
      settings_.scheduler == scheduler_kind::round_robin)
    return false;
  const auto &mine = terms(w.request.run), &its = terms(run);
  const int a = settings_.scheduler == scheduler_kind::fifo ? 0 : priority_of(mine);
  const int b = settings_.scheduler == scheduler_kind::fifo ? 0 : priority_of(its);
  return std::tie(a, mine.submitted, w.request.run.started) < std::tie(b, its.submitted, run.started);
}

/// Whether all agents together could hold a run. False for a run that asks for certain agents.
bool watched_pool::could_hold(const waiter& w) const {
  const auto& rules = w.request.run.rules;
  if (rules.single_node || !rules.same_label.empty() || !rules.labels.empty())
    return false; // this check does not judge such runs
  int slots = 0;
  for (const auto& [name, agent] : agents_)
    for (int i = 0; i < agent.slots; ++i)
      slots += open(name, i);
  return slots >= w.need();
}

void watched_pool::granted(const grant_slots& x, const pool_event& ev, time_point now) {
  const auto name = to_string(x.allocation);
  const auto it = waits_.find(x.allocation);
  const auto* up = std::get_if<agent_up>(&ev);
  if (it == waits_.end()) {
    const auto held = holds_.find(x.allocation);
    if (held == holds_.end())
      fail(name + " was granted slots that it does not wait for");
    return; // the grant is a repeat
  }
  if (up && up->busy.contains(name)) { // the run has these slots already
    holds_[x.allocation] = {x.on, it->second.request.run, it->second.need(), now, false};
    waits_.erase(it);
    return;
  }
  if (!placing)
    fail(name + " was granted slots by a pool that has not heard who holds some");
  const auto w = it->second;
  const int count = slots_in(x.on);
  if (w.request.slots > 0 ? count < w.need() || count > w.request.slots : x.on.size() != 1 || count != 0)
    fail(name + " got " + std::to_string(count) + " slots of " + std::to_string(w.request.slots));
  if (count > 0 && count > room(terms(w.request.run), now))
    fail(name + " got " + std::to_string(count) + " slots above a limit");
  std::set<std::string> racks;
  for (const auto& part : x.on) {
    const auto agent = agents_.find(part.agent);
    if (agent == agents_.end())
      fail(name + " was placed on agent " + part.agent + ", which is not there");
    const auto rack = agent->second.traits.labels.at("rack");
    racks.insert(rack);
    const auto& wanted = w.request.run.rules.labels;
    if (wanted.contains("rack") && wanted.at("rack").front() != rack)
      fail(name + " was placed in rack " + rack);
    for (const int slot : part.slots) {
      if (slot < 0 || slot >= agent->second.slots || !open(part.agent, slot))
        fail(name + " was placed on slot " + std::to_string(slot) + " of " + part.agent +
             ", which is closed");
      if (truth && truth(part.agent, slot))
        fail(name + " was placed on slot " + std::to_string(slot) + " of " + part.agent +
             ", which is drained");
      for (const auto& [other, h] : holds_)
        if (among(h.on, part.agent, slot))
          fail("slot " + std::to_string(slot) + " of " + part.agent + " is held by " + to_string(other) +
               " and was granted to " + name);
      if (reserved_ && reserved_ != x.allocation && among(reserved_on_, part.agent, slot)) {
        const auto owner = waits_.find(reserved_);
        const bool before = settings_.scheduler == scheduler_kind::priority && owner != waits_.end() &&
                            priority_of(terms(w.request.run)) < priority_of(terms(owner->second.request.run));
        if (!before)
          fail(name + " got a slot that is reserved for " + to_string(reserved_));
      }
    }
  }
  if (!w.request.run.rules.same_label.empty() && racks.size() > 1)
    fail(name + " was spread over racks");
  if (w.request.run.rules.single_node && x.on.size() > 1)
    fail(name + " was spread over agents");
  if (claims_.empty() && !reserved_ && w.request.slots > 0)
    for (const auto& [other, one] : waits_)
      if (other != x.allocation && one.request.slots > 0 && one.need() == w.need() &&
          one.request.slots == w.request.slots && one.request.run.rules == w.request.run.rules &&
          room(terms(one.request.run), now) >= one.need() && steady(terms(one.request.run).job, now)) {
        if (passes(one, w.request.run))
          fail(name + " was served before " + to_string(other));
      }
  if (settings_.scheduler == scheduler_kind::fifo && w.request.slots > 0 && !w.guest())
    for (const auto& [other, one] : waits_) // the first in the queue holds up all others
      if (other != x.allocation && one.request.slots > 0 && passes(one, w.request.run) &&
          steady(terms(one.request.run).job, now) && room(terms(one.request.run), now) >= one.need() &&
          could_hold(one))
        fail(name + " was served before " + to_string(other) + ", which came first");
  claims_.erase(x.allocation);
  if (reserved_ == x.allocation)
    reserved_ = {};
  holds_[x.allocation] = {x.on, w.request.run, w.need(), now, false};
  waits_.erase(x.allocation);
}

/// In a pool of priorities only a more urgent run gets slots that were reserved for another one.
void watched_pool::took_reserved(const grant_slots& x, allocation_id owner) const {
  if (settings_.scheduler != scheduler_kind::priority)
    return;
  const auto priority = [&](allocation_id id) { return priority_of(terms(waits_.at(id).request.run)); };
  if (priority(x.allocation) < priority(owner))
    return;
  for (const auto& part : x.on)
    for (const int slot : part.slots)
      if (among(reserved_on_, part.agent, slot))
        fail(to_string(x.allocation) + " got a slot that was reserved for " + to_string(owner));
}

void watched_pool::preempted(const preempt_allocation& x, time_point now) {
  const auto it = holds_.find(x.allocation);
  if (it == holds_.end())
    fail(to_string(x.allocation) + " was preempted and holds nothing");
  auto& victim = it->second;
  if (x.reason == "disabled")
    return void(victim.stopping = true);
  if (std::exchange(victim.stopping, true))
    fail(to_string(x.allocation) + " was preempted twice");
  if (!settings_.preempts())
    fail(to_string(x.allocation) + " was preempted in a pool that does not preempt");
  if (x.reason != "priority")
    return;
  const auto who = waits_.find(x.wanted_by);
  if (who == waits_.end())
    fail(to_string(x.allocation) + " was preempted for " + to_string(x.wanted_by) + ", which does not wait");
  const auto &mine = terms(who->second.request.run), &its = terms(victim.run);
  const int a = priority_of(mine), b = priority_of(its);
  if (a > b || (a == b && mine.submitted >= its.submitted))
    fail(to_string(x.allocation) + " was preempted for " + to_string(x.wanted_by) +
         ", which is not before it");
  if (a == b && victim.since + settings_.min_run > now)
    fail(to_string(x.allocation) + " was preempted before it had run for min_run");
}

/// Checks that a run fits with all its victims, and does not fit with one fewer. Only for moments at which no
/// other run stops and no slots are reserved.
void watched_pool::victims(allocation_id who, const std::vector<allocation_id>& all,
                           const std::map<std::string, std::vector<allocation_id>>& before,
                           time_point now) const {
  const auto& w = waits_.at(who);
  if (!steady(terms(w.request.run).job, now))
    return; // the limits of a moment ago are not known here
  const auto fits = [&](allocation_id spared) {
    auto ended = all;
    std::erase(ended, spared);
    if (room(terms(w.request.run), now, ended) < w.need())
      return false;
    std::map<std::string, std::map<std::string, int>> racks;
    int most = 0;
    for (const auto& [name, agent] : agents_) {
      const auto rack = agent.traits.labels.at("rack");
      const auto& rules = w.request.run.rules;
      if (rules.labels.contains("rack") && rules.labels.at("rack").front() != rack)
        continue;
      const auto held = before.find(name);
      for (int i = 0; i < agent.slots; ++i) {
        const auto holder = held != before.end() && i < int(held->second.size())
                              ? held->second[std::size_t(i)]
                              : allocation_id{};
        const bool given = std::find(all.begin(), all.end(), holder) != all.end() && holder != spared;
        if (open(name, i) && (!holder || given))
          most = std::max(most, ++racks[rules.same_label.empty() ? "" : rack][name]);
      }
    }
    if (w.request.run.rules.single_node)
      return most >= w.need();
    return std::any_of(racks.begin(), racks.end(), [&](const auto& rack) {
      int n = 0;
      for (const auto& [name, count] : rack.second)
        n += count;
      return n >= w.need();
    });
  };
  if (!fits({}))
    fail("others were preempted in vain for " + to_string(who));
  for (const auto one : all)
    if (fits(one))
      fail(to_string(one) + " is a victim too many for " + to_string(who));
}

void watched_pool::saw(const pool_event& ev, const std::vector<pool_action>& actions,
                       const std::map<std::string, std::vector<allocation_id>>& before, time_point now) {
  const bool quiet =
    !reserved_ && claims_.empty() &&
    std::none_of(holds_.begin(), holds_.end(), [](const auto& x) { return x.second.stopping; });
  std::map<allocation_id, std::vector<allocation_id>> given;
  std::size_t grants = 0;
  // The run whose reservation was dropped just before, for which a request may be the reason.
  const auto* asked = std::get_if<slots_requested>(&ev);
  allocation_id dropped;
  for (const auto& action : actions) {
    const auto loses = std::exchange(dropped, {});
    std::visit(overloaded{
                 [&](const grant_slots& x) {
                   ++grants;
                   if (asked && asked->allocation == x.allocation && waits_.contains(loses))
                     took_reserved(x, loses);
                   granted(x, ev, now);
                 },
                 [&](const preempt_allocation& x) {
                   preempted(x, now);
                   if (x.wanted_by) {
                     given[x.wanted_by].push_back(x.allocation);
                     claims_.insert(x.wanted_by);
                   }
                 },
                 [&](const reserve_slots& x) {
                   if (reserved_)
                     fail("two reservations: of " + to_string(reserved_) + " and " + to_string(x.allocation));
                   if (!waits_.contains(x.allocation))
                     fail("slots are reserved for " + to_string(x.allocation) + ", which does not wait");
                   if (slots_in(x.on) != waits_.at(x.allocation).need())
                     fail("not all slots of " + to_string(x.allocation) + " are reserved");
                   reserved_ = x.allocation;
                   reserved_on_ = x.on;
                 },
                 [&](const drop_reservation& x) {
                   if (reserved_ != x.allocation)
                     fail("a reservation of " + to_string(x.allocation) + " was dropped that there is not");
                   dropped = std::exchange(reserved_, {});
                 },
                 [](const auto&) {},
               },
               action);
  }
  if (const auto* x = std::get_if<slots_released>(&ev); x && x->agent.empty()) {
    if (reserved_ == x->allocation)
      fail("slots stay reserved for " + to_string(x->allocation) + ", which waits no more");
  }
  if (std::holds_alternative<pool_configured>(ev)) // a new configuration drops all reservations
    claims_.clear();
  if (quiet && !reserved_ && grants == 0 && given.size() == 1 &&
      !std::holds_alternative<slots_released>(ev) && std::holds_alternative<slots_requested>(ev) &&
      settings_.gangs == gang_rule::any)
    victims(given.begin()->first, given.begin()->second, before, now);
  if (std::none_of(holds_.begin(), holds_.end(), [](const auto& x) { return x.second.stopping; }))
    claims_.clear();
}

} // namespace troupe::sim
