// Rows of the verb table: verbs that start, check and stop a cluster on this host.

#include "runtime/cli/configuration_verbs.hpp"
#include "runtime/cli/pool_verbs.hpp"
#include "runtime/cli/rows.hpp"
#include "runtime/cli/verbs.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr option_spec data_dir{"--data-dir", "DIR", "Where the cluster keeps everything ($TROUPE_DATA_DIR)",
                               text};
constexpr option_spec listen{"--listen", "HOST:PORT", "Address of the HTTP API ($TROUPE_LISTEN)", text};
constexpr option_spec agent_listen{"--agent-listen", "HOST:PORT", "Address that agents of other hosts dial",
                                   text};
constexpr option_spec slots{
  "--slots", "N", "Number of artificial CPU slots (default: the GPUs of the host, or its processors)",
  number};
constexpr option_spec agent_name{"--name", "NAME", "Name of the agent (default: the name of the host)", text};
constexpr option_spec cluster_file{"-f,--file", "CLUSTER.YAML", "Settings of the cluster", text};
constexpr option_spec tls_dir{
  "--tls-dir", "DIR", "Folder of certificates that `tls init` made (default: plain HTTP, on loopback only)",
  text};
constexpr option_spec plain_http{
  "--plain-http", "",
  "HTTP without TLS on an address that other hosts reach: only behind a proxy that speaks TLS", toggle};
constexpr option_spec web_host{
  "--web-host", "NAME",
  "Name that a server on loopback answers to beside localhost; may be given several times", list};
constexpr option_spec web_dir{"--web-dir", "DIR",
                              "Folder of a built web page instead of the one in the binary", text};
constexpr option_spec trace{"--trace-actors", "FILE", "Write one line for each message between actors", text};
constexpr option_spec faults{"--allow-faults", "",
                             "Let `troupe shell` drop, delay and pause messages: for tests", toggle};
constexpr option_spec detach{"-d,--daemon", "",
                             "Return when the node answers, and leave the node in the background", toggle};
constexpr option_spec up_flags[] = {data_dir,     listen,  agent_listen, slots,    agent_name,
                                    cluster_file, tls_dir, plain_http,   web_host, web_dir,
                                    detach,       trace,   faults};
constexpr option_spec from_determined{
  "--determined", "FILE",
  "The file that a master or agent of Determined was started with; each key without effect is named once",
  text};
constexpr option_spec master_flags[] = {from_determined, data_dir, listen,     agent_listen,
                                        cluster_file,    tls_dir,  plain_http, web_host,
                                        web_dir,         detach,   trace,      faults};
constexpr option_spec agent_flags[] = {
  {"--master", "HOST:PORT", "The master's HTTP address ($TROUPE_MASTER)", text},
  data_dir,
  agent_name,
  slots,
  tls_dir,
  {"--token-file", "FILE", "File with the join token (default: the one in --tls-dir)", text},
  {"--label", "KEY=VALUE",
   "Label of this host, for resources.constraints; may be given several times. Labels of the cluster file "
   "win",
   list},
  {"--pool", "NAME", "Pool of this agent (default: as the cluster file says, else the default pool)", text},
  from_determined,
  detach,
  trace,
  faults,
};
constexpr option_spec check_flags[] = {
  {"--resolved", "", "Print the merged file, ranges expanded, with the place of each value", toggle},
  {"--connect", "",
   "Look at the hosts too: ports free, folders writable, room, GPUs, ssh, clocks; fails where one of these "
   "is not as "
   "it must be",
   toggle},
  {"--determined", "", "The file is one of a master or agent of Determined", toggle},
  {"--write", "", "With --determined: print the cluster file that a master's file becomes", toggle},
};
constexpr option_spec apply_flags[] = {
  {"-y,--yes", "", "Apply the plan without asking", toggle},
  {"--plan", "OUT",
   "Write the plan to a file and change nothing; `apply OUT` does exactly this plan, or exits 8", text},
  {"--prune", "", "Remove also users that no cluster file made", toggle},
};
constexpr option_spec service_flags[] = {
  {"--user", "", "Write the unit for the service manager of this user, not for that of the system", toggle},
  {"--name", "NAME", "Unit name (default: troupe)", text},
  {"--data-dir", "DIR", "Data directory that the unit gives to `up`", text},
  {"--dir", "DIR", "Folder for the unit (default: the service manager's own folder)", text},
  {"--replace", "", "Replace another unit of this name", toggle},
};
constexpr argument_spec one_service[] = {{"SERVICE", "Name of the service: a task's id, or TASK:PORT"}};
constexpr option_spec tunnel_flags[] = {
  {"--listen", "HOST:PORT",
   "Local address to listen on, as 127.0.0.1:8080; port 0 is any free one (default: standard input and "
   "output)",
   text},
};
constexpr argument_spec maybe_file[] = {
  {"FILE", "Cluster file (default: the configuration in force in the data directory)", false}};
constexpr argument_spec one_file[] = {{"FILE", "Cluster file"}};
constexpr argument_spec file_or_plan[] = {{"FILE", "Cluster file, or a plan that --plan wrote"}};
constexpr argument_spec service_file[] = {
  {"FILE", "Cluster file (default: the unit starts `troupe up` without a file)", false}};
constexpr argument_spec maybe_key[] = {
  {"KEY", "Key as storage.type or users.tokens.name (default: all sections)", false}};
