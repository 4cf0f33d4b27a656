#include "runtime/proxy/bridge.hpp"

#include "runtime/proxy/frames.hpp"

#include <atomic>
#include <deque>

namespace troupe::proxy {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds hurry{5}; ///< time in which the other side has to end, once one side has ended

/// The answers of the two links arrive on executors of their own; what both use is atomic or guarded by the
/// mutex.
class bridge : public junctions::watched, public std::enable_shared_from_this<bridge> {
public:
  explicit bridge(bridge_ends ends) : ends_(std::move(ends)) { touch(); }

  void run() {
    for (auto* one : {&ends_.viewer, &ends_.service})
      (*one)->be_patient(junctions::idle);
    if (ends_.table)
      ends_.table->watch(shared_from_this());
    begin();
  }

  steady_time last_byte() const override {
    if (ends_.stays && !ends_.stays())
      return begun_ - junctions::idle;
    if (awaits_)
      return begun_ - (junctions::idle - ends_.first_byte);
    const auto earlier = hurried_ ? junctions::idle - hurry : std::chrono::seconds{0};
    return steady_time(clock::duration(last_.load())) - earlier;
  }
  void end_idle() override { end(); }

protected:
  virtual void begin() = 0;

  /// Shortens the silence that is allowed from now on.
  void hurry_up() {
    touch();
    hurried_ = true;
  }
  void viewer_spoke() { awaits_ = false; }
  void touch() { last_ = clock::now().time_since_epoch().count(); }

  /// Closes both links. `whole`: both sides have sent everything. `cut`: the service's side broke, so that
  /// the viewer has not got everything, and must read a break.
  void end(bool whole = false, bool cut = false) {
    if (over_.exchange(true))
      return;
    if (cut)
      ends_.viewer->abort();
    else
      ends_.viewer->close();
    if (whole)
      ends_.service->close();
    else
      ends_.service->abort();
    std::lock_guard lock(mutex_);
    ends_.held.reset();
  }
  bool over() const { return over_; }

  bridge_ends ends_;
  std::mutex mutex_;

private:
  std::atomic<clock::rep> last_{0};
  std::atomic<bool> over_{false}, hurried_{false};
  const steady_time begun_ = clock::now();
  /// Whether the viewer's first byte is still awaited.
  std::atomic<bool> awaits_{ends_.first_byte.count() > 0};
};

class byte_bridge final : public bridge {
public:
  using bridge::bridge;

private:
  void begin() override {
    auto early = std::move(ends_.from_service);
    if (early.empty())
      pass(ends_.service, ends_.viewer);
    else
      write(ends_.service, ends_.viewer, std::move(early));
    pass(ends_.viewer, ends_.service);
  }

  std::shared_ptr<byte_bridge> self() { return std::static_pointer_cast<byte_bridge>(shared_from_this()); }

  void pass(const link_ptr& from, const link_ptr& to) {
    from->read([me = self(), from, to](result<std::string> got) {
      if (!got)
        return me->end(false, from == me->ends_.service);
      me->touch();
      if (from == me->ends_.viewer)
        me->viewer_spoke();
      if (!got->empty())
        return me->write(from, to, std::move(*got));
      to->end_writing();
      if (++me->ended_ == 2)
        me->end(true);
    });
  }
  void write(const link_ptr& from, const link_ptr& to, std::string bytes) {
    to->write(std::move(bytes), [me = self(), from, to](result<void> taken) {
      if (!taken)
        return me->end();
      me->touch();
      me->pass(from, to);
    });
  }

  std::atomic<int> ended_{0};
};

class frame_bridge final : public bridge {
public:
  using bridge::bridge;

private:
  void begin() override {
    read_viewer();
    if (ends_.from_service.empty())
      read_service();
    else
      to_viewer(frame_of(frame_kind::binary, std::exchange(ends_.from_service, {})), after::read_service);
  }

  std::shared_ptr<frame_bridge> self() { return std::static_pointer_cast<frame_bridge>(shared_from_this()); }

  // ---- from the viewer: one read or write at a time

  void read_viewer() {
    ends_.viewer->read([me = self()](result<std::string> got) {
      if (!got || got->empty())
        return me->goodbye_said_ ? me->end() : me->viewer_left(!got);
      if (me->goodbye_said_)
        return me->read_viewer(); // until the viewer has read the close frame and closes the connection
      me->touch();
      me->heard(me->frames_.feed(*got));
    });
  }

  void heard(frame_reader::found x) {
    if (x.pong)
      to_viewer(frame_of(frame_kind::pong, *x.pong), after::nothing);
    if (!x.bytes.empty())
      viewer_spoke();
    if (x.bytes.empty())
      return heard_all(x.closed, std::move(x.wrong));
    ends_.service->write(std::move(x.bytes),
                         [me = self(), closed = x.closed, wrong = std::move(x.wrong)](result<void> taken) {
                           if (!taken)
                             return me->say_goodbye(1011, "the service is gone");
                           me->heard_all(closed, wrong);
                         });
  }

  void heard_all(bool closed, std::optional<frame_reader::fault> wrong) {
    if (wrong)
      say_goodbye(wrong->code, wrong->reason);
    else if (closed)
      viewer_left(false);
    read_viewer();
  }

  /// The viewer sends no more. What the service sends until it ends still goes to the viewer.
  void viewer_left(bool broken) {
    if (broken)
      return end();
    if (left_.exchange(true))
      return end();
    ends_.service->end_writing();
    hurry_up();
  }

  void end_idle() override {
    if (left_ && !goodbye_said_)
      return say_goodbye(1000, "");
    end();
  }

  // ---- to the viewer: frames wait in a queue, because pongs may come between them

  enum class after { nothing, read_service, end };

  void read_service() {
    ends_.service->read([me = self()](result<std::string> got) {
      if (!got || got->empty())
        return me->say_goodbye(got ? 1000 : 1011, got ? "" : "the service is gone");
      me->touch();
      me->to_viewer(frame_of(frame_kind::binary, *got), after::read_service);
    });
  }

  void say_goodbye(std::uint16_t code, const std::string& why) {
    if (goodbye_said_.exchange(true))
      return;
    hurry_up();
    ends_.service->abort();
    to_viewer(close_frame(code, why), after::end);
  }

  void to_viewer(std::string bytes, after then) {
    {
      std::lock_guard lock(mutex_);
      if (then == after::nothing && queue_.size() > 2)
        return; // pings that arrive faster than pongs can be sent are not answered
      queue_.emplace_back(std::move(bytes), then);
      if (std::exchange(writing_, true))
        return;
    }
    write_next();
  }

  void write_next() {
    std::pair<std::string, after> next;
    {
      std::lock_guard lock(mutex_);
      if (queue_.empty()) {
        writing_ = false;
        return;
      }
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    ends_.viewer->write(std::move(next.first), [me = self(), then = next.second](result<void> taken) {
      if (!taken)
        return me->end();
      if (then == after::end)
        return me->ends_.viewer->end_writing();
      if (then == after::read_service)
        me->read_service();
      me->write_next();
    });
  }

  frame_reader frames_;
  std::deque<std::pair<std::string, after>> queue_; ///< guarded by mutex_
  bool writing_ = false;                            ///< guarded by mutex_
  std::atomic<bool> left_{false}, goodbye_said_{false};
};

} // namespace

void join_bytes(bridge_ends ends) { std::make_shared<byte_bridge>(std::move(ends))->run(); }
void join_frames(bridge_ends ends) { std::make_shared<frame_bridge>(std::move(ends))->run(); }

} // namespace troupe::proxy
