// Routes for what the cluster is and has: /health, /info, the master, agents, slots, the queue.

#include "model/config/cluster_config.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/seen_totals.hpp"
#include "runtime/api/shapes.hpp"

namespace troupe::api {
namespace {

// With any other version the stock client warns at each command.
constexpr const char* determined_version = "0.38.1";

result<value> health(const call&) { return value{{"status", "up"}}; }

result<value> info(const call& c) {
  const auto& about = c.parts->about;
  return value{{"version", determined_version},     {"master_id", about.master_id},
               {"cluster_id", about.cluster_id},    {"cluster_name", about.cluster_name},
               {"telemetry", {{"enabled", false}}}, {"troupe_version", about.troupe_version}};
}

result<value> master(const call& c) {
  const auto& about = c.parts->about;
  auto told = cluster_message(*c.parts->storage, c.now, true);
  if (!told)
    return told.error();
  auto configuration = c.parts->storage->configuration();
  if (!configuration)
    return configuration.error();
  return value{
    {"version", determined_version},
    {"masterId", about.master_id},
    {"clusterId", about.cluster_id},
    {"clusterName", about.cluster_name},
    {"hasCustomLogo", false},
    {"strictJobQueueControl", c.parts->strict_queue},
    {"rbacEnabled", c.parts->roles != nullptr},
    {"telemetryEnabled", false},
    {"userManagementEnabled", true},
    {"product", "PRODUCT_COMMUNITY"},
    {"branding", "determined"},
    {"featureSwitches", config::feature_switches(*configuration ? (*configuration)->configuration : value())},
    {"externalLoginUri", ""},
    {"externalLogoutUri", ""},
    {"clusterMessage", std::move(*told)}};
}

/// The element of `list` whose "name" or "id" is `id`; nullptr where no element has it.
const value* named_one(const value& list, std::string_view id) {
  for (const auto& one : list)
    for (const char* key : {"name", "id"})
      if (auto x = one.find(key);
          x != one.end() && (x->is_string() ? x->get<std::string>() : x->dump()) == id)
        return &one;
  return nullptr;
}

error no_agent(const call& c) {
  return {errc::not_found, "agent '" + std::string(c.named("agentId")) + "' not found"};
}

result<value> agents_shape(const call& c, const value& got) {
  const auto all = got.value("agents", value::array());
  auto part = page_of(c.query, all.size());
  if (!part)
    return part.error();
  value shaped = value::array();
  for (auto i = part->first; i < part->last; ++i) {
    shaped.push_back(agent_shape(all[i]));
    for (const auto& [flag, key] : {std::pair{"excludeSlots", "slots"}, {"excludeContainers", "containers"}})
      if (c.query.flag(flag))
        shaped.back()[key] = value::object();
  }
  return value{{"agents", std::move(shaped)}, {"pagination", part->pagination}};
}

result<value> slots_shape(const value& agent) {
  value slots = value::array();
  for (const auto& slot : agent.value("slots", value::array()))
    slots.push_back(slot_shape(slot, agent.value("name", agent.value("id", std::string{}))));
  return value{{"slots", std::move(slots)}};
}

using agent_answer = std::function<result<value>(const call&, const value& agent)>;

/// A handler whose answer is made from the agent that the path names.
handler with_agent(agent_answer make) {
  return [make = std::move(make)](const call_ptr& c, const reply& back) {
    command(c, back, commands::agent_list{}, [c, make](value got) -> result<value> {
      const auto all = got.value("agents", value::array());
      const auto* agent = named_one(all, c->named("agentId"));
      return agent ? make(*c, *agent) : result<value>(no_agent(*c));
    });
  };
}

result<value> one_slot(const call& c, const value& agent) {
  const auto slots = agent.value("slots", value::array());
  const auto* slot = named_one(slots, c.named("slotId"));
  if (!slot)
    return error{errc::not_found, "slot '" + std::string(c.named("slotId")) + "' not found"};
  return value{{"slot", slot_shape(*slot, agent.value("name", std::string{}))}};
}

void agents(const call_ptr& c, const reply& back) {
  command(c, back, commands::agent_list{}, [c](value got) { return agents_shape(*c, got); });
}

value camel_keys(const value& x) {
  if (x.is_array()) {
    value out = value::array();
    for (const auto& one : x)
      out.push_back(camel_keys(one));
    return out;
  }
  if (!x.is_object())
    return x;
  value out = value::object();
  for (const auto& [key, one] : x.items())
    out[to_camel(key)] = camel_keys(one);
  return out;
}

template <class C>
handler passed_on() {
  return [](const call_ptr& c, const reply& back) {
    command(c, back, C{}, [](value got) -> result<value> { return camel_keys(got); });
  };
}

void status(const call_ptr& c, const reply& back) {
  with_seen_totals(c, back, [c, back](std::optional<seen_totals> totals) {
    command(c, back, commands::status{}, [totals = std::move(totals)](value got) -> result<value> {
      if (totals) {
        got["waiting"] = totals->waiting;
        got["experiments_active"] = totals->experiments;
      }
      return camel_keys(got);
    });
  });
}

void remove_agent(const call_ptr& c, const reply& back) {
  command(c, back, commands::agent_remove{std::string(c->named("agentId"))},
          [](value) -> result<value> { return value::object(); });
}

void clean_logs(const call_ptr& c, const reply& back) {
  command(c, back, commands::logs_cleanup{}, [](value got) -> result<value> {
    return value{{"removedCount", std::to_string(got.value("removedCount", std::uint64_t{0}))}};
  });
}

} // namespace

std::vector<route> cluster_routes() {
  return {
    {"GET",
     "/health",
     {action::view, thing::door},
     answer_with(health),
     "",
     "HealthCheck",
     "Answers 200 once the cluster takes requests."},
    {"GET",
     "/info",
     {action::view, thing::door},
     answer_with(info),
     "",
     "Info",
     "Versions and identity; the stock client's first call."},
    {"GET",
     "/api/v1/master",
     {action::view, thing::door},
     answer_with(master),
     "",
     "v1GetMasterResponse",
     "The master's identity and switches."},
    {"GET",
     "/api/v1/agents",
     {action::view, thing::agent},
     agents,
     "",
     "v1GetAgentsResponse",
     "All agents with their slots."},
    {"GET",
     "/api/v1/agents/{agentId}",
     {action::view, thing::agent},
     with_agent([](const call&, const value& agent) -> result<value> {
       return value{{"agent", agent_shape(agent)}};
     }),
     "",
     "v1GetAgentResponse",
     "One agent."},
    {"GET",
     "/api/v1/agents/{agentId}/slots",
     {action::view, thing::agent},
     with_agent([](const call&, const value& agent) { return slots_shape(agent); }),
     "",
     "v1GetSlotsResponse",
     "The slots of one agent."},
    {"GET",
     "/api/v1/agents/{agentId}/slots/{slotId}",
     {action::view, thing::agent},
     with_agent(one_slot),
     "",
     "v1GetSlotResponse",
     "One slot."},
    {"POST",
     "/troupe/v1/agents/{agentId}/remove",
     {action::remove, thing::agent},
     remove_agent,
     "",
     "Empty",
     "Forgets an agent that is gone for good; 409 while it is connected, and until its runs are given away."},
    {"GET",
     "/troupe/v1/status",
     {action::view, thing::cluster},
     status,
     "",
     "Status",
     "Slots, agents and running experiments in numbers."},
    {"POST",
     "/api/v1/cleanup_logs",
     {action::remove, thing::log},
     clean_logs,
     "",
     "v1CleanupLogsResponse",
     "Erases now the logs of ended trials whose log_retention_days are over; counts trials."},
    {"POST",
     "/troupe/v1/shutdown",
     {action::kill, thing::cluster},
     passed_on<commands::node_shutdown>(),
     "",
     "Empty",
     "Stops the node after the answer."},
  };
}

} // namespace troupe::api
