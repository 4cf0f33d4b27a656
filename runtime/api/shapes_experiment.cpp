#include "model/config/secrets.hpp"
#include "model/config_in_force.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/shapes.hpp"

namespace troupe::api {
namespace {

/// The text at config.OUTER.INNER, or `otherwise`.
std::string config_text(const value& config, const char* outer, const char* inner,
                        const std::string& otherwise) {
  if (!config.is_object())
    return otherwise;
  const value* at = &config;
  for (const char* key : {outer, inner}) {
    if (!key)
      continue;
    auto next = at->find(key);
    if (!at->is_object() || next == at->end())
      return otherwise;
    at = &*next;
  }
  return at->is_string() ? at->get<std::string>() : otherwise;
}

} // namespace

std::string state_name(experiment_state state) { return "STATE_" + std::string(name(state)); }
std::string state_name(const trial_row& trial) { return "STATE_" + std::string(state_of(trial)); }

bool is_state_of_experiments(std::string_view text) {
  for (const char* shown : {"STATE_UNSPECIFIED", "STATE_QUEUED", "STATE_PULLING", "STATE_STARTING",
                            "STATE_RUNNING", "STATE_DELETED"})
    if (text == shown)
      return true;
  for (int i = 0; i <= static_cast<int>(experiment_state::delete_failed); ++i)
    if (text == state_name(static_cast<experiment_state>(i)))
      return true;
  return false;
}

std::string pool_of(const experiment_row& row, const std::string& usual_pool) {
  if (!row.resources.empty() && !row.resources.front().pool.empty())
    return row.resources.front().pool;
  const auto named = config_text(row.config, "resources", "resource_pool", "");
  return named.empty() ? usual_pool : named;
}

value lasting_experiment_shape(const experiment_row& row, const std::string& usual_pool) {
  value x{{"id", row.id.value},
          {"name", row.name},
          {"description", row.description},
          {"labels", row.labels},
          {"notes", row.notes},
          {"archived", row.archived},
          {"unmanaged", row.unmanaged},
          {"config", row.config->is_null() ? value::object() : config::without_secrets(config_in_force(row))},
          {"originalConfig", config::text_without_secrets(row.source)},
          {"jobId", job_name(row.id)},
          {"resourcePool", pool_of(row, usual_pool)},
          {"searcherType", config_text(row.config, "searcher", "name", "")},
          {"searcherMetric", row.metric},
          {"startTime", to_rfc3339(row.created)},
          {"forkedFrom", row.parent ? value(row.parent.value) : value(nullptr)}};
  if (!row.external_id.empty())
    x["externalExperimentId"] = row.external_id;
  return x;
}

value changing_experiment_shape(const experiment_standing& now, const std::string& owner_name,
                                time_point created, const accounts& users) {
  auto owner = users.owner(owner_name);
  value x = {{"numTrials", now.num_trials},
             {"state", now.unmanaged && now.state == experiment_state::active ? "STATE_RUNNING"
                                                                              : state_name(now.state)},
             {"progress", now.progress},
             {"checkpointCount", now.checkpoint_count},
             {"checkpointSize", std::to_string(now.checkpoint_bytes)},
             {"username", owner ? owner->name : owner_name},
             {"displayName", owner ? owner->display_name : std::string{}}};
  if (owner)
    x["userId"] = owner->id;
  if (now.ended != time_point{}) {
    x["endTime"] = to_rfc3339(now.ended);
    x["duration"] = std::chrono::duration_cast<std::chrono::seconds>(now.ended - created).count();
  }
  if (now.best_trial) {
    x["bestTrialId"] = now.best_trial.value;
    x["bestTrialSearcherMetric"] = now.best_metric;
  }
  return x;
}

value experiment_shape(const experiment_row& row, const accounts& users, const place_book& places) {
  auto x = lasting_experiment_shape(row, places.usual_pool());
  x.update(changing_experiment_shape(standing_of(row), row.owner, row.created, users));
  x.update(places.place_of(row.project, users));
  return x;
}

value empty_experiment_shape() {
  return {{"id", 0},
          {"name", ""},
          {"archived", false},
          {"config", value::object()},
          {"jobId", ""},
          {"numTrials", 0},
          {"originalConfig", ""},
          {"projectId", 0},
          {"searcherType", ""},
          {"projectOwnerId", 0},
          {"startTime", to_rfc3339(time_point{})},
          {"username", ""},
          {"state", "STATE_UNSPECIFIED"}};
}

result<page> page_of(const query_list& query, std::size_t total, std::int64_t usual) {
  auto offset = query.number("offset", 0), limit = query.number("limit", 0);
  if (!offset)
    return offset.error();
  if (!limit)
    return limit.error();
  const auto all = static_cast<std::int64_t>(total);
  auto first = *offset < 0 ? all + *offset : *offset;
  if (first < 0 || first > all)
    return error{errc::invalid,
                 "offset " + std::to_string(*offset) + " is outside of the list of " + std::to_string(all)};
  if (*limit < -2)
    return error{errc::invalid, "limit has to be -2, -1, 0 or a positive number"};
  auto most = *limit == 0 ? usual : *limit;
  auto last = most == -2 ? first : most > 0 ? std::min(all, first + std::min(most, all)) : all;
  page p;
  p.first = static_cast<std::size_t>(first);
  p.last = static_cast<std::size_t>(last);
  p.pagination = {
    {"offset", *offset}, {"limit", *limit}, {"startIndex", first}, {"endIndex", last}, {"total", all}};
  return p;
}

value user_shape(const user& u) {
  value x = {{"id", u.id},
             {"username", u.name},
             {"displayName", u.display_name},
             {"admin", u.admin},
             {"active", u.active},
             {"remote", u.remote},
             {"agentUserGroup", nullptr},
             {"modifiedAt", to_rfc3339(u.modified)},
             {"lastAuthAt", nullptr}};
  if (u.runs_as)
    x["agentUserGroup"] = {{"agentUid", u.runs_as->uid},
                           {"agentGid", u.runs_as->gid},
                           {"agentUser", u.runs_as->user},
                           {"agentGroup", u.runs_as->group}};
  if (u.last_login != time_point{})
    x["lastAuthAt"] = to_rfc3339(u.last_login);
  return x;
}

namespace {

/// The holder of a slot, or of an aux unit; then `devices` is empty.
value container_shape(const value& held, value devices) {
  value x = {{"id", held.at("allocation")},
             {"parent", ""},
             {"state", "STATE_RUNNING"},
             {"devices", std::move(devices)}};
  if (held.value("hidden", false))
    x["permissionDenied"] = true;
  return x;
}

} // namespace

value slot_shape(const value& slot, const std::string& agent) {
  const auto id =
    slot.contains("id") ? (slot["id"].is_string() ? slot["id"].get<std::string>() : slot["id"].dump()) : "0";
  const auto type = slot.value("device", std::string("cpu"));
  value x = {{"id", id},
             {"enabled", slot.value("enabled", true)},
             {"draining", slot.value("draining", false)},
             {"device",
              {{"id", slot.contains("id") && slot["id"].is_number() ? slot["id"] : value(0)},
               {"brand", slot.value("brand", type == "cpu" ? "CPU" : type)},
               {"uuid", slot.value("uuid", agent + "-" + id)},
               {"type", type.find("cuda") != type.npos   ? "TYPE_CUDA"
                        : type.find("rocm") != type.npos ? "TYPE_ROCM"
                                                         : "TYPE_CPU"}}},
             {"container", nullptr}};
  if (auto usage = slot.find("usage"); usage != slot.end() && usage->is_object())
    x["usage"] = *usage;
  if (auto busy = slot.find("allocation");
      busy != slot.end() && busy->is_string() && !busy->get<std::string>().empty())
    x["container"] = container_shape(slot, value::array({x["device"]}));
  return x;
}

value agent_shape(const value& one) {
  const auto id = one.value("name", one.value("id", std::string{}));
  value slots = value::object(), containers = value::object(), types = value::object();
  int disabled = 0, draining = 0, total = 0;
  std::string type = "TYPE_CPU";
  for (const auto& slot : one.value("slots", value::array())) {
    auto shape = slot_shape(slot, id);
    type = shape["device"]["type"];
    ++total;
    disabled += shape["enabled"].get<bool>() ? 0 : 1;
    draining += shape["draining"].get<bool>() ? 1 : 0;
    if (!shape["container"].is_null())
      containers[shape["container"]["id"].get<std::string>()] = shape["container"];
    const auto number = shape["id"].get<std::string>();
    slots[number] = std::move(shape);
  }
  for (const auto& run : one.value("aux", value::array()))
    containers[run.at("allocation").get<std::string>()] = container_shape(run, value::array());
  value stats = {
    {"disabled", disabled}, {"draining", draining}, {"total", total}, {"states", value::object()}};
  if (total > 0)
    types[type] = stats;
  const auto state = one.value("state", std::string("alive"));
  return {{"id", id},
          {"addresses", {one.value("host", std::string{})}},
          {"resourcePools", {one.value("pool", std::string("default"))}},
          {"registeredTime", one.value("since", to_rfc3339(time_point{}))},
          {"version", one.value("version", std::string("0.38.1"))},
          {"enabled", one.value("enabled", true)},
          {"draining", one.value("draining", state == "draining")},
          {"labels", one.value("labels", value::object())},
          {"state", state},
          {"slots", slots},
          {"containers", containers},
          {"slotStats", {{"typeStats", types}, {"brandStats", value::object()}}}};
}

} // namespace troupe::api
