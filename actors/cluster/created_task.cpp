#include "actors/cluster/created_task.hpp"

#include "actors/cluster/accepted_task.hpp"
#include "actors/task/task_settings.hpp"

namespace troupe {

task_kind kind_named(const std::string& name_of_it) {
  for (auto kind : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                    task_kind::generic, task_kind::checkpoint_gc})
    if (name_of_it == name(kind))
      return kind;
  return task_kind::trial;
}

result<created_task> to_create(const commands::task_create& wish, const std::string& user,
                               const task_world& world) {
  const auto kind = kind_named(wish.kind);
  if (kind == task_kind::trial)
    return error{errc::invalid, "'" + wish.kind + "' is not a kind of task"};
  const auto workspace = wish.workspace ? wish.workspace : workspace_id{1};
  const auto* place = world.workspace(workspace);
  if (!place)
    return error{errc::not_found, "workspace '" + to_string(workspace) + "' not found"};
  const bool brings_files = !wish.context_blob.empty() || !wish.context.held.empty();
  task_created made;
  made.at = world.now;
  made.id = world.fresh_id(kind);
  made.owner = user;
  made.workspace = workspace;
  made.context = wish.context_blob;
  made.details = wish.details;
  if (wish.no_pause)
    made.no_pause = *wish.no_pause ? 1 : 0;
  task_surface below;
  below.cluster = world.cluster;
  if (!wish.template_name.empty()) {
    const auto* known = world.template_named(wish.template_name);
    if (!known)
      return error{errc::not_found, "template '" + wish.template_name + "' not found"};
    below.template_config = known->config;
  }
  if (!wish.parent.empty()) {
    auto parent = world.task(wish.parent);
    if (!parent)
      return parent.error();
    made.parent = parent->id;
    if (wish.inherit_context && !brings_files)
      made.context = parent->context;
  } else if (wish.inherit_context) {
    return error{errc::invalid, "inheritContext needs parentId"};
  }
  auto config = wish.config;
  if (!wish.forked_from.empty()) {
    auto from = world.task(wish.forked_from);
    if (!from)
      return from.error();
    made.forked_from = from->id;
    if (made.context.empty() && !brings_files)
      made.context = from->context;
    auto merged = forked_config(*from, config);
    if (!merged)
      return merged.error();
    config = std::move(*merged);
  } else if (kind == task_kind::generic && (config.is_null() || config == "")) {
    return error{errc::invalid, "No config file nor forked task provided"};
  }
  // Policies are for what users create: what removes files of an experiment has to run in any case.
  const bool collects = kind == task_kind::checkpoint_gc;
  if (kind != task_kind::generic && !collects) {
    below.invariant = world.invariant(workspace);
    below.constraints = world.constraints(workspace);
  }
  below.compute_pool = place->compute_pool;
  below.aux_pool = place->aux_pool;
  if (!collects)
    below.pools = world.pools(workspace);
  auto accepted = accept_task(made.id, config, wish.config_name, below);
  if (!accepted)
    return accepted.error();
  made.config = std::move(accepted->config);
  made.source = std::move(accepted->source);
  made.pool = std::move(accepted->pool);
  if (kind == task_kind::shell) // whoever logs in has to know the account
    if (const auto as = world.account(made))
      made.details["account"] = {
        {"user", as->user}, {"uid", as->uid}, {"group", as->group}, {"gid", as->gid}};
  made.name = std::move(accepted->name);
  value answer{
    {"id", to_string(made.id)}, {"config", made.config}, {"pool", made.pool}, {"warnings", value::array()}};
  return created_task{std::move(made), std::move(answer)};
}

std::optional<error> unfulfillable(const task_created& made, const pool_capacity& pool) {
  const auto settings = task_settings_of(made, "");
  if (!settings || !settings->spec.rules.single_node || pool.largest < 0 ||
      settings->spec.slots <= pool.largest)
    return std::nullopt;
  return error{errc::invalid, "failed to prepare launch params: request unfulfillable, please try requesting "
                              "less slots (the largest agent of pool '" +
                                made.pool + "' has " + std::to_string(pool.largest) + ")"};
}

value launch_warnings(const task_created& made, const pool_capacity& pool) {
  auto out = value::array();
  const auto settings = task_settings_of(made, "");
  if (!settings)
    return out;
  const auto& spec = settings->spec;
  if (!launch_warning(pool, spec.slots, spec.slots, spec.rules.single_node).empty())
    out.push_back("LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"); // Determined's client knows this code alone
  return out;
}

} // namespace troupe
