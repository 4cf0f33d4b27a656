#pragma once
// What an allocation and whoever owns it say to each other. The owner is a trial, or the task of another kind
// that the slots are for. The interface of the actors is `allocation_owner` (actors/messages.hpp).
//
//   allocation -> owner   allocation_ended, once; told again after a recovery
//                         task_checkpoint: a script has written a checkpoint and waits
//                         progress_heard: how far the script says that it is
//   owner -> allocation   checkpoint_answer for each task_checkpoint: recorded, or refused with the reason
//                         allocation_stop, where the task has to end earlier than by itself

#include "model/facts.hpp"

namespace troupe {

struct allocation_ended {
  run_id run;
  end why = end::completed;
  std::string detail;
  bool finished = false; ///< whether the training is over: completed, and not because of a stop
  int exit_code = 0;     ///< of the part that decided on the end; -1: none
  bool unplaceable =
    false;              ///< failed, as no agent is left that could hold it; nor could one hold the next run
  bool unbegun = false; ///< lost before any part of it had begun: nothing is lost with it
  MSGPACK_DEFINE_ARRAY(run, why, detail, finished, exit_code, unplaceable, unbegun)
};

} // namespace troupe
