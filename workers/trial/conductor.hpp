#pragma once
// Decides how far a trial trains. On a cluster that is the worker actor of this process
// (actors/worker/worker_actor.cpp), which hears its allocation; by hand the trial trains to its end.

#include "model/result.hpp"
#include "workers/worker_messages.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::trial {

class report_sink;

/// The sum of all orders so far, which the user's thread follows.
struct mandate {
  std::int64_t until = 0; ///< train up to this batch
  bool may_rebuild = false;
  std::uint64_t validations = 0, checkpoints = 0; ///< orders besides the schedule, counted from the start
  std::string stop;                               ///< why to stop; empty: go on
  std::uint32_t generation = 0;                   ///< number of the group that is wanted
  std::vector<int> members;                       ///< members of the wanted group
  std::string refused; ///< why the cluster accepts nothing of this process; empty: it does
};

/// Hands orders from the actor that hears them to the thread that trains. A batch costs the thread two atomic
/// operations.
class handover {
public:
  // For the thread.

  /// The newest mandate; valid until the next call.
  const mandate& look() {
    if (const auto version = version_.load(std::memory_order_acquire); version != seen_) {
      std::lock_guard held(lock_);
      mine_ = newest_;
      seen_ = version_.load(std::memory_order_relaxed);
    }
    return mine_;
  }
  /// Returns when `enough(mandate)`, or after `patience`.
  template <class Enough>
  const mandate& await(Enough enough, std::chrono::milliseconds patience = std::chrono::hours(24 * 365)) {
    std::unique_lock held(lock_);
    changed_.wait_for(held, patience, [&] { return enough(newest_); });
    mine_ = newest_;
    seen_ = version_.load(std::memory_order_relaxed);
    return mine_;
  }
  void stepped(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }

  // For the actor.

  void give(mandate x) {
    {
      std::lock_guard held(lock_);
      newest_ = std::move(x);
      version_.fetch_add(1, std::memory_order_release);
    }
    changed_.notify_all();
  }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }

private:
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::int64_t> step_{0};
  std::mutex lock_;
  std::condition_variable changed_;
  mandate newest_;
  mandate mine_; ///< the thread's copy
  std::uint64_t seen_ = 0;
};

class conductor {
public:
  virtual ~conductor() = default;
  handover& orders() { return orders_; }
  /// Says that the thread has come to another phase, in this generation of its group.
  virtual void enter(workers::worker_phase phase, std::uint32_t generation, std::int64_t step,
                     std::int64_t batches) = 0;
  /// Says that the trial ends with this failure; returns when the message is on its way.
  virtual void fail(const std::string& why) = 0;

protected:
  handover orders_;
};

/// Trains to the end.
class by_hand final : public conductor {
public:
  by_hand() { orders_.give({.until = std::numeric_limits<std::int64_t>::max()}); }
  void enter(workers::worker_phase, std::uint32_t, std::int64_t, std::int64_t) override {}
  void fail(const std::string&) override {}
};

/// For a cluster. Uses the link of `sink`, which must outlive it. Defined beside the worker actor.
std::unique_ptr<conductor> start_worker(report_sink& sink);

} // namespace troupe::trial
