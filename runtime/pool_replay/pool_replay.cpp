#include "runtime/pool_replay/pool_replay.hpp"

#include "model/config/memory_size.hpp"

#include <algorithm>
#include <cmath>
#include <istream>
#include <ostream>

namespace troupe::replay {
namespace {

error wrong(std::string what) { return {errc::invalid, std::move(what)}; }

/// Returns a text whose order by bytes is the order that people expect: "task2" before "task10".
std::string natural(const std::string& name) {
  std::string key;
  for (std::size_t i = 0; i < name.size();) {
    if (!std::isdigit(static_cast<unsigned char>(name[i]))) {
      key += name[i++];
      continue;
    }
    auto to = name.find_first_not_of("0123456789", i);
    to = to == name.npos ? name.size() : to;
    auto from = std::min(name.find_first_not_of('0', i), to);
    const auto digits = to - from;
    key += '0';
    key += static_cast<char>(std::min<std::size_t>(digits, 255));
    key.append(name, from, digits);
    i = to;
  }
  return key + '\0' + name;
}

value shown_on(const std::vector<placement>& on) {
  value list = value::array();
  for (const auto& part : on)
    list.push_back({{"agent", part.agent}, {"slots", part.slots}});
  return list;
}

/// Reads the members of one event and keeps the first fault.
class members {
public:
  explicit members(const value& object) : object_(object) {}
  const value* find(const char* key) {
    known_.insert(key);
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  /// Whether the key is there, even with the value null.
  bool names(const char* key) const { return object_.contains(key); }
  std::string text(const char* key, bool required = true) {
    const auto* x = find(key);
    if (x && x->is_string() && !x->get_ref<const std::string&>().empty())
      return x->get<std::string>();
    if (x || required)
      fail(key, "a text that is not empty");
    return {};
  }
  int count(const char* key, int least, int most, std::optional<int> standard = {}) {
    const auto* x = find(key);
    if (x && x->is_number_integer() && *x >= least && *x <= most)
      return x->get<int>();
    if (x || !standard)
      fail(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return standard.value_or(least);
  }
  bool flag(const char* key, std::optional<bool> standard) {
    const auto* x = find(key);
    if (x && x->is_boolean())
      return x->get<bool>();
    if (x || !standard)
      fail(key, "true or false");
    return standard.value_or(false);
  }
  std::optional<time_point> time(const char* key) {
    const auto* x = find(key);
    if (!x)
      return std::nullopt;
    const double seconds = x->is_number() ? x->get<double>() : -1;
    if (!(seconds >= 0 && seconds < 1e11)) {
      fail(key, "seconds, 0 or more");
      return std::nullopt;
    }
    return time_point(duration(std::llround(seconds * 1e6)));
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> out;
    if (const auto* x = find(key)) {
      bool good = x->is_array();
      for (std::size_t i = 0; good && i < x->size(); ++i)
        if ((good = (*x)[i].is_string()))
          out.push_back((*x)[i].get<std::string>());
      if (!good)
        fail(key, "a list of texts");
    }
    return out;
  }
  std::vector<placement> placements(const char* key) {
    std::vector<placement> out;
    const auto* x = find(key);
    bool good = x && x->is_array() && !x->empty();
    for (std::size_t i = 0; good && i < x->size(); ++i) {
      const auto& part = (*x)[i];
      good = part.is_object() && part.size() == 2 && part.contains("agent") && part["agent"].is_string() &&
             part.contains("slots") && part["slots"].is_array();
      if (!good)
        break;
      out.push_back({part["agent"].get<std::string>(), {}});
      for (const auto& slot : part["slots"])
        if ((good = good && slot.is_number_integer() && slot >= 0 && slot < 1'000'000))
          out.back().slots.push_back(slot.get<int>());
    }
    if (!good)
      fail(key, "a list of {agent, slots: [number]}");
    return out;
  }
  void fail(const std::string& key, const std::string& expected) {
    if (fault_.empty())
      fault_ = "`" + key + "` must be " + expected;
  }
  /// Reports unknown members; to be called after all known members were read.
  void refuse_others() {
    for (const auto& [key, unused] : object_.items())
      if (!known_.contains(key) && fault_.empty())
        fault_ = "unknown member `" + key + "`";
  }
  const std::string& fault() const { return fault_; }

private:
  const value& object_;
  std::set<std::string> known_{"event", "at"};
  std::string fault_;
};

} // namespace

/// Turns lines into events. It works on a copy of the story, which replaces the story only if every line was
/// good.
class pool_replay::reading {
public:
  explicit reading(story& now) : told(now) {}

