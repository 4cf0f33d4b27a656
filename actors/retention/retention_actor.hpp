#pragma once
// The actor that deletes: superfluous checkpoints of experiments that have ended, and logs whose time is
// over.

#include "actors/messages.hpp"
#include "system/random.hpp"

#include <functional>

namespace troupe {

struct retention_peers {
  cluster_actor cluster; ///< hears sweep_finished
  journal_actor journal;
  std::shared_ptr<storage::reader> reads;
  std::string cluster_id;     ///< names the folder of TensorBoard files
  std::string checkpoint_dir; ///< where checkpoints lie whose configuration names no folder
  duration look_at_logs = std::chrono::hours(1);
  std::function<std::string(std::size_t)> id_bytes = random_bytes; ///< bytes of the ids of collections
};

/// Detached: it reads much and removes files. An order is carried out again by whoever repeats it: a fact
/// says that a checkpoint is deleted before its first file goes, and a sweep finishes what an earlier one
/// left on the disk.
retention_actor spawn_retention(caf::actor_system& sys, retention_peers peers);

} // namespace troupe
