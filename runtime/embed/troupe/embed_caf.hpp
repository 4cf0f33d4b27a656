#pragma once
// For hosts that are actors themselves: a node in the host's actor system, the host's actors next to a
// node's, and the events of the cluster as messages. The only header of the package that includes CAF
// (component embed_caf).

#include "troupe/embed.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>

namespace troupe {
inline namespace v0 {

/// What became durably true. Never goes to another process.
struct cluster_event {
  std::uint64_t sequence = 0; ///< counts all events of the cluster
  std::string entity;         ///< "experiment/1", "trial/3", "allocation/3.1", "cluster"
  std::string type;           ///< "trial_ended", ...: docs/messages.md has them all
  std::string json;           ///< the event with its fields, one object
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cluster_event& x) {
  return f(caf::meta::type_name("troupe::cluster_event"), x.sequence, x.entity, x.type, x.json);
}

} // namespace v0
} // namespace troupe

/// The numbers 1500 to 1599 are taken; a host's own blocks may begin anywhere else, as at
/// caf::first_custom_type_id.
CAF_BEGIN_TYPE_ID_BLOCK(troupe_embed, 1500)
CAF_ADD_TYPE_ID(troupe_embed, (troupe::cluster_event))
CAF_END_TYPE_ID_BLOCK(troupe_embed)

namespace troupe {
inline namespace v0 {

using event_sink = caf::typed_actor<caf::reacts_to<cluster_event>>;

/// To be called before the host's actor system is made.
void add_message_types(caf::actor_system_config& config);

/// As node::open, in the host's actor system: its scheduler runs the node's actors, and stop() ends those
/// alone. Other processes cannot join such a node. errc::invalid where the system was made without
/// add_message_types, errc::conflict where it holds a node already. The node has to be stopped before the
/// system goes.
result<node> open_in(caf::actor_system& system, const node_options& options);

/// The actor system of a node: to spawn the host's own actors in. Where it is the node's own, they have to
/// end when the node does: stop() waits for them, as the end of any actor system does.
result<caf::actor_system*> actors_of(const node& of);

/// `who` gets every event from now on, in order, until the node stops, which it is told by an exit message
/// with the reason user_shutdown where the system is the node's own. At most 512 wait in its mailbox: then
/// the node's events wait for it, and nothing else does.
result<void> subscribe(const node& to, const event_sink& who);

} // namespace v0
} // namespace troupe
