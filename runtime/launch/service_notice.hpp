#pragma once
// What this process tells systemd: ready, reloading, stopping, alive. It sends datagrams to $NOTIFY_SOCKET;
// without the variable, nothing.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::launch {

class service_notice {
public:
  /// Reads the variables and removes them from the environment, because tasks must not speak for this
  /// process. To be made before any thread.
  service_notice();
  ~service_notice();
  service_notice(const service_notice&) = delete;
  service_notice& operator=(const service_notice&) = delete;

  void ready(const std::string& status);
  /// From now on says twice in each WATCHDOG_USEC that the process is alive, as long as `alive` returns true.
  /// `alive` may take some seconds.
  void watch(std::function<bool()> alive);
  void reloading();
  void stopping();

private:
  void send(const std::string& text) const;

  std::string socket_;
  std::chrono::microseconds watchdog_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool end_ = false;
  std::thread thread_;
};

} // namespace troupe::launch
