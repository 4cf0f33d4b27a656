#include "runtime/api/veil.hpp"

#include "storage/log_search.hpp"
#include "storage/usage.hpp"

#include <limits>

namespace troupe::api {
namespace {

using authority::permission;

constexpr std::size_t most_read = 4096; ///< facts that are read at once to find those that the viewer may see

/// The error that storage gives for a thing that never existed.
error unseen(std::string_view kind, const std::string& id) {
  return {errc::not_found, "there is no " + std::string(kind) + " " + id};
}

/// Says which facts about people, places and settings the viewer may see. Facts about work are judged by
/// their stream.
class fact_rule {
public:
  explicit fact_rule(const viewer& by) : by_(by), mine_(by.book->of(by.user)) {}

  template <class F>
  bool operator()(const F& x) const {
    if constexpr (std::is_same_v<F, workspace_changed>)
      return may(permission::view_workspace, x.id);
    else if constexpr (std::is_same_v<F, project_changed>)
      return may(permission::view_project, x.workspace);
    else if constexpr (std::is_same_v<F, template_changed>)
      return may(permission::view_templates, x.workspace);
    else if constexpr (std::is_same_v<F, model_changed>)
      return may(permission::view_model_registry, x.workspace);
    else if constexpr (std::is_same_v<F, model_version_changed>)
      return may(permission::view_model_registry, by_.book->last_workspace_of(x.model));
    else if constexpr (std::is_same_v<F, webhook_changed>)
      return may(permission::view_webhooks, x.workspace);
    else if constexpr (std::is_same_v<F, policy_changed>)
      return x.workspace ? may(permission::view_workspace, x.workspace) &&
                             may(permission::view_workspace_config_policies, x.workspace)
                         : mine_->anywhere(permission::view_global_config_policies);
    else if constexpr (std::is_same_v<F, group_changed>)
      return std::find(x.members.begin(), x.members.end(), by_.user) != x.members.end() ||
             may(permission::update_group, workspace_id{});
    else if constexpr (std::is_same_v<F, roles_changed>)
      return x.user == by_.user || (x.group && by_.book->is_in(x.group, by_.user)) ||
             may(permission::assign_roles, x.workspace) ||
             (x.workspace && may(permission::view_workspace, x.workspace));
    else if constexpr (std::is_same_v<F, pool_bound>) // the same rule as in shows_pool
      return x.workspaces.empty() || may(permission::modify_rp_workspace_bindings, workspace_id{}) ||
             std::any_of(x.workspaces.begin(), x.workspaces.end(),
                         [this](workspace_id in) { return may(permission::view_workspace, in); });
    else if constexpr (std::is_same_v<F, user_changed>)
      return true;
    else if constexpr (std::is_same_v<F, cluster_message_changed>)
      // Everybody is told of a message that begins at once.
      return x.begins <= x.at || may(permission::view_master_config, workspace_id{});
    else if constexpr (std::is_same_v<F, user_setting_changed> || std::is_same_v<F, project_visited>)
      return x.user == by_.user;
    else if constexpr (requires { x.agent; }) // everybody may see hosts
      return true;
    else if constexpr (requires { x.experiment; })
      return by_.hears_of(x.experiment);
    else if constexpr (std::is_same_v<F, experiment_created> || std::is_same_v<F, experiment_described> ||
                       std::is_same_v<F, experiment_moved> || std::is_same_v<F, experiment_deleted> ||
                       std::is_same_v<F, experiment_continued>)
      return by_.hears_of(x.id);
    else if constexpr (std::is_same_v<F, trial_source_declared>)
      return by_.sees(by_.book->experiment_of(x.trial));
    else // facts about agents, settings, tokens and deliveries
      return may(permission::view_sensitive_agent_info, workspace_id{});
  }

private:
  bool may(permission what, workspace_id in) const { return mine_->holds(what, in); }

  const viewer& by_;
  const std::shared_ptr<const authority::grants> mine_; ///< looked up once for all facts
};

class veil final : public storage::reader, public storage::line_finder, public screen {
public:
  veil(std::shared_ptr<storage::reader> all, viewer by) : all_(std::move(all)), by_(std::move(by)) {}

  std::uint64_t sequence() const override { return all_->sequence(); }
  trial_id newest_trial() const override { return all_->newest_trial(); }

