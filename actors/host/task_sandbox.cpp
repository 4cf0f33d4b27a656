#include "actors/host/task_sandbox.hpp"

#include "model/account_name.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t record_bytes = 64 << 10;

struct known_account {
  std::uint32_t uid = 0, gid = 0;
  std::string home, shell;
};

std::optional<known_account> account_named(const std::string& name) {
  std::string buffer(record_bytes, 0);
  passwd record{};
  passwd* found = nullptr;
  if (name.empty() || ::getpwnam_r(name.c_str(), &record, buffer.data(), buffer.size(), &found) != 0 ||
      !found)
    return {};
  return known_account{found->pw_uid, found->pw_gid, found->pw_dir, found->pw_shell};
}

bool group_is_known(const std::string& name, std::int64_t gid) {
  std::string buffer(record_bytes, 0);
  group record{};
  group* found = nullptr;
  return ::getgrnam_r(name.c_str(), &record, buffer.data(), buffer.size(), &found) == 0 && found &&
         found->gr_gid == gid;
}

/// The account of the host that has both this name and this number; none if there is none.
std::optional<known_account> known(const task_account& x) {
  auto found = account_named(x.user);
  return found && found->uid == x.uid ? found : std::nullopt;
}

std::string home_of(const task_account& x) {
  const auto found = known(x);
  std::error_code ignored;
  return found && fs::is_directory(found->home, ignored) ? found->home : task_workdir;
}

std::string text_of(const char* file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool ends_logins(const std::string& shell) {
  return shell.ends_with("/nologin") || shell.ends_with("/false");
}

/// The lines of the host's /etc/group, without the line of one group.
std::string without_group(const std::string& name) {
  std::ifstream in("/etc/group");
  std::string out;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with(name + ":"))
      out += line + "\n";
  return out;
}

/// Whether the host's list of passwords locks root, as some distributions do: then sshd refuses every login
/// of root, even with a key.
bool root_is_locked() {
  std::ifstream in("/etc/shadow");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("root:"))
      return line.starts_with("root:!");
  return false;
}

std::string shown(const task_account& x) {
  return x.user + " (uid " + std::to_string(x.uid) + ", gid " + std::to_string(x.gid) + ")";
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
}

bool lies_below(const fs::path& path, const fs::path& folder) {
  const auto [rest, _] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return rest == folder.end();
}

/// The path on the host, with all links resolved; or why tasks may not have it.
result<std::string> host_place(const bind_mount& x, const std::vector<std::string>& forbidden) {
  std::error_code fault;
  const auto place = fs::canonical(x.host_path, fault);
  if (fault)
    return error{errc::invalid,
                 "bind_mounts: '" + x.host_path + "' of this host cannot be mounted: " + fault.message()};
  if (place == place.root_path())
    return error{errc::invalid, "bind_mounts: '" + x.host_path +
                                  "' is the whole host, /proc and the agent's data with it: name the folders "
                                  "that are wanted"};
  for (const auto& one : forbidden)
    if (lies_below(place, one))
      return error{errc::invalid, "bind_mounts: '" + x.host_path + "' lies below " + one +
                                    ", which no task gets: name another folder"};
  return place.string();
}

result<std::string> place_in_sandbox(const bind_mount& x, const std::string& work_dir) {
  // An absolute path replaces the working directory.
  auto at = (fs::path(work_dir) / x.container_path).lexically_normal();
  if (at.has_relative_path() && !at.has_filename())
    at = at.parent_path();
  for (const char* one : {"/proc", "/sys"})
    if (lies_below(at, one))
      return error{errc::invalid,
                   "bind_mounts: nothing can be mounted at '" + at.string() + "', below " + one};
  if (at == "/" || at == task_run_dir)
    return error{errc::invalid, "bind_mounts: nothing can be mounted at '" + at.string() + "' itself"};
  return at.string();
}

result<std::optional<workers::account_spec>> account_of(const task_launch& launch,
                                                        const task_surroundings& around) {
  const auto& wanted = launch.sandbox.account;
  if (!wanted)
    return std::optional<workers::account_spec>();
  constexpr std::int64_t most = 0xffff'fffe;
  if (wanted->uid < 0 || wanted->gid < 0 || wanted->uid > most || wanted->gid > most ||
      !is_account_name(wanted->user) || !is_account_name(wanted->group))
    return error{errc::invalid, "it is to run as '" + wanted->user + "' (uid " + std::to_string(wanted->uid) +
                                  ", gid " + std::to_string(wanted->gid) + ", group '" + wanted->group +
                                  "'), which no account can be: correct the agentUserGroup of the user or "
                                  "workspace"};
  if (!changes_account(launch, around))
    return std::optional<workers::account_spec>();
  if (around.account.uid != 0)
    return error{errc::invalid, "it is to run as " + shown(*wanted) + ", and this agent runs as " +
                                  around.account.user + " (uid " + std::to_string(around.account.uid) +
                                  "), which cannot become another account: run the agent as root, or take "
                                  "the agentUserGroup from the user or workspace"};
  return std::optional(
    workers::account_spec{static_cast<std::uint32_t>(wanted->uid), static_cast<std::uint32_t>(wanted->gid)});
}

} // namespace

