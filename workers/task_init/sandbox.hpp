#pragma once
// The mount namespace of a task: its own /tmp, /run/determined and /proc; everything else as on the host.

#include "workers/task_init/base.hpp"

namespace troupe::task_init {

/// The host's places under the private mounts, so that single host paths can be shown again later.
struct host_view {
  int proc = -1; ///< the host's /proc, which numbers pids as the process that started troupe-task sees them
  int tmp = -1;
  int run = -1;
  bool covers_run = false; ///< whether /run is the task's own, and shows the host's entries
};

/// To be called in fresh mount and pid namespaces, with the task's folder, which must hold `tmp` and `run`,
/// as working directory. `remark` gets a sentence where the isolation is weaker.
fault make_private_mounts(host_view& host, fault& remark);

/// Shows the host's `path` where a private mount hides it, below /tmp or /run/determined. Leaves any other
/// absolute path as it is. Fails where the path does not exist on the host.
fault keep_host_path(const host_view& host, const char* path);

/// Does the same, but nothing can be written by that path.
fault show_host_path(const host_view& host, const char* path);

/// Shows a path below /tmp if it exists on the host. Does nothing for /tmp itself, which stays private.
void keep_if_there(const host_view& host, const char* path);

/// Shows each entry of the open folder `from` in the folder `to`. A later mount may cover `from`.
fault show_entries(int from, const char* to);

/// Makes the folders above the last part of `path`.
void make_parents(char* path);

/// The part of `path` below `root`, or null. "/tmp/a" below "/tmp" is "a", "/tmp" itself is ".".
const char* below(const char* path, const char* root);

/// Opens the host's file `path` to be executed; -1 where there is none.
int open_host_program(const host_view& host, const char* path);

} // namespace troupe::task_init
