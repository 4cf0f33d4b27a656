#include "runtime/api/role_book.hpp"

#include <algorithm>
#include <utility>

namespace troupe::api {
namespace {

constexpr std::size_t most_experiments = 100'000; ///< limit of experiments whose project is kept in memory
constexpr user_id first_user{1};                  ///< the user `admin`

template <class Map, class Key>
auto value_of(const Map& in, const Key& key) {
  const auto at = in.find(key);
  return at == in.end() ? typename Map::mapped_type{} : at->second;
}

/// Whether roles, groups and the places of workspaces, projects and models are the same after this fact of
/// the cluster. If so, returns the experiment that the fact moved or deleted, or an empty id for other facts.
std::optional<experiment_id> leaves_rights(const fact& x) {
  return std::visit(
    [](const auto& one) -> std::optional<experiment_id> {
      using F = std::decay_t<decltype(one)>;
      if constexpr (std::is_same_v<F, roles_changed> || std::is_same_v<F, group_changed> ||
                    std::is_same_v<F, workspace_changed> || std::is_same_v<F, project_changed> ||
                    std::is_same_v<F, model_changed> || std::is_same_v<F, model_version_changed>)
        return std::nullopt;
      else if constexpr (std::is_same_v<F, experiment_moved> || std::is_same_v<F, experiment_deleted> ||
                         std::is_same_v<F, experiment_continued>)
        return one.id;
      else
        return experiment_id{};
    },
    x);
}

/// The experiments whose curves a TensorBoard shows; none for other tasks.
std::vector<experiment_id> experiments_in(const task_detail& row) {
  std::vector<experiment_id> out;
  const auto& details = row.made.details;
  if (row.made.id.kind() == task_kind::tensorboard && details.is_object())
    for (const auto& source : details.value("sources", value::array()))
      out.push_back(experiment_id{
        static_cast<std::uint64_t>(number_in(source.value("experiment", value())).value_or(0))});
  return out;
}

} // namespace

result<given_roles> given_roles::read(const storage::reader& from) {
  auto roles = storage::records_of<roles_changed>(from);
  auto groups = storage::records_of<group_changed>(from);
  if (!roles)
    return roles.error();
  if (!groups)
    return groups.error();
  return given_roles{std::move(*roles), std::move(*groups)};
}

bool given_roles::in(group_id group, user_id user) const {
  for (const auto& one : groups)
    if (one.id == group)
      return std::binary_search(one.members.begin(), one.members.end(), user);
  return false;
}

void role_book::catch_up() {
  const auto now = from_->sequence();
  if (seen_ == now && facts_)
    return;
  const auto next = from_->next_of(cluster_entity);
  if (!next || (facts_ == *next + 1)) {
    if (next)
      seen_ = now;
    return;
  }
  if (passes_over_news(*next)) {
    seen_ = now;
    facts_ = *next + 1;
    return;
  }
  auto given = given_roles::read(*from_);
  auto workspaces = from_->workspaces();
  auto projects = from_->projects();
  auto models = from_->models();
  if (!given || !workspaces || !projects || !models)
    return; // what was read before stays in force until the journal can be read again
  given_ = std::move(*given);
  has_admin_ = std::any_of(given_.roles.begin(), given_.roles.end(),
                           [](const auto& one) { return one.role == authority::cluster_admin; });
  if (!has_admin_)
    given_.roles.push_back({.role = authority::cluster_admin, .user = first_user});
  grants_.clear();
  experiments_.clear();
  former_.clear();
  workspaces_.clear();
  const auto before = std::exchange(projects_, {});
  models_.clear();
  knows_registered_ = false;
  for (const auto& one : *workspaces)
    workspaces_.insert(one.id);
  for (const auto& one : *projects)
    projects_[one.id] = one.workspace;
  for (const auto& [id, in] : before)
    if (const auto at = projects_.find(id); at != projects_.end() && at->second != in)
      ++moves_;
  for (const auto& one : *models)
    models_[one.id] = one.workspace;
  seen_ = now;
  facts_ = *next + 1;
}

/// Whether all facts since the last look leave the rights as they are. This saves work, because experiments
/// come and go far more often than rights change.
bool role_book::passes_over_news(std::uint64_t next) {
  constexpr std::uint64_t most_news = 1000;
  if (!facts_ || next + 1 < facts_ || next + 1 - facts_ > most_news) {
    ++moves_; // facts that are not looked at may have moved something
    return false;
  }
  const auto news = from_->facts_of(cluster_entity, facts_ - 1);
  if (!news || news->size() < next + 1 - facts_) {
    ++moves_;
    return false;
  }
  std::vector<experiment_id> elsewhere;
  bool passes = true;
  for (const auto& bytes : *news) {
    const auto one = decode(bytes);
    const auto left = one ? leaves_rights(*one) : std::nullopt;
    if (one && std::holds_alternative<experiment_moved>(*one))
      ++moves_;
    if (left)
      elsewhere.push_back(*left);
    else
      passes = false;
  }
  if (passes)
    for (const auto id : elsewhere)
      experiments_.erase(id);
  return passes;
}

std::shared_ptr<const authority::grants> role_book::of(user_id user) {
  const std::scoped_lock lock(mutex_);
  catch_up();
  auto& known = grants_[user];
  if (!known)
    known =
      std::make_shared<const authority::grants>(authority::grants::of(user, given_.roles, given_.groups));
  return known;
}

workspace_id role_book::workspace_of(project_id id) {
  const std::scoped_lock lock(mutex_);
  catch_up();
  return value_of(projects_, id);
}
workspace_id role_book::workspace_of(model_id id) {
  const std::scoped_lock lock(mutex_);
  catch_up();
  return value_of(models_, id);
}
std::vector<workspace_id> role_book::registered_in(const std::string& checkpoint) {
  const std::scoped_lock lock(mutex_);
  catch_up();
  if (!knows_registered_)
    if (const auto versions = from_->model_versions()) {
      registered_.clear();
      for (const auto& one : *versions)
        registered_[one.checkpoint].push_back(one.model);
      knows_registered_ = true;
    }
  std::vector<workspace_id> out;
  for (const auto model : value_of(registered_, checkpoint))
    if (const auto in = value_of(models_, model))
      out.push_back(in);
  return out;
}
workspace_id role_book::workspace_of(experiment_id id) {
  if (!id)
    return {};
  std::uint64_t version = 0;
  {
    const std::scoped_lock lock(mutex_);
    catch_up();
    version = facts_;
    if (const auto at = experiments_.find(id); at != experiments_.end())
      return value_of(projects_, at->second);
  }
  const auto row = from_->experiment(id);
  if (!row)
    return {};
  const std::scoped_lock lock(mutex_);
  if (experiments_.size() >= most_experiments)
    experiments_.clear();
  if (version == facts_) // otherwise the experiment may have been moved since
    experiments_[id] = row->project;
  return value_of(projects_, row->project);
}

workspace_id role_book::last_workspace_of(experiment_id id) {
  if (!id)
    return {};
  std::uint64_t version = 0;
  {
    const std::scoped_lock lock(mutex_);
    catch_up();
    version = facts_;
    if (const auto at = former_.find(id); at != former_.end())
      return at->second;
  }
  if (const auto in = workspace_of(id))
    return in;
  const auto in = deleted_ ? deleted_->former_workspace(id) : result<workspace_id>(workspace_id{});
  const std::scoped_lock lock(mutex_);
  if (!in || !workspaces_.contains(*in))
    return {};
  if (former_.size() >= most_experiments)
    former_.clear();
  if (version == facts_) // otherwise its project may have been moved since
    former_[id] = *in;
  return *in;
}
workspace_id role_book::last_workspace_of(model_id id) {
  if (const auto in = workspace_of(id))
    return in;
  const auto in = deleted_ ? deleted_->former_workspace(id) : result<workspace_id>(workspace_id{});
  return in && knows(*in) ? *in : workspace_id{};
}

std::uint64_t role_book::moves() {
  const std::scoped_lock lock(mutex_);
  catch_up();
  return moves_;
}

experiment_id role_book::experiment_of(trial_id id) const {
  const auto row = from_->trial(id);
  return row ? row->experiment : experiment_id{};
}

bool viewer::sees(const task_detail& row) const {
  if (row.made.id == task)
    return true;
  if (row.made.id.kind() != task_kind::checkpoint_gc) {
    const auto shown = experiments_in(row); // a deleted experiment has nothing left to see
    return may(authority::permission::view_nsc, row.made.workspace) &&
           std::all_of(shown.begin(), shown.end(), [&](experiment_id id) {
             const auto in = book->workspace_of(id);
             return !in || owns(id) || may(authority::permission::view_experiment_artifacts, in);
           });
  }
  const auto collected = collected_experiment(row);
  if (owns(collected))
    return true;
  const auto in = book->workspace_of(collected);
  return in ? may(authority::permission::view_experiment_metadata, in)
            : may(authority::permission::view_workspace, row.made.workspace);
}

bool viewer::sees(const checkpoint_row& row) const {
  if (sees(row.experiment))
    return true;
  const auto places = book->registered_in(row.saved.uuid);
  return std::any_of(places.begin(), places.end(),
                     [this](workspace_id in) { return may(authority::permission::view_model_registry, in); });
}

bool role_book::knows(workspace_id id) {
  const std::scoped_lock lock(mutex_);
  catch_up();
  return workspaces_.contains(id);
}

bool role_book::is_in(group_id group, user_id user) {
  const std::scoped_lock lock(mutex_);
  catch_up();
  return given_.in(group, user);
}

bool role_book::has_admin() {
  const std::scoped_lock lock(mutex_);
  catch_up();
  return has_admin_;
}

} // namespace troupe::api
