#pragma once
// Drives one trial on one rank: batches, means, validations, checkpoints, and the end.

#include "workers/trial/checkpoint_folder.hpp"
#include "workers/trial/conductor.hpp"
#include "workers/trial/progress_line.hpp"

namespace troupe::trial {

/// What a run keeps when its group of ranks changes and the trial goes back to the last checkpoint.
struct run_memory {
  std::int64_t reported = 0, validated = 0; ///< steps up to which that was done: nothing is told twice
  std::string checkpoint; ///< uuid of this run's newest checkpoint, known to every rank; may be empty
  std::int64_t checkpoint_step = -1;
  std::uint64_t validations = 0, checkpoints = 0; ///< orders besides the schedule that were followed
};

/// Shares what each rank knows with all ranks: after a rebuild these may know different things.
result<void> share_memory(collective& group, run_memory& memory);

/// All ranks do the same. What only one rank knows (that it should stop, that a checkpoint is due) is agreed
/// on through the group.
class trial_loop {
public:
  trial_loop(trial_program& trial, collective& group, report_sink& sink, progress_line& line,
             conductor& leader, run_memory& memory, std::uint32_t generation = 0)
      : trial_(trial), group_(group), sink_(sink), line_(line), leader_(leader), memory_(memory),
        generation_(generation) {}

  /// Builds, loads and trains until the schedule's end or a stop.
  result<void> run(trial_context& context, const std::function<result<void>()>& check_hparams);

private:
  result<void> load();
  result<void> train(std::int64_t step);
  result<void> report();
  result<void> validate();
  result<void> checkpoint();
  /// What the ranks have agreed on from the orders that any of them has heard.
  struct agreed {
    bool stop = false;
    std::uint64_t validations = 0, checkpoints = 0;
    std::int64_t until = 0;
  };
  result<agreed> agree();
  result<void> wait_for_orders();
  result<metrics> mean_over_ranks(const std::vector<std::pair<std::string, double>>& sums, double divisor,
                                  const char* whose);

  trial_program& trial_;
  collective& group_;
  report_sink& sink_;
  progress_line& line_;
  conductor& leader_;
  run_memory& memory_;
  std::uint32_t generation_;
  bool training_ = false; // whether the worker was told so
  schedule plan_;
  trial_position at_;
  std::int64_t checkpoint_at_ = -1; // steps of this run's newest checkpoint
};

} // namespace troupe::trial
