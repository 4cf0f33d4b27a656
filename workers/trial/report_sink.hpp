#pragma once
// Takes a trial's reports and checkpoints to the cluster or to a folder.

#include "workers/trial/settings.hpp"
#include "workers/trial/troupe/trial.hpp"

#include <functional>
#include <map>

namespace troupe::trial {

using file_list = std::map<std::string, std::uint64_t>; ///< bytes by relative path

/// One thread calls it.
class report_sink {
public:
  virtual ~report_sink() = default;
  virtual result<void> training(std::int64_t steps, const metrics& m) = 0; ///< never waits long
  virtual result<void> validation(std::int64_t steps,
                                  const metrics& m) = 0; ///< returns when durable and decided upon
  /// Reports that the folder `uuid` in checkpoint_root() is complete and durable; returns when that is
  /// recorded.
  virtual result<void> checkpoint(const std::string& uuid, std::int64_t steps, const file_list& files) = 0;
  virtual result<std::filesystem::path> checkpoint_root() = 0;
  virtual result<std::filesystem::path> resume_from() = 0; ///< empty on a fresh start
  virtual void progress(double done) = 0;                  ///< `done` is from 0 to 1
  virtual std::string stop_reason() = 0;                   ///< empty: the trial goes on
  virtual result<void> finish() = 0;     ///< waits until all is durable, or the agent was silent for too long
  virtual std::string place() const = 0; ///< folder of a local run, to be shown; empty on a cluster

  /// For the worker. From any thread, and until the next call: `order` gets what the stand-in sends, and
  /// `refused` is called once if the agent accepts nothing of this process. Does nothing without a cluster.
  virtual void listen(std::function<void(std::uint64_t protocol, std::string)> /*order*/,
                      std::function<void(std::string)> /*refused*/) {}
  /// Sends a word to the stand-in. A newer status replaces one that waits to be sent. Any thread may call it.
  virtual void say(std::uint64_t /*protocol*/, std::string /*word*/) {}
};

result<std::unique_ptr<report_sink>> open_local_run(const settings& s, const std::string& program);
result<std::unique_ptr<report_sink>> open_task_link(const settings& s);

std::int64_t now_us(); ///< microseconds since 1970

} // namespace troupe::trial
