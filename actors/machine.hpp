#pragma once
// What all machines share: the step that they return, and how the compiler chooses a visitor.

#include "model/facts.hpp"

#include <deque>
#include <map>
#include <variant>
#include <vector>

namespace troupe {

/// What one event caused: facts to append, then actions to run, each in order.
template <class Fact, class Action>
struct step_of {
  std::vector<Fact> facts;
  std::vector<Action> actions;
};

/// The event of every machine's timer: the time of `deadline()` may have come.
struct time_passed {
  TROUPE_PACKED()
};

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>; // clang 14 does not deduce this by itself

/// Decides whether a child that died is made again: at most 5 times in a minute; after that, its owner fails
/// with the reason. Soft state: an owner that is made again itself begins to count anew.
template <class Id>
class child_restarts {
public:
  static constexpr std::size_t most = 5;
  static constexpr duration within = std::chrono::seconds(60);

  bool again(const Id& child, time_point now) {
    auto& deaths = deaths_[child];
    while (!deaths.empty() && deaths.front() + within <= now)
      deaths.pop_front();
    deaths.push_back(now);
    return deaths.size() <= most;
  }

private:
  std::map<Id, std::deque<time_point>> deaths_;
};

} // namespace troupe
