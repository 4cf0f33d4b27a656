#include "runtime/api/durable_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace troupe::api {
namespace {

struct descriptor {
  int fd;
  ~descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

error fault(const std::filesystem::path& file, const char* doing) {
  int number = errno;
  auto code = number == ENOSPC || number == EDQUOT ? errc::no_space : errc::io;
  return {code, file.string() + ": " + doing + ": " + std::strerror(number)};
}

} // namespace

result<std::optional<std::string>> read_whole(const std::filesystem::path& file) {
  descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (in.fd < 0)
    return errno == ENOENT ? result<std::optional<std::string>>(std::nullopt) : fault(file, "open");
  std::string bytes;
  char part[16384];
  for (;;) {
    auto got = ::read(in.fd, part, sizeof part);
    if (got == 0)
      return std::optional<std::string>(std::move(bytes));
    if (got < 0 && errno != EINTR)
      return fault(file, "read");
    if (got > 0)
      bytes.append(part, static_cast<std::size_t>(got));
  }
}

result<void> replace_file(const std::filesystem::path& file, const std::string& bytes) {
  auto beside = file;
  beside += ".new";
  {
    descriptor out{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    if (out.fd < 0)
      return fault(beside, "open");
    for (std::size_t done = 0; done < bytes.size();) {
      auto put = ::write(out.fd, bytes.data() + done, bytes.size() - done);
      if (put < 0 && errno != EINTR)
        return fault(beside, "write");
      done += put > 0 ? static_cast<std::size_t>(put) : 0;
    }
    if (::fsync(out.fd) != 0)
      return fault(beside, "sync");
  }
  if (::rename(beside.c_str(), file.c_str()) != 0)
    return fault(file, "rename");
  auto folder = file.parent_path().empty() ? std::filesystem::path{"."} : file.parent_path();
  descriptor at{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (at.fd < 0 || ::fsync(at.fd) != 0)
    return fault(folder, "sync");
  return {};
}

} // namespace troupe::api
