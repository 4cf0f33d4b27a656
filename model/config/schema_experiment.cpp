// The whole configuration of an experiment.

#include "model/config/shapes.hpp"

#include <set>

namespace troupe::config {
namespace {

bool begins_before_end(const node& x) {
  const auto *begin = x.find("begin_on_batch"), *end = x.find("end_after_batch");
  if (!begin || !end || !begin->is_integer() || !end->is_integer())
    return true;
  return begin->as_double() <= end->as_double();
}

shape& section(schema_table& t, const char* name, const char* doc, std::vector<key> keys) {
  auto& s = t.make(name);
  s.kinds = map_bit;
  s.doc = doc;
  s.keys = std::move(keys);
  s.merge = merging::by_key;
  return s;
}

void add_sections(schema_table& t) {
  auto& profiling =
    section(t, "profiling", "System metrics of trials.",
            {given("enabled", boolean(t), false, "Whether system metrics are recorded."),
             given("begin_on_batch", integer(t, {.least = 0}), 0, "Key of older versions.", "batches"),
             unset("end_after_batch", integer(t, {.least = 0}), "Key of older versions.", "batches"),
             given("sync_timings", boolean(t), true, "Key of older versions.")});
  profiling.rules.push_back({"begin_on_batch must not be more than end_after_batch", begins_before_end,
                             "begin_on_batch", need::always, nullptr, ""});
  section(
    t, "runtime", "Settings for the start of the trials' processes.",
    {unset(
      "zygote", either(t, {boolean(t), one_of(t, {"on", "off"}, "true, false, \"on\" or \"off\"")}),
      "Whether a trial that is one Python script may be forked from a process that has its libraries loaded; "
      "it may, unless false or off.")});
  section(t, "reproducibility", "Settings that make runs repeatable.",
          {to_run(unset("experiment_seed", integer(t, {.least = 0, .most = 4294967295.0}),
                        "Seed of the search and of the trials (default: drawn by the cluster)."))});
  section(
    t, "optimizations", "Keys of older versions (Horovod); kept for code that reads them.",
    {given("aggregation_frequency", integer(t, {.least = 1}), 1, "Key of older versions.", "batches"),
     given("auto_tune_tensor_fusion", boolean(t), false, "Key of older versions."),
     given("average_aggregated_gradients", boolean(t), true, "Key of older versions."),
     given("average_training_metrics", boolean(t), true, "Key of older versions."),
     given("gradient_compression", boolean(t), false, "Key of older versions."),
     unset("grad_updates_size_file", text(t), "Key of older versions."),
     given("mixed_precision",
           one_of(t, {"O0", "O1", "O2", "O3"}, "a string that starts with an uppercase letter O, as \"O1\""),
           "O0", "Key of older versions."),
     given("tensor_fusion_cycle_time", integer(t, {.least = 0}), 1, "Key of older versions.", "ms"),
     given("tensor_fusion_threshold", integer(t, {.least = 0}), 64, "Key of older versions.", "MiB")});
}

void drop_repeats(value& list) {
  if (!list.is_array())
    return;
  value once = value::array();
  std::set<value> known;
  for (auto& item : list)
    if (known.insert(item).second)
      once.push_back(std::move(item));
  list = std::move(once);
}

shape_ref labels(schema_table& t) {
  auto& s = t.make();
  s.kinds = list_bit;
  s.items = text(t);
  s.shim = drop_repeats;
  s.merge = merging::each_once;
  return &s;
}

shape_ref name_text(schema_table& t) {
  auto& s = t.make();
  s.kinds = text_bit;
  s.fits = [](std::string_view name) { return name.size() <= 10 * 1024; };
  s.pattern_says = "at most 10 KB";
  return &s;
}

} // namespace

void add_experiment(schema_table& t) {
  add_sections(t);
  auto& e = t.make("experiment");
  e.kinds = map_bit;
  e.doc = "The configuration of an experiment.";
  e.merge = merging::by_key;
  auto by_default = [&](const char* name, const char* schema) {
    return given(name, t.at(schema), value::object(), t.at(schema)->doc);
  };
  auto listed = [&](const char* name, const char* schema) {
    return given(name, t.at(schema), value::array(), t.at(schema)->doc);
  };
  auto period = [&](const char* name, const char* doc) {
    return given(name, t.at("length"), {{"batches", 0}}, doc);
  };
  e.keys = {
    to_run(unset("name", name_text(t), "Name that lists show (default: a made-up name).")),
    unset("description", text(t), "Free text."),
    given("labels", labels(t), value::array(), "Labels to find the experiment by."),
    given("data", any_map(t), value::object(),
          "Anything for the training code; the values of data.secrets are hidden in all views."),
    given("workspace", text(t), "", "Workspace of the experiment; goes with project."),
    given("project", text(t), "", "Project of the experiment; goes with workspace."),
    unset("entrypoint", either(t, {text(t), list_of(t, text(t))}),
          "Command of a trial: a shell command, or a program and its arguments."),
    native(given("launch", one_of(t, {"per_agent", "per_slot"}), "per_agent",
                 "Processes of a trial: one on each agent, whose entrypoint starts its own ranks, "
                 "or one for each slot, "
                 "with the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, ...).")),
    by_default("hyperparameters", "hyperparameters"),
    to_run(unset("searcher", t.at("searcher"), t.at("searcher")->doc)),
    by_default("resources", "resources"),
    by_default("environment", "environment"),
    listed("bind_mounts", "bind-mounts"),
    to_run(unset("checkpoint_storage", t.at("checkpoint-storage"), t.at("checkpoint-storage")->doc)),
    given("checkpoint_policy", one_of(t, {"best", "all", "none"}), "best",
          "Validations that are followed by a checkpoint: best, all or none."),
    period("min_checkpoint_period", "Key of older versions; the training code decides."),
    period("min_validation_period", "Key of older versions; the training code decides."),
    given("perform_initial_validation", boolean(t), false, "Whether trials validate before they train."),
    given("scheduling_unit", integer(t, {.least = 1}), 100, "Key of older versions.", "batches"),
    given("records_per_epoch", integer(t), 0, "Key of older versions.", "records"),
    given("max_restarts", integer(t, {.least = 0}), 5, "Number of times that a failed trial is restarted.",
          "restarts"),
    unset("preemption_timeout", integer(t),
          "Time that a trial may take to stop when it is preempted or paused.", "seconds"),
    given("debug", boolean(t), false, "Whether the libraries log more."),
    listed("log_policies", "log-policies"),
    unset("retention_policy", t.at("retention-policy"), t.at("retention-policy")->doc),
    by_default("reproducibility", "reproducibility"),
    by_default("profiling", "profiling"),
    by_default("optimizations", "optimizations"),
    unset("integrations", t.at("integrations"), t.at("integrations")->doc),
    by_default("slurm", "hpc-cluster-slurm"),
    by_default("pbs", "hpc-cluster-pbs"),
    quiet(unset("security", t.at("security"), t.at("security")->doc)),
    quiet(unset("tensorboard_storage", t.at("tensorboard-storage"), t.at("tensorboard-storage")->doc)),
    ignored(unset("data_layer", any_map(t), "Key of older versions; ignored.")),
  };
  for (auto* name : {"hyperparameters", "reproducibility"})
    for (auto& k : e.keys)
      if (k.name == name)
        k.needed = need::to_run;
  // The version of the format; there was never another one.
  auto runtime = unset("runtime", t.at("runtime"), t.at("runtime")->doc);
  runtime.since = "troupe";
  e.keys.push_back(std::move(runtime));
  auto version =
    ignored(unset("version", integer(t, {.least = 0, .most = 0}), "The version of the format: 0."));
  version.since = "troupe"; // no schema has it; Determined removes it before its checks
  e.keys.push_back(std::move(version));
  auto& null_only = t.make();
  null_only.kinds = bit(kind::null);
  e.keys.push_back(ignored(unset("internal", &null_only, "Key of older versions; ignored.")));
}

} // namespace troupe::config