  story& told; ///< only good events change this
  std::vector<pool_event> events;

  result<void> read(const value& line, bool in_batch = false) {
    if (!line.is_object())
      return wrong("an event must be a JSON object");
    members in(line);
    const auto kind = in.text("event");
    if (!in.fault().empty())
      return wrong("a line must hold `pool` (a header) or `event` (a text)");
    at_ = in.time("at").value_or(told.at);
    if (at_ < told.at)
      in.fail("at", "no earlier than before");
    if (kind == "agent_up")
      agent_up_of(in);
    else if (kind == "agent_down")
      agent_down_of(in);
    else if (kind == "agent_change")
      agent_change_of(in);
    else if (kind == "job")
      job_of(in);
    else if (kind == "request")
      request_of(in, false);
    else if (kind == "held")
      request_of(in, true);
    else if (kind == "release")
      release_of(in);
    else if (kind == "time")
      time_of(in);
    else if (kind == "batch" && !in_batch)
      return batch_of(line, in);
    else
      return wrong("unknown event `" + kind +
                   "`; one of agent_up, agent_down, agent_change, job, request, held, release, time" +
                   (in_batch ? "" : ", batch, explain"));
    if (!in.fault().empty())
      return wrong("event `" + kind + "`: " + in.fault());
    return {};
  }

private:
  /// Whether the whole event was good; if it was, the story's time becomes the event's time.
  bool good(members& in) {
    in.refuse_others();
    if (in.fault().empty())
      told.at = at_;
    return in.fault().empty();
  }

  result<void> batch_of(const value& line, members& in) {
    const auto* list = in.find("events");
    if (!list || !list->is_array())
      return wrong("event `batch`: `events` must be a list of events");
    if (!good(in))
      return wrong("event `batch`: " + in.fault());
    std::size_t number = 0;
    for (const auto& one : line["events"]) {
      if (auto ok = read(one, true); !ok)
        return wrong("event " + std::to_string(number) + " of the batch: " + ok.error().what);
      ++number;
    }
    return {};
  }

  void time_of(members& in) {
    if (good(in))
      events.push_back(time_passed{});
  }

