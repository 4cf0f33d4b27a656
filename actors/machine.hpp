#pragma once
// What all machines share: the step they answer with, and how the compiler picks a visitor.

#include "model/facts.hpp"

#include <map>
#include <variant>
#include <vector>

namespace troupe {

/// What one event led to: facts to append, then actions to run, each in order.
template <class Fact, class Action>
struct step_of {
  std::vector<Fact> facts;
  std::vector<Action> actions;
};

/// The event of every machine's timer: `deadline()` may be due.
struct time_passed {
  MSGPACK_DEFINE_ARRAY()
};

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>; // clang 14 needs it said

/// How often a child that died is made again. Soft state: whoever owns it begins anew after its own restart.
template <class Id>
class child_restarts {
public:
  static constexpr int most = 5; ///< deaths of one child
  bool again(const Id& child) { return ++deaths_[child] <= most; }

private:
  std::map<Id, int> deaths_;
};

} // namespace troupe
