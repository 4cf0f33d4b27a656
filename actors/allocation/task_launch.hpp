#pragma once
// How one part of a task is started: what a master tells an agent, and what the agent keeps beside the task
// for its next life. The owner of the allocation makes it, the allocation adds what it knows, the host what
// is on the host. Pure.

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
  std::string owner;                 ///< account that it runs for; may be empty
  std::string user_token;            ///< opens the API in the owner's name; empty: none
  std::string cluster_id, master_id; ///< empty: "troupe"
  shared_value config;               ///< complete
  value hparams = value::object();
  std::uint32_t seed = 0;
  std::string context;                 ///< names the blob with its files; empty: no files
  std::vector<std::string> entrypoint; ///< a shell's text is {"/bin/sh", "-c", TEXT}
  launch_mode mode = launch_mode::per_agent;
  std::map<std::string, std::string> env;
  std::string checkpoint_dir; ///< absolute: the folder that it writes to; empty: it keeps no checkpoints
  std::string
    checkpoint_store; ///< whose folder that is, as in checkpoint_place; empty: "directory:" and the folder
  // The run.
  std::string allocation_name; ///< see model/names.hpp
  std::string session_token;   ///< opens the API to this run alone; empty: none
  std::string token;           ///< opens the harness gateway to this run alone
  std::string resume;          ///< checkpoint to start from, or empty
  std::int64_t resume_steps = 0;
  // The part on one agent.
  int node_rank = 0, nodes = 1;
  std::string resources_id; ///< see part_name
  std::vector<int> slots;
  int first_rank = 0, ranks = 1; ///< ranks on this agent, where every slot is a rank
  // The host of the part.
  std::vector<int> ports;                            ///< ports of the agent that this task alone uses
  std::optional<std::vector<std::string>> gpu_uuids; ///< none: its slots are not GPUs
  // The sandbox: of the task.
  sandbox_terms sandbox;
  std::vector<task_service> services; ///< of the part of node rank 0
};

/// errc::invalid with the field and the reason, where no agent could start it.
result<void> check(const task_launch& x);

/// A msgpack map; keys are only ever added, and a reader passes over those that it does not know.
std::string encode(const task_launch& x);
/// errc::corrupt with the key, where a value is of another kind; a key that is missing has its default.
result<task_launch> decode_launch(std::string_view bytes);

/// What the harness gateway has to know of a task.
struct launch_doors {
  std::string token, checkpoint_dir;
};
/// These two alone, for a part of the time; none where the bytes are no launch order.
std::optional<launch_doors> doors_in(std::string_view bytes);

} // namespace troupe
