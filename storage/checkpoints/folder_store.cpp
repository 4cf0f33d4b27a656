#include "storage/checkpoints/folder_store.hpp"

#include "model/checkpoint_place.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::storage {
namespace {

namespace fs = std::filesystem;

constexpr const char* unfinished = ".tmp"; ///< appended to the key, as scripts do

error fault_of(const fs::path& where, const std::string& doing, const std::error_code& why) {
  if (why == std::errc::no_such_file_or_directory)
    return {errc::not_found, where.string() + ": " + doing + ": " + why.message()};
  if (why == std::errc::no_space_on_device)
    return {errc::no_space, where.string() + ": " + doing + ": " + why.message()};
  if (why == std::errc::permission_denied || why == std::errc::read_only_file_system ||
      why == std::errc::operation_not_permitted)
    return {errc::denied, where.string() + ": " + doing + ": " + why.message()};
  return {errc::io, where.string() + ": " + doing + ": " + why.message()};
}

std::error_code last_fault() { return {errno, std::generic_category()}; }

error no_key(const std::string& key) {
  return {errc::invalid, "'" + key.substr(0, 100) + "' is not the name of a checkpoint"};
}

result<void> sync(const fs::path& what, int flags) {
  const int fd = ::open(what.c_str(), flags | O_CLOEXEC);
  if (fd < 0)
    return fault_of(what, "open", last_fault());
  const bool fine = ::fsync(fd) == 0;
  const auto why = last_fault();
  ::close(fd);
  return fine ? result<void>{} : fault_of(what, "sync", why);
}

/// Makes `to` and copies regular files and folders into it; they are durable when it returns.
result<void> copy_tree(const fs::path& from, const fs::path& to) {
  std::error_code fault;
  fs::create_directory(to, fault);
  if (fault)
    return fault_of(to, "make the folder", fault);
  for (fs::directory_iterator at(from, fault), end; !fault && at != end; at.increment(fault)) {
    const auto target = to / at->path().filename();
    if (at->is_symlink(fault))
      continue;
    if (at->is_directory(fault)) {
      if (auto ok = copy_tree(at->path(), target); !ok)
        return ok;
    } else if (at->is_regular_file(fault)) {
      std::error_code bad;
      fs::copy_file(at->path(), target, bad);
      if (bad)
        return fault_of(target, "copy", bad);
      if (auto ok = sync(target, O_RDONLY); !ok)
        return ok;
    }
  }
  if (fault)
    return fault_of(from, "read the folder", fault);
  return sync(to, O_RDONLY | O_DIRECTORY);
}

/// What vanishes meanwhile in the folder, as another removal may take it, is left out.
result<void> add_files(const fs::path& folder, const std::string& prefix,
                       std::map<std::string, std::int64_t>& found) {
  std::error_code fault;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
    const auto name = prefix + at->path().filename().string();
    std::error_code bad; // that of one entry
    if (at->is_symlink(bad))
      continue;
    if (at->is_directory(bad)) {
      auto ok = add_files(at->path(), name + "/", found);
      if (ok)
        found[name + "/"] = 0; // scripts report folders in the same way
      else if (ok.error().code != errc::not_found)
        return ok;
    } else if (at->is_regular_file(bad)) {
      if (const auto bytes = at->file_size(bad); !bad)
        found[name] = static_cast<std::int64_t>(bytes);
    }
    if (bad && bad != std::errc::no_such_file_or_directory)
      return fault_of(at->path(), "look at", bad);
  }
  return fault ? result<void>(fault_of(folder, "read the folder", fault)) : result<void>{};
}

/// Removes `name` in the open folder `in`, with all that is below it, and follows no symbolic link. Counts
/// regular files; `type` is what readdir says `name` is.
std::error_code remove_tree(int in, const char* name, unsigned char type, std::size_t& files) {
  if (type != DT_DIR) {
    struct stat what {};
    if (type == DT_UNKNOWN && ::fstatat(in, name, &what, AT_SYMLINK_NOFOLLOW) == 0)
      type = static_cast<unsigned char>(IFTODT(what.st_mode));
    if (::unlinkat(in, name, 0) == 0) {
      files += type == DT_REG;
      return {};
    }
    if (errno != EISDIR)
      return errno == ENOENT ? std::error_code{} : last_fault();
  }
  const int fd = ::openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT ? std::error_code{} : last_fault();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd), ::closedir);
  if (!folder) {
    const auto why = last_fault();
    ::close(fd);
    return why;
  }
  errno = 0;
  while (const auto* one = ::readdir(folder.get())) {
    const std::string_view inner = one->d_name;
    if (inner != "." && inner != "..")
      if (const auto fault = remove_tree(fd, one->d_name, one->d_type, files))
        return fault;
    errno = 0;
  }
  if (errno != 0)
    return last_fault();
  return ::unlinkat(in, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? std::error_code{} : last_fault();
}

} // namespace

