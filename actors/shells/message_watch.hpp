#pragma once
// Traces, which show people live mail, and planted faults, with which tests disturb it.

#include "actors/probe.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// What a trace of messages shows, and its rows. Thread-safe; each of the node's actors that it concerns
/// offers its mail.
class message_watch {
public:
  struct wanted {
    std::string actor, kind;        ///< empty: any
    std::vector<correlation> about; ///< empty: any
    /// The one request that is shown with its answer; request 0: any.
    std::uint64_t requester = 0, request = 0;
    std::vector<type_key> types; ///< empty: any
    std::uint64_t most = 100;    ///< limit of rows, after which the trace ends
    std::uint64_t per_second = 50;
    std::uint64_t until = not_timed; ///< in ticks
  };
  struct row {
    std::uint64_t at = 0;
    std::string actor, from, type, about, text;
    std::uint64_t wait = not_timed, run = not_timed;
  };
  struct tally {
    std::uint64_t seen = 0, shown = 0, dropped = 0;
    bool over = false; ///< whether the trace has ended
  };
  message_watch(wanted what, const tick_scale& scale);

  bool concerns(const probe& who) const;
  /// Counts a message that arrives at `now`, in ticks. True if the message is to be shown: then `add`
  /// follows.
  bool admit(std::uint64_t now, type_key type, correlation about, std::uint64_t requester,
             std::uint64_t request);
  void add(row x);
  std::vector<row> take(tally& so_far);
  bool over() const { return over_.load(std::memory_order_relaxed); }
  void about(std::vector<correlation> x); ///< replaces what is followed

  /// Limit of the rows that nobody has taken; further rows are dropped and counted.
  static constexpr std::size_t queue = 512;

private:
  wanted what_;
  std::uint64_t second_;
  std::atomic<std::uint64_t> seen_{0}, dropped_{0}, shown_{0}, window_{0}, in_window_{0};
  std::atomic<bool> over_{false}, any_about_;
  mutable std::mutex mutex_; ///< guards rows_ and what_.about
  std::deque<row> rows_;
};

/// A planted disturbance of an actor's mail; only if the node allows faults.
struct message_fault {
  enum class kind { drop, delay, hold };
  std::string actor; ///< empty: every actor
  kind what = kind::drop;
  std::atomic<std::int64_t> left{0}; ///< messages still to be dropped or delayed
  std::uint64_t delay = 0;           ///< in ticks
  std::uint64_t until = 0;           ///< in ticks; the fault ends then in any case
  std::uint32_t from_node = 0;       ///< for hold: node of the senders; 0: any
  std::uint64_t from_actor = 0;      ///< for hold: the sender; 0: any
};

} // namespace troupe
