// Works in two passes: the first finds all faults and the size, the second reads the files. Every file is
// opened from its folder's descriptor, name by name, because a path may be longer than the system's limit.

#include "model/hex.hpp"
#include "system/descriptor.hpp"
#include "workers/archive_calls.hpp"
#include "workers/context_files.hpp"
#include "workers/ignore_rules.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace troupe::workers {
namespace {

constexpr std::size_t most_faults = 20; ///< a longer list would not help
constexpr std::uint64_t block = 512;
/// Zip, and so Python's wheels, knows no time before 1980. One fixed time keeps the tar the same for the same
/// files.
constexpr time_t fixed_time = 315'619'200;

struct found {
  std::string path; ///< relative, as in the tar
  bool folder = false;
  mode_t mode = 0;
  std::uint64_t bytes = 0;
};

std::string megabytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::uint64_t tar_size(const found& x) {
  std::uint64_t size = block + (x.bytes + block - 1) / block * block;
  if (x.path.size() >= 100) // the long name takes one more record
    size += block + (x.path.size() + block) / block * block;
  return size;
}

std::string shown(const std::string& path) { return path.size() <= 200 ? path : path.substr(0, 200) + "..."; }

class packer {
public:
  packer(const std::filesystem::path& root, const context_limits& limits) : root_(root), limits_(limits) {}

  result<packed_context> pack() {
    if (auto ok = look(); !ok)
      return ok.error();
    return write();
  }

private:
  error fault(std::string what) const { return {errc::invalid, std::move(what)}; }

  void refuse(const std::string& path, const std::string& why) {
    if (faults_.size() < most_faults)
      faults_.push_back((root_ / shown(path)).string() + ": " + why);
    ++fault_count_;
  }

