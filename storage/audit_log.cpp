#include "storage/audit_log.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::storage {
namespace {

error fault_of(const std::filesystem::path& file) {
  return {errno == ENOSPC || errno == EDQUOT ? errc::no_space : errc::io,
          "the audit log '" + file.string() + "': " + std::strerror(errno)};
}

} // namespace

result<std::unique_ptr<audit_log>> audit_log::open(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0)
    return fault_of(file);
  auto made = std::unique_ptr<audit_log>(new audit_log(fd, file));
  struct stat about {};
  char last = '\n';
  if (::fstat(fd, &about) != 0 || (about.st_size > 0 && ::pread(fd, &last, 1, about.st_size - 1) != 1))
    return fault_of(file);
  if (last != '\n' && ::write(fd, "\n", 1) != 1)
    return fault_of(file);
  auto ok = replay(file, [&](const value& row) {
    made->rows_.push_back(row);
    if (made->rows_.size() > kept)
      made->rows_.pop_front();
  });
  if (!ok)
    return ok.error();
  return made;
}

audit_log::audit_log(int fd, std::filesystem::path file) : fd_(fd), file_(std::move(file)) {}
audit_log::~audit_log() { ::close(fd_); }

result<void> audit_log::append(const value& row) {
  const auto line = to_json(row) + "\n";
  struct stat before {};
  if (::fstat(fd_, &before) != 0)
    return fault_of(file_);
  const auto n = ::write(fd_, line.data(), line.size());
  if (n != static_cast<ssize_t>(line.size())) {
    if (n >= 0)
      errno = ENOSPC;
    auto why = fault_of(file_);
    static_cast<void>(!::ftruncate(fd_, before.st_size));
    return why;
  }
  if (::fdatasync(fd_) != 0)
    return fault_of(file_);
  rows_.push_back(row);
  if (rows_.size() > kept)
    rows_.pop_front();
  return {};
}

result<void> audit_log::replay(const std::filesystem::path& file,
                               const std::function<void(const value&)>& take) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (auto row = parse_json(line); row && row->is_object())
      take(*row);
  return {};
}

} // namespace troupe::storage
