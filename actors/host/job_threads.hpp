#pragma once
// A few threads for work that may wait for a disk or a network. The caller limits how many jobs wait.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe {

class job_threads {
public:
  explicit job_threads(int threads) {
    for (int n = 0; n < threads; ++n)
      threads_.emplace_back([this] { work(); });
  }
  /// Waits for the jobs that have begun; jobs that have not begun are dropped.
  ~job_threads() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    news_.notify_all();
    for (auto& thread : threads_)
      thread.join();
  }
  job_threads(const job_threads&) = delete;
  job_threads& operator=(const job_threads&) = delete;

  /// Any thread may call this. Jobs begin in the order of the calls.
  void run(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    news_.notify_one();
  }

private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      news_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_)
        return;
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace troupe
