#pragma once
// The spec file as values. Pointers live as long as the process: a sandbox reads one spec.

#include "workers/task_init/base.hpp"

namespace troupe::task_init {

struct rank_spec {
  const char* cwd = "/";
  list<char*> argv; ///< ends with a null pointer
  list<char*> env;  ///< ends with a null pointer
  /// The command and variables that a warmed parent forks with; empty: the rank can only be started.
  list<char*> direct_argv, direct_env;
};

struct mount_spec {
  const char* from = ""; ///< path on the host, without links; a relative one begins in the task's folder
  const char* at = "";   ///< in the sandbox
  const char* read_only = "";
  const char* propagation = "rprivate";
};

struct task_spec {
  const char* id = "";
  std::int64_t lease_ms = 0;                        ///< 0: no lease
  std::int64_t frozen_kill_ms = 24ll * 3600 * 1000; ///< a task frozen by its lease is killed after this
  std::int64_t adopt_ms = 200; ///< how long a new agent may adopt the task before the master is asked
  std::int64_t linger_ms = 10ll * 60 * 1000; ///< how long troupe-task waits for `bye` after the end
  std::int64_t spool_file_bytes = 4 << 20;
  std::int64_t spool_files = 16;
  std::int64_t memory_bytes = -1, open_files = -1, cpu_seconds = -1; ///< -1: as inherited
  const char *fence = "", *fence_ask = "",
             *fence_dead = ""; ///< whom to ask without an agent, and the bodies; may be empty
  const char *fence_program = "",
             *fence_ca = "";        ///< program for TLS, and its certificates; may be empty
  std::int64_t shm_bytes = -1;      ///< size of a /dev/shm of its own; -1: that of the host
  std::int64_t uid = -1, gid = -1;  ///< account of the ranks; -1: that of troupe-task
  const char* refusal = "";         ///< why the task must not run; empty: it may
  list<const char*> notes;          ///< lines for the log
  list<mount_spec> mounts;          ///< in this order, after what is kept
  list<const char*> keep;           ///< host paths below /tmp, /run/determined that stay the host's
  list<const char*> keep_if_there;  ///< the same below /tmp, without an error where a path is missing
  list<const char*> keep_read_only; ///< host paths below /tmp that stay visible, before the others
  list<rank_spec> ranks;
};

/// Reads the open file `fd` from its beginning.
fault read_spec(int fd, task_spec& spec);

} // namespace troupe::task_init
