#include "actors/cluster/accepted_task.hpp"

#include "actors/catalogue/house_rules.hpp"
#include "actors/journal/log_patterns.hpp"
#include "actors/task/task_settings.hpp"
#include "model/chosen_name.hpp"
#include "model/config/check.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/document.hpp"
#include "model/config/duration_text.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/layers.hpp"

#include <set>

namespace troupe {
namespace {

error unfit(const std::string& why) { return {errc::invalid, "failed to prepare launch params: " + why}; }
/// `text` is shown with the faults. It has to be empty where it is not the caller's own, as it may have
/// secrets.
error unfit(const config::outcome& checked, const std::string& text) {
  std::string all;
  for (auto fault : checked.faults) {
    if (text.empty())
      fault.line = fault.column = 0; // nobody wrote the lines of the merged text
    all += (all.empty() ? "" : "\n") + config::render(fault, text);
  }
  return {errc::invalid, "failed to prepare launch params: unable to decode the merged config: " + all};
}

const char* schema_of(task_kind kind) { return kind == task_kind::generic ? "generic-task" : "command"; }

const char* title_of(task_kind kind) {
  switch (kind) {
  case task_kind::command:
    return "Command";
  case task_kind::notebook:
    return "JupyterLab";
  case task_kind::shell:
    return "Shell";
  case task_kind::tensorboard:
    return "TensorBoard";
  default:
    return "Generic Task";
  }
}

value member(const value& of, const char* key) { return of.is_object() ? of.value(key, value()) : value(); }
std::string text_of(const value& x) { return x.is_string() ? x.get<std::string>() : std::string(); }

/// Merges both; values of `high` win. Either may be null.
result<value> over(const char* schema, const value& high, const char* high_name, const value& low,
                   const char* low_name) {
  if (low.is_null() || high.is_null())
    return low.is_null() ? high : low;
  const auto text = to_json(high);
  auto both = config::merge_as(schema, text, high_name, to_json(low), low_name);
  return both.ok() ? result<value>(std::move(both.config)) : unfit(both, "");
}

/// The defaults of the pool for tasks of this kind that have this number of slots.
result<value> pool_layer(task_kind kind, const value& cluster, const std::string& pool, std::int64_t slots) {
  const auto all = config::experiment_defaults(cluster, pool);
  value out;
  for (const char* key : {"environment", "bind_mounts", "log_policies"})
    if (auto one = member(all, key); !one.is_null())
      out[key] = std::move(one);
  const auto tasks = config::task_defaults(cluster, pool);
  if (tasks.is_null())
    return out;
  auto below = config::as_experiment_layer(tasks, slots);
  if (kind != task_kind::generic)
    below.erase("preemption_timeout");
  return over(schema_of(kind), out, "defaults of the pool", below, "task_container_defaults");
}

/// The entrypoint that clients see: the script of the kind of task, followed by the words of the user.
value shown_entrypoint(task_kind kind, const value& words) {
  const auto* script = task_script(kind);
  if (!script)
    return words;
  value out = value::array({script});
  if (kind == task_kind::command && words.is_array())
    for (const auto& word : words)
      out.push_back(word);
  return out;
}

result<void> check_ports(const value& config) {
  const auto ports = member(member(config, "environment"), "proxy_ports");
  std::set<std::int64_t> seen;
  for (const auto& one : ports.is_array() ? ports : value::array()) {
    const auto port = number_in(member(one, "proxy_port")).value_or(0);
    if (port < 1 || port > 65'535)
      return unfit("environment.proxy_ports: proxy_port has to be 1 to 65535, got " +
                   to_json(member(one, "proxy_port")));
    if (!seen.insert(static_cast<std::int64_t>(port)).second)
      return unfit("environment.proxy_ports: proxy_port " + std::to_string(static_cast<int>(port)) +
                   " is named twice");
  }
  return {};
}

} // namespace

std::string pet_name(task_id id) {
  static constexpr const char* hows[] = {
    "barely", "boldly", "briskly", "calmly", "deeply", "duly",    "early",  "fairly",
    "freely", "gently", "gladly",  "highly", "kindly", "mildly",  "neatly", "nicely",
    "openly", "partly", "quietly", "rarely", "really", "sharply", "simply", "slowly",
    "softly", "surely", "truly",   "vastly", "warmly", "widely",  "wisely", "yearly"};
  static constexpr const char* whats[] = {
    "able",  "apt",   "brave", "bright", "busy",  "calm",  "clean", "clear", "close", "cool", "crisp",
    "eager", "equal", "exact", "fair",   "fast",  "fine",  "firm",  "fond",  "fresh", "good", "grand",
    "great", "happy", "keen",  "kind",   "large", "light", "merry", "neat",  "proud", "quick"};
  static constexpr const char* whos[] = {
    "ant",   "badger", "bat",  "bear",  "bee",   "bison", "cat",   "crab",  "crane", "crow", "deer",
    "dingo", "dove",   "duck", "eagle", "finch", "fox",   "frog",  "goose", "hare",  "hawk", "heron",
    "koala", "lynx",   "mole", "moose", "otter", "owl",   "panda", "raven", "seal",  "swan"};
  const auto bits = id.low();
  return std::string(hows[bits & 31]) + "-" + whats[bits >> 5 & 31] + "-" + whos[bits >> 10 & 31];
}

result<value> forked_config(const task_created& from, const value& changes) {
  // The text as it was submitted is used, as the defaults of the cluster may have changed since then.
  auto base = config::to_value(config::read_document(from.source, "<fork>").root);
  if (!base.is_object())
    base = from.config;
  if (changes.is_null() || changes == "")
    return base;
  const auto text = changes.is_string() ? changes.get<std::string>() : to_json(changes);
  auto own = config::check_as(schema_of(from.id.kind()), text, "<config>", config::level::sane);
  if (!own.ok())
    return unfit(own, text);
  const auto keys = config::to_value(config::read_document(text, "<config>").root);
  for (const auto& [key, one] : keys.items())
    base[key] = one;
  return base;
}

result<accepted_task> accept_task(task_id id, const value& text, const std::string& file,
                                  const task_surface& below) {
  const auto kind = id.kind();
  const auto* schema = schema_of(kind);
  const bool generic = kind == task_kind::generic;
  accepted_task out;
  if (kind == task_kind::shell && text_of(member(member(below.cluster, "cluster"), "shells")) == "off")
    return unfit("this cluster has no shells: cluster.shells is off");
  out.source = text.is_string() ? text.get<std::string>() : text.is_null() ? "{}" : to_json(text);
  if (out.source.find_first_not_of(" \t\r\n") == std::string::npos)
    out.source = "{}";
  auto own =
    config::check_as(schema, out.source, file, config::level::sane); // faults name places in the user's text
  if (!own.ok())
    return unfit(own, out.source);
  auto submitted = config::to_value(config::read_document(out.source, file).root);
  const auto resources = member(submitted, "resources");
  if (!generic && !member(resources, "is_single_node").is_null())
    return unfit("resources.is_single_node: cannot be set for NTSCs");
  if (kind == task_kind::tensorboard)
    submitted["resources"]["slots"] = 0;
  auto low = below.template_config;
  if (low.is_object() && (!generic || !resources.is_null())) // only resources of the request count
    low.erase("resources");
  auto merged = over(schema, submitted, file.c_str(), low, "template");
  if (!merged)
    return merged.error();

  const auto slots = member(member(*merged, "resources"), "slots");
  auto wish = text_of(member(member(*merged, "resources"), "resource_pool"));
  const auto& usual = slots == 0 ? below.aux_pool : below.compute_pool;
  if (wish.empty() && !usual.empty() && config::has_pool(below.cluster, usual))
    wish = usual;
  const auto pools = below.pools.value_or(config::all_pools(below.cluster));
  if (!wish.empty()) // also where no file was ever applied, and pool_of_experiment takes every name
    if (auto fine = pools.check(wish); !fine)
      return unfit("resources.resource_pool: " + fine.error().what);
  auto pool = config::pool_of_experiment(below.cluster, {{"resources", {{"resource_pool", wish}}}}, pools);
  if (!pool)
    return unfit(pool.error().what);
  out.pool = *pool;

  const auto of_pool =
    pool_layer(kind, below.cluster, out.pool, static_cast<std::int64_t>(number_in(slots).value_or(1)));
  if (!of_pool)
    return of_pool.error();
  merged = over(schema, *merged, file.c_str(), *of_pool, "defaults of the pool");
  if (merged && !below.invariant.is_null())
    merged = over(schema, below.invariant, "config policies", *merged, file.c_str());
  if (!merged)
    return merged.error();
  auto words = member(*merged, "entrypoint");
  if ((kind == task_kind::command || generic) && config::names_no_program(words))
    return unfit("entrypoint: it must not be empty\nhint: add entrypoint: [sleep, infinity]");
  (*merged)["entrypoint"] = shown_entrypoint(kind, words);
  const auto whole = to_json(*merged);
  auto complete = config::complete_as(schema, whole, file, config::level::complete);
  if (!complete.ok())
    return unfit(complete, "");
  out.config = std::move(complete.config);
  auto& settings = out.config;
  settings["resources"]["resource_pool"] = out.pool;
  if (!generic)
    settings["resources"]["is_single_node"] = nullptr;
  if (generic) {
    out.name = "Generic Task " + to_string(id);
  } else {
    out.name = kind == task_kind::tensorboard ? "" : in_one_line(text_of(member(settings, "description")));
    if (out.name.empty())
      out.name = std::string(title_of(kind)) + " (" + pet_name(id) + ")";
    settings["description"] = out.name;
  }

  if (auto fine = check_ports(settings); !fine)
    return fine.error();
  if (auto fine = check_log_policies(member(settings, "log_policies")); !fine)
    return unfit(fine.error().what);
  if (auto fine = check_constraints(settings, below.constraints); !fine)
    return error{errc::invalid, "failed constraint check: " + fine.error().what};
  if (const auto idle = member(settings, "idle_timeout");
      idle.is_string() && !config::go_duration(idle.get<std::string>()))
    return unfit("idle_timeout: expected a time like 30m or 1h30m, got " + to_json(idle));
  if (kind == task_kind::notebook || kind == task_kind::tensorboard) {
    const auto* key = kind == task_kind::notebook ? "notebook_timeout" : "tensorboard_timeout";
    auto usual_timeout = text_of(member(member(below.cluster, "cluster"), key));
    if (usual_timeout.empty() && kind == task_kind::tensorboard)
      usual_timeout = "5m";
    if (member(settings, "idle_timeout").is_null() && !usual_timeout.empty() && usual_timeout != "off" &&
        config::go_duration(usual_timeout))
      settings["idle_timeout"] = usual_timeout;
  }
  task_created trial_run; // builds the task's settings once, to find faults before the task exists
  trial_run.id = id;
  trial_run.config = settings;
  trial_run.name = out.name;
  if (auto works = task_settings_of(trial_run, ""); !works)
    return unfit(works.error().what);
  return out;
}

} // namespace troupe
