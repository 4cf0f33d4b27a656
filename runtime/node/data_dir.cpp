#include "runtime/node/data_dir.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>

namespace troupe::node {

result<data_dir> data_dir::hold(const std::filesystem::path& where) {
  std::error_code fault;
  auto path = std::filesystem::absolute(where, fault);
  if (!fault)
    std::filesystem::create_directories(path, fault);
  if (fault)
    return error{errc::io, "cannot make the data directory '" + where.string() + "': " + fault.message() +
                             "\nhint: choose another one with --data-dir"};
  auto file = path / "lock";
  workers::owned_fd fd{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
  if (fd.get() < 0)
    return error{errc::io, "the data directory '" + path.string() +
                             "' cannot be written: " + std::strerror(errno) +
                             "\nhint: make it writable, or choose another one with --data-dir"};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    auto holder = client::read_lock(path);
    std::string who = holder ? " by the process " + std::to_string(holder->pid) +
                                 (holder->url.empty() ? std::string() : " at " + holder->url)
                             : std::string();
    return error{errc::conflict, "the data directory '" + path.string() + "' is in use" + who + "\nhint: " +
                                   (holder && !holder->url.empty()
                                      ? "stop it with `TROUPE_DATA_DIR=" + path.string() + " troupe down`"
                                      : "stop that process") +
                                   ", or choose another one with --data-dir"};
  }
  if (auto ok = client::write_lock(fd.get(), client::lock_of_this_process("")); !ok)
    return ok.error();
  return data_dir{std::move(path), std::move(fd)};
}

result<void> data_dir::publish(const std::string& url) {
  return client::write_lock(lock_.get(), client::lock_of_this_process(url));
}

} // namespace troupe::node
