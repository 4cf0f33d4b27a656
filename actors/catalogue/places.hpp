#pragma once
// Workspaces and projects, the project of each experiment, and what people write about experiments. The
// machine decides which changes of these are possible; the right of the caller is checked before. Pure. The
// cluster's actor is the shell; the facts stand in the stream "cluster". The texts of errors are those that
// Determined's clients know.

#include "actors/machine.hpp"
#include "model/commands/place_commands.hpp"
#include "model/described.hpp"

namespace troupe {

/// Not thread-safe: one actor owns the machine. `by` is the name of the user who asks. Workspace 1 and
/// project 1 always exist, and nothing of them can be changed except pins.
class places {
public:
  using decided = result<std::vector<place_fact>>;

  places();

  /// Fails with errc::invalid where the name is not valid, and with errc::conflict where it is taken. The
  /// last fact has the new workspace or project.
  [[nodiscard]] decided make(const commands::workspace_create& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided make(const commands::project_create& wanted, const std::string& by, time_point now);
  /// Gives no fact where nothing changes. Fails with errc::not_found, with errc::invalid for what is
  /// immutable or archived, and with errc::conflict as above.
  [[nodiscard]] decided change(const commands::workspace_change& wanted, const std::string& by,
                               time_point now);
  [[nodiscard]] decided change(const commands::workspace_pin& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided change(const commands::project_change& wanted, const std::string& by, time_point now);
  /// `ended`: whether the experiment has ended. Fails with errc::invalid where Determined refuses the change.
  [[nodiscard]] decided change(const commands::experiment_describe& wanted, bool ended, const std::string& by,
                               time_point now);
  /// The answer of `change` to this description of an experiment that is described by `now`.
  static result<void> check(const commands::experiment_describe& wanted, const experiment_described& now);
  /// To be called once the machine has the continuation: what is said of the experiment is then what the new
  /// configuration says. Gives no fact where it said so before.
  [[nodiscard]] std::vector<place_fact> say_anew(const experiment_continued& again);
  [[nodiscard]] decided change(const commands::experiment_move& wanted, const std::string& by,
                               time_point now);
  /// A workspace or project is deleted with its experiments, after the answer: it is marked, `doomed` lists
  /// the experiments that have to be deleted, and `settle` is called after each of them. A second call tries
  /// again what failed.
  [[nodiscard]] decided remove(const commands::workspace_remove& wanted, const std::string& by,
                               time_point now);
  [[nodiscard]] decided remove(const commands::project_remove& wanted, const std::string& by, time_point now);
  /// Experiments in projects that are being deleted, without those whose own deletion is ordered or has
  /// failed; each with the user who deletes the project.
  std::vector<std::pair<experiment_id, std::string>> doomed() const;
  /// Removes projects and workspaces that are being deleted and are empty now. Where nothing that is left
  /// could be deleted, the deletion of the project or workspace has failed.
  [[nodiscard]] std::vector<place_fact> settle(time_point now);

  /// The project of a new experiment: `asked`; where that is 0, the project that the configuration names;
  /// where it names none, project 1. Fails with errc::not_found, and with errc::invalid where the project
  /// takes no experiments.
  result<project_id> place_of(project_id asked, const value& config) const;
  /// The section `checkpoint_storage` of the project's workspace; null where the workspace has none.
  value storage_of(project_id id) const;
  /// What is said of the experiment, also where its fact is not durable yet; null where there is no such one.
  const experiment_described* said_of(experiment_id id) const;
  std::string workspace_of(experiment_id id) const; ///< name of the experiment's workspace
  workspace_id workspace_id_of(experiment_id id) const;
  /// errc::invalid where the project or the workspace of the experiment is archived or is being deleted.
  result<void> takes_runs(experiment_id id) const;
  bool knows(workspace_id id) const { return workspaces_.contains(id); }
  bool open(workspace_id id) const; ///< whether it exists and is neither archived nor being deleted
  /// Fails with errc::not_found, and with errc::invalid where the workspace takes nothing new.
  result<void> takes(workspace_id id) const;
  workspace_id workspace_id_of(project_id id) const; ///< 0 where there is no such project

  void replay(const place_fact& fact);
  void replay(const cluster_fact& fact);

  const std::map<workspace_id, workspace_changed>& workspaces() const { return workspaces_; }
  const std::map<project_id, project_changed>& projects() const { return projects_; }
  std::string snapshot() const;
  value describe() const; ///< the state, for people

  /// Fails with the reason where experiments may not be created or continued in the project.
  result<void> takes_experiments(project_id id) const;

private:
  struct placed {
    project_id project;
    experiment_described said;
    deletion_step deletion = deletion_step::none;
    std::string stuck; ///< why the deletion of the experiment failed; empty: it did not
    config_words configured;
    TROUPE_PACKED(project, said, deletion, stuck, configured)
  };

  std::vector<place_fact> note(place_fact fact);
  result<void> check_name(const std::string& name, workspace_id of) const;
  result<void> check_name(const std::string& name, workspace_id in, project_id of) const;
  static result<void> check_rest(const commands::workspace_wish& wanted);
  result<std::string> key_for(const std::string& wanted, const std::string& name, project_id of) const;
  result<void> takes_projects(workspace_id id) const;

  std::map<workspace_id, workspace_changed> workspaces_;
  std::map<project_id, project_changed> projects_;
  /// Every key that a project has or had, as old names of runs still lead to the project.
  std::map<std::string, project_id> keys_;
  std::map<experiment_id, placed> experiments_;
  workspace_id newest_workspace_{1};
  project_id newest_project_{1};
};

} // namespace troupe
