#include "runtime/api/guard.hpp"

#include "model/config/cluster_config.hpp"
#include "model/config/document.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

using authority::action;
using authority::permission;
using authority::thing;

std::uint64_t number_at(const value& fields, const char* key) {
  const auto at = fields.find(key);
  return at != fields.end() && at->is_number_unsigned() ? at->get<std::uint64_t>()
         : at != fields.end() && at->is_number_integer() && at->get<std::int64_t>() > 0
           ? static_cast<std::uint64_t>(at->get<std::int64_t>())
           : 0;
}
std::string text_at(const value& fields, const char* key) {
  const auto at = fields.find(key);
  return at != fields.end() && at->is_string() ? at->get<std::string>() : std::string();
}

/// Finds the things that a command names, and collects the permissions that the command needs there.
class reading_of {
public:
  reading_of(const viewer& by, const storage::reader& all, std::string command, const value& fields)
      : by_(by), all_(all), command_(std::move(command)), fields_(fields) {}

  result<std::vector<demand>> demands(const commands::about& is) {
    const auto p = authority::needed(is.right);
    switch (is.right.on) {
    case thing::experiment:
    case thing::search:
    case thing::files:
      of_experiment(is.right.what, *p);
      break;
    case thing::trial:
    case thing::task:
    case thing::log:
    case thing::allocation:
      if (is.right == authority::need{action::remove, thing::log})
        need(*p, {});
      else
        of_task(is.right, p);
      break;
    case thing::checkpoint:
      of_checkpoints(*p);
      break;
    case thing::workspace:
      of_workspace(is.right.what, *p);
      break;
    case thing::project:
      of_project(is.right.what, *p);
      break;
    case thing::config_template:
      of_template();
      break;
    case thing::model:
      of_model(is.right.what, *p);
      break;
    case thing::webhook:
      of_webhook(is.right.what, *p);
      break;
    case thing::policy:
      if (const auto policies = fields_.value("policies", value()); policies.is_object())
        warm_start(policies.value("invariant_config", value()));
      if (const workspace_id in{number_at(fields_, "workspace")}; in)
        need(*p, in);
      else
        need(permission::modify_global_config_policies, {});
      break;
    case thing::role:
      for (const auto& one : fields_.value("roles", value::array()))
        need(*p, {number_at(one, "workspace")});
      break;
    case thing::token: // the owner of the token was checked before
      break;
    default:
      if (p)
        need(*p, {});
    }
    if (fault_)
      return *fault_;
    return std::move(demands_);
  }

private:
  void need(permission what, workspace_id in) { demands_.push_back({what, in}); }
  void fail(const std::string& kind, const std::string& id) {
    if (!fault_)
      fault_ = error{errc::not_found, kind + " '" + id + "' not found"};
  }

  void on_experiment(experiment_id id, permission what) {
    if (!id || by_.owns(id))
      return;
    if (!by_.sees(id))
      return fail("experiment", to_string(id));
    need(what, by_.book->workspace_of(id));
  }
  void on_trial(trial_id id, permission what) {
    if (task_id{id} == by_.task)
      return;
    const auto row = all_.trial(id);
    if (!row || !(by_.owns(row->experiment) || by_.sees(row->experiment)))
      return fail("trial", to_string(id));
    on_experiment(row->experiment, what);
  }
  /// Checks a trial, or a task that is not a trial.
  void on_task(task_id id, action what, const std::string& text) {
    if (!id || id == by_.task)
      return;
    if (id.is_trial())
      return on_trial(id.trial(), what == action::view     ? permission::view_experiment_metadata
                                  : what == action::remove ? permission::delete_experiment
                                                           : permission::update_experiment);
    const auto row = all_.other_task(id);
    if (!row || !by_.sees(*row))
      return fail("task", text);
    need(what == action::view ? permission::view_nsc : permission::update_nsc, row->made.workspace);
  }
  void on_checkpoint(const std::string& uuid, permission what) {
    const auto row = all_.checkpoint(uuid);
    if (!row)
      return fail("checkpoint", uuid); // the same answer as for a checkpoint that may not be seen
    if (by_.sees(row->experiment))
      return on_experiment(row->experiment, what);
    if (!by_.sees(*row))
      return fail("checkpoint", uuid);
    // The viewer sees the checkpoint as a version of a model, but not its experiment: it may be looked at and
    // used. To change it takes the permission in all workspaces, so that no answer names its workspace.
    if (what != permission::view_experiment_artifacts)
      need(what, {});
  }

