#pragma once
// What a task wants of its sandbox beyond the defaults: another working directory, mounted folders of the
// host, shared memory of its own, an account, and the startup script of its pool. All kinds of tasks have the
// same. Pure.

#include "model/result.hpp"
#include "model/value.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct bind_mount {
  std::string host_path;      ///< absolute path on the host
  std::string container_path; ///< path in the sandbox; a relative one begins at the working directory
  bool read_only = false;
  std::string propagation = "rprivate"; ///< as mount(8) names it
  friend bool operator==(const bind_mount&, const bind_mount&) = default;
};

/// The account that a task runs as. The hosts need not have it.
struct task_account {
  std::int64_t uid = 0, gid = 0;
  std::string user, group;
  friend bool operator==(const task_account&, const task_account&) = default;
};

struct sandbox_terms {
  std::string work_dir; ///< absolute, with $AGENT_USER and $DET_USER; empty: /run/determined/workdir
  std::vector<bind_mount> mounts;
  std::int64_t shm_bytes = 0;          ///< size of the task's own /dev/shm; 0: it has that of the host
  std::optional<task_account> account; ///< none: the account of the agent
  std::string startup_hook;            ///< text of a shell script that runs before the task's own
  friend bool operator==(const sandbox_terms&, const sandbox_terms&) = default;
};

/// What counts where the configuration of a task says nothing.
struct sandbox_defaults {
  std::string work_dir, startup_hook; ///< defaults of the pool
  std::optional<task_account> account;
};

/// Reads `work_dir`, `bind_mounts` and `resources.shm_size` of a complete configuration of any kind. Fails
/// with errc::invalid and the key, where no task could be started with them.
result<sandbox_terms> sandbox_terms_of(const value& config);
/// Adds the defaults; a working directory that the configuration names stays.
void add_defaults(sandbox_terms& to, sandbox_defaults below);

/// The form that a launch order holds; null where nothing is wanted.
value to_value(const sandbox_terms& x);
/// Reads that form; none where a member has the wrong kind.
std::optional<sandbox_terms> sandbox_terms_in(const value& x);

} // namespace troupe
