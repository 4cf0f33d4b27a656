#pragma once
// The actor that deletes superfluous checkpoints of experiments that have ended, and logs whose time to be
// kept is over.

#include "actors/messages.hpp"
#include "system/random.hpp"

#include <functional>

namespace troupe {

struct retention_peers {
  cluster_actor cluster; ///< gets `sweep_finished`
  journal_actor journal;
  std::shared_ptr<storage::reader> reads;
  std::string cluster_id; ///< part of the name of the folder of TensorBoard files
  /// Folder of the checkpoints whose configuration names no folder.
  std::string checkpoint_dir;
  duration look_at_logs = std::chrono::hours(1);
  /// Source of random bytes for the ids of collections.
  std::function<std::string(std::size_t)> id_bytes = random_bytes;
};

/// Detached: it reads much and removes files. An order may be repeated: a fact says that a checkpoint is
/// deleted before its first file is removed, and a sweep finishes what an earlier one left on the disk.
retention_actor spawn_retention(caf::actor_system& sys, retention_peers peers);

} // namespace troupe
