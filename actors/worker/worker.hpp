#pragma once
// What a worker decides. A worker is the actor within the process of a trial in C++, one for each rank. It
// takes the orders of its allocation, hands the sum of them to the thread that trains, and reports that
// thread's state. Pure; the shell is worker_actor.cpp beside it.

#include "workers/trial/conductor.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

// Events.
struct order_arrived { ///< arrived over the task link
  std::uint64_t protocol = 0;
  std::string order;
};
struct phase_entered { ///< sent by the thread that trains
  workers::worker_phase phase = workers::worker_phase::starting;
  std::uint32_t generation = 0;
  std::int64_t step = 0, batches = 0;
};
struct training_failed {
  std::string why;
};
struct link_refused { ///< the link was refused for good
  std::string why;
};
struct second_passed {
  std::int64_t step = 0; ///< steps that the thread has done
};
using worker_event = std::variant<order_arrived, phase_entered, training_failed, link_refused, second_passed>;

// Actions.
struct hand_over {
  trial::mandate mandate;
};
struct say_word { ///< sent to the stand-in; a newer status replaces one that waits
  std::string word;
};
using worker_action = std::variant<hand_over, say_word>;

/// Not thread-safe: one actor owns it.
///
///   starting --built, loaded--> ready --train_until--> training --> the end
///      ^------- rebuild -------- broken <---a member died---'
class worker {
public:
  [[nodiscard]] std::vector<worker_action> apply(const worker_event& ev);

private:
  using out = std::vector<worker_action>;
  void on(out& o, const order_arrived& ev);
  void on(out& o, const phase_entered& ev);
  void on(out& o, const training_failed& ev);
  void on(out& o, const link_refused& ev);
  void on(out& o, const second_passed& ev);
  bool take(const workers::train_until& x);
  bool take(const workers::validate_now& x);
  bool take(const workers::checkpoint_now& x);
  bool take(const workers::stop_training& x);
  bool take(const workers::rebuild_group& x);
  void say(out& o) const;

  trial::mandate mandate_;
  workers::worker_status status_;
};

} // namespace troupe
