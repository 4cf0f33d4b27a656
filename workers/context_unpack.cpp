// Trusts nothing: every folder on the way is opened without following links, so that no entry is written
// through a link that an earlier entry made.

#include "system/descriptor.hpp"
#include "workers/archive_calls.hpp"
#include "workers/context_files.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe::workers {
namespace {

using reader = std::unique_ptr<archive, decltype(archive_read_free)>;

using names = std::vector<std::string>;

/// The parts of a relative path, without "." and empty parts; nothing where it is absolute or has "..".
std::optional<names> parts_of(std::string_view path) {
  if (path.starts_with('/'))
    return std::nullopt;
  names parts;
  while (!path.empty()) {
    auto part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part == "..")
      return std::nullopt;
    if (!part.empty() && part != ".")
      parts.emplace_back(part);
  }
  return parts;
}

/// A link stays inside if it goes up at most as far as it lies deep, and only at its start: a ".." after a
/// name could act on another link.
bool link_stays(std::string_view target, std::size_t depth) {
  if (target.empty() || target.starts_with('/'))
    return false;
  std::size_t up = 0;
  while (target == ".." || target.starts_with("../")) {
    ++up;
    target.remove_prefix(std::min<std::size_t>(3, target.size()));
  }
  return up <= depth && parts_of(target).has_value();
}

class unpacker {
public:
  unpacker(archive* from, std::filesystem::path target, std::uint64_t most_bytes)
      : from_(from), target_(std::move(target)), most_bytes_(most_bytes) {}

