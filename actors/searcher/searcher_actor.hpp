#pragma once
// The actor of one search: it owns the searcher and answers its experiment, one event at a time.

#include "actors/messages.hpp"
#include "searchers/searcher.hpp"

#include <functional>

namespace troupe {

struct searcher_setup {
  experiment_id experiment;
  value config;          ///< the `searcher` section
  value hyperparameters; ///< the `hyperparameters` section
  std::uint64_t seed = 0;
  std::string snapshot;                         ///< snapshot of the searcher; empty: none
  std::vector<searchers::search_event> history; ///< events that were answered after the snapshot; they are
                                                ///< replayed, and their actions are dropped
  /// For a searcher that is made again: reads `snapshot` and `history` on the searcher's own thread.
  std::function<result<void>(searcher_setup&)> recall;
};

/// Detached, because some algorithms compute long. Where the configuration or history cannot be used, every
/// event is answered with that fault.
searcher_actor spawn_searcher(caf::actor_system& sys, searcher_setup setup);

search_ask to_ask(const searchers::search_event& event);

} // namespace troupe
