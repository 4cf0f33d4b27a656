#pragma once
// Which standings of experiments have changed, for a caller that keeps something made of all of them.

#include "storage/journal.hpp"

namespace troupe::storage {

struct standing_changes {
  std::uint64_t version = 0;                ///< to be given to the next call
  std::vector<experiment_standing> changed; ///< by id; a deleted experiment has no project
};

/// A second interface of those readers that keep versions. Thread-safe.
class standing_watch {
public:
  virtual ~standing_watch() = default;
  /// What has changed since the answer with that version; 0 asks for everything.
  virtual result<standing_changes> standings_since(std::uint64_t version) const = 0;
};

} // namespace troupe::storage
