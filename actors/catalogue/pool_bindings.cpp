#include "actors/catalogue/pool_bindings.hpp"

#include "model/chosen_name.hpp"

#include <algorithm>
#include <set>

namespace troupe {

namespace {

/// Whether the workspace `in`, which has this name, may use the pool; 0: a workspace that is to be made.
bool may_use(const house_rules& rules, const places& where, const value& cluster, const std::string& pool,
             workspace_id in, const std::string& name) {
  auto bound = rules.bound_to(pool);
  std::erase_if(bound,
                [&](workspace_id id) { return !where.knows(id); }); // a deleted workspace binds no pool
  const bool bound_here = std::find(bound.begin(), bound.end(), in) != bound.end();
  const auto names = config::workspaces_of_pool(cluster, pool);
  if (names.empty())
    return bound.empty() || bound_here;
  return bound_here || std::any_of(names.begin(), names.end(),
                                   [&](const auto& one) { return case_folded(one) == case_folded(name); });
}

config::pool_choice chosen(const house_rules& rules, const places& where, const value& cluster,
                           workspace_id in, const std::string& name) {
  config::pool_choice out{{}, name};
  for (auto& pool : config::pool_names(cluster))
    if (may_use(rules, where, cluster, pool, in, name))
      out.names.push_back(std::move(pool));
  return out;
}

} // namespace

config::pool_choice pools_of(const house_rules& rules, const places& where, const value& cluster,
                             workspace_id in) {
  const auto at = where.workspaces().find(in);
  return chosen(rules, where, cluster, in, at == where.workspaces().end() ? std::string() : at->second.name);
}

config::pool_choice pools_of_new(const house_rules& rules, const places& where, const value& cluster,
                                 const std::string& name) {
  return chosen(rules, where, cluster, {}, name);
}

std::vector<std::string> unknown_names(const value& cluster, const places& where,
                                       const std::map<user_id, user_changed>& users) {
  std::vector<std::string> out;
  std::set<std::string> people{"*"};
  for (const auto& [id, user] : users)
    people.insert(case_folded(user.name));
  if (cluster.contains("users")) // the users of a file are made after its configuration is recorded
    for (const auto& user : cluster.at("users"))
      people.insert(case_folded(user.value("name", std::string())));
  const auto is_there = [&](const std::string& name) {
    return std::any_of(where.workspaces().begin(), where.workspaces().end(),
                       [&](const auto& one) { return case_folded(one.second.name) == case_folded(name); });
  };
  for (const auto& pool : config::pool_names(cluster)) {
    for (const auto& name : config::workspaces_of_pool(cluster, pool))
      if (!is_there(name))
        out.push_back("pools." + pool + ".workspaces: there is no workspace '" + name +
                      "' yet; it may use the pool once somebody makes it");
    for (const auto& quota : config::pool_settings(cluster, pool).value("quotas", value::array())) {
      const auto missing = [&](const char* kind, const std::string& name) {
        out.push_back("pools." + pool + ".quotas: there is no " + kind + " '" + name +
                      "' yet; its quota limits nobody until somebody makes it");
      };
      if (const auto name = quota.value("workspace", value()); name.is_string() && !is_there(name))
        missing("workspace", name);
      if (const auto name = quota.value("user", value());
          name.is_string() && !people.contains(case_folded(name.get<std::string>())))
        missing("user", name);
    }
  }
  return out;
}

} // namespace troupe
