#include "actors/catalogue/deliveries.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe {
namespace {

constexpr std::size_t most_remembered = 200'000;

std::int64_t unix_seconds(time_point at) {
  return std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
}

const value* in(const value& of, const char* key) {
  if (!of.is_object())
    return nullptr;
  const auto found = of.find(key);
  return found == of.end() || found->is_null() ? nullptr : &*found;
}

std::string text_in(const value& of, const char* key) {
  const auto* x = in(of, key);
  return x && x->is_string() ? x->get<std::string>() : std::string();
}

std::int64_t seconds_of(const webhook_subject& what) {
  const auto until = what.ended == time_point{} ? what.created : what.ended;
  return std::chrono::duration_cast<std::chrono::seconds>(until - what.created).count();
}

value field(const std::string& title, const std::string& text) {
  return {{"type", "mrkdwn"}, {"text", "*" + title + "*: " + text}};
}
value section(const std::string& text) {
  return {{"type", "section"}, {"text", {{"type", "mrkdwn"}, {"text", text}}}};
}

/// Escapes the three characters that have a meaning in Slack.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

/// Valid JSON: bytes of a log that are not UTF-8 are replaced by marks.
std::string dumped(const value& x) { return x.dump(-1, ' ', false, value::error_handler_t::replace); }

value slack_body(const std::string& sentence, const char* colour, value fields, value more = value::array()) {
  value blocks = value::array({section(sentence)});
  value attached{{"color", colour}, {"blocks", value::array()}};
  if (!fields.empty())
    attached["blocks"].push_back({{"type", "section"}, {"fields", std::move(fields)}});
  for (auto& one : more)
    attached["blocks"].push_back(std::move(one));
  return {{"blocks", std::move(blocks)}, {"attachments", value::array({std::move(attached)})}};
}

value places_of(const webhook_subject& what) {
  value fields = value::array();
  fields.push_back(field("Workspace", plain(what.workspace)));
  if (!what.project.empty())
    fields.push_back(field("Project", plain(what.project)));
  if (what.trial)
    fields.push_back(field("Trial ID", to_string(what.trial)));
  return fields;
}

} // namespace

