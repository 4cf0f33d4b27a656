#pragma once
// Looks at the slots of a host now and then, on a thread of its own: a driver may take its time.

#include "workers/slot_devices.hpp"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace troupe::workers {

class slot_watch {
public:
  struct held {
    std::int64_t pid = 0; ///< the first process of the task
    std::vector<int> slots;
  };
  /// `devices` null: `slots` processors, whose utilisation is that of the processes of the task in the slot.
  slot_watch(std::shared_ptr<slot_devices> devices, int slots, std::chrono::milliseconds every);
  ~slot_watch();
  slot_watch(const slot_watch&) = delete;

  void hold(std::vector<held> tasks); ///< replaces the tasks that run now
  /// The newest look, one for each slot; none before the first.
  std::vector<slot_look> newest() const;
  std::uint64_t looks() const; ///< how often it has looked

private:
  void run();
  std::vector<slot_look> look_at_processors();

  std::shared_ptr<slot_devices> devices_;
  int slots_;
  std::chrono::milliseconds every_;
  std::string processor_;
  std::map<std::int64_t, std::uint64_t> ticks_; ///< at the last look, by the task's first process
  std::chrono::steady_clock::time_point looked_at_{};
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::vector<held> held_;
  std::vector<slot_look> newest_;
  std::uint64_t looks_ = 0;
  bool closing_ = false;
  std::thread thread_;
};

/// Clock ticks that each of these processes and their descendants have used, those that have ended and were
/// waited for included. `proc` is /proc.
std::map<std::int64_t, std::uint64_t> ticks_of_trees(const std::vector<std::int64_t>& roots,
                                                     const std::string& proc = "/proc");

} // namespace troupe::workers
