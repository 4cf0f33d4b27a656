#pragma once
// What the runner of each trial last said it was doing ("training", "validating"). It is for people to read,
// bounded and not durable. Thread-safe.

#include "model/ids.hpp"

#include <map>
#include <mutex>

namespace troupe::api {

class runner_states {
public:
  void set(trial_id of, std::string state) {
    std::lock_guard lock{mutex_};
    if (states_.size() >= most_kept && !states_.contains(of))
      states_.erase(states_.begin()); // drops the oldest trial
    states_[of] = std::move(state);
  }
  /// The state of the trial's runner; empty where it has said none.
  std::string of(trial_id id) const {
    std::lock_guard lock{mutex_};
    auto known = states_.find(id);
    return known == states_.end() ? std::string() : known->second;
  }

private:
  static constexpr std::size_t most_kept = 10'000;
  mutable std::mutex mutex_;
  std::map<trial_id, std::string> states_;
};

} // namespace troupe::api
