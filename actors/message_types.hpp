#pragma once
// For actor systems that are not ours.

namespace caf {
class actor_system_config;
}

namespace troupe {

/// Registers every message of ours; to be called before the actor system is made.
void add_node_messages(caf::actor_system_config& to);

} // namespace troupe
