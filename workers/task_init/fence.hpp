#pragma once
// How a sandbox without an agent asks the master whether to go on: one small HTTP request at a time, which never blocks.

#include "workers/task_init/base.hpp"

#include <poll.h>

namespace troupe::task_init {

class fence {
public:
  enum class answer { none, go_on, kill, failed };

  /// `address`: ADDRESS:PORT in digits. The texts live as long as the process.
  void set(const char* address, const char* ask, const char* dead);
  bool known() const { return address_ != nullptr; }
  bool open() const { return fd_ >= 0; }

  /// Begins a request; one that is open is given up.
  void begin(bool dead);
  pollfd waits_for() const { return {fd_, static_cast<short>(sent_ ? POLLIN : POLLOUT), 0}; }
  /// To call when the socket is ready. Anything but `none` ends the request; `failed`: nobody answered, or not well.
  answer on_ready();
  std::int64_t gives_up_at_ms() const { return gives_up_at_ms_; }
  void give_up();

private:
  const char *address_ = nullptr, *ask_ = "", *dead_ = "";
  int fd_ = -1;
  bool sent_ = false, about_death_ = false;
  std::int64_t gives_up_at_ms_ = 0;
  std::size_t used_ = 0;
  char text_[2048];
};

} // namespace troupe::task_init
