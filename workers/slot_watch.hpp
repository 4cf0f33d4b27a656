#pragma once
// Looks at the slots of a host from time to time, on a thread of its own, because a driver may be slow.

#include "workers/slot_devices.hpp"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace troupe::workers {

/// What the processes of a task use. Empty fields are unknown: they take two looks, or the kernel does not
/// tell.
struct task_look {
  std::int64_t pid = 0;               ///< the first process of the task
  std::optional<double> cpu_percent;  ///< 100 is one core
  std::optional<double> memory_bytes; ///< resident memory of all processes; shared memory counts for each
  std::optional<double> read_bytes_per_s, write_bytes_per_s; ///< from and to disks
};

/// What a process and its descendants have used. `ticks` also counts descendants that have ended and were
/// waited for.
struct process_use {
  std::uint64_t ticks = 0; ///< of the kernel's clock
  std::uint64_t resident_bytes = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0; ///< from and to disks
  friend bool operator==(const process_use&, const process_use&) = default;
};

class slot_watch {
public:
  struct held {
    std::int64_t pid = 0; ///< the first process of the task
    std::vector<int> slots;
  };
  /// Where `devices` is null there are `slots` processors; a slot's utilisation is that of its task's
  /// processes.
  slot_watch(std::shared_ptr<slot_devices> devices, int slots, std::chrono::milliseconds every);
  ~slot_watch();
  slot_watch(const slot_watch&) = delete;

  void hold(std::vector<held> tasks); ///< replaces the tasks that run now
  /// The newest look, one entry for each slot; empty before the first.
  std::vector<slot_look> newest() const;
  std::vector<task_look> newest_of_tasks() const; ///< one entry for each task that was held then
  std::uint64_t looks() const;                    ///< how often it has looked

private:
  void run();
  std::vector<task_look> look_at_tasks(const std::vector<held>& tasks);
  std::vector<slot_look> look_at_processors(const std::vector<held>& tasks,
                                            const std::vector<task_look>& used) const;

  std::shared_ptr<slot_devices> devices_;
  int slots_;
  std::chrono::milliseconds every_;
  std::string processor_;
  std::map<std::int64_t, process_use> used_; ///< use at the last look, by the task's first process
  std::chrono::steady_clock::time_point looked_at_{};
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::vector<held> held_;
  std::vector<slot_look> newest_;
  std::vector<task_look> tasks_;
  std::uint64_t looks_ = 0;
  bool closing_ = false;
  std::thread thread_;
};

/// What each of these processes and its descendants have used. `proc` is /proc.
std::map<std::int64_t, process_use> use_of_trees(const std::vector<std::int64_t>& roots,
                                                 const std::string& proc = "/proc");

} // namespace troupe::workers
