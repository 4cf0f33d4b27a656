#pragma once
// The processes of a sandbox: start, stop, continue, kill and reap, with or without a pid namespace.

#include "workers/task_init/sandbox.hpp"
#include "workers/task_init/spec.hpp"

#include <sys/types.h>

namespace troupe::task_init {

struct rank_state {
  pid_t pid = 0;      ///< 0: not running
  pid_t host_pid = 0; ///< pid in the namespace of the process that started troupe-task
  bool ran = false, ended = false, killed = false, oom = false;
  bool signalled = false; ///< `value` is a signal, else an exit code
  int value = 0;
  std::int64_t at_us = 0;
};

/// Where a rank writes its output.
struct rank_pipes {
  int out = -1, err = -1;
};

/// Starts one rank: own process group, output into pipes, limits of `spec`. A fault says why the command
/// could not be run; `state` then holds 127 (not found), 126 (not executable) as its exit code.
fault start_rank(const task_spec& spec, const rank_spec& rank, int host_proc, rank_state& state,
                 rank_pipes& pipes);

/// Sets the same limits on a process that another one has started.
bool limit_process(pid_t pid, const task_spec& spec);

/// Sends `signal` to every process of the sandbox except this one. As pid 1 of a pid namespace that is one
/// call, which no fork can escape. Without a pid namespace the descendants are searched, so a caller repeats
/// until nothing is left. Returns how many processes it found that were not stopped before; 0 in a pid
/// namespace.
int signal_everything(bool pid_namespace, int signal);

/// How often the kernel's out-of-memory killer has struck on this host since it started.
std::int64_t out_of_memory_kills();

} // namespace troupe::task_init
