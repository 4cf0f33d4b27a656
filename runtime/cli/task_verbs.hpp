#pragma once
// Verbs about tasks that are not trials: commands, notebooks, TensorBoards, shells (`ssh`), generic tasks.

#include "runtime/cli/arguments.hpp"
#include "runtime/client/server.hpp"

namespace troupe::cli::verbs {

/// The task that a UUID or its beginning names, of this kind (empty: of any kind).
result<value> named_task_row(client::server& cluster, const std::string& text, const std::string& kind);

int command_run(session&, const arguments&);
int command_start(session&, const arguments&);
int notebook_start(session&, const arguments&);
int tensorboard_start(session&, const arguments&);
int ssh_start(session&, const arguments&);
int ssh_open(session&, const arguments&);
int ssh_config(session&, const arguments&);
int task_create(session&, const arguments&);
int task_fork(session&, const arguments&);
int task_pause(session&, const arguments&);
int task_unpause(session&, const arguments&);
int command_open(session&, const arguments&);
int notebook_open(session&, const arguments&);
int tensorboard_open(session&, const arguments&);
int command_list(session&, const arguments&);
int command_describe(session&, const arguments&);
int command_logs(session&, const arguments&);
int command_kill(session&, const arguments&);
int command_set(session&, const arguments&);
int notebook_list(session&, const arguments&);
int notebook_describe(session&, const arguments&);
int notebook_logs(session&, const arguments&);
int notebook_kill(session&, const arguments&);
int notebook_set(session&, const arguments&);
int tensorboard_list(session&, const arguments&);
int tensorboard_describe(session&, const arguments&);
int tensorboard_logs(session&, const arguments&);
int tensorboard_kill(session&, const arguments&);
int tensorboard_set(session&, const arguments&);
int ssh_list(session&, const arguments&);
int ssh_describe(session&, const arguments&);
int ssh_logs(session&, const arguments&);
int ssh_kill(session&, const arguments&);
int ssh_set(session&, const arguments&);
int task_open(session&, const arguments&);
int task_list(session&, const arguments&);
int task_describe(session&, const arguments&);
int task_logs(session&, const arguments&);
int task_kill(session&, const arguments&);
int task_set(session&, const arguments&);

} // namespace troupe::cli::verbs
