#pragma once
// Whose turn it is. A policy sees the queue as indexes that the pool keeps up to date, never the whole pool,
// and decides nothing about where: that is fitting's.

#include "actors/pool/pool_state.hpp"

#include <functional>
#include <memory>

namespace troupe {

using pool_jobs = std::map<experiment_id, pool_job, std::less<experiment_id>,
                           node_allocator<std::pair<const experiment_id, pool_job>>>;

/// What became of the run whose turn it was.
enum class turn_end {
  placed,  ///< it holds slots, or waits for a limit: the others go on
  claimed, ///< it waits for slots that others give back
  blocked, ///< it does not fit, so neither do those of its shape behind it
};

struct pool_turn {
  pool_run* run = nullptr; ///< null: nobody's
  bool backfill = false;   ///< it would start although a more urgent one waits
};

/// Who may be asked for slots, in the order in which they are taken.
class victim_source {
public:
  virtual ~victim_source() = default;
  virtual pool_run* next() = 0;
  /// When somebody who was passed over has run long enough.
  std::optional<time_point> later() const { return later_; }

protected:
  void too_young(time_point until) { later_ = later_ ? std::min(*later_, until) : until; }
  std::optional<time_point> later_;
};

/// One pass over the queue: next(), then ended(), until nobody's turn is left. Not thread-safe: its pool owns
/// it.
class pool_policy {
public:
  virtual ~pool_policy() = default;
  /// `slots`: all that the pool may give out.
  virtual void begin(run_queue& queue, pool_jobs& jobs, int slots) = 0;
  /// What a job holds, asks for or may have is another, or may be soon: before the next begin().
  virtual void changed(pool_job& job) = 0;
  virtual void forget(pool_job& job) = 0; ///< the job ends, or will have been submitted at another time
  virtual pool_turn next() = 0;
  virtual void ended(const pool_turn& turn, turn_end how) = 0;
  /// Whose turn comes first, as things are.
  virtual bool before(const pool_run& a, const pool_run& b) const = 0;
  virtual bool job_before(const pool_job& a, const pool_job& b) const = 0; ///< the same, for all their runs
  /// Whether `who` may take slots that are kept for `keeper`.
  virtual bool overrides(const pool_run& who, const pool_run& keeper) const = 0;
  /// Who gives slots back for `who`; null: nobody. `running`: all that may be preempted, by rank.
  virtual std::unique_ptr<victim_source> victims(const pool_run& who, const ranked_runs& running,
                                                 pool_jobs& jobs, time_point now) const = 0;
  virtual bool passes() const = 0; ///< whether one that does not fit is passed by others
  virtual bool ranked() const = 0; ///< whether the order is that of ranks, whoever holds what
};

std::unique_ptr<pool_policy> make_policy(const pool_settings& settings);

} // namespace troupe
