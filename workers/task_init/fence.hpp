#pragma once
// How a sandbox without an agent asks the master whether to go on: by one small HTTP request at a time, which
// never blocks. This program does not speak TLS: over TLS a child asks, which reads from its standard input
// whom to ask what, and prints "go" or "kill".

#include "workers/task_init/base.hpp"

#include <poll.h>

namespace troupe::task_init {

class fence {
public:
  enum class answer { none, go_on, kill, failed };

  /// The texts live as long as the process.
  struct place {
    const char* address = nullptr; ///< ADDRESS:PORT in digits; a URL for the program
    const char *ask = "", *dead = "", *ca = "";
    int program = -1; ///< a descriptor to execute
    bool by_program = false;
  };
  void set(const place& where) { at_ = where; }
  bool known() const { return at_.address && (!at_.by_program || at_.program >= 0); }
  bool open() const { return fd_ >= 0; }

  /// Begins a request, and gives up one that is open.
  void begin(bool dead);
  pollfd waits_for() const { return {fd_, static_cast<short>(sent_ ? POLLIN : POLLOUT), 0}; }
  /// To be called when the socket is ready. Any answer but `none` ends the request. `failed` means that
  /// nobody answered, or that the answer makes no sense.
  answer on_ready();
  std::int64_t gives_up_at_ms() const { return gives_up_at_ms_; }
  void give_up();

private:
  void connect_to_master();
  void start_program();
  answer read_answer();

  place at_;
  int fd_ = -1;    ///< the connection, or the program's output
  int child_ = -1; ///< a pidfd of the program, which the supervisor reaps
  bool sent_ = false, about_death_ = false;
  std::int64_t gives_up_at_ms_ = 0;
  std::size_t used_ = 0;
  char text_[2048];
};

} // namespace troupe::task_init
