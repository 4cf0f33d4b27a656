#include "actors/provider/provisioner.hpp"

#include "actors/pool/capacity.hpp"
#include "model/back_off.hpp"
#include "model/config/duration_text.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How long an instance may be missing in the list after its launch.
constexpr duration list_delay = 20s;
/// How long a launch may take. Its command goes on when the master dies, unlike a launch of type "local",
/// which is part of the master.
constexpr duration launch_limit = 60s;
constexpr duration end_again = 60s;
constexpr duration forget_again = 10s;
/// After this number of failed lists, a former provider without known instances counts as gone, as its
/// commands may be gone, too.
constexpr int most_list_failures = 3;

/// Whether both settings bring the same kind of instances. How many there may be, and for how long, is no
/// part of that.
bool bring_alike(const provisioner_settings& a, const provisioner_settings& b) {
  return a.type == b.type && a.instance_slots == b.instance_slots && a.labels == b.labels &&
         a.commands == b.commands;
}

std::string ids_text(const std::vector<std::string>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size() && i < 5; ++i)
    text += (i ? ", " : "") + ids[i];
  return ids.size() > 5 ? text + ", ..." : text;
}

} // namespace

int wanted_instances(const std::vector<waiting_run>& waiting,
                     const std::map<std::uint64_t, job_limit>& limits, int slots, int aux) {
  std::map<std::uint64_t, std::int64_t> by_job;
  std::int64_t alone = 0, without = 0;
  for (const auto& run : waiting) {
    if (run.slots == 0)
      without += run.count;
    else if (slots_launched(run.slots, run.slots, slots) > 0)
      (run.job ? by_job[run.job] : alone) += std::int64_t{run.slots} * run.count;
  }
  auto sum = alone;
  for (const auto& [job, wanted] : by_job) {
    const auto limit = limits.find(job);
    const bool capped = limit != limits.end() && limit->second.max_slots >= 0;
    sum += capped ? std::min<std::int64_t>(wanted, std::max(0, limit->second.max_slots - limit->second.held))
                  : wanted;
  }
  const auto up = [](std::int64_t n, std::int64_t by) { return by > 0 ? (n + by - 1) / by : 0; };
  return static_cast<int>(std::min<std::int64_t>(std::max(up(sum, slots), up(without, aux)), 1'000'000));
}

provisioner_settings provisioner_settings_of(const value& provider) {
  provisioner_settings out;
  if (provider.is_object()) {
    for (const auto& one : provider.value("former", value::array()))
      out.former.insert(one.value("type", std::string()));
    out.dropped = provider.value("dropped", false);
  }
  if (!provider.is_object() || !provider.contains("type")) {
    out.retiring = true;
    out.max_instances = 0;
    return out;
  }
  const auto count = [&](const char* key, int& to) {
    if (const auto it = provider.find(key); it != provider.end() && it->is_number_integer())
      to = it->get<int>();
  };
  const auto time = [&](const char* key, duration& to) {
    if (const auto it = provider.find(key); it != provider.end() && it->is_string())
      to = config::parse_duration(it->get<std::string>()).value_or(to);
  };
  out.type = provider.value("type", std::string());
  count("instance_slots", out.instance_slots);
  count("aux_per_agent", out.aux_per_agent);
  count("min_instances", out.min_instances);
  count("max_instances", out.max_instances);
  count("launch_error_retries", out.error_retries);
  time("max_idle_agent_period", out.max_idle);
  time("max_agent_starting_period", out.max_starting);
  time("launch_error_timeout", out.error_timeout);
  if (const auto labels = provider.find("labels"); labels != provider.end() && labels->is_object())
    for (const auto& [key, content] : labels->items())
      out.labels[key] = content.is_string() ? content.get<std::string>() : to_json(content);
  for (const char* call : {"list", "launch", "terminate"})
    out.commands[call] = provider.value(call, value());
  return out;
}

