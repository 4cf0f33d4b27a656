#pragma once
// Everything that is erased for good: deleted experiments and trials, experiments of deleted projects, files
// of checkpoints, and what retention finds superfluous at the end of an experiment. It is a part of the
// cluster actor, which alone calls it, and it owns the actor that erases (actors/retention/).

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/cluster/cluster_trials_part.hpp"
#include "actors/retention/retention_actor.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

namespace troupe {

class cluster_deletions {
public:
  using done_callback = std::function<void(const caf::error&)>; ///< called with caf::none once durable
  using change_done = std::function<void(command_result&)>;

  struct needs {
    std::function<void(std::vector<cluster_fact>, done_callback)> take; ///< makes decided facts durable
    std::function<experiment_actor(experiment_id)> experiment;          ///< null where there is no live actor
    /// Notes what is left of the files of a checkpoint, as cluster_trials::change_files does.
    std::function<void(const std::string&, cluster_trials::files_left)> change_files;
    /// Tells the receivers of webhooks that the experiment has ended, and then calls the function.
    std::function<void(experiment_id, std::function<void()>)> tell_receivers;
  };
  /// `setup`, `peers` and `machine` belong to the cluster actor and outlive this object.
  cluster_deletions(actor_base<cluster_actor>* self, const cluster_setup& setup, const cluster_peers& peers,
                    cluster_machines& machine, needs with)
      : self_(self), setup_(setup), peers_(peers), machine_(machine), with_(std::move(with)) {}

  /// Makes the actor that erases, at the start or when the last one died, and orders all again that was under
  /// way.
  void begin();
  bool erased_by(const caf::actor_addr& who) const { return who == retention_.address(); }
  void end_all(const caf::error& why);

  /// Has the checkpoints deleted that the configuration of the ended experiment does not keep. `again`: the
  /// numbers of checkpoints to be kept have changed.
  void sweep(experiment_id id, bool again);
  /// To be called when an unmanaged experiment has ended. Its checkpoints belong to its owner, so none is
  /// deleted.
  void tell_of_unmanaged(experiment_id id);
  /// Fails where the checkpoint cannot come into use: errc::not_found, or errc::conflict where its files are
  /// deleted or being deleted.
  result<void> check_usable(const std::string& uuid) const;
  /// Deletes the experiments of projects that are being deleted; experiments that run are killed first.
  void delete_doomed();

  using commands_here = commands::list<commands::experiment_delete, commands::trial_delete,
                                       commands::trial_archive, commands::experiment_erase_tensorboards,
                                       commands::checkpoint_remove, commands::logs_cleanup>;
  /// Obeys one of `commands_here`.
  caf::result<command_result> obey(client_command& x);

private:
  caf::result<command_result> on(const std::string& user, const commands::experiment_delete& x);
  caf::result<command_result> on(const std::string& user, const commands::trial_delete& x);
  caf::result<command_result> on(const std::string& user, const commands::trial_archive& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_erase_tensorboards& x);
  caf::result<command_result> on(const std::string& user, const commands::checkpoint_remove& x);
  caf::result<command_result> on(const std::string& user, const commands::logs_cleanup& x);

  struct doomed {
    experiment_id experiment;
    trial_id trial; ///< the only trial that is deleted; 0: the whole experiment is
    friend bool operator==(const doomed&, const doomed&) = default;
  };
  caf::result<command_result> once_durable(std::vector<cluster_fact> facts);
  void delete_next();
  void failed(const doomed& what, const std::string& why);
  void noted(const doomed& what, std::vector<cluster_fact> facts);
  void pass_on(std::vector<cluster_fact>& facts);
  void erase(const doomed& what, const std::string& by);
  bool is_being_continued(const experiment_row& row) const;
  /// Why the checkpoints of the experiment, or only those of the trial, have to stay, in words for
  /// `asked_by`; empty where they need not.
  std::string kept_in(const std::string& asked_by, experiment_id id, trial_id trial = {}) const;
  /// Why the checkpoint `uuid` stays: experiment `user` begins its trials with it. Names that experiment only
  /// where the user `asked_by` may see it; `asked_by` is empty for a reason that several users will read.
  std::string starts_with_it(const std::string& uuid, experiment_id user, const std::string& asked_by) const;
  /// The experiment that begins its trials with a checkpoint of experiment `id` (or only of `trial`), and the
  /// UUID of that checkpoint; 0: no experiment does.
  std::pair<experiment_id, std::string> beginner_with(experiment_id id, trial_id trial = {}) const;
  std::string registered_in(experiment_id id, trial_id trial = {}) const;
  result<std::vector<std::string>> checkpoints_of(experiment_id id, trial_id trial) const;
  void go_on_with(const checkpoint_files_removed& order);
  /// A name for a removal that a user ordered, during which its checkpoints come into no use.
  std::string begin_removal(const std::vector<std::string>& uuids);
  void carry_out(const stored_erased& seen, const std::string& by, change_done noted,
                 std::function<void()> gone);
  void note_left(const stored_erased& seen, const std::string& by, change_done done);

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  retention_actor retention_;
  std::vector<doomed> erasing_; ///< experiments and trials that retention deletes now
  std::uint64_t removals_ = 0;  ///< removals that users have ordered in this life of the master
  bool closing_ = false;
};

} // namespace troupe
