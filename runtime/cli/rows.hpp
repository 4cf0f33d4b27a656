#pragma once
// The rows of the verb table, one file for each family of nouns; verbs.cpp joins them.

#include "runtime/cli/arguments.hpp"

namespace troupe::cli::rows {

std::span<const verb_spec> of_node();        ///< verbs that start, check and stop a cluster on this host
std::span<const verb_spec> of_experiments(); ///< experiments, trials, checkpoints
std::span<const verb_spec> of_tasks();       ///< tasks that are not trials
std::span<const verb_spec> of_places();      ///< workspaces, projects, models, templates
std::span<const verb_spec> of_people();      ///< users, tokens, groups, roles
std::span<const verb_spec> of_rules();       ///< policies, webhooks
std::span<const verb_spec> of_cluster();     ///< agents, slots, pools, the configuration, this program itself

// ---- words and options that several files use

inline constexpr std::span<const argument_spec> no_words{};
inline constexpr std::span<const option_spec> no_options{};
inline constexpr argument_spec experiment[] = {{"EXPERIMENT", "Id of the experiment, or `last`"}};
inline constexpr argument_spec trial[] = {{"TRIAL", "Id of the trial"}};
inline constexpr option_spec yes{"--yes", "", "Confirm: it cannot be taken back", option_kind::toggle};
inline constexpr option_spec yes_flags[] = {yes};
inline constexpr option_spec in_workspace{"--workspace", "WORKSPACE",
                                          "Name or number of a workspace (default: all)", option_kind::text};
inline constexpr option_spec workspace_flags[] = {in_workspace};
inline constexpr option_spec where{
  "--where", "CONDITIONS",
  "List only what matches, as the filter of the web page: \"state=RUNNING best>0.9 name~'a b'\"",
  option_kind::text};
inline constexpr option_spec sort{"--sort", "KEY", "Order by this column of the web page; -KEY: descending",
                                  option_kind::text};
inline constexpr option_spec grid_flags[] = {where, sort};
inline constexpr argument_spec new_name[] = {{"NAME", "Name that is not in use yet"}};
inline constexpr option_spec account{"--account", "UID:GID:USER:GROUP",
                                     "Account of the hosts that their tasks run as; by an admin",
                                     option_kind::text};

} // namespace troupe::cli::rows
