#include "runtime/api/feed.hpp"

namespace troupe::api {
namespace {

constexpr std::size_t rows_at_once = 256;
constexpr duration look_again = 50ms, heartbeat = 10s;

class feed_body : public body_stream {
public:
  explicit feed_body(std::shared_ptr<feed> from) : from_(std::move(from)) {}
  ~feed_body() override { from_->close(); }

  result<piece> next(time_point now) override {
    piece out;
    auto got = from_->take(rows_at_once);
    if (got.lost)
      out.bytes += sse_event({{"count", got.lost}}, "lost");
    for (const auto& row : got.rows)
      out.bytes += sse_event(row);
    if (got.end) {
      out.bytes += sse_event(*got.end, "end");
      out.last = true;
      return out;
    }
    if (!std::exchange(said_hello_, true))
      out.bytes.insert(0, ": troupe\n\n");
    if (!out.bytes.empty())
      last_sent_ = now;
    else if (now - last_sent_ >= heartbeat) {
      out.bytes = ": alive\n\n";
      last_sent_ = now;
    } else
      out.pause = look_again;
    return out;
  }

private:
  std::shared_ptr<feed> from_;
  bool said_hello_ = false;
  time_point last_sent_;
};

} // namespace

void feed::push(value row) {
  std::lock_guard lock{mutex_};
  if (end_)
    return;
  rows_.push_back(std::move(row));
  if (rows_.size() > most_) { // drops the oldest row, because a live view is about the present
    rows_.pop_front();
    ++lost_;
  }
}

void feed::end(value row) {
  std::lock_guard lock{mutex_};
  if (!end_)
    end_ = std::move(row);
}

feed::part feed::take(std::size_t most) {
  std::lock_guard lock{mutex_};
  part out;
  out.lost = std::exchange(lost_, 0);
  while (!rows_.empty() && out.rows.size() < most) {
    out.rows.push_back(std::move(rows_.front()));
    rows_.pop_front();
  }
  if (rows_.empty())
    out.end = end_;
  return out;
}

std::string sse_event(const value& data, const char* name) {
  return (name ? std::string("event: ") + name + "\n" : std::string()) + "data: " + to_json(data) + "\n\n";
}

std::unique_ptr<body_stream> feed_stream(std::shared_ptr<feed> from) {
  return std::make_unique<feed_body>(std::move(from));
}

} // namespace troupe::api
