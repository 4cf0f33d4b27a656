#include "workers/task_folder.hpp"

#include "workers/task_init/task_format.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <memory>
#include <sstream>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace troupe::workers {
namespace {

namespace format = task_format;

void put(std::string& to, std::string_view key, std::string_view value) {
  to.append(key).push_back('\0');
  to.append(value).push_back('\0');
}
void put(std::string& to, std::string_view key, std::uint64_t value) { put(to, key, std::to_string(value)); }

error refused(const std::string& what) {
  return {errno == ENOSPC ? errc::no_space : errc::io, what + ": " + strerror(errno)};
}

result<std::string> read_all(int fd, std::size_t limit) {
  std::string bytes;
  char part[8192];
  while (bytes.size() < limit) {
    auto n = ::read(fd, part, sizeof part);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return refused("read");
    if (n == 0)
      break;
    bytes.append(part, static_cast<std::size_t>(n));
  }
  return bytes;
}

result<void> write_all(int fd, const std::string& name, std::string_view bytes) {
  while (!bytes.empty()) {
    auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return refused(name);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

/// In "NAME REST", the part after the name; nothing where the line has another name.
std::optional<std::string_view> after(std::string_view line, std::string_view name) {
  if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ')
    return {};
  return line.substr(name.size() + 1);
}

time_point from_us(long long us) { return time_point{std::chrono::microseconds{us}}; }

std::optional<rank_end> decode_rank(const std::string& line) {
  rank_end end;
  char kind[16], flags[16];
  long long at = 0;
  if (std::sscanf(line.c_str(), "rank %d %15s %d at %lld %15s", &end.rank, kind, &end.value, &at, flags) != 5)
    return {};
  end.signalled = std::strcmp(kind, "signal") == 0;
  end.killed = std::strchr(flags, 'k');
  end.out_of_memory = std::strchr(flags, 'o');
  end.at = from_us(at);
  return end;
}

result<task_end> end_of(const std::string& id, time_point at, std::string_view why,
                        std::vector<rank_end> ranks) {
  auto space = why.find(' ');
  auto word = why.substr(0, space);
  std::string detail{space == std::string_view::npos ? std::string_view{} : why.substr(space + 1)};
  if (word == "lost")
    return task_end{task_lost{id, detail}};
  for (auto reason : {end_reason::exited, end_reason::killed, end_reason::lease, end_reason::failed})
    if (word == name(reason))
      return task_end{task_exited{id, reason, detail, std::move(ranks), at}};
  return error{errc::corrupt, "exit record of task " + id + ": unknown reason '" + std::string(word) + "'"};
}

std::string one_line(std::string text) {
  for (auto& c : text)
    if (c == '\n')
      c = ' ';
  return text;
}

/// Start time in clock ticks, field 22 of /proc/PID/stat; 0 where the process is not there.
unsigned long long start_ticks(int pid) {
  owned_fd stat{::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC)};
  if (!stat)
    return 0;
  auto text = read_all(stat.get(), 4096);
  if (!text)
    return 0;
  auto at = text->rfind(')');
  for (int field = 2; at != std::string::npos && field < 22; ++field)
    at = text->find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text->c_str() + at, nullptr, 10);
}

bool carries(int pid, const std::string& mark) {
  owned_fd environ{::open(("/proc/" + std::to_string(pid) + "/environ").c_str(), O_RDONLY | O_CLOEXEC)};
  if (!environ)
    return false;
  auto text = read_all(environ.get(), 8 << 20);
  return text && (text->starts_with(mark) || text->find('\0' + mark) != std::string::npos);
}

bool empty_folder(int folder, int top, dev_t device, int depth, int& moved);

bool remove_entry(int folder, const char* name, int top, dev_t device, int depth, int& moved) {
  struct stat about {};
  if (::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT;
  if (!S_ISDIR(about.st_mode))
    return ::unlinkat(folder, name, 0) == 0 || errno == ENOENT;
  if (about.st_dev != device)
    return false; // something is mounted here that is not ours
  if (depth == 64) {
    // Descriptors are few: a folder that lies deeper is moved up and removed from there.
    auto up = ".deep-" + std::to_string(++moved);
    return ::renameat(folder, name, top, up.c_str()) == 0;
  }
  if ((about.st_mode & 0700) != 0700)
    ::fchmodat(folder, name, 0700, 0);
  owned_fd inner{::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!inner || !empty_folder(inner.get(), top, device, depth + 1, moved))
    return false;
  return ::unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool empty_folder(int folder, int top, dev_t device, int depth, int& moved) {
  int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = again < 0 ? nullptr : ::fdopendir(again);
  if (!entries)
    return false;
  bool all = true;
  while (auto* entry = ::readdir(entries))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      all = remove_entry(folder, entry->d_name, top, device, depth, moved) && all;
  ::closedir(entries);
  return all;
}

} // namespace

std::string encode(const task_spec& spec, const sandbox_settings& settings) {
  std::string bytes;
  put(bytes, format::spec_key, "1");
  put(bytes, "id", spec.id);
  put(bytes, "lease-ms", static_cast<std::uint64_t>(settings.lease.count()));
  put(bytes, "frozen-kill-ms", static_cast<std::uint64_t>(settings.frozen_limit.count()));
  put(bytes, "adopt-ms", static_cast<std::uint64_t>(settings.adopt.count()));
  put(bytes, "linger-ms", static_cast<std::uint64_t>(settings.linger.count()));
  put(bytes, "spool-file-bytes", settings.spool_file_bytes);
  put(bytes, "spool-files", static_cast<std::uint64_t>(settings.spool_files));
  if (spec.limits.memory_bytes)
    put(bytes, "memory-bytes", *spec.limits.memory_bytes);
  if (spec.limits.open_files)
    put(bytes, "open-files", *spec.limits.open_files);
  if (spec.limits.cpu_seconds)
    put(bytes, "cpu-seconds", *spec.limits.cpu_seconds);
  if (!spec.fence.address.empty()) {
    put(bytes, "fence", spec.fence.address);
    put(bytes, "fence-ask", spec.fence.ask);
    put(bytes, "fence-dead", spec.fence.dead);
    if (!spec.fence.program.empty()) {
      put(bytes, "fence-program", spec.fence.program);
      put(bytes, "fence-ca", spec.fence.ca);
    }
  }
  for (const auto& note : spec.notes)
    put(bytes, "note", note);
  if (!spec.refusal.empty())
    put(bytes, "refusal", spec.refusal);
  if (spec.shm_bytes)
    put(bytes, "shm-bytes", *spec.shm_bytes);
  if (spec.account) {
    put(bytes, "uid", std::uint64_t{spec.account->uid});
    put(bytes, "gid", std::uint64_t{spec.account->gid});
  }
  for (const auto& one : spec.mounts) {
    put(bytes, "mount", one.from);
    put(bytes, "mount-at", one.at);
    if (one.read_only)
      put(bytes, "mount-read-only", "yes");
    put(bytes, "mount-propagation", one.propagation);
  }
  for (const auto& path : spec.keep_read_only)
    put(bytes, "keep-read-only", path);
  for (const auto& path : spec.keep)
    put(bytes, "keep", path);
  for (const auto& rank : spec.ranks) {
    put(bytes, "keep-if-there", rank.cwd);
    if (rank.argv[0][0] == '/')
      put(bytes, "keep-if-there", rank.argv[0]);
  }
  for (const auto& rank : spec.ranks) {
    put(bytes, "rank", rank.cwd);
    for (const auto& arg : rank.argv)
      put(bytes, "arg", arg);
    for (const auto& entry : rank.env)
      put(bytes, "env", entry);
    for (const auto& arg : rank.direct_argv)
      put(bytes, "direct-arg", arg);
    for (const auto& entry : rank.direct_env)
      put(bytes, "direct-env", entry);
  }
  return bytes;
}

result<void> write_file(int folder, const char* name, std::string_view bytes) {
  // The file is cut off at its end: a file that is emptied first is written to disk when it is closed.
  owned_fd file{::openat(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file)
    return refused(name);
  if (auto ok = write_all(file.get(), name, bytes); !ok)
    return ok;
  struct stat about {};
  const auto size = static_cast<off_t>(bytes.size());
  const bool longer = ::fstat(file.get(), &about) != 0 || about.st_size > size;
  return !longer || ::ftruncate(file.get(), size) == 0 ? result<void>{} : refused(name);
}

result<void> write_durable(int folder, const char* name, std::string_view bytes) {
  auto draft = std::string(name) + ".new";
  owned_fd file{::openat(folder, draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (!file)
    return refused(draft);
  if (auto ok = write_all(file.get(), draft, bytes); !ok)
    return ok;
  if (::fsync(file.get()) != 0 || ::renameat(folder, draft.c_str(), folder, name) != 0 ||
      ::fsync(folder) != 0)
    return refused(name);
  return {};
}

result<std::string> read_file(int folder, const char* name) {
  owned_fd file{::openat(folder, name, O_RDONLY | O_CLOEXEC)};
  if (!file)
    return error{errno == ENOENT ? errc::not_found : errc::io, std::string(name) + ": " + strerror(errno)};
  return read_all(file.get(), 1 << 20);
}

result<task_end> decode_end(std::string_view record) {
  std::istringstream lines{std::string(record)};
  std::string line, id, why;
  time_point at;
  std::vector<rank_end> ranks;
  bool first = true;
  for (; std::getline(lines, line); first = false) {
    if (first && line != "troupe-exit 1")
      break;
    if (line == "end")
      return end_of(id, at, why, std::move(ranks));
    if (auto rest = after(line, "id"))
      id = *rest;
    else if (auto when = after(line, "at"))
      at = from_us(std::strtoll(line.c_str() + 3, nullptr, 10));
    else if (auto reason = after(line, "why"))
      why = *reason;
    else if (auto rank = decode_rank(line))
      ranks.push_back(*rank);
  }
  return error{errc::corrupt, "exit record of task " + id + ": the file is cut off, or not an exit record"};
}

std::string encode(const task_end& end) {
  std::ostringstream text;
  text << "troupe-exit 1\n";
  if (const auto* lost = std::get_if<task_lost>(&end)) {
    text << "id " << lost->id << "\nat 0\nwhy lost " << one_line(lost->why) << "\nend\n";
    return text.str();
  }
  const auto& exited = std::get<task_exited>(end);
  text << "id " << exited.id << "\nat " << exited.at.time_since_epoch().count() << "\nwhy "
       << name(exited.why);
  if (!exited.detail.empty())
    text << ' ' << one_line(exited.detail);
  text << '\n';
  for (const auto& rank : exited.ranks)
    text << "rank " << rank.rank << (rank.signalled ? " signal " : " code ") << rank.value << " at "
         << rank.at.time_since_epoch().count() << ' ' << (rank.killed ? "k" : "")
         << (rank.out_of_memory ? "o" : "") << (rank.killed || rank.out_of_memory ? "" : "-") << '\n';
  text << "end\n";
  return text.str();
}

namespace {

struct noted_helper {
  int pid = 0; ///< 0: the file names none
  unsigned long long ticks = 0;
};

noted_helper noted_in(int folder) {
  auto text = read_file(folder, format::helper_file);
  noted_helper out;
  if (!text || std::sscanf(text->c_str(), "%d %llu", &out.pid, &out.ticks) != 2 || out.pid <= 0)
    return {};
  return out;
}

} // namespace

owned_fd open_helper(int folder) {
  const auto noted = noted_in(folder);
  if (noted.pid == 0)
    return {};
  // The pidfd is taken before the start time is compared, so that a reused pid is not taken for the old one.
  owned_fd process{static_cast<int>(::syscall(SYS_pidfd_open, noted.pid, 0))};
  if (process && start_ticks(noted.pid) != noted.ticks)
    process.reset();
  return process;
}

int helper_of(int folder) {
  const auto noted = noted_in(folder);
  return noted.pid != 0 && start_ticks(noted.pid) == noted.ticks ? noted.pid : 0;
}

bool kill_marked(int folder) {
  struct stat about {};
  if (::fstat(folder, &about) != 0)
    return false;
  auto mark = "TROUPE_SANDBOX=" + std::to_string(about.st_dev) + "-" + std::to_string(about.st_ino) + '\0';
  DIR* proc = ::opendir("/proc");
  if (!proc)
    return false;
  bool found = false;
  while (auto* entry = ::readdir(proc)) {
    int pid = std::atoi(entry->d_name);
    if (pid <= 1 || pid == ::getpid() || !carries(pid, mark))
      continue;
    owned_fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
    if (process && carries(pid, mark)) {
      found = true;
      ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    }
  }
  ::closedir(proc);
  return found;
}

namespace {

/// Merges a folder that exists on both sides one level deep, where `deeper` allows it.
result<void> move_entries(int from, int to, bool deeper) {
  int again = ::openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> entries{again < 0 ? nullptr : ::fdopendir(again), ::closedir};
  if (!entries)
    return refused("stage");
  while (auto* entry = ::readdir(entries.get())) {
    const char* name = entry->d_name;
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0)
      continue;
    if (deeper && std::strcmp(name, format::run_folder) == 0) {
      if (::mkdirat(to, name, 0755) != 0 && errno != EEXIST)
        return refused(name);
      owned_fd inner{::openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
      owned_fd target{::openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
      if (!inner || !target)
        return refused(name);
      if (auto ok = move_entries(inner.get(), target.get(), false); !ok)
        return ok;
      continue;
    }
    if (::renameat(from, name, to, name) != 0)
      return refused(name);
  }
  return {};
}

} // namespace

result<void> move_stage(int root, const std::string& stage, int folder) {
  owned_fd from{::openat(root, stage.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!from)
    return errno == ENOENT ? error{errc::not_found, "nothing was prepared"} : refused(stage);
  if (auto ok = move_entries(from.get(), folder, true); !ok)
    return ok;
  ::unlinkat(from.get(), format::run_folder, AT_REMOVEDIR);
  ::unlinkat(root, stage.c_str(), AT_REMOVEDIR);
  return {};
}

bool remove_tree(int folder, const char* name) {
  struct stat about {};
  if (::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT;
  if (!S_ISDIR(about.st_mode))
    return ::unlinkat(folder, name, 0) == 0;
  ::fchmodat(folder, name, 0700, 0);
  owned_fd top{::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!top)
    return false;
  int moved = 0;
  for (int before = -1; before != moved;) {
    before = moved;
    if (!empty_folder(top.get(), top.get(), about.st_dev, 0, moved) && before == moved)
      return false;
  }
  return ::unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

namespace {

bool is_as_made(const struct stat& about) {
  static const uid_t own = ::geteuid();
  if (about.st_uid != own)
    return false;
  if (S_ISDIR(about.st_mode))
    return (about.st_mode & 0700) == 0700;
  return S_ISLNK(about.st_mode) || (S_ISREG(about.st_mode) && about.st_nlink == 1);
}

bool is_named(const std::string& path, const std::vector<std::string>& keep) {
  return std::any_of(keep.begin(), keep.end(), [&](const std::string& one) {
    return one.find('*') == std::string::npos ? one == path
                                              : ::fnmatch(one.c_str(), path.c_str(), FNM_PATHNAME) == 0;
  });
}

/// Overwrites the content, so that no token or key outlives its task. The file keeps its blocks, because one
/// that is emptied is written to disk when it is closed.
bool blank(int folder, const char* name, off_t size) {
  static constexpr std::array<char, 16384> zeros{};
  owned_fd file{::openat(folder, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)};
  while (file && size > 0) {
    const auto written =
      ::write(file.get(), zeros.data(), std::min<std::size_t>(zeros.size(), std::size_t(size)));
    if (written < 0 && errno != EINTR)
      return false;
    size -= std::max<ssize_t>(written, 0);
  }
  return bool(file);
}

/// Takes the descriptor `folder`. Files that `keep` names stay, overwritten; files that `own` names stay as
/// they are.
bool thin_out(owned_fd folder, const std::string& below, const std::vector<std::string>& keep,
              const std::vector<std::string>& own) {
  if (!folder)
    return false;
  const int here = folder.get();
  // A stream of opendir() would cost three more calls and 32 KiB of memory for each folder.
  alignas(dirent64) std::array<char, 2048> part;
  ssize_t got = 0;
  while ((got = ::getdents64(here, part.data(), part.size())) > 0)
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(part.data() + at);
      at += entry->d_reclen;
      const char* name = entry->d_name;
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0)
        continue;
      struct stat about {};
      if (::fstatat(here, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
      const auto path = below + name + (S_ISDIR(about.st_mode) ? "/" : S_ISLNK(about.st_mode) ? "@" : "");
      const bool is_kept = is_named(path, keep);
      if (!is_as_made(about) || !(is_kept || is_named(path, own))) {
        if (!remove_tree(here, name))
          return false;
      } else if (S_ISDIR(about.st_mode)) {
        owned_fd inner{::openat(here, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
        if (!thin_out(std::move(inner), path, keep, own))
          return false;
      } else if (is_kept && S_ISREG(about.st_mode) && !blank(here, name, about.st_size)) {
        return false;
      }
    }
  return got == 0;
}

} // namespace

bool make_reusable(int folder, const std::vector<std::string>& keep) {
  if (keep.empty() ||
      (::renameat(folder, format::exit_file, folder, format::exit_draft) != 0 && errno != ENOENT))
    return false;
  std::vector<std::string> emptied = {format::spec_file}, own;
  for (const auto& one : keep)
    one.ends_with('=') ? own.push_back(one.substr(0, one.size() - 1)) : emptied.push_back(one);
  for (const char* one : {format::run_folder, format::tmp_folder, format::log_folder})
    own.push_back(std::string(one) + "/");
  for (const char* one : {format::complaint_file, format::helper_file, format::exit_draft, format::lock_file})
    own.emplace_back(one);
  return thin_out(owned_fd{::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)}, "", emptied, own);
}

bool remove_remains(int folder) {
  bool all = true;
  for (const char* name :
       {format::run_folder, format::tmp_folder, format::socket_file, format::complaint_file,
        format::helper_file, format::exit_draft, format::spec_file, format::lock_file})
    all = remove_tree(folder, name) && all;
  return all && remove_tree(folder, format::exit_file);
}

} // namespace troupe::workers
