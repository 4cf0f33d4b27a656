#pragma once
// The mounts that a task's specification asks for besides the usual ones: folders of the host at other
// places, and a /dev/shm of its own.

#include "workers/task_init/sandbox.hpp"
#include "workers/task_init/spec.hpp"

namespace troupe::task_init {

/// To be called in the sandbox, after the kept paths are shown. `folder` is the task's folder and the working
/// directory. A place that is missing is made in a tmpfs, which covers the folder above it and shows the rest
/// of that folder: nothing is made on the host. A read-only mount is read only with all that lies below it.
fault make_mounts(const host_view& host, int folder, const task_spec& spec);

/// When a file is renamed over another, the kernel removes the mounts on the old file in every namespace.
/// Each change of /etc/passwd does this. The files of the task's account that stand over those of /etc are
/// then mounted again.
class files_over_etc {
public:
  /// To be called after make_mounts. Does nothing where the task has no such file. The task goes on after a
  /// fault.
  fault watch(const task_spec& spec);
  int fd() const { return fd_; } ///< to be polled for reading; -1: none
  fault on_ready();

private:
  struct spare {
    const char* at;
    int tree; ///< a copy of the mount, to be attached next time; -1: none could be made
  };
  fault put_back();

  list<spare> spares_;
  int fd_ = -1;
  bool failed_ = false;
};

/// Without namespaces: says why the task cannot have the mounts that it asks for, or nothing where it can. A
/// folder that is to be seen at its own place needs no mount.
fault do_without_mounts(const task_spec& spec);

} // namespace troupe::task_init
