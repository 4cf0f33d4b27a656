#pragma once
// The roles that users have now, and the workspaces of things, read from the journal whenever it has changed.
// Roles decide only where the cluster file says `cluster.authz: rbac`; without that the service has no book.

#include "model/authority/roles.hpp"
#include "storage/former_places.hpp"
#include "storage/journal.hpp"

#include <memory>
#include <mutex>
#include <set>

namespace troupe::api {

/// The roles that users and groups have, and the groups' members.
struct given_roles {
  std::vector<roles_changed> roles;
  std::vector<group_changed> groups;
  static result<given_roles> read(const storage::reader& from);
  bool in(group_id group, user_id user) const;
};

/// Thread-safe. Where nobody has the role ClusterAdmin, the user `admin` counts as having it, so that
/// somebody can give roles.
class role_book {
public:
  /// `from` has to show everything.
  explicit role_book(std::shared_ptr<storage::reader> from)
      : from_(std::move(from)), deleted_(dynamic_cast<const storage::former_places*>(from_.get())) {}

  /// What the user may do now; nothing where the journal cannot be read.
  std::shared_ptr<const authority::grants> of(user_id user);
  /// The workspace of a thing; 0 where the thing does not exist.
  workspace_id workspace_of(project_id id);
  workspace_id workspace_of(experiment_id id);
  workspace_id workspace_of(model_id id);
  /// The same, and of a deleted thing the workspace in which it was last, if that still exists. Only facts
  /// are judged by it: for all else, a thing without a workspace is a deleted one.
  workspace_id last_workspace_of(experiment_id id);
  workspace_id last_workspace_of(model_id id);
  /// Grows whenever experiments or projects may have gone to other workspaces.
  std::uint64_t moves();
  /// The experiment of a trial; 0 where the trial does not exist.
  experiment_id experiment_of(trial_id id) const;
  /// The workspaces of the models that have this checkpoint as a version.
  std::vector<workspace_id> registered_in(const std::string& checkpoint);
  bool knows(workspace_id id); ///< false: the workspace was deleted, and roles given in it no longer count
  bool is_in(group_id group, user_id user);
  bool has_admin(); ///< whether the role ClusterAdmin was given to anybody

private:
  void catch_up(); ///< the caller holds `mutex_`
  bool passes_over_news(std::uint64_t next);

  std::shared_ptr<storage::reader> from_;
  const storage::former_places* deleted_; ///< `from_` as it knows deleted things; null where it does not
  std::mutex mutex_;
  /// Sequence of the cluster's newest fact, and the number of facts in the stream of people and places plus
  /// 1; 0: nothing was read yet.
  std::uint64_t seen_ = 0, facts_ = 0;
  given_roles given_;
  bool has_admin_ = false;
  std::map<user_id, std::shared_ptr<const authority::grants>> grants_;
  std::set<workspace_id> workspaces_;
  std::map<project_id, workspace_id> projects_;
  std::map<model_id, workspace_id> models_;
  /// The models by the checkpoints of their versions. It is read when it is first needed after a change of
  /// the registry, because few requests need it.
  std::map<std::string, std::vector<model_id>> registered_;
  bool knows_registered_ = false;
  std::map<experiment_id, project_id> experiments_; ///< experiments that were asked for since the last change
  std::map<experiment_id, workspace_id> former_;    ///< the same for deleted experiments
  std::uint64_t moves_ = 0;
};

/// One who asks: a user or a task. A task may do with its own things what the table says of tasks, and with
/// all other things what its owner may do now.
struct viewer {
  std::shared_ptr<role_book> book;
  user_id user;
  experiment_id experiment; ///< experiment of the task that asks; 0: a user asks
  task_id task;

  bool may(authority::permission what, workspace_id in) const { return book->of(user)->holds(what, in); }
  bool owns(experiment_id id) const { return id && id == experiment; }
  bool may(authority::permission what, experiment_id id) const {
    return owns(id) || may(what, book->workspace_of(id));
  }
  /// Whether the viewer may know that the experiment exists.
  bool sees(experiment_id id) const { return may(authority::permission::view_experiment_metadata, id); }
  /// Whether the viewer may know of facts about the experiment, which may be deleted.
  bool hears_of(experiment_id id) const {
    return owns(id) || may(authority::permission::view_experiment_metadata, book->last_workspace_of(id));
  }
  /// The same for a task that is not a trial: it takes the right to see tasks of its workspace, and for a
  /// TensorBoard also the right to see all that it shows. A collection of checkpoints is seen with its
  /// experiment, and once that is deleted with its former workspace.
  bool sees(const task_detail& row) const;
  /// The same for a checkpoint, which is seen with its experiment, and as a version of a model that the
  /// viewer sees.
  bool sees(const checkpoint_row& row) const;
};

} // namespace troupe::api
