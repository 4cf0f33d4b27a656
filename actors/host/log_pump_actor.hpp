#pragma once
// Carries the output of this host's tasks from their spools into the journal, in batches, one unanswered at a
// time. What waits for the journal stays in the spool on disk, whose size is bounded. Nothing is read while
// no task runs.

#include "actors/messages.hpp"

namespace troupe {

/// `pace`: time between two looks at the spool of a running task that was read to its end. If files of a
/// spool were removed before they were read, a line of the log says how many lines are missing.
log_pump_actor spawn_log_pump(caf::actor_system& sys, agent_actor agent,
                              duration pace = std::chrono::milliseconds(100));

} // namespace troupe
