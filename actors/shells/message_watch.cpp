#include "actors/shells/message_watch.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {

message_watch::message_watch(wanted what, const tick_scale& scale)
    : what_(std::move(what)), second_(scale.ticks(std::chrono::seconds(1))), any_about_(what_.about.empty()) {
}

bool message_watch::concerns(const probe& who) const {
  return !over() && (what_.actor.empty() || what_.actor == who.name) &&
         (what_.kind.empty() || what_.kind == who.kind);
}

bool message_watch::admit(std::uint64_t now, type_key type, correlation about, std::uint64_t requester,
                          std::uint64_t request) {
  if (over())
    return false;
  if (!what_.types.empty() && std::find(what_.types.begin(), what_.types.end(), type) == what_.types.end())
    return false;
  if (what_.request && (what_.request != request || what_.requester != requester))
    return false;
  if (now > what_.until) {
    over_.store(true, std::memory_order_relaxed);
    return false;
  }
  if (!what_.request && !any_about_.load(std::memory_order_relaxed)) {
    std::lock_guard lock(mutex_);
    if (std::find(what_.about.begin(), what_.about.end(), about) == what_.about.end())
      return false;
  }
  seen_.fetch_add(1, std::memory_order_relaxed);
  if (now - window_.load(std::memory_order_relaxed) > second_) {
    window_.store(now, std::memory_order_relaxed);
    in_window_.store(0, std::memory_order_relaxed);
  }
  if (in_window_.fetch_add(1, std::memory_order_relaxed) >= what_.per_second) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const auto shown = shown_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (shown >= what_.most)
    over_.store(true, std::memory_order_relaxed);
  return shown <= what_.most;
}

void message_watch::add(row x) {
  std::lock_guard lock(mutex_);
  if (rows_.size() < queue)
    return rows_.push_back(std::move(x));
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<message_watch::row> message_watch::take(tally& so_far) {
  std::lock_guard lock(mutex_);
  std::vector<row> out(std::make_move_iterator(rows_.begin()), std::make_move_iterator(rows_.end()));
  rows_.clear();
  so_far.seen = seen_.load(std::memory_order_relaxed);
  so_far.dropped = dropped_.load(std::memory_order_relaxed);
  so_far.shown = std::min(shown_.load(std::memory_order_relaxed), what_.most);
  so_far.over = over() || ticks_now() > what_.until;
  return out;
}

void message_watch::about(std::vector<correlation> x) {
  std::lock_guard lock(mutex_);
  what_.about = std::move(x);
  any_about_.store(what_.about.empty(), std::memory_order_relaxed);
}

} // namespace troupe
