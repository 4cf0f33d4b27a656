#include "runtime/provider/providers.hpp"

#include "runtime/provider/command_provider.hpp"
#include "runtime/provider/local_provider.hpp"

namespace troupe::provider {

std::unique_ptr<instance_provider> make_provider(const value& settings, world where) {
  const auto type = settings.is_object() ? settings.value("type", std::string()) : std::string();
  if (type == "local")
    return std::make_unique<local_provider>(settings, std::move(where));
  if (type == "command")
    return std::make_unique<command_provider>(settings, std::move(where));
  return nullptr;
}

} // namespace troupe::provider
