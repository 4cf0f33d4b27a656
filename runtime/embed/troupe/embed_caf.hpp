#pragma once
// For hosts that are actors themselves: a node in the host's actor system, the host's actors beside a node's,
// and the cluster's events as messages. Only this header of the package includes CAF (component embed_caf).

#include "troupe/embed.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>

namespace troupe {
inline namespace v0 {

/// A fact that became durable. Never goes to another process.
struct cluster_event {
  std::uint64_t sequence = 0; ///< counts all events of the cluster
  std::string entity;         ///< "experiment/1", "trial/3", "allocation/3.1", "cluster"
  std::string type;           ///< such as "trial_ended": docs/messages.md has them all
  std::string json;           ///< the event with its fields, one object
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cluster_event& x) {
  return f(caf::meta::type_name("troupe::cluster_event"), x.sequence, x.entity, x.type, x.json);
}

} // namespace v0
} // namespace troupe

/// The numbers 1500 to 1599 are taken; a host's own blocks may begin anywhere else, for instance at
/// caf::first_custom_type_id.
CAF_BEGIN_TYPE_ID_BLOCK(troupe_embed, 1500)
CAF_ADD_TYPE_ID(troupe_embed, (troupe::cluster_event))
CAF_END_TYPE_ID_BLOCK(troupe_embed)

namespace troupe {
inline namespace v0 {

using event_sink = caf::typed_actor<caf::reacts_to<cluster_event>>;

/// To be called before the host's actor system is made.
void add_message_types(caf::actor_system_config& config);

/// Like node::open, but in the host's actor system: its scheduler runs the node's actors, and stop() ends
/// only those. Other processes cannot join such a node. Fails with errc::invalid where the system was made
/// without add_message_types, with errc::conflict where it holds a node already. The node must be stopped
/// before the system ends.
result<node> open_in(caf::actor_system& system, const node_options& options);

/// The actor system of a node, in which a host can spawn its own actors. Where the system is the node's own,
/// these must end when the node does: stop() waits for them, as the end of any actor system does.
result<caf::actor_system*> actors_of(const node& of);

/// Sends every event from now on to `who`, in order, until the node stops. Where the system is the node's
/// own, an exit message with the reason user_shutdown then tells `who` so. At most 512 events wait in its
/// mailbox: then only the node's events wait for it.
result<void> subscribe(const node& to, const event_sink& who);

} // namespace v0
} // namespace troupe
