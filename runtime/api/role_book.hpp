#pragma once
// Who has which roles now, and where things are: read from the journal when it has changed. Roles decide only
// where the cluster file says `cluster.authz: rbac`; without it the service has no book.

#include "model/authority/roles.hpp"
#include "storage/journal.hpp"

#include <memory>
#include <mutex>
#include <set>

namespace troupe::api {

/// What was given to users and groups.
struct given_roles {
  std::vector<roles_changed> roles;
  std::vector<group_changed> groups;
  static result<given_roles> read(const storage::reader& from);
  bool in(group_id group, user_id user) const;
};

/// Thread-safe. Where nobody has the role ClusterAdmin the user `admin` has it, so that somebody can give
/// roles.
class role_book {
public:
  /// `from` sees everything.
  explicit role_book(std::shared_ptr<storage::reader> from) : from_(std::move(from)) {}

  /// What the user may now. Nothing where the journal cannot be read.
  std::shared_ptr<const authority::grants> of(user_id user);
  /// 0 where there is none.
  workspace_id workspace_of(project_id id);
  workspace_id workspace_of(experiment_id id);
  workspace_id workspace_of(model_id id);
  bool knows(workspace_id id); ///< false: it was deleted, and what was given there counts no more
  bool is_in(group_id group, user_id user);
  bool has_admin(); ///< whether the role ClusterAdmin was given to anybody

private:
  void catch_up(); ///< under `mutex_`
  bool passes_over_news(std::uint64_t next);

  std::shared_ptr<storage::reader> from_;
  std::mutex mutex_;
  std::uint64_t seen_ = 0, facts_ = 0; ///< of the cluster, and of its stream of people and places
  given_roles given_;
  bool has_admin_ = false;
  std::map<user_id, std::shared_ptr<const authority::grants>> grants_;
  std::set<workspace_id> workspaces_;
  std::map<project_id, workspace_id> projects_;
  std::map<model_id, workspace_id> models_;
  std::map<experiment_id, project_id> experiments_; ///< those that were asked for since the last change
};

/// One who asks: a user, or a task, which may for its own things what the table says of tasks, and for all
/// others what its owner may now.
struct viewer {
  std::shared_ptr<role_book> book;
  user_id user;
  experiment_id experiment; ///< of a task; 0: a user
  task_id task;

  bool may(authority::permission what, workspace_id in) const { return book->of(user)->holds(what, in); }
  bool owns(experiment_id id) const { return id && id == experiment; }
  bool may(authority::permission what, experiment_id id) const {
    return owns(id) || may(what, book->workspace_of(id));
  }
  /// Whether the viewer is shown that there is one.
  bool sees(experiment_id id) const { return may(authority::permission::view_experiment_metadata, id); }
  /// The same of a task that is no trial: a TensorBoard is seen by who sees all that it shows, a collection
  /// of checkpoints with its experiment, and once that is gone with the workspace where it was.
  bool sees(const task_detail& row) const;
};

} // namespace troupe::api