  void of_experiment(action what, permission p) {
    if (what == action::create)
      return of_submission(p);
    if (command_ == commands::experiment_continue::is.name)
      warm_start(config_given());
    if (command_ == commands::search_order::is.name)
      warm_starts_of_orders();
    if (const experiment_id id{number_at(fields_, fields_.contains("experiment") ? "experiment" : "id")}; id)
      on_experiment(id, p);
    else if (const trial_id trial{number_at(fields_, "trial")}; trial)
      on_trial(trial, p);
    if (what == action::move)
      if (const project_id to{number_at(fields_, "project")}; to)
        into_project(to, permission::create_experiment);
  }

  void into_project(project_id id, permission p) {
    const auto in = by_.book->workspace_of(id);
    if (!in || !by_.may(permission::view_project, in))
      return fail("project", to_string(id));
    need(p, in);
  }

  /// Checks a submission. Its workspace and project come from the command, or else from the configuration, or
  /// else from the template below that. A workspace that does not exist is refused here, as one that the
  /// viewer may not see: the command itself would first tell what else is wrong with the configuration.
  void of_submission(permission p) {
    if (const experiment_id parent{number_at(fields_, "parent")}; parent && !by_.sees(parent))
      fail("experiment", to_string(parent));
    const auto config = config_given();
    const auto below = template_below();
    warm_start(config), warm_start(below);
    if (const project_id project{number_at(fields_, "project")}; project)
      return into_project(project, p);
    const auto usual = defaults_below(config, below);
    const auto named = [&](const char* key) {
      for (const auto* layer : {&config, &below, &usual})
        if (layer->is_object())
          if (const auto text = text_at(*layer, key); !text.empty())
            return text;
      return std::string();
    };
    const auto workspace = named("workspace"), project = named("project");
    if (workspace.empty())
      return into_workspace(workspace_id{1}, p);
    const auto all = all_.workspaces();
    if (!all) {
      fault_ = all.error();
      return;
    }
    for (const auto& one : *all)
      if (one.name == workspace && by_.may(permission::view_workspace, one.id))
        return need(p, one.id);
    if (!fault_)
      fault_ = error{errc::not_found, "workspace '" + workspace + "' or project '" + project + "' not found"};
  }
  /// The cluster file's defaults for experiments of the pool that `config` names, or else `below`, or else of
  /// the default pool.
  value defaults_below(const value& config, const value& below) const {
    const auto known = all_.configuration();
    const auto cluster = known && *known ? (*known)->configuration : value();
    std::string pool;
    for (const auto* layer : {&config, &below})
      if (pool.empty() && layer->is_object())
        if (const auto resources = layer->find("resources"); resources != layer->end())
          pool = text_at(*resources, "resource_pool");
    return config::experiment_defaults(cluster, pool.empty() ? config::default_pool(cluster) : pool);
  }
  value config_given() const {
    const auto at = fields_.find("config");
    if (at == fields_.end())
      return {};
    return at->is_string() ? config::to_value(config::read_document(at->get<std::string>(), "").root) : *at;
  }
  /// Checks the checkpoints from which the orders of a custom search start or continue trials.
  void warm_starts_of_orders() {
    const auto orders = fields_.value("orders", value());
    const auto actions = orders.is_object() ? orders.value("actions", value()) : value();
    if (!actions.is_array())
      return;
    for (const auto& one : actions)
      for (const char* key : {"source_checkpoint", "checkpoint"})
        if (const auto uuid = one.is_object() ? text_at(one, key) : ""; !uuid.empty())
          on_checkpoint(uuid, permission::view_experiment_artifacts);
  }
  void warm_start(const value& config) {
    const auto searcher = config.is_object() ? config.value("searcher", value()) : value();
    if (!searcher.is_object())
      return;
    if (const trial_id from{number_at(searcher, "source_trial_id")}; from)
      on_trial(from, permission::view_experiment_artifacts);
    if (const auto uuid = text_at(searcher, "source_checkpoint_uuid"); !uuid.empty())
      on_checkpoint(uuid, permission::view_experiment_artifacts);
  }

