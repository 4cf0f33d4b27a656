#include "runtime/launch/service_notice.hpp"

#include "workers/owned_fd.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace troupe::launch {

service_notice::service_notice() {
  if (const char* where = std::getenv("NOTIFY_SOCKET"))
    socket_ = where;
  const char *limit = std::getenv("WATCHDOG_USEC"), *pid = std::getenv("WATCHDOG_PID");
  if (limit && (!pid || std::atol(pid) == ::getpid()))
    watchdog_ = std::chrono::microseconds(std::strtoull(limit, nullptr, 10));
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
    ::unsetenv(name);
}

service_notice::~service_notice() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable())
    thread_.join();
}

void service_notice::send(const std::string& text) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof to.sun_path)
    return;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (to.sun_path[0] == '@') // the abstract namespace
    to.sun_path[0] = '\0';
  workers::owned_fd out{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (out)
    static_cast<void>(::sendto(out.get(), text.data(), text.size(), MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&to),
                               static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size())));
}

void service_notice::ready(const std::string& status) {
  send("READY=1\nSTATUS=" + status + "\nMAINPID=" + std::to_string(::getpid()));
}

void service_notice::reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now.tv_sec * 1'000'000 + now.tv_nsec / 1000));
}

void service_notice::stopping() { send("STOPPING=1"); }

void service_notice::watch(std::function<bool()> alive) {
  if (socket_.empty() || watchdog_.count() <= 0 || thread_.joinable())
    return;
  thread_ = std::thread([this, alive = std::move(alive)] {
    std::unique_lock lock(mutex_);
    while (!end_) {
      lock.unlock();
      if (alive())
        send("WATCHDOG=1");
      lock.lock();
      wake_.wait_for(lock, watchdog_ / 2, [this] { return end_; });
    }
  });
}

} // namespace troupe::launch