provisioner_step provisioner::apply(const provisioner_event& ev, time_point now) {
  out s;
  next_.reset();
  std::visit([&](const auto& x) { on(s, x, now); }, ev);
  note_arrivals({});
  if (listed_) {
    end_some(s, now);
    drain_some(s);
    launch_some(s, now);
  }
  finish(s, now);
  list_again(s, now);
  forget_some(s, now);
  if (auto now_has = supply(); pack(now_has) != pack(told_)) {
    told_ = now_has;
    s.actions.push_back(tell_supply{std::move(now_has)});
  }
  if (is_done() && !std::exchange(said_done_, true))
    s.actions.push_back(provider_done{});
  return s;
}

/// Notes whose agents are connected, but for the instances `twice`, whose agent is another one's. The first
/// connection of an agent shows that launches work, so the failures before it no longer count.
void provisioner::note_arrivals(const std::set<std::string>& twice) {
  for (auto& [id, x] : instances_)
    if (const auto* agent = agent_of(x); agent && agent->connected && !twice.contains(id)) {
      if (!std::exchange(x.came, true)) {
        failures_ = 0;
        retry_at_.reset();
        went_well("launch");
      }
      x.undrains = x.undrains && agent->drained;
    }
}

std::vector<provisioner_action> provisioner::resume(time_point now) {
  for (const auto& agent : std::exchange(departed_, {}))
    if (known_agents_.contains(agent))
      leaving_[agent] = now;
  known_agents_.clear();
  resumed_ = true;
  for (auto& [id, x] : instances_) {
    x.seen = now; // gives the agent time to reconnect
    x.before = true;
  }
  list_at_ = now;
  told_ = supply();
  if (is_done()) {
    said_done_ = true;
    return {tell_supply{told_}, provider_done{}};
  }
  provisioner_step s;
  list_again(s, now);
  forget_some(s, now);
  s.actions.push_back(tell_supply{told_});
  return std::move(s.actions);
}

std::optional<time_point> provisioner::deadline() const { return next_; }

bool provisioner::due(time_point at, time_point now) {
  if (now >= at)
    return true;
  next_ = next_ ? std::min(*next_, at) : at;
  return false;
}

void provisioner::note(out& s, instance_changed fact) {
  fact.pool = pool_;
  if (fact.what == "gone")
    for (const auto& id : fact.ids)
      if (const auto known = instances_.find(id); known != instances_.end())
        leaving_[agent_name(known->second)] = fact.at + 1s;
  replay(fact);
  s.facts.push_back(std::move(fact));
}

void provisioner::replay(const provider_fact& fact) {
  const auto& f = std::get<instance_changed>(fact);
  if (f.what == "ordered") {
    ordered_[f.order] = {f.count, f.why == "local" ? f.at : f.at + launch_limit + list_delay};
    orders_ = std::max(orders_, f.order);
    last_type_ = f.why;
    settled_ = false;
  } else if (f.what == "launched" || f.what == "adopted") {
    // What is adopted may be a part of what the launch brings. An answer tells all of that.
    if (const auto known = ordered_.find(f.order); known != ordered_.end()) {
      known->second.count -= static_cast<int>(f.ids.size());
      if (f.what == "launched" || known->second.count <= 0)
        ordered_.erase(known);
    }
    settled_ = false;
    for (const auto& id : f.ids) {
      instances_.insert_or_assign(id, instance{{id, cloud_instance::phase::starting, "", f.at}, f.at, f.at});
      departed_.erase(id);
    }
  } else if (f.what == "failed") {
    ordered_.erase(f.order);
  } else { // "ended" or "gone"; without ids, all instances are gone
    settled_ = settled_ || f.ids.empty();
    for (const auto& id : f.ids) {
      if (const auto known = instances_.find(id); known != instances_.end()) {
        condemned_.insert(agent_name(known->second));
        instances_.erase(known);
      }
      if (!resumed_)
        departed_.insert(id); // most agents have the name of their instance
    }
  }
}

void provisioner::on(out&, const pool_demand& ev, time_point now) {
  work_ = ev;
  std::set<std::string> there;
  for (const auto& one : ev.agents) {
    there.insert(one.agent);
    auto& agent = agents_[one.agent];
    if (agent.since == time_point{} || agent.connected != one.connected || agent.idle != one.idle)
      agent.since = now;
    agent.connected = one.connected;
    agent.idle = one.idle;
    agent.drained = one.drained;
    agent.awaited = one.awaited;
    agent.known = one.known;
  }
  std::erase_if(agents_, [&](const auto& x) { return !there.contains(x.first); });
  if (ev.whole && !std::exchange(heard_, true) &&
      std::any_of(instances_.begin(), instances_.end(),
                  [&](const auto& x) { return x.second.before && !agent_of(x.second); }))
    list_at_ = std::min(list_at_, now); // note_gone() knows now which of these may be gone
}