  void of_task(authority::need right, std::optional<permission> p) {
    if (right == authority::need{action::create, thing::task}) {
      // The new task takes files from these tasks.
      for (const auto& [key, what] : {std::pair{"parent", action::change}, {"forked_from", action::view}})
        if (const auto text = text_at(fields_, key); !text.empty())
          on_task(parse_task(text), what, text);
      template_below();
      const workspace_id in{number_at(fields_, "workspace")};
      return into_workspace(in ? in : workspace_id{1}, *p);
    }
    if (right == authority::need{action::create, thing::trial})
      return on_experiment({number_at(fields_, "experiment")}, *p);
    if (const auto uuid = text_at(fields_, "checkpoint"); !uuid.empty())
      on_checkpoint(uuid, permission::view_experiment_artifacts);
    if (const auto text = text_at(fields_, "allocation"); !text.empty())
      return on_task(parse_allocation(text).task, right.what, text);
    if (const trial_id trial{number_at(fields_, "trial")}; trial)
      return on_task(task_id{trial}, right.what, to_string(trial));
    if (const trial_id trial{number_at(fields_, "id")}; trial)
      return on_task(task_id{trial}, right.what, to_string(trial));
    if (const auto text = text_at(fields_, "id"); !text.empty()) {
      const auto task = parse_task(text);
      on_task(task ? task : parse_allocation(text).task, right.what, text);
    }
  }

  void of_checkpoints(permission p) {
    if (const auto text = text_at(fields_, "allocation"); !text.empty())
      return on_task(parse_allocation(text).task, action::report, text);
    if (const auto uuid = text_at(fields_, "uuid"); !uuid.empty())
      on_checkpoint(uuid, p);
    for (const auto& one : fields_.value("checkpoints", value::array()))
      on_checkpoint(text_at(one, "uuid"), p);
    for (const auto& one : fields_.value("uuids", value::array()))
      if (one.is_string())
        on_checkpoint(one.get<std::string>(), p);
  }

  void into_workspace(workspace_id id, permission p) {
    if (!by_.book->knows(id) || !by_.may(permission::view_workspace, id))
      return fail("workspace", to_string(id));
    need(p, id);
  }
  void of_workspace(action what, permission p) {
    const workspace_id id{number_at(fields_, "id")};
    if (what == action::create)
      need(p, {});
    else
      into_workspace(id, p);
    const auto besides = [&](std::initializer_list<const char*> keys, permission more) {
      for (const auto* key : keys)
        if (const auto at = fields_.find(key);
            at != fields_.end() && !at->is_null() && what != action::create)
          return need(more, id);
    };
    besides({"runs_as"}, permission::set_workspace_agent_user_group);
    besides({"checkpoint_storage"}, permission::set_workspace_checkpoint_storage_config);
    besides({"compute_pool", "aux_pool"}, permission::set_workspace_default_resource_pool);
  }
  void of_project(action what, permission p) {
    const workspace_id to{number_at(fields_, "workspace")};
    if (what == action::create)
      return into_workspace(to, p);
    const project_id id{number_at(fields_, fields_.contains("project") ? "project" : "id")};
    into_project(id, p);
    if (to && what == action::change)
      into_workspace(to, permission::create_project);
  }

  std::optional<template_changed> template_named(const std::string& name) const {
    if (auto all = all_.templates())
      for (auto& one : *all)
        if (one.name == name)
          return std::move(one);
    return std::nullopt;
  }
  bool is_seen(const template_changed& one) const {
    return by_.may(permission::view_templates, one.workspace);
  }
  /// The configuration of the template that the command names; null where it names none, or one that the
  /// viewer may not see.
  value template_below() {
    const auto name = text_at(fields_, "template");
    if (name.empty())
      return {};
    const auto known = template_named(name);
    if (known && is_seen(*known))
      return known->config;
    fail("template", name);
    return {};
  }
  void of_template() {
    const auto name = text_at(fields_, "name");
    const bool makes =
      command_ == commands::template_put::is.name && fields_.value("known", value()) != value(true);
    const workspace_id to{number_at(fields_, "workspace")};
    const auto known = template_named(name);
    if (known && is_seen(*known)) {
      need(command_ == commands::template_remove::is.name ? permission::delete_templates
                                                          : permission::update_templates,
           known->workspace);
      if (to && to != known->workspace)
        into_workspace(to, permission::create_templates);
    } else if (makes) {
      const auto in = to ? to : workspace_id{1};
      into_workspace(in, permission::create_templates);
      // Names of templates are unique in the whole cluster.
      if (known && by_.may(permission::create_templates, in))
        fault_ = error{errc::conflict, "failed to create template " + name};
    } else {
      fail("template", name);
    }
  }

