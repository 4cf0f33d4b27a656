#include "actors/pool/pool.hpp"

#include <algorithm>

namespace troupe {
namespace {

class fifo_policy final : public pool_policy {
public:
  std::optional<choice> next(const pool_view& view) const override {
    const auto enough = [](const auto& r) { return r.least > 0 ? r.least : r.slots; };
    auto first = std::find_if(view.waiting.begin(), view.waiting.end(),
                              [&](const auto& r) { return enough(r) <= view.total; });
    if (first == view.waiting.end())
      return std::nullopt;
    int free = 0;
    for (const auto& agent : view.free)
      free += static_cast<int>(agent.second.size());
    if (free < enough(*first))
      return std::nullopt;
    auto on = fit(std::min(first->slots, std::max(free, enough(*first))), view.free);
    if (on.empty())
      return std::nullopt;
    return choice{static_cast<std::size_t>(first - view.waiting.begin()), std::move(on)};
  }

private:
  static std::vector<placement> fit(int wanted, const std::map<std::string, std::vector<int>>& free) {
    const std::pair<const std::string, std::vector<int>>* best = nullptr;
    int sum = 0;
    for (const auto& agent : free) {
      int n = static_cast<int>(agent.second.size());
      sum += n;
      if (n >= wanted && (!best || n < static_cast<int>(best->second.size())))
        best = &agent;
    }
    if (best)
      return {{best->first, {best->second.begin(), best->second.begin() + wanted}}};
    if (sum < wanted)
      return {};
    std::vector<const std::pair<const std::string, std::vector<int>>*> order;
    for (const auto& agent : free)
      order.push_back(&agent);
    std::stable_sort(order.begin(), order.end(),
                     [](auto* a, auto* b) { return a->second.size() > b->second.size(); });
    std::vector<placement> on;
    for (const auto* agent : order) {
      int n = std::min(wanted, static_cast<int>(agent->second.size()));
      if (n > 0)
        on.push_back({agent->first, {agent->second.begin(), agent->second.begin() + n}});
      wanted -= n;
    }
    return on;
  }
};

} // namespace

std::unique_ptr<pool_policy> make_fifo_policy() { return std::make_unique<fifo_policy>(); }

pool::pool(phase begin, std::unique_ptr<pool_policy> policy) : policy_(std::move(policy)), phase_(begin) {}

std::vector<pool_action> pool::apply(const pool_event& ev) {
  std::vector<pool_action> out;
  std::visit([&](const auto& x) { on(out, x); }, ev);
  if (phase_ == phase::recovering)
    return out;
  place(out);
  offer_rest(out);
  return out;
}

void pool::on(std::vector<pool_action>&, const agent_up& ev) {
  auto& slots = slots_[ev.agent];
  if (auto back = away_.extract(ev.agent))
    slots = std::move(back.mapped());
  // What this pool has granted stands, whatever the inventory says: the start order may still be on its way.
  // All else the inventory knows better: a task that it had killed is gone from it.
  keep_granted(slots);
  slots.resize(static_cast<std::size_t>(std::max(0, ev.slots)));
  for (const auto& [text, numbers] : ev.busy)
    for (int number : numbers)
      if (number >= 0 && number < ev.slots && !slots[static_cast<std::size_t>(number)])
        slots[static_cast<std::size_t>(number)] = parse_allocation(text);
}

void pool::on(std::vector<pool_action>&, const agent_down& ev) {
  auto node = slots_.extract(ev.agent);
  if (!node)
    return;
  keep_granted(node.mapped());
  away_.insert(std::move(node));
}

void pool::keep_granted(std::vector<allocation_id>& slots) const {
  for (auto& holder : slots)
    if (!granted_.contains(holder))
      holder = {};
}

void pool::on(std::vector<pool_action>& out, const slots_requested& ev) {
  if (ev.least > 0 && ev.least < ev.slots)
    elastic_.try_emplace(ev.allocation).first->second.most = ev.slots;
  if (auto held = held_by(ev.allocation); !held.empty()) {
    out.push_back(grant_slots{ev.allocation, std::move(held)}); // the first answer may not have arrived
    return;
  }
  auto same = [&](const auto& r) { return r.allocation == ev.allocation; };
  if (std::any_of(waiting_.begin(), waiting_.end(), same))
    return;
  waiting_.push_back({ev.allocation, std::max(1, ev.slots), next_order_++, ev.least});
  const int enough = ev.least > 0 ? ev.least : ev.slots;
  if (!slots_.empty() && total_slots() < enough)
    out.push_back(report_unplaceable{ev.allocation, enough, total_slots()});
}

void pool::on(std::vector<pool_action>&, const slots_released& ev) {
  for (auto* agents : {&slots_, &away_})
    for (auto& [name, slots] : *agents)
      if (ev.agent.empty() || ev.agent == name)
        std::replace(slots.begin(), slots.end(), ev.allocation, allocation_id{});
  if (!ev.agent.empty())
    return;
  elastic_.erase(ev.allocation);
  granted_.erase(ev.allocation);
  std::erase_if(waiting_, [&](const auto& r) { return r.allocation == ev.allocation; });
}

void pool::on(std::vector<pool_action>&, const agent_drain& ev) {
  if (ev.on || !ev.disabled.empty())
    drained_[ev.agent] = ev;
  else
    drained_.erase(ev.agent);
}

void pool::on(std::vector<pool_action>&, const agent_forgotten& ev) {
  slots_.erase(ev.agent);
  away_.erase(ev.agent);
  drained_.erase(ev.agent);
}

/// The agent's own word may come before or after this one.
void pool::on(std::vector<pool_action>&, const slots_held& ev) {
  for (const auto& part : ev.on) {
    auto known = slots_.find(part.agent);
    auto& slots = known == slots_.end() ? away_[part.agent] : known->second;
    for (int slot : part.slots) {
      const auto n = static_cast<std::size_t>(std::max(0, slot));
      if (known == slots_.end() && slots.size() <= n)
        slots.resize(n + 1);
      if (n < slots.size() && !slots[n])
        slots[n] = ev.allocation;
    }
  }
  granted_.insert(ev.allocation);
  std::erase_if(waiting_, [&](const auto& r) { return r.allocation == ev.allocation; });
}

void pool::on(std::vector<pool_action>&, const holders_heard&) { phase_ = phase::placing; }

bool pool::open_slot(const std::string& agent, int slot) const {
  auto ordered = drained_.find(agent);
  if (ordered == drained_.end())
    return true;
  const auto& disabled = ordered->second.disabled;
  return !ordered->second.on && std::find(disabled.begin(), disabled.end(), slot) == disabled.end();
}

void pool::place(std::vector<pool_action>& out) {
  for (;;) {
    std::map<std::string, std::vector<int>> free;
    int usable = 0; // what waits for drained slots lets smaller ones pass
    for (const auto& [name, slots] : slots_)
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!open_slot(name, static_cast<int>(i)))
          continue;
        ++usable;
        if (!slots[i])
          free[name].push_back(static_cast<int>(i));
      }
    auto chosen = policy_->next({waiting_, free, usable});
    if (!chosen)
      return;
    auto request = waiting_[chosen->index];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(chosen->index));
    for (const auto& part : chosen->on)
      for (int slot : part.slots) {
        auto& holder = slots_[part.agent][static_cast<std::size_t>(slot)];
        TROUPE_ASSERT(!holder);
        holder = request.allocation;
      }
    granted_.insert(request.allocation);
    out.push_back(grant_slots{request.allocation, std::move(chosen->on)});
  }
}

