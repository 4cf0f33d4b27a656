#include "actors/experiment/experiment_settings.hpp"

#include "actors/allocation/config_reader.hpp"
#include "actors/allocation/task_services.hpp"
#include "model/checkpoint_place.hpp"
#include "model/names.hpp"

namespace troupe {
namespace {

void read_search(config_reader& config, experiment_settings& out) {
  if (const auto& searcher = config.find("searcher"); searcher.is_object())
    out.searcher = searcher;
  if (const auto& space = config.find("hyperparameters"); space.is_object())
    out.hyperparameters = space;
  out.seed = static_cast<std::uint64_t>(config.integer("reproducibility.experiment_seed").value_or(0));
  // The metric of nsga2 is a list.
  if (const auto& metric = config.find("searcher.metric"); metric.is_string())
    out.metric = metric.get<std::string>();
  for (const char* path : {"searcher.time_metric", "searcher.early_stopping.time_metric"})
    if (out.time_metric.empty())
      out.time_metric = config.text_in(path, config.find(path));
  for (const char* path : {"searcher.metrics", "searcher.metric"})
    if (const auto& several = config.find(path); several.is_array())
      for (const auto& one : several)
        out.more_metrics.push_back(config.text_in(path, one));
  out.source_checkpoint =
    config.text_in("searcher.source_checkpoint_uuid", config.find("searcher.source_checkpoint_uuid"));
  const auto name = config.text_in("searcher.name", config.find("searcher.name"));
  out.hears_checkpoints = name == "pbt" || name == "custom";
}

void read_trials(config_reader& config, experiment_settings& out) {
  constexpr auto slots_path = "resources.slots_per_trial";
  const auto wanted = config.at(slots_path); // a number or {min, max}
  const bool range = wanted.is_object();
  const auto most = config.integer_in(slots_path, range ? wanted.value("max", value()) : wanted).value_or(1);
  const auto least = range ? config.integer_in(slots_path, wanted.value("min", value())).value_or(1) : 0;
  out.slots = static_cast<int>(std::max<std::int64_t>(0, most));
  out.least_slots = least < most ? static_cast<int>(least) : 0;
  out.max_restarts = static_cast<int>(config.integer("max_restarts").value_or(0));
  if (const auto seconds = config.integer("preemption_timeout"))
    out.preemption_timeout = std::chrono::seconds(*seconds);
}

void read_job(config_reader& config, experiment_settings& out) {
  auto workspace = config.text_in("workspace", config.find("workspace"));
  out.job.workspace = workspace.empty() ? "Uncategorized" : workspace;
  out.job.priority = static_cast<int>(config.integer("resources.priority").value_or(0));
  if (const auto weight = config.find("resources.weight"); weight.is_number())
    out.job.weight = weight.get<double>();
  out.job.max_slots = static_cast<int>(config.integer("resources.max_slots").value_or(-1));
  out.rules = placement_rules_in(config);
  const auto single = config.find("resources.is_single_node");
  out.rules.single_node = single.is_boolean() && single.get<bool>();
}

/// Returns the store of the checkpoints, written as in model/checkpoint_place.hpp.
std::string checkpoint_store(config_reader& config, const std::string& standard) {
  // A shared_fs may also have a container_path, which Determined has ignored for years.
  const bool shared = config.find("checkpoint_storage.type") == "shared_fs";
  const char* path = shared ? "checkpoint_storage.host_path" : "checkpoint_storage.container_path";
  auto dir = config.text_in(path, config.find(path));
  if (const auto sub =
        config.text_in("checkpoint_storage.storage_path", config.find("checkpoint_storage.storage_path"));
      !dir.empty() && !sub.empty())
    dir = sub.starts_with('/') ? sub : dir + "/" + sub;
  if (dir.empty())
    dir = standard;
  // A relative folder lies in the master's data directory, beside the default one.
  if (!dir.empty() && !dir.starts_with('/'))
    dir = standard.substr(0, standard.rfind('/') + 1) + dir;
  return dir.empty() ? "" : (shared ? "shared_fs:" : "directory:") + dir;
}

void read_launch(config_reader& config, task_launch& out) {
  // A shell runs a text; a list is executed without a shell. Determined does the same.
  const auto& entry = config.find("entrypoint");
  if (entry.is_array())
    for (const auto& word : entry)
      out.entrypoint.push_back(config.text_in("entrypoint", word));
  else
    out.entrypoint = {"/bin/sh", "-c", config.text_in("entrypoint", entry)};
  out.mode = config.text("launch") == "per_slot" ? launch_mode::per_slot : launch_mode::per_agent;
  out.env = variables_in(config);
}

} // namespace

result<std::string> checkpoint_store_of(const value& config, const std::string& standard) {
  config_reader reader{config};
  auto store = checkpoint_store(reader, standard);
  return reader.fault() ? result<std::string>(*reader.fault()) : store;
}

result<experiment_settings> experiment_settings_of(experiment_source from) {
  experiment_settings out;
  out.id = from.id;
  config_reader config{from.config};
  read_search(config, out);
  read_trials(config, out);
  read_job(config, out);
  read_launch(config, out.launch);
  // Ids of services need the id of the task, which is not known yet.
  out.launch.services = services_in(from.config);
  out.launch.checkpoint_store = checkpoint_store(config, from.checkpoint_dir);
  out.launch.checkpoint_dir = folder_of_store(out.launch.checkpoint_store);
  if (config.fault())
    return *config.fault();
  auto sandbox = sandbox_terms_of(from.config);
  if (!sandbox)
    return sandbox.error();
  out.launch.sandbox = std::move(*sandbox);
  out.job.job = from.id;
  out.job.submitted = from.submitted;
  out.job.user = from.owner;
  out.launch.experiment = from.id;
  out.launch.owner = std::move(from.owner);
  out.launch.context = std::move(from.context);
  out.launch.config = std::move(from.config);
  if (auto ok = check(out.launch); !ok)
    return ok.error();
  return out;
}

experiment_spec experiment_spec_of(const experiment_settings& of) {
  experiment_spec spec{of.id, of.metric, of.time_metric, of.more_metrics, of.hears_checkpoints};
  spec.resources.priority = of.job.priority;
  spec.resources.weight = of.job.weight;
  spec.resources.max_slots = of.job.max_slots;
  return spec;
}

trial_spec trial_spec_of(const experiment_settings& of, const trial_created& made, std::uint32_t continued) {
  trial_spec spec;
  spec.id = made.trial;
  spec.slots = of.slots;
  spec.least_slots = of.least_slots;
  spec.max_restarts = of.max_restarts;
  spec.warm_start = made.source_checkpoint.empty() ? of.source_checkpoint : made.source_checkpoint;
  spec.warm_start_steps = made.source_steps;
  spec.tells_checkpoints = of.hears_checkpoints;
  spec.stop_limit = of.preemption_timeout;
  spec.job = of.job;
  spec.rules = of.rules;
  spec.continued = continued;
  return spec;
}

task_launch launch_of(const experiment_settings& of, const trial_created& made, std::uint32_t continued) {
  auto launch = of.launch;
  launch.task_name = task_name(of.id, made.trial, continued);
  launch.seed = made.seed;
  launch.hparams = made.hparams;
  for (auto& one : launch.services)
    one.id.insert(0, launch.task_name);
  return launch;
}

} // namespace troupe
