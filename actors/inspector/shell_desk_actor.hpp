#pragma once
// The master's actor that takes the shell's commands: it asks the inspectors of all nodes and joins their
// answers. It carries out an operator's order once the audit log holds it.

#include "actors/inspector/inspector_actor.hpp"
#include "storage/audit_log.hpp"

namespace troupe {

struct desk_setup {
  std::string node;        ///< name of the master's node: "master"
  std::string local_agent; ///< name of the agent in this process; may be empty
  inspector_actor inspector;
  cluster_actor cluster;
  std::shared_ptr<storage::audit_log> audit;
  /// Settings that operators ordered before this start and that still hold: [{name, fields}]. Called on the
  /// desk's thread.
  std::function<value()> standing;
  bool allow_faults = false;
};

/// The newest order of each kind in the audit log that holds until it is taken back: [{name, fields, user}].
/// These are settings, and drains, for which older versions kept no facts.
value standing_orders(const std::filesystem::path& audit_file);

/// Detached, because it syncs the audit log on its thread.
desk_actor spawn_shell_desk(caf::actor_system& sys, desk_setup setup);

} // namespace troupe
