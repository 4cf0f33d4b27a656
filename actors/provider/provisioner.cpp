#include "actors/provider/provisioner.hpp"

#include <algorithm>

namespace troupe {

int wanted_instances(const std::vector<waiting_run>& waiting,
                     const std::map<std::uint64_t, job_limit>& limits, int slots, int aux) {
  std::map<std::uint64_t, std::int64_t> by_job;
  std::int64_t alone = 0, without = 0;
  for (const auto& run : waiting) {
    if (run.slots == 0)
      ++without;
    else if (slots > 0 && (run.slots <= slots || run.slots % slots == 0))
      (run.job ? by_job[run.job] : alone) += run.slots;
  }
  auto sum = alone;
  for (const auto& [job, wanted] : by_job) {
    const auto limit = limits.find(job);
    const bool capped = limit != limits.end() && limit->second.max_slots >= 0;
    sum += capped ? std::min<std::int64_t>(wanted, std::max(0, limit->second.max_slots - limit->second.held))
                  : wanted;
  }
  const auto up = [](std::int64_t n, std::int64_t by) { return by > 0 ? (n + by - 1) / by : 0; };
  return static_cast<int>(std::max(up(sum, slots), up(without, aux)));
}

std::vector<provisioner_action> provisioner::apply(const provisioner_event& ev, time_point now) {
  actions out;
  std::visit([&](const auto& x) { on(out, x, now); }, ev);
  next_.reset();
  if (listed_) {
    end_some(out, now);
    launch_some(out, now);
  }
  return out;
}

std::optional<time_point> provisioner::deadline() const { return next_; }

void provisioner::on(actions&, const work_waits& ev, time_point) { work_ = ev; }

void provisioner::on(actions& out, const instances_listed& ev, time_point now) {
  listed_ = true;
  if (ordered_.empty())
    error_.clear();
  std::map<std::string, instance> there;
  std::set<std::string> listed, twice;
  std::map<std::string, std::string> by_agent;
  for (const auto& one : ev.all) {
    listed.insert(one.id);
    if (ended_.contains(one.id) || one.state == cloud_instance::phase::stopping ||
        one.state == cloud_instance::phase::stopped)
      continue;
    const auto known = instances_.find(one.id);
    if (!there.emplace(one.id, instance{one, known == instances_.end() ? now : known->second.seen}).second)
      continue; // said twice: one instance
    if (!one.agent.empty() && !by_agent.emplace(one.agent, one.id).second)
      twice.insert(one.id); // two that claim one agent: the first stays
  }
  // One that was launched a moment ago may not be listed yet.
  for (const auto& [id, x] : instances_)
    if (!listed.contains(id) && now < x.seen + settings_.first_pause * 4)
      there.emplace(id, x);
  instances_ = std::move(there);
  std::erase_if(ended_, [&](const auto& id) { return !listed.contains(id); });
  end(out, twice, "reported twice");
}

void provisioner::on(actions&, const list_failed& ev, time_point now) { failed(ev.why, now); }

void provisioner::on(actions&, const instances_launched& ev, time_point now) {
  if (!ordered_.erase(ev.order))
    return; // a repeat
  failures_ = 0;
  retry_at_.reset();
  error_.clear();
  for (const auto& id : ev.ids)
    instances_.try_emplace(id, instance{{id, cloud_instance::phase::starting, "", now}, now});
}

void provisioner::on(actions&, const launch_failed& ev, time_point now) {
  if (ordered_.erase(ev.order))
    failed(ev.why, now);
}

void provisioner::on(actions&, const pool_agent_seen& ev, time_point now) {
  auto& agent = agents_[ev.agent];
  if (agent.since == time_point{} || agent.connected != ev.connected || agent.idle != ev.idle)
    agent.since = now;
  agent.connected = ev.connected;
  agent.idle = ev.idle;
}

void provisioner::failed(const std::string& why, time_point now) {
  error_ = why;
  auto pause = settings_.first_pause;
  for (int i = 0; i < failures_ && pause < settings_.longest_pause; ++i)
    pause *= 2;
  ++failures_;
  retry_at_ = now + std::min(pause, settings_.longest_pause);
}

const provisioner::agent_state* provisioner::agent_of(const instance& x) const {
  const auto it = agents_.find(x.is.agent.empty() ? x.is.id : x.is.agent);
  return it == agents_.end() ? nullptr : &it->second;
}

int provisioner::instances() const {
  auto n = static_cast<int>(instances_.size());
  for (const auto& [order, count] : ordered_)
    n += count;
  return n;
}

int provisioner::starting() const {
  int n = instances() - static_cast<int>(instances_.size());
  for (const auto& [id, x] : instances_)
    n += agent_of(x) == nullptr;
  return n;
}

void provisioner::end(actions& out, const std::set<std::string>& ids, const char* why) {
  if (ids.empty())
    return;
  for (const auto& id : ids) {
    if (const auto it = instances_.find(id); it != instances_.end()) {
      agents_.erase(it->second.is.agent.empty() ? id : it->second.is.agent);
      instances_.erase(it);
    }
    ended_.insert(id);
  }
  out.push_back(terminate_instances{{ids.begin(), ids.end()}, why});
}

/// Those that never came, that are disconnected for long, that are idle for long, and that are too many: of
/// these first those that start, then the idle, the disconnected, the newest.
void provisioner::end_some(actions& out, time_point now) {
  std::set<std::string> late, lost, idle;
  const auto due = [&](time_point at) {
    if (now >= at)
      return true;
    next_ = next_ ? std::min(*next_, at) : at;
    return false;
  };
  for (const auto& [id, x] : instances_) {
    const auto* agent = agent_of(x);
    if (!agent ? due(x.seen + settings_.max_starting) : false)
      late.insert(id);
    if (agent && !agent->connected && due(agent->since + settings_.max_disconnected))
      lost.insert(id);
  }
  end(out, late, "never came");
  end(out, lost, "disconnected");
  const bool work = !work_.runs.empty();
  int spare = static_cast<int>(instances_.size()) - settings_.min_instances;
  for (const auto& [id, x] : instances_)
    if (const auto* agent = agent_of(x); agent && agent->connected && agent->idle && !work && spare > 0 &&
                                         due(agent->since + settings_.max_idle)) {
      idle.insert(id);
      --spare;
    }
  end(out, idle, "idle");
  std::set<std::string> many;
  std::vector<std::tuple<int, time_point, std::string>> order;
  for (const auto& [id, x] : instances_) {
    const auto* agent = agent_of(x);
    const int rank = !agent ? 0 : agent->connected && agent->idle ? 1 : !agent->connected ? 2 : 3;
    order.emplace_back(rank, x.is.launched, id);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    if (std::get<0>(a) != std::get<0>(b))
      return std::get<0>(a) < std::get<0>(b);
    return std::get<1>(a) != std::get<1>(b) ? std::get<1>(a) > std::get<1>(b)
                                            : std::get<2>(a) < std::get<2>(b);
  });
  const auto over = static_cast<std::ptrdiff_t>(instances_.size()) - settings_.max_instances;
  for (std::ptrdiff_t i = 0; i < over; ++i)
    many.insert(std::get<2>(order[static_cast<std::size_t>(i)]));
  end(out, many, "too many");
}

void provisioner::launch_some(actions& out, time_point now) {
  if (retry_at_ && now < *retry_at_) {
    next_ = next_ ? std::min(*next_, *retry_at_) : *retry_at_;
    return;
  }
  const int have = instances();
  const int wanted =
    wanted_instances(work_.runs, work_.limits, settings_.instance_slots, settings_.aux_per_agent) -
    starting();
  const int count =
    std::min(std::max(settings_.min_instances - have, wanted), settings_.max_instances - have);
  if (count <= 0)
    return;
  ordered_[++orders_] = count;
  out.push_back(launch_instances{orders_, count});
}

} // namespace troupe
