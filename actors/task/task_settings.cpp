#include "actors/task/task_settings.hpp"

#include "actors/allocation/config_reader.hpp"
#include "actors/allocation/task_services.hpp"
#include "model/config/duration_text.hpp"
#include "model/config/secrets.hpp"
#include "model/names.hpp"

namespace troupe {
namespace {

constexpr int tries_of_collection = 3;

const char* service_module(task_kind kind) {
  switch (kind) {
  case task_kind::notebook:
    return "troupe.services.notebook";
  case task_kind::shell:
    return "troupe.services.shell";
  case task_kind::tensorboard:
    return "troupe.services.tensorboard";
  default:
    return nullptr;
  }
}

/// The folder of the event files of a TensorBoard's source, relative to the folder `tensorboard`.
std::string folder_of_events(const value& source) {
  const auto trial = source.value("trial", value());
  return "/experiment/" + to_json(source.value("experiment", value())) +
         (trial.is_null() ? "" : "/trial/" + to_json(trial));
}

/// Returns the task's program: a shell runs a single word, several words are executed without a shell.
std::vector<std::string> program_of(config_reader& config, task_kind kind) {
  if (const auto* module = service_module(kind))
    return {"python3", "-m", module};
  if (kind == task_kind::checkpoint_gc)
    return {"python3", "-m", "troupe.services.checkpoint_gc"};
  const auto& entry = config.find("entrypoint");
  if (!entry.is_array())
    return {"/bin/sh", "-c", config.text_in("entrypoint", entry)};
  std::vector<std::string> words;
  for (const auto& word : entry)
    words.push_back(config.text_in("entrypoint", word));
  if (const auto* script = task_script(kind); script && !words.empty() && words.front() == script)
    words.erase(words.begin());
  if (words.size() == 1)
    return {"/bin/sh", "-c", words.front()};
  return words;
}

} // namespace

std::vector<task_service> services_of(const value& config, task_id id) {
  std::vector<task_service> all;
  if (service_module(id.kind())) {
    task_service own;
    own.id = to_string(id);
    own.port = 0;
    own.tcp = own.unauthenticated = id.kind() == task_kind::shell;
    own.socket = true;
    own.requests_only = id.kind() == task_kind::tensorboard;
    all.push_back(std::move(own));
  }
  for (auto& named : services_in(config)) {
    if (named.id.empty() && service_module(id.kind())) // an address of its own means a service of its own
      named.id = ":" + std::to_string(named.port);
    named.id.insert(0, to_string(id));
    all.push_back(std::move(named));
  }
  return all;
}

const char* task_script(task_kind kind) {
  switch (kind) {
  case task_kind::command:
    return "/run/determined/command-entrypoint.sh";
  case task_kind::notebook:
    return "/run/determined/jupyter/notebook-entrypoint.sh";
  case task_kind::shell:
    return "/run/determined/ssh/shell-entrypoint.sh";
  case task_kind::tensorboard:
    return "/run/determined/tensorboard/tensorboard-entrypoint.sh";
  case task_kind::checkpoint_gc:
    return "/run/determined/checkpoint_gc/gc-checkpoints-entrypoint.sh";
  default:
    return nullptr;
  }
}

value service_config(const task_created& made, const service_surroundings& around) {
  const auto detail = [&](const char* key) {
    const auto at = made.details.is_object() ? made.details.find(key) : made.details.end();
    return made.details.is_object() && at != made.details.end() ? *at : value();
  };
  config_reader config{made.config};
  switch (made.id.kind()) {
  case task_kind::notebook:
    return {{"idle_type", config.find("notebook_idle_type")}, {"idle_timeout", config.find("idle_timeout")}};
  case task_kind::shell: {
    const auto host = detail("hostKey");
    return {{"authorized_key", detail("publicKey")},
            {"host_key",
             host.is_string() && around.reveal ? value(around.reveal(host.get<std::string>())) : value()},
            {"host_public_key", detail("hostPublicKey")}};
  }
  case task_kind::tensorboard: {
    auto sources = value::array();
    for (const auto& one : detail("sources")) {
      auto storage = one.value("storage", value());
      config::each_secret_of_storage(storage, [&](value& secret) {
        secret =
          secret.is_string() && around.reveal ? value(around.reveal(secret.get<std::string>())) : value();
      });
      // The package `troupe` writes event files here even if the experiment's checkpoints lie in a bucket.
      if (storage.is_object() && !around.events.empty())
        sources.push_back({{"place", around.events + folder_of_events(one)}});
      sources.push_back({{"place", one.value("place", value())}, {"storage", std::move(storage)}});
    }
    const auto& args = config.find("tensorboard_args");
    return {{"sources", sources}, {"args", args.is_array() ? args : value::array()}};
  }
  case task_kind::checkpoint_gc: {
    auto order = made.details;
    order["cluster"] = around.cluster;
    return order;
  }
  default:
    return {};
  }
}

bool collects_on_agent(const task_created& made) {
  return made.id.kind() == task_kind::checkpoint_gc && made.config.is_object() && !made.config.empty();
}

result<task_settings> task_settings_of(const task_created& made, const std::string& workspace) {
  task_settings out;
  const auto kind = made.id.kind();
  config_reader config{made.config};
  out.title = made.name;
  auto& spec = out.spec;
  spec.id = made.id;
  const auto slots = config.integer_in("resources.slots", config.find("resources.slots"));
  const bool collects = kind == task_kind::checkpoint_gc;
  spec.slots = kind == task_kind::tensorboard || collects
                 ? 0
                 : static_cast<int>(std::max<std::int64_t>(0, slots.value_or(1)));
  spec.tries = collects ? tries_of_collection : 1;
  spec.preemptible = kind == task_kind::generic;
  if (const auto& idle = config.find("idle_timeout"); idle.is_string()) {
    const auto limit = config::go_duration(idle.get<std::string>());
    if (!limit)
      config.refuse("idle_timeout", "a time like 30m", idle);
    spec.idle_limit = limit.value_or(duration{0});
  }
  if (kind != task_kind::notebook && kind != task_kind::tensorboard)
    spec.idle_limit = duration{0};
  if (const auto seconds = config.integer_in("preemption_timeout", config.find("preemption_timeout")))
    spec.stop_limit = std::chrono::seconds(*seconds);
  auto& job = spec.job;
  job.job = job_of(made.id);
  job.submitted = made.at;
  job.user = made.owner;
  job.workspace = workspace.empty() ? "Uncategorized" : workspace;
  job.priority =
    static_cast<int>(config.integer_in("resources.priority", config.find("resources.priority")).value_or(0));
  if (const auto& weight = config.find("resources.weight"); weight.is_number())
    job.weight = weight.get<double>();
  if (const auto most = config.integer_in("resources.max_slots", config.find("resources.max_slots")))
    job.max_slots = static_cast<int>(*most);
  spec.rules = placement_rules_in(config);
  const auto& single = config.find("resources.is_single_node");
  spec.rules.single_node = kind != task_kind::generic || !(single.is_boolean() && !single.get<bool>());
  auto& launch = out.launch;
  launch.task_name = task_name({}, made.id);
  launch.owner = made.owner;
  launch.config = made.config;
  launch.context = made.context;
  launch.entrypoint = program_of(config, kind);
  launch.env = variables_in(config);
  launch.services = services_of(made.config, made.id);
  if (config.fault())
    return *config.fault();
  auto sandbox = sandbox_terms_of(made.config);
  if (!sandbox)
    return sandbox.error();
  launch.sandbox = std::move(*sandbox);
  if (auto ok = check(launch); !ok)
    return ok.error();
  return out;
}

} // namespace troupe
