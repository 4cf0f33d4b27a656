#include "actors/host/stock_task.hpp"

#include "actors/host/task_sandbox.hpp"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

/// The name of the checkpoint from which the run resumes; the folder of the checkpoint may belong to another
/// storage.
std::string checkpoint_name(const task_launch& launch) {
  return launch.resume.substr(launch.resume.rfind('/') + 1);
}

std::string cluster_of(const task_launch& launch) {
  return launch.cluster_id.empty() ? "troupe" : launch.cluster_id;
}

std::string text_in(const value& x, const char* key) {
  const auto it = x.find(key);
  return it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Determined's name of a kind of task.
const char* type_of_task(task_kind kind) {
  switch (kind) {
  case task_kind::trial:
    return "TRIAL";
  case task_kind::command:
    return "COMMAND";
  case task_kind::notebook:
    return "NOTEBOOK";
  case task_kind::shell:
    return "SHELL";
  case task_kind::tensorboard:
    return "TENSORBOARD";
  case task_kind::generic:
    return "GENERIC";
  case task_kind::checkpoint_gc:
    return "CHECKPOINT_GC";
  }
  return "GENERIC";
}

/// Whether the text is "package.module:Class", the form that the client calls legacy.
bool names_trial_class(const std::string& text) {
  auto colon = text.find(':');
  auto plain = [&](std::size_t begin, std::size_t end, bool dots) {
    return begin < end &&
           std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin),
                       text.begin() + static_cast<std::ptrdiff_t>(end),
                       [dots](unsigned char c) { return std::isalnum(c) || c == '_' || (dots && c == '.'); });
  };
  return colon != text.npos && plain(0, colon, true) && plain(colon + 1, text.size(), false);
}

constexpr char setup_script[] =
  R"(# Sourced by the entrypoint script. The agent has written the files and set the variables before.
export PATH="$PYTHONUSERBASE/bin:$PATH"
: "${DET_PYTHON_EXECUTABLE:=python3}"
export DET_PYTHON_EXECUTABLE
if [ -z "$HOME" ] || [ "$HOME" = / ]; then
  export HOME="$DET_WORKDIR"
fi
)";

constexpr char entrypoint_script[] = R"(# Starts a trial: entrypoint.sh COMMAND [ARGUMENT]...
. /run/determined/task-setup.sh
set -e
if [ "$DET_WORKDIR" != /run/determined/workdir ]; then
  cp -R /run/determined/train/model/. .
fi
for TROUPE_HOOK in /run/determined/dynamic-tcd-startup-hook.sh ./startup-hook.sh; do
  if [ -f "$TROUPE_HOOK" ]; then
    set -x
    . "$TROUPE_HOOK"
    { set +x; } 2>/dev/null
  fi
done
unset TROUPE_HOOK
if [ "$TROUPE_NODES" != 1 ]; then
  TROUPE_MET=$("$DET_PYTHON_EXECUTABLE" -c 'import shlex, sys
space = {}
exec(open(sys.argv[1]).read(), space)
print(*(f"export {name}={shlex.quote(text)}" for name, text in space["meet_gang"]([]).items()), sep="\n")' \
    "${PYTHONPATH%%:*}/troupe/_zygote/child.py")
  eval "$TROUPE_MET"
  unset TROUPE_MET
fi
exec "$@"
)";

} // namespace

value config_for_task(const task_launch& launch) {
  value config = launch.config.get().is_object() ? launch.config.get() : value::object();
  auto& storage = config["checkpoint_storage"];
  const auto type = storage.is_object() ? text_in(storage, "type") : std::string();
  if (!type.empty() && type != "shared_fs" && type != "directory")
    return config;
  value plain = {{"type", "directory"}, {"container_path", launch.checkpoint_dir}};
  if (storage.is_object())
    for (const char* kept : {"save_experiment_best", "save_trial_best", "save_trial_latest"})
      if (storage.contains(kept))
        plain[kept] = storage[kept];
  storage = std::move(plain);
  return config;
}

static std::string config_text(const task_launch& launch, const task_surroundings& around) {
  return around.config ? around.config(launch) : to_json(config_for_task(launch));
}

