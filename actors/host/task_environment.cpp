#include "actors/host/task_environment.hpp"

#include "actors/allocation/config_reader.hpp"
#include "actors/host/platform_paths.hpp"
#include "actors/host/task_files_part.hpp"
#include "actors/host/task_sandbox.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

extern char** environ;

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Keeps the paths below /tmp that `text` names. The experiment means the host's /tmp, which the sandbox's
/// own /tmp would hide: such a path stays visible, or its folder if the path does not exist yet.
void keep_named(std::vector<std::string>& keep, std::string_view text) {
  for (std::size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find_first_of(": ,", begin), text.size());
    const auto word = text.substr(begin, end - begin);
    begin = end + 1;
    std::error_code ignored;
    if (!word.starts_with("/tmp/"))
      continue;
    fs::path path(word);
    if (!fs::exists(path, ignored))
      path = path.parent_path();
    if (path != "/tmp" && fs::exists(path, ignored))
      keep.push_back(path.string());
  }
}

/// Keeps the folders of the event files that a TensorBoard shows; for a folder that does not exist yet, the
/// nearest folder above it that does.
void keep_sources(std::vector<std::string>& keep, const std::string& service_config) {
  const auto config = parse_json(service_config);
  if (!config || !config->is_object())
    return;
  for (const auto& one : config->value("sources", value::array()))
    if (const auto at = one.find("place"); at != one.end() && at->is_string()) {
      std::error_code ignored;
      fs::path path(at->get_ref<const std::string&>());
      while (path.has_relative_path() && !fs::exists(path, ignored))
        path = path.parent_path();
      if (path.string().starts_with("/tmp/"))
        keep.push_back(path.string());
    }
}

/// Makes the task reach the agent's listener without a proxy, whatever proxy the agent uses: the listener is
/// on this host.
void go_direct(std::map<std::string, std::string>& env) {
  for (const char* name : {"NO_PROXY", "no_proxy"}) {
    auto& list = env[name];
    list += (list.empty() ? "" : ",") + std::string("127.0.0.1,localhost");
  }
}

/// The variables that torchrun sets for each of its processes; `launch: per_slot` sets them, too. If the task
/// runs on several agents, the address of the first one is learned at the rendezvous, and the entrypoint
/// script sets it.
std::map<std::string, std::string> rank_variables(allocation_id id, const task_launch& launch,
                                                  const task_surroundings& around, std::size_t local,
                                                  std::size_t local_ranks) {
  const auto first = static_cast<std::size_t>(launch.first_rank);
  return {{"RANK", std::to_string(first + local)},
          {"WORLD_SIZE", std::to_string(launch.ranks)},
          {"LOCAL_RANK", std::to_string(local)},
          {"LOCAL_WORLD_SIZE", std::to_string(local_ranks)},
          {"GROUP_RANK", std::to_string(launch.node_rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(around.ports.c10d)},
          {"TROUPE_DIST_PORT", std::to_string(around.ports.communication_1)},
          {"TORCHELASTIC_RUN_ID", to_string(id)},
          {"TORCHELASTIC_RESTART_COUNT", std::to_string(id.run.value - 1)},
          {"TORCHELASTIC_MAX_RESTARTS", "0"}};
}

/// Whether a variable of the agent is of no use to a task: the platform's own variables, and the folders
/// where the agent was started, which all tasks would see if they lie below /tmp.
bool of_the_agent(std::string_view name) {
  return name.starts_with("TROUPE_") || name.starts_with("DET_") || name == "PWD" || name == "OLDPWD";
}

} // namespace

