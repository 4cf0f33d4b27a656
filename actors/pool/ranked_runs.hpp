#pragma once
// The order of the runs of a pool, and an index of runs in that order.

#include "actors/machine.hpp"
#include "actors/pool/node_memory.hpp"

#include <absl/container/btree_set.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

struct pool_run;
struct pool_job;

/// The order of jobs: the smaller rank is served first.
struct job_rank {
  int priority = 42;
  time_point submitted;
  friend auto operator<=>(const job_rank&, const job_rank&) = default;
};
/// The order of runs whose jobs have the same rank.
struct start_rank {
  time_point started;
  std::uint64_t arrival = 0; ///< number of the arrival, for runs that did not say when they started; else 0
  std::string label;
  allocation_id id;
  friend auto operator<=>(const start_rank&, const start_rank&) = default;
};
struct run_rank {
  job_rank job;
  start_rank run;
  friend auto operator<=>(const run_rank&, const run_rank&) = default;
};

struct by_rank {
  bool operator()(const pool_run* a, const pool_run* b) const;
};

/// Runs in the order of ranks. Each job has a line of its runs, so that all runs of a job move together.
class ranked_runs {
public:
  ranked_runs() = default;
  ranked_runs(ranked_runs&&) = default; // a copy would have iterators of the other one
  ranked_runs& operator=(ranked_runs&&) = default;

  struct entry {
    time_point started; ///< copied from the run, as it tells most entries apart
    pool_run* run = nullptr;
    friend bool operator<(const entry& a, const entry& b);
  };
  using line = absl::btree_set<entry, std::less<entry>, node_allocator<entry>>; ///< a job's runs; never empty

private:
  using line_key = std::pair<job_rank, experiment_id>;
  using line_map =
    std::map<line_key, line, std::less<line_key>, node_allocator<std::pair<const line_key, line>>>;

public:
  line& insert(pool_run& run); ///< returns the job's line, which stays at its address until it is empty
  bool erase(pool_run& run);   ///< false: the run was not there
  /// The same for callers who know the line of the job.
  static void insert(line& of, pool_run& run);
  bool erase(line& of, pool_run& run);
  void move(const pool_job& job, job_rank to); ///< to be called before the job gets the rank `to`
  bool empty() const { return lines_.empty(); }
  std::size_t size() const;
  pool_run* first() const; ///< must not be called when empty
  const line* line_of(const pool_job& job) const;
  std::size_t before(const pool_run& run) const; ///< number of runs before `run`, which may be absent itself
  std::size_t before_in_line(const pool_run& run) const; ///< the same, among the runs of its job only

  /// Goes through all runs in their order, or backwards. Nothing may be inserted or erased meanwhile.
  class walk {
  public:
    explicit walk(const ranked_runs& of, bool backwards = false)
        : at_(of.lines_.begin()), end_(of.lines_.end()), backwards_(backwards) {}
    pool_run* next(); ///< null: no run is left

  private:
    void take_lines();
    struct rest {
      line::const_iterator from, to;
    };
    line_map::const_iterator at_, end_;
    bool backwards_;
    std::vector<rest> rests_; ///< what is left of the lines of jobs of one rank
  };
  std::vector<pool_run*> list() const;
  void collect_lines(std::vector<const line*>& to) const; ///< appends the lines of all jobs
  std::vector<pool_run*> firsts() const;                  ///< the first run of each job, in the order of jobs

private:
  line_map lines_;
  std::unordered_map<experiment_id, line_map::iterator> by_job_; ///< finds the line of one job quickly
};

} // namespace troupe
