#pragma once
// The launch order of one part of a task: what the master tells an agent, and what the agent stores beside
// the task for its next life. The owner of the allocation makes it, the allocation adds what it knows, and
// the host adds what depends on the host. Pure.

#include "actors/allocation/launch_spec.hpp"
#include "actors/allocation/sandbox_terms.hpp"
#include "model/ids.hpp"
#include "model/result.hpp"
#include "model/shared_value.hpp"
#include "model/task_service.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

enum class launch_mode : int {
  per_agent = 0, ///< one process on each agent, which starts its own ranks
  per_slot,      ///< one process for each slot
};

struct task_launch {
  // The task.
  experiment_id experiment;          ///< experiment of the task; 0: none
  std::string task_name;             ///< see model/names.hpp
  std::string owner;                 ///< user that the task runs for; may be empty
  std::string user_token;            ///< token that opens the API in the owner's name; empty: none
  std::string cluster_id, master_id; ///< empty: "troupe"
  shared_value config;               ///< complete configuration
  value hparams = value::object();
  std::uint32_t seed = 0;
  std::string context;                 ///< name of the blob with the task's files; empty: no files
  std::vector<std::string> entrypoint; ///< a shell's text is {"/bin/sh", "-c", TEXT}
  launch_mode mode = launch_mode::per_agent;
  std::map<std::string, std::string> env;
  std::string checkpoint_dir; ///< absolute folder for checkpoints; empty: the task keeps no checkpoints
  /// Name of the store that the folder belongs to, as in checkpoint_place; empty: "directory:" and the
  /// folder.
  std::string checkpoint_store;
  // The run.
  std::string allocation_name; ///< see model/names.hpp
  std::string session_token;   ///< token that opens the API to this run alone; empty: none
  std::string token;           ///< token that opens the harness gateway to this run alone
  std::string resume;          ///< checkpoint to start from; empty: none
  std::int64_t resume_steps = 0;
  // The part on one agent.
  int node_rank = 0, nodes = 1;
  std::string resources_id; ///< see part_name
  std::vector<int> slots;
  int first_rank = 0, ranks = 1; ///< ranks on this agent, where every slot is a rank
  // The host of the part.
  std::vector<int> ports;                            ///< ports of the agent that this task alone uses
  std::optional<std::vector<std::string>> gpu_uuids; ///< none: the slots are not GPUs
  // The sandbox, as the task wants it.
  sandbox_terms sandbox;
  std::vector<task_service> services; ///< services of the task; only the part of node rank 0 has them
};

/// Fails with errc::invalid, the field and the reason, where no agent could start the task.
result<void> check(const task_launch& x);

/// Encodes the order as a msgpack map. Keys may only be added, and a reader ignores keys that it does not
/// know.
std::string encode(const task_launch& x);
/// Fails with errc::corrupt and the key, where a value has the wrong kind. A missing key has its default.
result<task_launch> decode_launch(std::string_view bytes);

} // namespace troupe
