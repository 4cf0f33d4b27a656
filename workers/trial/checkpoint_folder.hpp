#pragma once
// Writes a checkpoint beside its place, makes it durable, then moves it into its place.

#include "workers/trial/report_sink.hpp"

namespace troupe::trial {

/// What a resumed run needs besides the trial's own files: the step, and the means in progress.
struct trial_position {
  std::int64_t steps = 0;
  std::int64_t batches_in_means = 0;
  std::vector<std::pair<std::string, double>>
    sums; ///< sums of training metrics since the last report, in order of their names
};

struct written_checkpoint {
  std::string uuid;
  file_list files;
};

/// Lets `save` fill the folder. Nothing remains where that fails.
result<written_checkpoint>
write_checkpoint(const std::filesystem::path& root, const trial_position& at,
                 const std::function<result<void>(const std::filesystem::path&)>& save);

result<trial_position> read_position(const std::filesystem::path& checkpoint);

} // namespace troupe::trial
