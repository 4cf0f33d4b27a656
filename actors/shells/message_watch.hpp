#pragma once
// What somebody sees of live mail, and what a test does to it: traces and planted disturbances.

#include "actors/probe.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// What a trace of messages shows, and where to. Thread-safe; each of the node's actors that it concerns
/// offers its mail.
class message_watch {
public:
  struct wanted {
    std::string actor, kind;                  ///< empty: any
    std::vector<correlation> about;           ///< empty: any
    std::uint64_t requester = 0, request = 0; ///< of one request and its answer; request 0: any
    std::vector<type_key> types;              ///< empty: any
    std::uint64_t most = 100;                 ///< rows; then it is over
    std::uint64_t per_second = 50;
    std::uint64_t until = not_timed; ///< ticks
  };
  struct row {
    std::uint64_t at = 0;
    std::string actor, from, type, about, text;
    std::uint64_t wait = not_timed, run = not_timed;
  };
  struct tally {
    std::uint64_t seen = 0, shown = 0, dropped = 0;
    bool over = false; ///< it has shown all that it may
  };
  message_watch(wanted what, const tick_scale& scale);

  bool concerns(const probe& who) const;
  /// Counts a message that comes `now`, in ticks; is it to be shown? Then `add` follows.
  bool admit(std::uint64_t now, type_key type, correlation about, std::uint64_t requester,
             std::uint64_t request);
  void add(row x);
  std::vector<row> take(tally& so_far);
  bool over() const { return over_.load(std::memory_order_relaxed); }
  void about(std::vector<correlation> x); ///< from now on

  static constexpr std::size_t queue =
    512; ///< rows that nobody has taken; further ones are dropped and counted

private:
  wanted what_;
  std::uint64_t second_;
  std::atomic<std::uint64_t> seen_{0}, dropped_{0}, shown_{0}, window_{0}, in_window_{0};
  std::atomic<bool> over_{false}, any_about_;
  mutable std::mutex mutex_; ///< of rows_ and what_.about
  std::deque<row> rows_;
};

/// A planted disturbance of an actor's mail; only where the node allows faults.
struct message_fault {
  enum class kind { drop, delay, hold };
  std::string actor; ///< empty: every one
  kind what = kind::drop;
  std::atomic<std::int64_t> left{0}; ///< messages still to be dropped or delayed
  std::uint64_t delay = 0;           ///< ticks
  std::uint64_t until = 0;           ///< ticks; the fault is over then, in any case
  std::uint32_t from_node = 0;       ///< hold: of senders there, 0: any
  std::uint64_t from_actor = 0;      ///< hold: of this sender, 0: any
};

} // namespace troupe
