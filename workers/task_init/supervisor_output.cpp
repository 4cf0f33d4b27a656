// Output of the ranks: bytes to lines to the spool.

#include "workers/task_init/supervisor.hpp"

#include "workers/task_init/task_format.hpp"

namespace troupe::task_init {

using namespace task_format;

void supervisor::read_stream(std::size_t rank, bool err, bool to_the_end) {
  static char bytes[64 << 10];
  auto& s = streams_[2 * rank + err];
  do {
    auto n = read(s.fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return; // nothing more for now
    if (n == 0)
      return close_stream(rank, err);
    take_bytes(rank, err, bytes, static_cast<std::size_t>(n));
  } while (to_the_end);
}

void supervisor::take_bytes(std::size_t rank, bool err, const char* bytes, std::size_t n) {
  auto& s = streams_[2 * rank + err];
  auto stream = err ? spool_stream::err : spool_stream::out;
  auto number = static_cast<unsigned>(rank);
  while (n > 0) {
    auto* newline = static_cast<const char*>(memchr(bytes, '\n', n));
    std::size_t part = newline ? static_cast<std::size_t>(newline - bytes) : n;
    // Whole lines that are already here need no copy.
    if (newline && s.used == 0 && part <= max_payload_bytes) {
      spool_.add(number, stream, 0, bytes, part);
    } else {
      std::size_t taken = part < max_payload_bytes - s.used ? part : max_payload_bytes - s.used;
      memcpy(s.line + s.used, bytes, taken);
      s.used += taken;
      if (taken < part) {
        spool_.add(number, stream, line_continues, s.line, s.used);
        s.used = 0;
        bytes += taken;
        n -= taken;
        continue;
      }
      if (newline) {
        spool_.add(number, stream, 0, s.line, s.used);
        s.used = 0;
      }
    }
    part += newline ? 1 : 0;
    bytes += part;
    n -= part;
  }
}

void supervisor::close_stream(std::size_t rank, bool err) {
  auto& s = streams_[2 * rank + err];
  if (s.fd < 0)
    return;
  if (s.used > 0)
    spool_.add(static_cast<unsigned>(rank), err ? spool_stream::err : spool_stream::out, line_unended, s.line,
               s.used);
  s.used = 0;
  close(s.fd);
  s.fd = -1;
}

} // namespace troupe::task_init
