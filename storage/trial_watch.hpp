#pragma once
// Which trials have changed, for who keeps something made of their rows.

#include "model/ids.hpp"
#include "model/result.hpp"

#include <cstdint>
#include <map>
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
  /// Those with new reports, which change nothing of a row but `reported_steps`; versions of their own.
  virtual trial_changes reports_since(std::uint64_t version) const = 0;
  /// `reported_steps` of these trials; those without a report are missing.
  virtual result<std::map<trial_id, std::int64_t>> reported_steps(const std::vector<trial_id>& of) const = 0;
};

} // namespace troupe::storage
