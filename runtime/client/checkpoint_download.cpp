#include "runtime/client/checkpoint_download.hpp"
#include "workers/context_files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unistd.h>

namespace troupe::client {
namespace {

/// Removed when it goes out of scope.
struct temporary_file {
  explicit temporary_file(const std::filesystem::path& folder)
      : path((folder / ".troupe-download-XXXXXX").string()) {
    int fd = ::mkstemp(path.data());
    if (fd >= 0)
      file.reset(::fdopen(fd, "wb"));
  }
  ~temporary_file() {
    if (file)
      ::unlink(path.c_str());
  }
  std::string path;
  std::unique_ptr<FILE, int (*)(FILE*)> file{nullptr, std::fclose};
};

} // namespace

result<void> download_checkpoint(server& from, const std::string& uuid, const std::filesystem::path& target) {
  auto folder = std::filesystem::absolute(target).lexically_normal();
  folder =
    folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path(); // "out/" names out
  std::error_code wrong;
  std::filesystem::create_directories(folder, wrong);
  temporary_file tar(folder);
  if (!tar.file)
    return error{errc::io, folder.string() + ": " + std::strerror(errno)};
  int refused = 0;
  auto got = from.download("/troupe/v1/checkpoints/" + uuid + "/files", {}, [&](std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), tar.file.get()) == bytes.size())
      return true;
    refused = errno;
    return false;
  });
  if (got && std::fflush(tar.file.get()) != 0)
    refused = errno;
  if (refused)
    return error{errc::io, folder.string() + ": " + std::strerror(refused)};
  if (!got)
    return got.error();
  if (auto ok = workers::unpack_archive_file(tar.path, target); !ok)
    return error{errc::io, "checkpoint " + uuid + ": " + ok.error().what};
  return {};
}

} // namespace troupe::client
