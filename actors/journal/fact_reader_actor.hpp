#pragma once
// Reads facts of the journal for actors that share the scheduler's threads. It has a thread of its own, so
// that none of the shared threads waits for a disk.

#include "actors/messages.hpp"

namespace troupe {

/// The actor answers one question and then ends.
fact_reader_actor spawn_fact_reader(caf::actor_system& sys, std::shared_ptr<storage::reader> reads);

} // namespace troupe
