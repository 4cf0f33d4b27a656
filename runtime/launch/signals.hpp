#pragma once
// SIGINT and SIGTERM as calls on a thread. All other threads block them, so that no handler runs anywhere.

#include <csignal>
#include <functional>
#include <thread>

namespace troupe::launch {

/// To be made before any other thread. Calls `each` with the signal's number, for each signal, until it is
/// destroyed.
class signal_thread {
public:
  explicit signal_thread(std::function<void(int)> each);
  ~signal_thread();
  signal_thread(const signal_thread&) = delete;
  signal_thread& operator=(const signal_thread&) = delete;

private:
  sigset_t before_{};
  std::thread thread_;
};

} // namespace troupe::launch
