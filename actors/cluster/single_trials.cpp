#include "actors/cluster/single_trials.hpp"

namespace troupe {

result<bool> may_archive(const trial_row& trial, const experiment_row& of, bool archived) {
  if (of.archived)
    return error{errc::conflict, "Run is part of archived Search (id: '" + to_string(of.id) + "')."};
  if (trial.archived == archived)
    return false;
  if (!terminal(trial.state))
    return error{errc::conflict, "Run is not in terminal state."};
  return true;
}

result<void> may_delete(const trial_row& trial, const experiment_row& of) {
  if (!terminal(trial.state))
    return error{errc::conflict, "Run is not in a terminal state."};
  if (of.state == experiment_state::deleting)
    return error{errc::conflict,
                 "Run is part of a Search (id: '" + to_string(of.id) + "') that is being deleted."};
  if (!terminal(of.state))
    return error{errc::conflict, "Run is part of a Search (id: '" + to_string(of.id) +
                                   "') that has not ended: it may still need the run."};
  return {};
}

} // namespace troupe
