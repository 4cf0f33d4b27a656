#include "runtime/api/determined_roles.hpp"

#include "actors/catalogue/people.hpp"
#include "model/authority/roles.hpp"

#include <string>

namespace troupe::api {
namespace {

value mask(bool workspaces) { return {{"cluster", true}, {"workspace", workspaces}}; }

} // namespace

value role_shape(int role) {
  value has = value::array();
  for (std::size_t i = 0; i < authority::most_permissions; ++i)
    if (const auto& one = authority::permissions()[i];
        authority::role_has(role, static_cast<authority::permission>(i)))
      has.push_back({{"id", std::string("PERMISSION_TYPE_") + one.name},
                     {"name", one.name},
                     {"scopeTypeMask", mask(one.of_workspaces)}});
  return {{"roleId", role},
          {"name", authority::role_name(role)},
          {"permissions", std::move(has)},
          {"scopeTypeMask", mask(of_workspaces(role))}};
}

} // namespace troupe::api
