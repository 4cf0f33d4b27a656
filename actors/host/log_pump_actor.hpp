#pragma once
// Carries the output of this host's tasks from their spools into the journal, in batches, one unanswered at a
// time; the spool on disk is the bound. Nothing is read while no task runs.

#include "actors/messages.hpp"

namespace troupe {

/// `pace`: between two looks at the spool of a task that runs, once it is read to its end. Lines whose
/// spool's file had to go before they were read are counted in a line of the log.
log_pump_actor spawn_log_pump(caf::actor_system& sys, agent_actor agent,
                              duration pace = std::chrono::milliseconds(100));

} // namespace troupe