/// Slots that nobody waits for can make a gang larger that had to start, or to go on, with fewer.
void pool::offer_rest(std::vector<pool_action>& out) {
  if (elastic_.empty())
    return;
  const int free = total_slots() - used_slots();
  const bool wanted = std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& r) {
    return (r.least > 0 ? r.least : r.slots) <= total_slots();
  });
  for (auto& [id, x] : elastic_) {
    int held = 0;
    for (const auto& part : held_by(id))
      held += static_cast<int>(part.slots.size());
    const int could = held == 0 || wanted ? 0 : std::min(x.most, held + free);
    if (could <= held)
      x.offered = 0;
    else if (std::exchange(x.offered, could) != could)
      out.push_back(report_spare{id, could});
  }
}

std::vector<placement> pool::held_by(allocation_id id) const {
  std::vector<placement> on;
  for (const auto* agents : {&slots_, &away_})
    for (const auto& [name, slots] : *agents) {
      placement part{name, {}};
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i] == id)
          part.slots.push_back(static_cast<int>(i));
      if (!part.slots.empty())
        on.push_back(std::move(part));
    }
  return on;
}

int pool::total_slots() const {
  std::size_t n = 0;
  for (const auto& [name, slots] : slots_)
    n += slots.size();
  return static_cast<int>(n);
}

int pool::used_slots() const {
  std::ptrdiff_t n = 0;
  for (const auto& [name, slots] : slots_)
    n += std::count_if(slots.begin(), slots.end(), [](const auto& id) { return bool(id); });
  return static_cast<int>(n);
}

std::string pool::snapshot() const {
  std::vector<std::pair<allocation_id, int>> queue;
  for (const auto& r : waiting_)
    queue.emplace_back(r.allocation, r.slots);
  return pack(std::tuple{slots_, queue});
}

value pool::describe() const {
  value agents = value::object(), waiting = value::array();
  for (const auto* all : {&slots_, &away_})
    for (const auto& [name, slots] : *all) {
      value held = value::array();
      for (const auto& id : slots)
        held.push_back(id ? value(to_string(id)) : value());
      const auto ordered = drained_.find(name);
      agents[name] = {
        {"slots", held},
        {"away", all == &away_},
        {"draining", ordered != drained_.end() && ordered->second.on},
        {"disabled", ordered == drained_.end() ? std::vector<int>{} : ordered->second.disabled}};
    }
  for (const auto& r : waiting_)
    waiting.push_back({{"allocation", to_string(r.allocation)}, {"slots", r.slots}, {"order", r.order}});
  return {{"phase", phase_ == phase::recovering ? "recovering" : "placing"},
          {"total", total_slots()},
          {"used", used_slots()},
          {"agents", agents},
          {"queue", waiting}};
}

} // namespace troupe
