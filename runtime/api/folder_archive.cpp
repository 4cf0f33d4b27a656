#include "runtime/api/folder_archive.hpp"

#include "system/descriptor.hpp"
#include "workers/archive_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::api {
namespace {

constexpr std::size_t step_bytes = 256u << 10;
namespace fs = std::filesystem;

/// The folder of a checkpoint. A link in its place is refused: a task could put it there.
descriptor open_folder(const fs::path& folder) {
  return descriptor{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
}

/// Opens a file below `root` without following any link, so that a task gains nothing by putting a link there
/// meanwhile.
descriptor open_below(const descriptor& root, const std::string& relative) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return descriptor{static_cast<int>(::syscall(SYS_openat2, root.fd, relative.c_str(), &how, sizeof how))};
}

error gone(const fs::path& folder, const std::string& what = {}) {
  return {errc::not_found, "the checkpoint's folder " + folder.string() + (what.empty() ? "" : "/" + what) +
                             " is not on this host"};
}

/// The regular files below the folder, by relative path, in order.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code bad;
  for (fs::recursive_directory_iterator at{folder, fs::directory_options::skip_permission_denied, bad}, end;
       !bad && at != end; at.increment(bad))
    if (at->symlink_status(bad).type() == fs::file_type::regular)
      found.push_back(at->path().lexically_relative(folder).string());
  std::sort(found.begin(), found.end());
  return found;
}

class archive_stream : public body_stream {
public:
  archive_stream(fs::path folder, descriptor root, archive_form form)
      : folder_(std::move(folder)), root_(std::move(root)), files_(files_below(folder_)),
        out_(archive_write_new()) {
    if (form == archive_form::zip)
      archive_write_set_format_zip(out_);
    else
      archive_write_set_format_pax_restricted(out_);
    if (form == archive_form::tar_gz) {
      archive_write_add_filter_gzip(out_);
      // Level 1, because weights hardly shrink.
      archive_write_set_filter_option(out_, "gzip", "compression-level", "1");
    }
    archive_write_set_bytes_per_block(out_, 65536);
    archive_write_set_bytes_in_last_block(out_, 1);
    archive_write_open(out_, &made_, nullptr, take, nullptr);
  }
  ~archive_stream() override { archive_write_free(out_); }

  result<piece> next(time_point) override {
    while (made_.size() < step_bytes && !closed_)
      if (auto done = step(); !done)
        return done.error();
    return piece{.bytes = std::exchange(made_, {}), .last = closed_, .pause = {}};
  }

private:
  static la_ssize_t take(archive*, void* self, const void* bytes, std::size_t count) {
    static_cast<std::string*>(self)->append(static_cast<const char*>(bytes), count);
    return static_cast<la_ssize_t>(count);
  }

  error fault() const {
    const char* text = archive_error_string(out_);
    return {errc::io, std::string("archive: ") + (text ? text : "failed")};
  }

  result<void> step() {
    if (file_.fd >= 0)
      return copy();
    if (index_ < files_.size())
      return begin(files_[index_++]);
    closed_ = true;
    return archive_write_close(out_) == ARCHIVE_OK ? result<void>{} : fault();
  }

  result<void> begin(const std::string& path) {
    auto file = open_below(root_, path);
    struct stat about {};
    if (file.fd < 0 || ::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode))
      return error{errc::io, "checkpoint: " + path + " changed while it was read"};
    auto* entry = archive_entry_new();
    archive_entry_copy_stat(entry, &about);
    archive_entry_set_pathname(entry, path.c_str());
    const utf8_names names;
    const bool fine = archive_write_header(out_, entry) >= ARCHIVE_WARN;
    archive_entry_free(entry);
    if (!fine)
      return fault();
    left_ = about.st_size;
    file_ = std::move(file);
    if (left_ == 0)
      file_ = descriptor{};
    return {};
  }

  result<void> copy() {
    char part[65536];
    auto got = ::read(file_.fd, part, static_cast<std::size_t>(std::min<off_t>(left_, sizeof part)));
    if (got <= 0)
      return error{errc::io, "checkpoint: " + files_[index_ - 1] + " ends early"};
    if (archive_write_data(out_, part, static_cast<std::size_t>(got)) != got)
      return fault();
    left_ -= got;
    if (left_ == 0)
      file_ = descriptor{};
    return {};
  }

  fs::path folder_;
  descriptor root_;
  std::vector<std::string> files_;
  archive* out_;
  std::string made_;
  std::size_t index_ = 0;
  descriptor file_;
  off_t left_ = 0;
  bool closed_ = false;
};

class file_stream : public body_stream {
public:
  explicit file_stream(descriptor file) : file_(std::move(file)) {}
  result<piece> next(time_point) override {
    std::string bytes(step_bytes, '\0');
    auto got = ::read(file_.fd, bytes.data(), bytes.size());
    if (got < 0)
      return error{errc::io, std::string("checkpoint: read: ") + std::strerror(errno)};
    bytes.resize(static_cast<std::size_t>(got));
    return piece{.bytes = std::move(bytes), .last = got == 0, .pause = {}};
  }

private:
  descriptor file_;
};

} // namespace

result<std::unique_ptr<body_stream>> folder_archive(const fs::path& folder, archive_form form) {
  auto root = open_folder(folder);
  if (folder.empty() || root.fd < 0)
    return gone(folder);
  if (auto loaded = archive_library::load(); !loaded)
    return loaded.error();
  return std::unique_ptr<body_stream>(std::make_unique<archive_stream>(folder, std::move(root), form));
}

result<std::unique_ptr<body_stream>> folder_file(const fs::path& folder, const std::string& relative) {
  auto root = open_folder(folder);
  if (folder.empty() || root.fd < 0)
    return gone(folder);
  auto file = open_below(root, relative);
  struct stat about {};
  if (file.fd < 0 || ::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode))
    return gone(folder, relative.substr(0, 200));
  return std::unique_ptr<body_stream>(std::make_unique<file_stream>(std::move(file)));
}

} // namespace troupe::api
