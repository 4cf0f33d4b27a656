#include "workers/task_init/mounts.hpp"

#include <climits>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace troupe::task_init {
namespace {

constexpr char root_place[] = "/tmp/.troupe-root";

struct propagation {
  const char* name;
  std::uint64_t flag;
  bool recursive;
};
constexpr propagation propagations[] = {{"private", MS_PRIVATE, false}, {"rprivate", MS_PRIVATE, true},
                                        {"slave", MS_SLAVE, false},     {"rslave", MS_SLAVE, true},
                                        {"shared", MS_SHARED, false},   {"rshared", MS_SHARED, true}};

/// Folders in which the host never sees what is made.
struct private_places {
  list<const char*> paths;

  static std::uint64_t mount_of(const char* path) {
    struct statx about {};
    return statx(AT_FDCWD, path, 0, STATX_MNT_ID, &about) == 0 ? about.stx_mnt_id : 0;
  }
  bool holds(const char* path) const {
    const auto here = mount_of(path);
    for (auto* one : paths)
      if (here != 0 && mount_of(one) == here)
        return true;
    return false;
  }
};

/// Opens the host's `path`, without following links; -1 with errno.
int open_host_place(const host_view& host, const char* path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  char in_run[PATH_MAX];
  int from = AT_FDCWD; // the task's folder; a descriptor of it would belong to the earlier namespace
  if (const char* rest = below(path, "/run/determined")) {
    from = host.run;
    snprintf(in_run, sizeof in_run, "determined/%s", rest);
    path = in_run;
  } else if (const char* rest = below(path, "/tmp")) {
    from = host.tmp;
    path = rest;
  }
  return static_cast<int>(syscall(SYS_openat2, from, path, &how, sizeof how));
}

/// Copies the mounts at the host's place; the copy is attached nowhere yet.
fault copy_tree(const host_view& host, const mount_spec& what, int& tree, bool& is_folder) {
  int place = open_host_place(host, what.from);
  if (place < 0)
    return complain("bind mount of %s: %s", what.from, strerror(errno));
  struct stat about {};
  fstat(place, &about);
  is_folder = S_ISDIR(about.st_mode);
  tree =
    open_tree(place, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | static_cast<unsigned>(O_CLOEXEC));
  const int why = errno;
  close(place);
  return tree < 0 ? complain("bind mount of %s: %s", what.from, strerror(why)) : fault{};
}

fault set_attributes(const mount_spec& what, int tree) {
  if (*what.read_only) {
    mount_attr wanted{};
    wanted.attr_set = MOUNT_ATTR_RDONLY;
    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted) != 0)
      return complain("bind mount of %s, to be read only: %s", what.from, strerror(errno));
  }
  for (const auto& known : propagations)
    if (strcmp(what.propagation, known.name) == 0) {
      mount_attr wanted{};
      wanted.propagation = known.flag;
      if (mount_setattr(tree, "", AT_EMPTY_PATH | (known.recursive ? AT_RECURSIVE : 0), &wanted,
                        sizeof wanted) != 0)
        return complain("bind mount of %s, to be %s: %s", what.from, what.propagation, strerror(errno));
      return {};
    }
  return complain("bind mount of %s: '%s' is not a propagation", what.from, what.propagation);
}

/// Mounts a tmpfs over `path` that shows the old entries, so that one can be added.
fault cover(const char* path) {
  int old = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat about {};
  if (old < 0 || fstat(old, &about) != 0)
    return complain("opening %s: %s", path, strerror(errno));
  char options[64];
  snprintf(options, sizeof options, "mode=%o,size=4m", about.st_mode & 07777);
  fault f;
  if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
    f = complain("tmpfs on %s: %s", path, strerror(errno));
  else
    f = show_entries(old, path);
  close(old);
  return f;
}

/// Does the same for the root, which cannot be covered: the tmpfs becomes the new root.
fault change_root(int folder) {
  int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (old < 0 || (mkdir(root_place, 0755) != 0 && errno != EEXIST))
    return complain("a new root: %s", strerror(errno));
  if (mount("tmpfs", root_place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m") != 0 ||
      mount(nullptr, root_place, nullptr, MS_UNBINDABLE, nullptr) != 0) { // else its copy of /tmp holds it
    close(old);
    return complain("a new root: %s", strerror(errno));
  }
  fault f = show_entries(old, root_place);
  close(old);
  if (f)
    return f;
  if (mount(nullptr, root_place, nullptr, MS_PRIVATE, nullptr) != 0 || chdir(root_place) != 0 ||
      syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0)
    return complain("changing to a new root: %s", strerror(errno));
  rmdir(root_place);
  return chdir("/") != 0 || fchdir(folder) != 0 ? complain("leaving the old root: %s", strerror(errno))
                                                : fault{};
}

/// Makes `at` where nothing is there, so that the host does not see it.
fault make_place(const char* at, bool is_folder, int folder, private_places& own) {
  struct stat about {};
  if (stat(at, &about) == 0)
    return is_folder == static_cast<bool>(S_ISDIR(about.st_mode))
             ? fault{}
             : complain("bind mount at %s: there is a %s", at, is_folder ? "file" : "folder");
  char* above = strdup(at);
  if (!above)
    abort();
  struct stat last {};
  do {
    char* slash = strrchr(above, '/');
    slash[slash == above ? 1 : 0] = 0;
  } while (stat(above, &last) != 0 && strcmp(above, "/") != 0);
  if (!S_ISDIR(last.st_mode))
    return complain("bind mount at %s: %s is a file", at, above);
  if (!own.holds(above)) {
    if (auto f = strcmp(above, "/") == 0 ? change_root(folder) : cover(above))
      return f;
    own.paths.push(above); // never freed: the process reads one spec
  }
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", at);
  make_parents(path);
  const int made = is_folder ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0);
  return made != 0 && errno != EEXIST ? complain("making %s: %s", at, strerror(errno)) : fault{};
}

