#pragma once
// Removes what retention has decided on, on a thread of its own: a disk may take long, and people wait for
// others.

#include "actors/messages.hpp"
#include "actors/retention/collection.hpp"

namespace troupe {

/// What one step of a collection removes: all that is stored under a key, or some files of it.
struct removal_piece {
  std::string checkpoint; ///< UUID; empty: TensorBoard files
  std::string store, key;
  std::vector<std::string> paths = {}; ///< none: all
};

struct removal_work {
  std::vector<removal_piece> pieces;
  std::vector<removal> done; ///< what came of each, in the same order
};

/// All of a checkpoint.
removal_piece whole(const checkpoint& saved);
/// Also where its store cannot be asked: what is in the way is said when it is to be removed.
bool is_there(const removal_piece& piece);
/// Why a checkpoint that is not `removable` (retention.hpp) stays.
error cannot_delete(const checkpoint& saved);

/// For as long as the disk takes.
removal remove_piece(const removal_piece& piece);

/// The calling thread, which removes files or looks for them, comes after those that answer people.
void stand_back(const caf::actor_system& sys);

/// The actor is `remover/NUMBER`.
remover_actor spawn_remover(caf::actor_system& sys, std::size_t number);

} // namespace troupe
