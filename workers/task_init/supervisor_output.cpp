// Splits the output of the ranks into lines, for the spool.

#include "workers/task_init/supervisor.hpp"

#include "workers/task_init/task_format.hpp"

namespace troupe::task_init {

using namespace task_format;

constexpr std::int64_t state_every_ms = 10'000;

void supervisor::read_stream(std::size_t rank, bool err, bool to_the_end) {
  static char bytes[64 << 10];
  auto& s = streams_[2 * rank + err];
  do {
    auto n = read(s.fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return; // there is nothing more for now
    if (n == 0)
      return close_stream(rank, err);
    take_bytes(rank, err, bytes, static_cast<std::size_t>(n));
  } while (to_the_end);
}

void supervisor::take_bytes(std::size_t rank, bool err, const char* bytes, std::size_t n) {
  auto& s = streams_[2 * rank + err];
  const char* end = bytes + n;
  while (bytes != end) {
    const auto left = static_cast<std::size_t>(end - bytes);
    auto* newline = static_cast<const char*>(memchr(bytes, '\n', left));
    const std::size_t part = newline ? static_cast<std::size_t>(newline - bytes) : left;
    // A line that arrived whole needs no copy.
    if (newline && s.used == 0 && !s.returned && part <= max_payload_bytes && !memchr(bytes, '\r', part)) {
      add_line(rank, err, 0, bytes, part);
    } else {
      take_states(rank, err, bytes, part);
      if (newline) {
        add_line(rank, err, 0, s.line, s.used);
        s.used = 0;
        s.returned = s.given = false;
        s.state_ms = 0;
      }
    }
    bytes += part + (newline ? 1 : 0);
  }
}

/// Takes the bytes of one line. After a carriage return the line is written over, as by a progress bar. While
/// such a line goes on, its state is spooled every ten seconds, with the carriage return that ended it; so is
/// the last state, once the line stands still.
void supervisor::take_states(std::size_t rank, bool err, const char* bytes, std::size_t n) {
  auto& s = streams_[2 * rank + err];
  while (n > 0) {
    auto* back = static_cast<const char*>(memchr(bytes, '\r', n));
    const std::size_t part = back ? static_cast<std::size_t>(back - bytes) : n;
    if (part > 0 && s.returned) {
      write_over(rank, err);
      s.returned = false;
    }
    if (part > 0)
      s.given = false;
    for (std::size_t done = 0; done < part;) {
      const std::size_t room = max_payload_bytes - s.used;
      const std::size_t taken = part - done < room ? part - done : room;
      memcpy(s.line + s.used, bytes + done, taken);
      s.used += taken;
      done += taken;
      if (done < part) {
        add_line(rank, err, line_continues, s.line, s.used);
        s.used = 0;
      }
    }
    if (back)
      s.returned = true;
    const std::size_t passed = part + (back ? 1 : 0);
    bytes += passed;
    n -= passed;
  }
}

void supervisor::write_over(std::size_t rank, bool err) {
  auto& s = streams_[2 * rank + err];
  const auto now = boot_ms();
  if (s.used > 0 && s.state_ms == 0)
    s.state_ms = now;
  if (now - s.state_ms >= state_every_ms)
    give_state(rank, err);
  s.used = 0;
}

void supervisor::give_state(std::size_t rank, bool err) {
  auto& s = streams_[2 * rank + err];
  if (s.used == 0 || s.used >= max_payload_bytes || s.given)
    return;
  s.line[s.used] = '\r';
  add_line(rank, err, 0, s.line, s.used + 1);
  s.state_ms = boot_ms();
  s.given = true;
}

/// When the state of a line that stands still is to be spooled.
std::int64_t supervisor::state_deadline() const {
  std::int64_t first = INT64_MAX;
  for (const auto& s : streams_)
    if (s.fd >= 0 && s.used > 0 && s.used < max_payload_bytes && s.state_ms != 0 && !s.given &&
        s.state_ms + state_every_ms < first)
      first = s.state_ms + state_every_ms;
  return first;
}

void supervisor::give_states() {
  for (std::size_t i = 0; i < streams_.size; ++i)
    if (const auto& s = streams_[i]; s.fd >= 0 && s.state_ms != 0 && s.state_ms + state_every_ms <= boot_ms())
      give_state(i / 2, i % 2 != 0);
  spool_.flush();
}

void supervisor::add_line(std::size_t rank, bool err, std::uint8_t flags, const char* bytes,
                          std::size_t size) {
  spool_.add(static_cast<unsigned>(rank), err ? spool_stream::err : spool_stream::out, flags, bytes, size);
}

void supervisor::close_stream(std::size_t rank, bool err) {
  auto& s = streams_[2 * rank + err];
  if (s.fd < 0)
    return;
  if (s.used > 0)
    add_line(rank, err, line_unended, s.line, s.used);
  s.used = 0;
  close(s.fd);
  s.fd = -1;
}

} // namespace troupe::task_init
