#pragma once
// What Determined's stock client expects around a task's processes: variables, files below /run/determined,
// and the forms of an entrypoint. Pure.
//
// Of Determined's own scripts, prep_container, ship_logs and exec.launch have nothing left to do on a single
// agent: the agent unpacks the files, writes what they would write, reads the output itself and starts the
// entrypoint. That saves each task their imports, seconds of CPU. launch.torch_distributed, wrap_rank,
// pid_server and exec.harness run as they are. Where several agents have to find each other, the entrypoint
// script asks for the rendezvous itself, as a process that a zygote forks does.

#include "actors/allocation/task_launch.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// Ports of this host at which the client's processes meet; no other task uses them. The ports of a gang are
/// those of the chief's host. The other hosts learn them at the rendezvous and have 0 here until then.
struct task_ports {
  int ssh = 12350, communication_1 = 12360, communication_2 = 12365, c10d = 29400;
};

/// The account under which the agent runs.
struct agent_account {
  std::uint32_t uid = 0, gid = 0;
  std::string user = "root"; ///< the account's number if it has no name
};

struct task_surroundings {
  std::string agent, agent_id;
  std::string harness_endpoint, harness_file;
  std::string python;     ///< folder that holds the Python package `troupe`
  std::string python_bin; ///< folder that is put in front of PATH; may be empty
  /// Folder of the program troupe and of the examples in C++, put at the end of PATH; may be empty.
  std::string programs;
  std::string master_url; ///< address of the agent's own listener, which forwards: "http://127.0.0.1:40123"
  std::string shell = "/bin/sh"; ///< shell that runs the entrypoint script and the users' hooks
  task_ports ports;
  /// Returns what platform_paths() says of a PATH, perhaps from memory; if the function is empty,
  /// platform_paths() is called.
  std::function<std::vector<std::string>(const std::string&)> platform;
  /// Returns config_for_task() as JSON, perhaps from memory; if the function is empty, config_for_task() is
  /// called.
  std::function<std::string(const task_launch&)> config;
  agent_account account;
  /// Folders of the host, with all links resolved, that are never mounted for a task.
  std::vector<std::string> forbidden;
};

inline constexpr const char* task_run_dir = "/run/determined";
inline constexpr const char* task_workdir = "/run/determined/workdir";
inline constexpr const char* pool_hook_file = "dynamic-tcd-startup-hook.sh"; ///< path below task_run_dir

/// A file of a task; `path` is relative to /run/determined.
struct task_file {
  std::string path, text;
  int mode = 0644;
};

/// Folders below /run/determined that exist before a task starts.
inline constexpr const char* task_folders[] = {"info", "workdir", "pythonuserbase", "train/model",
                                               "train/logs"};

/// The variables DET_* and those that the client needs beside them.
std::map<std::string, std::string> stock_variables(allocation_id id, const task_launch& launch,
                                                   const task_surroundings& around);

/// The entrypoint scripts, and the files info/*.json that determined.get_cluster_info() reads.
std::vector<task_file> stock_files(allocation_id id, const task_launch& launch,
                                   const task_surroundings& around);

/// A link; `path` is relative to the task's folder.
struct task_link {
  std::string path, target;
};
/// The links to which launchers of several processes send the output of each process.
std::vector<task_link> stock_links();
/// The link that stands for the client's /tmp/tensorboard, as a path relative to the task's folder.
std::string stock_tensorboard_link(const task_launch& launch);

/// The command that starts the task: "module:Class" is run by launch.torch_distributed, and every command is
/// run by the entrypoint script.
std::vector<std::string> stock_command(std::vector<std::string> entrypoint, const std::string& shell);

/// The merged configuration as the task reads it. A shared_fs storage becomes a directory with its path on
/// this host: the client would look for it at /determined_shared_fs, which does not exist here.
value config_for_task(const task_launch& launch);

} // namespace troupe
