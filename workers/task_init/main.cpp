// troupe-task: makes a sandbox and stays its first process.
//
//   troupe-task SPEC_FILE                 runs the spec in the folder that holds it
//   troupe-task --spare FOLDER IDLE_MS    makes the sandbox in FOLDER and waits for `run` on its socket
//   troupe-task --nursery ROOT PADDING    makes sandboxes as it is told over descriptor 3 (task_format.hpp),
//                                         until that ends; PADDING is room for what `ps` shows of them
//   --isolation process-group, in front, does without namespaces
//   --connected, after that: descriptor 3 is a connection to the agent; a socket to dial is made when it ends
//
// Without a nursery, the process that was started ends as soon as the sandbox is made (0) or cannot be (1,
// reason on stderr); the sandbox belongs to nobody, so its agent may die.

#include "workers/task_init/supervisor.hpp"
#include "workers/task_init/task_format.hpp"

#include <climits>
#include <csignal>
#include <fcntl.h>
#include <libgen.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

using namespace troupe::task_init;
using namespace troupe::task_format;

namespace {

constexpr int agent_fd = 3; ///< the agent's connection, or the nursery's orders

/// The memory that holds the arguments, which a process of the nursery fills anew.
struct argument_room {
  char* begin = nullptr;
  std::size_t bytes = 0;
};

struct order {
  const char* folder = nullptr;
  const char* spec = nullptr; ///< null: make a spare
  std::int64_t spare_idle_ms = 0;
  bool namespaces = true;
  int connection = -1;     ///< to the agent; -1: none
  int of_the_nursery = -1; ///< the nursery's orders, which a sandbox must not keep; -1: none
  argument_room shown;
};

struct isolation {
  int clone_flags;
  const char* name;
};

bool write_file(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write_all(fd, text, strlen(text));
  int why = errno;
  if (fd >= 0)
    close(fd);
  errno = why;
  return ok;
}

/// The ids that this process may map, each mapped to itself. Read once: a nursery makes many sandboxes.
struct identity_map {
  char text[16 << 10] = "";

