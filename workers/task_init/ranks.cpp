#include "workers/task_init/ranks.hpp"

#include <climits>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace troupe::task_init {
namespace {

const char* variable(const rank_spec& rank, const char* name) {
  auto n = strlen(name);
  for (auto* entry : rank.env)
    if (entry && strncmp(entry, name, n) == 0 && entry[n] == '=')
      return entry + n + 1;
  return nullptr;
}

/// Runs argv[0], found as a shell would find it in the rank's own PATH. Returns errno.
int execute(const rank_spec& rank) {
  const char* name = rank.argv[0];
  if (strchr(name, '/')) {
    execve(name, rank.argv.data, rank.env.data);
    return errno;
  }
  const char* path = variable(rank, "PATH");
  if (!path)
    path = "/usr/local/bin:/usr/bin:/bin";
  int why = ENOENT;
  while (true) {
    const char* end = strchrnul(path, ':');
    char full[PATH_MAX];
    int n = end == path ? snprintf(full, sizeof full, "%s", name)
                        : snprintf(full, sizeof full, "%.*s/%s", static_cast<int>(end - path), path, name);
    if (n > 0 && static_cast<std::size_t>(n) < sizeof full) {
      execve(full, rank.argv.data, rank.env.data);
      if (errno != ENOENT && errno != ENOTDIR)
        why = errno;
    }
    if (!*end)
      return why;
    path = end + 1;
  }
}

/// Tells the parent what failed in the child: they share memory until the exec.
struct child_report {
  const char* step = nullptr;
  int why = 0;
  pid_t host_pid = 0;
};

/// Limits the process `pid`; 0 is this process.
bool limit(int resource, std::int64_t value, pid_t pid = 0) {
  if (value < 0)
    return true;
  rlimit now{};
  prlimit(pid, static_cast<__rlimit_resource>(resource), nullptr, &now);
  auto wanted = static_cast<rlim_t>(value);
  // CPU gets a second more before SIGKILL, so that the script sees SIGXCPU first.
  rlimit next{wanted, resource == RLIMIT_CPU ? wanted + 1 : wanted};
  if (next.rlim_max > now.rlim_max)
    next.rlim_max = now.rlim_max;
  return prlimit(pid, static_cast<__rlimit_resource>(resource), &next, nullptr) == 0;
}

/// Makes the system calls itself: the C library's functions also change the other threads of a process, and
/// this child shares its parent's memory.
bool become_account(const task_spec& spec) {
  if (spec.gid >= 0 &&
      (syscall(SYS_setgroups, 0, nullptr) != 0 || syscall(SYS_setresgid, spec.gid, spec.gid, spec.gid) != 0))
    return false;
  return spec.uid < 0 || syscall(SYS_setresuid, spec.uid, spec.uid, spec.uid) == 0;
}

[[noreturn]] void become_rank(const task_spec& spec, const rank_spec& rank, int host_proc, const int fds[3],
                              child_report& report) {
  auto give_up = [&report](const char* step) {
    report.why = errno;
    report.step = step;
    _exit(127);
  };
  char digits[32];
  auto n = readlinkat(host_proc, "self", digits, sizeof digits - 1);
  if (n > 0) {
    digits[n] = 0;
    report.host_pid = static_cast<pid_t>(atoi(digits));
  }
  // A process that is forked from a zygote cannot join the sandbox's session, so every rank has its own
  // session.
  setsid();
  for (int fd = 0; fd < 3; ++fd)
    if (dup2(fds[fd], fd) < 0)
      give_up("redirecting output");
  // troupe-task blocks signals for its signalfd; no program expects blocked signals.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // RLIMIT_DATA counts what can be written. RLIMIT_AS would also count address space that is only reserved,
  // and allocators and CUDA reserve far more than they use.
  if (!limit(RLIMIT_DATA, spec.memory_bytes))
    give_up("setting the memory limit");
  if (!limit(RLIMIT_NOFILE, spec.open_files))
    give_up("setting the limit of open files");
  if (!limit(RLIMIT_CPU, spec.cpu_seconds))
    give_up("setting the limit of CPU seconds");
  if (!become_account(spec))
    give_up("becoming the task's account");
  prctl(PR_SET_PDEATHSIG, SIGKILL); // after the account, whose change clears this
  if (chdir(rank.cwd) != 0)
    give_up("entering the working directory");
  report.why = execute(rank);
  report.step = "running the command";
  _exit(127);
}

struct family {
  pid_t pid, parent;
  bool mine, stopped;
};

list<family> all_processes() {
  list<family> found;
  DIR* proc = opendir("/proc");
  if (!proc)
    return found;
  while (auto* entry = readdir(proc)) {
    pid_t pid = static_cast<pid_t>(atoi(entry->d_name));
    if (pid <= 0)
      continue;
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      continue;
    auto n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
      continue;
    text[n] = 0;
    const char* after_name = strrchr(text, ')');
    char state = 0;
    int parent = 0;
    if (after_name && sscanf(after_name + 1, " %c %d", &state, &parent) == 2 && state != 'Z')
      // 'D' is a parent in vfork whose child stands still, or a wait for a disk: the signal takes effect when
      // it leaves that state.
      found.push({pid, parent, false, state == 'T' || state == 't' || state == 'D'});
  }
  closedir(proc);
  return found;
}

/// Signals all descendants that it can find; returns how many of them were not stopped before.
int signal_descendants(int signal) {
  auto processes = all_processes();
  pid_t self = getpid();
  for (bool more = true; more;) {
    more = false;
    for (auto& p : processes) {
      if (p.mine)
        continue;
      bool child = p.parent == self;
      for (std::size_t i = 0; !child && i < processes.size; ++i)
        child = processes[i].mine && processes[i].pid == p.parent;
      if (child)
        p.mine = more = true;
    }
  }
  int moving = 0;
  for (auto& p : processes)
    if (p.mine) {
      moving += !p.stopped;
      kill(p.pid, signal);
    }
  free(processes.data);
  return moving;
}

} // namespace

