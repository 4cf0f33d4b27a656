#include "system/whole_file.hpp"

#include "system/descriptor.hpp"
#include "system/random.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

error fault(const fs::path& file, const char* doing) {
  const int number = errno;
  const auto code = number == ENOSPC || number == EDQUOT ? errc::no_space : errc::io;
  return {code, file.string() + ": " + doing + ": " + std::strerror(number)};
}

/// A file that is written, but not yet in its place; it is removed where it never gets there.
class draft {
public:
  explicit draft(fs::path place) : place_(std::move(place)) {}
  draft(draft&& x) noexcept : place_(std::move(x.place_)), beside_(std::exchange(x.beside_, {})) {}
  ~draft() {
    if (!beside_.empty())
      ::unlink(beside_.c_str());
  }

  result<void> write(std::string_view bytes, mode_t mode, durability how) {
    beside_ = place_;
    beside_ += "." + random_hex(4) + ".tmp";
    descriptor out{::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)};
    if (out.fd < 0)
      return fault(place_, "cannot be written");
    while (!bytes.empty()) {
      const auto put = ::write(out.fd, bytes.data(), bytes.size());
      if (put < 0 && errno != EINTR)
        return fault(place_, "cannot be written");
      bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
    if (::fchmod(out.fd, mode) != 0 || (how == durability::synced && ::fsync(out.fd) != 0))
      return fault(place_, "cannot be made durable");
    return {};
  }

  result<void> put_in_place() {
    if (::rename(beside_.c_str(), place_.c_str()) != 0)
      return fault(place_, "cannot be replaced");
    beside_.clear();
    return {};
  }

private:
  fs::path place_, beside_;
};

result<void> sync_folder(const fs::path& folder) {
  descriptor at{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  return at.fd >= 0 && ::fsync(at.fd) == 0 ? result<void>{} : fault(folder, "cannot be made durable");
}

} // namespace

result<std::optional<std::string>> read_whole(const fs::path& file) {
  descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (in.fd < 0)
    return errno == ENOENT ? result<std::optional<std::string>>(std::nullopt)
                           : fault(file, "cannot be opened");
  std::string bytes;
  char part[16384];
  for (;;) {
    auto got = ::read(in.fd, part, sizeof part);
    if (got == 0)
      return std::optional<std::string>(std::move(bytes));
    if (got < 0 && errno != EINTR)
      return fault(file, "cannot be read");
    if (got > 0)
      bytes.append(part, static_cast<std::size_t>(got));
  }
}

result<void> replace_file(const fs::path& file, std::string_view bytes, mode_t mode, durability how) {
  draft fresh(file);
  if (auto ok = fresh.write(bytes, mode, how); !ok)
    return ok;
  if (auto ok = fresh.put_in_place(); !ok)
    return ok;
  return how == durability::synced ? sync_folder(file.parent_path()) : result<void>{};
}

result<void> replace_files(const fs::path& folder, const std::vector<new_file>& files) {
  std::vector<draft> fresh;
  for (const auto& file : files)
    if (auto ok = fresh.emplace_back(folder / file.name).write(file.bytes, file.mode, durability::synced);
        !ok)
      return ok;
  for (auto& file : fresh)
    if (auto ok = file.put_in_place(); !ok)
      return ok;
  return sync_folder(folder);
}

} // namespace troupe