  void agent_up_of(members& in) {
    agent_up ev;
    ev.agent = in.text("agent");
    ev.slots = in.count("slots", 0, 100'000);
    ev.traits.aux = in.count("aux", 0, 1'000'000, -1);
    ev.traits.device = in.text("device", false);
    if (const auto* labels = in.find("labels")) {
      if (!labels->is_object())
        in.fail("labels", "a map of texts");
      else
        for (const auto& [key, x] : labels->items())
          if (x.is_string())
            ev.traits.labels[key] = x.get<std::string>();
          else
            in.fail("labels." + key, "a text");
    }
    if (const auto* memory = in.find("memory")) {
      const auto bytes =
        memory->is_string() ? config::parse_memory_size(memory->get<std::string>()) : std::nullopt;
      if (bytes)
        ev.traits.memory_bytes = static_cast<std::uint64_t>(*bytes);
      else if (memory->is_number_unsigned())
        ev.traits.memory_bytes = memory->get<std::uint64_t>();
      else
        in.fail("memory", "bytes, or a size as 80GiB");
    }
    for (auto held = told.held.lower_bound({ev.agent, ev.slots});
         held != told.held.end() && held->first.first == ev.agent; ++held)
      in.fail("slots",
              "more than " + std::to_string(held->first.second) + ": that slot is held by " + held->second);
    if (!good(in))
      return;
    told.agents[ev.agent] = ev.slots;
    told.came.insert(ev.agent);
    events.push_back(std::move(ev));
  }

  void agent_down_of(members& in) {
    const auto agent = in.text("agent");
    if (!agent.empty() && !told.agents.contains(agent))
      in.fail("agent", "one that is there; `" + agent + "` is not");
    if (!good(in))
      return;
    told.agents.erase(agent);
    events.push_back(agent_down{agent});
  }

  void agent_change_of(members& in) {
    const auto agent = in.text("agent");
    const bool enabled = in.flag("enabled", {});
    const bool drain = in.flag("drain", false);
    if (!agent.empty() && !told.came.contains(agent)) // one that is away may be changed, too
      in.fail("agent", "one that has come; `" + agent + "` has not");
    if (!good(in))
      return;
    events.push_back(agent_drain{agent, !enabled, {}, !enabled && !drain, {}, {}});
  }

  experiment_id job_named(const std::string& name) {
    auto& id = told.jobs[name];
    if (!id) {
      id = experiment_id{told.jobs.size()};
      auto& terms = told.terms[id];
      terms.job = id;
      terms.label = natural(name);
    }
    return id;
  }

  /// A value that the event does not name stays as it was; null restores the default.
  void job_of(members& in) {
    const auto name = in.text("job");
    const auto known = told.jobs.find(name);
    const auto before = known == told.jobs.end() ? job_terms{} : told.terms[known->second];
    const int priority = in.count("priority", 1, 99, in.names("priority") ? 0 : before.priority);
    double weight = in.names("weight") ? 1 : before.weight;
    if (const auto* x = in.find("weight")) {
      weight = x->is_number() ? x->get<double>() : -1;
      if (!(weight >= 0) || std::isinf(weight))
        in.fail("weight", "a number, 0 or more");
    }
    const auto* most = in.find("max_slots");
    const int max_slots = most                    ? in.count("max_slots", 0, 1'000'000'000)
                          : in.names("max_slots") ? -1
                                                  : before.max_slots;
    const auto submitted = in.time("submitted");
    if (!good(in))
      return;
    auto& terms = told.terms[job_named(name)];
    terms.priority = priority;
    terms.weight = weight;
    terms.max_slots = max_slots;
    if (submitted)
      terms.submitted = *submitted + epoch;
    events.push_back(job_changed{terms});
  }

  void request_of(members& in, bool held) {
    const auto name = in.text("id");
    const int slots = in.count("slots", 0, 100'000);
    const int least = in.count("least", 1, 100'000, 0);
    if (least > slots)
      in.fail("least", "no more than `slots`");
    run_terms run;
    const auto job = in.text("job");
    run.preemptible = in.flag("preemptible", true);
    if (const auto* constraints = in.find("constraints")) {
      auto rules = placement_rules_of(*constraints);
      if (rules)
        run.rules = std::move(*rules);
      else
        in.fail("constraints", "right: " + rules.error().what);
    }
    run.rules.single_node = in.flag("single_node", false);
    for (auto& agent : in.texts("blocked"))
      run.rules.not_agents.push_back(std::move(agent));
    const auto user = in.text("user", false);
    const auto workspace = in.text("workspace", false);
    const auto on = held ? in.placements("on") : std::vector<placement>{};
    const auto since = held ? in.time("since") : std::nullopt;
    if (since && *since > at_)
      in.fail("since", "no later than now");
    if (held)
      check_held(in, name, slots, least, on);
    if (!good(in))
      return;
    for (const auto& part : on)
      for (const int slot : part.slots)
        told.take(part.agent, slot, name);
    auto& id = told.ids[name];
    if (!id) {
      told.names.push_back(name);
      id = allocation_id{trial_id{told.names.size()}, {1}};
    }
    auto& terms = told.terms[job_named(job)];
    if (terms.submitted == time_point{})
      terms.submitted = told.at + epoch;
    terms.user = user.empty() ? terms.user : user;
    terms.workspace = workspace.empty() ? terms.workspace : workspace;
    run.job = terms;
    run.started = told.at + epoch;
    run.label = natural(name);
    if (held)
      events.push_back(
        slots_held{id, on, std::move(run), slots, least, since ? *since + epoch : time_point{}});
    else
      events.push_back(slots_requested{id, slots, least, std::move(run)});
  }

  void check_held(members& in, const std::string& name, int slots, int least,
                  const std::vector<placement>& on) {
    if (!in.fault().empty())
      return;
    if (told.holders.contains(name))
      return in.fail("id", "one that holds nothing yet; `" + name + "` does");
    const int count = slots_in(on);
    if (slots == 0 ? count != 0 || on.size() != 1 : count > slots || count < (least > 0 ? least : slots))
      return in.fail("on", "as many slots as it asked for");
    std::set<std::string> agents;
    for (const auto& part : on) {
      if (!agents.insert(part.agent).second || (slots > 0 && part.slots.empty()))
        return in.fail("on", "a list that names each agent once, with slots");
      const auto known = told.agents.find(part.agent);
      for (const int slot : part.slots) {
        if (known != told.agents.end() && slot >= known->second)
          return in.fail("on", "of slots that are there: agent " + part.agent + " has " +
                                 std::to_string(known->second));
        if (const auto it = told.held.find({part.agent, slot}); it != told.held.end())
          return in.fail("on", "of slots that are free: slot " + std::to_string(slot) + " of agent " +
                                 part.agent + " is held by " + it->second);
        if (std::count(part.slots.begin(), part.slots.end(), slot) > 1)
          return in.fail("on", "a list that names each slot once");
      }
    }
  }

  void release_of(members& in) {
    const auto name = in.text("id");
    const auto id = told.ids.find(name);
    if (!name.empty() && id == told.ids.end())
      in.fail("id", "one that was named before; `" + name + "` was not");
    if (!good(in))
      return;
    told.let_go(name);
    events.push_back(slots_released{id->second, {}});
  }

  time_point at_; ///< time of the current event

public:
  /// Added to the time of each line, which counts from 0: the pool takes a time of 0 as "none".
  static constexpr duration epoch = std::chrono::hours(24);
};

void pool_replay::story::take(const std::string& agent, int slot, const std::string& name) {
  if (held.emplace(std::pair{agent, slot}, name).second)
    holders[name].emplace_back(agent, slot);
}

void pool_replay::story::let_go(const std::string& name) {
  if (const auto its = holders.extract(name))
    for (const auto& slot : its.mapped())
      held.erase(slot);
}

value pool_replay::answer(std::string_view line) {
  auto parsed = parse_json(line);
  auto said = [&]() -> result<value> {
    if (!parsed)
      return parsed.error();
    if (!parsed->is_object())
      return wrong("a line must be a JSON object");
    if (parsed->contains("pool"))
      return start(*parsed);
    if (!pool_)
      return wrong("no pool yet: the first line must be a header with `pool`");
    if (auto it = parsed->find("event"); it != parsed->end() && *it == "explain")
      return explain(*parsed);
    return step(*parsed);
  }();
  return said ? *said : value{{"error", said.error().what}};
}

result<value> pool_replay::start(const value& header) {
  for (const auto& [key, unused] : header.items())
    if (key != "pool")
      return wrong("header: unknown member `" + key + "`; it takes `pool`");
  auto settings = pool_settings_of(header["pool"]);
  if (!settings)
    return wrong("header: pool: " + settings.error().what);
  pool_.emplace(pool::phase::placing, std::move(*settings));
  story_ = {};
  return value{{"actions", value::array()}};
}

result<value> pool_replay::step(const value& line) {
  const auto event = line.find("event");
  const auto before = event != line.end() && *event == "batch" ? std::optional(story_) : std::nullopt;
  reading in(story_);
  if (auto ok = in.read(line); !ok) {
    if (before)
      story_ = *before;
    return ok.error();
  }
  const auto actions = pool_->apply(in.events, story_.at + reading::epoch);
  for (const auto& action : actions)
    if (const auto* grant = std::get_if<grant_slots>(&action))
      for (const auto& part : grant->on)
        for (const int slot : part.slots)
          story_.take(part.agent, slot, name_of(grant->allocation));
  return value{{"actions", shown(actions)}};
}

result<value> pool_replay::explain(const value& line) {
  members in(line);
  const auto name = in.text("id");
  const auto at = in.time("at").value_or(story_.at);
  if (at < story_.at)
    in.fail("at", "no earlier than before");
  in.refuse_others();
  if (!in.fault().empty())
    return wrong("event `explain`: " + in.fault());
  const auto id = story_.ids.find(name);
  if (id == story_.ids.end())
    return wrong("event `explain`: `id` must be one that was named before; `" + name + "` was not");
  story_.at = at;
  auto said = pool_->explain(id->second, at + reading::epoch);
  if (said.is_null())
    said = {{"reason", {{"code", "ended"}, {"text", "it has ended"}}},
            {"position", value()},
            {"agents", value::array()},
            {"wouldFree", value::array()},
            {"reservation", value()}};
  // "... behind trial 2", "... go to trial 2": the pool knows a number, and the reader knows a name.
  auto text = said["reason"]["text"].get<std::string>();
  const bool names = said["reason"]["code"] == "behind" || said["reason"]["code"] == "stopping";
  if (const auto number = text.rfind("trial "); names && number != text.npos)
    if (const auto trial = parse_id<trial_id>(text.substr(number + 6)))
      said["reason"]["text"] = text.substr(0, number) + name_of({trial, {1}});
  for (auto& x : said["wouldFree"])
    for (const char* key : {"allocation", "preemptedFor"})
      if (x[key].is_string())
        x[key] = name_of(parse_allocation(x[key].get<std::string>()));
  if (auto& reserved = said["reservation"]; reserved.is_object())
    reserved["since"] = reserved["since"].get<std::int64_t>() -
                        std::chrono::duration_cast<std::chrono::seconds>(reading::epoch).count();
  return value{{"explain", std::move(said)}};
}

std::string pool_replay::name_of(allocation_id id) const {
  const auto number = id.task.trial().value;
  return number > 0 && number <= story_.names.size() ? story_.names[number - 1] : std::string();
}

value pool_replay::shown(const std::vector<pool_action>& actions) {
  value list = value::array();
  for (const auto& action : actions) {
    auto one = std::visit(
      overloaded{
        [&](const grant_slots& x) -> value {
          return {{"grant", name_of(x.allocation)}, {"on", shown_on(x.on)}, {"backfilled", x.backfilled}};
        },
        [&](const preempt_allocation& x) -> value {
          return {{"preempt", name_of(x.allocation)},
                  {"for", x.wanted_by ? value(name_of(x.wanted_by)) : value()},
                  {"reason", x.reason}};
        },
        [&](const reserve_slots& x) -> value {
          return {{"reserve", name_of(x.allocation)}, {"on", shown_on(x.on)}};
        },
        [&](const drop_reservation& x) -> value {
          return {{"unreserve", name_of(x.allocation)}};
        },
        [&](const report_unplaceable& x) -> value {
          return {{"unplaceable", name_of(x.allocation)}, {"slots", x.slots}, {"total", x.total}};
        },
        [&](const report_spare& x) -> value {
          return {{"spare", name_of(x.allocation)}, {"slots", x.slots}};
        },
        [](const auto&) { return value(); }, // only other pools answer these
      },
      action);
    if (!one.is_null())
      list.push_back(std::move(one));
  }
  return list;
}

int replay_pool(std::istream& in, std::ostream& out) {
  pool_replay replay;
  std::string line;
  while (std::getline(in, line))
    out << to_json(replay.answer(line)) << '\n' << std::flush;
  return 0;
}

} // namespace troupe::replay
