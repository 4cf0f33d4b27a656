#pragma once
// Moves bytes from one plain socket to another without a copy in this process: splice(2) with a pipe.

#include "runtime/http/session.hpp"

#include <fcntl.h>
#include <functional>
#include <signal.h>

namespace troupe::http {

constexpr std::uint64_t worth_splicing = 128u << 10; ///< bytes; for less, a pipe costs more than the copies

/// splice(2) to a socket whose other side has gone raises SIGPIPE, and no flag prevents that.
inline ssize_t splice_quietly(int from, int to, std::size_t most) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const auto moved = ::splice(from, nullptr, to, nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  const int why = errno;
  if (moved < 0 && why == EPIPE && !sigismember(&before, SIGPIPE)) {
    const timespec now{};
    ::sigtimedwait(&pipe, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = why;
  return moved;
}

template <class From, class To>
class splicer {
public:
  /// Both streams must live longer than this object, be on one executor, and be non-blocking. `patience`:
  /// time in which a piece must be taken. `passed` is called whenever bytes were moved.
  splicer(
    From& from, To& to, milliseconds patience, std::function<void()> passed = [] {})
      : from_(from), to_(to), patience_(patience), passed_(std::move(passed)), timer_(to.get_executor()) {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
      return;
    out_.reset(ends[0]);
    in_.reset(ends[1]);
    ::fcntl(in_.get(), F_SETPIPE_SZ, int(at_most)); // if the kernel refuses this, the usual size will do
  }

  /// False if the process has too many open files: then the bytes have to be copied.
  bool ready() const { return bool(in_); }

  /// Moves so many bytes; to be called once, if `ready`. `bad` is set to what prevented it; to eof if the
  /// source has fewer bytes.
  task<void> run(std::uint64_t left, error_code& bad) {
    to_.native_non_blocking(true, bad);
    std::size_t inside = 0, moved = 0;
    while (!bad && left + inside > 0) {
      if (inside == 0) {
        const auto got = ::splice(from_.native_handle(), nullptr, in_.get(), nullptr,
                                  std::min<std::uint64_t>(left, at_most), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (got > 0) {
          inside = static_cast<std::size_t>(got);
          left -= inside;
        } else if (got == 0) {
          bad = net::error::eof;
        } else if (errno == EAGAIN) {
          co_await from_.async_wait(net::socket_base::wait_read, into(bad));
        } else if (errno != EINTR) {
          bad = {errno, boost::system::system_category()};
        }
        continue;
      }
      const auto put = splice_quietly(out_.get(), to_.native_handle(), inside);
      if (put > 0) {
        inside -= static_cast<std::size_t>(put);
        moved += static_cast<std::size_t>(put);
        passed_();
      } else if (put < 0 && errno == EAGAIN) {
        timer_.expires_after(patience_);
        timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](const error_code& canceled) {
          error_code ignored;
          if (!canceled && !alive.expired())
            to_.cancel(ignored);
        });
        co_await to_.async_wait(net::socket_base::wait_write, into(bad));
        timer_.cancel();
      } else if (errno != EINTR) {
        bad = {errno, boost::system::system_category()};
      }
      if (moved >= at_once) { // other work of this thread gets its turn
        moved = 0;
        co_await net::post(to_.get_executor(), net::use_awaitable);
      }
    }
  }

private:
  /// Bytes after which other work of this thread gets its turn.
  static constexpr std::size_t at_once = 4u << 20;
  static constexpr std::uint64_t at_most = 256u << 10; ///< limit of the bytes inside the pipe

  From& from_;
  To& to_;
  const milliseconds patience_;
  const std::function<void()> passed_;
  net::steady_timer timer_;
  workers::owned_fd out_, in_; ///< the two ends of the pipe
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

} // namespace troupe::http