  result<std::vector<experiment_row>> experiments() const override {
    return left(all_->experiments(), [this](const auto& row) { return shown(row); });
  }
  result<std::vector<experiment_standing>> experiment_standings() const override {
    return left(all_->experiment_standings(), [this](const auto& row) { return shown(row); });
  }
  result<experiment_row> experiment(experiment_id id) const override {
    auto row = all_->experiment(id);
    return !row || shown(*row) ? std::move(row) : unseen("experiment", to_string(id));
  }
  result<std::vector<experiment_id>> experiments_with_key(std::string_view key) const override {
    return left(all_->experiments_with_key(key), [this](experiment_id id) { return by_.sees(id); });
  }
  result<std::vector<trial_row>> trials(experiment_id id) const override {
    return by_.sees(id) ? all_->trials(id) : result<std::vector<trial_row>>(std::vector<trial_row>{});
  }
  result<std::vector<trial_id>> trial_ids(experiment_id id) const override {
    return by_.sees(id) ? all_->trial_ids(id) : result<std::vector<trial_id>>(std::vector<trial_id>{});
  }
  result<trial_row> trial(trial_id id) const override {
    auto row = all_->trial(id);
    return !row || by_.sees(row->experiment) ? std::move(row) : unseen("trial", to_string(id));
  }
  result<trial_id> trial_with_name(const local_name& name) const override {
    auto id = all_->trial_with_name(name);
    if (!id || trial(*id))
      return id;
    return error{errc::not_found, "there is no run " + to_string(name)};
  }
  result<task_row> task(task_id id) const override {
    auto row = all_->task(id);
    return !row || shown(*row) ? std::move(row) : unseen("task", to_string(id));
  }
  result<std::vector<run_row>> runs(task_id id) const override {
    return shown(id) ? all_->runs(id) : result<std::vector<run_row>>(unseen("task", to_string(id)));
  }
  result<task_detail> other_task(task_id id) const override {
    auto row = all_->other_task(id);
    return !row || shown(*row) ? std::move(row) : unseen("task", to_string(id));
  }
  result<std::vector<task_detail>> other_tasks(task_kind kind, time_point since) const override {
    return left(all_->other_tasks(kind, since), [this](const auto& row) { return shown(row); });
  }
  result<std::vector<task_row>> open_tasks() const override {
    return left(all_->open_tasks(), [this](const auto& row) { return shown(row); });
  }
  result<std::vector<metric_row>> metrics(trial_id id, std::uint64_t after, std::size_t limit,
                                          std::string_view group) const override {
    return shown(task_id{id}) ? all_->metrics(id, after, limit, group)
                              : result<std::vector<metric_row>>(std::vector<metric_row>{});
  }
  result<metric_row> metric(trial_id id, std::uint64_t row) const override {
    return shown(task_id{id}) ? all_->metric(id, row) : result<metric_row>(unseen("trial", to_string(id)));
  }
  result<std::vector<checkpoint_row>> checkpoints(trial_id id) const override {
    return shown(task_id{id}) ? all_->checkpoints(id)
                              : result<std::vector<checkpoint_row>>(std::vector<checkpoint_row>{});
  }
  result<checkpoint_row> checkpoint(std::string_view uuid) const override {
    auto row = all_->checkpoint(uuid);
    return !row || by_.sees(*row) ? std::move(row) : unseen("checkpoint", std::string(uuid));
  }
  result<std::vector<log_line>> logs(task_id id, std::uint64_t after, std::size_t limit) const override {
    return shown(id) ? all_->logs(id, after, limit) : result<std::vector<log_line>>(std::vector<log_line>{});
  }
  result<std::vector<log_line>> logs_before(task_id id, std::uint64_t before,
                                            std::size_t limit) const override {
    return shown(id) ? all_->logs_before(id, before, limit)
                     : result<std::vector<log_line>>(std::vector<log_line>{});
  }
  result<storage::lines_found> find_lines(const storage::line_search& what) const override {
    return shown(what.task) ? storage::find_lines(*all_, what)
                            : result<storage::lines_found>(storage::lines_found{.lines = {}, .at_end = true});
  }

  result<std::vector<storage::committed_fact>> facts_after(std::uint64_t after,
                                                           std::size_t limit) const override {
    {
      const std::scoped_lock lock(mutex_);
      if (after >= passed_.first && after < passed_.second)
        after = passed_.second; // the viewer may see no fact between the two
    }
    const auto from = after;
    std::vector<storage::committed_fact> out;
    while (out.empty()) {
      auto some = all_->facts_after(after, std::max(limit, most_read));
      if (!some || some->empty()) {
        const std::scoped_lock lock(mutex_);
        passed_ = {from, after};
        return some ? result<std::vector<storage::committed_fact>>(std::move(out)) : some.error();
      }
      for (auto& one : *some) {
        after = one.sequence;
        if (sees(by_, *all_, one))
          out.push_back(std::move(one));
        if (out.size() == limit)
          break;
      }
    }
    return out;
  }
  /// The stream of people and places is given whole, because its numbers count; its readers check each fact.
  result<std::vector<std::string>> facts_of(std::string_view entity, std::uint64_t first) const override {
    return shown(entity) ? all_->facts_of(entity, first)
                         : result<std::vector<std::string>>(std::vector<std::string>{});
  }
  result<std::uint64_t> next_of(std::string_view entity) const override {
    return shown(entity) ? all_->next_of(entity) : result<std::uint64_t>(0);
  }

