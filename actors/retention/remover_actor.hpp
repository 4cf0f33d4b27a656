#pragma once
// Removes the files that retention has decided on. It has a thread of its own because a disk may take long
// and people wait for other answers.

#include "actors/messages.hpp"
#include "actors/retention/collection.hpp"
#include "actors/retention/retention.hpp"

namespace troupe {

/// What one step of a collection removes: all that is stored under a key, or some files of it.
struct removal_piece {
  std::string checkpoint; ///< UUID; empty: TensorBoard files
  std::string store, key;
  std::vector<std::string> paths = {}; ///< files and folders, as the store lists them; empty: all
};

struct removal_work {
  std::vector<removal_piece> pieces;
  std::vector<removal> done; ///< result of each piece, in the same order
};

/// The piece that stands for all files of a checkpoint.
removal_piece whole(const checkpoint& saved);
/// Whether something is stored there. Also true if the store cannot be asked: the removal then reports the
/// reason.
bool is_there(const removal_piece& piece);
/// Whether the files of a checkpoint can be removed from here. Where its storage is a bucket,
/// these are only those that the package `troupe` put into the cluster's own folder.
bool can_delete(const checkpoint& saved, bool deletes_here);
/// Whether the folder of the checkpoint's store does not exist on the master's host, as where a shared
/// filesystem is mounted on the agents only. `own`: the cluster's own folder, which is never out of sight.
bool out_of_sight(const checkpoint& saved, const std::string& own);
/// The reason why a checkpoint stays that cannot be deleted.
error cannot_delete(const checkpoint& saved);

/// Removes the piece. Blocks for as long as the disk takes.
removal remove_piece(const removal_piece& piece);

/// Lowers the priority of the calling thread, which removes files or looks for them, below the threads that
/// answer people.
void stand_back(const caf::actor_system& sys);

/// Spawns the actor `remover/NUMBER`.
remover_actor spawn_remover(caf::actor_system& sys, std::size_t number);

} // namespace troupe
