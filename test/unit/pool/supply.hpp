#pragma once
// What a provider tells its pool, for tests.

#include "actors/pool/pool_events.hpp"

namespace troupe {

inline supply_told supply(int slots, int most, int instances = 0, int starting = 0, const char* error = "") {
  supply_told out;
  out.type = "local";
  out.instance_slots = slots;
  out.max_instances = most;
  out.instances = instances;
  out.starting = starting;
  out.error = error;
  return out;
}

} // namespace troupe