void provisioner::on(out& s, const instances_listed& ev, time_point now) {
  listing_ = false;
  if (!ev.failed.empty()) {
    list_at_ = now + settings_.first_pause * (errors_.contains("list") ? 4 : 1);
    errors_["list"] = ev.failed;
    if (list_failures_++ == 0)
      list_failing_since_ = now;
    return;
  }
  list_failures_ = 0;
  list_at_ = now + settings_.list_every;
  went_well("list");
  listed_ = true;
  const auto found = take_list(ev.all);
  note_arrivals(found.twice); // before a fault of this list counts as a failure
  if (!calling_)
    settle_orders(s, ev.all, found.adopted, now);
  undrain_renewed(s);
  const auto forgotten = note_gone(s, found, now);
  const auto &twice = found.twice, &unknown = found.unknown;
  std::erase_if(ended_, [&](const auto& x) {
    if (found.listed.contains(x.first))
      return false;
    forget_later(x.second, now);
    return true;
  });
  judge_endings();
  const auto say = [&](const char* kind, const std::string& text, bool is) {
    if (is)
      faults_[kind] = text;
    else
      faults_.erase(kind);
  };
  say("forgotten", "it does not list " + ids_text(forgotten) + ", whose agents are connected",
      !forgotten.empty());
  say("twice", "it lists several instances with one agent: " + ids_text({twice.begin(), twice.end()}),
      !twice.empty());
  say("unknown",
      "it lists instances that were not launched from here: " + ids_text({unknown.begin(), unknown.end()}),
      !unknown.empty());
  if (!twice.empty()) // a replacement would be the same
    failed("launch", "launch: two instances have one agent: " + ids_text({twice.begin(), twice.end()}), now);
  end(s, found.halted, "stopped", now, found.agents);
  end(s, twice, "reported twice", now);
  end(s, unknown, "unknown", now, found.agents);
}

bool provisioner::is_live(const cloud_instance& x) {
  return x.state != cloud_instance::phase::stopping && x.state != cloud_instance::phase::stopped;
}

void provisioner::update(instance& known, cloud_instance listed) {
  if (listed.agent.empty())
    listed.agent = known.is.agent;
  known.is = std::move(listed);
}

/// Sorts the instances of a list, and updates known instances at once.
provisioner::listed_instances provisioner::take_list(const std::vector<cloud_instance>& all) {
  listed_instances out;
  std::map<std::string, std::string> by_agent;
  std::size_t lost = 0; // number of instances of launches whose answer was lost with an earlier life
  if (!calling_)
    for (const auto& [number, order] : ordered_)
      lost += static_cast<std::size_t>(order.count);
  for (const auto& one : all) {
    if (!out.listed.insert(one.id).second)
      continue; // an instance that is listed twice is still one
    if (!one.agent.empty())
      out.agents[one.id] = one.agent;
    if (const auto ends = ended_.find(one.id); ends != ended_.end()) {
      ends->second.is_live = is_live(one);
      if (!one.agent.empty())
        ends->second.agent = one.agent;
      continue;
    }
    if (!is_live(one)) {
      out.stopped.insert(one.id);
      if (one.state == cloud_instance::phase::stopped && (!calling_ || instances_.contains(one.id)))
        out.halted.insert(one.id);
      continue;
    }
    auto agent = one.agent;
    const auto known = instances_.find(one.id);
    if (known != instances_.end()) {
      update(known->second, one);
      agent = known->second.is.agent;
    } else if (out.adopted.size() < lost) {
      out.adopted.push_back(one.id);
    } else if (!calling_) { // during a launch, the instance may belong to that launch
      out.unknown.insert(one.id);
      continue;
    }
    if (!agent.empty() && !by_agent.emplace(agent, one.id).second)
      out.twice.insert(one.id); // of two instances with one agent the first stays
  }
  return out;
}