/// Copies the mount at `at`; the copy is attached nowhere yet; -1 with errno.
int spare_of(const char* at) {
  return open_tree(AT_FDCWD, at, OPEN_TREE_CLONE | static_cast<unsigned>(O_CLOEXEC));
}

/// Whether it is a file of the task's account, which lies in the task's folder. What a user mounts below /etc
/// is mounted only once.
bool is_account_file(const mount_spec& x) { return x.from[0] != '/' && below(x.at, "/etc"); }

} // namespace

fault make_mounts(const host_view& host, int folder, const task_spec& spec) {
  // All are copied from the host's places first: after a change of the root these may be out of reach.
  struct tree {
    int fd = -1;
    bool is_folder = false;
  };
  list<tree> trees;
  for (const auto& one : spec.mounts) {
    auto& t = trees.push(tree{});
    auto f = copy_tree(host, one, t.fd, t.is_folder);
    if (!f)
      f = set_attributes(one, t.fd);
    if (f)
      return f;
  }
  if (spec.shm_bytes >= 0) {
    char options[64];
    snprintf(options, sizeof options, "mode=1777,size=%lld", static_cast<long long>(spec.shm_bytes));
    if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
      return complain("a /dev/shm of its own: %s", strerror(errno));
  }
  private_places own;
  own.paths.push("/tmp");
  own.paths.push("/run/determined");
  if (host.covers_run)
    own.paths.push("/run");
  if (spec.shm_bytes >= 0)
    own.paths.push("/dev/shm");
  for (std::size_t n = 0; n < spec.mounts.size; ++n) {
    const auto& one = spec.mounts[n];
    if (auto f = make_place(one.at, trees[n].is_folder, folder, own))
      return f;
    if (move_mount(trees[n].fd, "", AT_FDCWD, one.at, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) != 0)
      return complain("bind mount of %s at %s: %s", one.from, one.at, strerror(errno));
    close(trees[n].fd);
  }
  return {};
}

fault files_over_etc::watch(const task_spec& spec) {
  for (const auto& one : spec.mounts)
    if (is_account_file(one))
      spares_.push({one.at, spare_of(one.at)});
  if (spares_.size == 0)
    return {};
  fd_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd_ < 0 || inotify_add_watch(fd_, "/etc", IN_MOVED_TO | IN_CREATE | IN_ONLYDIR) < 0) {
    auto f = complain("its account's names are lost when the lists of this host change: %s", strerror(errno));
    if (fd_ >= 0)
      close(fd_);
    fd_ = -1;
    return f;
  }
  return put_back(); // a file may have changed since the copies were made
}

fault files_over_etc::on_ready() {
  alignas(inotify_event) char events[4096];
  while (read(fd_, events, sizeof events) > 0) {
  } // a missing mount shows which file changed
  return put_back();
}

fault files_over_etc::put_back() {
  fault first;
  const auto here = private_places::mount_of("/etc");
  for (auto& one : spares_) {
    if (one.tree < 0 || private_places::mount_of(one.at) != here)
      continue;
    if (move_mount(one.tree, "", AT_FDCWD, one.at, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) != 0) {
      if (!first)
        first = complain("mounting the task's %s again: %s", one.at, strerror(errno));
      continue;
    }
    close(one.tree);
    one.tree = spare_of(one.at);
  }
  if (!first || failed_)
    return {};
  failed_ = true; // the fault is reported once
  return first;
}

fault do_without_mounts(const task_spec& spec) {
  for (const auto& one : spec.mounts)
    if (one.from[0] == '/' && (*one.read_only || strcmp(one.from, one.at) != 0))
      return complain("bind mount of %s at %s: this host gives its tasks no namespaces, so that they see "
                      "each folder only where it is, and as it is",
                      one.from, one.at);
  return {};
}

} // namespace troupe::task_init
