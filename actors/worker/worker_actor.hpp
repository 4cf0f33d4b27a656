#pragma once
// The shell of actors/worker/worker.hpp: the only actor of a process that runs a trial in C++. Its messages
// are the machine's events; they never leave the process, which has no middleman.

#include "actors/worker/worker.hpp"

#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>

#include <functional>

namespace troupe {

using worker_actor = caf::typed_actor<caf::reacts_to<order_arrived>, caf::reacts_to<phase_entered>,
                                      caf::replies_to<training_failed>::with<bool>,
                                      caf::reacts_to<link_refused>, caf::reacts_to<second_passed>>;

/// `orders` and what `say` uses must live longer than the actor.
worker_actor spawn_worker(caf::actor_system& sys, trial::handover& orders,
                          std::function<void(std::string)> say);

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::order_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::phase_entered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::training_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::link_refused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::second_passed)

CAF_BEGIN_TYPE_ID_BLOCK(troupe_worker, 1300)
CAF_ADD_TYPE_ID(troupe_worker, (troupe::order_arrived))
CAF_ADD_TYPE_ID(troupe_worker, (troupe::phase_entered))
CAF_ADD_TYPE_ID(troupe_worker, (troupe::training_failed))
CAF_ADD_TYPE_ID(troupe_worker, (troupe::link_refused))
CAF_ADD_TYPE_ID(troupe_worker, (troupe::second_passed))
CAF_END_TYPE_ID_BLOCK(troupe_worker)