  result<void> run() {
    std::error_code wrong;
    std::filesystem::create_directories(target_, wrong);
    root_ = descriptor(::open(target_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (root_.fd < 0)
      return io(target_.string());
    archive_entry* entry = nullptr;
    for (;;) {
      int got = archive_read_next_header(from_, &entry);
      if (got == ARCHIVE_EOF)
        return {};
      if (got < ARCHIVE_WARN)
        return error{errc::invalid, std::string("not a readable tar: ") + text_of_fault()};
      if (auto ok = unpack(entry); !ok)
        return ok;
    }
  }

private:
  std::string text_of_fault() const {
    const char* text = archive_error_string(from_);
    return text ? text : "unknown format";
  }
  static error io(const std::string& place) { return {errc::io, place + ": " + std::strerror(errno)}; }
  static error refuse(const std::string& path, const std::string& why) {
    return {errc::invalid, "'" + path.substr(0, 200) + "' in the archive: " + why};
  }

  result<void> unpack(archive_entry* entry) {
    const std::string path = path_of(entry);
    auto parts = parts_of(path);
    if (!parts)
      return refuse(path, "a path that leads out of the folder");
    bool folder = archive_entry_filetype(entry) == AE_IFDIR;
    if (parts->empty())
      return folder ? result<void>{} : refuse(path, "no name");
    auto last = std::move(parts->back());
    parts->pop_back();
    auto parent = open_folder(*parts, path);
    if (!parent)
      return parent.error();
    auto mode = static_cast<mode_t>(archive_entry_perm(entry) & 0777);
    if (const char* other = archive_entry_hardlink(entry))
      return make_hard_link(parent->fd, last, path, other);
    switch (archive_entry_filetype(entry)) {
    case AE_IFDIR:
      return make_folder(parent->fd, last, path, mode | 0700);
    case AE_IFREG:
      return make_file(parent->fd, last, path, mode | 0600);
    case AE_IFLNK:
      return make_link(parent->fd, last, path, archive_entry_symlink(entry), parts->size());
    default:
      return refuse(path, "neither a file, a folder nor a link");
    }
  }

  result<descriptor> open_folder(const names& parts, const std::string& path) {
    descriptor at(::fcntl(root_.fd, F_DUPFD_CLOEXEC, 0));
    for (const auto& part : parts) {
      if (::mkdirat(at.fd, part.c_str(), 0755) != 0 && errno != EEXIST)
        return io(path);
      descriptor next(::openat(at.fd, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (next.fd < 0)
        return errno == ELOOP || errno == ENOTDIR
                 ? refuse(path, "a path through '" + part + "', which is not a folder")
                 : io(path);
      at = std::move(next);
    }
    return at;
  }

  result<void> make_folder(int parent, const std::string& name, const std::string& path, mode_t mode) {
    if (::mkdirat(parent, name.c_str(), mode) == 0)
      return {};
    struct stat is {};
    if (errno == EEXIST && ::fstatat(parent, name.c_str(), &is, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(is.st_mode))
      return {};
    return io(path);
  }

  result<void> make_file(int parent, const std::string& name, const std::string& path, mode_t mode) {
    if (::unlinkat(parent, name.c_str(), 0) != 0 && errno != ENOENT)
      return io(path);
    descriptor file(
      ::openat(parent, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.fd < 0)
      return io(path);
    for (;;) {
      const void* bytes = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      int got = archive_read_data_block(from_, &bytes, &size, &offset);
      if (got == ARCHIVE_EOF)
        break;
      if (got < ARCHIVE_WARN)
        return refuse(path, text_of_fault());
      written_ += size;
      if (most_bytes_ && written_ > most_bytes_)
        return refuse(path, "the archive holds more than " + std::to_string(most_bytes_ >> 20) + " MB");
      if (auto ok = write_at(file.fd, static_cast<const char*>(bytes), size, offset, path); !ok)
        return ok;
    }
    ::fchmod(file.fd, mode);
    return {};
  }

  result<void> write_at(int file, const char* bytes, std::size_t size, off_t offset,
                        const std::string& path) {
    while (size > 0) {
      auto wrote = ::pwrite(file, bytes, size, offset);
      if (wrote < 0 && errno == EINTR)
        continue;
      if (wrote < 0)
        return io(path);
      bytes += wrote;
      size -= static_cast<std::size_t>(wrote);
      offset += wrote;
    }
    return {};
  }

  result<void> make_link(int parent, const std::string& name, const std::string& path, const char* target,
                         std::size_t depth) {
    if (!target || !link_stays(target, depth))
      return refuse(path, std::string("a link that leaves the folder (-> ") + (target ? target : "") + ")");
    ::unlinkat(parent, name.c_str(), 0);
    return ::symlinkat(target, parent, name.c_str()) == 0 ? result<void>{} : io(path);
  }

  result<void> make_hard_link(int parent, const std::string& name, const std::string& path,
                              const char* target) {
    auto parts = parts_of(target);
    if (!parts || parts->empty())
      return refuse(path, std::string("a link that leaves the folder (-> ") + target + ")");
    auto last = std::move(parts->back());
    parts->pop_back();
    auto from = open_folder(*parts, path);
    if (!from)
      return from.error();
    struct stat is {};
    if (::fstatat(from->fd, last.c_str(), &is, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(is.st_mode))
      return refuse(path, std::string("a link to what is not a file of the archive (-> ") + target + ")");
    ::unlinkat(parent, name.c_str(), 0);
    return ::linkat(from->fd, last.c_str(), parent, name.c_str(), 0) == 0 ? result<void>{} : io(path);
  }

  archive* from_;
  std::filesystem::path target_;
  std::uint64_t most_bytes_, written_ = 0;
  descriptor root_;
};

reader new_reader() {
  reader r(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(r.get());
  archive_read_support_filter_gzip(r.get());
  return r;
}

} // namespace

result<void> unpack_archive(std::string_view bytes, const std::filesystem::path& target,
                            std::uint64_t most_bytes) {
  if (auto loaded = archive_library::load(); !loaded)
    return loaded;
  const utf8_names names;
  auto r = new_reader();
  if (archive_read_open_memory(r.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    return error{errc::invalid, std::string("not a readable tar: ") + archive_error_string(r.get())};
  return unpacker(r.get(), target, most_bytes).run();
}

bool archive_is_empty(std::string_view bytes) {
  if (bytes.find_first_not_of('\0') == std::string_view::npos)
    return true;
  if (!archive_library::load())
    return false;
  auto r = new_reader();
  if (archive_read_open_memory(r.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    return false;
  archive_entry* entry = nullptr;
  int got = ARCHIVE_OK;
  while ((got = archive_read_next_header(r.get(), &entry)) == ARCHIVE_OK) {
    const char* path = archive_entry_pathname(entry);
    const auto parts = path ? parts_of(path) : std::nullopt;
    if (!parts || !parts->empty() || archive_entry_filetype(entry) != AE_IFDIR)
      return false;
  }
  return got == ARCHIVE_EOF;
}

result<void> unpack_archive_file(const std::filesystem::path& archive, const std::filesystem::path& target,
                                 std::uint64_t most_bytes) {
  if (auto loaded = archive_library::load(); !loaded)
    return loaded;
  const utf8_names names;
  auto r = new_reader();
  if (archive_read_open_filename(r.get(), archive.c_str(), 1 << 16) != ARCHIVE_OK)
    return error{errc::invalid, archive.string() + ": not a readable tar: " + archive_error_string(r.get())};
  return unpacker(r.get(), target, most_bytes).run();
}

} // namespace troupe::workers