  result<std::vector<user_changed>> users() const override { return all_->users(); }
  result<std::vector<token_changed>> tokens() const override { return all_->tokens(); }
  result<std::vector<setting_changed>> settings() const override { return all_->settings(); }
  result<std::optional<configuration_changed>> configuration() const override {
    return all_->configuration();
  }
  result<std::vector<workspace_changed>> workspaces() const override { return by_rule(all_->workspaces()); }
  result<std::vector<project_changed>> projects() const override { return by_rule(all_->projects()); }
  result<std::vector<template_changed>> templates() const override { return by_rule(all_->templates()); }
  result<std::vector<model_changed>> models() const override { return by_rule(all_->models()); }
  result<std::vector<model_version_changed>> model_versions() const override {
    return by_rule(all_->model_versions());
  }
  result<std::vector<std::string>> records(std::string_view tag, std::string_view prefix) const override {
    if (tag == storage::usage_record::tag) // only this kind of record is not a fact
      return left(all_->records(tag, prefix),
                  [this](const std::string& bytes) { return shown_usage(bytes); });
    return left(all_->records(tag, prefix), [this](const std::string& bytes) {
      const auto known = decode(bytes);
      return known && std::visit(fact_rule{by_}, *known);
    });
  }
  result<std::optional<storage::kept_snapshot>> snapshot_of(std::string_view entity) const override {
    return shown(entity) ? all_->snapshot_of(entity)
                         : result<std::optional<storage::kept_snapshot>>(std::nullopt);
  }
  result<std::vector<std::string>> entities(std::string_view kind) const override {
    return left(all_->entities(kind), [this](const std::string& one) { return shown(one); });
  }
  result<std::string> blob(std::string_view name) const override { return all_->blob(name); }

private:
  template <class T, class Keep>
  static result<std::vector<T>> left(result<std::vector<T>> rows, const Keep& keep) {
    if (rows)
      std::erase_if(*rows, [&](const auto& one) { return !keep(one); });
    return rows;
  }
  template <class T>
  result<std::vector<T>> by_rule(result<std::vector<T>> rows) const {
    return left(std::move(rows), fact_rule{by_});
  }

  bool shows(experiment_id id, project_id in) const override {
    return by_.owns(id) || by_.may(permission::view_experiment_metadata, by_.book->workspace_of(in));
  }
  bool shows(experiment_id id) const override { return by_.sees(id); }
  bool shows_all() const override {
    return by_.may(permission::view_experiment_metadata, workspace_id{}) &&
           by_.may(permission::view_nsc, workspace_id{});
  }
  std::uint64_t rights() const override {
    auto now = by_.book->of(by_.user);
    const auto moves = by_.book->moves();
    const std::scoped_lock lock(mutex_);
    if (!may_ || *may_ != *now || moves != moves_)
      ++rights_;
    may_ = std::move(now);
    moves_ = moves;
    return rights_;
  }
  /// Whether the viewer may see an experiment, by its row or standing, which names its project.
  template <class Row>
  bool shown(const Row& row) const requires requires {
    row.num_trials;
  }
  { return shows(row.id, row.project); }
  bool shown(const task_detail& row) const { return by_.sees(row); }
  bool shown(const task_row& row) const {
    if (row.id == by_.task)
      return true;
    if (row.id.is_trial())
      return by_.sees(row.experiment);
    const auto detail = all_->other_task(row.id);
    return detail && shown(*detail);
  }
  bool shown(task_id id) const {
    if (id == by_.task)
      return true;
    const auto row = all_->task(id);
    return row && shown(*row);
  }
  bool shown_usage(const std::string& bytes) const {
    if (by_.may(permission::view_cluster_usage, workspace_id{}))
      return true;
    const auto one = unpack<storage::usage_record>(bytes);
    return one && (one->experiment ? by_.sees(one->experiment) : shown(one->task));
  }
  bool shown(std::string_view entity) const {
    if (entity == cluster_entity)
      return true;
    storage::committed_fact named;
    named.entity = entity;
    return sees(by_, *all_, named);
  }

  std::shared_ptr<storage::reader> all_;
  viewer by_;
  mutable std::mutex mutex_;
  mutable std::pair<std::uint64_t, std::uint64_t> passed_; ///< the viewer may see no fact between these two
  mutable std::shared_ptr<const authority::grants> may_; ///< as `rights` saw them last, with the book's moves
  mutable std::uint64_t moves_ = 0, rights_ = 0;
};

} // namespace

bool sees(const viewer& by, const storage::reader& all, const storage::committed_fact& fact) {
  const std::string_view entity = fact.entity;
  const auto slash = entity.find('/');
  const auto kind = entity.substr(0, slash),
             rest = slash == entity.npos ? std::string_view{} : entity.substr(slash + 1);
  if (kind == "experiment")
    return by.hears_of(parse_id<experiment_id>(rest));
  if (kind == "trial" || kind == "task" || kind == "allocation") {
    const auto id = kind == "allocation" ? parse_allocation(rest).task : parse_task(rest);
    if (id == by.task)
      return true;
    if (!id.is_trial()) {
      const auto row = all.other_task(id);
      return row && by.sees(*row);
    }
    const auto row = all.task(id);
    return row && by.sees(row->experiment);
  }
  const auto known = decode(fact.bytes);
  return known && std::visit(fact_rule{by}, *known);
}

std::shared_ptr<storage::reader> veiled(std::shared_ptr<storage::reader> all, viewer by) {
  return std::make_shared<veil>(std::move(all), std::move(by));
}

} // namespace troupe::api
