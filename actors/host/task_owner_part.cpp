#include "actors/host/task_owner_part.hpp"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr ::mode_t as_tmp = 01777;

error refused(const char* what, const fs::path& path) {
  return {errc::io, std::string("cannot ") + what + " '" + path.string() + "': " + std::strerror(errno)};
}

result<void> give(const fs::path& path, workers::account_spec account) {
  return ::lchown(path.c_str(), account.uid, account.gid) == 0 ? result<void>{}
                                                               : refused("give the task its", path);
}

result<void> give_tree(const fs::path& path, workers::account_spec account) {
  std::error_code fault;
  for (fs::recursive_directory_iterator it(path, fault), end; !fault && it != end; it.increment(fault))
    if (auto ok = give(it->path(), account); !ok)
      return ok;
  if (fault)
    return error{errc::io, "cannot read '" + path.string() + "': " + fault.message()};
  return {};
}

/// Makes a folder that every account may write to. A folder that exists already stays as it is, because its
/// owner decides who may write there.
result<void> open_for_all(const fs::path& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    return refused("make", path);
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != ::geteuid() ||
      (about.st_mode & 07777) == as_tmp)
    return {};
  return ::chmod(path.c_str(), as_tmp) == 0 ? result<void>{} : refused("open", path);
}

} // namespace

result<void> give_to_account(const fs::path& folder, const task_launch& launch,
                             workers::account_spec account) {
  for (const char* tree : {"run", "tmp"})
    if (auto ok = give_tree(folder / tree, account); !ok)
      return ok;
  if (auto ok = give(folder / "run", account); !ok)
    return ok;
  // The task's own sshd has to read this file, and nobody else may.
  const auto secrets = folder / "etc" / "shadow";
  if (::access(secrets.c_str(), F_OK) == 0)
    if (auto ok = give(secrets, account); !ok)
      return ok;
  if (launch.checkpoint_dir.empty())
    return {};
  const fs::path checkpoints = launch.checkpoint_dir;
  if (auto ok = open_for_all(checkpoints); !ok)
    return ok;
  auto events = checkpoints;
  for (const auto& part : {launch.cluster_id, std::string("tensorboard"), std::string("experiment")}) {
    if (launch.cluster_id.empty())
      break;
    events /= part;
    if (auto ok = open_for_all(events); !ok)
      return ok;
  }
  return {};
}

} // namespace troupe
