// Routes for rules about work that others submit: policies of configurations, and the workspaces that a pool
// is bound to.

#include "runtime/api/routes_rule.hpp"

#include "model/config/cluster_config.hpp"
#include "model/config/document.hpp"
#include "model/config/secrets.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/guard.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/usable_pools.hpp"
#include "storage/keys.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

using storage::records_of;

// ---- config policies

struct policy_place {
  workspace_id workspace; ///< 0: policies for all workspaces
  std::string owner;      ///< owner of the workspace; empty for all workspaces
  std::string kind;
};

result<policy_place> place_of(const call& c) {
  policy_place out;
  const std::string kind(c.named("workloadType"));
  if (kind.empty())
    return error{errc::invalid, "no specified workload type"};
  out.kind = kind == "TASKS" || kind == "tasks" ? "NTSC" : kind;
  for (auto& letter : out.kind)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (out.kind != "EXPERIMENT" && out.kind != "NTSC")
    return error{errc::invalid, "invalid workload type: " + kind.substr(0, 50)};
  if (!c.path.contains("workspaceId"))
    return out;
  out.workspace = parse_id<workspace_id>(c.named("workspaceId"));
  auto book = place_book::read(*c.parts->storage);
  if (!book)
    return book.error();
  const auto* workspace = book->find(out.workspace);
  if (!workspace)
    return error{errc::not_found,
                 "workspace '" + std::string(c.named("workspaceId").substr(0, 30)) + "' not found"};
  out.owner = workspace->owner;
  return out;
}

result<value> policies_at(const call& c, const policy_place& at) {
  auto all = records_of<policy_changed>(*c.parts->storage, storage::keys::one(at.workspace.value) + at.kind);
  if (!all)
    return all.error();
  for (const auto& one : *all)
    if (one.workspace == at.workspace && one.kind == at.kind && one.policies.is_object())
      return value{{"configPolicies", config::policies_without_secrets(one.policies)}};
  return value{{"configPolicies", value::object()}};
}

result<value> get_policies(const call& c) {
  auto at = place_of(c);
  if (at && !at->workspace && c.by.roles &&
      !c.by.roles->anywhere(authority::permission::view_global_config_policies))
    return error{errc::denied, "access denied: this needs the permission VIEW_GLOBAL_CONFIG_POLICIES"};
  return at ? policies_at(c, *at) : at.error();
}

void change_policies(const call_ptr& c, const reply& back, const value& policies) {
  auto at = place_of(*c);
  if (!at)
    return back(failure(at.error()));
  if (auto fine = allowed(*c, action::change, {thing::policy, to_string(at->workspace), at->owner}); !fine)
    return back(failure(fine.error()));
  command(c, back, commands::policy_set{at->workspace, at->kind, policies},
          [c, at = *at, removed = policies.is_null()](value) -> result<value> {
            return removed ? result<value>(value::object()) : policies_at(*c, at);
          });
}

void put_policies(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  const auto text = f.text("configPolicies");
  f.text("workloadType"); // the path names both fields; only their types are checked
  f.number("workspaceId");
  if (f.bad())
    return back(failure(*f.bad()));
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    return back(failure({errc::invalid, "no specified config policies"}));
  if (text.size() > 64 << 10)
    return back(failure({errc::invalid, "config policies have at most 64 KiB"}));
  auto document = config::read_document(text, "config policies");
  if (!document.faults.empty())
    return back(failure({errc::invalid, config::render(document.faults.front(), text)}));
  auto policies = config::to_value(document.root);
  if (!policies.is_object())
    return back(failure({errc::invalid, "config policies have to be a map"}));
  change_policies(c, back, policies);
}

void delete_policies(const call_ptr& c, const reply& back) { change_policies(c, back, nullptr); }

// ---- pools and workspaces

result<value> cluster_in_force(const call& c) {
  auto now = c.parts->storage->configuration();
  if (!now)
    return now.error();
  return *now ? (*now)->configuration : value();
}

const storage::reader& everything(const call& c) {
  return c.parts->all ? *c.parts->all->storage : *c.parts->storage;
}

