#pragma once
// The table of all commands. A name finds its struct here, for checks, dispatch and documents.

#include "model/commands/house_commands.hpp"
#include "model/commands/place_commands.hpp"
#include "model/commands/pool_commands.hpp"
#include "model/commands/shell_commands.hpp"
#include "model/commands/task_commands.hpp"
#include "model/commands/unmanaged_commands.hpp"

#include <unordered_map>
#include <unordered_set>

namespace troupe::commands {

/// Commands whose facts actors/catalogue/places and registry decide.
using place_commands =
  list<workspace_create, workspace_change, workspace_pin, workspace_remove, project_create, project_change,
       project_remove, experiment_describe, experiment_move>;
using registry_commands = list<template_put, template_rename, template_remove, model_create, model_change,
                               model_remove, version_create, version_change, version_remove>;
using node_commands =
  list<experiment_create, experiment_validate, experiment_activate, experiment_pause, experiment_cancel,
       experiment_kill, trial_kill, search_order, search_wait, trial_metadata, trial_set_metadata,
       checkpoint_patch, status, agent_list, queue_list, pool_list, agent_drain, agent_remove, agent_slots,
       fence, logs_cleanup, node_shutdown, configuration_record, setting_change, user_create, user_change,
       token_name, token_revoke>;
using scheduling_commands = list<experiment_set, experiment_continue, pool_details, job_list,
                                 allocation_explain, trial_explain, task_explain, experiment_explain>;
/// Commands whose facts actors/catalogue/people and house_rules decide.
using people_commands = list<user_set, project_visit, group_create, group_change, group_remove, role_assign>;
using rule_commands = list<policy_set, pool_bind, webhook_create, webhook_change, webhook_remove,
                           cluster_message_set, log_retain, trial_source_declare>;
using webhook_calls = list<webhook_alert, webhook_test>;
/// Commands that delete stored things.
using removal_commands =
  list<experiment_delete, experiment_erase_tensorboards, checkpoint_remove, checkpoint_describe>;
using grouped_commands = list<orders_together>; ///< the cluster's actor itself takes it
/// Commands about one trial of a search that stays.
using single_trial_commands = list<trial_delete, trial_archive>;
using access_commands = list<token_create, token_change>;
/// Commands about tasks that are not trials.
using work_commands = list<task_create, task_kill, task_pause, task_unpause, task_set, task_use>;
/// Commands about trials of unmanaged experiments.
using unmanaged_commands = list<trial_create, trial_start, trial_hear>;
using cluster_commands =
  join<node_commands, place_commands, registry_commands, scheduling_commands, people_commands, rule_commands,
       webhook_calls, removal_commands, single_trial_commands, access_commands, work_commands,
       unmanaged_commands, grouped_commands>;
/// Commands whose facts the catalogue decides (actors/catalogue/).
using catalogue_commands = list<configuration_record, setting_change, user_create, user_change, token_name,
                                token_revoke, token_create, token_change>;
/// Commands of tasks, which go through cluster and experiment to the trial. The trial passes the first list
/// on to its open run.
using allocation_calls = list<allocation_preemption, allocation_ack_preemption, allocation_pending_preemption,
                              allocation_rendezvous, allocation_daemon, trial_early_exit, allocation_connect>;
using trial_calls = list<trial_progress, checkpoint_report>;
using work_calls = list<task_answers>;
using task_calls = join<allocation_calls, trial_calls, work_calls>;
using allocation_commands = join<allocation_calls, list<worker_validate, worker_checkpoint, allocation_look>>;
using trial_commands = join<trial_calls, list<checkpoint_files, log_match>>;
using journal_commands = list<trial_report, task_log>;
using configuration_commands = list<configuration_get, configuration_put>;
using desk_looks = list<shell_nodes, shell_ps, shell_info, shell_tree, shell_state, shell_msgs, shell_stats,
                        shell_links, shell_waits, shell_events, shell_log, shell_messages>;
using desk_streams = list<shell_trace, shell_follow>; ///< shell_events is a stream as well
using desk_orders =
  list<shell_log_set, shell_send, shell_kill, shell_restart, shell_config, shell_drain, shell_fault>;
using inspector_commands =
  list<inspect_node, inspect_ps, inspect_tree, inspect_names, inspect_waits, inspect_events, inspect_here,
       inspect_info, inspect_links, inspect_state, inspect_msgs, inspect_stats, inspect_end, inspect_send,
       inspect_watch, inspect_taken, inspect_unwatch, inspect_log, inspect_fault>;
/// For these the inspect_request is "actor", and its field `what` is the name without "inspect.".
using actor_questions =
  list<inspect_here, inspect_info, inspect_links, inspect_state, inspect_msgs, inspect_stats>;
using actor_commands = list<actor_ping, pool_describe, journal_flush, searcher_save, agent_redial>;

using all_commands = join<cluster_commands, trial_commands, work_calls, list<task_stop, task_hold>,
                          allocation_commands, journal_commands, configuration_commands, desk_looks,
                          desk_streams, desk_orders, inspector_commands, actor_commands>;

// ---- dispatch

namespace detail {
template <class R, class F>
using thunk = result<R> (*)(F&, value&&, reading);

template <class R, class F, command... Cs>
const std::unordered_map<std::string_view, thunk<R, F>>& thunks(list<Cs...>) {
  static const std::unordered_map<std::string_view, thunk<R, F>> made{
    {Cs::is.name, [](F& f, value&& fields, reading how) -> result<R> {
       auto x = read<Cs>(Cs::is.name, std::move(fields), how);
       if (!x)
         return x.error();
       return f(std::move(*x));
     }}...};
  return made;
}
} // namespace detail

/// Reads the struct that `name` stands for in `List` and gives it to `take`, which answers an R. Fails with
/// errc::invalid where a field is wrong, with errc::unsupported where the list has no such command: a newer
/// peer may have sent it.
template <class R, class List, class F>
result<R> dispatch(const std::string& name, value fields, F take, reading how = {}) {
  const auto& known = detail::thunks<R, F>(List{});
  auto it = known.find(name);
  if (it == known.end())
    return error{errc::unsupported, "no command '" + name.substr(0, 100) + "'"};
  return it->second(take, std::move(fields), how);
}

/// Whether `name` is a command of the list.
template <command... Cs>
bool names(list<Cs...>, std::string_view name) {
  static const std::unordered_set<std::string_view> known{Cs::is.name...};
  return known.contains(name);
}

// ---- the table as rows

struct row {
  about is;
  std::vector<field_row> fields;
  /// Returns the fields as the struct has them, with its defaults, or says what is wrong with them.
  result<value> (*checked)(value given, reading how);
};

/// Every command, in the order above.
const std::vector<row>& table();
/// Null where there is no such command.
const row* find(std::string_view name);
/// The command that actors of `kind` take under this word of operators; null where there is none.
const row* find_spoken(const std::string& kind, const std::string& word);
bool spoken_to(const row& x, const std::string& kind);

/// The values that the field may have, where the table lists them: for completion.
std::vector<std::string> choices(std::string_view command, std::string_view field);

/// The section "Commands" of docs/messages.md, with its heading.
std::string command_page();

} // namespace troupe::commands
