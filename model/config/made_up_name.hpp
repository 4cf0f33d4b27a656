#pragma once
// A name for an experiment without one: "Experiment (calm-amber-otter)".

#include <cstdint>
#include <string>

namespace troupe::config {

/// The same bits give the same name.
std::string made_up_name(std::uint64_t bits);

} // namespace troupe::config
