#pragma once
// What the shell's desk and the nodes' inspectors say to each other. A type id block of their own, so that
// only who speaks them is compiled anew.

#include "actors/shells/probed.hpp"

namespace troupe {

/// Desk to an inspector: one question about the actors of its node. Answered with command_result.
///
///   node    {} -> {role, actors, backlog, version, since, slots?}
///   ps      {window_ms, kind?} -> {rows}
///   actor   {actor, what: info|links|state|msgs|stats, path?, max?} -> by what; not_found where it is not
///   here tree    {} -> {rows: [{actor, owner, state, restarts}]} names   {ids} -> {names: {"ID": name}}   of
///   those that this node knows waits   {} -> {rows} events  {after, max} -> {rows, newest} end     {actor,
///   why} -> {}      it dies of an error, with its children; its owner notices send    {actor, message,
///   fields, user} -> by message watch   {actor?, about?, request?, requester?, msg?, max, rate, for_ms} ->
///   {id} taken   {id, about?} -> {rows, seen, shown, dropped, over, gone}   what the watch has shown since
///   unwatch {id} -> {}
///   log     {level?} -> {level}
///   fault   {actor, fault, n?, delay_ms?, for_ms?, from_node?, from_actor?} -> {}   denied unless the node
///   allows faults
struct inspect_request {
  std::string what;
  value fields;
  MSGPACK_DEFINE_ARRAY(what, fields)
};

/// From HTTP to the desk; `name` without its prefix "shell.". The table is in runtime/api/routes_shell.cpp.
struct shell_call {
  std::string user;
  bool admin = false;
  std::string name;
  value fields;
  MSGPACK_DEFINE_ARRAY(user, admin, name, fields)
};

/// Where the rows of a stream go. Each function from any thread, none blocks.
struct row_sink {
  std::function<void(value)> push; ///< bounded: what does not fit is dropped and counted there
  std::function<void(value)> end;  ///< the last row
  std::function<bool()> closed;    ///< nobody reads any more
};
/// To the desk: answer once it flows, or with why it cannot. Never leaves the process.
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
/// To be called by every node's configuration.
void add_shell_messages(caf::actor_system_config& to);
} // namespace troupe
