#pragma once
// What the environment tells a trial: hyperparameters, ranks, where reports go. docs/task-link.md describes
// the variables.

#include "model/result.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace troupe::trial {

struct settings {
  std::string endpoint, endpoint_file; ///< endpoint of the agent's task link; both are empty in a run by hand
  std::string token, allocation, checkpoint_dir, resume;
  std::string run_name, resume_run; ///< set only in a run by hand
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  bool one_host = true;           ///< whether all ranks are on this host, even on several agents
  std::string member;             ///< the user's choice of "shm", "tcp" or "nccl"; empty: any
  std::string meeting;            ///< the host of rank 0, where ranks on several hosts meet
  int meeting_port = 0;           ///< 0: the ranks are on one host
  std::vector<std::string> hosts; ///< host of each rank; empty: the allocation is on one agent
  bool has_gpus = false;          ///< whether this process was given GPUs
  std::string group;              ///< names the group of ranks: the same on all of them, and of no other run
  std::string process;            ///< 32 hex digits, random
  std::uint64_t seed = 0;
  nlohmann::json hparams = nlohmann::json::object(); ///< values from the command line are strings
  bool wants_help = false;

  bool on_cluster() const { return !endpoint.empty() || !endpoint_file.empty(); }
};

/// `variable` returns an environment variable, empty where it is not set. `arguments` follow the program's
/// name.
result<settings> read_settings(const std::function<std::string(const char*)>& variable,
                               const std::vector<std::string>& arguments, const std::string& process);

/// Settings of this process in the group of the ranks `members`: the numbers that the ranks were started
/// with, in the order of their new ranks. Nothing where this process is not among them.
std::optional<settings> settings_in_group(const settings& started, const std::vector<int>& members,
                                          std::uint32_t generation);

// One hyperparameter by its path. Fails with `not_found` where it is missing, and names those that exist;
// with `invalid` where it has another type.
result<std::string> text_in(const nlohmann::json& hparams, std::string_view path);
result<double> double_in(const nlohmann::json& hparams, std::string_view path);
result<std::int64_t> integer_in(const nlohmann::json& hparams, std::string_view path);
result<bool> bool_in(const nlohmann::json& hparams, std::string_view path);
const nlohmann::json* find(const nlohmann::json& hparams,
                           std::string_view path); ///< null where it is missing

} // namespace troupe::trial