  bool read(const char* from) {
    FILE* f = *text ? nullptr : fopen(from, "re");
    unsigned long long inside, outside, count;
    std::size_t used = 0;
    while (f && fscanf(f, "%llu %llu %llu", &inside, &outside, &count) == 3 && used + 64 < sizeof text)
      used += static_cast<std::size_t>(
        snprintf(text + used, sizeof text - used, "%llu %llu %llu\n", inside, inside, count));
    if (f)
      fclose(f);
    return *text;
  }
};

/// Root keeps every id, so that owners look as on the host; other accounts may map only their own id.
fault map_ids(pid_t child) {
  static identity_map users, groups;
  char path[64];
  auto id_map = [&](const char* file, const char* own, identity_map& all, unsigned long id) -> fault {
    snprintf(path, sizeof path, "/proc/%d/%s", child, file);
    if (!(geteuid() == 0 && all.read(own) && write_file(path, all.text))) {
      char text[64];
      snprintf(text, sizeof text, "%lu %lu 1\n", id, id);
      if (!write_file(path, text))
        return complain("user namespace: writing %s: %s", file, strerror(errno));
    }
    return {};
  };
  if (geteuid() != 0) {
    snprintf(path, sizeof path, "/proc/%d/setgroups", child);
    if (!write_file(path, "deny"))
      return complain("user namespace: writing setgroups: %s", strerror(errno));
  }
  if (auto f = id_map("uid_map", "/proc/self/uid_map", users, geteuid()))
    return f;
  return id_map("gid_map", "/proc/self/gid_map", groups, getegid());
}

/// Shows in `ps` the command line that this process would have if it had been started alone.
void show_as_started(const order& what) {
  char text[PATH_MAX + 128];
  const auto used = static_cast<std::size_t>(
    what.spec ? snprintf(text, sizeof text, "troupe-task%c%s/%s", 0, what.folder, what.spec)
              : snprintf(text, sizeof text, "troupe-task%c--spare%c%s%c%lld", 0, 0, what.folder, 0,
                         static_cast<long long>(what.spare_idle_ms)));
  const auto shown = used < what.shown.bytes ? used : what.shown.bytes - 1;
  memcpy(what.shown.begin, text, shown);
  memset(what.shown.begin + shown, 0, what.shown.bytes - shown);
}

/// Runs as the first process of the sandbox. Never returns.
[[noreturn]] void live(sandbox box, const order& what, int go, int report) {
  if (what.of_the_nursery >= 0) {
    close(what.of_the_nursery);
    show_as_started(what);
  }
  auto refuse = [report](const fault& f) {
    write_all(report, f.text, strlen(f.text));
    _exit(1);
  };
  int numbers[1] = {0};
  if (read(go, numbers, sizeof numbers) != static_cast<ssize_t>(sizeof numbers))
    _exit(1); // the process that started this one died
  close(go);
  box.host_pid = numbers[0];
  setsid();
  fault remark;
  if (box.pid_namespace) {
    if (auto f = make_private_mounts(box.host, remark))
      refuse(f);
    if (remark)
      box.remark = remark;
  } else {
    box.host.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  if (box.agent < 0)
    if (auto f = listen_here(box.listener))
      refuse(f);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  close(null);
  int spec = what.spec ? openat(box.folder, what.spec, O_RDONLY | O_CLOEXEC) : -1;
  if (what.spec && spec < 0)
    refuse(complain("spec %s: %s", what.spec, strerror(errno)));
  write_all(report, "", 1);
  close(report);
  static supervisor life{box};
  life.run(spec);
  _exit(0);
}

void note_helper(int folder, pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  auto n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0)
    close(fd);
  unsigned long long start = 0;
  if (n > 0) {
    text[n] = 0;
    const char* p = strrchr(text, ')');
    for (int field = 2; p && field < 22; ++field)
      p = strchr(p + 1, ' ');
    start = p ? strtoull(p, nullptr, 10) : 0;
  }
  snprintf(text, sizeof text, "%d %llu\n", pid, start);
  fd = openat(folder, helper_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) { // cut off at its end: a file that is emptied first is written to disk when it is closed
    const auto size = static_cast<off_t>(strlen(text));
    struct stat about {};
    write_all(fd, text, strlen(text));
    if (fstat(fd, &about) != 0 || about.st_size > size)
      (void)!ftruncate(fd, size);
    close(fd);
  }
}

/// Clones the sandbox's first process. After a fault that process is gone.
fault attempt(const isolation& how, const order& what, sandbox box) {
  int go[2], report[2];
  if (pipe2(go, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0)
    return complain("pipe: %s", strerror(errno));
  box.pid_namespace = how.clone_flags & CLONE_NEWPID;
  auto pid =
    static_cast<pid_t>(syscall(SYS_clone, how.clone_flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    close(go[1]);
    close(report[0]);
    live(box, what, go[0], report[1]);
  }
  int why = errno;
  close(go[0]);
  close(report[1]);
  fault f;
  if (pid < 0)
    f = complain("%s: %s", how.name, strerror(why));
  else if (how.clone_flags & CLONE_NEWUSER)
    f = map_ids(pid);
  if (pid > 0 && !f) {
    note_helper(box.folder, pid);
    write_all(go[1], reinterpret_cast<const char*>(&pid), sizeof pid);
    std::size_t used = 0;
    ssize_t n;
    while (used < sizeof f.text - 1 && (n = read(report[0], f.text + used, sizeof f.text - 1 - used)) > 0 &&
           f.text[used] != 0)
      used += static_cast<std::size_t>(n);
    if (used == 0 && n <= 0)
      f = complain("%s: the first process of the sandbox died", how.name);
  }
  close(go[1]);
  close(report[0]);
  if (pid > 0 && f) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return f;
}

int usage() {
  fprintf(stderr,
          "usage: troupe-task [--isolation process-group] [--connected] SPEC_FILE | --spare FOLDER IDLE_MS\n"
          "       troupe-task --nursery ROOT PADDING\n");
  return 2;
}

/// Makes the sandbox.
fault start(const order& what) {
  sandbox box;
  box.spare_idle_ms = what.spare_idle_ms;
  box.agent = what.connection;
  if (chdir(what.folder) != 0 || (box.folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
    return complain("%s: %s", what.folder, strerror(errno));
  fault f;
  const int lock = open(lock_file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0)
    f = complain("%s/%s: %s", what.folder, lock_file,
                 lock < 0 ? strerror(errno) : "another troupe-task runs here");
  else if (faccessat(box.folder, exit_file, F_OK, 0) == 0)
    // An agent that gave this task up writes its end under the lock: a late start must not bring the task
    // back.
    f = complain("%s: this task has ended", what.folder);
  if (!f) {
    mkdir(tmp_folder, 0755);
    chmod(tmp_folder, 01777);
    mkdir(run_folder, 0755);
    constexpr int spaces = CLONE_NEWNS | CLONE_NEWPID;
    const isolation ways[] = {
      {CLONE_NEWUSER | spaces, "user namespace"}, {spaces, "mount and pid namespaces"}, {0, "process group"}};
    for (const auto& way : ways) {
      if (way.clone_flags && !what.namespaces)
        continue;
      if (way.clone_flags == spaces && geteuid() != 0)
        continue;
      // The task sees mounts, so its folder can be closed to the host's other accounts.
      fchmod(box.folder, way.clone_flags ? 0700 : 0755);
      f = attempt(way, what, box);
      if (!f)
        break;
      if (!box.remark)
        box.remark = f;
    }
  }
  close(box.folder); // the sandbox's process has its own descriptor
  if (lock >= 0)
    close(lock);
  return f;
}

// The nursery

/// One order: "make\0SERIAL\0FOLDER\0SPEC\0IDLE_MS\0", with the connection of the sandbox to its agent. SPEC
/// is empty for a spare.
struct nursery_order {
  char text[2 * PATH_MAX];
  const char* field[5] = {};
  int connection = -1;

  /// False when no more orders can come.
  bool receive() {
    iovec bytes{text, sizeof text - 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto n = recvmsg(agent_fd, &message, MSG_CMSG_CLOEXEC);
    if (n <= 0)
      return n < 0 && errno == EINTR;
    if (auto* header = CMSG_FIRSTHDR(&message); header && header->cmsg_type == SCM_RIGHTS)
      memcpy(&connection, CMSG_DATA(header), sizeof connection);
    text[n] = 0;
    char* p = text;
    for (auto& one : field) {
      if (p >= text + n)
        return true;
      one = p;
      p += strlen(p) + 1;
    }
    return true;
  }
  bool whole() const { return field[4] && strcmp(field[0], "make") == 0 && connection >= 0; }
};

/// Sandboxes are children of the nursery, which therefore reaps them; when the nursery ends they are orphans.
void reap_sandboxes() {
  while (waitpid(-1, nullptr, WNOHANG) > 0)
    ;
}

int be_a_nursery(argument_room room) {
  setsid(); // a terminal's signals to the agent must not reach it
  sigset_t child, none;
  sigemptyset(&none);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  struct sigaction wake {};
  wake.sa_handler = [](int) {};
  sigaction(SIGCHLD, &wake, nullptr);
  fcntl(agent_fd, F_SETFL, 0);
  while (true) {
    reap_sandboxes();
    pollfd orders{agent_fd, POLLIN, 0};
    if (ppoll(&orders, 1, nullptr, &none) < 0)
      continue; // a sandbox has ended
    static nursery_order next;
    next = {};
    if (!next.receive())
      return 0;
    if (!next.whole())
      continue;
    order what;
    what.folder = next.field[2];
    what.spec = *next.field[3] ? next.field[3] : nullptr;
    what.spare_idle_ms = atoll(next.field[4]);
    what.connection = next.connection;
    what.of_the_nursery = agent_fd;
    what.shown = room;
    fcntl(next.connection, F_SETFL, O_NONBLOCK);
    const auto f = start(what);
    close(next.connection);
    (void)!chdir("/");
    char answer[sizeof f.text + 64];
    const int bytes = f ? snprintf(answer, sizeof answer, "failed %s %s", next.field[1], f.text)
                        : snprintf(answer, sizeof answer, "made %s", next.field[1]);
    if (send(agent_fd, answer, static_cast<std::size_t>(bytes), MSG_NOSIGNAL) < 0)
      return 0;
  }
}

} // namespace

int main(int argc, char** argv) {
  for (int s = 1; s < NSIG; ++s)
    signal(s, SIG_DFL); // an ignored signal would stay ignored in every task
  order what;
  int i = 1;
  if (i + 1 < argc && strcmp(argv[i], "--isolation") == 0) {
    if (strcmp(argv[i + 1], "process-group") != 0)
      return usage();
    what.namespaces = false;
    i += 2;
  }
  if (argc == 4 && strcmp(argv[1], "--nursery") == 0) {
    fcntl(agent_fd, F_SETFD, FD_CLOEXEC);
    close_range(agent_fd + 1, ~0u, 0);
    const argument_room room{argv[0], static_cast<std::size_t>(argv[3] + strlen(argv[3]) - argv[0])};
    memset(argv[3], 0, strlen(argv[3])); // `ps` need not show the padding of the nursery itself
    return be_a_nursery(room);
  }
  if (i < argc && strcmp(argv[i], "--connected") == 0) {
    what.connection = agent_fd;
    fcntl(agent_fd, F_SETFD, FD_CLOEXEC);
    fcntl(agent_fd, F_SETFL, O_NONBLOCK);
    ++i;
  }
  close_range(what.connection >= 0 ? agent_fd + 1 : agent_fd, ~0u, 0);
  if (argc - i == 3 && strcmp(argv[i], "--spare") == 0) {
    what.folder = argv[i + 1];
    what.spare_idle_ms = atoll(argv[i + 2]);
  } else if (argc - i == 1 && argv[i][0] != '-') {
    char* copy = strdup(argv[i]);
    what.folder = dirname(copy);
    what.spec = basename(argv[i]);
  } else {
    return usage();
  }
  const auto f = start(what);
  if (f)
    fprintf(stderr, "%s\n", f.text);
  return f ? 1 : 0;
}