/// Gives instances that belong to no known launch to launches whose answer was lost with the master. What
/// such a launch has not brought when its time limit has passed does not come any more.
void provisioner::settle_orders(out& s, const std::vector<cloud_instance>& all,
                                const std::vector<std::string>& adopted, time_point now) {
  std::size_t next = 0;
  for (const auto& [number, order] : std::map(ordered_)) {
    std::vector<std::string> ids;
    for (int i = 0; i < order.count && next < adopted.size(); ++i)
      ids.push_back(adopted[next++]);
    const auto left = order.count - static_cast<int>(ids.size());
    if (!ids.empty())
      note(s, {now, {}, "adopted", number, order.count, ids, {}});
    if (left > 0 && now >= order.until)
      note(s, {now, {}, "failed", number, left, {}, "nobody heard what came of it"});
  }
  for (const auto& one : all)
    if (const auto known = instances_.find(one.id); known != instances_.end() && is_live(one))
      update(known->second, one);
}

/// Notes known instances that are gone. Returns those that are not listed although their agents are
/// connected.
std::vector<std::string> provisioner::note_gone(out& s, const listed_instances& found, time_point now) {
  std::vector<std::string> gone, forgotten;
  std::string unseen;
  for (const auto& [id, x] : instances_) {
    if (found.listed.contains(id) && !found.stopped.contains(id))
      continue;
    const auto* agent = agent_of(x);
    // After a restart of the master, an agent on which something runs has time to come back.
    const bool nothing_runs = x.before && heard_ && (!agent || agent->idle);
    if (!found.listed.contains(id) && agent && agent->connected)
      forgotten.push_back(id);
    else if (found.stopped.contains(id) || now >= (nothing_runs ? x.launched : x.seen) + list_delay) {
      if (!found.halted.contains(id))
        gone.push_back(id);
      unseen = starts(x) && !x.before ? id : unseen;
    }
  }
  if (!unseen.empty())
    failed("launch", "launch: " + unseen + " went before its agent had registered", now);
  if (!gone.empty())
    note(s, {now, {}, "gone", 0, 0, gone, "the provider does not list it"});
  return forgotten;
}

void provisioner::on(out& s, const instances_launched& ev, time_point now) {
  const auto order = ordered_.find(ev.order);
  if (order == ordered_.end() || !calling_)
    return; // the answer is a repeat
  calling_ = false;
  const auto count = static_cast<std::size_t>(order->second.count);
  std::vector<std::string> ids;
  for (const auto& id : ev.ids)
    if (const auto known = instances_.find(id); std::find(ids.begin(), ids.end(), id) == ids.end() &&
                                                (known == instances_.end() || is_lost(known->second)))
      ids.push_back(id); // the name is new, or is used again
  if (ids.empty()) {
    const auto why = ev.failed.empty() ? std::string("launch: it launched no instance") : ev.failed;
    note(s, {now, {}, "failed", ev.order, static_cast<int>(count), {}, why});
    failed("launch", why, now);
    return;
  }
  note(s, {now, {}, "launched", ev.order, static_cast<int>(count), ids, {}});
  for (const auto& id : ids)
    ended_.erase(id); // the name may be used again
  undrain_renewed(s);
  const auto said = "the last launch brought " + std::to_string(ids.size()) +
                    (ids.size() == 1 ? " instance where " : " instances where ") + std::to_string(count) +
                    (count == 1 ? " was ordered" : " were ordered");
  if (ids.size() == count)
    faults_.erase("launch");
  else
    faults_["launch"] = said;
  if (ids.size() < count) {
    failed("launch", "launch: " + said, now);
  } else { // the count of failures, which sets the next pause, is cleared when an agent registers
    retry_at_.reset();
    went_well("launch");
  }
  if (ids.size() > count)
    end(s, {ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end()}, "too many", now);
  list_at_ = std::min(list_at_, now + 1s);
}

