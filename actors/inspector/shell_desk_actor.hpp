#pragma once
// Where the shell's commands arrive on the master: it asks the inspectors of all nodes, joins what they
// answer, and carries out what an operator orders, noted in the audit log before it is done.

#include "actors/inspector/inspector_actor.hpp"
#include "storage/audit_log.hpp"

namespace troupe {

struct desk_setup {
  std::string node;        ///< the master's own, "master"
  std::string local_agent; ///< the agent in this process, or empty
  inspector_actor inspector;
  cluster_actor cluster;
  std::shared_ptr<storage::audit_log> audit;
  /// Settings that operators ordered before this start and that still hold, [{name, fields}]; asked on the
  /// desk's thread.
  std::function<value()> standing;
  bool allow_faults = false;
};

/// The orders in the audit log that hold until they are taken back, each the latest, [{name, fields, user}]:
/// settings, and drains, of which older versions kept no facts.
value standing_orders(const std::filesystem::path& audit_file);

/// Detached: the audit log is synced on its thread.
desk_actor spawn_shell_desk(caf::actor_system& sys, desk_setup setup);

} // namespace troupe
