#pragma once
// The mount namespace of a task: private /tmp, /run/determined and /proc, all else as on the host.

#include "workers/task_init/base.hpp"

namespace troupe::task_init {

/// What was there before the private mounts, so that single host paths can be put back later.
struct host_view {
  int proc = -1; ///< the host's /proc: pids in the numbering of whoever started troupe-task
  int tmp = -1;
  int run = -1;
  bool covers_run = false; ///< whether /run is the task's own, and shows the host's entries
};

/// To call in fresh mount and pid namespaces, with the task's folder as working directory, which must hold
/// `tmp` and `run`. `remark` gets a sentence where something lesser was done.
fault make_private_mounts(host_view& host, fault& remark);

/// Puts the host's `path` back, where a private mount hides it: below /tmp or /run/determined. Any other
/// absolute path is left as it is. Fails where the path does not exist on the host.
fault keep_host_path(const host_view& host, const char* path);

/// The same, but nothing can be written there by that path.
fault show_host_path(const host_view& host, const char* path);

/// The same for a path below /tmp, if it is there; nothing for /tmp itself, which stays private.
void keep_if_there(const host_view& host, const char* path);

/// Shows each entry of the open folder `from`, which may lie below what was mounted since, in the folder
/// `to`.
fault show_entries(int from, const char* to);

/// Makes the folders above the last part of `path`.
void make_parents(char* path);

/// The rest of `path` below `root`, or null. "/tmp/a" below "/tmp" is "a", "/tmp" itself ".".
const char* below(const char* path, const char* root);

/// A descriptor that names the host's file `path`, to be executed from; -1 where there is none.
int open_host_program(const host_view& host, const char* path);

} // namespace troupe::task_init