void provisioner::on(out&, const instances_ended& ev, time_point now) {
  if (ev.failed.empty()) {
    for (const auto& id : ev.ids)
      if (const auto it = ended_.find(id); it != ended_.end()) {
        it->second.is_live = false;
        it->second.failures = 0;
      }
    return judge_endings();
  }
  errors_["terminate"] = ev.failed;
  for (const auto& id : ev.ids)
    if (const auto it = ended_.find(id); it != ended_.end())
      it->second.again =
        now + back_off(++it->second.failures, settings_.first_pause, settings_.longest_pause);
}

void provisioner::on(out&, const provider_configured& ev, time_point now) {
  auto next = provisioner_settings_of(ev.settings);
  if (!bring_alike(next, settings_))
    ++changes_;
  settings_ = std::move(next);
  faults_.erase("former");
  faults_.erase("launch"); // what was wrong with a launch need not be wrong with the next one
  went_well("launch");
  said_done_ = false;
  failures_ = 0;
  retry_at_.reset();
  list_at_ = std::min(list_at_, now);
}

void provisioner::failed(const char* call, const std::string& why, time_point now) {
  if (failures_ == 0)
    failing_since_ = now;
  ++failures_;
  failed_at_ = now;
  failure_ = why;
  retry_at_ = now + back_off(failures_, settings_.first_pause, settings_.longest_pause);
  if (failures_ > settings_.error_retries && now >= failing_since_ + settings_.error_timeout)
    errors_[call] = why;
}

void provisioner::went_well(const char* call) { errors_.erase(call); }

/// A failure of `terminate` is an error until the instances that it did not end are gone, or are ended.
void provisioner::judge_endings() {
  if (!ends_again())
    went_well("terminate");
}

/// When the next order to end instances is repeated that has failed; none: no such order has failed.
std::optional<time_point> provisioner::ends_again() const {
  std::optional<time_point> at;
  for (const auto& [id, x] : ended_)
    if (x.failures > 0)
      at = at ? std::min(*at, x.again) : x.again;
  return at;
}

bool provisioner::is_own(const std::string& agent) const {
  return std::any_of(instances_.begin(), instances_.end(), [&](const auto& x) {
    return x.second.is.agent.empty() ? x.first == agent : x.second.is.agent == agent;
  });
}

const provisioner::agent_state* provisioner::agent_of(const instance& x) const {
  const auto it = agents_.find(x.is.agent.empty() ? x.is.id : x.is.agent);
  return it == agents_.end() ? nullptr : &it->second;
}

int provisioner::instances() const {
  auto n = static_cast<int>(instances_.size());
  for (const auto& [number, order] : ordered_)
    n += order.count;
  return n;
}

int provisioner::starting() const {
  int n = instances() - static_cast<int>(instances_.size());
  for (const auto& [id, x] : instances_)
    n += starts(x);
  return n;
}

int provisioner::stopping() const { return static_cast<int>(ended_.size()); }

/// Whether the agent of the instance has not registered since the launch, or has and is about to be
/// undrained. An agent that is away may be that of an earlier instance of the same name, on which the pool
/// still holds runs, and of which it still tells news.
bool provisioner::starts(const instance& x) const {
  const auto* agent = agent_of(x);
  if (!agent)
    return true;
  return agent->connected ? x.undrains && agent->drained : !x.came && !x.before;
}

/// The number of instances whose agents are connected and idle, and on which no waiting run counts because
/// the pool has not heard yet that these agents are on instances. The newest demand includes what these
/// instances are for.
int provisioner::unheard() const {
  return static_cast<int>(std::count_if(instances_.begin(), instances_.end(), [this](const auto& x) {
    const auto* agent = agent_of(x.second);
    return agent && agent->connected && agent->idle && !agent->drained && !agent->known && !starts(x.second);
  }));
}

bool provisioner::is_lost(const instance& x) const {
  const auto* agent = agent_of(x);
  return agent && !agent->connected && !starts(x);
}

