#pragma once
// The messages between an allocation and its owner, which is a trial or the task of another kind that uses
// the slots. The interface of the actors is `allocation_owner` (actors/messages.hpp).
//
//   allocation -> owner   allocation_ended: once; sent again after a recovery
//                         task_checkpoint: a script has written a checkpoint and waits
//                         progress_heard: the progress that the script reports
//   owner -> allocation   checkpoint_answer: for each task_checkpoint, recorded or refused with the reason
//                         allocation_stop: where the task has to end before it ends by itself

#include "model/facts.hpp"

namespace troupe {

struct allocation_ended {
  run_id run;
  end why = end::completed;
  std::string detail;
  bool finished = false; ///< whether the training is over: completed, and not because of a stop
  int exit_code = 0;     ///< exit code of the part that decided on the end; -1: none
  /// The run failed, as no agent is left that could hold it, and no agent could hold the next run either.
  bool unplaceable = false;
  bool unbegun = false; ///< the run was lost before any part of it had begun, so that no work is lost with it
  TROUPE_PACKED(run, why, detail, finished, exit_code, unplaceable, unbegun)
};

} // namespace troupe
