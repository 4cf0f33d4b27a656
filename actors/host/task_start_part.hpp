#pragma once
// How one task is started on this host: its files, its ports, its command, its sandbox. Done by the threads
// of the worker runtime, several tasks at once.

#include "actors/host/stock_task.hpp"
#include "actors/host/worker_runtime.hpp"
#include "actors/host/worker_runtime_actor.hpp"
#include "workers/owned_fd.hpp"
#include "workers/port_claims.hpp"

#include <memory>
#include <mutex>

namespace troupe::workers {
class process_runtime;
class zygote_keeper;
} // namespace troupe::workers

namespace troupe {

/// Safe from any thread.
class task_starter {
public:
  task_starter(const worker_runtime_setup& setup, workers::process_runtime& runtime,
               workers::zygote_keeper* zygotes);

  /// Writes its files and starts it; `prepared` is called in between, and nothing of the task runs before.
  /// Where it fails, nothing of the task is left but its ports, until `release`.
  result<void> start(const start_order& order, const std::function<void(hosted_task)>& prepared);

  /// What an earlier life kept beside the task.
  std::optional<hosted_task> recall(allocation_id id) const;
  void keep_ports(allocation_id id, const std::vector<int>& ports);
  void release(allocation_id id);
  /// Tells the zygotes what a process that was asked of them had imported at its end.
  void learn(allocation_id id);

private:
  struct context {
    std::string name, tar; ///< an empty tar has no files
  };
  result<std::vector<int>> ports_of(const start_order& order, const task_launch& launch);
  result<void> start_in(const std::filesystem::path& folder, const start_order& order, task_launch& launch,
                        const std::function<void(hosted_task)>& prepared);
  workers::owned_fd choose_start(workers::task_spec& spec, const task_launch& launch,
                                 const std::filesystem::path& folder);
  workers::owned_fd ask_zygote(const std::string& id, const std::string& program,
                               const std::vector<std::string>& argv, const std::string& script,
                               const std::vector<std::string>& env, const task_launch& launch,
                               const std::filesystem::path& work);
  workers::fence_spec fence_of(const start_order& order) const;
  result<std::string> fetch(const std::string& name);
  std::vector<std::string> platform(const task_surroundings& around, const std::string& path_variable);

  const worker_runtime_setup setup_;
  workers::process_runtime& runtime_;
  workers::zygote_keeper* const zygotes_; ///< null where their files are missing
  /// Hooks are written for bash, where there is one.
  const std::string shell_;

  std::mutex mutex_; ///< guards what follows
  workers::port_claims ports_;
  std::map<allocation_id, std::string> zygote_keys_; ///< until the task ends
  std::shared_ptr<const context> newest_context_;    ///< small ones only
  struct known_platform {
    std::vector<std::string> paths;
    std::chrono::steady_clock::time_point until;
  };
  std::map<std::string, known_platform> platforms_; ///< by PATH, for a moment: tasks come in rows
};

} // namespace troupe
