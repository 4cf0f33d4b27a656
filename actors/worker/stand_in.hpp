#pragma once
// Stands for one worker (a rank of a trial in C++) on the worker's agent: passes on what belongs to the
// worker's allocation, refuses the rest with the reason, and notices a worker that executes no instruction
// any more. Pure; the shell is stand_in_actor.cpp beside it.

#include "actors/machine.hpp"
#include "workers/worker_messages.hpp"

#include <optional>
#include <string>

namespace troupe {

struct stand_in_spec {
  allocation_id allocation;
  std::string agent;
  int member = 0; ///< the rank that the worker was started with
  /// A worker that was silent for longer is reported; a worker sends a word each second.
  duration silence = 20s;
  duration repeat_status = 15s; ///< time after which an unchanged status is passed on again
};

// Events. The harness has checked the token.
struct word_heard {
  allocation_id allocation;
  int member = 0;
  std::string process; ///< random text, one for each process
  std::uint64_t protocol = 0;
  std::string word;
};
struct order_heard {
  allocation_id allocation;
  int member = 0;
  std::uint64_t protocol = 0;
  std::string order;
};
/// The leases of all tasks of this host were renewed, so that no task is frozen. Arrives once a second while
/// the master is reachable.
struct lease_renewed {};
using stand_in_event = std::variant<word_heard, order_heard, lease_renewed>;

// Actions.
struct pass_word { ///< sent to the agent
  std::string word;
};
struct pass_order { ///< sent to the worker
  std::string process, order;
};
struct refuse_worker { ///< sent to the worker, which then ends
  std::string process, why;
};
struct report_silence { ///< sent to the agent
  std::string detail;
};
using stand_in_action = std::variant<pass_word, pass_order, refuse_worker, report_silence>;

/// Not thread-safe: one actor owns it. It has no facts, because a worker reports its status each second.
class stand_in {
public:
  explicit stand_in(stand_in_spec spec) : spec_(std::move(spec)) {}

  [[nodiscard]] std::vector<stand_in_action> apply(const stand_in_event& ev, time_point now);

  /// The messages that the worker took lately, as it reported them.
  const workers::worker_heard& heard() const { return took_; }
  const std::optional<workers::worker_status>& status() const { return said_; } ///< the newest status

private:
  using out = std::vector<stand_in_action>;
  void on(out& o, const word_heard& ev, time_point now);
  void on(out& o, const order_heard& ev, time_point now);
  void on(out& o, const lease_renewed& ev, time_point now);
  void refuse(out& o, const std::string& process, std::string why);

  stand_in_spec spec_;
  workers::worker_heard took_;
  std::optional<workers::worker_status> said_;
  std::string process_;                          ///< process that speaks for this rank: the first one
  std::optional<workers::worker_status> passed_; ///< the newest status that was passed on
  time_point passed_at_, heard_;
  std::optional<time_point> renewed_;
  bool refused_ = false, silent_ = false;
};

} // namespace troupe
