// The task link on the side of a trial in C++, as workers/python/troupe/_link.py is for Python.

#include "workers/trial/link_frames.hpp"
#include "workers/worker_messages.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <optional>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <zmq.h>

namespace troupe::trial {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto silence = 3s; // after this time a new connection is made
constexpr auto ping_pause = 1000ms;
constexpr auto waiting_ping_pause = 250ms; // while a caller waits
constexpr auto resend_checkpoint = 1s;
constexpr auto exit_patience = 30s; // to deliver the last reports
constexpr std::size_t most_queued_reports = 65'536;
constexpr std::size_t most_queued_bytes = 32 << 20;
constexpr std::size_t frame_bytes = 256 << 10;

class link_client final : public report_sink {
public:
  explicit link_client(const settings& s) : settings_(s), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { run(); });
  }

  ~link_client() override {
    {
      std::lock_guard held(lock_);
      closing_ = true;
    }
    wake();
    thread_.join();
    close(wake_);
  }

  result<void> training(std::int64_t steps, const metrics& m) override {
    std::unique_lock held(lock_);
    if (!fatal_.empty())
      return refused();
    if (queued_.size() >= most_queued_reports || queued_bytes_ >= most_queued_bytes) {
      if (!std::exchange(told_full_, true))
        std::fprintf(stderr, "troupe: the agent does not keep up or is away: the queue is full and training "
                             "metrics are dropped\n");
      return {};
    }
    enqueue(report_entry("training", steps, m, now_us()));
    held.unlock();
    wake();
    return {};
  }

  result<void> validation(std::int64_t steps, const metrics& m) override {
    std::unique_lock held(lock_);
    const auto number = enqueue(report_entry("validation", steps, m, now_us()));
    awaited_ = number;
    refusal_.clear();
    wait(held, [&] { return acked_ >= number || !refusal_.empty(); });
    awaited_ = 0;
    if (!fatal_.empty())
      return refused();
    if (!refusal_.empty())
      return error{errc::invalid,
                   "the validation at step " + std::to_string(steps) + " was refused: " + refusal_};
    return {};
  }

  result<void> checkpoint(const std::string& uuid, std::int64_t steps, const file_list& files) override {
    std::unique_lock held(lock_);
    const auto number = next_checkpoint_++;
    saving_ = saving{number, checkpoint_frame(number, uuid, steps, files), next_ - 1, {}, false, {}};
    wait(held, [&] { return saving_->saved || !saving_->refusal.empty(); });
    const auto ended = *std::exchange(saving_, std::nullopt);
    if (!fatal_.empty())
      return refused();
    if (!ended.saved)
      return error{errc::invalid,
                   "the checkpoint at step " + std::to_string(steps) + " was refused: " + ended.refusal};
    return {};
  }

  result<std::filesystem::path> checkpoint_root() override {
    return std::filesystem::path(settings_.checkpoint_dir);
  }

  result<std::filesystem::path> resume_from() override {
    if (settings_.resume.empty())
      return std::filesystem::path();
    const auto path = std::filesystem::path(settings_.checkpoint_dir) /
                      settings_.resume; // an absolute `resume` replaces the folder
    std::error_code fault;
    if (!std::filesystem::is_directory(path, fault))
      return error{errc::not_found, "the checkpoint to resume from is not there: " + path.string() +
                                      " (TROUPE_RESUME_CHECKPOINT)"};
    return path;
  }

  void progress(double done) override {
    std::lock_guard held(lock_);
    progress_ = done; // sent when the thread looks next, within a second
  }

  std::string stop_reason() override {
    std::lock_guard held(lock_);
    return stop_;
  }

  result<void> finish() override {
    std::unique_lock held(lock_);
    const auto upto = next_ - 1;
    const auto until = steady::now() + exit_patience;
    ++waiters_;
    wake();
    news_.wait_until(held, until, [&] { return (acked_ >= upto && words_.empty()) || !fatal_.empty(); });
    --waiters_;
    if (!fatal_.empty())
      return refused();
    if (acked_ < upto)
      return error{errc::timeout,
                   std::to_string(upto - acked_) + " reports were not confirmed within 30 s of the end"};
    return {};
  }

  std::string place() const override { return {}; }

  void listen(std::function<void(std::uint64_t, std::string)> order,
              std::function<void(std::string)> refused) override {
    std::lock_guard held(lock_);
    order_ = std::move(order);
    refused_ = std::move(refused);
    if (refused_ && !fatal_.empty())
      refused_(fatal_);
  }

  void say(std::uint64_t protocol, std::string word) override {
    std::lock_guard held(lock_);
    protocol_ = protocol;
    const auto what = workers::decode_worker<workers::worker_word>(word).value();
    if (std::holds_alternative<workers::worker_status>(what)) {
      status_ = std::move(word);
      status_waits_ = true;
    } else if (std::holds_alternative<workers::worker_heard>(what)) {
      mail_ = std::move(word);
      mail_waits_ = true;
    } else if (words_.size() < 16) {
      words_.push_back(std::move(word));
    }
    wake();
  }

