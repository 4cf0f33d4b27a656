#include "model/config/effects.hpp"

#include "model/config/check.hpp"
#include "model/config/complete.hpp"
#include "model/config/experiment_config.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

constexpr std::string_view by_the_code = "has no effect, as in Determined 0.38: the training code decides";
constexpr std::string_view by_the_class =
  "is read where Determined's trial classes run; here the script decides";
constexpr std::string_view of_old = "is of older versions and ignored, as in Determined";
constexpr std::string_view of_containers =
  "has no effect: tasks run as processes of the host, without containers";

bool is_bucket(const value& x) { return x == "s3" || x == "gcs" || x == "azure"; }

/// Whether the entrypoint is `module:Class`, or a launcher that gets `--trial module:Class`.
bool runs_trial_class(const node& root) {
  const auto* entrypoint = root.find("entrypoint");
  if (!entrypoint)
    return false;
  std::string text = entrypoint->text;
  for (const auto& part : entrypoint->items)
    text += " " + part.text;
  return text.find("--trial") != std::string::npos ||
         (text.find(':') != std::string::npos && text.find_first_of(" /") == std::string::npos);
}

} // namespace

const std::vector<without_effect>& keys_without_effect() {
  static const std::vector<without_effect> all{
    {"searcher.max_length", by_the_code},
    {"searcher.stop_once", "has no effect, as in Determined 0.38: trials are never resumed by this searcher"},
    {"searcher.train_stragglers", of_old},
    {"resources.devices", "has no effect: tasks see all devices that their user may use"},
    {"resources.native_parallel", of_old},
    {"resources.agent_label", of_old},
    {"environment.image", of_containers},
    {"environment.ports", of_containers},
    {"environment.force_pull_image", of_containers},
    {"environment.registry_auth", of_containers},
    {"environment.add_capabilities", of_containers},
    {"environment.drop_capabilities", of_containers},
    {"environment.pod_spec", "has no effect: there is no Kubernetes below"},
    {"environment.environment_variables.rocm",
     "has no effect where it differs from cpu: agents know the GPUs of NVIDIA, and no others"},
    {"checkpoint_storage.type",
     "is for Determined's client in the task; checkpoints of the troupe package go to the cluster's own "
     "folder",
     is_bucket},
    {"checkpoint_storage.propagation", of_containers},
    {"checkpoint_policy", by_the_class, nullptr, true},
    {"perform_initial_validation", by_the_class, nullptr, true},
    {"min_checkpoint_period", by_the_class, nullptr, true},
    {"min_validation_period", by_the_class, nullptr, true},
    {"scheduling_unit", by_the_class, nullptr, true},
    {"records_per_epoch", by_the_code},
    {"profiling", by_the_class, nullptr, true},
    {"optimizations", by_the_class, nullptr, true},
    {"integrations.pachyderm", "has no effect: nothing is read from it"},
    {"slurm", "has no effect: there is no Slurm below"},
    {"pbs", "has no effect: there is no PBS below"},
    {"tensorboard_storage", of_old},
    {"security", of_old},
    {"data_layer", of_old},
  };
  return all;
}

std::string_view idle_task_default(std::string_view key) {
  static constexpr std::string_view images = "tasks are processes of the hosts, without images";
  static constexpr std::pair<std::string_view, std::string_view> all[] = {
    {"dtrain_network_interface", "ranks find each other by the agents' addresses"},
    {"nccl_port_range", "free ports are taken"},
    {"gloo_port_range", "free ports are taken"},
    {"network_mode", "tasks have the host's network"},
    {"cpu_pod_spec", "there is no Kubernetes below"},
    {"gpu_pod_spec", "there is no Kubernetes below"},
    {"image", images},
    {"registry_auth", images},
    {"force_pull_image", images},
    {"add_capabilities", "a task has no capabilities"},
    {"drop_capabilities", "a task has no capabilities"},
    {"devices", "a task sees the devices of its slots"},
    {"slurm", "there is no Slurm below"},
    {"pbs", "there is no PBS below"},
  };
  for (const auto& [name, why] : all)
    if (name == key)
      return why;
  return {};
}

namespace {

struct found_key {
  const node* at = nullptr;
  const key* what = nullptr;
};

const shape& map_of(const shape& s) {
  for (const auto* one : s.alternatives)
    if (one->takes(kind::map))
      return *one;
  return s;
}

/// Null where the text does not have the key.
found_key find_key(const node& root, std::string_view path) {
  found_key found{&root, nullptr};
  const shape* s = schemas().at("experiment");
  while (!path.empty()) {
    auto name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    const auto* entry = found.at->entry_of(name);
    if (!entry || !s)
      return {};
    found.what = map_of(narrowed(*s, *found.at)).find(name);
    found.at = &entry->what;
    s = found.what ? found.what->what : nullptr;
  }
  return found;
}

bool is_default(const value& given, const key* k) {
  if (!k)
    return false;
  if (k->fallback && given == *k->fallback)
    return true;
  if (!k->filled)
    return false;
  auto whole = given;
  normalize(whole, *k->what);
  fill_defaults(whole, *k->what);
  return whole == *k->filled;
}

} // namespace

std::vector<diagnostic> warnings_of(std::string_view text, std::string_view file) {
  auto read = read_document(text, file);
  std::vector<diagnostic> out;
  if (!read.readable)
    return out;
  report known{std::string(file)}; // a key with a fault is not reported twice
  check(read.root, *schemas().at("experiment"), known);
  auto faults = known.take();
  for (auto& one : faults)
    known.know(one.path);
  bool trial_class = runs_trial_class(read.root);
  for (const auto& one : keys_without_effect()) {
    if (one.of_trial_classes && trial_class)
      continue;
    auto path = std::string(one.path);
    auto found = find_key(read.root, path);
    if (!found.at || known.knows(path) || known.knows_below(path))
      continue;
    auto given = to_value(*found.at);
    if (one.when ? !one.when(given) : given.is_null() || given.empty() || is_default(given, found.what))
      continue;
    auto owner = path.substr(0, path.rfind('.'));
    if (path.starts_with("environment.environment_variables.") &&
        given == to_value(*find_key(read.root, owner).at).value("cpu", value()))
      continue;
    out.push_back(
      {std::string(file), found.at->at.line, found.at->at.column, path, std::string(one.says), "", true});
  }
  std::stable_sort(out.begin(), out.end(), [](const diagnostic& a, const diagnostic& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  return out;
}

} // namespace troupe::config
