#pragma once
// `troupe workspace`, `project`, `model`, `template`, `user`, `token`, `group`, `role`, `policy`, `webhook`,
// and the verbs of `troupe experiment` that change its description, its place and its end.

#include "runtime/cli/arguments.hpp"

namespace troupe::cli::verbs {

// experiment_change_verbs.cpp
int experiment_archive(session&, const arguments&);
int experiment_unarchive(session&, const arguments&);
int experiment_delete(session&, const arguments&);
int experiment_move(session&, const arguments&);
int experiment_label(session&, const arguments&);
int experiment_continue(session&, const arguments&);
int experiment_set(session&, const arguments&);
// place_verbs.cpp
int workspace_list(session&, const arguments&);
int workspace_describe(session&, const arguments&);
int workspace_create(session&, const arguments&);
int workspace_set(session&, const arguments&);
int workspace_delete(session&, const arguments&);
int project_list(session&, const arguments&);
int project_describe(session&, const arguments&);
int project_create(session&, const arguments&);
int project_set(session&, const arguments&);
int project_delete(session&, const arguments&);
// registry_verbs.cpp
int template_list(session&, const arguments&);
int template_describe(session&, const arguments&);
int template_create(session&, const arguments&);
int template_set(session&, const arguments&);
int template_delete(session&, const arguments&);
int model_list(session&, const arguments&);
int model_describe(session&, const arguments&);
int model_create(session&, const arguments&);
int model_set(session&, const arguments&);
int model_delete(session&, const arguments&);
int model_versions(session&, const arguments&);
int model_register(session&, const arguments&);
int model_set_version(session&, const arguments&);
int model_unregister(session&, const arguments&);
// people_verbs.cpp
int user_list(session&, const arguments&);
int user_describe(session&, const arguments&);
int user_create(session&, const arguments&);
int user_set(session&, const arguments&);
int token_list(session&, const arguments&);
int token_describe(session&, const arguments&);
int token_create(session&, const arguments&);
int token_set(session&, const arguments&);
int token_revoke(session&, const arguments&);
int group_list(session&, const arguments&);
int group_describe(session&, const arguments&);
int group_create(session&, const arguments&);
int group_set(session&, const arguments&);
int group_delete(session&, const arguments&);
int role_list(session&, const arguments&);
int role_describe(session&, const arguments&);
int role_give(session&, const arguments&);
// rule_verbs.cpp
int policy_list(session&, const arguments&);
int policy_describe(session&, const arguments&);
int policy_set(session&, const arguments&);
int policy_delete(session&, const arguments&);
int webhook_list(session&, const arguments&);
int webhook_describe(session&, const arguments&);
int webhook_create(session&, const arguments&);
int webhook_set(session&, const arguments&);
int webhook_delete(session&, const arguments&);
int webhook_test(session&, const arguments&);

} // namespace troupe::cli::verbs
