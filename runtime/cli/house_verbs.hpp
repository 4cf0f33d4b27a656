#pragma once
// `troupe workspace`, `project`, `model`, `template`, `user`, `token`, `group`, `role`, `policy`, `webhook`,
// and what of `troupe experiment` is about its place and its end.

#include "runtime/cli/session.hpp"

namespace troupe::cli::verbs {

/// By name or number.
result<value> workspace_named(client::server& cluster, const std::string& word);

int experiment_archive(session&, const arguments&);
int experiment_unarchive(session&, const arguments&);
int experiment_delete(session&, const arguments&);
int experiment_move(session&, const arguments&);
int experiment_label(session&, const arguments&);
int experiment_continue(session&, const arguments&);
int workspace_list(session&, const arguments&);
int workspace_create(session&, const arguments&);
int workspace_delete(session&, const arguments&);
int project_list(session&, const arguments&);
int project_create(session&, const arguments&);
int project_delete(session&, const arguments&);
int model_list(session&, const arguments&);
int template_list(session&, const arguments&);
int user_list(session&, const arguments&);
int user_create(session&, const arguments&);
int token_list(session&, const arguments&);
int token_create(session&, const arguments&);
int token_revoke(session&, const arguments&);
int group_list(session&, const arguments&);
int group_create(session&, const arguments&);
int group_delete(session&, const arguments&);
int role_list(session&, const arguments&);
int role_give(session&, const arguments&);
int policy_describe(session&, const arguments&);
int policy_set(session&, const arguments&);
int policy_delete(session&, const arguments&);
int webhook_list(session&, const arguments&);
int webhook_create(session&, const arguments&);
int webhook_delete(session&, const arguments&);
int webhook_test(session&, const arguments&);

} // namespace troupe::cli::verbs
