#include "actors/host/task_files_part.hpp"

#include "workers/context_files.hpp"
#include "workers/owned_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using workers::owned_fd;

constexpr const char* tensorboard_folder = "tmp/tensorboard";

class task_folder {
public:
  explicit task_folder(const fs::path& path)
      : path_(path), folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  /// Makes a folder and the folders above it.
  result<void> make_folder(const std::string& name) { return make_folder_as(name, 0755); }
  /// Makes a folder that only the task's account may read.
  result<void> make_private_folder(const std::string& name) {
    if (auto ok = make_folder_as(name, 0700); !ok)
      return ok;
    owned_fd folder{::openat(folder_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    return folder && ::fchmod(folder.get(), 0700) == 0 ? result<void>{} : refused(name);
  }
  result<void> make_folder_as(const std::string& name, mode_t mode) {
    if (made_.contains(name))
      return {};
    if (::mkdirat(folder_.get(), name.c_str(), mode) == 0 || errno == EEXIST) {
      made_.insert(name);
      return {};
    }
    if (const auto slash = name.rfind('/'); errno == ENOENT && slash != std::string::npos) {
      if (auto ok = make_folder(name.substr(0, slash)); !ok)
        return ok;
      if (::mkdirat(folder_.get(), name.c_str(), mode) == 0 || errno == EEXIST) {
        made_.insert(name);
        return {};
      }
    }
    return refused(name);
  }

  /// Writes over a file and cuts it off at its new end. If it were emptied first, the file system would write
  /// it to the disk when it is closed.
  result<void> write(const std::string& name, const std::string& text, int mode) {
    owned_fd file{::openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode)};
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0)
      return refused(name);
    if ((about.st_mode & 07777) != static_cast<mode_t>(mode) &&
        ::fchmod(file.get(), static_cast<mode_t>(mode)) != 0)
      return refused(name);
    const auto size = static_cast<off_t>(text.size());
    if (about.st_size == size) {
      std::string there(text.size(), 0);
      if (::pread(file.get(), there.data(), there.size(), 0) == size && there == text)
        return {};
    }
    for (std::size_t done = 0; done < text.size();) {
      const auto n = ::pwrite(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return refused(name);
      done += static_cast<std::size_t>(n);
    }
    return about.st_size <= size || ::ftruncate(file.get(), size) == 0 ? result<void>{} : refused(name);
  }

  result<void> link(const std::string& name, const std::string& target) {
    char there[256];
    const auto n = ::readlinkat(folder_.get(), name.c_str(), there, sizeof there);
    if (n >= 0 && std::string_view(there, static_cast<std::size_t>(n)) == target)
      return {};
    if (n >= 0)
      ::unlinkat(folder_.get(), name.c_str(), 0);
    return ::symlinkat(target.c_str(), folder_.get(), name.c_str()) == 0 ? result<void>{} : refused(name);
  }

  /// Renames the link that an earlier task left to the name of this task's link.
  result<void> link_tensorboard(const std::string& name) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path_ / "tmp", ignored)) {
      const auto old = "tmp/" + entry.path().filename().string();
      if (old.starts_with(std::string(tensorboard_folder) + "-") && old != name &&
          ::renameat(folder_.get(), old.c_str(), folder_.get(), name.c_str()) == 0)
        break;
    }
    return link(name, "tensorboard");
  }

private:
  error refused(const std::string& name) const {
    return {errno == ENOSPC ? errc::no_space : errc::io,
            "cannot write '" + (path_ / name).string() + "': " + std::strerror(errno)};
  }

  const fs::path path_;
  owned_fd folder_;
  std::set<std::string> made_; ///< folders that are there
};

/// The part of a launch that hosted() and the proxy read; the rest is in the command and the files, which
/// exist already.
task_launch kept_of(const task_launch& x) {
  task_launch kept;
  kept.slots = x.slots;
  kept.token = x.token;
  kept.checkpoint_dir = x.checkpoint_dir;
  kept.ports = x.ports;
  kept.mode = x.mode;
  kept.ranks = x.ranks;
  kept.first_rank = x.first_rank;
  kept.nodes = x.nodes;
  kept.experiment = x.experiment; // says where event files go and from which step they count
  kept.cluster_id = x.cluster_id;
  kept.resume_steps = x.resume_steps;
  kept.services = x.services;
  return kept;
}

/// The files that stock_files() gives, as paths relative to `run`.
constexpr const char* stock_names[] = {"task-setup.sh",   "train/entrypoint.sh", "info/cluster.json",
                                       "info/trial.json", "info/resources.json", "info/rendezvous.json",
                                       pool_hook_file};

/// Whether the file tells nothing of the task that it was written for.
bool is_the_same_in_all(std::string_view stock_name) {
  return stock_name.ends_with(".sh") && stock_name != pool_hook_file;
}

} // namespace

std::vector<std::string> reused_in_task_folder() {
  const std::string tensorboard = tensorboard_folder;
  std::vector<std::string> all = {launch_file, tensorboard + "/", tensorboard + "-*@", "run/train/"};
  for (const char* one : task_folders)
    all.push_back("run/" + std::string(one) + "/");
  for (const char* one : stock_names)
    all.push_back("run/" + std::string(one) + (is_the_same_in_all(one) ? "=" : ""));
  for (const auto& link : stock_links())
    all.push_back(link.path + "@");
  return all;
}

result<void> write_task_files(const fs::path& path, allocation_id id, const task_launch& launch,
                              const task_surroundings& around, const context_source& fetch) {
  task_folder folder(path);
  for (const char* one : task_folders)
    if (auto ok = folder.make_folder(std::string("run/") + one); !ok)
      return ok;
  if (std::any_of(launch.services.begin(), launch.services.end(),
                  [](const task_service& one) { return one.socket; }))
    if (auto ok = folder.make_private_folder("run/service"); !ok)
      return ok;
  if (!launch.context.empty()) {
    auto tar = fetch(launch.context);
    if (!tar)
      return error{tar.error().code, "cannot fetch its files: " + tar.error().what};
    // The folder train/model stays as it was submitted.
    for (const char* one : {"workdir", "train/model"})
      if (auto ok = tar->empty() ? result<void>{} : workers::unpack_archive(*tar, path / "run" / one); !ok)
        return error{ok.error().code, "cannot unpack its files: " + ok.error().what};
  }
  std::set<std::string> left(std::begin(stock_names), std::end(stock_names));
  for (const auto& file : stock_files(id, launch, around)) {
    // The lists of accounts lie outside of the folder that the task sees and owns, because the task must not
    // write them.
    const auto at = file.path.starts_with("etc/") ? file.path : "run/" + file.path;
    if (const auto slash = at.rfind('/'); slash != at.npos)
      if (auto ok = folder.make_folder(at.substr(0, slash)); !ok)
        return ok;
    if (auto ok = folder.write(at, file.text, file.mode); !ok)
      return ok;
    left.erase(file.path);
  }
  for (const auto& of_an_earlier_task : left)
    ::unlink((path / "run" / of_an_earlier_task).c_str());
  if (auto ok = folder.make_folder(tensorboard_folder); !ok)
    return ok;
  if (auto ok = folder.link_tensorboard(stock_tensorboard_link(launch)); !ok)
    return ok;
  for (const auto& link : stock_links())
    if (auto ok = folder.link(link.path, link.target); !ok)
      return ok;
  return folder.write(launch_file, encode(kept_of(launch)), 0644);
}

} // namespace troupe