/// The binding of a pool to workspaces that are not deleted, including those that the caller may not see.
result<pool_bound> binding_of(const call& c, const std::string& pool) {
  auto all = records_of<pool_bound>(everything(c), pool);
  auto book = place_book::read(everything(c));
  if (!all || !book)
    return all ? book.error() : all.error();
  for (auto& one : *all)
    if (one.pool == pool) {
      std::erase_if(one.workspaces, [&](workspace_id id) { return !book->find(id); });
      return std::move(one);
    }
  pool_bound none;
  none.pool = pool;
  return none;
}

/// The existing workspaces that the cluster file binds the pool to.
std::vector<workspace_id> bound_by_file(const value& cluster, const place_book& book,
                                        const std::string& pool) {
  const auto names = config::workspaces_of_pool(cluster, pool);
  std::vector<workspace_id> out;
  for (const auto& one : book.workspaces())
    if (std::find(names.begin(), names.end(), one.name) != names.end() && book.find(one.id))
      out.push_back(one.id);
  return out;
}

bool is_in(const std::vector<workspace_id>& all, workspace_id id) {
  return std::find(all.begin(), all.end(), id) != all.end();
}

result<pool_bound> named_binding(const call& c) {
  const std::string pool(c.named("resourcePoolName"));
  auto cluster = cluster_in_force(c);
  if (!cluster)
    return cluster.error();
  if (!config::has_pool(*cluster, pool) ||
      (c.by.roles && !shows_pool({c.parts->roles, {c.by.user_id}, {}, {}}, everything(c), pool)))
    return error{errc::not_found, "resource pool '" + pool.substr(0, 100) + "' not found"};
  return binding_of(c, pool);
}

result<value> bindings(const call& c) {
  auto now = named_binding(c);
  if (!now)
    return now.error();
  auto cluster = cluster_in_force(c);
  auto book = place_book::read(*c.parts->storage);
  if (!cluster || !book)
    return cluster ? book.error() : cluster.error();
  std::erase_if(now->workspaces, [&](workspace_id id) { return !book->find(id); });
  for (const auto id : bound_by_file(*cluster, *book, now->pool))
    if (!is_in(now->workspaces, id))
      now->workspaces.push_back(id);
  std::sort(now->workspaces.begin(), now->workspaces.end());
  auto part = page_of(c.query, now->workspaces.size());
  if (!part)
    return part.error();
  value ids = value::array();
  for (auto i = part->first; i < part->last; ++i)
    ids.push_back(now->workspaces[i].value);
  return value{{"workspaceIds", std::move(ids)}, {"pagination", part->pagination}};
}

enum class binding { add, overwrite, remove };

handler bind(binding how) {
  return [how](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    auto named = f.ids<workspace_id>("workspaceIds");
    const auto names = f.texts("workspaceNames");
    f.text("resourcePoolName"); // the path names it; only the type is checked
    if (f.bad())
      return back(failure(*f.bad()));
    auto now = named_binding(*c);
    auto cluster = cluster_in_force(*c);
    auto book = place_book::read(*c->parts->storage);
    if (!now || !cluster || !book)
      return back(failure(!now ? now.error() : cluster ? book.error() : cluster.error()));
    for (const auto& name : names) {
      const auto& all = book->workspaces();
      const auto at = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
      if (at == all.end())
        return back(failure({errc::not_found, "workspace '" + name.substr(0, 100) + "' not found"}));
      named.push_back(at->id);
    }
    for (const auto id : named)
      if (!book->find(id))
        return back(failure({errc::not_found, "workspace '" + to_string(id) + "' not found"}));
    if (how != binding::remove && !named.empty() && config::default_pool(*cluster) == now->pool)
      return back(
        failure({errc::invalid, "default resource pool " + now->pool + " cannot be bound to any workspace"}));
    if (how != binding::add)
      for (const auto id : bound_by_file(*cluster, *book, now->pool))
        if (is_in(named, id) == (how == binding::remove))
          return back(failure({errc::invalid, "workspace '" + book->find(id)->name + "' is bound to pool " +
                                                now->pool + " by the cluster file: take it out of pools." +
                                                now->pool + ".workspaces there"}));
    command(c, back,
            commands::pool_bind{now->pool, std::move(named),
                                how == binding::add      ? "add"
                                : how == binding::remove ? "remove"
                                                         : "all"});
  };
}