std::string event_id(std::initializer_list<std::string> parts) {
  std::uint64_t high = 0xcbf29ce484222325ULL, low = 0x84222325cbf29ce4ULL;
  for (const auto& part : parts)
    for (const char c : part + '\0') {
      high = (high ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
      low = (low ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL + 1;
    }
  char text[40];
  std::snprintf(
    text, sizeof text, "%08llx-%04llx-8%03llx-8%03llx-%012llx", static_cast<unsigned long long>(high >> 32),
    static_cast<unsigned long long>(high >> 16 & 0xffff), static_cast<unsigned long long>(high & 0xfff),
    static_cast<unsigned long long>(low >> 52), static_cast<unsigned long long>(low & 0xffffffffffffULL));
  return text;
}

std::string deliveries::link_to(const webhook_subject& what) const {
  if (!what.id)
    return plain(what.name);
  const auto text = plain(what.name) + " (#" + to_string(what.id) + ")";
  if (base_url_.empty())
    return text;
  return "<" + base_url_ + "/ui/experiments/" + to_string(what.id) + "|" + text + ">";
}

bool deliveries::applies(const webhook_changed& hook, const webhook_subject& what) const {
  if (hook.deleted || (hook.workspace && hook.workspace != what.in))
    return false;
  const auto* integrations = in(what.config, "integrations");
  const auto* wanted = integrations ? in(*integrations, "webhooks") : nullptr;
  if (wanted && in(*wanted, "exclude") && *in(*wanted, "exclude") == true)
    return false;
  if (!hook.specific)
    return true;
  const auto names = [&](const char* key, const value& x) {
    const auto* list = wanted ? in(*wanted, key) : nullptr;
    return list && list->is_array() && std::find(list->begin(), list->end(), x) != list->end();
  };
  return names("webhook_id", hook.id.value) || (!hook.name.empty() && names("webhook_name", hook.name));
}

struct deliveries::content {
  content(const char* of, value on, value with)
      : type(of), condition(std::move(on)), data(std::move(with)), condition_text(dumped(condition)),
        data_text(dumped(data)) {}
  const std::string type;
  const value condition, data;
  const std::string condition_text, data_text; ///< dumped once, as there may be many receivers
};

webhook_event deliveries::event_of(const webhook_changed& to, std::string id, const content& says,
                                   const webhook_subject* what, time_point now) const {
  webhook_event out;
  out.at = now;
  out.id = std::move(id);
  out.webhook = to.id;
  out.url = to.url;
  out.slack = to.slack;
  if (!to.slack) {
    out.body = "{\"condition\":" + says.condition_text + ",\"event_data\":" + says.data_text +
               ",\"event_id\":" + dumped(out.id) + ",\"event_type\":" + dumped(says.type) +
               ",\"timestamp\":" + std::to_string(unix_seconds(now)) + "}";
    return out;
  }
  const auto& [kind, condition, data, condition_text, data_text] = says;
  if (!what) {
    out.body = dumped(slack_body("A test of the webhook " + plain(to.name) + " has arrived.", "#009BDE", {}));
  } else if (kind == "TASK_LOG") {
    const auto& log = data.at("task_log");
    out.body = dumped(slack_body((what->id ? "Experiment " : "") + link_to(*what) +
                                   ": a line of the log of task `" + plain(text_in(log, "task_id")) +
                                   "` on `" + plain(text_in(log, "node_name")) + "` matched",
                                 "#009BDE", places_of(*what),
                                 {section("Expression: ```" + plain(text_in(condition, "regex")) + "```"),
                                  section("Line: ```" + plain(text_in(log, "triggering_log")) + "```")}));
  } else if (kind == "CUSTOM") {
    const auto& custom = data.at("custom_data");
    auto fields = places_of(*what);
    for (const auto& [title, key] :
         {std::pair{"Level", "level"}, {"Title", "title"}, {"Description", "description"}})
      fields.push_back(field(title, plain(text_in(custom, key))));
    out.body = dumped(slack_body("Event of experiment " + link_to(*what), "#009BDE", std::move(fields)));
  } else {
    const auto seconds = seconds_of(*what);
    value fields = value::array(
      {field("Status", what->state),
       field("Duration", std::to_string(seconds / 3600) + "h " + std::to_string(seconds / 60 % 60) + "min")});
    for (auto& one : places_of(*what))
      fields.push_back(std::move(one));
    const auto* colour = what->state == "COMPLETED" ? "#13B670"
                         : what->state == "ERROR"   ? "#DD5040"
                                                    : "#009BDE";
    const auto* how = what->state == "COMPLETED" ? " completed successfully"
                      : what->state == "ERROR"   ? " has stopped with errors"
                                                 : " was canceled";
    out.body = dumped(slack_body("Experiment " + link_to(*what) + how, colour, std::move(fields)));
  }
  return out;
}

static value described(const webhook_subject& what) {
  value out{{"id", what.id.value},          {"state", what.state},        {"name", what.name},
            {"duration", seconds_of(what)}, {"resource_pool", what.pool}, {"slots_per_trial", what.slots},
            {"workspace", what.workspace},  {"project", what.project}};
  if (what.trial)
    out["trial_id"] = what.trial.value;
  return out;
}

std::vector<cluster_fact> deliveries::ended(const webhooks& all, const webhook_subject& what,
                                            time_point now) {
  std::vector<webhook_event> events;
  const content says("EXPERIMENT_STATE_CHANGE", {{"state", what.state}}, {{"experiment", described(what)}});
  for (const auto& [id, hook] : all) {
    if (!applies(hook, what))
      continue;
    for (const auto& trigger : hook.triggers) {
      const auto* condition = in(trigger, "condition");
      if (text_in(trigger, "type") != "EXPERIMENT_STATE_CHANGE" || !condition ||
          text_in(*condition, "state") != what.state)
        continue;
      auto name = event_id({"state", to_string(id), to_string(what.id), to_rfc3339(what.ended)});
      events.push_back(event_of(hook, std::move(name), says, &what, now));
      break; // one event, even where several triggers name the state
    }
  }
  return note(std::move(events));
}

std::vector<cluster_fact> deliveries::matched(const webhooks& all, webhook_id which, const std::string& regex,
                                              const webhook_subject& what, const std::string& task,
                                              const std::string& agent, const std::string& line,
                                              time_point now) {
  const auto hook = all.find(which);
  if (hook == all.end() || !applies(hook->second, what))
    return {};
  auto name = event_id({"log", to_string(which), task, regex});
  const content says("TASK_LOG", {{"regex", regex}},
                     {{"task_log", {{"task_id", task}, {"node_name", agent}, {"triggering_log", line}}}});
  return note({event_of(hook->second, std::move(name), says, &what, now)});
}

std::vector<cluster_fact> deliveries::alerted(const webhooks& all, const webhook_subject& what,
                                              const value& data, const std::string& id, time_point now) {
  std::vector<webhook_event> events;
  const content says("CUSTOM", value::object(), {{"experiment", described(what)}, {"custom_data", data}});
  for (const auto& [number, hook] : all) {
    const bool custom = std::any_of(hook.triggers.begin(), hook.triggers.end(),
                                    [](const value& x) { return text_in(x, "type") == "CUSTOM"; });
    if (!custom || !applies(hook, what))
      continue;
    events.push_back(event_of(hook, event_id({"custom", id, to_string(number)}), says, &what, now));
  }
  return note(std::move(events));
}

webhook_delivery deliveries::test(const webhook_changed& to, const std::string& id, time_point now) const {
  const content says("EXPERIMENT_STATE_CHANGE", {{"state", "COMPLETED"}}, {{"data", "test"}});
  auto event = event_of(to, id, says, nullptr, now);
  return {event.id, event.url, std::move(event.body), unix_seconds(now), event.slack};
}

std::vector<cluster_fact> deliveries::note(std::vector<webhook_event> events) {
  std::vector<cluster_fact> facts;
  for (auto& event : events) {
    if (known_.contains(event.id))
      continue;
    const auto to = receivers_.find(event.url);
    const bool full = to != receivers_.end() && to->second.ready.size() >= most_waiting_for_receiver;
    if (full || queue_.size() >= most_waiting) {
      event.step = deletion_step::failed;
      event.body.clear();
      event.why = "the queue is full: " +
                  (full ? std::to_string(most_waiting_for_receiver) + " events wait for this receiver"
                        : std::to_string(most_waiting) + " events wait");
    }
    facts.emplace_back(std::move(event));
    replay(facts.back());
  }
  return facts;
}

std::vector<webhook_delivery> deliveries::due(time_point now) {
  std::map<std::uint64_t, std::string, std::greater<>> again; // newest first, so the oldest ends up in front
  while (!retries_.empty() && retries_.begin()->first <= now) {
    auto id = retries_.extract(retries_.begin()).value().second;
    if (const auto at = queue_.find(id); at != queue_.end())
      again.emplace(at->second.order, std::move(id));
  }
  for (auto& [order, id] : again)
    receivers_[queue_.at(id).event.url].ready.push_front(std::move(id));
  std::vector<webhook_delivery> out;
  for (bool more = true; more && all_open_ < most_open;) { // one event of each receiver in turn
    more = false;
    for (auto& [name, to] : receivers_) {
      if (to.ready.empty() || to.open >= (to.in_trouble ? 1 : most_open_of_receiver) ||
          all_open_ >= most_open)
        continue;
      const auto id = std::move(to.ready.front());
      to.ready.pop_front();
      more = true;
      const auto at = queue_.find(id);
      if (at == queue_.end())
        continue;
      auto& one = at->second;
      ++to.open, ++all_open_;
      one.open = true;
      ++one.tries;
      out.push_back({id, one.event.url, one.event.body, unix_seconds(one.event.at), one.event.slack});
    }
  }
  return out;
}

std::vector<cluster_fact> deliveries::told(const std::string& id, bool done, bool final,
                                           const std::string& why, time_point now) {
  const auto at = queue_.find(id);
  if (at == queue_.end() || !at->second.open)
    return {};
  auto& one = at->second;
  one.open = false;
  --all_open_;
  const bool again = !done && !final && !one.dropped && one.tries < most_tries;
  if (const auto to = receivers_.find(one.event.url); to != receivers_.end()) {
    to->second.in_trouble = !done && !final; // a receiver that refuses an event can be reached
    if (--to->second.open == 0 && to->second.ready.empty() && !again)
      receivers_.erase(to);
  }
  if (again) {
    retries_.emplace(now + std::chrono::seconds(1) * (1 << (one.tries - 1)), id);
    return {};
  }
  if (one.dropped) {
    queue_.erase(at);
    return {};
  }
  auto last = std::move(one.event); // replay removes the entry
  last.at = now;
  last.body.clear();
  last.step = done ? deletion_step::done : deletion_step::failed;
  last.why = done ? std::string() : why;
  std::vector<cluster_fact> facts{std::move(last)};
  replay(facts.back());
  return facts;
}

std::optional<time_point> deliveries::deadline() const {
  return retries_.empty() ? std::nullopt : std::optional{retries_.begin()->first};
}

void deliveries::drop(webhook_id deleted) {
  for (auto& [id, one] : queue_)
    one.dropped = one.dropped || one.event.webhook == deleted;
  std::erase_if(queue_, [](const auto& x) { return x.second.dropped && !x.second.open; });
}

void deliveries::replay(const cluster_fact& fact) {
  if (const auto* hook = std::get_if<webhook_changed>(&fact); hook && hook->deleted)
    drop(hook->id);
  const auto* event = std::get_if<webhook_event>(&fact);
  if (!event)
    return;
  if (known_.insert(event->id).second) {
    forget_.push_back(event->id);
    if (forget_.size() > most_remembered) {
      known_.erase(forget_.front());
      forget_.pop_front();
    }
  }
  if (event->step != deletion_step::ordered)
    queue_.erase(event->id);
  else if (queue_.emplace(event->id, waiting{*event, next_order_++}).second)
    receivers_[event->url].ready.push_back(event->id);
}

std::string deliveries::snapshot() const {
  std::map<std::string, std::string> waiting; // sorted, so that equal states give equal bytes
  for (const auto& [id, one] : queue_)
    if (!one.dropped)
      waiting.emplace(id, pack(one.event));
  return pack(std::tuple{waiting, std::set<std::string>(known_.begin(), known_.end())});
}

value deliveries::describe() const {
  return {{"webhook_events", {{"waiting", queue_.size()}, {"open", all_open_}}}};
}

} // namespace troupe
