#pragma once
// Why a trial or another task is where it is: what its rows say, and what its pool says where it waits there.
// Pure; the pool alone knows why slots are not given (actors/pool/pool_explain.cpp).

#include "actors/cluster/members.hpp"
#include "actors/pool/pool_events.hpp"
#include "model/rows.hpp"

namespace troupe {

/// One run of a trial, or the trial between two runs.
struct explained_run {
  trial_row trial;
  experiment_row experiment;
  run_id run;                ///< 0: it never had one
  std::string pool;          ///< where it is, or will ask
  int default_priority = 42; ///< the priority of who names none in that pool

  allocation_id allocation() const { return {trial.id, run}; }
  bool open() const; ///< the run has not ended, so that its pool knows it
};

/// One run of a task of another kind (notebook, command, ...), or that task between two runs.
struct explained_task {
  task_detail task;
  run_id run;                ///< 0: it never had one
  std::string pool;          ///< where it is, or will ask
  int default_priority = 42; ///< the priority of who names none in that pool

  allocation_id allocation() const { return {task.made.id, run}; }
  bool open() const; ///< the run has not ended, so that its pool knows it
};

/// All keys of `GET /troupe/v1/trials/{id}/explain`. `said`: what the pool answers of a run that is open;
/// null: it does not know it. `doing`: what its allocation does (allocation::shown), or empty.
value explanation_of(const explained_run& of, const value& said, const std::string& doing, time_point now);
/// All keys of `GET /troupe/v1/tasks/{id}/explain`: those of a trial, of which `trial` and `experiment` are
/// null, and `task` and `kind`.
value explanation_of(const explained_task& of, const value& said, const std::string& doing, time_point now);

/// How long the open run of `trial` will still take, as far as the ended runs of its experiment, else its own
/// progress tell. `siblings`: all trials of the experiment.
run_outlook outlook_of(const trial_row& trial, const std::vector<trial_row>& siblings, time_point now);

/// Whether a trial runs, waits for slots, is paused, or is none of these.
enum class trial_place { running, waiting, paused, elsewhere };
trial_place place_of(const trial_row& trial, const experiment_row& experiment);

/// All keys of `GET /troupe/v1/experiments/{id}/explain`. `waiting`: the explanations of those of `trials`
/// that wait, the first of which says why nothing runs.
value explanation_of(const experiment_row& row, const std::vector<trial_row>& trials, const std::string& pool,
                     value waiting);

/// Pool where the next run of the experiment asks, or, of one that has ended, would ask.
std::string pool_name_of(const members& who, const experiment_row& row);

} // namespace troupe
