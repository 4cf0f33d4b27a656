// What the warmed Python parent cannot do in Python: fork into another sandbox, and make the new process look
// like a fresh start. Called through ctypes with the GIL held, by a process of exactly one thread.

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/prctl.h>

// These functions are in the interpreter that loads this library.
extern "C" {
[[gnu::weak]] void PyOS_BeforeFork();
[[gnu::weak]] void PyOS_AfterFork_Parent();
[[gnu::weak]] void PyOS_AfterFork_Child();
}

namespace {

bool write_text(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  if (fd >= 0)
    close(fd);
  return ok;
}

bool enter(int user, int mounts, int pids, const char*& step) {
  step = "entering its user namespace";
  if (user >= 0 && setns(user, CLONE_NEWUSER) != 0)
    return false;
  step = "entering its mount namespace";
  if (setns(mounts, CLONE_NEWNS) != 0)
    return false;
  step = "entering its pid namespace";
  return setns(pids, CLONE_NEWPID) == 0;
}

void leave(int status, void*) {
  // The destructors of libraries that the parent has loaded would only free memory; PyTorch's take 0.2 s of
  // processor time.
  fflush(nullptr);
  _exit(status);
}

} // namespace

extern "C" {

/// Forks once into the sandbox of the given namespaces (`user` -1: no other user namespace). Two helpers
/// share the caller's memory as after vfork, so only one copy is made. The first helper enters the
/// namespaces; its pid namespace counts only for its children. The second helper is such a child: it forks
/// and ends at once, so that the sandbox's first process becomes the parent of the new process. The caller
/// itself never leaves its own namespaces. Returns 0 in the new process and 1 in the caller; where it failed,
/// returns -errno in the caller, and `*step` says at what.
int troupe_fork_into(int user, int mounts, int pids, const char** step) {
  volatile int outcome = 1;
  const char* volatile failed = "";
  PyOS_BeforeFork();
  pid_t first = vfork();
  if (first == 0) {
    const char* at = "";
    if (!enter(user, mounts, pids, at)) {
      outcome = -errno;
      failed = at;
      _exit(1);
    }
    pid_t second = vfork();
    if (second == 0) {
      // troupe-task chose a high number for the helper; the new process gets the number that a cold start
      // gets.
      write_text("/proc/sys/kernel/ns_last_pid", "1");
      pid_t rank = fork();
      if (rank == 0) {
        PyOS_AfterFork_Child();
        return 0;
      }
      if (rank < 0) {
        outcome = -errno;
        failed = "forking";
      }
      _exit(0);
    }
    if (second < 0) {
      outcome = -errno;
      failed = "forking in its pid namespace";
    } else {
      waitpid(second, nullptr, 0);
    }
    _exit(0);
  }
  if (first < 0) {
    outcome = -errno;
    failed = "forking";
  } else {
    waitpid(first, nullptr, 0);
  }
  PyOS_AfterFork_Parent();
  *step = failed;
  return outcome;
}

/// Sets what /proc/self/cmdline and /proc/self/environ show from now on: strings that each end with a zero
/// byte. Returns 0, or errno.
int troupe_show_command(const char* arguments, std::size_t argument_bytes, const char* variables,
                        std::size_t variable_bytes) {
  char text[2048];
  int stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  auto n = stat < 0 ? -1 : read(stat, text, sizeof text - 1);
  if (stat >= 0)
    close(stat);
  if (n <= 0)
    return errno;
  text[n] = 0;
  std::uint64_t fields[53] = {};
  char* p = strrchr(text, ')');
  for (int field = 3; p && field <= 52; ++field) {
    p = strchr(p + 1, ' ');
    if (p)
      fields[field] = strtoull(p + 1, nullptr, 10);
  }
  auto* shown = static_cast<char*>(mmap(nullptr, argument_bytes + variable_bytes + 1, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (shown == MAP_FAILED)
    return errno;
  memcpy(shown, arguments, argument_bytes);
  memcpy(shown + argument_bytes, variables, variable_bytes);
  const auto begin = reinterpret_cast<std::uint64_t>(shown);
  prctl_mm_map map{};
  map.start_code = fields[26];
  map.end_code = fields[27];
  map.start_stack = fields[28];
  map.start_data = fields[45];
  map.end_data = fields[46];
  map.start_brk = fields[47];
  map.brk = reinterpret_cast<std::uint64_t>(sbrk(0));
  map.arg_start = begin;
  map.arg_end = map.env_start = begin + argument_bytes;
  map.env_end = map.env_start + variable_bytes;
  map.exe_fd = ~0u;
  if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) == 0)
    return 0;
  int why = errno;
  munmap(shown, argument_bytes + variable_bytes + 1);
  return why;
}

/// Exchanges the contents of two Python dictionaries without touching an item: each touch would copy a page.
/// `head` is the size of any object's head, `size` that of a dictionary.
void troupe_swap_contents(void* one, void* other, std::size_t head, std::size_t size) {
  char bytes[512];
  auto *a = static_cast<char*>(one) + head, *b = static_cast<char*>(other) + head;
  if (size <= head || size - head > sizeof bytes)
    return;
  memcpy(bytes, a, size - head);
  memcpy(a, b, size - head);
  memcpy(b, bytes, size - head);
}

/// Returns the first of `paths`, each ended by a zero byte, whose time of modification is not that in
/// `nanoseconds`; null where none has changed.
const char* troupe_changed(const char* paths, const std::int64_t* nanoseconds, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, paths += strlen(paths) + 1) {
    struct stat about {};
    if (stat(paths, &about) != 0 ||
        about.st_mtim.tv_sec * 1'000'000'000ll + about.st_mtim.tv_nsec != nanoseconds[i])
      return paths;
  }
  return nullptr;
}

/// Makes this process, when it exits, end before the destructors of everything that was loaded so far.
void troupe_leave_quickly() { on_exit(leave, nullptr); }

} // extern "C"
