#include "storage/disk/directory.hpp"
#include "system/whole_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace troupe::storage {
namespace {

namespace fs = std::filesystem;

error refused(const fs::path& at, int code, const char* doing) {
  std::string what = at.string() + ": " + doing + ": " + std::strerror(code);
  switch (code) {
  case ENOSPC:
  case EDQUOT:
    return {errc::no_space, what + "; free some space on its file system and try again"};
  case EROFS:
    return {errc::io, what + "; remount its file system for writing, or choose another data directory"};
  case EACCES:
  case EPERM:
    return {errc::io, what + "; give this user write access, or choose another data directory"};
  default:
    return {errc::io, what};
  }
}

/// Closes the descriptor at the end of the scope.
struct open_file {
  int fd;
  ~open_file() {
    if (fd >= 0)
      ::close(fd);
  }
};

std::string owner_of(int lock) {
  char text[32] = {};
  auto size = ::pread(lock, text, sizeof text - 1, 0);
  return size > 0 ? std::string(text, std::strcspn(text, "\n")) : std::string();
}

} // namespace

free_space space_of(const fs::path& directory) {
  struct statvfs now {};
  if (::statvfs(directory.c_str(), &now) != 0)
    return {};
  return {std::uint64_t{now.f_bavail} * now.f_frsize, std::uint64_t{now.f_blocks} * now.f_frsize};
}

result<std::unique_ptr<owned_directory>> owned_directory::open(const fs::path& at) {
  std::error_code fault;
  for (const auto& folder : {at, at / "db", at / "blobs"}) {
    fs::create_directories(folder, fault);
    if (fault && !fs::is_directory(folder))
      return refused(folder, fault.value(), "cannot be made");
  }
  auto name = at / "journal.lock";
  open_file lock{::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
  if (lock.fd < 0)
    return refused(at, errno, "cannot be written");
  if (::flock(lock.fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return refused(name, errno, "cannot be locked");
    auto owner = owner_of(lock.fd);
    return error{errc::conflict, at.string() + " is in use by " +
                                   (owner.empty() ? "another process" : "process " + owner) +
                                   "; stop that one, or choose another data directory"};
  }
  if (::access(at.c_str(), W_OK) != 0 || ::access((at / "db").c_str(), W_OK) != 0)
    return refused(at, errno, "cannot be written");
  // On a full disk the file keeps its old text. That is harmless: flock is the lock, the text is for people.
  auto text = std::to_string(::getpid()) + "\n";
  if (::pwrite(lock.fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) [[maybe_unused]]
    auto cut = ::ftruncate(lock.fd, static_cast<off_t>(text.size()));
  for (const auto& entry : fs::directory_iterator(at / "blobs", fault))
    if (entry.path().extension() == ".tmp")
      fs::remove(entry.path(), fault);
  return std::unique_ptr<owned_directory>(new owned_directory(at, std::exchange(lock.fd, -1)));
}

owned_directory::~owned_directory() { ::close(lock_); }

bool owned_directory::has_ballast(std::uint64_t bytes) const {
  struct stat now {};
  return ::stat((path_ / "ballast").c_str(), &now) == 0 && static_cast<std::uint64_t>(now.st_size) >= bytes;
}

void owned_directory::drop_ballast() const {
  std::error_code fault;
  fs::remove(path_ / "ballast", fault);
}

void owned_directory::make_ballast(std::uint64_t bytes) const {
  auto name = path_ / "ballast";
  open_file file{::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
  if (file.fd >= 0 && ::posix_fallocate(file.fd, 0, static_cast<off_t>(bytes)) != 0)
    drop_ballast();
}

result<void> owned_directory::put_blob(std::string_view name, std::string_view bytes) const {
  const auto whole = path_ / "blobs" / name;
  std::error_code fault;
  return fs::exists(whole, fault) ? result<void>{} : replace_file(whole, bytes, 0644);
}

result<std::string> owned_directory::blob(std::string_view name) const {
  if (name.empty() || name.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return error{errc::not_found, "there is no blob '" + std::string(name) + "'"};
  std::ifstream file(path_ / "blobs" / name, std::ios::binary | std::ios::ate);
  if (!file)
    return error{errc::not_found, "there is no blob " + std::string(name)};
  std::string bytes(static_cast<std::size_t>(file.tellg()), '\0');
  file.seekg(0);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    return error{errc::io, "blob " + std::string(name) + " cannot be read"};
  return bytes;
}

} // namespace troupe::storage
