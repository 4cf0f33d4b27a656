#include "storage/checkpoints/folder_store.hpp"

#include "model/checkpoint_place.hpp"
#include "system/descriptor.hpp"

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

/// Whether a name is not there, or is no folder any more.
bool is_absent(const std::error_code& why) {
  return why == std::errc::no_such_file_or_directory || why == std::errc::not_a_directory ||
         why == std::errc::too_many_symbolic_link_levels;
}

using directory = std::unique_ptr<DIR, int (*)(DIR*)>;
/// Opens a folder in the open folder `in`, but no symbolic link to one. Null: errno says why not.
directory open_folder(int in, const char* name) {
  const int fd = ::openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  auto* const folder = fd < 0 ? nullptr : ::fdopendir(fd);
  if (!folder && fd >= 0)
    ::close(fd);
  return {folder, ::closedir};
}

/// Opens the folder of a checkpoint. A task could put a link to another folder in its place.
result<directory> open_checkpoint(const fs::path& root, const std::string& key) {
  const descriptor store{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (store.fd < 0)
    return fault_of(root / key, "read the folder", last_fault());
  auto folder = open_folder(store.fd, key.c_str());
  if (folder)
    return folder;
  const auto why = last_fault();
  if (is_absent(why) && why != std::errc::no_such_file_or_directory)
    return error{errc::not_found, (root / key).string() + ": is not a folder"};
  return fault_of(root / key, "read the folder", why);
}

/// Calls `visit` with the name and the readdir type of each entry. Ends with the first fault.
template <class Visit>
std::error_code each_entry(DIR* folder, Visit visit) {
  errno = 0;
  while (const auto* one = ::readdir(folder)) {
    const std::string_view name = one->d_name;
    if (name != "." && name != "..")
      if (const std::error_code fault = visit(one->d_name, one->d_type))
        return fault;
    errno = 0;
  }
  return errno == 0 ? std::error_code{} : last_fault();
}

/// What vanishes meanwhile in the folder, as another removal may take it, is left out.
std::error_code add_files(DIR* folder, const std::string& prefix,
                          std::map<std::string, std::int64_t>& found) {
  return each_entry(folder, [&](const char* name, unsigned char) -> std::error_code {
    const int in = ::dirfd(folder);
    struct stat what {};
    if (::fstatat(in, name, &what, AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? std::error_code{} : last_fault();
    if (S_ISREG(what.st_mode))
      found[prefix + name] = what.st_size;
    if (!S_ISDIR(what.st_mode))
      return {};
    const auto path = prefix + name + "/";
    const auto inner = open_folder(in, name);
    const auto fault = inner ? add_files(inner.get(), path, found) : last_fault();
    if (!fault)
      found[path] = 0; // scripts report folders in the same way
    return is_absent(fault) ? std::error_code{} : fault;
  });
}

/// Removes the file or the empty folder at a path below the open folder, and follows no symbolic link on the
/// way. A folder that is not empty stays, and what is not there is no fault.
std::error_code remove_below(DIR* folder, const std::string& path) {
  const bool is_folder = path.ends_with('/');
  const auto whole = path.substr(0, path.size() - is_folder);
  directory inner{nullptr, ::closedir};
  int in = ::dirfd(folder);
  std::size_t from = 0;
  for (auto slash = whole.find('/'); slash != whole.npos; slash = whole.find('/', from)) {
    inner = open_folder(in, whole.substr(from, slash - from).c_str());
    if (!inner)
      return is_absent(last_fault()) ? std::error_code{} : last_fault();
    in = ::dirfd(inner.get());
    from = slash + 1;
  }
  if (::unlinkat(in, whole.c_str() + from, is_folder ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT || is_folder)
    return {};
  return last_fault();
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
  const auto folder = open_folder(in, name);
  if (!folder)
    return errno == ENOENT ? std::error_code{} : last_fault();
  const auto fault = each_entry(folder.get(), [&](const char* inner, unsigned char inner_type) {
    return remove_tree(::dirfd(folder.get()), inner, inner_type, files);
  });
  if (fault)
    return fault;
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
  if (!fs::is_directory(fs::symlink_status(root_ / key, fault)))
    return error{errc::not_found, (root_ / key).string() + ": there is no such checkpoint"};
  return copy_tree(root_ / key, to);
}

result<std::map<std::string, std::int64_t>> folder_store::list(const std::string& key) const {
  if (!is_checkpoint_key(key))
    return no_key(key);
  const auto folder = open_checkpoint(root_, key);
  if (!folder)
    return folder.error();
  std::map<std::string, std::int64_t> found;
  if (const auto fault = add_files(folder->get(), "", found))
    return fault_of(root_ / key, "read the folder", fault);
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
  const descriptor root{::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (root.fd < 0)
    return errno == ENOENT ? result<void>{} : fault_of(root_, "open", last_fault());
  const auto fault = remove_tree(root.fd, key.c_str(), DT_UNKNOWN, files);
  return fault ? result<void>(fault_of(root_ / key, "remove", fault)) : result<void>{};
}

result<void> folder_store::erase_files(const std::string& key, const std::vector<std::string>& paths) {
  const auto there = list(key);
  const auto folder = there ? open_checkpoint(root_, key) : there.error();
  if (!folder)
    return folder.error().code == errc::not_found ? result<void>{} : folder.error();
  std::set<std::string> folders;
  for (const auto& path : paths) {
    if (!there->contains(path)) // it is not in the checkpoint, or leads out of it
      continue;
    if (path.ends_with('/'))
      folders.insert(path);
    else if (const auto fault = remove_below(folder->get(), path))
      return fault_of(root_ / key / path, "remove", fault);
  }
  for (auto at = folders.rbegin(); at != folders.rend();
       ++at) // inner folders come last in the order of paths
    if (const auto fault = remove_below(folder->get(), *at))
      return fault_of(root_ / key / *at, "remove", fault);
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
