#include "runtime/launch/signals.hpp"

#include <pthread.h>

namespace troupe::launch {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    sigaddset(&set, number);
  return set;
}

} // namespace

signal_thread::signal_thread(std::function<void(int)> each) {
  auto set = watched();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  thread_ = std::thread([each = std::move(each)] {
    auto mine = watched();
    for (int number = 0;;) {
      if (sigwait(&mine, &number) != 0)
        continue;
      if (number == SIGUSR2) // our signal: ends this thread
        return;
      each(number);
    }
  });
}

signal_thread::~signal_thread() {
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

} // namespace troupe::launch
