#pragma once
// Writes the durable reports of one host's tasks as event files for TensorBoard, as Determined's library does
// for the scripts that use it. The files lie below the folder of the trial's checkpoints, in
// CLUSTER/tensorboard/experiment/N/trial/N. The writer has a thread of its own; what it cannot write is left
// out, because the journal has the reports.

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

/// Any thread may call any function; no call waits for a disk.
class event_writer {
public:
  /// `tasks`: folder that holds the folders of all tasks of the host, each with its launch order. The
  /// writer's thread calls `complain` for each task once, with the first thing that cannot be written.
  event_writer(std::filesystem::path tasks, std::function<void(const std::string&)> complain);
  /// Writes the reports that still wait.
  ~event_writer();
  event_writer(const event_writer&) = delete;
  event_writer& operator=(const event_writer&) = delete;

  /// Writes reports of a trial that have become durable. If more than `most_waiting` wait, further ones are
  /// dropped.
  void add(allocation_id of, std::vector<storage::report_batch::report> reports);
  /// Closes the allocation's file: no further reports come.
  void end(allocation_id of);

  static constexpr std::size_t most_waiting = 100'000;

private:
  struct job {
    allocation_id of;
    std::vector<storage::report_batch::report> reports; ///< empty: the allocation has ended
  };
  struct file {
    int fd = -1;
    bool refused = false; ///< whether nothing is written for this allocation
  };

  void work();
  void write(const job& x);
  file& open(allocation_id of);
  void refuse(allocation_id of, file& x, const std::string& why);

  const std::filesystem::path tasks_;
  const std::function<void(const std::string&)> complain_;
  std::mutex mutex_; ///< guards the next three members
  std::deque<job> jobs_;
  std::size_t waiting_ = 0;
  bool stopping_ = false;
  std::condition_variable changed_;
  std::map<allocation_id, file> files_; ///< only the thread uses these
  std::thread thread_;
};

} // namespace troupe
