// Facts to the rows of checkpoints, their order within a trial, and what the trial counts of them.

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
  bool fresh = !rows.checkpoints.find(uuid);
  auto& row = rows.checkpoints.make(uuid);
  if (!fresh)
    for (const auto& [path, bytes] : row.saved.files)
      trial->checkpoint_bytes -= bytes;
  row = {recorded->saved, of.trial, constant->experiment, recorded->run, recorded->at};
  for (const auto& [path, bytes] : row.saved.files)
    trial->checkpoint_bytes += bytes;
  if (fresh)
    rows.entries.emplace_back(keys::tagged('Q', of.trial.value, ++trial->checkpoint_count), uuid);
}

} // namespace troupe::storage::projections
