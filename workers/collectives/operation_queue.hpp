#pragma once
// The operations of one process on one group, in the order of their calls, with a thread for those that run
// beside the caller.

#include "workers/collective.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

struct pending::state {
  std::mutex lock;
  std::condition_variable changed;
  bool ended = false;
  result<void> outcome;

  virtual ~state() = default;
  virtual bool done() {
    std::lock_guard held(lock);
    return ended;
  }
  virtual result<void> wait() {
    std::unique_lock held(lock);
    changed.wait(held, [this] { return ended; });
    return outcome;
  }
  void end(result<void> with) {
    std::lock_guard held(lock);
    outcome = std::move(with);
    ended = true;
    changed.notify_all();
  }
};

class operation_queue {
public:
  /// What the queue does for its member. All but `execute` run on the queue's thread alone; `execute` also on
  /// a caller's.
  struct duties {
    std::function<result<void>(const operation&)> execute; ///< one at a time
    std::function<void()> begin = [] {};                   ///< first, before the constructor returns
    std::function<void()> tick = [] {}; ///< about every `pause`, also while a caller executes
    std::function<void()> end = [] {};  ///< last
    std::chrono::milliseconds pause{250};
  };
  explicit operation_queue(duties of);
  ~operation_queue(); ///< runs what is still queued first
  operation_queue(const operation_queue&) = delete;

  result<void> perform(const operation& x); ///< runs at once on the calling thread where nothing is queued
  pending start(operation x);

private:
  struct entry {
    operation what;
    std::shared_ptr<pending::state> handle;
  };
  void run();

  duties duties_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<entry> queue_;
  std::atomic<int> under_way_ =
    0; ///< operations, queued or being executed; a caller who makes it 1 from 0 executes
  bool closing_ = false;
  bool begun_ = false;
  std::thread thread_;
};

} // namespace troupe
