// What the master and the agents of Determined read at their start: for clusters that come from there, and
// for the parts that we share (pools, schedulers, defaults of tasks).

#include "model/config/shapes.hpp"

namespace troupe::config {
namespace {

shape& map_named(schema_table& t, std::string doc, std::vector<key> keys, std::string name = {}) {
  auto& s = t.make(std::move(name));
  s.kinds = map_bit;
  s.doc = std::move(doc);
  s.keys = std::move(keys);
  s.merge = merging::by_key;
  return s;
}

/// Renames an old key; the new one wins where both are given.
void rename(value& x, const char* old_name, const char* new_name) {
  if (!x.is_object() || !x.contains(old_name))
    return;
  if (!x.contains(new_name) || x[new_name].is_null())
    x[new_name] = x[old_name];
  x.erase(old_name);
}

void rename_pools(value& x) {
  rename(x, "default_cpu_resource_pool", "default_aux_resource_pool");
  rename(x, "default_gpu_resource_pool", "default_compute_resource_pool");
  rename(x, "name", "cluster_name");
}

void rename_limits(value& x) { rename(x, "max_cpu_containers_per_agent", "max_aux_containers_per_agent"); }

shape& scheduler(schema_table& t) {
  return map_named(t, "Scheduler: which task runs next, and on which agent.",
                   {given("type", one_of(t, {"priority", "fair_share"}, "round_robin is gone; use priority"),
                          "priority", "Kind of scheduler: by priority, or a fair share for everybody."),
                    given("fitting_policy", one_of(t, {"best", "worst"}), "best",
                          "Placement: the fullest host first, or the emptiest."),
                    given("default_priority", integer(t, {.least = 1, .most = 99}), 42,
                          "Priority of tasks that name none; 1 comes first."),
                    given("preemption", boolean(t), false,
                          "Whether a task that comes first in the order may preempt a running one."),
                    given("allow_heterogeneous_fits", boolean(t), false,
                          "Whether a gang may use hosts of different kinds.")});
}

shape& resource_manager(schema_table& t, shape_ref scheduler) {
  auto& s = map_named(
    t, "Owner of the slots.",
    {given("type", one_of(t, {"agent"}, "Kubernetes and Slurm are not supported"), "agent", "Kind."),
     given("cluster_name", text(t), "default", "The name of the cluster."),
     ignored(unset("name", text(t), "The old name of cluster_name.")),
     given("scheduler", scheduler, value::object(), scheduler->doc),
     given("default_aux_resource_pool", text(t), "default", "The pool of tasks without slots."),
     given("default_compute_resource_pool", text(t), "default", "The pool of tasks with slots."),
     ignored(unset("default_cpu_resource_pool", text(t), "The old name of default_aux_resource_pool.")),
     ignored(unset("default_gpu_resource_pool", text(t), "The old name of default_compute_resource_pool.")),
     given("no_default_resource_pools", boolean(t), false, "Whether every task must name its pool."),
     given("require_authentication", boolean(t), false, "Whether agents need a certificate."),
     quiet(unset("client_ca", text(t), "The authority of their certificates.")),
     quiet(unset("metadata", any_map(t), "Anything."))});
  s.shim = rename_pools;
  return s;
}

shape& pools(schema_table& t, shape_ref scheduler) {
  auto& pool = map_named(
    t, "A pool of agents.",
    {required("pool_name", text(t), "Name of the pool."), given("description", text(t), "", "Free text."),
     quiet(unset("provider", any_map(t), "Provider of agents that are started on demand.")),
     quiet(unset("scheduler", scheduler, "Settings that replace those of the cluster as a whole.")),
     given("max_aux_containers_per_agent", integer(t, {.least = 0}), 100, "Tasks without slots on one agent.",
           "tasks"),
     ignored(
       unset("max_cpu_containers_per_agent", integer(t), "The old name of max_aux_containers_per_agent.")),
     quiet(unset("task_container_defaults", t.at("task-container-defaults"),
                 "Settings merged over those of the cluster.")),
     given("agent_reconnect_wait", text(t), "25s", "Time that an agent may be away."),
     ignored(unset("agent_reattach_enabled", boolean(t), "Key of older versions; agents always reconnect.")),
     quiet(unset("kubernetes_namespace", text(t), "Of Kubernetes."))},
    "resource-pool");
  pool.shim = rename_limits;
  auto& list = t.make();
  list.kinds = list_bit;
  list.items = &pool;
  list.doc = "The pools of agents.";
  return list;
}

shape& security(schema_table& t) {
  auto word = [&](const char* name, const char* doc) { return quiet(unset(name, text(t), doc)); };
  auto flag = [&](const char* name, const char* doc) { return quiet(unset(name, boolean(t), doc)); };
  auto block = [&](const char* name, const char* doc) { return quiet(unset(name, any_map(t), doc)); };
  auto days = [&](const char* name, const char* doc) {
    return quiet(unset(name, integer(t, {.least = -1, .most = 36500}), doc, "days"));
  };
  auto& tls = map_named(t, "TLS of the master.",
                        {word("cert", "File with the certificate."), word("key", "File with its key.")});
  auto& rights =
    map_named(t, "Who may do what.",
              {quiet(unset("type", one_of(t, {"basic", "rbac"}), "Whether flags or roles decide.")),
               quiet(unset("fallback", one_of(t, {"basic"}), "What decides where the first form does not.")),
               flag("rbac_ui_enabled", "Whether the page shows roles."),
               block("workspace_creator_assign_role", "Role of who makes a workspace."),
               ignored(flag("_strict_ntsc_enabled", "Key of older versions.")),
               flag("strict_job_queue_control", "Whether only admins change the queue.")});
  auto& tokens = map_named(t, "How long access tokens are valid; -1: for ever.",
                           {days("default_lifespan_days", "Of one for which nothing was asked."),
                            days("max_lifespan_days", "At most.")});
  return map_named(t, "Logins, TLS, permissions.",
                   {block("default_task", "Account of tasks."), quiet(unset("tls", &tls, tls.doc)),
                    block("ssh", "Keys of shells."), quiet(unset("authz", &rights, rights.doc)),
                    quiet(unset("token", &tokens, tokens.doc)),
                    word("initial_user_password", "Password of the first users.")});
}

void add_master(schema_table& t) {
  const auto& order = scheduler(t);
  auto& manager = resource_manager(t, &order);
  auto& all = pools(t, &order);
  auto block = [&](const char* name, const char* doc) { return quiet(unset(name, any_map(t), doc)); };
  auto& logins = security(t);
  auto& hooks = map_named(t, "Webhooks.",
                          {quiet(unset("signing_key", text(t), "Key of signatures.")),
                           quiet(unset("base_url", text(t), "Address of the page in messages."))});
  auto& kept = map_named(
    t, "Time for which logs are kept, and of the clean-up.",
    {quiet(unset("log_retention_days", integer(t, {.least = -1, .most = 32767}), "-1: for ever.", "days")),
     quiet(unset("schedule", anything(t), "When logs are looked through."))});
  map_named(t, "The configuration of a master of Determined.",
            {quiet(unset("config_file", text(t), "The file that this was read from.")),
             given("port", integer(t, {.least = 0, .most = 65535}), 8080, "The port of HTTP."),
             quiet(unset("root", text(t), "Folder of the web page.")),
             given("cluster_name", text(t), "", "Shown to users."),
             given("resource_manager", &manager, value::object(), manager.doc),
             given("resource_pools", &all, value::array({{{"pool_name", "default"}}}), all.doc),
             quiet(unset("task_container_defaults", t.at("task-container-defaults"),
                         t.at("task-container-defaults")->doc)),
             quiet(unset("checkpoint_storage", t.at("checkpoint-storage"), t.at("checkpoint-storage")->doc)),
             quiet(unset("retention_policy", &kept, kept.doc)),
             given("launch_error", boolean(t), true, "Whether a task that can never fit is refused."),
             given("enable_cors", boolean(t), false, "Whether web pages of other origins may call the API."),
             quiet(unset("tensorboard_timeout", integer(t), "When an idle TensorBoard ends.", "seconds")),
             quiet(unset("notebook_timeout", integer(t), "When an idle notebook ends.", "seconds")),
             quiet(unset("feature_switches", list_of(t, text(t)), "Switches.")),
             quiet(unset("reserved_ports", list_of(t, integer(t)), "Ports that tasks must not get.")),
             quiet(unset("additional_resource_managers", list_of(t, any_map(t)), "Of Kubernetes.")),
             block("cache", "The cache."),
             block("log", "The master's own log."),
             block("db", "The database."),
             quiet(unset("security", &logins, logins.doc)),
             block("telemetry", "Reports to the makers of Determined."),
             block("observability", "Prometheus."),
             block("logging", "Place of the task logs."),
             quiet(unset("webhooks", &hooks, hooks.doc)),
             block("ui_customization", "Logos."),
             block("integrations", "Pachyderm."),
             block("scim", "Users from outside."),
             block("oidc", "Single sign-on."),
             block("saml", "Single sign-on."),
             block("__internal", "Internal.")},
            "master-config");
}

void add_agent(schema_table& t) {
  auto number_of = [&](const char* name, value usual, const char* doc, const char* unit = "") {
    return given(name, integer(t, {.least = 0}), std::move(usual), doc, unit);
  };
  auto flag = [&](const char* name, const char* doc) { return given(name, boolean(t), false, doc); };
  auto word = [&](const char* name, const char* doc) { return quiet(unset(name, text(t), doc)); };
  auto& log = map_named(t, "The agent's own log.",
                        {given("level", one_of(t, {"trace", "debug", "info", "warn", "error", "fatal"}),
                               "trace", "Lowest level that is logged."),
                         given("color", boolean(t), true, "Whether the log is coloured.")});
  auto& tls = map_named(
    t, "TLS to the master.",
    {flag("enabled", "Whether TLS is used."), flag("skip_verify", "Whether any certificate will do."),
     word("master_cert", "The master's certificate."), word("master_cert_name", "Name of the certificate."),
     word("client_cert", "The agent's certificate."),
     word("client_key", "Private key of the agent's certificate.")});
  auto& security =
    map_named(t, "Trust of the agent in its master.", {given("tls", &tls, value::object(), tls.doc)});
  auto& hooks =
    map_named(t, "Commands of the agent's host.",
              {given("on_connection_lost", list_of(t, text(t)), value::array(), "When the master is away.")});
  map_named(
    t, "The configuration of an agent of Determined.",
    {word("config_file", "The file that this was read from."),
     given("log", &log, value::object(), log.doc),
     to_run(word("master_host", "The host of the master.")),
     quiet(unset("master_port", integer(t, {.least = 0, .most = 65535}),
                 "Port of the master (default: 80, with TLS 443).")),
     word("agent_id", "Name of the agent (default: the name of the host)."),
     given("resource_pool", text(t), "default", "Pool of the agent."),
     word("container_master_host", "The master as tasks see it."),
     quiet(unset("container_master_port", integer(t), "Port of the master as tasks see it.")),
     given("slot_type", one_of(t, {"auto", "cuda", "gpu", "rocm", "cpu", "none"}), "auto", "Kind of a slot."),
     word("visible_gpus", "GPUs to use (default: all)."),
     given("security", &security, value::object(), security.doc),
     flag("debug", "Whether the agent logs more."),
     number_of("artificial_slots", 0, "Slots without a device.", "slots"),
     flag("tls", "Whether the agent's own API uses TLS."),
     word("tls_cert", "Certificate of the agent's own API."),
     word("tls_key", "Private key of tls_cert."),
     flag("api_enabled", "Whether the agent has an API of its own."),
     given("bind_ip", text(t), "0.0.0.0", "Address of the agent's own API."),
     number_of("bind_port", 9090, "Port of the agent's own API."),
     word("http_proxy", "A proxy."),
     word("https_proxy", "A proxy."),
     word("ftp_proxy", "A proxy."),
     word("no_proxy", "Hosts without a proxy."),
     number_of("agent_reconnect_attempts", 5, "Number of tries to dial the master again.", "attempts"),
     number_of("agent_reconnect_backoff", 5, "Pause between two tries.", "seconds"),
     given("container_runtime", text(t), "docker", "Container runtime; Troupe runs tasks as processes."),
     flag("container_auto_remove_disabled", "Whether dead containers stay."),
     given("hooks", &hooks, value::object(), hooks.doc),
     word("image_root", "A folder of images.")},
    "agent-config");
}

} // namespace

void add_master_and_agent(schema_table& t) {
  add_master(t);
  add_agent(t);
}

} // namespace troupe::config