const agent_account& own_account() {
  static const agent_account own = [] {
    agent_account out{::geteuid(), ::getegid(), {}};
    std::string buffer(record_bytes, 0);
    passwd record{};
    passwd* found = nullptr;
    if (::getpwuid_r(out.uid, &record, buffer.data(), buffer.size(), &found) == 0 && found)
      out.user = found->pw_name;
    else
      out.user = std::to_string(out.uid);
    return out;
  }();
  return own;
}

bool changes_account(const task_launch& launch, const task_surroundings& around) {
  const auto& wanted = launch.sandbox.account;
  return wanted && (wanted->uid != around.account.uid || wanted->gid != around.account.gid);
}

std::string work_dir_of(const task_launch& launch, const task_surroundings& around) {
  auto path = launch.sandbox.work_dir;
  if (path.empty())
    return task_workdir;
  replace_all(path, "$AGENT_USER",
              launch.sandbox.account ? launch.sandbox.account->user : around.account.user);
  replace_all(path, "$DET_USER", launch.owner);
  return path;
}

std::map<std::string, std::string> account_variables(const task_launch& launch,
                                                     const task_surroundings& around) {
  if (!changes_account(launch, around))
    return {};
  const auto& x = *launch.sandbox.account;
  return {{"HOME", home_of(x)}, {"USER", x.user}, {"LOGNAME", x.user}};
}

std::vector<task_file> account_files(allocation_id id, const task_launch& launch,
                                     const task_surroundings& around) {
  std::vector<task_file> out;
  const bool changes = changes_account(launch, around), logins = id.task.kind() == task_kind::shell;
  if (!changes && !logins)
    return out;
  const auto x = changes ? *launch.sandbox.account
                         : task_account{around.account.uid, around.account.gid, around.account.user, ""};
  const auto found = known(x);
  // The line of the task's account stands before the host's lines, so that the account's name and its number
  // lead to each other.
  const bool own_line = !found || (logins && ends_logins(found->shell));
  if (own_line)
    out.push_back({"etc/passwd",
                   x.user + ":x:" + std::to_string(x.uid) + ":" + std::to_string(x.gid) + "::" + home_of(x) +
                     ":" + around.shell + "\n" + text_of("/etc/passwd"),
                   0644});
  // An sshd that is not root can give a terminal only to its own group. If a group "tty" exists, it insists
  // on that group.
  const bool own_terminals = logins && x.uid != 0;
  const bool group_known = x.group.empty() || group_is_known(x.group, x.gid);
  if (!group_known || own_terminals)
    out.push_back({"etc/group",
                   (group_known ? "" : x.group + ":x:" + std::to_string(x.gid) + ":\n") +
                     (own_terminals ? without_group("tty") : text_of("/etc/group")),
                   0644});
  // Only root's sshd reads the host's list of passwords. Every other sshd asks the next source of
  // nsswitch.conf, and the source of systemd calls "nobody" locked.
  if (logins && (x.uid == 0 ? root_is_locked() : own_line))
    out.push_back({"etc/shadow", x.user + ":*:::::::\n", 0600});
  if (logins && x.uid == 0)
    out.push_back({"sshd/empty", ""}); // root's sshd needs this folder, which the host may not have
  return out;
}

void add_terms(workers::task_spec& spec, allocation_id id, const task_launch& launch,
               const task_surroundings& around) {
  auto account = account_of(launch, around);
  if (!account) {
    spec.refusal = account.error().what;
    return;
  }
  spec.account = *account;
  for (const auto& file : account_files(id, launch, around))
    if (file.path == "sshd/empty")
      spec.mounts.push_back({"run/sshd", "/run/sshd", false, "private"});
    else
      spec.mounts.push_back({file.path, "/" + file.path, true, "private"});
  const auto work_dir = work_dir_of(launch, around);
  for (const auto& one : launch.sandbox.mounts) {
    auto from = host_place(one, around.forbidden);
    auto at = from ? place_in_sandbox(one, work_dir) : result<std::string>(from.error());
    if (!at) {
      spec.refusal = at.error().what;
      return;
    }
    spec.mounts.push_back({std::move(*from), std::move(*at), one.read_only, one.propagation});
  }
  if (launch.sandbox.shm_bytes > 0)
    spec.shm_bytes = static_cast<std::uint64_t>(launch.sandbox.shm_bytes);
}

} // namespace troupe