result<value> available_pools(const call& c) {
  const auto id = parse_id<workspace_id>(c.named("workspaceId"));
  auto book = place_book::read(*c.parts->storage);
  if (!book)
    return book.error();
  if (!book->find(id))
    return error{errc::not_found, "workspace '" + to_string(id) + "' not found"};
  auto names = usable_pools(c, *book, id);
  if (!names)
    return names.error();
  auto part = page_of(c.query, names->size());
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i)
    list.push_back((*names)[i]);
  return value{{"resourcePools", std::move(list)}, {"pagination", part->pagination}};
}

} // namespace

result<house_rules> rules_in_force(const call& c) {
  auto all = records_of<policy_changed>(everything(c), "");
  if (!all)
    return all.error();
  house_rules rules;
  for (auto& one : *all)
    rules.replay(rule_fact(std::move(one)));
  return rules;
}

result<std::vector<std::string>> usable_pools(const call& c, const place_book& book, workspace_id in) {
  auto cluster = cluster_in_force(c);
  if (!cluster)
    return cluster.error();
  std::vector<std::string> names;
  for (const auto& pool : config::pool_names(*cluster)) {
    auto bound = binding_of(c, pool);
    if (!bound)
      return bound.error();
    const bool unbound = bound->workspaces.empty() && config::workspaces_of_pool(*cluster, pool).empty();
    if (unbound || is_in(bound->workspaces, in) || is_in(bound_by_file(*cluster, book, pool), in))
      names.push_back(pool);
  }
  return names;
}

result<bool> is_bound(const call& c, const std::string& pool) {
  auto cluster = cluster_in_force(c);
  auto bound = binding_of(c, pool);
  if (!cluster || !bound)
    return cluster ? bound.error() : cluster.error();
  return !bound->workspaces.empty() || !config::workspaces_of_pool(*cluster, pool).empty();
}

std::vector<route> rule_routes() {
  const authority::need view{action::view, thing::policy}, change{action::change, thing::policy},
    view_pool{action::view, thing::pool}, change_pool{action::change, thing::pool};
  std::vector<route> out;
  for (const char* where : {"/api/v1/config-policies/global/{workloadType}",
                            "/api/v1/config-policies/workspaces/{workspaceId}/{workloadType}"}) {
    const bool of_all = std::string_view(where).find("global") != std::string_view::npos;
    const char* body = of_all ? "v1PutGlobalConfigPoliciesRequest" : "v1PutWorkspaceConfigPoliciesRequest";
    const char* put = of_all ? "v1PutGlobalConfigPoliciesResponse" : "v1PutWorkspaceConfigPoliciesResponse";
    const char* get = of_all ? "v1GetGlobalConfigPoliciesResponse" : "v1GetWorkspaceConfigPoliciesResponse";
    out.push_back({"GET", where, view, answer_with(get_policies), "", get,
                   "What configurations of a kind of work have to be."});
    out.push_back(asks_again({"PUT", where, change, put_policies, body, put,
                              "Says what configurations of a kind of work have to be."}));
    out.push_back(asks_again(
      {"DELETE", where, change, delete_policies, "", "Empty", "Takes the policies of a kind of work away."}));
  }
  const char* bound = "/api/v1/resource-pools/{resourcePoolName}/workspace-bindings";
  out.push_back({"GET", bound, view_pool, answer_with(bindings), "", "v1ListWorkspacesBoundToRPResponse",
                 "Workspaces that a pool is bound to; none: it is everyone's."});
  out.push_back({"POST", bound, change_pool, bind(binding::add), "v1BindRPToWorkspaceRequest", "Empty",
                 "Binds a pool to further workspaces."});
  out.push_back({"PUT", bound, change_pool, bind(binding::overwrite), "v1OverwriteRPWorkspaceBindingsRequest",
                 "Empty", "Binds a pool to these workspaces alone."});
  out.push_back({"DELETE", bound, change_pool, bind(binding::remove), "v1UnbindRPFromWorkspaceRequest",
                 "Empty", "Takes bindings of a pool away."});
  out.push_back({"GET", "/api/v1/workspaces/{workspaceId}/available-resource-pools", view_pool,
                 answer_with(available_pools), "", "v1ListRPsBoundToWorkspaceResponse",
                 "Pools that the work of a workspace may use."});
  return out;
}

} // namespace troupe::api
