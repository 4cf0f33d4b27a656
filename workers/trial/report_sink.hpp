#pragma once
// Where a trial's reports and checkpoints go: the cluster, or a folder.

#include "workers/trial/settings.hpp"
#include "workers/trial/troupe/trial.hpp"

#include <functional>
#include <map>

namespace troupe::trial {

using file_list = std::map<std::string, std::uint64_t>; ///< relative path to bytes

/// Called by one thread.
class report_sink {
public:
  virtual ~report_sink() = default;
  virtual result<void> training(std::int64_t steps, const metrics& m) = 0; ///< never waits long
  virtual result<void> validation(std::int64_t steps,
                                  const metrics& m) = 0; ///< returns when durable and decided upon
  /// The folder `uuid` in checkpoint_root() is complete and durable; returns when it is recorded.
  virtual result<void> checkpoint(const std::string& uuid, std::int64_t steps, const file_list& files) = 0;
  virtual result<std::filesystem::path> checkpoint_root() = 0;
  virtual result<std::filesystem::path> resume_from() = 0; ///< empty on a fresh start
  virtual void progress(double done) = 0;                  ///< 0..1
  virtual std::string stop_reason() = 0;                   ///< empty: go on
  virtual result<void> finish() = 0;     ///< waits until all is durable, or the agent was silent too long
  virtual std::string place() const = 0; ///< folder of the local run, for people; empty on a cluster

  /// For the worker: calls `order` with what its stand-in sends, `refused` once where the agent wants nothing
  /// of this process; from any thread, until the next call. Nothing where there is no cluster.
  virtual void listen(std::function<void(std::uint64_t protocol, std::string)> /*order*/,
                      std::function<void(std::string)> /*refused*/) {}
  /// To the stand-in; a status that waits to be sent is replaced by a newer one. From any thread.
  virtual void say(std::uint64_t /*protocol*/, std::string /*word*/) {}
};

result<std::unique_ptr<report_sink>> open_local_run(const settings& s, const std::string& program);
result<std::unique_ptr<report_sink>> open_task_link(const settings& s);

std::int64_t now_us(); ///< since 1970

} // namespace troupe::trial
