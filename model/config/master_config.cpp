#include "model/config/master_config.hpp"

namespace troupe::config {
namespace {

bool preempts_by(const value& scheduler) {
  return scheduler.value("type", std::string("priority")) == "fair_share" ||
         scheduler.value("preemption", false);
}

const value* pool_named(const value& master, std::string_view name) {
  auto pools = master.find("resource_pools");
  if (pools != master.end() && pools->is_array())
    for (const auto& pool : *pools)
      if (pool.is_object() && pool.value("pool_name", std::string()) == name)
        return &pool;
  return nullptr;
}

void hide(value& x) {
  if (x.is_array())
    for (auto& part : x)
      hide(part);
  if (!x.is_object())
    return;
  for (auto& [key, part] : x.items())
    if (part.is_string() && is_secret(key) && !part.get_ref<const std::string&>().empty())
      part = "********";
    else
      hide(part);
}

} // namespace

bool is_secret(std::string_view key) {
  for (std::string_view word :
       {"access_key", "secret_key", "session_token", "connection_string", "credential", "password", "auth",
        "identitytoken", "registrytoken", "segment_master_key", "segment_webui_key", "startup_script",
        "container_startup_script", "client_secret", "signing_key", "jwt_key", "initial_user_password"})
    if (key == word)
      return true;
  return false;
}

bool preempts(const value& master, std::string_view pool) {
  if (const auto* own = pool_named(master, pool))
    if (auto scheduler = own->find("scheduler"); scheduler != own->end() && scheduler->is_object())
      return preempts_by(*scheduler);
  auto common = master.value(value::json_pointer("/resource_manager/scheduler"), value::object());
  return common.is_object() && preempts_by(common);
}

value printable(value master) {
  hide(master);
  return master;
}

std::vector<std::string> deprecations(const value& master) {
  std::vector<std::string> said;
  auto pools = master.find("resource_pools");
  if (pools != master.end() && pools->is_array())
    for (const auto& pool : *pools)
      if (pool.is_object() && pool.contains("agent_reattach_enabled"))
        said.push_back(
          "resource pool " + pool.value("pool_name", std::string()) +
          ": agent_reattach_enabled has no effect any more; agents always reconnect to what they run");
  return said;
}

} // namespace troupe::config
