#pragma once
// Event files as TensorBoard reads them: records with checksums, each a serialized message. Only what scalars
// need is written, by hand.

#include "model/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::workers {

/// CRC-32C, as records have it: rotated, with a constant added.
std::uint32_t masked_checksum(std::string_view bytes);

/// What every file begins with.
std::string event_file_header(time_point at);
/// Points of earlier files at `step` and later are forgotten by who reads them all.
std::string event_restart(time_point at, std::int64_t step);
/// One point for each tag.
std::string event_scalars(time_point at, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values);

/// Numbers of a report's msgpack map, by the names that Determined's library gives them: "Determined/loss",
/// of a validation "Determined/val_loss"; of a map in it "Determined/loss/train". What is no number is left
/// out.
std::vector<std::pair<std::string, double>> event_values(std::string_view metrics, bool validation);

} // namespace troupe::workers
