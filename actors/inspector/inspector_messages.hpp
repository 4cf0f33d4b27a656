#pragma once
// Messages between the shell's desk and the nodes' inspectors. They have a type id block of their own, so
// that a change compiles only their users again.

#include "actors/shells/probed.hpp"

namespace troupe {

/// From the desk to an inspector: one question about the actors of its node, answered with command_result.
/// `what` is the name of a command of model/commands/shell_commands.hpp without "inspect."; the command says
/// its fields and its answer. A question about one actor has "actor" as `what`, and its name as the field
/// "what".
struct inspect_request {
  std::string what;
  value fields;
  TROUPE_PACKED(what, fields)
};

/// From HTTP to the desk; `name` lacks its prefix "shell.". The table is in runtime/api/routes_shell.cpp.
struct shell_call {
  std::string user;
  bool admin = false;
  std::string name;
  value fields;
  TROUPE_PACKED(user, admin, name, fields)
};

/// Where the rows of a stream go. Each function may be called from any thread; none blocks.
struct row_sink {
  /// Takes a row. The sink is bounded: it drops a row that does not fit, and counts it.
  std::function<void(value)> push;
  std::function<void(value)> end; ///< takes the last row
  std::function<bool()> closed;   ///< whether the reader has gone
};
/// To the desk, which answers once the stream flows, or says why it cannot. Never leaves the process.
struct open_stream {
  shell_call what;
  std::shared_ptr<row_sink> to;
};

using inspector_actor =
  caf::typed_actor<caf::replies_to<inspect_request>::with<command_result>, caf::reacts_to<time_passed>>;

using desk_actor = caf::typed_actor<caf::replies_to<shell_call>::with<command_result>,
                                    caf::replies_to<open_stream>::with<command_result>,
                                    caf::reacts_to<node_joined>, caf::reacts_to<time_passed>>;

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::open_stream)

CAF_BEGIN_TYPE_ID_BLOCK(troupe_shell, 1400)
CAF_ADD_TYPE_ID(troupe_shell, (troupe::inspect_request))
CAF_ADD_TYPE_ID(troupe_shell, (troupe::shell_call))
CAF_ADD_TYPE_ID(troupe_shell, (troupe::open_stream))
CAF_ADD_TYPE_ID(troupe_shell, (troupe::probe_order))
CAF_END_TYPE_ID_BLOCK(troupe_shell)

namespace troupe {
/// Adds these messages to a node's configuration; every node has to call it.
void add_shell_messages(caf::actor_system_config& to);
} // namespace troupe
