// Facts to the places of checkpoints, their order within a trial, and what the trial counts of them.

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {

void fold_checkpoint(const fact& x, const subject& of, tables& rows) {
  const auto* recorded = std::get_if<checkpoint_recorded>(&x);
  if (!recorded)
    return;
  const auto* constant = rows.trials.find(of.trial);
  auto* trial = rows.trial_states.change(of.trial);
  if (!constant || !trial)
    return;
  const auto& uuid = recorded->saved.uuid;
  std::int64_t total = 0;
  for (const auto& [path, bytes] : recorded->saved.files)
    total += bytes;
  bool fresh = !rows.checkpoints.find(uuid);
  auto& place = rows.checkpoints.make(uuid);
  trial->checkpoint_bytes += total - place.bytes;
  place = {of.trial, constant->experiment, of.number, total};
  if (fresh)
    rows.entries.emplace_back(keys::tagged('Q', of.trial.value, ++trial->checkpoint_count), uuid);
}

} // namespace troupe::storage::projections