result<void> folder_store::make_root() const {
  std::error_code fault;
  fs::create_directories(root_, fault);
  return fault ? result<void>(fault_of(root_, "make the folder", fault)) : result<void>{};
}

result<void> folder_store::put(const std::string& key, const fs::path& from) {
  if (!is_checkpoint_key(key))
    return no_key(key);
  std::error_code fault;
  if (!fs::is_directory(from, fault))
    return error{errc::not_found, from.string() + ": there is no such folder"};
  if (auto ok = make_root(); !ok)
    return ok;
  const auto whole = root_ / key, part = root_ / (key + unfinished);
  fs::remove_all(part, fault); // a put that was cut off may have left it
  auto copied = copy_tree(from, part);
  if (copied && ::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, whole.c_str(), RENAME_NOREPLACE) != 0) {
    // A checkpoint has this key: the two folders change their names in one step.
    const bool both =
      errno == EEXIST && ::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, whole.c_str(), RENAME_EXCHANGE) == 0;
    if (!both)
      copied = fault_of(whole, "rename", last_fault());
  }
  if (copied)
    copied = sync(root_, O_RDONLY | O_DIRECTORY);
  fs::remove_all(part, fault);
  return copied;
}

result<void> folder_store::get(const std::string& key, const fs::path& to) const {
  if (!is_checkpoint_key(key))
    return no_key(key);
  std::error_code fault;
  if (!fs::is_directory(root_ / key, fault))
    return error{errc::not_found, (root_ / key).string() + ": there is no such checkpoint"};
  return copy_tree(root_ / key, to);
}

result<std::map<std::string, std::int64_t>> folder_store::list(const std::string& key) const {
  if (!is_checkpoint_key(key))
    return no_key(key);
  std::map<std::string, std::int64_t> found;
  if (auto ok = add_files(root_ / key, "", found); !ok)
    return ok.error();
  return found;
}

result<bool> folder_store::has(const std::string& key) const {
  if (!is_checkpoint_key(key))
    return no_key(key);
  std::error_code fault;
  const auto what = fs::symlink_status(root_ / key, fault);
  if (what.type() == fs::file_type::none)
    return fault_of(root_ / key, "look at", fault);
  return what.type() != fs::file_type::not_found;
}

result<void> folder_store::erase(const std::string& key, std::size_t& files) {
  if (!is_checkpoint_key(key))
    return no_key(key);
  const int root = ::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    return errno == ENOENT ? result<void>{} : fault_of(root_, "open", last_fault());
  const auto fault = remove_tree(root, key.c_str(), DT_UNKNOWN, files);
  ::close(root);
  return fault ? result<void>(fault_of(root_ / key, "remove", fault)) : result<void>{};
}

result<void> folder_store::erase_files(const std::string& key, const std::vector<std::string>& paths) {
  auto there = list(key); // the list holds no symbolic links, so no path leads out
  if (!there)
    return there.error().code == errc::not_found ? result<void>{} : there.error();
  std::set<std::string> folders;
  for (const auto& path : paths) {
    if (!there->contains(path))
      continue;
    if (path.ends_with('/')) {
      folders.insert(path);
      continue;
    }
    std::error_code fault;
    fs::remove(root_ / key / path, fault);
    if (fault && fault != std::errc::no_such_file_or_directory)
      return fault_of(root_ / key / path, "remove", fault);
  }
  for (auto at = folders.rbegin(); at != folders.rend();
       ++at)                              // inner folders come last in the order of paths
    ::rmdir((root_ / key / *at).c_str()); // a folder that is not empty stays
  return {};
}

result<void> folder_store::probe() {
  if (auto ok = make_root(); !ok)
    return ok;
  auto file = (root_ / ".troupe-probe-XXXXXX").string();
  const int fd = ::mkstemp(file.data());
  if (fd < 0)
    return fault_of(root_, "write a file", last_fault());
  const bool fine = ::write(fd, "x", 1) == 1;
  const auto why = last_fault();
  ::close(fd);
  ::unlink(file.c_str());
  return fine ? result<void>{} : fault_of(root_, "write a file", why);
}

} // namespace troupe::storage
