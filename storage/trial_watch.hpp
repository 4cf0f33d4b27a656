#pragma once
// Which trials have changed, for a caller that keeps something made of their rows.

#include "model/ids.hpp"
#include "model/result.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace troupe::storage {

struct trial_changes {
  std::uint64_t version = 0;     ///< to be given to the next call
  bool all = false;              ///< what has changed is not known any more: any trial may have
  std::vector<trial_id> changed; ///< in the order of their ids, each once; deleted trials are included
};

/// A second interface of those readers that keep versions. Thread-safe.
class trial_watch {
public:
  virtual ~trial_watch() = default;
  /// Which trials have changed since the answer with that version; 0 asks for all. Rows that are read after
  /// this answer are at least as new.
  virtual trial_changes trials_since(std::uint64_t version) const = 0;
  /// Which trials have new reports, which change only `reported_steps` of a row. These versions are counted
  /// apart.
  virtual trial_changes reports_since(std::uint64_t version) const = 0;
  /// The `reported_steps` of these trials, without those that have no report.
  virtual result<std::map<trial_id, std::int64_t>> reported_steps(const std::vector<trial_id>& of) const = 0;
};

} // namespace troupe::storage