supply_told provisioner::supply() const {
  supply_told out;
  out.type = settings_.retiring ? std::string() : settings_.type;
  out.instance_slots = settings_.instance_slots;
  out.max_instances = settings_.max_instances;
  out.instances = instances();
  out.starting = starting();
  out.stopping = stopping();
  // The first of several errors is the reason for those who wait. The others are told beside it.
  for (const char* call : {"launch", "list", "terminate"})
    if (const auto it = errors_.find(call); it != errors_.end()) {
      if (out.error.empty())
        out.error = it->second;
      else
        out.faults.push_back(it->second);
    }
  if (errors_.contains("list") && !errors_.contains("launch"))
    out.retry_at = list_at_;
  else if (retry_at_ && !retires())
    out.retry_at = *retry_at_;
  else if (errors_.contains("terminate") && !errors_.contains("launch"))
    out.retry_at = ends_again().value_or(time_point{});
  out.failed_launches = failures_;
  if (failures_ > 0) {
    out.launch_failed_at = failed_at_;
    out.launch_failure = failure_;
  }
  if (is_former()) {
    std::vector<std::string> ids;
    for (const auto& [id, x] : instances_)
      ids.push_back(id);
    out.error = "the instances of its former provider (" + last_type_ + ") end first" +
                (ids.empty() ? "" : ": " + ids_text(ids)) + (out.error.empty() ? "" : "; " + out.error);
  }
  for (const auto& [kind, text] : faults_)
    out.faults.push_back(text);
  for (const auto& [id, x] : ended_)
    out.ended.insert(x.agent.empty() ? id : x.agent);
  for (const auto& [agent, at] : leaving_)
    out.ended.insert(agent);
  std::erase_if(out.ended, [this](const std::string& agent) { return is_own(agent); }); // used again
  for (const auto& [id, x] : instances_) // a provider that was taken out ends them once they are idle
    if (retires() && drained_.contains(agent_name(x)))
      out.ended.insert(agent_name(x));
  out.labels = settings_.labels;
  if (!is_former()) // the instances of another provider do not tell what those of this one are like
    for (const auto& [id, x] : instances_)
      out.agents.insert(agent_name(x));
  if (settings_.type == "local")
    out.prefix = pool_ + "-";
  out.changes = changes_;
  return out;
}

/// `agents`: the agents of instances that are not known, by id.
void provisioner::end(out& s, const std::set<std::string>& ids, const char* why, time_point now,
                      const std::map<std::string, std::string>& agents) {
  if (ids.empty())
    return;
  for (const auto& id : ids) {
    auto& x = ended_[id] = {now + end_again, {}, why != std::string_view("stopped")};
    if (const auto known = instances_.find(id); known != instances_.end())
      x.agent = agent_name(known->second);
    else if (const auto named = agents.find(id); named != agents.end())
      x.agent = named->second;
  }
  note(s, {now, {}, "ended", 0, 0, {ids.begin(), ids.end()}, why});
  for (const auto& id : ids)
    drain_ending(s, id, ended_[id]);
  s.actions.push_back(terminate_instances{{ids.begin(), ids.end()}, why});
}

/// Drains the agent of an instance that ends, once it is connected: no new work may be placed there until the
/// instance is gone.
void provisioner::drain_ending(out& s, const std::string& id, ending& x) {
  if (x.agent.empty() && agents_.contains(id))
    x.agent = id; // most agents have the name of their instance
  const auto agent = agents_.find(x.agent);
  if (x.drained || agent == agents_.end() || !agent->second.connected || is_own(x.agent))
    return;
  x.drained = true;
  condemned_.insert(x.agent);
  s.actions.push_back(drain_instance{x.agent, true});
}

