// The file of a whole cluster: `troupe up FILE`. docs/cluster-file.md and `troupe explain` are made from it.

#include "model/config/cluster_file.hpp"
#include "model/config/duration_text.hpp"
#include "model/config/effects.hpp"
#include "model/config/shapes.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

shape& map_with(schema_table& t, std::string doc, std::vector<key> keys, std::string name = {}) {
  auto& s = t.make(std::move(name));
  s.kinds = map_bit;
  s.doc = std::move(doc);
  s.keys = std::move(keys);
  s.merge = merging::by_key;
  return s;
}

shape& text_that(schema_table& t, bool (*fits)(std::string_view), std::string says) {
  auto& s = t.make();
  s.kinds = text_bit;
  s.fits = fits;
  s.pattern = ".*";
  s.pattern_says = std::move(says);
  return s;
}

key like(key k, std::string example) {
  k.example = std::move(example);
  return k;
}

bool is_listen(std::string_view x) {
  auto colon = x.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || x.size() - colon > 6 || colon + 1 == x.size())
    return false;
  auto port = x.substr(colon + 1);
  return std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoi(std::string(port)) <= 65535;
}

bool is_name(std::string_view x) {
  return !x.empty() && x.size() <= 64 &&
         std::all_of(x.begin(), x.end(),
                     [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) ||
                              std::string_view("._-@+").find(c) != std::string_view::npos;
                     }) &&
         x.front() != '.' && x.front() != '-';
}

bool is_duration(std::string_view x) { return duration_seconds(x) > 0; }

bool starts_at_root(std::string_view path) { return path.starts_with('/'); }

bool is_idle_time(std::string_view x) { return x == "off" || go_duration(x).has_value(); }

bool is_wait(std::string_view x) { return parse_duration(x).has_value(); }

bool is_keeping(std::string_view x) { return x == "never" || is_wait(x); }

bool is_version(const node& x) {
  const auto* version = x.find("troupe");
  return !version || (version->is_integer() && version->as_double() == 1);
}

/// A partial experiment whose storage may be one of the file, by its name.
shape& defaults(schema_table& t) {
  auto& s = t.make();
  s = *t.at("experiment");
  s.name.clear();
  s.doc = "Configuration merged under that of every experiment; the experiment's own keys win.";
  for (auto& k : s.keys)
    if (k.name == "checkpoint_storage")
      k.what = either(t, {text(t), k.what});
  return s;
}

/// Determined's keys, without defaults of their own: what is not said here is left to the layers below.
shape& defaults_of_tasks(schema_table& t) {
  auto& s = t.make();
  s = *t.at("task-container-defaults");
  s.name.clear();
  s.doc = "Defaults of all tasks, below the text, the template and `defaults`.";
  const auto say = [&](std::string_view name, shape_ref what, std::string doc, std::string example) {
    for (auto& k : s.keys)
      if (k.name == name)
        k = like(quiet(unset(k.name, what ? what : k.what, std::move(doc), k.unit)), std::move(example));
  };
  for (const auto& k : std::vector<key>(s.keys))
    if (const auto why = idle_task_default(k.name); !why.empty())
      say(k.name, nullptr, "Accepted, without effect: " + std::string(why) + ".", "");
  say("shm_size_bytes", integer(t, {.least = 1}), "Size of a task's own /dev/shm (default: the host's).",
      "4294967296");
  say("preemption_timeout", integer(t, {.least = 1}),
      "Time that a task may take to save and exit when it is preempted (default: 3600).", "600");
  say("work_dir", &text_that(t, starts_at_root, "an absolute path"),
      "Working directory of tasks that name none; $AGENT_USER and $DET_USER are filled in.",
      "/home/$AGENT_USER");
  say("startup_hook", nullptr, "Shell script that every task runs first, before its own startup-hook.sh.",
      "module load cuda");
  say("environment_variables", nullptr, "Variables of every task; a task's own win.", "[ NCCL_DEBUG=WARN ]");
  say("bind_mounts", nullptr, "Folders of the host that every task sees.",
      "[ { host_path: /data, container_path: /data } ]");
  say("log_policies", nullptr, "What follows where a line of a task's log matches.",
      "[ { name: oom, pattern: out of memory, action: cancel_retries } ]");
  return s;
}

