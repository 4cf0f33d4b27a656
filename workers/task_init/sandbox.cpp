#include "workers/task_init/sandbox.hpp"

#include "workers/task_init/task_format.hpp"

#include <climits>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace troupe::task_init {
namespace {

fault bind(const char* from, const char* to) {
  if (mount(from, to, nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return complain("bind mount on %s: %s", to, strerror(errno));
  return {};
}

/// Bind-mounts the file or folder that `fd` is open on; `to` must exist.
fault bind_fd(int fd, const char* to) {
  char from[64];
  snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
  return bind(from, to);
}

fault copy_link(int folder, const char* name, const char* to) {
  char target[PATH_MAX];
  auto n = readlinkat(folder, name, target, sizeof target - 1);
  if (n < 0)
    return {};
  target[n] = 0;
  if (symlink(target, to) != 0)
    return complain("link %s: %s", to, strerror(errno));
  return {};
}

/// Mounts a tmpfs over /run that shows each entry of the host's /run by a bind mount: the only way to add a
/// folder there that the host never sees. Entries that the host adds later at the top of /run stay unseen.
fault cover_run(const host_view& host) {
  if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") != 0)
    return complain("tmpfs on /run: %s", strerror(errno));
  return show_entries(host.run, "/run");
}

bool climbs(const char* path) {
  for (; path; path = strchr(path, '/')) {
    while (*path == '/')
      ++path;
    if (path[0] == '.' && path[1] == '.' && (path[2] == '/' || path[2] == 0))
      return true;
  }
  return false;
}

} // namespace

const char* below(const char* path, const char* root) {
  auto n = strlen(root);
  if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != 0))
    return nullptr;
  path += n;
  while (*path == '/')
    ++path;
  return *path ? path : ".";
}

void make_parents(char* path) {
  for (char* p = path + 1; *p; ++p)
    if (*p == '/') {
      *p = 0;
      mkdir(path, 0755);
      *p = '/';
    }
}

fault show_entries(int from, const char* to) {
  int again = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = again < 0 ? nullptr : fdopendir(again);
  if (!entries)
    return complain("reading what lies below %s: %s", to, strerror(errno));
  fault f;
  while (auto* entry = readdir(entries)) {
    const char* name = entry->d_name;
    struct stat about {};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", strcmp(to, "/") == 0 ? "" : to, name);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        fstatat(from, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISLNK(about.st_mode)) {
      if ((f = copy_link(from, name, path)))
        break;
      continue;
    }
    int fd = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
      continue;
    int made = S_ISDIR(about.st_mode) ? mkdir(path, 0755) : mknod(path, S_IFREG | 0600, 0);
    f = made != 0 ? complain("making %s: %s", path, strerror(errno)) : bind_fd(fd, path);
    close(fd);
    if (f)
      break;
  }
  closedir(entries);
  return f;
}

fault make_private_mounts(host_view& host, fault& remark) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return complain("mount namespace: %s", strerror(errno));
  host.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  host.tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
  host.run = open("/run", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (host.proc < 0 || host.tmp < 0 || host.run < 0)
    return complain("opening %s: %s",
                    host.proc < 0  ? "/proc"
                    : host.tmp < 0 ? "/tmp"
                                   : "/run",
                    strerror(errno));
  int tmp = open(task_format::tmp_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int run = open(task_format::run_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (tmp < 0 || run < 0)
    return complain("opening the task's tmp and run: %s", strerror(errno));

  // Inside another container parts of /proc may be masked, and then the kernel refuses a fresh one.
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    remark = complain("/proc is the host's: %s", strerror(errno));

  struct stat about {};
  bool there = fstatat(host.run, "determined", &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode);
  if (!there) {
    if (auto f = cover_run(host))
      return f;
    host.covers_run = true;
    unlink("/run/determined");
    if (mkdir("/run/determined", 0755) != 0)
      return complain("making /run/determined: %s", strerror(errno));
  }
  auto f = bind_fd(run, "/run/determined");
  if (!f)
    f = bind_fd(tmp, "/tmp");
  close(tmp);
  close(run);
  return f;
}

fault keep_host_path(const host_view& host, const char* path) {
  const char* rest = below(path, "/run/determined");
  bool in_run = rest != nullptr;
  if (!rest)
    rest = below(path, "/tmp");
  if (!rest)
    return {};
  if (climbs(rest))
    return complain("the path to keep, %s: give it without '..'", path);
  char from[PATH_MAX];
  snprintf(from, sizeof from, "%s%s", in_run ? "determined/" : "", rest);
  int fd = openat(in_run ? host.run : host.tmp, from, O_PATH | O_CLOEXEC);
  if (fd < 0)
    return complain("the path to keep, %s: %s", path, strerror(errno));
  struct stat about {};
  fstat(fd, &about);
  char to[PATH_MAX];
  snprintf(to, sizeof to, "%s", path);
  make_parents(to);
  int made = S_ISDIR(about.st_mode) ? mkdir(to, 0755) : mknod(to, S_IFREG | 0600, 0);
  fault f = made != 0 && errno != EEXIST ? complain("making %s: %s", to, strerror(errno)) : bind_fd(fd, to);
  close(fd);
  return f;
}

fault show_host_path(const host_view& host, const char* path) {
  if (auto f = keep_host_path(host, path))
    return f;
  struct statvfs about {};
  if (statvfs(path, &about) != 0)
    return complain("the path to show, %s: %s", path, strerror(errno));
  // In a user namespace the mount must repeat what the host's mount forbids.
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
  const struct {
    unsigned long of_statvfs, of_mount;
  } forbidden[] = {{ST_NOSUID, MS_NOSUID},   {ST_NODEV, MS_NODEV},           {ST_NOEXEC, MS_NOEXEC},
                   {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME}, {ST_RELATIME, MS_RELATIME}};
  for (const auto& one : forbidden)
    if (about.f_flag & one.of_statvfs)
      flags |= one.of_mount;
  if (mount(nullptr, path, nullptr, flags, nullptr) != 0)
    return complain("mounting %s to be read only: %s", path, strerror(errno));
  return {};
}

void keep_if_there(const host_view& host, const char* path) {
  const char* rest = below(path, "/tmp");
  if (rest && strcmp(rest, ".") != 0)
    (void)keep_host_path(host, path);
}

int open_host_program(const host_view& host, const char* path) {
  constexpr int how = O_PATH | O_CLOEXEC;
  const char* in_run = below(path, "/run/determined");
  const char* in_tmp = below(path, "/tmp");
  if (in_run && host.run >= 0) {
    char from[PATH_MAX];
    snprintf(from, sizeof from, "determined/%s", in_run);
    return openat(host.run, from, how);
  }
  return in_tmp && host.tmp >= 0 ? openat(host.tmp, in_tmp, how) : open(path, how);
}

} // namespace troupe::task_init
