#pragma once
// The shell of actors/pool/pool.hpp. Asked by name, it gives the handles of agents' twins; whoever asks for
// slots is answered at its own handle.

#include "actors/messages.hpp"
#include "actors/pool/pool.hpp"

namespace troupe {

/// The pools that there are, for those who ask one anew for each run.
struct known_pools {
  known_pools() = default;
  known_pools(pool_actor only) : all{{"", std::move(only)}} {}
  known_pools(std::map<std::string, pool_actor> pools, std::string next)
      : all(std::move(pools)), own(std::move(next)) {}
  std::map<std::string, pool_actor> all;
  std::string own; ///< where the next run asks
  pool_actor find(const std::string& name) const {
    const auto it = all.find(name);
    return it == all.end() ? pool_actor{} : it->second;
  }
};

/// `begin`: recovering where it replaces a pool that died; then it places nothing before holders_heard.
pool_actor spawn_pool(caf::actor_system& sys, std::string name, pool::phase begin = pool::phase::placing);

} // namespace troupe
