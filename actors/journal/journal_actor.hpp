#pragma once
// The only writer of the database: messages that arrive during a sync share the next commit.

#include "actors/journal/log_watch.hpp"
#include "actors/messages.hpp"

#include <functional>
#include <memory>

namespace troupe {

struct journal_peers {
  /// Called after each commit, on the journal's thread; must be fast.
  std::function<void(const storage::commit_summary&)> on_commit;
  /// Called when the database takes no more (EIO on a sync): the process has to end.
  std::function<void(const error&)> on_fatal;
  /// Gets each validation once it is durable.
  std::function<void(storage::recorded_validation)> on_validation;
  /// Finds patterns in lines before they are stored; `cluster` gets what was found. Null: nothing is looked
  /// for.
  std::shared_ptr<log_watch> lines;
  std::function<cluster_actor()> cluster;
};

/// Detached: a sync blocks only its own thread.
journal_actor spawn_journal(caf::actor_system& sys, std::shared_ptr<storage::journal> journal,
                            journal_peers peers);

} // namespace troupe
