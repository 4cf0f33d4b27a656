#pragma once
// The only writer of the database: groups what arrives during a sync into the next commit.

#include "actors/journal/log_watch.hpp"
#include "actors/messages.hpp"

#include <functional>
#include <memory>

namespace troupe {

struct journal_peers {
  /// Hears of each commit, in the journal's thread; must be quick.
  std::function<void(const storage::commit_summary&)> on_commit;
  /// The database can take no more (EIO on a sync): the process has to end.
  std::function<void(const error&)> on_fatal;
  /// Where durable validations go.
  std::function<void(storage::recorded_validation)> on_validation;
  /// What is looked for in lines before they are stored, and who takes what was found; null: nothing.
  std::shared_ptr<log_watch> lines;
  std::function<cluster_actor()> cluster;
};

/// Detached: a sync blocks only its own thread.
journal_actor spawn_journal(caf::actor_system& sys, std::shared_ptr<storage::journal> journal,
                            journal_peers peers);

} // namespace troupe