/// Ends instances whose agents never registered, or are disconnected for too long, or idle for too long
/// without a waiting run that counts on them; and instances that are too many. Of these, starting ones end
/// first, then idle ones, then disconnected ones; of equals the newest.
void provisioner::end_some(out& s, time_point now) {
  std::vector<std::string> again;
  for (auto& [id, x] : ended_)
    if (due(x.again, now)) { // the provider still lists this instance
      again.push_back(id);
      x.again = now + end_again;
    }
  if (!again.empty())
    s.actions.push_back(terminate_instances{again, ordered_before});
  // Only a list says which agent is that of an instance. While there is none, each unknown one may be.
  const bool strays =
    (listing_ || list_failures_ > 0) && std::any_of(agents_.begin(), agents_.end(), [this](const auto& one) {
      return one.second.connected && !is_own(one.first);
    });
  std::set<std::string> late, lost, idle;
  for (const auto& [id, x] : instances_) {
    const auto* agent = agent_of(x);
    if (starts(x) && due(x.seen + settings_.max_starting, now) && (agent || !strays))
      late.insert(id);
    if (!starts(x) && !agent->connected && due(agent->since + settings_.max_disconnected, now))
      lost.insert(id);
  }
  if (!late.empty())
    failed("launch", "launch: the agent of " + *late.begin() + " did not register", now);
  end(s, late, "never came", now);
  end(s, lost, "disconnected", now);
  const auto max_idle = retires() ? duration{0} : settings_.max_idle;
  int spare = static_cast<int>(instances_.size()) - (retires() ? 0 : settings_.min_instances);
  for (const auto& [id, x] : instances_) {
    const auto* agent = agent_of(x);
    if (!agent || !agent->connected || !agent->idle || spare <= 0)
      continue;
    const bool stays = agent->awaited && !agent->drained && !retires();
    if (!stays && due(agent->since + max_idle, now)) {
      idle.insert(id);
      --spare;
    }
  }
  if (settings_.retiring && settings_.dropped)
    for (const auto& [id, x] : instances_)
      if (const auto* agent = agent_of(x); !agent || !agent->connected)
        idle.insert(id); // no agent can register in the pool any more
  end(s, idle, "idle", now);
  if (retires())
    return; // busy instances end when their work has ended
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
  end(s, many, "too many", now);
}

void provisioner::launch_some(out& s, time_point now) {
  if (calling_ || retires() || (retry_at_ && !due(*retry_at_, now)))
    return;
  const int have = instances();
  const int wanted = work_.whole ? wanted_instances(work_.runs, work_.limits, settings_.instance_slots,
                                                    settings_.aux_per_agent) -
                                     starting() - unheard()
                                 : 0; // what waits may be placed on instances that are there
  const auto leaving =
    std::count_if(ended_.begin(), ended_.end(), [](const auto& x) { return x.second.is_live; });
  const int count = std::min(std::max(settings_.min_instances - have, wanted),
                             settings_.max_instances - have - static_cast<int>(leaving));
  if (count <= 0)
    return;
  calling_ = true;
  const auto order = orders_ + 1;
  note(s, {now, {}, "ordered", order, count, {}, settings_.type});
  s.actions.push_back(launch_instances{order, count});
}

void provisioner::list_again(out& s, time_point now) {
  if (listing_ || (settings_.retiring && settled_) || !due(list_at_, now))
    return;
  listing_ = true;
  s.actions.push_back(list_instances{});
}

/// Drains agents that register while their instances end, and those of a provider that retires, as waiting
/// work would keep its instances busy.
void provisioner::drain_some(out& s) {
  for (auto& [id, x] : ended_)
    drain_ending(s, id, x);
  for (const auto& [id, x] : instances_) {
    const auto* agent = agent_of(x);
    const auto name = agent_name(x);
    if (retires() ? agent && agent->connected && drained_.insert(name).second : drained_.erase(name) > 0)
      s.actions.push_back(drain_instance{name, retires()});
  }
}

/// Takes back the drain of agents whose names new instances have. An agent is drained when its instance is to
/// end, and the order stays in force over a restart of the master.
void provisioner::undrain_renewed(out& s) {
  for (auto& [id, x] : instances_)
    if (condemned_.erase(agent_name(x))) {
      x.undrains = true;
      s.actions.push_back(drain_instance{agent_name(x), false});
    }
}

void provisioner::forget_later(const ending& x, time_point now) {
  if (!x.agent.empty())
    leaving_[x.agent] = now + 1s;
}

/// Forgets agents whose instances are gone, as they will not reconnect. The cluster refuses that until the
/// runs of the agent are given away, so it is asked again.
void provisioner::forget_some(out& s, time_point now) {
  std::erase_if(leaving_, [&](const auto& x) { return is_own(x.first); }); // the name is used again
  for (auto& [agent, at] : leaving_)
    if (due(at, now)) {
      at = now + forget_again;
      s.actions.push_back(forget_instance{agent});
      static_cast<void>(due(at, now)); // sets the deadline
    }
}