private:
  struct saving {
    std::uint64_t number;
    std::string frame;
    std::uint64_t after; // the number of the last report that must be acknowledged first
    std::optional<steady::time_point> sent;
    bool saved;
    std::string refusal;
  };

  error refused() const { return {errc::denied, "the agent refused this process: " + fatal_}; }

  std::uint64_t enqueue(std::string entry) {
    queued_bytes_ += entry.size();
    queued_.push_back(std::move(entry));
    return next_++;
  }

  template <class Done>
  void wait(std::unique_lock<std::mutex>& held, Done done) {
    ++waiters_;
    wake();
    news_.wait(held, [&] { return done() || !fatal_.empty(); });
    --waiters_;
  }

  void wake() {
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
  }

  // What follows runs on the thread.

  void run() {
    void* context = zmq_ctx_new();
    for (;;) {
      std::unique_lock held(lock_);
      if (closing_ || !fatal_.empty())
        break;
      const auto now = steady::now();
      if (!socket_ || now - heard_ > silence)
        open(context, now);
      blocked_ = false;
      if (!greeted_) {
        if (now >= next_hello_ && send(hello_frame(settings_, acked_)))
          next_hello_ = now + ping_pause;
      } else {
        const auto pause = waiters_ > 0 ? waiting_ping_pause : ping_pause;
        if (now - heard_ >= pause && now >= next_ping_) {
          send(ping_frame());
          next_ping_ = now + pause;
        }
        send_work(now);
      }
      const auto until = greeted_ ? std::min(now + waiting_ping_pause,
                                             next_ping_ > now ? next_ping_ : now + waiting_ping_pause)
                                  : now + 100ms;
      held.unlock();
      zmq_pollitem_t items[] = {{socket_, 0, short(ZMQ_POLLIN | (blocked_ ? ZMQ_POLLOUT : 0)), 0},
                                {nullptr, wake_, ZMQ_POLLIN, 0}};
      zmq_poll(items, 2,
               long(std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count()) + 1);
      std::uint64_t drained = 0;
      (void)!read(wake_, &drained, sizeof drained);
      held.lock();
      hear_all();
    }
    if (socket_)
      zmq_close(socket_);
    zmq_ctx_term(context);
  }

  std::string current_endpoint() const {
    std::string line;
    if (!settings_.endpoint_file.empty() && std::getline(std::ifstream(settings_.endpoint_file), line) &&
        !line.empty())
      return line;
    return settings_.endpoint;
  }

  void open(void* context, steady::time_point now) {
    if (socket_)
      zmq_close(socket_);
    socket_ = zmq_socket(context, ZMQ_DEALER);
    const auto set = [&](int option, int x) { zmq_setsockopt(socket_, option, &x, sizeof x); };
    set(ZMQ_IMMEDIATE, 1); // never queue for a connection that may not be made
    set(ZMQ_LINGER, 200);
    set(ZMQ_RECONNECT_IVL, 50);
    set(ZMQ_RECONNECT_IVL_MAX, 1000);
    zmq_connect(socket_, current_endpoint().c_str());
    greeted_ = false;
    heard_ = now;
    next_hello_ = now;
  }

  bool send(const std::string& frame) {
    if (zmq_send(socket_, frame.data(), frame.size(), ZMQ_DONTWAIT) >= 0)
      return true;
    blocked_ = true;
    return false;
  }

  void send_work(steady::time_point now) {
    if (progress_ && now >= next_progress_ && send(progress_frame(*progress_))) {
      progress_.reset();
      next_progress_ = now + 1s;
    }
    if (status_waits_ && send(worker_frame(protocol_, status_)))
      status_waits_ = false;
    if (mail_waits_ && send(worker_frame(protocol_, mail_)))
      mail_waits_ = false;
    while (!words_.empty() && send(worker_frame(protocol_, words_.front())))
      words_.pop_front();
    while (!queued_.empty() && !blocked_) {
      const std::size_t room = std::min(frame_bytes, window_ > unacked_bytes_ ? window_ - unacked_bytes_ : 0);
      std::vector<const std::string*> entries;
      std::size_t bytes = 0;
      for (const auto& x : queued_) {
        if (bytes + x.size() > room && !(entries.empty() && unacked_.empty()))
          break;
        entries.push_back(&x);
        bytes += x.size();
      }
      if (entries.empty() || !send(reports_frame(acked_ + unacked_.size() + 1, entries)))
        break;
      for (std::size_t n = entries.size(); n > 0; --n) {
        queued_bytes_ -= queued_.front().size();
        unacked_bytes_ += queued_.front().size();
        unacked_.push_back(std::move(queued_.front()));
        queued_.pop_front();
      }
    }
    if (saving_ && !saving_->saved && acked_ >= saving_->after &&
        (!saving_->sent || now - *saving_->sent >= resend_checkpoint) && send(saving_->frame))
      saving_->sent = now;
  }

  void hear_all() {
    for (int i = 0; i < 256; ++i) {
      zmq_msg_t message;
      zmq_msg_init(&message);
      const int bytes = zmq_msg_recv(&message, socket_, ZMQ_DONTWAIT);
      if (bytes >= 0) {
        heard_ = steady::now();
        const auto* data = static_cast<const std::uint8_t*>(zmq_msg_data(&message));
        const auto frame = nlohmann::json::from_msgpack(data, data + bytes, true, false);
        if (frame.is_array() && !frame.empty() && frame[0].is_string())
          hear(frame[0].get<std::string>(), frame);
      }
      zmq_msg_close(&message);
      if (bytes < 0)
        return;
    }
  }

  static std::uint64_t number_at(const nlohmann::json& frame, std::size_t i) {
    return i < frame.size() && frame[i].is_number_unsigned() ? frame[i].get<std::uint64_t>() : 0;
  }
  static std::string text_at(const nlohmann::json& frame, std::size_t i) {
    return i < frame.size() && frame[i].is_string() ? frame[i].get<std::string>() : "";
  }

  void hear(const std::string& kind, const nlohmann::json& frame) {
    if (kind == "worker") {
      if (order_) {
        if (frame.size() > 2 && frame[2].is_binary())
          order_(number_at(frame, 1),
                 std::string(frame[2].get_binary().begin(), frame[2].get_binary().end()));
      }
    } else if (kind == "ack") {
      advance(number_at(frame, 1));
    } else if (kind == "decision") {
      if (frame.size() > 2 && frame[2] == true)
        take_stop(text_at(frame, 3).empty() ? "pruned" : text_at(frame, 3));
    } else if (kind == "pong") {
      take_stop(text_at(frame, 2));
      advance(number_at(frame, 1));
    } else if (kind == "welcome") {
      take_stop(text_at(frame, 3));
      advance(number_at(frame, 2));
      take_unacked_back();
      window_ = std::size_t(number_at(frame, 4));
      greeted_ = true;
      status_waits_ = !status_.empty(); // a new leader of the connection may not know the status
      mail_waits_ = !mail_.empty();
      next_ping_ = {};
    } else if (kind == "stop") {
      take_stop(text_at(frame, 1));
    } else if (kind == "refused") {
      if (number_at(frame, 1) == awaited_)
        refusal_ = text_at(frame, 2);
      else
        std::fprintf(stderr, "troupe: the agent refused a report: %s\n", text_at(frame, 2).c_str());
    } else if (kind == "saved" || kind == "unsaved") {
      if (saving_ && saving_->number == number_at(frame, 1)) {
        saving_->saved = kind == "saved";
        saving_->refusal = saving_->saved ? "" : text_at(frame, 2);
      }
    } else if (kind == "again") {
      greeted_ = false;
      next_hello_ = {};
    } else if (kind == "error") {
      const auto code = text_at(frame, 1);
      if (code == "version" || code == "token" || code == "malformed" || code == "window" ||
          code == "worker") {
        fatal_ = text_at(frame, 2).empty() ? code : text_at(frame, 2);
        if (refused_)
          refused_(fatal_);
      } else {
        greeted_ = false;
        next_hello_ = steady::now() + ping_pause;
      }
    }
    news_.notify_all();
  }

  void take_stop(const std::string& reason) {
    if (!reason.empty())
      stop_ = reason;
  }

  void advance(std::uint64_t upto) {
    for (upto = std::min(upto, next_ - 1); acked_ < upto; ++acked_) {
      auto& from = unacked_.empty() ? queued_ : unacked_;
      (unacked_.empty() ? queued_bytes_ : unacked_bytes_) -= from.front().size();
      from.pop_front();
    }
  }

  void take_unacked_back() {
    for (; !unacked_.empty(); unacked_.pop_back())
      queued_.push_front(std::move(unacked_.back()));
    queued_bytes_ += std::exchange(unacked_bytes_, 0);
    if (saving_)
      saving_->sent.reset();
  }

  const settings settings_;
  const int wake_;
  std::mutex lock_;
  std::condition_variable news_;
  std::deque<std::string> queued_, unacked_;
  std::size_t queued_bytes_ = 0, unacked_bytes_ = 0, window_ = 1 << 20;
  std::uint64_t acked_ = 0, next_ = 1, next_checkpoint_ = 1;
  std::uint64_t awaited_ = 0; // number of the validation that the caller waits for
  std::string refusal_, stop_, fatal_;
  std::optional<saving> saving_;
  std::optional<double> progress_;
  std::function<void(std::uint64_t, std::string)> order_;
  std::function<void(std::string)> refused_;
  std::string status_; // the newest word about how the worker is
  std::string mail_;   // the newest word about what the worker took
  bool status_waits_ = false, mail_waits_ = false;
  std::deque<std::string> words_; // all other words
  std::uint64_t protocol_ = 0;
  int waiters_ = 0;
  bool closing_ = false, greeted_ = false, blocked_ = false, told_full_ = false;
  void* socket_ = nullptr;
  steady::time_point heard_, next_hello_, next_ping_, next_progress_;
  std::thread thread_;
};

} // namespace

result<std::unique_ptr<report_sink>> open_task_link(const settings& s) {
  return std::unique_ptr<report_sink>(std::make_unique<link_client>(s));
}

} // namespace troupe::trial
