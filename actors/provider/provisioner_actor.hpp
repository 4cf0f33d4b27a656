#pragma once
// The shell of actors/provider/provisioner.hpp, and the thread that calls the provider.

#include "actors/messages.hpp"
#include "actors/provider/instance_provider.hpp"
#include "actors/provider/provisioner.hpp"

#include <functional>

namespace troupe {

struct provisioner_setup {
  std::string pool;
  value settings; ///< settings as in provider_configured; null: retiring
  journal_actor journal;
  pool_actor pool_of;
  /// Makes the provider. Called on the provider's own thread, and again where the settings change.
  std::function<std::unique_ptr<instance_provider>(const std::string& pool, const value& settings)> make;
  std::function<void(const std::string&)> say; ///< prints a line for people; thread-safe; may be empty
  cluster_actor cluster;                       ///< drains and forgets the agents of instances that end
  std::set<std::string> agents;                ///< agents that the cluster knows now
};

/// The name of the stream of a provisioner's facts.
std::string provider_entity(const std::string& pool);

/// `past`: the facts of the stream, oldest first. The actor tells its pool its handle and its supply. It ends
/// by itself once it retires and no instance is left.
provisioner_actor spawn_provisioner(caf::actor_system& sys, provisioner_setup setup,
                                    const std::vector<provider_fact>& past);

} // namespace troupe
