/* The floor of a dispatch: /bin/true spawned into namespaces as a task has them, by nothing but system calls.
 *
 *   bare_spawn fresh FOLDER    makes the namespaces and mounts anew for each spawn
 *   bare_spawn inside FOLDER   makes them once and spawns in them
 *
 * For each line on stdin: one spawn; prints "NANOSECONDS CPU_MICROSECONDS\n", the time until the exec has
 * succeeded, and the processor time of everything until the child is reaped. FOLDER/tmp and FOLDER/run exist. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char* folder;

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static long long cpu_us(void) {
  long long sum = 0;
  int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
  for (int i = 0; i < 2; ++i) {
    struct rusage u;
    getrusage(who[i], &u);
    sum += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ll + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
  }
  return sum;
}

static void must(int ok, const char* what) {
  if (!ok) {
    perror(what);
    _exit(1);
  }
}

static void put(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  must(fd >= 0 && write(fd, text, strlen(text)) > 0, path);
  close(fd);
}

static void bind(const char* from, const char* to) { must(mount(from, to, 0, MS_BIND | MS_REC, 0) == 0, to); }

/* The same mounts as troupe-task makes. */
static void make_mounts(void) {
  char from[4096], to[4096];
  must(mount(0, "/", 0, MS_REC | MS_SLAVE, 0) == 0, "/");
  must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0) == 0, "/proc");
  int run = open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int own = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  must(mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") == 0, "/run");
  DIR* entries = fdopendir(dup(run));
  for (struct dirent* e; (e = readdir(entries));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || e->d_type == DT_LNK)
      continue;
    snprintf(from, sizeof from, "/proc/self/fd/%d/%s", run, e->d_name);
    snprintf(to, sizeof to, "/run/%s", e->d_name);
    must((e->d_type == DT_DIR ? mkdir(to, 0755) : mknod(to, S_IFREG | 0600, 0)) == 0, to);
    bind(from, to);
  }
  closedir(entries);
  mkdir("/run/determined", 0755);
  snprintf(from, sizeof from, "/proc/self/fd/%d/run", own);
  bind(from, "/run/determined");
  snprintf(from, sizeof from, "/proc/self/fd/%d/tmp", own);
  bind(from, "/tmp");
}

/* A child that is the first process of new namespaces; returns 0 in it once its ids are mapped. */
static pid_t clone_sandbox(void) {
  int go[2];
  must(pipe2(go, O_CLOEXEC) == 0, "pipe");
  pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
  must(pid >= 0, "clone");
  char c = 0, path[64], map[64];
  if (pid == 0) {
    close(go[1]);
    must(read(go[0], &c, 1) == 1, "go");
    make_mounts();
    return 0;
  }
  close(go[0]);
  if (geteuid() != 0) {
    snprintf(path, sizeof path, "/proc/%d/setgroups", pid);
    put(path, "deny");
  }
  unsigned count = geteuid() == 0 ? 4294967295u : 1u;
  snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
  snprintf(map, sizeof map, "%u %u %u\n", geteuid(), geteuid(), count);
  put(path, map);
  snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
  snprintf(map, sizeof map, "%u %u %u\n", getegid(), getegid(), count);
  put(path, map);
  must(write(go[1], &c, 1) == 1, "go");
  close(go[1]);
  return pid;
}

static char* const argv_true[] = {"/bin/true", 0};
static char* const no_env[] = {0};

static long long spawn_fresh(void) {
  int done[2];
  char c;
  must(pipe2(done, O_CLOEXEC) == 0, "pipe");
  long long start = now_ns();
  pid_t pid = clone_sandbox();
  if (pid == 0) {
    execve(argv_true[0], argv_true, no_env);
    _exit(127);
  }
  close(done[1]);
  must(read(done[0], &c, 1) == 0, "exec"); /* closed by the exec */
  long long took = now_ns() - start;
  close(done[0]);
  waitpid(pid, 0, 0);
  return took;
}

static long long spawn_inside(void) {
  pid_t pid;
  long long start = now_ns();
  must(posix_spawn(&pid, argv_true[0], 0, 0, argv_true, no_env) == 0, "posix_spawn");
  long long took = now_ns() - start;
  waitpid(pid, 0, 0);
  return took;
}

static int serve(long long (*spawn)(void)) {
  char line[16];
  while (fgets(line, sizeof line, stdin)) {
    long long before = cpu_us(), took = spawn();
    printf("%lld %lld\n", took, cpu_us() - before);
    fflush(stdout);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  folder = argv[2];
  if (strcmp(argv[1], "fresh") == 0)
    return serve(spawn_fresh);
  pid_t pid = clone_sandbox();
  if (pid == 0)
    return serve(spawn_inside);
  waitpid(pid, 0, 0);
  return 0;
}
