// Folds facts to the places of checkpoints, to the chain of each trial's checkpoints, and to the trial's
// counts.

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {

namespace {

std::int64_t sum(const std::map<std::string, std::int64_t>& files) {
  std::int64_t total = 0;
  for (const auto& [path, bytes] : files)
    total += bytes;
  return total;
}

/// Never falls below zero: an older build counted deleted checkpoints too, and its rows stand.
void count(std::uint64_t& of, int more) {
  if (more >= 0 || of > 0)
    of += static_cast<std::uint64_t>(more);
}

void change(const checkpoint_changed& x, const subject& of, tables& rows) {
  auto* place = rows.checkpoints.change(x.uuid);
  auto* trial = rows.trial_states.change(of.trial());
  if (!place || !trial || place->trial != of.trial())
    return;
  const auto left = sum(x.files);
  const int more = int(place->deleted) - int(x.files.empty());
  trial->checkpoint_bytes += left - place->bytes;
  count(trial->checkpoint_count, more);
  if (auto* experiment = rows.experiment_states.change(place->experiment)) {
    experiment->checkpoint_bytes += left - place->bytes;
    count(experiment->checkpoint_count, more);
  }
  place->bytes = left;
  place->changed = of.number + 1;
  place->deleted = x.files.empty();
}

} // namespace

void fold_checkpoint(const fact& x, const subject& of, tables& rows) {
  if (const auto* changed = std::get_if<checkpoint_changed>(&x))
    return change(*changed, of, rows);
  if (const auto* said = std::get_if<checkpoint_described>(&x)) {
    if (auto* place = rows.checkpoints.change(said->uuid); place && place->trial == of.trial())
      place->described = of.number + 1;
    return;
  }
  const auto* recorded = std::get_if<checkpoint_recorded>(&x);
  if (!recorded)
    return;
  const auto* constant = rows.trials.find(of.trial());
  auto* trial = rows.trial_states.change(of.trial());
  if (!constant || !trial)
    return;
  const auto& uuid = recorded->saved.uuid;
  const auto total = sum(recorded->saved.files);
  const auto* known = rows.checkpoints.find(uuid);
  if (known && known->trial != of.trial()) {
    if (const auto* holder = rows.trials.find(known->trial); holder && holder->id)
      return;        // the uuid belongs to another trial, and stays so
    known = nullptr; // that trial was deleted, and this checkpoint with it
  }
  const bool fresh = !known, counts = fresh || known->deleted;
  auto& place = rows.checkpoints.make(uuid);
  if (fresh)
    place = {};
  trial->checkpoint_bytes += total - place.bytes;
  if (auto* experiment = rows.experiment_states.change(constant->experiment)) {
    experiment->checkpoint_bytes += total - place.bytes;
    experiment->checkpoint_count += counts;
  }
  const auto before = fresh ? trial->newest_recorded : place.before;
  place = {of.trial(), constant->experiment, of.number, total, 0, false, before, place.described};
  trial->checkpoint_count += counts;
  if (fresh)
    trial->newest_recorded = of.number + 1;
}

} // namespace troupe::storage::projections
