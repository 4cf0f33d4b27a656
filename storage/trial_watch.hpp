#pragma once
// Which trials have changed, for who keeps something made of their rows.

#include "model/ids.hpp"

#include <cstdint>
#include <vector>

namespace troupe::storage {

struct trial_changes {
  std::uint64_t version = 0;     ///< to ask with the next time
  bool all = false;              ///< any trial may have changed: what happened since then is no longer known
  std::vector<trial_id> changed; ///< in the order of their ids, each once; deleted ones too
};

/// Beside `reader`, by those that keep versions. Thread-safe.
class trial_watch {
public:
  virtual ~trial_watch() = default;
  /// Since the answer with that version; 0: all. Rows that are read after this answer are at least as new.
  virtual trial_changes trials_since(std::uint64_t version) const = 0;
};

} // namespace troupe::storage
