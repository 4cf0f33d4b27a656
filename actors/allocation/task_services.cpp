#include "actors/allocation/task_services.hpp"

namespace troupe {

std::vector<task_service> services_in(const value& config) {
  std::vector<task_service> all;
  if (!config.is_object())
    return all;
  const auto ports = config.value(value::json_pointer("/environment/proxy_ports"), value());
  if (!ports.is_array())
    return all;
  for (const auto& one : ports) {
    const auto port = one.is_object() ? one.value("proxy_port", value()) : value();
    if (!port.is_number_integer())
      continue;
    const auto says = [&](const char* key) { return one.value(key, value()) == value(true); };
    task_service named;
    named.port = port.get<int>();
    named.id = says("default_service_id") ? "" : ":" + std::to_string(named.port);
    named.tcp = says("proxy_tcp");
    named.unauthenticated = says("unauthenticated");
    all.push_back(std::move(named));
  }
  return all;
}

} // namespace troupe
