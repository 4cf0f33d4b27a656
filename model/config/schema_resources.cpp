// How many slots a trial gets, and where.

#include "model/config/memory_size.hpp"
#include "model/config/shapes.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

bool is_memory_size(std::string_view text) { return parse_memory_size(text).has_value(); }

void size_in_bytes(value& x) {
  if (x.is_string())
    if (auto bytes = parse_memory_size(x.get_ref<const std::string&>()))
      x = *bytes;
}

shape_ref memory_size(schema_table& t) {
  auto& written = t.make();
  written.kinds = text_bit;
  written.fits = is_memory_size;
  written.pattern = R"(^([0-9]*[.])?[0-9]+ ?(([kmgtpKMGTP]([iI]?[bB])?)|[bB])?$)";
  written.pattern_says = "a memory size as 512 MiB or 1.5G";
  auto& s = t.make();
  s.kinds = text_bit | whole_bit;
  s.alternatives = {integer(t), &written};
  s.shim = size_in_bytes;
  return &s;
}

void add_cluster_kinds(schema_table& t) {
  auto arguments = [&] {
    auto& s = t.make();
    s.kinds = list_bit;
    s.items = text(t);
    s.merge = merging::lower_first;
    return &s;
  };
  auto per_node =
    quiet(unset("slots_per_node", integer(t, {.least = 1}), "Slots that a node must have.", "slots"));
  auto& slurm = t.make("hpc-cluster-slurm");
  slurm.kinds = map_bit;
  slurm.doc = "Settings for clusters that Slurm schedules.";
  slurm.merge = merging::by_key;
  slurm.keys = {per_node, quiet(unset("gpu_type", text(t), "The Slurm name of the GPU.")),
                quiet(unset("sbatch_args", arguments(), "Arguments for sbatch."))};
  auto& pbs = t.make("hpc-cluster-pbs");
  pbs.kinds = map_bit;
  pbs.doc = "Settings for clusters that PBS schedules.";
  pbs.merge = merging::by_key;
  pbs.keys = {per_node, quiet(unset("pbsbatch_args", arguments(), "Arguments for qsub."))};
}

bool names_differ(const node& x) {
  const auto names = [&](const char* key) {
    std::vector<std::string_view> out;
    if (const auto* list = x.find(key))
      for (const auto& one : list->items)
        out.push_back(one.text);
    return out;
  };
  const auto wanted = names("agents"), excluded = names("not_agents");
  return std::none_of(wanted.begin(), wanted.end(), [&](const auto& name) {
    return std::find(excluded.begin(), excluded.end(), name) != excluded.end();
  });
}

bool memory_is_not_negative(const node& x) {
  const auto* memory = x.find("min_memory");
  return !memory || !memory->is_integer() || memory->as_double() >= 0;
}

bool same_label_is_a_name(const node& x) {
  const auto* label = x.find("same_label");
  return !label || !label->is(kind::string) || !label->text.empty();
}

/// An agent carries one value of a label, so that none could be right where none is accepted.
bool labels_name_values(const node& x) {
  const auto* labels = x.find("labels");
  return !labels || !labels->is(kind::map) ||
         std::none_of(labels->entries.begin(), labels->entries.end(),
                      [](const auto& e) { return e.what.is(kind::list) && e.what.items.empty(); });
}