void provisioner::forgotten(const std::string& agent) {
  leaving_.erase(agent);
  condemned_.erase(agent);
}

// ---- a provider that is no longer in force

bool provisioner::is_former() const {
  return !settled_ && last_type_ != settings_.type && settings_.former.contains(last_type_);
}

std::string provisioner::provider_type() const {
  return settled_ || settings_.type == last_type_ || (!settings_.retiring && !is_former()) ? settings_.type
                                                                                           : last_type_;
}

/// Ends the time of a former or retiring provider once no instance of it is left, so that the next one can
/// begin.
void provisioner::finish(out& s, time_point now) {
  if (!retires() || settled_ || listing_ || calling_)
    return;
  const bool empty = instances_.empty() && ordered_.empty() && ended_.empty();
  if (!(empty && listed_) && !gives_up_provider(now))
    return;
  std::string fault;
  if (!empty) {
    std::vector<std::string> ids;
    for (const auto& [id, x] : instances_)
      ids.push_back(id);
    for (const auto& [number, order] : std::map(ordered_))
      note(s, {now, {}, "failed", number, order.count, {}, "nobody heard what came of it"});
    if (!ids.empty())
      note(s, {now, {}, "gone", 0, 0, ids, "its provider cannot be called, and its agent is not connected"});
    for (const auto& [id, x] : std::exchange(ended_, {})) {
      ids.push_back(id);
      forget_later(x, now);
    }
    fault = "its former provider (" + last_type_ + ") cannot be called: " + errors_["list"] +
            (ids.empty() ? "" : "; look for yourself whether these instances have ended: " + ids_text(ids));
  }
  note(s, {now, {}, "gone", 0, 0, {}, empty ? "no instance of the former provider is left" : fault});
  listed_ = false;
  list_failures_ = 0;
  errors_.clear();
  faults_.clear();
  if (!fault.empty())
    faults_["former"] = fault;
  list_at_ = now;
}

/// Whether a former provider that cannot be called holds nobody up any longer. While an agent of its
/// instances is connected, the commands may work again and end them. Instances without agents have as long as
/// any other one that is disconnected.
bool provisioner::gives_up_provider(time_point now) {
  if (list_failures_ < most_list_failures)
    return false;
  if (instances_.empty() && ordered_.empty() && ended_.empty())
    return true;
  const auto is_here = [&](const std::string& agent) {
    const auto at = agents_.find(agent);
    return at != agents_.end() && at->second.connected;
  };
  return heard_ &&
         std::none_of(instances_.begin(), instances_.end(),
                      [&](const auto& x) { return is_here(agent_name(x.second)); }) &&
         std::none_of(ended_.begin(), ended_.end(), [&](const auto& x) { return is_here(x.second.agent); }) &&
         due(list_failing_since_ + settings_.max_disconnected, now);
}

bool provisioner::is_done() const { return settings_.retiring && settled_ && leaving_.empty(); }

std::string provisioner::snapshot() const {
  std::vector<std::string> ids;
  for (const auto& [id, x] : instances_)
    ids.push_back(id);
  return pack(std::tuple{ids, ordered_, orders_, last_type_, settled_});
}

value provisioner::describe() const {
  value all = value::object();
  for (const auto& [id, x] : instances_) {
    const auto* agent = agent_of(x);
    const bool comes = starts(x);
    all[id] = {{"agent", x.is.agent.empty() ? id : x.is.agent},
               {"state", comes               ? "starting"
                         : !agent->connected ? "disconnected"
                         : agent->idle       ? "idle"
                                             : "busy"},
               {"seen", to_rfc3339(x.seen)}};
  }
  const auto now_has = supply();
  value leaving = value::array();
  for (const auto& [agent, at] : leaving_)
    leaving.push_back(agent);
  return {{"pool", pool_},
          {"type", now_has.type},
          {"called", provider_type()},
          {"leaving", std::move(leaving)},
          {"instances", all},
          {"starting", now_has.starting},
          {"stopping", now_has.stopping},
          {"orders", ordered_.size()},
          {"error", now_has.error},
          {"faults", now_has.faults}};
}

} // namespace troupe