  void of_model(action what, permission p) {
    const workspace_id to{number_at(fields_, "workspace")};
    if (what == action::create)
      return into_workspace(to ? to : workspace_id{1}, p);
    const model_id id{number_at(fields_, fields_.contains("model") ? "model" : "id")};
    const auto in = by_.book->workspace_of(id);
    if (!in || !by_.may(permission::view_model_registry, in))
      return fail("model", to_string(id));
    const bool whole = command_ == commands::model_remove::is.name;
    if (what == action::remove && !by_.may(whole ? permission::delete_other_user_model_registry
                                                 : permission::delete_other_user_model_version,
                                           in))
      need(whole ? permission::delete_model_registry : permission::delete_model_version, in);
    else
      need(p, in);
    if (to && what == action::change && command_ == commands::model_change::is.name && to != in)
      into_workspace(to, permission::create_model_registry);
    if (const auto uuid = text_at(fields_, "checkpoint"); !uuid.empty())
      on_checkpoint(uuid, permission::view_experiment_artifacts);
  }

  void of_webhook(action what, permission p) {
    if (what == action::report)
      return on_experiment({number_at(fields_, "experiment")}, p);
    const webhook_id id{number_at(fields_, "id")};
    if (!id)
      return need(p, {number_at(fields_, "workspace")});
    const auto all = storage::records_of<webhook_changed>(all_);
    if (!all)
      fault_ = all.error();
    else
      for (const auto& one : *all)
        if (one.id == id && by_.may(permission::view_webhooks, one.workspace))
          return need(p, one.workspace);
    fail("webhook", to_string(id));
  }

  const viewer& by_;
  const storage::reader& all_;
  std::string command_;
  const value& fields_;
  std::vector<demand> demands_;
  std::optional<error> fault_;
};

/// Removes from a list in an answer the entries about experiments and tasks that the viewer may not see.
/// `tasks`: jobs of tasks that are not trials stay, because the caller looks them up itself.
void leave_out(value& list, const viewer& by, const storage::reader& seen, bool tasks) {
  if (!list.is_array())
    return;
  value left = value::array();
  for (auto& one : list) {
    const experiment_id id{number_at(one, "experiment")};
    const auto allocation = parse_allocation(text_at(one, "allocation"));
    const bool shown =
      allocation ? bool(seen.task(allocation.task))
      : id       ? (is_task_job(id) ? tasks || by.may(permission::view_nsc, workspace_id{}) : by.sees(id))
                 : true;
    if (shown)
      left.push_back(std::move(one));
  }
  list = std::move(left);
}

/// Removes from a list the entries of pools that the viewer may not see. `key` names the field with the pool.
void leave_out_pools(value& list, const char* key, const viewer& by, const storage::reader& all) {
  value left = value::array();
  std::map<std::string, bool> shown;
  for (auto& one : list) {
    const auto pool = text_at(one, key);
    const auto [at, fresh] = shown.try_emplace(pool, false);
    if (fresh)
      at->second = shows_pool(by, all, pool);
    if (at->second)
      left.push_back(std::move(one));
  }
  list = std::move(left);
}

/// Replaces the ids of runs that the viewer may not see by a word, so that their slots are still shown as
/// busy.
void hide_runs(value& agents, const storage::reader& seen) {
  const auto hide = [&](value& held, const std::string& word) {
    const auto text = text_at(held, "allocation");
    if (text.empty() || seen.task(parse_allocation(text).task))
      return;
    held["allocation"] = word;
    held["hidden"] = true;
  };
  for (auto& agent : agents) {
    if (const auto slots = agent.find("slots"); slots != agent.end() && slots->is_array())
      for (auto& slot : *slots)
        hide(slot, "hidden-" + std::to_string(number_at(slot, "id")));
    std::size_t number = 0;
    if (const auto aux = agent.find("aux"); aux != agent.end() && aux->is_array())
      for (auto& run : *aux)
        hide(run, "hidden-aux-" + std::to_string(number++));
  }
}

} // namespace

result<std::vector<demand>> demands_of(const viewer& by, const storage::reader& all,
                                       const std::string& command, const value& fields) {
  const auto* row = commands::find(command);
  if (!row)
    return error{errc::unsupported, "no command '" + command.substr(0, 100) + "'"};
  return reading_of(by, all, command, fields).demands(row->is);
}

bool shows_pool(const viewer& by, const storage::reader& all, const std::string& pool) {
  if (by.may(permission::modify_rp_workspace_bindings, workspace_id{}))
    return true;
  const auto cluster = all.configuration();
  const auto bound = storage::records_of<pool_bound>(all, pool);
  if (!cluster || !bound)
    return false;
  const auto names =
    *cluster ? config::workspaces_of_pool((*cluster)->configuration, pool) : std::vector<std::string>{};
  std::set<workspace_id> ids;
  for (const auto& one : *bound)
    if (one.pool == pool)
      ids.insert(one.workspaces.begin(), one.workspaces.end());
  if (names.empty() && ids.empty())
    return true;
  const auto workspaces = all.workspaces();
  if (!workspaces)
    return false;
  bool is_bound = !names.empty(); // a workspace that was deleted binds no pool
  for (const auto& one : *workspaces) {
    const bool by_api = ids.contains(one.id);
    is_bound = is_bound || by_api;
    if ((by_api || std::find(names.begin(), names.end(), one.name) != names.end()) &&
        by.may(permission::view_workspace, one.id))
      return true;
  }
  return !is_bound;
}

