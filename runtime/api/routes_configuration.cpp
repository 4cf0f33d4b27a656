#include "runtime/api/routes_configuration.hpp"

#include "model/config/cluster_config.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"

namespace troupe::api {
namespace {

void get(const call_ptr& c, const reply& back) {
  command(c, back, "configuration.get", value::object(), [](value got) -> result<value> {
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
  value with{{"configuration", asked.object("configuration")},
             {"secrets", asked.object("secrets")},
             {"prune", asked.list("prune")},
             {"revision", asked.number("revision")}};
  if (asked.bad())
    return back(failure(*asked.bad()));
  command(c, back, "configuration.put", std::move(with), [](value got) -> result<value> { return got; });
}

void pools(const call_ptr& c, const reply& back) {
  command(c, back, "pool.list", value::object(), [](value got) -> result<value> { return got; });
}

} // namespace

std::vector<route> configuration_routes() {
  route change{"POST",
               "/troupe/v1/configuration",
               access::admin,
               put,
               "ConfigurationChange",
               "ConfigurationChanged",
               "Puts another configuration in force: 409 where `revision` is not the newest."};
  change.body_bytes = 8u << 20;
  return {
    {"GET", "/troupe/v1/configuration", access::user, get, "", "Configuration",
     "The configuration in force, and the users that no file made."},
    std::move(change),
    {"GET", "/troupe/v1/pools", access::user, pools, "", "Pools",
     "The resource pools with their slots and what waits."},
  };
}

} // namespace troupe::api
