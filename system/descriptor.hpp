#pragma once
// A file descriptor that is closed with its scope.

#include <unistd.h>
#include <utility>

namespace troupe {

struct descriptor {
  int fd = -1; ///< below 0: nothing is open
  explicit descriptor(int x = -1) : fd(x) {}
  descriptor(descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

} // namespace troupe
