#pragma once
// What of the standings of experiments has changed, for who keeps something made of all of them.

#include "storage/journal.hpp"

namespace troupe::storage {

struct standing_changes {
  std::uint64_t version = 0;                ///< to ask with the next time
  std::vector<experiment_standing> changed; ///< in the order of their ids; what was deleted has no project
};

/// Beside `reader`, by those that keep versions. Thread-safe.
class standing_watch {
public:
  virtual ~standing_watch() = default;
  /// Since the answer with that version; 0: everything.
  virtual result<standing_changes> standings_since(std::uint64_t version) const = 0;
};

} // namespace troupe::storage