result<void> guard::check(const principal& who, const std::string& command, const value& fields) const {
  if (strict_queue_ &&
      (command == commands::experiment_set::is.name || command == commands::task_set::is.name))
    if (by_.book ? !by_.may(permission::control_strict_job_queue, workspace_id{}) : !who.admin)
      return error{errc::denied,
                   "access denied: cluster.strict_job_queue_control lets only admins change the "
                   "queue"};
  if (!by_.book)
    return {};
  const auto wanted = demands_of(by_, *all_, command, fields);
  if (!wanted)
    return wanted.error();
  for (const auto& one : *wanted)
    if (!by_.may(one.what, one.in))
      return error{errc::denied, std::string("access denied: this needs the permission ") +
                                   authority::permissions()[static_cast<std::size_t>(one.what)].name +
                                   (one.in ? " in workspace " + to_string(one.in) : "")};
  return {};
}

void guard::call_together(const principal& who, std::vector<grouped_order> orders) {
  std::vector<grouped_order> fine;
  for (auto& one : orders)
    if (auto may = check(who, one.command, one.fields); may)
      fine.push_back(std::move(one));
    else
      one.done(may.error());
  if (!fine.empty())
    to_.call_together(who, std::move(fine));
}

void guard::call(const principal& who, const std::string& command, value fields, answer done) {
  if (auto fine = check(who, command, fields); !fine)
    return done(fine.error());
  if (!by_.book)
    return to_.call(who, command, std::move(fields), std::move(done));
  if (command == commands::pool_details::is.name && !text_at(fields, "name").empty() &&
      !shows_pool(by_, *all_, text_at(fields, "name")))
    return done(error{errc::not_found, "pool '" + text_at(fields, "name") + "' not found"});
  if (command == commands::queue_list::is.name || command == commands::pool_details::is.name ||
      command == commands::pool_list::is.name || command == commands::job_list::is.name)
    done = [by = by_, all = all_, seen = veiled(all_, by_), done = std::move(done)](result<value> got) {
      if (got && got->is_object()) {
        if (const auto pools = got->find("pools"); pools != got->end())
          leave_out_pools(*pools, "name", by, *all);
        for (const char* key : {"waiting", "jobs"})
          if (const auto at = got->find(key); at != got->end())
            leave_out(*at, by, *seen, false);
        if (const auto pools = got->find("pools"); pools != got->end())
          for (auto& pool : *pools)
            if (const auto at = pool.find("jobs"); at != pool.end())
              leave_out(*at, by, *seen, true);
      }
      done(std::move(got));
    };
  if (command == commands::agent_list::is.name)
    done = [by = by_, all = all_, seen = veiled(all_, by_), done = std::move(done)](result<value> got) {
      if (got && got->is_object())
        if (const auto agents = got->find("agents"); agents != got->end()) {
          leave_out_pools(*agents, "pool", by, *all);
          hide_runs(*agents, *seen);
        }
      done(std::move(got));
    };
  // The creator of a workspace becomes its admin.
  if (command == commands::workspace_create::is.name)
    done = [to = &to_, who, user = by_.user, done = std::move(done)](result<value> got) {
      const workspace_id made{got && got->is_object() ? number_at(*got, "id") : 0};
      if (!made)
        return done(std::move(got));
      commands::role_assign with;
      with.roles.push_back({authority::workspace_admin, user, {}, made});
      to->order(who, std::move(with), [got = std::move(got), done](result<value> given) {
        done(given ? got : result<value>(given.error()));
      });
    };
  to_.call(who, command, std::move(fields), std::move(done));
}

void guard::open(const principal& who, const std::string& command, value fields, std::shared_ptr<feed> to,
                 answer done) {
  if (auto fine = check(who, command, fields); !fine)
    return done(fine.error());
  auto* watched = dynamic_cast<feed_gate*>(&to_);
  if (!watched)
    return done(error{errc::unsupported, "the cluster cannot be watched here"});
  watched->open(who, command, std::move(fields), std::move(to), std::move(done));
}

} // namespace troupe::api
