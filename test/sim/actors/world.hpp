#pragma once
// What the fakes of one history share: virtual time, the network, the promises made to scripts, and the way
// to fail.

#include "test/sim/actors/plan.hpp"
#include "test/sim/actors/timeline.hpp"
#include "test/unit/actors/show.hpp"

#include <cstdio>
#include <unordered_map>

namespace troupe::sim {

/// Says that an invariant is broken. It is thrown out of the history: tests may throw.
struct violation {
  std::string what;
};
[[noreturn]] inline void fail(std::string what) { throw violation{std::move(what)}; }

enum class role : std::uint64_t {
  journal,
  cluster,
  pool,
  twin,
  experiment,
  searcher,
  trial,
  allocation,
  agent,
  sandbox,
  user
};

/// The number that names an actor or process. Messages between two of these keep their order.
using address = std::uint64_t;
inline address at(role who, std::uint64_t a = 0, std::uint64_t b = 0) {
  return std::uint64_t(who) << 56 | a << 24 | b;
}
inline address at(allocation_id id) { return at(role::allocation, id.trial().value, id.run.value); }

enum class repeats { never, at_once, late };

class world {
public:
  explicit world(history_plan p) : plan(std::move(p)), random(plan.seed) {}

  history_plan plan;
  rng random;
  timeline clock;
  bool tracing = false;
  std::uint64_t messages = 0;           ///< number of messages that were delivered so far
  std::function<void()> before_message; ///< plays faults and users before each message

  time_point now() const { return clock.now(); }
  duration between(duration least, duration most) {
    return least + duration{static_cast<std::int64_t>(
                     random.below(static_cast<std::uint64_t>((most - least).count()) + 1))};
  }

  template <class Text>
  void trace(Text text) const {
    if (tracing)
      std::fprintf(stderr, "%s %s\n", to_rfc3339(now()).substr(14, 12).c_str(), std::string(text()).c_str());
  }

  /// The time at which a message that is sent now arrives: after all earlier messages between the same two.
  time_point arrival(address from, address to, std::uint64_t line = 0) {
    auto& last = last_[mix64(mix64(from) ^ to) ^ mix64(line)];
    auto r = random.unit();
    auto delay = r < plan.slow ? between(20ms, 2s) : r < 0.1 ? between(1ms, 20ms) : between(20us, 300us);
    return last = std::max(now() + delay, last);
  }

  /// Delivers `what` in the order of this pair. `what` itself checks whether its receiver still lives.
  void send(address from, address to, std::function<void()> what, repeats again = repeats::at_once,
            std::uint64_t line = 0) {
    auto deliver = [this, what = std::move(what)] {
      ++messages;
      before_message();
      what();
    };
    bool twice = plan.repeat > 0 && again != repeats::never && random.chance(plan.repeat);
    if (twice) {
      clock.at(arrival(from, to, line), deliver);
      if (again == repeats::late)
        return clock.at(now() + between(1ms, 20s), std::move(deliver));
    }
    clock.at(arrival(from, to, line), std::move(deliver));
  }

private:
  std::unordered_map<std::uint64_t, time_point> last_;
};

} // namespace troupe::sim
