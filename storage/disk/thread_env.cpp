#include "storage/disk/thread_env.hpp"

#include "system/background_thread.hpp"

#include <pthread.h>

namespace troupe::storage {
thread_env::thread_env(std::unique_ptr<rocksdb::Env> target, std::shared_ptr<rocksdb::FileSystem> files)
    : EnvWrapper(std::move(target)) {
  file_system_ = std::move(files); // otherwise the wrapper would not use it
  system_clock_ = rocksdb::SystemClock::Default();
}

thread_env::~thread_env() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(guard_);
    closing_ = true;
    for (auto& pool : pools_)
      for (auto& thread : pool.threads)
        threads.push_back(std::move(thread));
  }
  changed_.notify_all();
  for (auto& thread : threads)
    thread.join(); // each thread first does what is queued
}

void thread_env::Schedule(void (*function)(void*), void* argument, Priority where, void* tag,
                          void (*dropped)(void*)) {
  std::lock_guard lock(guard_);
  auto& pool = pools_[where];
  pool.waiting.push_back({function, argument, tag, dropped});
  if (pool.waiting.size() > static_cast<std::size_t>(pool.idle) &&
      static_cast<int>(pool.threads.size()) < pool.wanted)
    pool.threads.emplace_back([this, &pool] { work(pool); });
  changed_.notify_all();
}

void thread_env::work(pool& on) {
  ::pthread_setname_np(::pthread_self(), "troupe.db");
  if (&on == &pools_[LOW] || &on == &pools_[BOTTOM])
    take_short_slices(); // not niceness: on a busy host compactions would starve, and writers wait for them
  std::unique_lock lock(guard_);
  for (;;) {
    ++on.idle;
    changed_.wait(lock, [&] { return closing_ || !on.waiting.empty(); });
    --on.idle;
    if (on.waiting.empty())
      return;
    const auto next = on.waiting.front();
    on.waiting.pop_front();
    lock.unlock();
    next.function(next.argument);
    lock.lock();
  }
}

int thread_env::UnSchedule(void* tag, Priority where) {
  std::vector<job> gone;
  {
    std::lock_guard lock(guard_);
    auto& waiting = pools_[where].waiting;
    for (auto at = waiting.begin(); at != waiting.end();)
      if (at->tag == tag) {
        gone.push_back(*at);
        at = waiting.erase(at);
      } else {
        ++at;
      }
  }
  for (const auto& one : gone)
    if (one.dropped)
      one.dropped(one.argument);
  return static_cast<int>(gone.size());
}

unsigned int thread_env::GetThreadPoolQueueLen(Priority where) const {
  std::lock_guard lock(guard_);
  return static_cast<unsigned int>(pools_[where].waiting.size());
}

void thread_env::SetBackgroundThreads(int number, Priority where) {
  std::lock_guard lock(guard_);
  pools_[where].wanted = std::max(number, 1);
}

int thread_env::GetBackgroundThreads(Priority where) {
  std::lock_guard lock(guard_);
  return pools_[where].wanted;
}

void thread_env::IncBackgroundThreadsIfNeeded(int number, Priority where) {
  std::lock_guard lock(guard_);
  pools_[where].wanted = std::max(pools_[where].wanted, number);
}

} // namespace troupe::storage
