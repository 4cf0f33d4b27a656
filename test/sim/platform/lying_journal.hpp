#pragma once
// A planted fault before the journal: it answers as if it had done what it was asked for.

#include "actors/messages.hpp"
#include "test/sim/platform/platform.hpp"

namespace troupe::sim {

bool lies(planted_fault planted);
/// What a master has in place of `journal`.
journal_actor lying_journal(caf::actor_system& sys, journal_actor journal, planted_fault planted);

} // namespace troupe::sim
