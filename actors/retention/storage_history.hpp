#pragma once
// In which storage a checkpoint of an experiment lies: each continuation may have changed
// `checkpoint_storage`, and what was saved before stays where it is.

#include "storage/journal.hpp"

#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// The number of a continuation whose storage is meant, 0 for the experiment as it was created; none: the
/// storage that its configuration names now.
using storage_number = std::optional<std::uint32_t>;

class storage_history {
public:
  /// Reads the facts of all experiments if this one was ever continued, as no row has the configurations that
  /// were replaced.
  static result<storage_history> of(const storage::reader& reads, const experiment_row& row);

  /// The storage in which the run of the checkpoint saved. Storages that differ only in their secrets, or in
  /// how many checkpoints are kept, are the same one, and the newest secrets count.
  result<storage_number> of_checkpoint(const storage::reader& reads, const checkpoint_row& saved);
  /// A configuration with that storage; null if the experiment never had it.
  value config(storage_number of) const;
  /// The master itself removes files there; see retention_policy.
  bool deletes_here(storage_number of) const;
  /// All its storages in buckets that only their own client reaches.
  std::vector<storage_number> buckets() const;

private:
  std::map<std::uint32_t, value> configs_; ///< by the number of the continuation since which they hold
  std::map<trial_id, std::vector<trial_continued>> trials_;
};

} // namespace troupe
