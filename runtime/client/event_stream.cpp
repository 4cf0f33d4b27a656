#include "runtime/client/event_stream.hpp"

#include "model/back_off.hpp"

#include <algorithm>
#include <thread>

namespace troupe::client {
namespace {

/// The server says ": alive" every 15 s.
constexpr std::chrono::seconds quiet_limit{45};
constexpr std::chrono::milliseconds first_retry{200}, last_retry{2000};

} // namespace

event_stream::event_stream(server& from, experiment_id experiment, std::uint64_t after, query filter)
    : from_(from), experiment_(experiment), after_(after), filter_(std::move(filter)) {}

result<event_stream::step> event_stream::fail(error why) {
  stream_.reset();
  connected_ = false;
  auto code = why.code;
  if (code == errc::denied || code == errc::unauthorized || code == errc::not_found)
    return why;
  retry_at_ = clock::now() + back_off(++failures_, first_retry, last_retry);
  step s;
  if (!std::exchange(said_lost_, true)) {
    s.change = step::link::lost;
    s.why = why.what;
  }
  return s;
}

result<event_stream::step> event_stream::wait_for_retry(std::chrono::milliseconds wait) {
  auto until = std::min(retry_at_, clock::now() + wait);
  std::this_thread::sleep_until(until);
  return step{};
}

result<event_stream::step> event_stream::poll(std::chrono::milliseconds wait) {
  if (!stream_) {
    if (clock::now() < retry_at_)
      return wait_for_retry(wait);
    if (failures_ > 0)
      from_.find_again();
    parser_ = sse_parser();
    query with{{"after", std::to_string(after_)}};
    if (experiment_)
      with.emplace_back("experiment", to_string(experiment_));
    with.insert(with.end(), filter_.begin(), filter_.end());
    auto opened = from_.open("/troupe/v1/events", with, {"Accept: text/event-stream"}, quiet_limit);
    if (!opened)
      return fail(opened.error());
    stream_ = *std::move(opened);
  }
  std::string bytes;
  auto more = stream_->read(bytes, wait);
  if (!more)
    return fail(more.error());
  int status = stream_->status();
  if (status != 0 && status != 200) {
    while (*more && (more = stream_->read(bytes, std::chrono::seconds(1))) && *more && bytes.size() < 65536)
      ;
    auto why = from_.fault_of({status, bytes, {}});
    if (status == 401 && failures_ == 0) // a token of before the restart: a plain request logs in again
      if (auto again = from_.get("/troupe/v1/status"); again || again.error().code != errc::unauthorized)
        why.code = errc::unreachable;
    return fail(why);
  }
  step s;
  if (status == 200 && !std::exchange(connected_, true)) {
    if (std::exchange(said_lost_, false))
      s.change = step::link::back;
    failures_ = 0;
  }
  for (auto& event : parser_.feed(bytes)) {
    auto fact = parse_json(event.data);
    if (!fact || !fact->is_object())
      continue;
    auto number = std::strtoull(event.id.c_str(), nullptr, 10);
    if (number != 0 && number <= after_) // a repeat after a reconnection
      continue;
    after_ = std::max<std::uint64_t>(after_, number);
    s.events.push_back(*std::move(fact));
  }
  if (!*more && s.events.empty() && s.change == step::link::same)
    return fail({errc::unreachable, "the server ended the stream"});
  return s;
}

} // namespace troupe::client
