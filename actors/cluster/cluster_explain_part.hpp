#pragma once
// Asks pools and allocations why a trial is where it is. A part of the cluster actor, which alone calls it.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/explanations.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

namespace troupe {

class cluster_explain {
public:
  using done_callback = std::function<void(result<value>)>;
  struct needs {
    std::function<pool_actor(const std::string& pool)> pool;
    std::function<experiment_actor(experiment_id)> experiment; ///< null where it has ended
  };
  /// `who` is the cluster actor's own and outlives this.
  cluster_explain(actor_base<cluster_actor>* self, std::shared_ptr<storage::reader> reads, const members& who,
                  needs with)
      : self_(self), reads_(std::move(reads)), who_(who), with_(std::move(with)) {}

  using commands_here =
    commands::list<commands::trial_explain, commands::allocation_explain, commands::experiment_explain>;
  /// One of `commands_here`.
  caf::result<command_result> obey(client_command& x);

private:
  caf::result<command_result> on(const std::string& user, const commands::trial_explain& x);
  caf::result<command_result> on(const std::string& user, const commands::allocation_explain& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_explain& x);

  caf::result<command_result> answer(trial_row row, run_id run);
  explained_run explained(const trial_row& trial, const experiment_row& of, run_id run) const;
  /// Calls `done` once.
  void explain(explained_run of, const done_callback& done);
  /// A list of them, each explained.
  void explain_all(std::vector<explained_run> waiting, const done_callback& done);
  void look(explained_run of, value said, const done_callback& done);
  void ask_again(explained_run of, const pool_actor& pool, value said, const done_callback& done);
  std::vector<run_outlook> outlooks(const value& would_free) const;

  actor_base<cluster_actor>* self_;
  std::shared_ptr<storage::reader> reads_;
  const members& who_;
  needs with_;
};

} // namespace troupe
