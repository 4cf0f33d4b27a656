// `troupe policy`, `troupe webhook`.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/things.hpp"
#include "runtime/client/submission.hpp"

#include <ostream>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> policy_columns = {{"INVARIANT", "invariant_config", show_as::compact},
                                            {"CONSTRAINTS", "constraints", show_as::compact}};
const std::vector<column> webhook_columns = {
  {"ID", "id"},    {"NAME", "name"}, {"URL", "url"}, {"TYPE", "webhookType"}, {"WORKSPACE", "workspaceId"},
  {"MODE", "mode"}};

/// The path of the cluster's policies where `workspace` is empty.
std::string policy_path_of(const std::string& workspace, const std::string& kind) {
  return (workspace.empty() ? std::string("/api/v1/config-policies/global/")
                            : "/api/v1/config-policies/workspaces/" + workspace + "/") +
         kind;
}

result<std::string> policy_path(client::server& cluster, const arguments& given) {
  const auto kind = given.text("--kind", "EXPERIMENT");
  if (!given.has("--workspace"))
    return policy_path_of("", kind);
  auto workspace = workspace_named(cluster, given.text("--workspace"));
  if (!workspace)
    return workspace.error();
  return policy_path_of(id_text(*workspace), kind);
}

std::string webhook_path(const value& webhook) { return "/api/v1/webhooks/" + id_text(webhook); }

} // namespace

// ---- policies

int policy_list(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto workspaces = (*cluster)->list("/api/v1/workspaces", "workspaces");
  if (!workspaces)
    return s.fail(workspaces.error());
  value places = value::array({{{"id", nullptr}, {"name", nullptr}}}); // the cluster
  for (const auto& one : *workspaces)
    places.push_back(one);
  value rows = value::array();
  for (const auto& place : places)
    for (const char* kind : {"EXPERIMENT", "NTSC"}) {
      auto got = (*cluster)->get(policy_path_of(id_text(place), kind));
      if (!got && (got.error().code == errc::denied || got.error().code == errc::not_found))
        continue; // the caller may not see it, or it was deleted meanwhile
      if (!got)
        return s.fail(got.error());
      if (const auto& policies = part(got->body, "configPolicies"); !policies.empty())
        rows.push_back({{"workspaceId", part(place, "id")},
                        {"workspaceName", part(place, "name")},
                        {"workloadType", kind},
                        {"configPolicies", policies}});
    }
  return s.print(show_rows(rows,
                           {{"WORKSPACE", "workspaceName"},
                            {"KIND", "workloadType"},
                            {"INVARIANT", "configPolicies.invariant_config", show_as::compact},
                            {"CONSTRAINTS", "configPolicies.constraints", show_as::compact}},
                           s.output()));
}

int policy_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto path = policy_path(**cluster, given);
  auto policies = path ? thing_at(**cluster, *path, "configPolicies") : result<value>(path.error());
  if (!policies)
    return s.fail(policies.error());
  return is_card(s.output()) ? s.print(to_yaml(*policies))
                             : s.print(show_one(*policies, policy_columns, s.output()));
}

int policy_set(session& s, const arguments& given) {
  return act_on(s, policy_columns, [&](client::server& cluster) -> result<deed> {
    auto policies = map_in(s, given.text("FILE")); // faults of the file have places in it
    if (!policies)
      return policies.error();
    auto path = policy_path(cluster, given);
    if (!path)
      return path.error();
    auto done = cluster.change("PUT", *path, {{"configPolicies", to_json(*policies)}});
    if (!done)
      return done.error();
    return deed{"set", part(*done, "configPolicies")};
  });
}

int policy_delete(session& s, const arguments& given) {
  return act_on(s, policy_columns, [&](client::server& cluster) -> result<deed> {
    auto path = policy_path(cluster, given);
    if (!path)
      return path.error();
    auto known = thing_at(cluster, *path, "configPolicies");
    if (!known)
      return known.error();
    if (auto done = cluster.change("DELETE", *path); !done)
      return done.error();
    return deed{"deleted", std::move(*known)};
  });
}

// ---- webhooks

int webhook_list(session& s, const arguments&) {
  return print_list(s, "/api/v1/webhooks", "webhooks", webhook_columns);
}

int webhook_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto known = webhook_named(**cluster, given.text("WEBHOOK"));
  if (!known)
    return s.fail(known.error());
  if (const int code = s.print(show_one(*known, webhook_columns, s.output())); code != exit_done)
    return code;
  return print_below(s, "TRIGGERS", part(*known, "triggers"),
                     {{"TYPE", "triggerType"}, {"CONDITION", "condition", show_as::compact}});
}

int webhook_create(session& s, const arguments& given) {
  return act_on(s, webhook_columns, [&](client::server& cluster) -> result<deed> {
    value triggers = value::array();
    for (const auto& state : given.all("--state"))
      triggers.push_back(
        {{"triggerType", "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"}, {"condition", {{"state", upper(state)}}}});
    for (const auto& regex : given.all("--log"))
      triggers.push_back({{"triggerType", "TRIGGER_TYPE_TASK_LOG"}, {"condition", {{"regex", regex}}}});
    if (given.has("--custom"))
      triggers.push_back({{"triggerType", "TRIGGER_TYPE_CUSTOM"}, {"condition", value::object()}});
    value body{{"name", given.text("NAME")},
               {"url", given.text("URL")},
               {"webhookType", given.has("--slack") ? "WEBHOOK_TYPE_SLACK" : "WEBHOOK_TYPE_DEFAULT"},
               {"mode", given.has("--specific") || given.has("--custom") ? "WEBHOOK_MODE_SPECIFIC"
                                                                         : "WEBHOOK_MODE_WORKSPACE"},
               {"triggers", std::move(triggers)}};
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      body["workspaceId"] = part(*workspace, "id");
    }
    auto made = cluster.post("/api/v1/webhooks", body);
    if (!made)
      return made.error();
    return deed{"webhook " + id_text(*made, "webhook.id"), part(*made, "webhook")};
  });
}

int webhook_set(session& s, const arguments& given) {
  if (!given.has("--url"))
    return s.fail({errc::invalid, "nothing is set\nhint: --url URL"});
  return act_on(s, webhook_columns, [&](client::server& cluster) -> result<deed> {
    auto known = webhook_named(cluster, given.text("WEBHOOK"));
    if (!known)
      return known.error();
    const auto id = id_text(*known);
    if (auto done = cluster.change("PATCH", webhook_path(*known), {{"url", given.text("--url")}}); !done)
      return done.error();
    auto now = webhook_named(cluster, id);
    if (!now)
      return now.error();
    return deed{"changed webhook " + id, std::move(*now)};
  });
}

int webhook_delete(session& s, const arguments& given) {
  return act_on(s, webhook_columns, [&](client::server& cluster) -> result<deed> {
    auto known = webhook_named(cluster, given.text("WEBHOOK"));
    if (!known)
      return known.error();
    if (auto done = cluster.change("DELETE", webhook_path(*known)); !done)
      return done.error();
    return deed{"deleted", std::move(*known)};
  });
}

int webhook_test(session& s, const arguments& given) {
  return act_on(s, webhook_columns, [&](client::server& cluster) -> result<deed> {
    auto known = webhook_named(cluster, given.text("WEBHOOK"));
    if (!known)
      return known.error();
    if (auto done = cluster.post(webhook_path(*known) + "/test"); !done)
      return done.error();
    return deed{"delivered", std::move(*known)};
  });
}

} // namespace troupe::cli::verbs
