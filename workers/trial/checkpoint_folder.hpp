#pragma once
// A checkpoint is written beside its place, made durable, then moved into it.

#include "workers/trial/report_sink.hpp"

namespace troupe::trial {

/// What a run has to know again beside the trial's own files: the step, and the means under way.
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

/// `save` fills the folder; nothing remains where it fails.
result<written_checkpoint>
write_checkpoint(const std::filesystem::path& root, const trial_position& at,
                 const std::function<result<void>(const std::filesystem::path&)>& save);

result<trial_position> read_position(const std::filesystem::path& checkpoint);

} // namespace troupe::trial
