#include "actors/experiment/experiment_setup.hpp"

#include "model/names.hpp"

namespace troupe {
namespace {

/// The member at a path like "resources.slots_per_trial", or null.
const value& at(const value& x, std::initializer_list<const char*> path) {
  static const value nothing;
  const value* here = &x;
  for (const char* key : path) {
    if (!here->is_object())
      return nothing;
    auto it = here->find(key);
    if (it == here->end())
      return nothing;
    here = &*it;
  }
  return *here;
}

std::string text(const value& x, std::string otherwise = {}) {
  return x.is_string() ? x.get<std::string>() : std::move(otherwise);
}
std::int64_t number(const value& x, std::int64_t otherwise) {
  return x.is_number() ? x.get<std::int64_t>() : otherwise;
}

/// "K=V" lines, or an object of them.
void add_variables(value& env, const value& list) {
  if (list.is_object())
    for (const auto& [key, one] : list.items())
      env[key] = one.is_string() ? one : value(one.dump());
  if (list.is_array())
    for (const auto& line : list)
      if (auto pair = text(line); !pair.empty()) {
        auto equals = pair.find('=');
        env[pair.substr(0, equals)] = equals == std::string::npos ? "" : pair.substr(equals + 1);
      }
}

/// Those of nsga2: `metrics`, or `metric` as a list.
std::vector<std::string> several_metrics(const value& config) {
  std::vector<std::string> names;
  for (const auto* list : {&at(config, {"searcher", "metrics"}), &at(config, {"searcher", "metric"})})
    if (list->is_array())
      for (const auto& name : *list)
        names.push_back(text(name));
  return names;
}

bool hears_checkpoints(const value& config) {
  auto name = text(at(config, {"searcher", "name"}));
  return name == "pbt" || name == "custom";
}

} // namespace

experiment_spec experiment_spec_of(experiment_id id, const value& config) {
  return {id, text(at(config, {"searcher", "metric"})),
          text(at(config, {"searcher", "time_metric"}),
               text(at(config, {"searcher", "early_stopping", "time_metric"}))),
          several_metrics(config), hears_checkpoints(config)};
}

trial_spec trial_spec_of(trial_id id, const value& config, const trial_created& made) {
  // A number, or {min, max}.
  const auto& wanted = at(config, {"resources", "slots_per_trial"});
  const bool range = wanted.is_object();
  const auto most = number(range ? at(wanted, {"max"}) : wanted, 1);
  const auto least = range ? number(at(wanted, {"min"}), 1) : 0;
  return {id,
          static_cast<int>(std::max<std::int64_t>(1, most)),
          static_cast<int>(number(at(config, {"max_restarts"}), 5)),
          100,
          made.source_checkpoint,
          made.source_steps,
          hears_checkpoints(config),
          least < most ? static_cast<int>(least) : 0};
}

value launch_of(experiment_id id, const value& config, const std::string& context,
                const std::string& checkpoint_dir, const trial_created& made) {
  value launch = value::object();
  launch["experiment"] = id.value;
  launch["trial"] = made.trial.value;
  launch["task_id"] = task_name(id, made.trial);
  launch["config"] = config;
  launch["seed"] = made.seed;
  launch["hparams"] = made.hparams;
  launch["context"] = context;
  launch["resume"] = "";
  launch["resume_steps"] = 0;
  launch["preemption_timeout"] = number(at(config, {"preemption_timeout"}), 3600);
  // A string is a shell's, a list is exec'd as it is: as Determined does.
  const auto& entry = at(config, {"entrypoint"});
  launch["entrypoint"] = entry.is_array() ? entry : value{"/bin/sh", "-c", text(entry)};
  launch["launch"] = text(at(config, {"launch"}), "per_agent");
  value env = value::object();
  const auto& variables = at(config, {"environment", "environment_variables"});
  if (variables.is_object() &&
      (variables.contains("cpu") || variables.contains("cuda") || variables.contains("rocm")))
    add_variables(env, at(variables, {"cpu"}));
  else
    add_variables(env, variables);
  launch["env"] = env;
  // A shared_fs may carry a container_path, too, which Determined has not read for years.
  const bool shared = text(at(config, {"checkpoint_storage", "type"})) == "shared_fs";
  auto dir = text(at(config, {"checkpoint_storage", shared ? "host_path" : "container_path"}));
  if (auto sub = text(at(config, {"checkpoint_storage", "storage_path"})); !dir.empty() && !sub.empty())
    dir = sub.starts_with('/') ? sub : dir + "/" + sub;
  // A relative folder lies in the master's data directory, beside the default one.
  launch["checkpoint_dir"] = dir.empty() ? checkpoint_dir
                             : dir.starts_with('/')
                               ? dir
                               : checkpoint_dir.substr(0, checkpoint_dir.rfind('/') + 1) + dir;
  return launch;
}

std::uint64_t seed_of(const value& config) {
  return static_cast<std::uint64_t>(number(at(config, {"reproducibility", "experiment_seed"}), 0));
}

} // namespace troupe