workers::task_spec task_spec_of(allocation_id id, const task_launch& launch,
                                const task_surroundings& around) {
  std::map<std::string, std::string> env;
  for (char** one = environ; *one; ++one) {
    std::string_view pair = *one;
    if (auto equals = pair.find('=');
        equals != std::string_view::npos && !of_the_agent(pair.substr(0, equals)))
      env[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
  }
  if (!env.contains("PATH"))
    env["PATH"] = "/usr/bin:/bin";
  if (!around.python_bin.empty())
    env["PATH"] = around.python_bin + ":" + env["PATH"];
  if (!around.programs.empty())
    env["PATH"] += ":" + around.programs;
  for (auto& [key, one] : stock_variables(id, launch, around))
    env[key] = std::move(one);
  go_direct(env);
  for (auto& [key, one] : account_variables(launch, around))
    env[key] = std::move(one);
  auto given = launch.env;
  if (launch.gpu_uuids && !launch.slots.empty()) // only NVIDIA's GPUs have UUIDs that an agent knows
    choose_variables(given, config_reader(launch.config.get()), "cuda");
  for (auto& [key, one] : given)
    env[key] = std::move(one);
  auto& path = env["PYTHONPATH"];
  path = around.python + (path.empty() ? "" : ":" + path);
  env["PYTHONUNBUFFERED"] = "1";
  env["TROUPE_HARNESS"] = around.harness_endpoint;
  env["TROUPE_HARNESS_FILE"] = around.harness_file;
  env["TROUPE_TASK_TOKEN"] = launch.token;
  env["TROUPE_ALLOCATION_ID"] = to_string(id);
  env["TROUPE_HPARAMS"] = to_json(launch.hparams);
  env["TROUPE_CHECKPOINT_DIR"] = launch.checkpoint_dir;
  env["TROUPE_RESUME_CHECKPOINT"] = launch.resume;
  if (std::any_of(launch.services.begin(), launch.services.end(),
                  [](const task_service& one) { return one.socket; }))
    env["TROUPE_SERVICE_SOCKET"] = service_socket_inside;
  env["TROUPE_TRIAL_SEED"] = std::to_string(launch.seed);

  if (launch.gpu_uuids) { // the agent's slots are GPUs: the task sees only the GPUs of its slots
    std::string list;
    for (const auto& one : *launch.gpu_uuids)
      list += (list.empty() ? "" : ",") + one;
    env["CUDA_VISIBLE_DEVICES"] = list;
  }

  const bool per_slot = launch.mode == launch_mode::per_slot;
  const auto processes = per_slot ? std::max<std::size_t>(1, launch.slots.size()) : 1;
  if (per_slot)
    env["TROUPE_LAUNCH"] = "per_slot";

  workers::task_spec spec;
  spec.id = to_string(id);
  workers::rank_spec rank;
  rank.argv = stock_command(launch.entrypoint, around.shell);
  rank.cwd = work_dir_of(launch, around);
  for (std::size_t local = 0; local < processes; ++local) {
    auto of_rank = env;
    if (per_slot)
      for (auto& [key, one] : rank_variables(id, launch, around, local, processes))
        of_rank[key] = std::move(one);
    rank.env.clear();
    for (const auto& [key, one] : of_rank)
      rank.env.push_back(key + "=" + one);
    spec.ranks.push_back(rank);
  }
  spec.keep_read_only = around.platform ? around.platform(env["PATH"]) : platform_paths(around, env["PATH"]);
  for (const auto& [key, one] : env)
    if (key == "TROUPE_SERVICE_CONFIG")
      keep_sources(spec.keep, one);
    else if (key != "DET_EXPERIMENT_CONFIG") // JSON as well; another variable names the folder of checkpoints
      keep_named(spec.keep, one);
  for (const char* key : {"PATH", "PYTHONPATH", "DET_PYTHON_EXECUTABLE"}) { // a task writes nothing to these
    std::vector<std::string> of_the_platform;
    keep_named(of_the_platform, env[key]);
    std::erase_if(of_the_platform,
                  [&](const std::string& one) { return !is_in_one_of(spec.keep_read_only, one); });
    std::erase_if(spec.keep, [&](const std::string& one) { return is_in_one_of(of_the_platform, one); });
  }
  for (const auto& argument : rank.argv)
    keep_named(spec.keep, argument);
  std::sort(spec.keep.begin(), spec.keep.end());
  spec.keep.erase(std::unique(spec.keep.begin(), spec.keep.end()), spec.keep.end());
  add_terms(spec, id, launch, around);
  return spec;
}

} // namespace troupe
