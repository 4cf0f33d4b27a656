// What a cluster gives to the tasks of a pool: the layer below every experiment.

#include "model/config/shapes.hpp"

namespace troupe::config {
namespace {

shape_ref list_merged_by(schema_table& t, merging rule, shape_ref items) {
  auto& s = t.make();
  s.kinds = list_bit;
  s.items = items;
  s.merge = rule;
  return &s;
}

shape_ref strings(schema_table& t, merging rule) { return list_merged_by(t, rule, text(t)); }

/// The experiment's shape, except that a variable of the higher layer replaces the lower one's.
shape_ref variables(schema_table& t) {
  auto& s = t.make();
  const auto* usual = t.at("environment-variables");
  s = *usual;
  s.name.clear();
  auto& map = t.make();
  map = *t.at("environment-variables-map");
  map.name.clear();
  for (auto& k : map.keys)
    k.what = list_merged_by(t, merging::by_variable, k.what->items);
  s.alternatives = {&map, list_merged_by(t, merging::by_variable, map.keys.front().what->items)};
  return &s;
}

shape_ref batch(schema_table& t, const char* of) {
  auto& s = t.make();
  s = *t.at(of);
  s.name.clear();
  for (auto& k : s.keys)
    if (k.what->takes(kind::list))
      k.what = strings(t, merging::higher_first);
  return &s;
}

bool has_program(const node& x) {
  const auto* entrypoint = x.find("entrypoint");
  return entrypoint && entrypoint->is(kind::list) && !entrypoint->items.empty();
}

/// Keys of tasks that are not experiments: commands, shells, notebooks, TensorBoards.
void add_command(schema_table& t) {
  auto& resources = t.make();
  resources.kinds = map_bit;
  resources.merge = merging::by_key;
  resources.doc = "Slots and pool of a task.";
  resources.keys = {given("slots", integer(t, {.least = 0}), 1, "Slots of the task; 0: no slot.", "slots")};
  for (auto same : {"weight", "priority", "resource_pool", "is_single_node", "shm_size", "devices",
                    "native_parallel", "max_slots", "agent_label", "constraints"})
    resources.keys.push_back(*t.at("resources")->find(same));
  auto& c = t.make("command");
  c.kinds = map_bit;
  c.doc = "A task that is not an experiment: command, shell, notebook, TensorBoard.";
  c.merge = merging::by_key;
  auto empty_map = value::object();
  c.keys = {
    unset("description", text(t), "Free text."),
    to_run(given("entrypoint", list_of(t, text(t)), value::array(), "The program and its arguments.")),
    given("environment", t.at("environment"), empty_map, t.at("environment")->doc),
    given("resources", &resources, empty_map, resources.doc),
    given("bind_mounts", t.at("bind-mounts"), value::array(), t.at("bind-mounts")->doc),
    unset("work_dir", text(t), "The working directory; $AGENT_USER and $DET_USER are filled in."),
    given("tensorboard_args", list_of(t, text(t)), value::array(), "Arguments for TensorBoard."),
    unset("idle_timeout", text(t), "Time after which an idle task ends, as 5m."),
    given("notebook_idle_type", one_of(t, {"kernels_or_terminals", "kernel_connections", "activity"}),
          "kernels_or_terminals", "Activity that keeps a notebook from being idle."),
    given("debug", boolean(t), false, "Whether the libraries log more."),
    given("log_policies", t.at("log-policies"), value::array(), t.at("log-policies")->doc),
    unset("workspace_id", integer(t), "The workspace that the task belongs to."),
    given("slurm", t.at("hpc-cluster-slurm"), empty_map, t.at("hpc-cluster-slurm")->doc),
    given("pbs", t.at("hpc-cluster-pbs"), empty_map, t.at("hpc-cluster-pbs")->doc),
  };
  c.rules.push_back({"entrypoint must not be empty", has_program, "", need::to_run, nullptr,
                     "add entrypoint: [sleep, infinity]"});

  auto& of_generic = t.make();
  of_generic = resources;
  for (auto& k : of_generic.keys)
    if (k.name == "is_single_node")
      k = given("is_single_node", boolean(t), true, "Whether all slots are those of one agent.");
  auto& g = t.make("generic-task");
  g.kinds = map_bit;
  g.doc = "Any program, as a task with slots.";
  g.merge = merging::by_key;
  g.keys = {
    to_run(unset("entrypoint", either(t, {text(t), list_of(t, text(t))}),
                 "The program: a text is a shell's, a list is run as it is.")),
    given("environment", t.at("environment"), empty_map, t.at("environment")->doc),
    given("resources", &of_generic, empty_map, of_generic.doc),
    given("bind_mounts", t.at("bind-mounts"), value::array(), t.at("bind-mounts")->doc),
    unset("work_dir", text(t), "The working directory; $AGENT_USER and $DET_USER are filled in."),
    given("debug", boolean(t), false, "Whether the libraries log more."),
    given("preemption_timeout", integer(t, {.least = 1}), 3600, "Time that the task may take to stop.",
          "seconds"),
    given("log_policies", t.at("log-policies"), value::array(), t.at("log-policies")->doc),
    given("slurm", t.at("hpc-cluster-slurm"), empty_map, t.at("hpc-cluster-slurm")->doc),
    given("pbs", t.at("hpc-cluster-pbs"), empty_map, t.at("hpc-cluster-pbs")->doc),
  };
}

} // namespace

void add_cluster(schema_table& t) {
  add_command(t);
  auto& d = t.make("task-container-defaults");
  d.kinds = map_bit;
  d.doc = "Defaults of a cluster for the tasks of a pool.";
  d.merge = merging::by_key;
  d.keys = {
    quiet(unset("dtrain_network_interface", text(t), "The network of distributed training.")),
    quiet(unset("nccl_port_range", text(t), "Ports for NCCL, as 1-2.")),
    quiet(unset("gloo_port_range", text(t), "Ports for Gloo, as 1-2.")),
    given("shm_size_bytes", integer(t), 4294967296, "The shared memory of a task.", "bytes"),
    given("network_mode", text(t), "bridge", "The network of a container."),
    quiet(
      unset("cpu_pod_spec", t.at("environment")->find("pod_spec")->what, "The pod of tasks without slots.")),
    quiet(unset("gpu_pod_spec", t.at("environment")->find("pod_spec")->what, "The pod of tasks with slots.")),
    quiet(unset("image", t.at("environment-image"), t.at("environment-image")->doc)),
    quiet(unset("registry_auth", t.at("registry-auth"), t.at("registry-auth")->doc)),
    quiet(unset("force_pull_image", boolean(t), "Whether the image is fetched anew for each task.")),
    quiet(unset("environment_variables", variables(t), t.at("environment-variables")->doc)),
    quiet(unset("add_capabilities", strings(t, merging::sorted_set), "Linux capabilities to add.")),
    quiet(unset("drop_capabilities", strings(t, merging::sorted_set), "Linux capabilities to take away.")),
    quiet(unset("devices", t.at("devices"), t.at("devices")->doc)),
    quiet(unset("bind_mounts", t.at("bind-mounts"), t.at("bind-mounts")->doc)),
    quiet(unset("work_dir", text(t), "The working directory.")),
    quiet(unset("startup_hook", text(t), "A shell script that runs before the task.")),
    quiet(unset("slurm", batch(t, "hpc-cluster-slurm"), t.at("hpc-cluster-slurm")->doc)),
    quiet(unset("pbs", batch(t, "hpc-cluster-pbs"), t.at("hpc-cluster-pbs")->doc)),
    quiet(unset("log_policies", t.at("log-policies"), t.at("log-policies")->doc)),
    given("preemption_timeout", integer(t), 3600, "Time that a task may take to stop.", "seconds"),
  };
}

} // namespace troupe::config
