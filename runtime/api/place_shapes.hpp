#pragma once
// Workspaces, projects, templates and models in the form in which grpc-gateway prints Determined's messages.

#include "runtime/api/shapes.hpp"

namespace troupe::api {

/// The name of the pool for experiments that name none.
result<std::string> usual_pool(const storage::reader& storage);

/// The workspaces and projects of one moment.
class place_book {
public:
  static result<place_book> read(const storage::reader& storage);
  /// Reads also how many experiments each project has, for the projects' shapes. This looks at every
  /// experiment.
  static result<place_book> counted(const storage::reader& storage);

  const std::vector<workspace_changed>& workspaces() const { return workspaces_; }
  const std::vector<project_changed>& projects() const { return projects_; }
  const workspace_changed* find(workspace_id id) const;
  const project_changed* find(project_id id) const;
  /// Fails with errc::not_found where the project does not exist; 0 stands for all projects and passes.
  result<void> check(project_id id) const;
  const std::string& usual_pool() const { return usual_pool_; }
  /// Whether the project or its workspace is archived; true where the project does not exist.
  bool hidden(project_id id) const;

  /// When the newest experiment of the project was created; the epoch where the project has none, or where
  /// this book was read without counting.
  time_point last_started(project_id id) const;

  value shape(const workspace_changed& x, const accounts& users, const std::string& caller) const;
  value shape(const project_changed& x, const accounts& users) const;
  /// The fields that say where an experiment is: `projectId`, `projectName`, `parentArchived` ...
  value place_of(project_id id, const accounts& users) const;

private:
  struct tally {
    std::int64_t experiments = 0, active = 0, runs = 0;
    experiment_id newest;
    time_point started; ///< when the newest experiment was created
  };
  std::vector<workspace_changed> workspaces_;
  std::vector<project_changed> projects_;
  std::string usual_pool_;
  std::map<project_id, tally> counts_;
};

value shape(const template_changed& x);
value shape(const model_changed& x, std::size_t versions, const accounts& users);
/// `checkpoint` is the checkpoint's own shape, or null where the checkpoint is gone.
value shape(const model_version_changed& x, value model, value checkpoint, const accounts& users);

/// The number of the account with this name; 0 where no such account exists.
std::uint64_t number_of(const std::string& owner, const accounts& users);

} // namespace troupe::api