std::map<std::string, std::string> stock_variables(allocation_id id, const task_launch& launch,
                                                   const task_surroundings& around) {
  const auto& task = launch.task_name;
  const auto& allocation = launch.allocation_name;
  const auto colon = around.master_url.rfind(':');
  const auto port = colon == around.master_url.npos ? std::string() : around.master_url.substr(colon + 1);
  const auto& p = around.ports;
  std::map<std::string, std::string> env = {
    {"DET_MASTER", around.master_url},
    {"DET_MASTER_HOST", "127.0.0.1"},
    {"DET_MASTER_ADDR", "127.0.0.1"},
    {"DET_MASTER_PORT", port},
    {"DET_CLUSTER_ID", cluster_of(launch)},
    {"DET_MASTER_ID", launch.master_id.empty() ? cluster_of(launch) : launch.master_id},
    {"DET_AGENT_ID", around.agent},
    {"DET_TASK_ID", task},
    {"DET_TASK_TYPE", type_of_task(id.task.kind())},
    {"DET_ALLOCATION_ID", allocation},
    {"DET_RESOURCES_ID", launch.resources_id},
    {"DET_CONTAINER_ID", launch.resources_id},
    {"DET_RESOURCES_TYPE", "docker-container"},
    {"DET_SLOT_IDS", to_json(launch.slots)},
    {"DET_SESSION_TOKEN", launch.session_token},
    {"DET_USER_TOKEN", launch.user_token},
    // The client refuses an empty name.
    {"DET_USER", launch.owner.empty() ? "determined" : launch.owner},
    {"DET_RUN_DIR", task_run_dir},
    {"DET_WORKDIR", work_dir_of(launch, around)},
    {"DET_USE_TLS", "false"},
    {"DET_SEGMENT_ENABLED", "false"},
    {"DET_SKIP_PIP_INSTALL", "1"},
    {"DET_TASK_LOGGING_METADATA", to_json({{"allocation_id", allocation}, {"task_id", task}})},
    {"PYTHONUSERBASE", std::string(task_run_dir) + "/pythonuserbase"},
    {"DTRAIN_SSH_PORT", std::to_string(p.ssh)},
    {"INTER_TRAIN_PROCESS_COMM_PORT_1", std::to_string(p.communication_1)},
    {"INTER_TRAIN_PROCESS_COMM_PORT_2", std::to_string(p.communication_2)},
    {"C10D_PORT", std::to_string(p.c10d)},
    {"TROUPE_NODES", std::to_string(launch.nodes)},
  };
  env["DET_PYTHON_EXECUTABLE"] = around.python_bin.empty() ? "python3" : around.python_bin + "/python3";
  if (!id.task.is_trial())
    return env;
  env["DET_EXPERIMENT_ID"] = to_string(launch.experiment);
  env["DET_TRIAL_ID"] = to_string(id.task);
  env["DET_TRIAL_RUN_ID"] = to_string(id.run);
  env["DET_TRIAL_SEED"] = std::to_string(launch.seed);
  auto config = config_text(launch, around);
  env["DET_HPARAMS"] = to_json(launch.hparams);
  env["DET_STEPS_COMPLETED"] = std::to_string(launch.resume_steps);
  // The kernel accepts no variable of 128 KiB; the client can read the configuration from info/trial.json
  // instead.
  if (config.size() <= 100'000)
    env["DET_EXPERIMENT_CONFIG"] = std::move(config);
  if (auto latest = checkpoint_name(launch); !latest.empty())
    env["DET_LATEST_CHECKPOINT"] = latest;
  return env;
}

/// The values from which the client makes determined.get_cluster_info().trial, as JSON.
static std::string trial_info(allocation_id id, const task_launch& launch, const task_surroundings& around) {
  const auto& config = launch.config.get();
  const auto rest =
    to_json({{"trial_id", id.trial().value},
             {"experiment_id", launch.experiment.value},
             {"trial_seed", launch.seed},
             {"hparams", launch.hparams},
             {"steps_completed", launch.resume_steps},
             {"trial_run_id", id.run.value},
             {"debug", config.is_object() && config.value("debug", value(false)) == value(true)},
             {"inter_node_network_interface", nullptr}});
  // The configuration is text already, and most of the whole.
  return "{\"config\":" + config_text(launch, around) + "," + rest.substr(1);
}

std::vector<task_file> stock_files(allocation_id id, const task_launch& launch,
                                   const task_surroundings& around) {
  const auto latest = checkpoint_name(launch);
  const value cluster = {{"master_url", around.master_url},
                         {"cluster_id", cluster_of(launch)},
                         {"agent_id", around.agent},
                         {"slot_ids", launch.slots},
                         {"task_id", launch.task_name},
                         {"allocation_id", launch.allocation_name},
                         {"session_token", launch.session_token},
                         {"task_type", type_of_task(id.task.kind())},
                         {"master_cert_name", nullptr},
                         {"master_cert_file", nullptr},
                         {"latest_checkpoint", latest.empty() ? value() : value(latest)}};
  std::vector<task_file> files = {
    {"task-setup.sh", setup_script, 0755},
    {"train/entrypoint.sh", entrypoint_script, 0755},
    // This file holds the session's token, so that only the task's account may read it.
    {"info/cluster.json", to_json(cluster), 0600},
    {"info/resources.json",
     to_json(value::object({{"gpu_uuids", launch.gpu_uuids.value_or(std::vector<std::string>())}}))},
  };
  if (!launch.sandbox.startup_hook.empty())
    files.push_back({pool_hook_file, launch.sandbox.startup_hook});
  for (auto& file : account_files(id, launch, around))
    files.push_back(std::move(file));
  if (id.task.is_trial())
    files.push_back({"info/trial.json", trial_info(id, launch, around)});
  if (launch.nodes == 1)
    files.push_back(
      {"info/rendezvous.json", to_json({{"container_addrs", value::array({"127.0.0.1"})},
                                        {"container_rank", 0},
                                        {"container_slot_counts", value::array({launch.slots.size()})}})});
  return files;
}

std::string stock_tensorboard_link(const task_launch& launch) {
  return "tmp/tensorboard-" + launch.allocation_name + "-0";
}

std::vector<task_link> stock_links() {
  // The first process after troupe-task has the process id 2 in its sandbox.
  return {{"run/train/logs/stdout.log", "/proc/2/fd/1"}, {"run/train/logs/stderr.log", "/proc/2/fd/2"}};
}

std::vector<std::string> stock_command(std::vector<std::string> entrypoint, const std::string& shell) {
  if (entrypoint.empty() || entrypoint[0].empty())
    return entrypoint; // the check of the task's spec reports this
  if (entrypoint.size() == 3 && entrypoint[0] == "/bin/sh" && entrypoint[1] == "-c" &&
      names_trial_class(entrypoint[2]))
    entrypoint = {"python3", "-m", "determined.launch.torch_distributed", "--", "--trial", entrypoint[2]};
  std::vector<std::string> command = {shell, std::string(task_run_dir) + "/train/entrypoint.sh"};
  command.insert(command.end(), entrypoint.begin(), entrypoint.end());
  return command;
}

} // namespace troupe