shape& storage(schema_table& t, shape_ref path) {
  return map_with(
    t, "A place for checkpoints.",
    {like(required("type", one_of(t, {"directory", "shared_fs", "s3", "gcs", "azure"}), "Kind of storage."),
          "shared_fs"),
     like(unset("path", path, "Folder, for directory and shared_fs; all hosts must see it."),
          "/mnt/checkpoints"),
     like(unset("bucket", text(t), "Bucket, for s3 and gcs; container, for azure."), "models"),
     like(unset("prefix", text(t), "Text put before the name of every object."), "lab"),
     like(unset("endpoint", text(t), "Address of the service, for s3."), "https://s3.example.org"),
     like(
       unset("credentials",
             &map_with(t, "Has no effect: credentials of a bucket.",
                       {like(unset("file", path,
                                   "Has no effect: nothing reads it. Tasks take the credentials from "
                                   "checkpoint_storage of their configuration, their workspace or a policy, "
                                   "or, for s3 and gcs, from their environment variables."),
                             "secrets/s3")}),
             "Has no effect: credentials of a bucket."),
       "{ file: secrets/s3 }")});
}

shape& quota(schema_table& t) {
  return map_with(
    t, "A limit of a user or of a workspace, not of both.",
    {like(unset("user", text(t), "Name of the user; * is each user without a quota of their own."), "ada"),
     like(unset("workspace", text(t), "Name of the workspace."), "vision"),
     like(required("max_slots", integer(t, {.least = 0}), "Slots at once, at most.", "slots"), "8")});
}

shape& provider(schema_table& t, shape_ref wait) {
  const auto words = list_of(t, text(t));
  return map_with(
    t, "Provider of agents that are started where work waits, and end when they are idle.",
    {like(required("type", one_of(t, {"local", "command"}),
                   "local: agents as processes of the master's host; command: three commands that reach a "
                   "cloud."),
          "local"),
     like(quiet(unset("instance_slots", integer(t, {.least = 0}), "Slots of an instance; local: default 1.",
                      "slots")),
          "8"),
     like(
       given("min_instances", integer(t, {.least = 0}), 0, "Instances that are always there.", "instances"),
       "1"),
     like(given("max_instances", integer(t, {.least = 0}), 5, "Instances at once, at most.", "instances"),
          "20"),
     like(given("max_idle_agent_period", wait, "20m", "Time after which an idle instance is ended."), "5m"),
     like(given("max_agent_starting_period", wait, "20m",
                "Time after which an instance whose agent has not registered is replaced."),
          "10m"),
     like(given("launch_error_timeout", wait, "0s",
                "Time for which launches may fail before waiting work says provider_failed."),
          "2m"),
     like(given("launch_error_retries", integer(t, {.least = 0}), 0,
                "Launches that may fail in a row before waiting work says provider_failed."),
          "3"),
     like(quiet(unset("labels", map_of(t, text(t)), "Labels of the agents.")), "{ spot: \"yes\" }"),
     like(quiet(unset("list", words, "Command that prints a line of JSON for each instance; for command.")),
          "[/etc/troupe/gpu, list]"),
     like(quiet(unset("launch", words, "Command that launches TROUPE_COUNT instances and prints their ids.")),
          "[/etc/troupe/gpu, launch]"),
     like(quiet(unset("terminate", words, "Command that ends the instances whose ids are its arguments.")),
          "[/etc/troupe/gpu, terminate]")});
}

