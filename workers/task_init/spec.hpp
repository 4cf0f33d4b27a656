#pragma once
// The spec file as values. Pointers live as long as the process: a sandbox reads one spec.

#include "workers/task_init/base.hpp"

namespace troupe::task_init {

struct rank_spec {
  const char* cwd = "/";
  list<char*> argv; ///< ends with a null pointer
  list<char*> env;  ///< ends with a null pointer
  /// What the command comes down to, to be forked from a warmed parent; empty: only to be started.
  list<char*> direct_argv, direct_env;
};

struct mount_spec {
  const char* from = ""; ///< on the host, without links; a relative one begins in the task's folder
  const char* at = "";   ///< in the sandbox
  const char* read_only = "";
  const char* propagation = "rprivate";
};

struct task_spec {
  const char* id = "";
  std::int64_t lease_ms = 0;                        ///< 0: none
  std::int64_t frozen_kill_ms = 24ll * 3600 * 1000; ///< a task frozen by its lease is killed after this
  std::int64_t linger_ms = 10ll * 60 * 1000;        ///< waits for `bye` so long after the end
  std::int64_t spool_file_bytes = 4 << 20;
  std::int64_t spool_files = 16;
  std::int64_t memory_bytes = -1, open_files = -1, cpu_seconds = -1; ///< -1: as inherited
  const char *fence = "", *fence_ask = "",
             *fence_dead = ""; ///< whom to ask without an agent, and the bodies; or empty
  const char *fence_program = "",
             *fence_ca = "";        ///< program for TLS, and its certificates; or empty
  std::int64_t shm_bytes = -1;      ///< size of a /dev/shm of its own; -1: that of the host
  std::int64_t uid = -1, gid = -1;  ///< of the ranks; -1: as troupe-task itself
  const char* refusal = "";         ///< why it is not to run, or empty
  list<const char*> notes;          ///< lines for the log
  list<mount_spec> mounts;          ///< in this order, after what is kept
  list<const char*> keep;           ///< host paths below /tmp, /run/determined that stay the host's
  list<const char*> keep_if_there;  ///< the same for what lies below /tmp, without an error where it does not
  list<const char*> keep_read_only; ///< host paths below /tmp that stay visible, before the others
  list<rank_spec> ranks;
};

/// Reads the open file `fd` from its beginning.
fault read_spec(int fd, task_spec& spec);

} // namespace troupe::task_init
