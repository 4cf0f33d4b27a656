#pragma once
// What a task wants of its sandbox beyond the usual: another working directory, folders of the host at other
// places, shared memory of its own, an account, and the script that the pool runs first. The same for every
// kind of task. Pure.

#include "model/result.hpp"
#include "model/value.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct bind_mount {
  std::string host_path;      ///< absolute
  std::string container_path; ///< a relative one begins at the working directory
  bool read_only = false;
  std::string propagation = "rprivate"; ///< as mount(8) names it
  friend bool operator==(const bind_mount&, const bind_mount&) = default;
};

/// Account of the hosts. They need not know it.
struct task_account {
  std::int64_t uid = 0, gid = 0;
  std::string user, group;
  friend bool operator==(const task_account&, const task_account&) = default;
};

struct sandbox_terms {
  std::string work_dir; ///< absolute, with $AGENT_USER and $DET_USER; empty: /run/determined/workdir
  std::vector<bind_mount> mounts;
  std::int64_t shm_bytes = 0;          ///< size of a /dev/shm of its own; 0: that of the host
  std::optional<task_account> account; ///< none: that of the agent
  std::string startup_hook;            ///< text of a shell script that runs before the task's own
  friend bool operator==(const sandbox_terms&, const sandbox_terms&) = default;
};

/// What the surroundings of a task say, below its configuration.
struct sandbox_defaults {
  std::string work_dir, startup_hook; ///< of the pool
  std::optional<task_account> account;
};

/// From a complete configuration of any kind: `work_dir`, `bind_mounts`, `resources.shm_size`. errc::invalid
/// with the key, where no task could be started so.
result<sandbox_terms> sandbox_terms_of(const value& config);
/// A working directory that the configuration names wins.
void add_defaults(sandbox_terms& to, sandbox_defaults below);

/// As a launch order holds them; null where nothing is wanted.
value to_value(const sandbox_terms& x);
/// None where a member is of another kind.
std::optional<sandbox_terms> sandbox_terms_in(const value& x);

} // namespace troupe
