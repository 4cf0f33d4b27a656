#pragma once
// The shell of actors/provider/provisioner.hpp, and the thread that calls the provider.

#include "actors/messages.hpp"
#include "actors/provider/instance_provider.hpp"
#include "actors/provider/provisioner.hpp"

#include <functional>

namespace troupe {

struct provisioner_setup {
  std::string pool;
  value settings; ///< as of provider_configured; null: retiring
  journal_actor journal;
  pool_actor pool_of;
  /// Called on the provider's own thread, and again where the settings change.
  std::function<std::unique_ptr<instance_provider>(const std::string& pool, const value& settings)> make;
  std::function<void(const std::string&)> say; ///< a line for people; thread-safe; may be empty
  cluster_actor cluster;                       ///< is told of agents that do not come back
  std::set<std::string> agents;                ///< that the cluster knows now
};

/// The stream of its facts.
std::string provider_entity(const std::string& pool);

/// `past`: the facts of its stream, oldest first. It tells its pool who it is, and what it has. Ends by
/// itself once it retires and no instance is left.
provisioner_actor spawn_provisioner(caf::actor_system& sys, provisioner_setup setup,
                                    const std::vector<provider_fact>& past);

} // namespace troupe
