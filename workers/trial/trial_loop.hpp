#pragma once
// Drives one trial on one rank: batches, means, validations, checkpoints, and the end.

#include "workers/trial/checkpoint_folder.hpp"
#include "workers/trial/progress_line.hpp"

namespace troupe::trial {

/// All ranks do the same: what one rank alone knows (a stop, that a checkpoint is due) is agreed on through
/// the group.
class trial_loop {
public:
  trial_loop(trial_program& trial, collective& group, report_sink& sink, progress_line& line)
      : trial_(trial), group_(group), sink_(sink), line_(line) {}

  /// Builds, loads and trains until the schedule's end or a stop.
  result<void> run(trial_context& context, const std::function<result<void>()>& check_hparams);

private:
  result<void> load();
  result<void> train(std::int64_t step);
  result<void> report();
  result<void> validate();
  result<void> checkpoint();
  result<bool> is_stopped();
  result<metrics> mean_over_ranks(const std::vector<std::pair<std::string, double>>& sums, double divisor,
                                  const char* whose);

  trial_program& trial_;
  collective& group_;
  report_sink& sink_;
  progress_line& line_;
  schedule plan_;
  trial_position at_;
  std::int64_t checkpoint_at_ = -1; // steps of the newest checkpoint of this run
};

} // namespace troupe::trial
