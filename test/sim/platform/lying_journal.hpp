#pragma once
// A planted fault in front of the journal: it acknowledges what it was asked for without doing it.

#include "actors/messages.hpp"
#include "test/sim/platform/platform.hpp"

namespace troupe::sim {

bool lies(planted_fault planted);
/// The actor that a master uses in place of `journal`.
journal_actor lying_journal(caf::actor_system& sys, journal_actor journal, planted_fault planted);

} // namespace troupe::sim
