#pragma once
// A connected socket as a byte_link, on one executor: everything happens on that executor's thread.

#include "runtime/http/session.hpp"
#include "workers/owned_fd.hpp"

#include <boost/asio/generic/stream_protocol.hpp>

namespace troupe::http {

using socket_stream = beast::basic_stream<net::generic::stream_protocol, net::any_io_executor>;

/// Takes the socket over; if it is not a connected socket, `bad` is set and the socket closed.
inline socket_stream on_executor(const net::any_io_executor& on, workers::owned_fd socket, error_code& bad) {
  int domain = 0, protocol = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0)
    bad = {errno, boost::system::system_category()};
  socket_stream out{on};
  if (bad)
    return out;
  out.socket().assign(net::generic::stream_protocol(domain, protocol), socket.get(), bad);
  if (!bad)
    socket.release();
  if (!bad)
    out.socket().non_blocking(true, bad);
  return out;
}

/// Takes the socket from its executor: no operation may be under way.
inline workers::owned_fd off_executor(socket_stream& stream) {
  error_code bad;
  auto socket = stream.release_socket();
  const int fd = socket.release(bad);
  return workers::owned_fd{bad ? -1 : fd};
}

class socket_link final : public byte_link, public std::enable_shared_from_this<socket_link> {
public:
  explicit socket_link(socket_stream stream) : stream_(std::move(stream)) {}

  void read(std::function<void(result<std::string>)> done) override {
    run([me = shared_from_this(), done = std::move(done)]() mutable {
      auto& socket = me->stream_.socket();
      // A connection that waits holds no memory.
      socket.async_wait(net::socket_base::wait_read, [me, done = std::move(done)](error_code bad) mutable {
        if (me->closed_)
          return;
        std::string bytes;
        error_code ignored;
        if (!bad) {
          bytes.resize(std::clamp<std::size_t>(me->stream_.socket().available(ignored), 1, 65536));
          bytes.resize(me->stream_.socket().read_some(net::buffer(bytes), bad));
        }
        if (bad == net::error::would_block)
          me->read(std::move(done));
        else if (bad && bad != net::error::eof)
          done(error{errc::unreachable, bad.message()});
        else
          done(std::move(bytes));
      });
    });
  }

  void write(std::string bytes, std::function<void(result<void>)> done) override {
    run([me = shared_from_this(), bytes = std::make_shared<std::string>(std::move(bytes)),
         done = std::move(done)]() mutable {
      me->stream_.expires_after(me->write_time_);
      net::async_write(me->stream_, net::buffer(*bytes),
                       [me, bytes, done = std::move(done)](error_code bad, std::size_t) {
                         if (!me->closed_)
                           done(bad ? result<void>(error{errc::unreachable, bad.message()}) : result<void>());
                       });
    });
  }

  void be_patient(milliseconds write_time) override {
    run([me = shared_from_this(), write_time] { me->write_time_ = write_time; });
  }
  void end_writing() override {
    run([me = shared_from_this()] {
      error_code ignored;
      me->stream_.socket().shutdown(net::socket_base::shutdown_send, ignored);
    });
  }
  void close() override {
    run([me = shared_from_this()] { me->end(); });
  }
  void abort() override {
    run([me = shared_from_this()] {
      close_as_break(me->stream_, true);
      me->end();
    });
  }

private:
  template <class Work>
  void run(Work work) {
    net::post(stream_.get_executor(), [me = shared_from_this(), work = std::move(work)]() mutable {
      if (!me->closed_)
        work();
    });
  }
  void end() {
    closed_ = true;
    stream_.close();
  }

  socket_stream stream_;
  milliseconds write_time_{30'000};
  bool closed_ = false; ///< only the executor uses this
};

} // namespace troupe::http
