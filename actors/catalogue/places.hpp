#pragma once
// Workspaces, projects, where experiments are and what people say of them: what may become of them is decided
// here; whether the caller has the right is decided before. Pure. The cluster's actor is its shell: its facts
// stand in the stream "cluster". Texts of errors are those that Determined's clients know.

#include "actors/machine.hpp"
#include "model/commands/place_commands.hpp"

namespace troupe {

/// Not thread-safe: one actor owns it. `by` is the name of the user who asks. Workspace 1 and project 1 are
/// there from the beginning, and are never changed but for pins.
class places {
public:
  using decided = result<std::vector<place_fact>>;

  places();

  /// errc::invalid where the name is no name, errc::conflict where it is taken. The new thing is in the last
  /// fact.
  [[nodiscard]] decided make(const commands::workspace_create& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided make(const commands::project_create& wanted, const std::string& by, time_point now);
  /// No fact where nothing changes. errc::not_found, errc::invalid for what is immutable or archived,
  /// errc::conflict as above.
  [[nodiscard]] decided change(const commands::workspace_change& wanted, const std::string& by,
                               time_point now);
  [[nodiscard]] decided change(const commands::workspace_pin& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided change(const commands::project_change& wanted, const std::string& by, time_point now);
  /// `ended`: of the experiment. errc::invalid as Determined refuses.
  [[nodiscard]] decided change(const commands::experiment_describe& wanted, bool ended, const std::string& by,
                               time_point now);
  /// What `change` would say to these words of an experiment of which `now` is said.
  static result<void> check(const commands::experiment_describe& wanted, const experiment_described& now);
  [[nodiscard]] decided change(const commands::experiment_move& wanted, const std::string& by,
                               time_point now);
  /// What holds experiments is deleted with them, behind the answer: it is marked, `doomed` says which have
  /// to go, and `settle` is asked after each. Again, what had failed is tried anew.
  [[nodiscard]] decided remove(const commands::workspace_remove& wanted, const std::string& by,
                               time_point now);
  [[nodiscard]] decided remove(const commands::project_remove& wanted, const std::string& by, time_point now);
  /// Experiments in projects that are being deleted, whose own deletion has not been ordered and has not
  /// failed; with who deletes the project.
  std::vector<std::pair<experiment_id, std::string>> doomed() const;
  /// Projects and workspaces that are empty now go; those where all that is left could not be deleted have
  /// failed.
  [[nodiscard]] std::vector<place_fact> settle(time_point now);

  /// Where a new experiment belongs: `asked` (0: what the configuration names, else 1). errc::not_found,
  /// errc::invalid where it takes none.
  result<project_id> place_of(project_id asked, const value& config) const;
  /// The section of its workspace; null where that has none.
  value storage_of(project_id id) const;
  std::string workspace_of(experiment_id id) const; ///< name of the one that it is in
  workspace_id workspace_id_of(experiment_id id) const;
  bool knows(workspace_id id) const { return workspaces_.contains(id); }
  bool open(workspace_id id) const; ///< neither archived nor being deleted; false where there is none
  /// errc::not_found, errc::invalid where it takes nothing new.
  result<void> takes(workspace_id id) const;
  workspace_id workspace_id_of(project_id id) const; ///< 0 where there is no such project

  void replay(const place_fact& fact);
  void replay(const cluster_fact& fact);

  const std::map<workspace_id, workspace_changed>& workspaces() const { return workspaces_; }
  const std::map<project_id, project_changed>& projects() const { return projects_; }
  std::string snapshot() const;
  value describe() const; ///< the state, for people

  /// Whether experiments may be made in the project or go on there, or why not.
  result<void> takes_experiments(project_id id) const;

private:
  struct placed {
    project_id project;
    experiment_described said;
    deletion_step deletion = deletion_step::none;
    std::string stuck; ///< why its deletion failed
    MSGPACK_DEFINE_ARRAY(project, said, deletion, stuck)
  };

  std::vector<place_fact> note(place_fact fact);
  result<void> check_name(const std::string& name, workspace_id of) const;
  result<void> check_name(const std::string& name, workspace_id in, project_id of) const;
  static result<void> check_rest(const commands::workspace_wish& wanted);
  result<std::string> key_for(const std::string& wanted, const std::string& name, project_id of) const;
  result<void> takes_projects(workspace_id id) const;

  std::map<workspace_id, workspace_changed> workspaces_;
  std::map<project_id, project_changed> projects_;
  std::map<std::string, project_id>
    keys_; ///< every key that a project has or had: old names of runs still lead to it
  std::map<experiment_id, placed> experiments_;
  workspace_id newest_workspace_{1};
  project_id newest_project_{1};
};

} // namespace troupe