shape_ref constraints(schema_table& t) {
  auto* values = either(t, {text(t), list_of(t, text(t))});
  auto& s = t.make("constraints");
  s.kinds = map_bit;
  s.merge = merging::by_key;
  s.doc = "Properties that a slot or its node must have.";
  s.rules = {{"no name may stand in both agents and not_agents",
              names_differ,
              "agents",
              need::always,
              {},
              "leave it out of one of them"},
             {"min_memory must not be below 0",
              memory_is_not_negative,
              "min_memory",
              need::always,
              {},
              "write it as 40 GiB"},
             {"each of the labels must have an accepted value",
              labels_name_values,
              "labels",
              need::always,
              {},
              "name one, or leave the label out"},
             {"same_label must name a label",
              same_label_is_a_name,
              "same_label",
              need::always,
              {},
              "write it as rack, or leave it out"}};
  s.keys = {
    native(unset("device_type", either(t, {text(t), list_of(t, text(t))}),
                 "Name of the device, or a list of accepted names, as cuda, cpu or H200.")),
    native(unset("min_memory", memory_size(t), "The least memory of a device, as 40 GiB.", "bytes")),
    native(unset("labels", map_of(t, values),
                 "Labels that the node must carry, each with its value, or a list of accepted values.")),
    native(unset("not_labels", map_of(t, values), "Labels that the node must not carry.")),
    native(unset("agents", list_of(t, text(t)), "Names of the agents that may hold the trial.")),
    native(unset("not_agents", list_of(t, text(t)), "Names of agents that may not hold the trial.")),
    native(
      unset("same_label", text(t), "Label of which all agents of a gang must carry one value, as rack.")),
    native(unset("prefer_labels", map_of(t, values),
                 "Labels of the nodes that are taken first, where there is a choice."))};
  return &s;
}

bool is_range(const node& x) {
  const auto* least = x.find("min");
  const auto* most = x.find("max");
  return !least || !most || !least->is_integer() || !most->is_integer() ||
         least->as_double() <= most->as_double();
}

/// Whether the limit allows at least one trial.
bool trial_fits_limit(const node& x) {
  const auto *limit = x.find("max_slots"), *slots = x.find("slots_per_trial");
  if (slots && slots->is(kind::map))
    slots = slots->find("min");
  if (!limit || !limit->is_integer())
    return true;
  return limit->as_double() >= (slots && slots->is_integer() ? slots->as_double() : 1);
}

/// A number, or a range in which the number of ranks may change while the trial lives.
shape_ref slots_per_trial(schema_table& t) {
  auto& range = t.make();
  range.kinds = map_bit;
  range.merge = merging::by_key;
  range.doc =
    "Range of slots: the trial gets as many as are free, from min to max, and grows and shrinks with them.";
  range.keys = {native(to_run(unset("min", integer(t, {.least = 1}),
                                    "Smallest number of slots with which the trial runs.", "slots"))),
                native(to_run(unset("max", integer(t, {.least = 1}),
                                    "Largest number of slots that the trial takes.", "slots")))};
  range.rules = {{"min must not be above max", is_range, "min", need::always, {}, "write {min: 2, max: 8}"}};
  return either(t, {integer(t, {.least = 0}), &range});
}

} // namespace

void add_resources(schema_table& t) {
  add_cluster_kinds(t);
  auto& r = t.make("resources");
  r.kinds = map_bit;
  r.doc = "Slots and pool of a trial.";
  r.merge = merging::by_key;
  r.keys = {
    given("slots_per_trial", slots_per_trial(t), 1,
          "Slots of each trial; 0: no slot. {min: 2, max: 8}: as many as are free in this range.", "slots"),
    unset("max_slots", integer(t), "Limit of the slots that all trials use together.", "slots"),
    given("weight", number(t, {.least = 0}), 1,
          "Weight of the experiment's share of a fair pool; 0: only what is left over."),
    unset("priority", integer(t, {.least = 1, .most = 99}),
          "Priority; a smaller number comes first (default: as the pool says, or 42)."),
    given("resource_pool", text(t), "", "Name of the pool; empty: the default pool."),
    unset("is_single_node", boolean(t), "Whether all slots of a trial must be on one node."),
    unset("shm_size", memory_size(t), "The shared memory of a task, as bytes or 1.5G.", "bytes"),
    given("devices", t.at("devices"), value::array(), t.at("devices")->doc),
    given("native_parallel", boolean(t), false, "Key of older versions; ignored."),
    quiet(unset("slots", integer(t),
                "Slots of tasks that are not experiments; an experiment uses slots_per_trial.", "slots")),
    ignored(unset("agent_label", text(t), "Key of older versions; ignored.")),
    native(unset("constraints", constraints(t), "Properties that a slot or its node must have.")),
  };
  r.rules.push_back({"max_slots must not be below the slots of one trial",
                     trial_fits_limit,
                     "max_slots",
                     need::always,
                     {},
                     "raise max_slots, or lower slots_per_trial"});
}

} // namespace troupe::config