fault start_rank(const task_spec& spec, const rank_spec& rank, int host_proc, rank_state& state,
                 rank_pipes& pipes) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0)
    return complain("pipe: %s", strerror(errno));
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return complain("pipe: %s", strerror(errno));
  }
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int fds[3] = {null, out[1], err[1]};
  child_report report;
  pid_t pid = vfork();
  if (pid == 0)
    become_rank(spec, rank, host_proc, fds, report);
  int why_not = errno;
  close(null);
  close(out[1]);
  close(err[1]);
  pipes = {out[0], err[0]};
  state.ran = true;
  state.at_us = wall_us();
  if (pid < 0) {
    state.ended = true;
    state.value = 126;
    return complain("starting a process: %s", strerror(why_not));
  }
  state.pid = pid;
  state.host_pid = report.host_pid ? report.host_pid : pid;
  if (!report.step)
    return {};
  state.value = report.why == ENOENT ? 127 : 126;
  char account[64];
  snprintf(account, sizeof account, "uid %lld, gid %lld", static_cast<long long>(spec.uid),
           static_cast<long long>(spec.gid));
  const char* what = report.step[0] == 'e' ? rank.cwd : report.step[0] == 'b' ? account : rank.argv[0];
  return complain("%s: %s: %s", report.step, what, strerror(report.why));
}

bool limit_process(pid_t pid, const task_spec& spec) {
  return limit(RLIMIT_DATA, spec.memory_bytes, pid) && limit(RLIMIT_NOFILE, spec.open_files, pid) &&
         limit(RLIMIT_CPU, spec.cpu_seconds, pid);
}

int signal_everything(bool pid_namespace, int signal) {
  if (!pid_namespace)
    return signal_descendants(signal);
  kill(-1, signal);
  return 0;
}

std::int64_t out_of_memory_kills() {
  // The kernel adds up all its counters for each read, so that large reads are few; and no stream is opened,
  // whose memory would be copied in each sandbox.
  const int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
  char text[16 << 10];
  const char* found = nullptr;
  for (std::size_t used = 0; fd >= 0 && !found && used < sizeof text - 1;) {
    const auto n = read(fd, text + used, sizeof text - 1 - used);
    if (n <= 0)
      break;
    used += static_cast<std::size_t>(n);
    text[used] = 0;
    found = strstr(text, "\noom_kill ");
    if (found && !strchr(found + 1, '\n'))
      found = nullptr; // its number is cut
  }
  if (fd >= 0)
    close(fd);
  return found ? atoll(found + strlen("\noom_kill ")) : 0;
}

} // namespace troupe::task_init
