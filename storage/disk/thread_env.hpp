#pragma once
// RocksDB's environment with threads of its own, which end with it. The threads of Env::Default() outlive
// every database; a process that ends its node would see them as leaked.

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::storage {

/// Files go to `files`. Flushes and compactions go to threads that start when first needed; the destructor
/// joins them.
class thread_env final : public rocksdb::EnvWrapper {
public:
  thread_env(std::unique_ptr<rocksdb::Env> target, std::shared_ptr<rocksdb::FileSystem> files);
  ~thread_env() override;

  void Schedule(void (*function)(void*), void* argument, Priority pool, void* tag,
                void (*dropped)(void*)) override;
  int UnSchedule(void* tag, Priority pool) override;
  unsigned int GetThreadPoolQueueLen(Priority pool) const override;
  void SetBackgroundThreads(int number, Priority pool) override;
  int GetBackgroundThreads(Priority pool) override;
  void IncBackgroundThreadsIfNeeded(int number, Priority pool) override;
  int ReserveThreads(int, Priority) override { return 0; }
  int ReleaseThreads(int, Priority) override { return 0; }
  void LowerThreadPoolIOPriority(Priority) override {}
  void LowerThreadPoolCPUPriority(Priority) override {}
  rocksdb::Status LowerThreadPoolCPUPriority(Priority, rocksdb::CpuPriority) override {
    return rocksdb::Status::OK();
  }

private:
  struct job {
    void (*function)(void*);
    void* argument;
    void* tag;
    void (*dropped)(void*);
  };
  struct pool {
    std::deque<job> waiting;
    std::vector<std::thread> threads;
    int wanted = 1, idle = 0;
  };
  void work(pool& on);

  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::array<pool, Priority::TOTAL> pools_;
  bool closing_ = false;
};

} // namespace troupe::storage
