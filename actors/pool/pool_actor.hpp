#pragma once
// The shell of actors/pool/pool.hpp. It also gives the handles of agents' twins by name. An allocation that
// asks for slots gets its grant as a message of its own.

#include "actors/messages.hpp"
#include "actors/pool/pool.hpp"

namespace troupe {

/// All pools, for owners that ask one of them for each new run.
struct known_pools {
  known_pools() = default;
  known_pools(pool_actor only) : all{{"", std::move(only)}} {}
  known_pools(std::map<std::string, pool_actor> pools, std::string next)
      : all(std::move(pools)), own(std::move(next)) {}
  std::map<std::string, pool_actor> all;
  std::string own; ///< name of the pool that the next run asks
  pool_actor find(const std::string& name) const {
    const auto it = all.find(name);
    return it == all.end() ? pool_actor{} : it->second;
  }
};

/// `begin` is `recovering` where the pool replaces one that died, or the master was restarted; the pool then
/// places nothing before holders_heard.
pool_actor spawn_pool(caf::actor_system& sys, std::string name, pool::phase begin = pool::phase::placing);

} // namespace troupe