shape& pool(schema_table& t, shape_ref partial, shape_ref tasks) {
  const auto& wait = text_that(t, is_wait, "a duration as 30s, 5m");
  return map_with(
    t, "A pool of slots, with a queue of its own.",
    {like(
       given("default", boolean(t), false,
             "Whether experiments and agents that name no pool are in this one; true for one pool at most. "
             "Default pool where no pool says so: the first of the file."),
       "true"),
     like(given("scheduler",
                one_of(t, {"fifo", "round_robin", "priority", "fair"}, "fifo is first come, first served"),
                "priority", "Order in which waiting requests get slots."),
          "fair"),
     like(given("preemption", boolean(t), false,
                "Whether a request that comes first in the order may preempt a running one; in priority and "
                "fair pools."),
          "true"),
     like(given("default_priority", integer(t, {.least = 1, .most = 99}), 42,
                "Priority of experiments that name none; a smaller number comes first."),
          "50"),
     like(unset("max_slots", integer(t, {.least = 1}), "Slots in use at once, at most.", "slots"), "16"),
     like(
       given("fitting", one_of(t, {"best", "worst"}), "best",
             "Agent that is filled first: best is the one with the fewest free slots that suffice, worst the "
             "one with the largest part free."),
       "worst"),
     like(
       given("gangs", one_of(t, {"any", "whole", "whole_mixed"}), "any",
             "How a trial spreads over agents: over any free slots; over whole idle agents of one size; over "
             "whole idle agents of any size."),
       "whole"),
     like(given("reserve_after", &wait, "60s",
                "Time after which a request that others pass gets slots reserved."),
          "5m"),
     like(given("min_run", &wait, "30s",
                "Time that a run has before one of the same priority, or for shares, may preempt it."),
          "2m"),
     like(given("fallback", list_of(t, text(t)), value::array(),
                "Pools that a request asks as well once it has waited for fallback_after, the first before "
                "the others. It runs in the one that has room until its end; its next run begins at home."),
          "[cpu]"),
     like(given("fallback_after", &wait, "60s", "Time after which a request asks the pools of fallback."),
          "5m"),
     like(given("quotas", list_of(t, &quota(t)), value::array(),
                "Slots that a user or a workspace may hold at once."),
          "[{user: ada, max_slots: 8}]"),
     like(given("aux_per_agent", integer(t, {.least = 0}), 100, "Tasks without slots on an agent, at most."),
          "10"),
     like(given("launch_error", boolean(t), false,
                "Whether an experiment that asks for more slots than the pool has now is refused; else it is "
                "accepted with a warning, and waits."),
          "true"),
     like(quiet(unset("provider", &provider(t, &wait),
                      "Provider of agents that are started where work waits (default: none).")),
          "{ type: local, instance_slots: 4, max_instances: 3 }"),
     like(
       quiet(unset("startup_hook", text(t),
                   "Shell script that every task of the pool runs first, before its own startup-hook.sh.")),
       "module load cuda"),
     like(quiet(unset("work_dir", &text_that(t, starts_at_root, "an absolute path"),
                      "Working directory of tasks that name none; $AGENT_USER and $DET_USER are filled in.")),
          "/home/$AGENT_USER"),
     like(
       quiet(unset("workspaces", list_of(t, text(t)),
                   "Names of workspaces that alone may use the pool, beside those that the API binds it to "
                   "(default: where the API binds it to none, everyone's). Not of the default pool.")),
       "[ vision, speech ]"),
     like(quiet(unset("task_container_defaults", tasks,
                      "Defaults of all tasks of this pool, merged over those of the cluster.")),
          "{ environment_variables: [ HF_HOME=/data/hf ] }"),
     like(quiet(unset(
            "defaults", partial,
            "Configuration merged under that of every experiment of this pool, over the file's defaults.")),
          "{ max_restarts: 1 }")});
}

