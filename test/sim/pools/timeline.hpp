#pragma once
// Virtual time: tasks in the order of their times; tasks of the same time run in the order in which they were
// scheduled.

#include "model/time.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::sim {

class timeline {
public:
  using task = std::function<void()>;

  time_point now() const { return now_; }
  bool empty() const { return heap_.empty(); }

  void at(time_point when, task what) {
    heap_.push_back({std::max(when, now_), next_++, std::move(what)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  /// Runs the next task; false where none is left.
  bool step() {
    if (heap_.empty())
      return false;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    auto due = std::move(heap_.back());
    heap_.pop_back();
    now_ = due.when;
    due.what();
    return true;
  }

private:
  struct entry {
    time_point when;
    std::uint64_t order;
    task what;
  };
  static bool later(const entry& a, const entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }

  std::vector<entry> heap_;
  std::uint64_t next_ = 0;
  time_point now_{1'700'000'000s};
};

} // namespace troupe::sim