  result<void> look() {
    std::error_code wrong;
    canonical_ = std::filesystem::canonical(root_, wrong);
    if (wrong)
      return fault(root_.string() + ": " + wrong.message());
    if (std::filesystem::is_directory(canonical_, wrong)) {
      root_fd_ = std::make_unique<descriptor>(::open(canonical_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (root_fd_->fd < 0)
        return fault(root_.string() + ": " + std::strerror(errno));
      if (auto ok = read_rules(); !ok)
        return ok;
      walk(root_fd_->fd, "");
    } else {
      auto folder = canonical_.parent_path();
      root_fd_ = std::make_unique<descriptor>(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      auto name = canonical_.filename().string();
      root_ = root_.parent_path();
      canonical_ = folder;
      if (root_fd_->fd < 0)
        return fault(folder.string() + ": " + std::strerror(errno));
      look_at(root_fd_->fd, "", name);
    }
    return verdict();
  }

  result<void> read_rules() {
    descriptor file(::openat(root_fd_->fd, ".detignore", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (file.fd < 0)
      return errno == ENOENT ? result<void>{}
                             : fault((root_ / ".detignore").string() + ": " + std::strerror(errno));
    std::string text(1 << 20, '\0');
    auto got = ::read(file.fd, text.data(), text.size());
    if (got < 0)
      return fault((root_ / ".detignore").string() + ": " + std::strerror(errno));
    text.resize(static_cast<std::size_t>(got));
    rules_ = ignore_rules(text);
    return {};
  }

  bool left_out(const std::string& name, const std::string& path, bool folder) const {
    return name == ".git" || name == "__pycache__" || name.ends_with(".pyc") || name.starts_with(".#") ||
           rules_.ignores(path, folder);
  }

  void walk(int folder, const std::string& prefix) {
    struct stat self {};
    ::fstat(folder, &self);
    ancestors_.push_back({self.st_dev, self.st_ino});
    std::vector<std::string> names;
    if (DIR* listing = ::fdopendir(::dup(folder))) {
      ::rewinddir(listing);
      while (const auto* item = ::readdir(listing))
        if (std::string name = item->d_name; name != "." && name != "..")
          names.push_back(std::move(name));
      ::closedir(listing);
    } else {
      refuse(prefix, std::string("cannot be read: ") + std::strerror(errno));
    }
    std::sort(names.begin(), names.end());
    for (const auto& name : names)
      look_at(folder, prefix, name);
    ancestors_.pop_back();
  }

  void look_at(int folder, const std::string& prefix, const std::string& name) {
    auto path = prefix + name;
    struct stat is {};
    if (::fstatat(folder, name.c_str(), &is, AT_SYMLINK_NOFOLLOW) != 0)
      return; // the file vanished meanwhile
    if (left_out(name, path, S_ISDIR(is.st_mode)))
      return;
    if (path.size() > limits_.name_bytes)
      return refuse(path, "a name of " + std::to_string(path.size()) + " bytes, over the limit of " +
                            std::to_string(limits_.name_bytes));
    if (S_ISLNK(is.st_mode)) {
      if (!link_stays(folder, path, name))
        return;
      if (::fstatat(folder, name.c_str(), &is, 0) != 0)
        return refuse(path, std::string("a link that cannot be followed: ") + std::strerror(errno));
      if (left_out(name, path, S_ISDIR(is.st_mode)))
        return;
    }
    if (S_ISDIR(is.st_mode))
      return look_into(folder, path, name, is);
    if (!S_ISREG(is.st_mode))
      return refuse(path, S_ISFIFO(is.st_mode)   ? "a named pipe"
                          : S_ISSOCK(is.st_mode) ? "a socket"
                                                 : "a device");
    if (::faccessat(folder, name.c_str(), R_OK, AT_EACCESS) != 0)
      return refuse(path, std::string("cannot be read: ") + std::strerror(errno));
    add({path, false, is.st_mode & 07777, static_cast<std::uint64_t>(is.st_size)});
  }

  void look_into(int folder, const std::string& path, const std::string& name, const struct stat& is) {
    for (const auto& [device, inode] : ancestors_)
      if (device == is.st_dev && inode == is.st_ino)
        return refuse(path, "a link that leads to a folder above itself");
    descriptor inner(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (inner.fd < 0)
      return refuse(path, std::string("cannot be read: ") + std::strerror(errno));
    add({path, true, is.st_mode & 07777, 0});
    if (total_ <= limits_.tar_bytes ||
        entries_.size() < 1'000'000) // links to shared folders can multiply them
      walk(inner.fd, path + "/");
  }

  bool link_stays(int folder, const std::string& path, const std::string& name) {
    auto at = std::filesystem::path("/proc/self/fd") / std::to_string(folder) / name;
    std::error_code wrong;
    auto text = std::filesystem::read_symlink(at, wrong).string();
    auto target = std::filesystem::canonical(at, wrong);
    if (wrong == std::errc::too_many_symbolic_link_levels) {
      refuse(path, "a link that turns in a circle (-> " + text + ")");
      return false;
    }
    auto outside = target.lexically_relative(canonical_).string();
    if (!wrong && (outside.empty() || outside == ".." || outside.starts_with("../"))) {
      refuse(path, "a link that leaves the context (-> " + text + ")");
      return false;
    }
    if (wrong) {
      refuse(path, "a link that points to nothing (-> " + text + ")");
      return false;
    }
    return true;
  }

  void add(found x) {
    total_ += tar_size(x);
    if (entries_.size() < 1'000'000)
      entries_.push_back(std::move(x));
  }

  result<void> verdict() {
    if (total_ + 2 * block > limits_.tar_bytes)
      refuse("", too_large());
    if (faults_.empty())
      return {};
    std::string what;
    for (const auto& f : faults_)
      what += (what.empty() ? "" : "\n") + f;
    if (fault_count_ > faults_.size())
      what += "\n... and " + std::to_string(fault_count_ - faults_.size()) + " more";
    return fault(what);
  }

  std::string too_large() {
    auto largest = entries_;
    auto top = largest.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(3, largest.size()));
    std::partial_sort(largest.begin(), top, largest.end(),
                      [](auto& a, auto& b) { return a.bytes > b.bytes; });
    auto text = "the context is " + megabytes(total_) + ", over the limit of " +
                megabytes(limits_.tar_bytes) + "; largest:";
    for (auto x = largest.begin(); x != top; ++x)
      text += " " + shown(x->path) + " (" + megabytes(x->bytes) + ")";
    return text;
  }

  result<packed_context> write() {
    if (auto loaded = archive_library::load(); !loaded)
      return loaded.error();
    packed_context out;
    out.tar.reserve(total_ + 20 * block);
    auto append = [](archive*, void* to, const void* bytes, std::size_t size) -> la_ssize_t {
      static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
      return static_cast<la_ssize_t>(size);
    };
    std::unique_ptr<archive, decltype(archive_write_free)> tar(archive_write_new(), archive_write_free);
    archive_write_set_format_gnutar(tar.get());
    archive_write_set_bytes_per_block(tar.get(), 0);
    archive_write_open(tar.get(), &out.tar, nullptr, append, nullptr);
    for (const auto& x : entries_)
      if (auto ok = write_entry(tar.get(), x); !ok)
        return ok.error();
    archive_write_close(tar.get());
    out.files = static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const found& x) { return !x.folder; }));
    out.digest = sha256(out.tar);
    return out;
  }

  result<void> write_entry(archive* tar, const found& x) {
    auto place = (root_ / shown(x.path)).string();
    std::string bytes;
    if (!x.folder) {
      auto read = read_file(x);
      if (!read)
        return fault(place + ": " + read.error().what);
      bytes = *std::move(read);
    }
    std::unique_ptr<archive_entry, decltype(archive_entry_free)> entry(archive_entry_new(),
                                                                       archive_entry_free);
    archive_entry_copy_pathname(entry.get(), x.path.c_str());
    archive_entry_set_filetype(entry.get(), x.folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry.get(), x.mode);
    archive_entry_set_mtime(entry.get(), fixed_time, 0);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
    if (archive_write_header(tar, entry.get()) < ARCHIVE_WARN ||
        archive_write_data(tar, bytes.data(), bytes.size()) < 0)
      return fault(place + ": cannot be packed: " + archive_error_string(tar));
    return {};
  }

  /// Reads at most as many bytes as the first pass saw, so that a growing file cannot exceed the limit.
  result<std::string> read_file(const found& x) {
    int folder = ::dup(root_fd_->fd);
    std::string_view rest = x.path;
    for (auto slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
      descriptor parent(folder);
      folder =
        ::openat(folder, std::string(rest.substr(0, slash)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      rest.remove_prefix(slash + 1);
    }
    descriptor parent(folder);
    descriptor file(
      ::openat(folder, std::string(rest).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (file.fd < 0)
      return fault(std::string("cannot be read: ") + std::strerror(errno));
    std::string bytes(x.bytes, '\0');
    std::size_t have = 0;
    while (have < bytes.size()) {
      auto got = ::read(file.fd, bytes.data() + have, bytes.size() - have);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        return fault(std::string("cannot be read: ") + std::strerror(errno));
      if (got == 0)
        return fault("the file shrank while it was packed; try again");
      have += static_cast<std::size_t>(got);
    }
    return bytes;
  }

  std::filesystem::path root_, canonical_;
  context_limits limits_;
  std::unique_ptr<descriptor> root_fd_;
  ignore_rules rules_;
  std::vector<std::pair<dev_t, ino_t>> ancestors_;
  std::vector<found> entries_;
  std::uint64_t total_ = 0;
  std::vector<std::string> faults_;
  std::size_t fault_count_ = 0;
};

} // namespace

result<packed_context> pack_context(const std::filesystem::path& root, const context_limits& limits) {
  return packer(root, limits).pack();
}

std::string sha256(std::string_view bytes) {
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), sum, &size, EVP_sha256(), nullptr);
  return hex({reinterpret_cast<const char*>(sum), size});
}

} // namespace troupe::workers
