#pragma once
// An experiment or the queue as it was after one fact. The facts up to there are folded again in memory.

#include "runtime/api/route.hpp"

#include <list>
#include <mutex>

namespace troupe::api {

/// Thread-safe. Keeps the facts of the experiments that were asked for last, and a few past states of them.
class past_shelf {
public:
  using empty_journal = std::function<std::unique_ptr<storage::journal>()>;
  explicit past_shelf(empty_journal make) : make_(std::move(make)) {}

  /// One fact of an experiment, of one of its trials or of their runs.
  struct moment {
    std::uint64_t sequence = 0;
    time_point at;
    const char* type = "";
    trial_id trial; ///< 0: the fact is of the experiment itself
    run_id run;     ///< 0: the fact is not of one run
    value told;     ///< "on": where a run was placed; "why" or "state": how a run or its trial ended
  };
  result<std::vector<moment>> history(const services& now, const experiment_row& of);

  struct past {
    std::shared_ptr<const services> parts; ///< services whose storage is that of the past
    time_point at;
  };
  /// The experiment after its last fact with a sequence of at most `sequence`. Fails with errc::invalid where
  /// the experiment did not exist yet.
  result<past> after(const std::shared_ptr<const services>& now, const experiment_row& of,
                     std::uint64_t sequence);

  /// The runs that waited for slots after the fact `sequence` of the cluster, by pool and age: {"waiting",
  /// "sequence", "at"}. What only the memory of pools held, the turn of each run and why it waited, is null.
  /// Runs of experiments that were deleted since are missing.
  result<value> queue_after(const services& now, std::uint64_t sequence);

private:
  struct kept_fact {
    moment what;
    storage::committed_fact fact;
  };
  struct story {
    std::mutex mutex;
    std::uint64_t up_to = 0; ///< sequence up to which every fact of the cluster was looked at
    std::vector<kept_fact> facts;
    std::map<task_id, bool> ours;
  };
  std::shared_ptr<story> story_of(experiment_id of);
  static result<void> read_on(story& of, const services& now, const experiment_row& row);
  result<std::unique_ptr<storage::journal>> open_then(const services& now, time_point at,
                                                      std::uint64_t sequence) const;

  empty_journal make_;
  std::mutex mutex_;
  std::list<std::pair<experiment_id, std::shared_ptr<story>>> stories_; ///< newest use first
  std::list<std::pair<std::pair<experiment_id, std::uint64_t>, past>> pasts_;
  std::list<std::pair<std::uint64_t, value>> queues_; ///< newest first
};

/// Wraps a handler: with `at=SEQUENCE` it answers as it would have answered after that fact of the
/// experiment. The call names the experiment in its path, by `experiment`, or by the first of `trials`.
handler as_of(handler run);

} // namespace troupe::api
