#pragma once
// The operations of one process on one group, in the order of their calls. A thread runs those that run
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
  /// What the queue calls in its member. All but `execute` run only on the queue's thread; `execute` also
  /// runs on a caller's.
  struct duties {
    std::function<result<void>(const operation&)> execute; ///< one at a time
    std::function<void()> begin = [] {};                   ///< called first, before the constructor returns
    std::function<void()> tick = [] {}; ///< called about every `pause`, also while a caller executes
    std::function<void()> end = [] {};  ///< called last
    std::chrono::milliseconds pause{250};
  };
  explicit operation_queue(duties of);
  ~operation_queue(); ///< first runs what is still queued
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
    0; ///< operations that are queued or being executed; the caller who raises it from 0 to 1 executes
  bool closing_ = false;
  bool begun_ = false;
  std::thread thread_;
};

} // namespace troupe
