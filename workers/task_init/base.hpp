#pragma once
// The few containers and calls troupe-task needs; it links no C++ runtime.

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace troupe::task_init {

/// A growing array of plain values. Running out of memory ends the process, and with it the sandbox.
template <class T>
struct list {
  T* data = nullptr;
  std::size_t size = 0, room = 0;
  T& push(const T& x) {
    if (size == room) {
      room = room ? room * 2 : 8;
      data = static_cast<T*>(realloc(static_cast<void*>(data), room * sizeof(T)));
      if (!data)
        abort();
    }
    return data[size++] = x;
  }
  T& operator[](std::size_t i) { return data[i]; }
  const T& operator[](std::size_t i) const { return data[i]; }
  T* begin() { return data; }
  T* end() { return data + size; }
  const T* begin() const { return data; }
  const T* end() const { return data + size; }
};

/// A sentence of bounded length that says what failed, and why. Empty: nothing failed.
struct fault {
  char text[512] = "";
  explicit operator bool() const { return text[0] != 0; }
};

[[gnu::format(printf, 1, 2)]] inline fault complain(const char* format, ...) {
  fault f;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(f.text, sizeof f.text, format, arguments);
  va_end(arguments);
  for (char* p = f.text; *p; ++p)
    if (*p == '\n')
      *p = ' ';
  return f;
}

inline std::int64_t clock_us(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000ll + t.tv_nsec / 1000;
}
inline std::int64_t wall_us() { return clock_us(CLOCK_REALTIME); }
inline std::int64_t boot_ms() { return clock_us(CLOCK_BOOTTIME) / 1000; }

inline bool write_all(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    auto n = write(fd, data, bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    data += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

} // namespace troupe::task_init
