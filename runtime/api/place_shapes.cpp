#include "runtime/api/place_shapes.hpp"

#include "model/config/cluster_config.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>

namespace troupe::api {

namespace {

const char* deletion_name(deletion_step step) {
  switch (step) {
  case deletion_step::ordered:
    return "WORKSPACE_STATE_DELETING";
  case deletion_step::failed:
    return "WORKSPACE_STATE_DELETE_FAILED";
  case deletion_step::done:
    return "WORKSPACE_STATE_DELETED";
  case deletion_step::none:
    break;
  }
  return "WORKSPACE_STATE_UNSPECIFIED";
}

} // namespace

std::uint64_t number_of(const std::string& owner, const accounts& users) {
  auto known = users.owner(owner);
  return known ? known->id : 0;
}

result<std::string> usual_pool(const storage::reader& storage) {
  auto in_force = storage.configuration();
  if (!in_force)
    return in_force.error();
  return config::default_pool(*in_force ? (*in_force)->configuration : value());
}

result<place_book> place_book::read(const storage::reader& storage) {
  place_book out;
  auto workspaces = storage.workspaces();
  if (!workspaces)
    return workspaces.error();
  auto projects = storage.projects();
  if (!projects)
    return projects.error();
  auto pool = api::usual_pool(storage);
  if (!pool)
    return pool.error();
  out.usual_pool_ = std::move(*pool);
  out.workspaces_ = std::move(*workspaces);
  out.projects_ = std::move(*projects);
  return out;
}

result<place_book> place_book::counted(const storage::reader& storage) {
  auto out = read(storage);
  if (!out)
    return out;
  auto experiments = storage.experiment_standings();
  if (!experiments)
    return experiments.error();
  for (const auto& one : *experiments) {
    auto& counts = out->counts_[one.project];
    ++counts.experiments;
    counts.active += one.state == experiment_state::active ? 1 : 0;
    counts.runs += static_cast<std::int64_t>(one.num_trials);
    counts.newest = std::max(counts.newest, one.id);
  }
  for (auto& [project, counts] : out->counts_)
    if (auto newest = storage.experiment(counts.newest))
      counts.started = newest->created;
  return out;
}

time_point place_book::last_started(project_id id) const {
  const auto at = counts_.find(id);
  return at == counts_.end() ? time_point{} : at->second.started;
}

const workspace_changed* place_book::find(workspace_id id) const {
  auto at =
    std::find_if(workspaces_.begin(), workspaces_.end(), [&](const auto& one) { return one.id == id; });
  return at == workspaces_.end() ? nullptr : &*at;
}
const project_changed* place_book::find(project_id id) const {
  auto at = std::find_if(projects_.begin(), projects_.end(), [&](const auto& one) { return one.id == id; });
  return at == projects_.end() ? nullptr : &*at;
}

result<void> place_book::check(project_id id) const {
  if (id && !find(id))
    return error{errc::not_found, "project '" + to_string(id) + "' not found"};
  return {};
}

bool place_book::hidden(project_id id) const {
  const auto* project = find(id);
  const auto* workspace = project ? find(project->workspace) : nullptr;
  return !workspace || project->archived || workspace->archived;
}

value place_book::shape(const workspace_changed& x, const accounts& users, const std::string& caller) const {
  std::int64_t projects = 0, experiments = 0;
  for (const auto& one : projects_)
    if (one.workspace == x.id) {
      ++projects;
      if (auto counts = counts_.find(one.id); counts != counts_.end())
        experiments += counts->second.experiments;
    }
  const bool pinned = std::find(x.pinned_by.begin(), x.pinned_by.end(), caller) != x.pinned_by.end();
  value out = {{"id", x.id.value},
               {"name", x.name},
               {"archived", x.archived},
               {"username", users.now_named(x.owner)},
               {"userId", number_of(x.owner, users)},
               {"immutable", x.id.value == 1},
               {"numProjects", projects},
               {"numExperiments", experiments},
               {"pinned", pinned},
               {"state", deletion_name(x.deletion)},
               {"errorMessage", x.error},
               {"agentUserGroup", nullptr},
               {"checkpointStorageConfig", config::storage_without_secrets(x.checkpoint_storage)},
               {"defaultComputePool", x.compute_pool},
               {"defaultAuxPool", x.aux_pool}};
  if (pinned)
    out["pinnedAt"] = to_rfc3339(x.at);
  if (!x.runs_as.empty())
    out["agentUserGroup"] = {{"agentUid", x.runs_as[0].uid},
                             {"agentGid", x.runs_as[0].gid},
                             {"agentUser", x.runs_as[0].user},
                             {"agentGroup", x.runs_as[0].group}};
  return out;
}

value place_book::shape(const project_changed& x, const accounts& users) const {
  value notes = value::array();
  for (const auto& one : x.notes)
    notes.push_back({{"name", one.name}, {"contents", one.contents}});
  const auto* workspace = find(x.workspace);
  const auto counts = counts_.find(x.id);
  const auto of = counts == counts_.end() ? tally{} : counts->second;
  return {{"id", x.id.value},
          {"name", x.name},
          {"key", x.key},
          {"description", x.description},
          {"notes", std::move(notes)},
          {"archived", x.archived || (workspace && workspace->archived)},
          {"workspaceId", x.workspace.value},
          {"workspaceName", workspace ? workspace->name : ""},
          {"username", users.now_named(x.owner)},
          {"userId", number_of(x.owner, users)},
          {"immutable", x.id.value == 1},
          {"numExperiments", of.experiments},
          {"numActiveExperiments", of.active},
          {"numRuns", of.runs},
          {"lastExperimentStartedAt", of.started == time_point{} ? value() : value(to_rfc3339(of.started))},
          {"state", deletion_name(x.deletion)},
          {"errorMessage", x.error}};
}

value place_book::place_of(project_id id, const accounts& users) const {
  const auto* project = find(id);
  const auto* workspace = project ? find(project->workspace) : nullptr;
  return {{"projectId", id.value},
          {"projectName", project ? project->name : ""},
          {"projectOwnerId", project ? number_of(project->owner, users) : 0},
          {"workspaceId", workspace ? workspace->id.value : 0},
          {"workspaceName", workspace ? workspace->name : ""},
          {"parentArchived", hidden(id)}};
}

value shape(const template_changed& x) {
  return {
    {"name", x.name}, {"config", config::without_secrets(x.config)}, {"workspaceId", x.workspace.value}};
}

value shape(const model_changed& x, std::size_t versions, const accounts& users) {
  return {{"id", x.id.value},
          {"name", x.name},
          {"description", x.description},
          {"metadata", x.metadata.is_object() ? x.metadata : value::object()},
          {"labels", x.labels},
          {"notes", x.notes},
          {"archived", x.archived},
          {"creationTime", to_rfc3339(x.created)},
          {"lastUpdatedTime", to_rfc3339(x.at)},
          {"numVersions", versions},
          {"username", users.now_named(x.owner)},
          {"userId", number_of(x.owner, users)},
          {"workspaceId", x.workspace.value}};
}

value shape(const model_version_changed& x, value model, value checkpoint, const accounts& users) {
  return {{"id", x.model.value << 16 | x.version}, // this number is unique in the cluster
          {"version", x.version},
          {"model", std::move(model)},
          {"checkpoint", std::move(checkpoint)},
          {"name", x.name},
          {"comment", x.comment},
          {"notes", x.notes},
          {"labels", x.labels},
          {"metadata", x.metadata.is_object() ? x.metadata : value::object()},
          {"creationTime", to_rfc3339(x.created)},
          {"lastUpdatedTime", to_rfc3339(x.at)},
          {"username", users.now_named(x.owner)},
          {"userId", number_of(x.owner, users)}};
}

} // namespace troupe::api