shape& nodes(schema_table& t, shape_ref path, shape_ref name) {
  auto* hosts = either(t, {text(t), list_of(t, text(t))});
  auto& cpu = map_with(
    t, "Slots by kind.",
    {like(unset("cpu", integer(t, {.least = 0}), "Number of artificial slots without a device.", "slots"),
          "4")});
  auto& auto_word = t.make();
  auto_word.kinds = text_bit;
  auto_word.allowed = {"auto"};
  auto& ssh = map_with(
    t, "Way for `up` to reach the host over ssh; the host needs sh, flock and tar.",
    {like(quiet(unset("user", name, "Account on the host (default: as in ~/.ssh/config).")), "troupe"),
     like(quiet(unset("key", path, "File with the private key.")), "~/.ssh/id_ed25519"),
     like(given("port", integer(t, {.least = 1, .most = 65535}), 22, "Port of the host's ssh server."),
          "2222"),
     like(
       quiet(unset("known_hosts", path, "File that must hold the host's key (default: ~/.ssh/known_hosts).")),
       "lab_known_hosts"),
     like(quiet(unset("binary", text(t),
                      "Path of the program `troupe` on that host (default: its path on this host; where "
                      "nothing is there, a copy is made).")),
          "/opt/troupe/bin/troupe"),
     like(quiet(unset("data_dir", text(t),
                      "Folder of the agent on that host (default: ~/.local/share/troupe-agent/NAME).")),
          "/var/lib/troupe-agent"),
     like(quiet(unset("master", &text_that(t, is_listen, "HOST:PORT"),
                      "Address at which that host dials the master (default: the listen address).")),
          "head.lab:8080")});
  auto& one =
    map_with(t, "A host, or several, with slots.",
             {like(quiet(unset("name", text(t), "Name of the agent; may hold a range (default: the host).")),
                   "local[1-2]"),
              like(quiet(unset("host", text(t),
                               "Host of the agent. localhost: `up` starts the agent as a process beside the "
                               "master; another host needs ssh or manual.")),
                   "gpu01"),
              like(quiet(unset("hosts", hosts, "Several hosts; a name may hold a range.")), "gpu[01-04,08]"),
              like(quiet(unset("pool", text(t), "Pool of the agent (default: the default pool).")), "gpu"),
              like(given("slots", either(t, {integer(t, {.least = 0}), &auto_word, &cpu}), "auto",
                         "Number of slots that the agent offers; auto: what the host has.", "slots"),
                   "{ cpu: 4 }"),
              like(given("manual", boolean(t), false,
                         "Whether the agent is started by hand; `up` prints the command."),
                   "true"),
              like(quiet(unset("ssh", &ssh, ssh.doc)), "{ user: troupe, key: ~/.ssh/id_ed25519 }"),
              like(given("runtime", one_of(t, {"process", "podman", "docker", "apptainer"}), "process",
                         "Runtime that holds the tasks of the host."),
                   "process"),
              like(quiet(unset("labels", map_of(t, text(t)), "Labels of the host.")), "{ rack: a3 }")});
  return *const_cast<shape*>(list_of(t, &one));
}

shape& users(schema_table& t, shape_ref path, shape_ref name) {
  auto& token = map_with(
    t, "A token by name, for programs.",
    {like(required(
            "name", name,
            "Name of the token; the token itself is in the file tokens/USER.NAME of the master's folder."),
          "nightly"),
     like(given("expires", &text_that(t, is_duration, "a duration as 12h, 90d"), "90d",
                "Time for which the token is valid, from its creation."),
          "90d")});
  auto& one = map_with(
    t, "A person or program that may log in.",
    {like(required("name", name, "Name for logging in."), "ada"),
     like(given("role", one_of(t, {"user", "admin"}), "user", "Role; only an admin may change the cluster."),
          "admin"),
     like(quiet(unset("password_file", path,
                      "File whose first line is the password; read when the cluster file is applied.")),
          "secrets/ada"),
     like(quiet(unset("password", text(t),
                      "Password as text; password_file or ${VARIABLE} keeps it out of this file.")),
          "${ADA_PASSWORD}"),
     like(given("tokens", list_of(t, &token), value::array(), "Tokens with which programs log in."),
          "[ { name: nightly, expires: 90d } ]")});
  return *const_cast<shape*>(list_of(t, &one));
}

} // namespace

