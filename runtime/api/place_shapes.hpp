#pragma once
// Workspaces, projects, templates and models as grpc-gateway prints Determined's messages.

#include "runtime/api/shapes.hpp"

namespace troupe::api {

/// The name of the pool where experiments run that name none.
result<std::string> usual_pool(const storage::reader& storage);

/// Workspaces and projects as they are at one moment.
class place_book {
public:
  static result<place_book> read(const storage::reader& storage);
  /// With how many experiments each project has, for their shapes: looks at every experiment.
  static result<place_book> counted(const storage::reader& storage);

  const std::vector<workspace_changed>& workspaces() const { return workspaces_; }
  const std::vector<project_changed>& projects() const { return projects_; }
  const workspace_changed* find(workspace_id id) const;
  const project_changed* find(project_id id) const;
  /// errc::not_found where a list is asked for of a project that is not there; 0 asks for all.
  result<void> check(project_id id) const;
  const std::string& usual_pool() const { return usual_pool_; }
  /// Whether the project, or the workspace that it is in, is archived; true where there is none.
  bool hidden(project_id id) const;

  /// When the newest experiment of the project was created; the epoch where there is none, or none was
  /// counted.
  time_point last_started(project_id id) const;

  value shape(const workspace_changed& x, const accounts& users, const std::string& caller) const;
  value shape(const project_changed& x, const accounts& users) const;
  /// The fields of an experiment that say where it is: `projectId`, `projectName`, `parentArchived` ...
  value place_of(project_id id, const accounts& users) const;

private:
  struct tally {
    std::int64_t experiments = 0, active = 0, runs = 0;
    experiment_id newest;
    time_point started; ///< when that was created
  };
  std::vector<workspace_changed> workspaces_;
  std::vector<project_changed> projects_;
  std::string usual_pool_;
  std::map<project_id, tally> counts_;
};

value shape(const template_changed& x);
value shape(const model_changed& x, std::size_t versions, const accounts& users);
/// With the checkpoint's own shape, null where it is gone.
value shape(const model_version_changed& x, value model, value checkpoint, const accounts& users);

/// The number of the account, 0 where there is none.
std::uint64_t number_of(const std::string& owner, const accounts& users);

} // namespace troupe::api
