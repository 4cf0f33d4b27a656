#pragma once
// Writes the durable reports of the tasks of one host as event files for TensorBoard, as Determined's library
// does for the scripts that use it: below the folder of the trial's checkpoints,
// CLUSTER/tensorboard/experiment/N/trial/N. On a thread of its own; what cannot be written is left out, as
// the reports themselves are in the journal.

#include "model/ids.hpp"
#include "storage/journal.hpp"

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace troupe {

/// Safe from any thread; no call waits for a disk.
class event_writer {
public:
  /// `tasks`: folder of all tasks of the host, where each has its launch order. `complain` is told, from the
  /// thread, of the first that cannot be written of each task.
  event_writer(std::filesystem::path tasks, std::function<void(const std::string&)> complain);
  /// Writes what waits.
  ~event_writer();
  event_writer(const event_writer&) = delete;
  event_writer& operator=(const event_writer&) = delete;

  /// Reports of a trial that are durable now. Beyond `most_waiting` they are dropped.
  void add(allocation_id of, std::vector<storage::report_batch::report> reports);
  /// Nothing more comes of it: its file is closed.
  void end(allocation_id of);

  static constexpr std::size_t most_waiting = 100'000;

private:
  struct job {
    allocation_id of;
    std::vector<storage::report_batch::report> reports; ///< empty: the end
  };
  struct file {
    int fd = -1;
    bool refused = false; ///< nothing is written for it
  };

  void work();
  void write(const job& x);
  file& open(allocation_id of);
  void refuse(allocation_id of, file& x, const std::string& why);

  const std::filesystem::path tasks_;
  const std::function<void(const std::string&)> complain_;
  std::mutex mutex_; ///< guards the next three
  std::deque<job> jobs_;
  std::size_t waiting_ = 0;
  bool stopping_ = false;
  std::condition_variable changed_;
  std::map<allocation_id, file> files_; ///< of the thread
  std::thread thread_;
};

} // namespace troupe