void add_cluster_file(schema_table& t) {
  auto& path = t.make("file-path");
  path.kinds = text_bit;
  auto& name = text_that(t, is_name, "a name of letters, digits and . _ - @ +");
  auto& listen = text_that(t, is_listen, "HOST:PORT, the port from 0 to 65535");
  auto& partial = defaults(t);
  auto& tasks = defaults_of_tasks(t);
  auto& tls = map_with(
    t, "Certificates of the HTTP port and the agents' link (default: plain HTTP, on loopback only).",
    {like(quiet(unset("dir", &path,
                      "Folder that `troupe tls init` made, for the HTTP port and the agents' link.")),
          "tls"),
     like(quiet(unset("cert", &path, "Certificate of the HTTP port (default: the one in dir).")),
          "tls/server.pem"),
     like(quiet(unset("key", &path, "Private key of cert.")), "tls/server.key")});
  const auto& wait = text_that(t, is_wait, "a duration as 200ms, 30s, 5m");
  auto& leases = map_with(
    t, "Times after which a silent host is given up; agents learn them when they register.",
    {like(given("heartbeat", &wait, "1s", "Time between two words of an agent."), "500ms"),
     like(given("freeze", &wait, "30s",
                "Time after the last word of the master after which the tasks of a host stand still."),
          "10s"),
     like(given("give_away", &wait, "45s",
                "Time after the last word of an agent after which its runs are started elsewhere."),
          "20s"),
     like(
       given("adopt", &wait, "200ms",
             "Time that a trial waits for a new agent where its own has died; then the master ends it, and "
             "it runs elsewhere."),
       "2s")});
  auto& webhooks = map_with(
    t, "Receivers of events; a change counts from the next start of the master.",
    {like(quiet(unset("base_url", text(t),
                      "Address of this cluster's web page for links in messages (default: no links).")),
          "'https://head.lab:8080'"),
     like(
       quiet(unset("signing_key_file", &path,
                   "File whose first line is the key of signatures (default: a key that the master makes at "
                   "its first start).")),
       "/etc/troupe/webhook-key"),
     like(quiet(unset("signing_key", text(t),
                      "The key itself as text; signing_key_file or ${VARIABLE} keeps it out of this file.")),
          "${WEBHOOK_KEY}"),
     like(quiet(unset(
            "allow", list_of(t, text(t)),
            "Hosts, addresses and ranges of receivers in the own network; without them only a master on "
            "loopback reaches loopback and private addresses.")),
          "[ chat.lab, 10.1.0.0/16 ]")});
  auto& tokens = map_with(t, "How long access tokens are valid.",
                          {like(given("default", &wait, "30d", "Of one for which nothing was asked."), "7d"),
                           like(given("longest", &wait, "30d", "At most."), "90d")});
  auto& cluster = map_with(
    t, "Settings of the master.",
    {like(given("name", &name, "troupe", "Name of the cluster as shown to users."), "lab"),
     like(
       quiet(unset("listen", &listen, "Address of the HTTP API (default: 127.0.0.1:8080); --listen wins.")),
       "127.0.0.1:8080"),
     like(quiet(unset("agent_listen", &listen, "Address of the link for agents of other hosts.")),
          "0.0.0.0:8081"),
     like(quiet(unset(
            "data_dir", &path,
            "Folder in which the master keeps everything; --data-dir wins (default: as for `troupe up`).")),
          "/var/lib/troupe"),
     like(quiet(unset("tls", &tls, tls.doc)), "{ dir: tls }"),
     like(quiet(unset("leases", &leases, leases.doc)), "{ freeze: 10s, give_away: 15s }"),
     like(quiet(unset("plain_http", boolean(t),
                      "Whether the HTTP API may be plain on an address that other hosts reach: only behind a "
                      "proxy that speaks TLS.")),
          "true"),
     like(quiet(
            unset("web_hosts", list_of(t, &name),
                  "Names that a server on loopback answers to beside localhost; a request to another name is "
                  "refused.")),
          "[ head.lab ]"),
     like(quiet(unset("proxy_domain", text(t),
                      "Domain below which each page of a task has a name of its own, as ID.DOMAIN: all names "
                      "below it have to lead to this master, over https (default: ID.localhost, where the "
                      "master listens on loopback).")),
          "tasks.example.org"),
     like(quiet(
            unset("authz", one_of(t, {"basic", "rbac"}),
                  "Who may do what: basic (everybody sees all, owners and admins delete), or rbac, where the "
                  "roles of users and groups decide in each workspace (default: basic).")),
          "rbac"),
     like(quiet(unset("tokens", &tokens, tokens.doc)), "{ default: 7d, longest: 90d }"),
     like(quiet(unset("strict_job_queue_control", boolean(t),
                      "Whether only admins change priority, weight, limit and pool of what waits (default: "
                      "false).")),
          "true"),
     like(
       quiet(unset("proxy_listen", &listen,
                   "Port of its own for the pages of tasks, where a browser opens the tasks of its own user: "
                   "for a master that other hosts reach, where there is no proxy_domain.")),
       "0.0.0.0:8082"),
     like(quiet(unset("webhooks", &webhooks, webhooks.doc)), "{ base_url: 'https://head.lab:8080' }"),
     like(quiet(unset("task_container_defaults", &tasks, tasks.doc)), "{ startup_hook: module load cuda }"),
     like(
       quiet(unset("feature_switches", list_of(t, text(t)),
                   "Words that clients find in `featureSwitches` of GET /api/v1/master; nothing else reads "
                   "them (default: streaming_updates alone).")),
       "[ flat_runs ]"),
     like(
       quiet(unset("log_retention", &text_that(t, is_keeping, "a duration as 12h, 90d, or never"),
                   "Time after its end after which the log of a task is erased, where the experiment's own "
                   "retention_policy and `det e set log-retention` say nothing else (default: never).")),
       "90d"),
     like(quiet(unset("notebook_timeout", &text_that(t, is_idle_time, "a time as 2h or 1h30m, or off"),
                      "Time without use after which a notebook ends that says nothing else (default: off).")),
          "8h"),
     like(quiet(unset("tensorboard_timeout", &text_that(t, is_idle_time, "a time as 2h or 1h30m, or off"),
                      "The same for TensorBoards (default: 5m).")),
          "30m"),
     like(quiet(unset("shells", one_of(t, {"sshd", "off"}),
                      "Program that takes logins to shells, or off: there are none (default: sshd).")),
          "off")});
  auto& experiment = map_with(
    t, "An experiment that is submitted once, by name.",
    {like(required("file", &path, "File with the experiment's configuration."), "experiments/mnist.yaml"),
     like(quiet(unset("context", &path, "Folder with the experiment's files (default: no files).")),
          "examples/mnist"),
     like(quiet(unset("name", text(t),
                      "Name under which it is submitted once (default: the name in the configuration, or "
                      "that of the file).")),
          "mnist-nightly")});
  auto& actors = map_with(
    t, "Actors of the master's process, from its next start on.",
    {like(quiet(unset("log_level", one_of(t, {"error", "warning", "info", "debug"}),
                      "Lowest level that is logged; debug has each actor that died or was "
                      "made again (default: info).")),
          "info"),
     like(quiet(unset(
            "scheduler_threads", integer(t, {.least = 1, .most = 256}),
            "Number of threads that run actors (default: as many as the host has processors, at least 2 "
            "and at most 4).")),
          "4")});
  auto pools = map_of(t, &pool(t, &partial, &tasks));
  auto storages = map_of(t, &storage(t, &path));
  auto& f = map_with(
    t, "A whole cluster in one file.",
    {like(required("troupe", integer(t, {}), "Version of the format: 1."), "1"),
     like(quiet(unset("include", list_of(t, &path),
                      "Files merged under this one; a later file wins, key by key, and lists are replaced.")),
          "[ common.yaml ]"),
     like(given("cluster", &cluster, value::object(), cluster.doc), ""),
     like(given("storage", storages, value::object(),
                "Places for checkpoints, by name; experiments that name no place use `default`."),
          ""),
     like(given("pools", pools, value::object(), "Pools by name (default: one pool `default`)."), ""),
     like(given("nodes", &nodes(t, &path, &name), value::array(),
                "Hosts with slots (default: this host, in the master's process)."),
          ""),
     like(given("users", &users(t, &path, &name), value::array(), "Users beside admin and determined."), ""),
     like(quiet(unset("defaults", &partial, partial.doc)),
          "{ max_restarts: 3, checkpoint_storage: default }"),
     like(given("experiments", list_of(t, &experiment), value::array(),
                "Experiments that are submitted once, by name; one that is there already stays as it is."),
          ""),
     like(quiet(unset("actors", &actors, actors.doc)), "{ log_level: info }")},
    "cluster-file");
  f.rules.push_back(
    {"this program reads format 1", is_version, "troupe", need::always, nullptr, "write troupe: 1"});
}

} // namespace troupe::config