constexpr option_spec run_flags[] = {
  {"--config", "KEY=VALUE", "Replace one value of the configuration; may be given several times", list},
  {"--resume", "[ID]", "Resume experiment ID, or the newest unfinished one", maybe_text},
  {"--new", "", "Start another experiment even if the same one is unfinished", toggle},
  data_dir,
  listen,
  slots,
  trace,
};
constexpr option_spec down_flags[] = {
  {"--timeout", "SECONDS", "Time limit for the shutdown (default: 60)", number},
};
constexpr argument_spec run_arguments[] = {
  {"CONFIG", "Configuration of the experiment, YAML or JSON", false},
  {"DIR", "Files of the experiment: a folder or one file, at most 95 MB (default: the folder of CONFIG)",
   false},
};
constexpr argument_spec maybe_page[] = {{"PATH", "Page below /ui/, as experiments/7", false}};
constexpr option_spec web_flags[] = {{"--open", "", "Open the link in the browser of this desktop", toggle}};
constexpr argument_spec allocation[] = {
  {"ALLOCATION", "Number of trial and run, as 12.3, or UUID of another task and run"}};
constexpr argument_spec one_task[] = {{"TASK", "UUID of the task, or its beginning"}};

constexpr verb_spec table[] = {
  {"run", "Train an experiment on this host and show it live; starts what is missing", run_arguments,
   run_flags, false, true, "troupe run configs/experiments/digits-asha.yaml\ntroupe run --resume",
   "troupe experiment create, troupe up", verbs::run},
  {"up", "Run a whole cluster: the one that a file describes, or master and agent in one process", maybe_file,
   up_flags, false, false,
   "troupe up lab.yaml\ntroupe up --slots 4\ntroupe up -d --data-dir /var/lib/troupe --listen 127.0.0.1:8080",
   "troupe apply, troupe status, troupe down", verbs::up},
  {"apply", "Change a running cluster to what its file says: show the plan, ask, apply the plan",
   file_or_plan, apply_flags, false, true,
   "troupe apply lab.yaml\ntroupe apply lab.yaml --plan plan.json\ntroupe apply plan.json --yes",
   "troupe check, troupe config show", verbs::apply},
  {"check", "Report every fault of a cluster file with its place; changes nothing", one_file, check_flags,
   true, false,
   "troupe check lab.yaml\ntroupe check lab.yaml --resolved\ntroupe check lab.yaml --connect\n"
   "troupe check --determined /etc/determined/master.yaml --write",
   "troupe explain, troupe config check", verbs::check},
  {"explain",
   "Explain a key of the cluster file: type, default, meaning, example",
   maybe_key,
   {},
   false,
   false,
   "troupe explain nodes.ssh.key\ntroupe explain defaults.max_restarts",
   "troupe check, troupe config explain",
   verbs::explain},
  {"explain trial",
   "Explain why a trial runs, waits or is paused, and what would help",
   trial,
   {},
   true,
   true,
   "troupe explain trial 31\ntroupe explain trial 31 -o json",
   "troupe queue list, docs/scheduling.md",
   verbs::explain_trial},
  {"explain allocation",
   "Explain the same of one run of a trial or of another task",
   allocation,
   {},
   true,
   true,
   "troupe explain allocation 31.2",
   "troupe explain trial",
   verbs::explain_allocation},
  {"explain experiment",
   "Explain how many trials run, wait and are paused, and why they wait",
   experiment,
   {},
   true,
   true,
   "troupe explain experiment 7",
   "troupe explain trial",
   verbs::explain_experiment},
  {"explain task",
   "Explain the same of a task that is not a trial",
   one_task,
   {},
   true,
   true,
   "troupe explain task 2c31",
   "troupe task list, docs/tasks.md",
   verbs::explain_task},
  {"install-service", "Write a systemd unit that keeps the cluster up", service_file, service_flags, false,
   false, "troupe install-service --user lab.yaml", "troupe up", verbs::install_service},
  {"master",
   "Run only the master",
   {},
   master_flags,
   false,
   false,
   "troupe master --data-dir /var/lib/troupe --listen 0.0.0.0:8080 --tls-dir tls",
   "troupe agent, troupe tls init",
   verbs::master},
  {"agent",
   "Run only an agent, which offers this host's slots",
   {},
   agent_flags,
   false,
   false,
   "troupe agent --master head:8080 --data-dir /var/lib/troupe-agent",
   "troupe master, troupe agent list",
   verbs::agent},
  {"status",
   "Show whether the cluster is up, and how many slots are used",
   {},
   {},
   true,
   true,
   "troupe status\ntroupe status -o json",
   "troupe agent list",
   verbs::status},
  {"web", "Print a link to the web page that signs you in once, within ten minutes", maybe_page, web_flags,
   false, true, "troupe web\ntroupe web experiments/7\ntroupe web --open", "troupe status", verbs::web},
  {"tunnel", "Carry bytes between standard input and output, or a local port, and a service of a task",
   one_service, tunnel_flags, true, true,
   "troupe tunnel 3f2c0a10-7d5e-4a51-9d3e-0c9a6f1b2c3d\n"
   "troupe tunnel 7.00000000-0000-4000-8000-00000000000c:8080 --listen 127.0.0.1:8080",
   "troupe status", verbs::tunnel},
  {"down",
   "Stop the cluster; running trials resume from their checkpoints when it is up again, tasks that are not "
   "trials end",
   {},
   down_flags,
   false,
   true,
   "troupe down",
   "troupe up",
   verbs::down},
};

} // namespace

std::span<const verb_spec> of_node() { return table; }

} // namespace troupe::cli::rows
