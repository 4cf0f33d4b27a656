#pragma once
// A policy decides whose turn it is to get slots. It sees the queue as indexes that the pool keeps up to
// date, never the whole pool. Which agents hold a run is decided in fitting.hpp.

#include "actors/pool/pool_state.hpp"

#include <functional>
#include <memory>

namespace troupe {

using pool_jobs = std::map<experiment_id, pool_job, std::less<experiment_id>,
                           node_allocator<std::pair<const experiment_id, pool_job>>>;

/// The outcome of a run's turn.
enum class turn_end {
  placed,  ///< the run holds slots, or waits for a limit: the runs behind it have their turns
  claimed, ///< the run waits for slots that preempted runs will release
  blocked, ///< the run does not fit, so the runs of its shape behind it do not fit either
};

struct pool_turn {
  pool_run* run = nullptr; ///< null: no run has a turn any more
  bool backfill = false;   ///< the run would start although a more urgent one waits
};

/// The runs that may be preempted, in the order in which they are preempted.
class victim_source {
public:
  virtual ~victim_source() = default;
  virtual pool_run* next() = 0;
  /// When the first of the runs that were left out, as they have not run for min_run, may be preempted. Only
  /// runs that `helps` accepts at that moment count; without `helps`, all.
  std::optional<time_point> later() const { return later_; }
  std::function<bool(const pool_run&)> helps;
  std::function<bool(const pool_run&)> skips; ///< runs to be left out, in a pool of shares; empty: none

protected:
  void too_young(const pool_run& run, time_point until) {
    if (!helps || helps(run))
      later_ = std::min(later_.value_or(time_point::max()), until);
  }

private:
  std::optional<time_point> later_;
};

/// One pass over the queue is begin(), and then next() and ended() in turn until next() gives no run. Not
/// thread-safe: the pool owns its policy.
class pool_policy {
public:
  virtual ~pool_policy() = default;
  /// `slots`: number of slots that the pool may give out.
  virtual void begin(run_queue& queue, pool_jobs& jobs, int slots) = 0;
  /// To be called before the next begin() when the slots that a job holds, asks for or may have change.
  virtual void changed(pool_job& job) = 0;
  virtual void forget(pool_job& job) = 0; ///< to be called before the job ends or its place in age changes
  /// The jobs whose shares have grown since the last call, so that they may preempt others now.
  virtual std::vector<pool_job*> risen() = 0;
  virtual pool_turn next() = 0;
  virtual void ended(const pool_turn& turn, turn_end how) = 0;
  /// Whether the turn of `a` comes before the turn of `b`, in the present state.
  virtual bool before(const pool_run& a, const pool_run& b) const = 0;
  virtual bool job_before(const pool_job& a, const pool_job& b) const = 0; ///< the same for all their runs
  /// What the job has, as its turn counts it: jobs of equal standing have their turns by age. Only in a pool
  /// of turns.
  using standing = std::pair<int, double>;
  static constexpr int only_leftovers = 2; ///< first of the standing of a job of weight 0 in a fair pool
  virtual standing standing_of(const pool_job& job) const = 0;
  /// The first run that competes and that `may` accepts, by turn as of begin(); null: none. Only in a pool of
  /// turns.
  virtual pool_run* first(const std::function<bool(const pool_run&)>& may) const = 0;
  /// Whether `who` may take slots that are kept for `keeper`.
  virtual bool overrides(const pool_run& who, const pool_run& keeper) const = 0;
  /// Whether victims() may give runs for `who`, in the present state.
  virtual bool may_preempt(const pool_run& who) const = 0;
  /// The runs that may be preempted for `who`; null: none. `running`: all runs that may be preempted, by
  /// rank.
  virtual std::unique_ptr<victim_source> victims(const pool_run& who, const ranked_runs& running,
                                                 pool_jobs& jobs, time_point now) const = 0;
  virtual bool passes() const = 0; ///< whether runs behind a run that does not fit may be served
  virtual bool ranked() const = 0; ///< whether ranks alone give the order, not what jobs hold
};

std::unique_ptr<pool_policy> make_policy(const pool_settings& settings);

} // namespace troupe
