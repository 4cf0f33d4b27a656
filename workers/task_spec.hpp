#pragma once
// What the process runtime is asked to run, and what it reports. Plain values.

#include "model/result.hpp"
#include "model/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::workers {

struct rank_spec {
  std::vector<std::string> argv; ///< argv[0] is a path, or is searched in the PATH of `env`
  std::vector<std::string> env;  ///< all variables, "NAME=VALUE"; TROUPE_TASK_ID and TROUPE_RUN_DIR are added
  std::string cwd = "/";
  /// The command and variables with which a zygote forks the rank; empty: it can only be started.
  /// none does.
  std::vector<std::string> direct_argv, direct_env;
};

/// Limits of each process, as setrlimit(2) has them; an empty one stays as the agent has it.
struct task_limits {
  std::optional<std::uint64_t> memory_bytes; ///< writable private memory; beyond it, allocation fails
  std::optional<std::uint64_t> open_files;   ///< capped at the agent's own hard limit
  std::optional<std::uint64_t> cpu_seconds;  ///< beyond it come SIGXCPU and, a second later, SIGKILL
};

/// The master, which a sandbox asks when its agent is dead. The texts are bodies of `POST /troupe/v1/fence`.
struct fence_spec {
  std::string address; ///< "127.0.0.1:8080", "[::1]:8080", with a program "https://host:8080"; empty: none
  std::string ask;     ///< asks whether the task may go on
  std::string dead;    ///< says that no process of the task lives
  std::string
    program;      ///< speaks TLS for the sandbox, which cannot: run as `PROGRAM --fence`; empty: plain HTTP
  std::string ca; ///< PEM; verifies the master's certificate
};

/// A folder or file of the host that a sandbox shows at another place, which is made where it is missing.
struct mount_spec {
  std::string from; ///< without links on the way; a relative path begins in the task's folder
  std::string at;   ///< absolute, in the sandbox
  bool read_only = false;
  std::string propagation = "rprivate"; ///< as in mount(8)
};

/// The account that the ranks become in the sandbox; its supervisor keeps the agent's.
struct account_spec {
  std::uint32_t uid = 0, gid = 0;
};

/// All ranks of one allocation on this host share one sandbox with its own /tmp, /run/determined and /proc;
/// everything else of the host's file system is where it was. The sandbox ends when its last rank has ended;
/// what the ranks left running is then killed.
struct task_spec {
  std::string id; ///< at most 128 characters of [A-Za-z0-9._-]; does not begin with '.' or "spare-"
  std::vector<rank_spec> ranks; ///< 1 to 256
  task_limits limits;
  /// Host paths below /tmp and /run/determined that the task sees nevertheless; they must exist. Working
  /// directories, and commands given by absolute path, are always shown.
  std::vector<std::string> keep;
  /// Host paths below /tmp that the task can only read; they are shown before the others.
  std::vector<std::string> keep_read_only;
  fence_spec fence;
  std::vector<mount_spec> mounts;         ///< in this order, after what is kept
  std::optional<std::uint64_t> shm_bytes; ///< size of its own /dev/shm; none: that of the host
  std::optional<account_spec> account;    ///< none: that of the agent
  std::vector<std::string> notes;         ///< lines for the task's log, before those of its ranks
  std::string refusal; ///< why it must not run: the log gets this sentence, and the task ends as `failed`;
                       ///< empty: it may run
};

/// The first fault of `spec`, which names the rank and the mend. Fails with invalid.
result<void> check(const task_spec& spec);
bool valid_task_id(const std::string& id);

enum class isolation { namespaces, process_group };
const char* name(isolation how);

struct rank_end {
  int rank = 0;
  bool signalled = false; ///< `value` is a signal, else an exit code: 127 not found, 126 not executable
  int value = 0;
  bool killed = false;        ///< whether it was killed by an order or by the lease
  bool out_of_memory = false; ///< whether SIGKILL came unordered while the kernel's OOM killer was at work
  time_point at;
  friend bool operator==(const rank_end&, const rank_end&) = default;
};

enum class end_reason {
  exited, ///< every rank ended by itself
  killed, ///< the agent ordered it
  lease,  ///< frozen longer than allowed
  failed, ///< the task could not be started; `detail` says why
};
const char* name(end_reason why);

struct task_started {
  std::string id;
  int pid = 0; ///< pid of rank 0 in the agent's namespace
  isolation how = isolation::namespaces;
  std::string remark; ///< why it is isolated less than it could be; empty: it is fully isolated
  bool adopted = false;
};
struct rank_ended {
  std::string id;
  rank_end end;
};
/// No process of the sandbox exists any more. No task_started comes before it where the task ended before it
/// was adopted.
struct task_exited {
  std::string id;
  end_reason why = end_reason::exited;
  std::string detail; ///< for people: which command could not be run, and why
  std::vector<rank_end> ranks;
  time_point at;
};
/// troupe-task could not start, or died without a record (killed from outside). None of its processes exists
/// any more.
struct task_lost {
  std::string id;
  std::string why;
};
struct task_frozen {
  std::string id;
  std::string why; ///< "lease" or "order"
};
struct task_thawed {
  std::string id;
};
/// Comes when every task that adopt_all() found was reported.
struct inventory_taken {
  std::size_t tasks = 0;
};

using task_event =
  std::variant<task_started, rank_ended, task_exited, task_lost, task_frozen, task_thawed, inventory_taken>;

} // namespace troupe::workers
