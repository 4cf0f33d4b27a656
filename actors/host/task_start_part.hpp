#pragma once
// Starts one task on this host: makes its files, ports, command and sandbox. The threads of the worker
// runtime call it, for several tasks at once.

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

/// Any thread may call any function.
class task_starter {
public:
  task_starter(const worker_runtime_setup& setup, workers::process_runtime& runtime,
               workers::zygote_keeper* zygotes);

  /// Writes the task's files and starts the task; `prepared` is called in between, before anything of the
  /// task runs. If the start fails, nothing of the task remains but its ports, which it holds until
  /// `release`.
  result<void> start(const start_order& order, const std::function<void(hosted_task)>& prepared);

  /// What an earlier life of the runtime kept beside the task; none if it cannot be read.
  std::optional<hosted_task> recall(allocation_id id) const;
  void keep_ports(allocation_id id, const std::vector<int>& ports);
  void release(allocation_id id);
  /// Tells the zygotes which modules a process that was asked of them had imported at its end.
  void learn(allocation_id id);

private:
  struct context {
    std::string name, tar; ///< empty: the context has no files
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
  std::string config(const task_launch& launch);
  std::vector<std::string> platform(const task_surroundings& around, const std::string& path_variable);

  const worker_runtime_setup setup_;
  /// What no task gets into its sandbox: the data directory, and folders of the kernel.
  const std::vector<std::string> forbidden_;
  workers::process_runtime& runtime_;
  workers::zygote_keeper* const zygotes_; ///< null if the files of the zygotes are missing
  /// Shell that runs the entrypoint script and the hooks: bash if this host has it, because hooks are written
  /// for bash.
  const std::string shell_;

  std::mutex mutex_; ///< guards all members below
  workers::port_claims ports_;
  std::map<allocation_id, std::string> zygote_keys_; ///< each is kept until its task ends
  std::shared_ptr<const context> newest_context_;    ///< the newest context, if it is small
  struct config_text {
    shared_value config;
    std::string checkpoint_dir, text;
  };
  std::shared_ptr<const config_text> newest_config_; ///< as config_for_task() makes it
  struct known_platform {
    std::vector<std::string> paths;
    std::chrono::steady_clock::time_point until;
  };
  /// By PATH; kept for a moment, as tasks often follow each other.
  std::map<std::string, known_platform> platforms_;
};

} // namespace troupe
