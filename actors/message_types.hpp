#pragma once
// For actor systems that an embedding program makes.

namespace caf {
class actor_system_config;
}

namespace troupe {

/// Registers all our messages; to be called before the actor system is made.
void add_node_messages(caf::actor_system_config& to);

} // namespace troupe
