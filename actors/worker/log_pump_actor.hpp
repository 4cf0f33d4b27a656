#pragma once
// Carries the output of this host's tasks from their spools into the journal, in batches, one unanswered at a time;
// the spool on disk is the bound. Nothing is read while no task runs.

#include "actors/messages.hpp"

namespace troupe {

log_pump_actor spawn_log_pump(caf::actor_system& sys, agent_actor agent);

} // namespace troupe
