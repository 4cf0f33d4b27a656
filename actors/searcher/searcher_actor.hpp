#pragma once
// The actor of one search: it owns the searcher and answers its experiment, one event at a time.

#include "actors/messages.hpp"
#include "searchers/searcher.hpp"

#include <functional>

namespace troupe {

struct searcher_setup {
  experiment_id experiment;
  value config;          ///< the `searcher` section
  value hyperparameters; ///< the section of that name
  std::uint64_t seed = 0;
  std::string snapshot;                         ///< snapshot of the searcher; empty: none
  std::vector<searchers::search_event> history; ///< answered since; replayed, its actions are dropped
  /// Reads `snapshot` and `history`, on the searcher's own thread, where it is set: of one that is made
  /// again.
  std::function<result<void>(searcher_setup&)> recall;
};

/// Detached: some algorithms compute long. A configuration or history that cannot be used answers every event
/// with its fault.
searcher_actor spawn_searcher(caf::actor_system& sys, searcher_setup setup);

search_ask to_ask(const searchers::search_event& event);

} // namespace troupe
