#pragma once
// Reads facts of the journal for actors that share the scheduler's threads: it has a thread of its own, so
// that none of theirs waits for a disk.

#include "actors/messages.hpp"

namespace troupe {

/// Answers one question, and ends.
fact_reader_actor spawn_fact_reader(caf::actor_system& sys, std::shared_ptr<storage::reader> reads);

} // namespace troupe
