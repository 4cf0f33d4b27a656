#pragma once
// Event files as TensorBoard reads them: records with checksums, each a serialized message. This writes by
// hand only the messages that scalars need.

#include "model/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::workers {

/// CRC-32C as records hold it: rotated, with a constant added.
std::uint32_t masked_checksum(std::string_view bytes);

/// The first record of every file.
std::string event_file_header(time_point at);
/// Makes a reader of all files forget earlier files' points at `step` and later.
std::string event_restart(time_point at, std::int64_t step);
/// One point for each tag.
std::string event_scalars(time_point at, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values);

/// The numbers in a report's msgpack map, under the names that Determined's library gives them:
/// "Determined/loss", in a validation "Determined/val_loss", in a nested map "Determined/loss/train". Leaves
/// out values that are not numbers.
std::vector<std::pair<std::string, double>> event_values(std::string_view metrics, bool validation);

} // namespace troupe::workers
