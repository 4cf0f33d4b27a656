#pragma once
// What a task's specification asks for beside the usual mounts: folders of the host at other places, and a
// /dev/shm of its own.

#include "workers/task_init/sandbox.hpp"
#include "workers/task_init/spec.hpp"

namespace troupe::task_init {

/// To call in the sandbox, after what is kept is there; `folder` is the task's, and the working directory.
/// Where a place is not there, it is made in a tmpfs that covers the folder above it and shows the rest of
/// that: nothing is made on the host. A mount that is read only is so with all that lies below it.
fault make_mounts(const host_view& host, int folder, const task_spec& spec);

/// The kernel takes a mount off a file in every namespace when another file is renamed over it, as each
/// change of /etc/passwd does. The files of the task's account that stand over those of /etc are put back
/// then.
class files_over_etc {
public:
  /// After make_mounts; does nothing where the task has no such file. A fault is no reason to end the task.
  fault watch(const task_spec& spec);
  int fd() const { return fd_; } ///< to poll for reading; -1: none
  fault on_ready();

private:
  struct spare {
    const char* at;
    int tree; ///< the next mount for it, made while it was there; -1: none could be made
  };
  fault put_back();

  list<spare> spares_;
  int fd_ = -1;
  bool failed_ = false;
};

/// Without namespaces: why the task cannot have what it asks for, if it cannot. What is to be seen where it
/// is anyway needs no mount.
fault do_without_mounts(const task_spec& spec);

} // namespace troupe::task_init
