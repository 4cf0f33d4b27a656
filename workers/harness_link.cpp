#include "workers/harness_link.hpp"

#include <zmq.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#ifdef __SANITIZE_THREAD__
extern "C" { // the sanitizer's library has no header for these
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace troupe::workers {

namespace {

constexpr int frames_per_round = 256;
constexpr std::size_t bytes_per_round = 1 << 20;
// Frames that ZeroMQ holds for each connection while nothing is read. Each may have 2 MiB, so the number is
// small; tasks group their reports, so that it is enough.
constexpr int receive_frames = 32;

/// libzmq is not built with the thread sanitizer, which therefore does not see the order that its queues
/// ensure. While one of these lives, the sanitizer ignores what the thread's messages touch.
struct unseen_messages {
#ifdef __SANITIZE_THREAD__
  unseen_messages() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~unseen_messages() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  ~unseen_messages() {} // not defaulted, so that the compiler sees a use
#endif
};

class zmq_harness_link final : public harness_link {
public:
  zmq_harness_link(const harness_link_options& options, sink out)
      : options_(options), sink_(std::move(out)), context_(1), socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::router_mandatory, true);
    socket_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(max_frame_bytes));
    socket_.set(zmq::sockopt::rcvhwm, receive_frames);
    socket_.set(zmq::sockopt::sndhwm, 1000);
    socket_.set(zmq::sockopt::backlog, 1024);
    socket_.set(zmq::sockopt::handshake_ivl,
                2000); // ms; ends a connection of a program that speaks another protocol, or waits
    socket_.bind(options.endpoint);
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); // after the calls that may throw
    TROUPE_ASSERT(wake_ >= 0);
    thread_ = std::thread([this] { run(); });
  }

  ~zmq_harness_link() override {
    stopping_ = true;
    wake();
    thread_.join();
    ::close(wake_);
  }

  const std::string& endpoint() const override { return endpoint_; }

  bool send(std::string peer, const agent_frame& frame) override {
    auto body = encode(frame);
    bool was_empty = false;
    {
      std::lock_guard guard(mutex_);
      if (outgoing_.size() >= options_.outgoing_frames)
        return false;
      was_empty = outgoing_.empty();
      outgoing_.emplace_back(std::move(peer), std::move(body));
    }
    if (was_empty)
      wake();
    return true;
  }

  void release(std::size_t bytes) override {
    auto before = held_.fetch_sub(bytes);
    if (before >= options_.credit_bytes && before - bytes < options_.credit_bytes)
      wake();
  }

private:
  using outgoing = std::deque<std::pair<std::string, std::string>>;

  void wake() {
    std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(wake_, &one, sizeof one); // a full counter: it is awake
  }

  void run() {
    while (!stopping_) {
      try {
        round();
      } catch (const zmq::error_t& fault) {
        TROUPE_ASSERT(fault.num() == EINTR || fault.num() == EAGAIN);
      }
    }
    socket_.close();
  }

  void round() {
    bool reading = held_ < options_.credit_bytes;
    zmq::pollitem_t items[] = {{nullptr, wake_, ZMQ_POLLIN, 0}, {socket_.handle(), 0, ZMQ_POLLIN, 0}};
    zmq::poll(items, reading ? 2 : 1, std::chrono::milliseconds(-1));
    std::vector<task_message> batch;
    if (items[0].revents) {
      std::uint64_t count = 0;
      [[maybe_unused]] auto got = ::read(wake_, &count, sizeof count);
      outgoing out;
      {
        std::lock_guard guard(mutex_);
        out.swap(outgoing_);
      }
      for (auto& [peer, body] : out)
        write(peer, body, batch);
    }
    if (reading && items[1].revents)
      read(batch);
    if (!batch.empty())
      sink_(std::move(batch));
  }

  void read(std::vector<task_message>& batch) {
    unseen_messages unseen;
    std::size_t bytes = 0;
    for (int i = 0; i < frames_per_round && bytes < bytes_per_round && held_ < options_.credit_bytes; ++i) {
      zmq::message_t peer, body;
      if (!socket_.recv(peer, zmq::recv_flags::dontwait))
        return;
      bool single = peer.more() && socket_.recv(body) && !body.more();
      for (bool more = body.more(); more;) { // a message arrives whole, so this never waits
        zmq::message_t rest;
        more = socket_.recv(rest) && rest.more();
      }
      auto frame = single ? decode_task_frame({static_cast<const char*>(body.data()), body.size()})
                          : task_frame{malformed{"not a frame of the task link: it has more than one part"}};
      held_ += weight(frame);
      bytes += body.size();
      batch.push_back({peer.to_string(), std::move(frame)});
    }
  }

  void write(const std::string& peer, const std::string& body, std::vector<task_message>& batch) {
    unseen_messages unseen;
    bool sent = false;
    try {
      if (socket_.send(zmq::buffer(peer), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
        sent = socket_.send(zmq::buffer(body), zmq::send_flags::dontwait).has_value();
    } catch (const zmq::error_t& fault) {
      if (fault.num() != EHOSTUNREACH)
        throw;
    }
    if (!sent) {
      task_message gone{peer, peer_gone{}};
      held_ += weight(gone.frame);
      batch.push_back(std::move(gone));
    }
  }

  const harness_link_options options_;
  const sink sink_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  int wake_ = -1;
  std::string endpoint_;
  std::atomic<std::size_t> held_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  outgoing outgoing_;
  std::thread thread_;
};

bool is_local(std::string_view endpoint) {
  return endpoint.starts_with("tcp://127.") || endpoint.starts_with("tcp://[::1]:") ||
         endpoint.starts_with("ipc://");
}

} // namespace

result<std::unique_ptr<harness_link>> open_harness_link(const harness_link_options& options,
                                                        harness_link::sink sink) {
  if (!is_local(options.endpoint))
    return error{errc::invalid, "harness port " + options.endpoint +
                                  ": the task link serves this host only; use tcp://127.0.0.1:PORT"};
  try {
    return std::unique_ptr<harness_link>(std::make_unique<zmq_harness_link>(options, std::move(sink)));
  } catch (const zmq::error_t& fault) {
    auto code = fault.num() == EADDRINUSE ? errc::conflict : fault.num() == EINVAL ? errc::invalid : errc::io;
    return error{code, "harness port " + options.endpoint + ": " + fault.what()};
  }
}

} // namespace troupe::workers
