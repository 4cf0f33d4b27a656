#pragma once
// Verbs about who runs when: pools, the queue, drained agents and disabled slots, reasons.

#include "runtime/cli/arguments.hpp"

namespace troupe::cli::verbs {

int pool_list(session&, const arguments&);
int pool_describe(session&, const arguments&);
int pool_replay(session&, const arguments&);
int queue_list(session&, const arguments&);
int agent_enable(session&, const arguments&);
int agent_disable(session&, const arguments&);
int slot_enable(session&, const arguments&);
int slot_disable(session&, const arguments&);
// explain_verbs.cpp
int explain_trial(session&, const arguments&);
int explain_allocation(session&, const arguments&);
int explain_experiment(session&, const arguments&);
int explain_task(session&, const arguments&);

} // namespace troupe::cli::verbs
