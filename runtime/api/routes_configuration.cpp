#include "runtime/api/routes_configuration.hpp"

#include "model/config/cluster_config.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"

namespace troupe::api {
namespace {

void get(const call_ptr& c, const reply& back) {
  command(c, back, commands::configuration_get{}, [](value got) -> result<value> {
    return value{{"configuration", config::printable_cluster(got.value("configuration", value()))},
                 {"revision", got.value("revision", std::uint64_t{0})},
                 {"byHand", got.value("by_hand", value::object())}};
  });
}

void put(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields asked{*body};
  asked.need("configuration");
  commands::configuration_put with{
    asked.object("configuration"),
    asked.object("secrets"),
    {},
    static_cast<std::uint64_t>(std::max<std::int64_t>(asked.number("revision"), 0))};
  for (const auto& name : asked.list("prune"))
    if (name.is_string())
      with.prune.push_back(name);
    else
      asked.fault("prune", "expected names of users");
  if (asked.bad())
    return back(failure(*asked.bad()));
  command(c, back, std::move(with), as_it_is);
}

} // namespace

std::vector<route> configuration_routes() {
  route change{"POST",
               "/troupe/v1/configuration",
               {action::change, thing::configuration},
               put,
               "ConfigurationChange",
               "ConfigurationChanged",
               "Puts another configuration in force: 409 where `revision` is not the newest."};
  change.body_bytes = 8u << 20;
  return {
    {"GET",
     "/troupe/v1/configuration",
     {action::view, thing::configuration},
     get,
     "",
     "Configuration",
     "The configuration in force, and the users that no file made."},
    std::move(change),
  };
}

} // namespace troupe::api
