#pragma once
// Which facts about people and places a caller is told of where roles decide nothing: only what the
// operations show the same caller. Where roles decide, the veil hides facts.

#include "runtime/api/route.hpp"

namespace troupe::api {

/// Says whether the caller may know of a fact; empty: of all facts.
using fact_choice = std::function<bool(const storage::committed_fact&)>;

fact_choice told_to(const call& c);

} // namespace troupe::api
