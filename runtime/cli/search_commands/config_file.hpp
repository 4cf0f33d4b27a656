#pragma once
// The two sections of an experiment configuration that a search needs.

#include "model/value.hpp"

#include <iosfwd>
#include <optional>
#include <string>

namespace troupe::cli {

struct search_config {
  value searcher, hyperparameters;
};

/// Reads and completes the file (`-` for `in`); prints every fault to `err` with its place.
std::optional<search_config> read_search_config(const std::string& path, std::istream& in, std::ostream& err);

} // namespace troupe::cli
