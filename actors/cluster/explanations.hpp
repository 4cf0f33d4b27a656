#pragma once
// Explains why a trial or another task runs, waits or rests, from its rows and, where it waits, from what its
// pool says. Pure. The pool alone knows why slots are not given (actors/pool/pool_explain.cpp).

#include "actors/cluster/members.hpp"
#include "actors/pool/pool_events.hpp"
#include "model/rows.hpp"

namespace troupe {

/// One run of a trial, or the trial between two runs.
struct explained_run {
  trial_row trial;
  experiment_row experiment;
  run_id run;                ///< 0: the trial never had a run
  std::string pool;          ///< pool in which the run is, or in which the next run will ask for slots
  int default_priority = 42; ///< priority in that pool of an experiment that names none
  time_point retry_at{};     ///< when the next run may begin, after the end of the last one

  allocation_id allocation() const { return {trial.id, run}; }
  bool open() const; ///< whether the run has not ended, so that its pool knows it
};

/// One run of a task of another kind (notebook, command, ...), or that task between two runs.
struct explained_task {
  task_detail task;
  run_id run;                ///< 0: the task never had a run
  std::string pool;          ///< pool in which the run is, or in which the next run will ask for slots
  int default_priority = 42; ///< priority in that pool of a task that names none

  allocation_id allocation() const { return {task.made.id, run}; }
  bool open() const; ///< whether the run has not ended, so that its pool knows it
};

/// All keys of `GET /troupe/v1/trials/{id}/explain`. `said` is what the pool answers about an open run; null:
/// the pool does not know the run. `doing` is what the allocation of the run does (allocation::shown), or
/// empty.
value explanation_of(const explained_run& of, const value& said, const std::string& doing, time_point now);
/// All keys of `GET /troupe/v1/tasks/{id}/explain`: the keys of a trial, with null for `trial` and
/// `experiment`, and the keys `task` and `kind`.
value explanation_of(const explained_task& of, const value& said, const std::string& doing, time_point now);

/// What the facts of a trial tell and its row does not. 0: they do not tell it.
struct trial_news {
  time_point progressed; ///< when it reported its newest progress
  time_point retry_at;   ///< when the run after the newest ended one may begin
};
trial_news news_of(const std::vector<std::string>& facts); ///< encoded facts of one trial, oldest first

/// How long the open run of `trial` will still take. The estimate comes from the ended trials of its
/// experiment; without such trials, from the progress of the trial. `siblings`: all trials of the experiment.
/// `progressed`: when the trial reported its progress; 0: unknown, and the progress counts as reported now.
run_outlook outlook_of(const trial_row& trial, const std::vector<trial_row>& siblings, time_point now,
                       time_point progressed = {});

/// Whether a trial runs, waits for slots or for its next run, is paused, or is none of these.
enum class trial_place { running, waiting, paused, elsewhere };
trial_place place_of(const trial_row& trial, const experiment_row& experiment);

/// All keys of `GET /troupe/v1/experiments/{id}/explain`. `waiting` is a list of the explanations of the
/// trials that wait; the first one says why nothing runs.
value explanation_of(const experiment_row& row, const std::vector<trial_row>& trials, const std::string& pool,
                     value waiting);

/// Pool in which the next run of the experiment asks for slots. If the experiment has ended: in which it
/// would ask.
std::string pool_name_of(const members& who, const experiment_row& row);

} // namespace troupe
