#pragma once
// Asks pools and allocations why a trial or another task runs, waits or rests. It is a part of the cluster
// actor, which alone calls it.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/explanations.hpp"
#include "actors/shells/probed.hpp"
#include "actors/task/task_actor.hpp"
#include "model/commands/table.hpp"

namespace troupe {

class cluster_explain {
public:
  using done_callback = std::function<void(result<value>)>;
  struct needs {
    std::function<pool_actor(const std::string& pool)> pool;
    std::function<experiment_actor(experiment_id)> experiment; ///< null where the experiment has ended
    std::function<task_actor(task_id)> task;                   ///< null where the task has ended
  };
  /// `who` belongs to the cluster actor and outlives this object.
  cluster_explain(actor_base<cluster_actor>* self, std::shared_ptr<storage::reader> reads, const members& who,
                  needs with)
      : self_(self), reads_(std::move(reads)), who_(who), with_(std::move(with)) {}

  using commands_here = commands::list<commands::trial_explain, commands::task_explain,
                                       commands::allocation_explain, commands::experiment_explain>;
  /// Obeys one of `commands_here`.
  caf::result<command_result> obey(client_command& x);

private:
  caf::result<command_result> on(const std::string& user, const commands::trial_explain& x);
  caf::result<command_result> on(const std::string& user, const commands::task_explain& x);
  caf::result<command_result> on(const std::string& user, const commands::allocation_explain& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_explain& x);

  /// A question about one run to its pool and its allocation; `answer` makes the explanation of what they
  /// say.
  struct question {
    allocation_id run;
    bool open = false; ///< the run has not ended, so that its pool knows it
    std::string pool;
    std::function<value(const value& said, const std::string& doing)> answer;
  };
  template <class Of>
  question question_of(Of of) const;

  caf::result<command_result> answer(const question& x);
  caf::result<command_result> answer(trial_row row, run_id run);
  caf::result<command_result> answer(task_detail row, run_id run);
  explained_run explained(const trial_row& trial, const experiment_row& of, run_id run) const;
  explained_task explained(task_detail task, run_id run) const;
  int default_priority_of(const std::string& pool) const;
  trial_news newest_of(trial_id id) const;
  /// Calls `done` once, with the explanation or an error.
  void explain(const question& x, const done_callback& done);
  /// Calls `done` once, with a list of the explanations of all these runs.
  void explain_all(const std::vector<explained_run>& waiting, const done_callback& done);
  void look(const question& x, value said, const done_callback& done);
  void ask_again(const question& x, const pool_actor& pool, value said, const done_callback& done);
  std::vector<run_outlook> outlooks(const value& would_free) const;

  actor_base<cluster_actor>* self_;
  std::shared_ptr<storage::reader> reads_;
  const members& who_;
  needs with_;
};

} // namespace troupe
