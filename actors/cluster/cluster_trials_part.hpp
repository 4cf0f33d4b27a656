#pragma once
// Changes of trials and their checkpoints, whether the trial lives or has ended. It is a part of the cluster
// actor, which alone calls it.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

#include <deque>
#include <map>
#include <optional>

namespace troupe {

class cluster_trials {
public:
  using change_done = std::function<void(command_result&)>;

  struct needs {
    std::function<experiment_actor(experiment_id)> experiment; ///< null where there is no live actor
  };
  /// `peers` and `machine` belong to the cluster actor and outlive this object.
  cluster_trials(actor_base<cluster_actor>* self, const cluster_peers& peers, cluster_machines& machine,
                 needs with)
      : self_(self), peers_(peers), machine_(machine), with_(std::move(with)) {}

  /// What is left of the files of a checkpoint.
  struct files_left {
    commands::file_sizes files; ///< none: the checkpoint is deleted
    std::string by;             ///< user who did it; empty: the task
    /// Whether a removal has found them, or a look at what is there. That may be older than what other
    /// removals have noted.
    bool listed = false;
    change_done done;
  };
  /// Notes it when the changes of this checkpoint that are under way are stored, or have failed. `listed`
  /// files bring back none that is noted as gone, and where they are what is noted there is nothing to note.
  void change_files(const std::string& uuid, files_left wanted);

  using commands_here = commands::list<commands::trial_metadata, commands::trial_set_metadata,
                                       commands::checkpoint_patch, commands::checkpoint_describe>;
  /// Obeys one of `commands_here`.
  caf::result<command_result> obey(client_command& x);

private:
  caf::result<command_result> on(const client_command& from, const commands::trial_metadata& x);
  caf::result<command_result> on(const client_command& from, const commands::trial_set_metadata& x);
  caf::result<command_result> on(const client_command& from, const commands::checkpoint_patch& x);
  caf::result<command_result> on(const client_command& from, const commands::checkpoint_describe& x);

  /// Makes the fact of a change from what is stored just before it is appended.
  using fact_maker = std::function<trial_fact()>;

  /// Asks a live trial by `call` to note `fact` itself. The stream of a trial that has ended is written by
  /// the cluster.
  void change(const trial_row& row, task_call call, fact_maker fact, change_done done);
  void change_next_files(const std::string& uuid);
  result<void> check_sweep(const client_command& from, const commands::checkpoint_patch& x) const;

  struct change_waiting {
    fact_maker fact;
    change_done done;
  };
  struct stream {
    std::deque<change_waiting> waiting;
    std::size_t under_way = 0; ///< number of changes at the front of `waiting` that are sent to the journal
  };

  /// Each trial has one append at a time: two would have the same number, and one of them would be refused.
  void append_to(trial_id id, fact_maker fact, change_done done);
  void append_next(trial_id id, int tries);
  void appended(trial_id id, const std::optional<error>& fault);

  actor_base<cluster_actor>* self_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  std::map<trial_id, stream> streams_; ///< streams with changes that are not stored yet
  /// By checkpoint, the changes of its files that are not stored yet. The first is under way.
  std::map<std::string, std::deque<files_left>> files_;
};

} // namespace troupe
