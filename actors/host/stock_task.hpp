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

/// Ports of this host that nobody but the allocation uses; the client's processes meet there. Those of a gang
/// are the chief's, which the others learn at the rendezvous: there they are 0 until then.
struct task_ports {
  int ssh = 12350, communication_1 = 12360, communication_2 = 12365, c10d = 29400;
};

/// The account that the agent runs as.
struct agent_account {
  std::uint32_t uid = 0, gid = 0;
  std::string user = "root"; ///< its number where it has no name
};

struct task_surroundings {
  std::string agent, agent_id;
  std::string harness_endpoint, harness_file;
  std::string python;     ///< folder that holds the package `troupe`
  std::string python_bin; ///< put in front of PATH; may be empty
  std::string
    programs; ///< the folder of troupe itself and of the examples in C++, put behind PATH; may be empty
  std::string master_url; ///< address of the agent's own listener, which forwards: "http://127.0.0.1:40123"
  std::string shell = "/bin/sh"; ///< shell that runs the entrypoint script and the users' hooks
  task_ports ports;
  /// What platform_paths() says of a PATH, perhaps remembered; empty: it is asked.
  std::function<std::vector<std::string>(const std::string&)> platform;
  agent_account account;
  std::vector<std::string> forbidden; ///< folders of the host, without links, that no task gets mounted
};

inline constexpr const char* task_run_dir = "/run/determined";
inline constexpr const char* task_workdir = "/run/determined/workdir";
inline constexpr const char* pool_hook_file = "dynamic-tcd-startup-hook.sh"; ///< below task_run_dir

/// A file of a task, by its path below /run/determined.
struct task_file {
  std::string path, text;
  int mode = 0644;
};

/// Folders below /run/determined that are there before a task starts.
inline constexpr const char* task_folders[] = {"info", "workdir", "pythonuserbase", "train/model",
                                               "train/logs"};

/// DET_* and what belongs to it.
std::map<std::string, std::string> stock_variables(allocation_id id, const task_launch& launch,
                                                   const task_surroundings& around);

/// The entrypoint scripts, and info/*.json as determined.get_cluster_info() reads them.
std::vector<task_file> stock_files(allocation_id id, const task_launch& launch,
                                   const task_surroundings& around);

/// A link, by its path in the task's folder.
struct task_link {
  std::string path, target;
};
/// Launchers of several processes send the output of each of them there.
std::vector<task_link> stock_links();
/// The name that the client gives to /tmp/tensorboard, by its path in the task's folder.
std::string stock_tensorboard_link(const task_launch& launch);

/// The command as it is started: "module:Class" goes through launch.torch_distributed, everything through the
/// entrypoint script.
std::vector<std::string> stock_command(std::vector<std::string> entrypoint, const std::string& shell);

/// The merged configuration as a task sees it. A shared_fs storage is given as the directory that it is on
/// this host: the client would look for it at /determined_shared_fs, which is nowhere.
value config_for_task(const task_launch& launch);

} // namespace troupe
