#include "runtime/cli/verbs.hpp"
#include "runtime/cli/configuration_verbs.hpp"
#include "runtime/cli/pool_verbs.hpp"

namespace troupe::cli {
namespace {

using enum option_kind;

// ---- options of the node's verbs

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
                             "Return when the node answers, and leave it in the background", toggle};

constexpr option_spec up_flags[] = {data_dir,     listen,  agent_listen, slots,    agent_name,
                                    cluster_file, tls_dir, plain_http,   web_host, web_dir,
                                    detach,       trace,   faults};
constexpr option_spec master_flags[] = {data_dir, listen,  agent_listen, cluster_file, tls_dir, plain_http,
                                        web_host, web_dir, detach,       trace,        faults};
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
};
constexpr option_spec apply_flags[] = {
  {"-y,--yes", "", "Apply the plan without asking", toggle},
  {"--plan", "OUT",
   "Write the plan to a file and change nothing; `apply OUT` does exactly this plan, or exits 8", text},
  {"--prune", "", "Remove also users that no cluster file made", toggle},
};
constexpr option_spec service_flags[] = {
  {"--user", "", "Write it for the service manager of this user, not for that of the system", toggle},
  {"--name", "NAME", "Unit name (default: troupe)", text},
  {"--data-dir", "DIR", "Data directory that the unit gives to `up`", text},
  {"--dir", "DIR", "Folder for the unit (default: the service manager's own folder)", text},
  {"--replace", "", "Replace another unit of this name", toggle},
};
constexpr argument_spec maybe_file[] = {
  {"FILE", "Cluster file (default: the configuration in force in the data directory)", false}};
constexpr argument_spec one_file[] = {{"FILE", "Cluster file"}};
constexpr argument_spec events_file[] = {{"FILE", "Events, a JSON object a line; - means standard input"}};
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
constexpr option_spec tls_flags[] = {
  {"--dir", "DIR", "Folder for the files (default: `tls` in the data directory)", text},
  {"--host", "NAME", "Name or address at which agents dial the master; may be given several times", list},
  {"--days", "N", "Validity of the certificates in days", number},
  {"--replace", "", "Replace certificates that are there already", toggle},
};
constexpr option_spec shell_flags[] = {
  {"--attach", "URL", "Address of the cluster (default: found as by every client command)", text},
  {"-e,--execute", "COMMAND", "Run COMMAND and end; may be given several times", list},
  {"-f,--file", "FILE", "Run the commands of FILE and end; - means standard input", text},
  {"-o,--output", "FORMAT", "Output format: table, json, csv or yaml; json prints one value for each command",
   text, "table json csv yaml"},
  {"--keep-going", "",
   "Continue after a command that failed; the exit code is still that of the first failure", toggle},
};
constexpr option_spec down_flags[] = {
  {"--timeout", "SECONDS", "Time limit for the shutdown (default: 60)", number},
};

// ---- options of the client's verbs

constexpr option_spec follow_flag{"-f,--follow", "", "Continue until the experiment or trial ends", toggle};
constexpr option_spec create_flags[] = {
  follow_flag,
  {"--config", "KEY=VALUE", "Replace one value of the configuration; may be given several times", list},
  {"--paused", "", "Create the experiment paused", toggle},
  {"--name", "NAME", "Name of the experiment (default: the name in the configuration)", text},
  {"--key", "KEY",
   "Key of this submission; a second submission with the same key returns the id of the first", text},
};
constexpr option_spec list_flags[] = {
  {"--state", "STATE", "List only experiments in this state: active, paused, completed, canceled, error",
   text, "active paused completed canceled error"},
};
constexpr option_spec wait_flags[] = {
  {"--timeout", "SECONDS", "Time limit; exit code 7 when it is over (default: no limit)", number},
};
constexpr option_spec log_flags[] = {
  follow_flag,
  {"--tail", "N", "Show only the last N lines", number},
  {"--rank", "N", "Show only lines of rank N", number},
  {"-t,--timestamps", "", "Show time, source and level of each line", toggle},
};
constexpr option_spec metrics_flags[] = {
  {"--group", "GROUP",
   "Show only reports of this group: training, validation, or system (use of the slots; left out by default)",
   text, "training validation system"},
  {"--metric", "NAME", "Metric of the curve (default: the searcher's metric)", text},
};
constexpr option_spec checkpoint_flags[] = {
  {"--trial", "TRIAL", "List only checkpoints of this trial", number},
};
constexpr option_spec download_flags[] = {
  {"--output-dir", "DIR", "Folder for the files (default: ./UUID)", text},
};

constexpr argument_spec config_and_dir[] = {
  {"CONFIG", "Configuration of the experiment, YAML or JSON; - means standard input"},
  {"DIR", "Files of the experiment: a folder or one file, at most 95 MB (default: no files)", false},
};
constexpr argument_spec run_arguments[] = {
  {"CONFIG", "Configuration of the experiment, YAML or JSON", false},
  {"DIR", "Files of the experiment: a folder or one file, at most 95 MB (default: the folder of CONFIG)",
   false},
};
constexpr argument_spec experiment[] = {{"EXPERIMENT", "Id of the experiment, or `last`"}};
constexpr argument_spec experiments[] = {{"EXPERIMENT", "Ids of experiments, or `last`", true, true}};
constexpr argument_spec maybe_experiment[] = {{"EXPERIMENT", "Id of the experiment, or `last`", false}};
constexpr argument_spec trial[] = {{"TRIAL", "Id of the trial"}};
constexpr argument_spec trials[] = {{"TRIAL", "Ids of trials", true, true}};
constexpr argument_spec maybe_page[] = {{"PATH", "Page below /ui/, as experiments/7", false}};
constexpr option_spec web_flags[] = {{"--open", "", "Open it in the browser of this desktop", toggle}};
constexpr argument_spec one_agent[] = {{"AGENT", "Name of the agent"}};
constexpr argument_spec one_slot[] = {{"AGENT", "Name of the agent"}, {"SLOT", "Number of the slot"}};
constexpr argument_spec one_pool[] = {{"POOL", "Name of the pool"}};
constexpr argument_spec allocation[] = {{"ALLOCATION", "Number of trial and run, as 12.3"}};
constexpr option_spec disable_flags[] = {
  {"--drain", "", "Let what runs there end by itself (default: it is killed, and runs elsewhere)", toggle}};
constexpr option_spec queue_flags[] = {{"--pool", "NAME", "List only this pool", text}};
constexpr option_spec set_flags[] = {
  {"--priority", "N", "Priority from 1 to 99; a smaller number comes first", number},
  {"--weight", "X", "Weight of its share of a fair pool; 0: only what is left over", text},
  {"--max-slots", "N", "Slots that its trials hold at once, at most; none: no limit", text},
  {"--pool", "NAME", "Pool of its runs; those that run in another one are preempted", text},
};
constexpr argument_spec uuid[] = {{"UUID", "UUID of the checkpoint"}};
constexpr argument_spec shell_kind[] = {{"SHELL", "bash"}};

constexpr verb_spec table[] = {
  {"run", "Train an experiment on this host and show it live; starts what is missing", run_arguments,
   run_flags, false, true, "troupe run configs/experiments/digits-asha.yaml\ntroupe run --resume",
   "troupe experiment create, troupe up", verbs::run},
  {"up", "Run a whole cluster: the one that a file describes, or master and agent in one process", maybe_file,
   up_flags, false, false,
   "troupe up lab.yaml\ntroupe up --slots 4\ntroupe up -d --data-dir /var/lib/troupe --listen 127.0.0.1:8080",
   "troupe apply, troupe status, troupe down", verbs::up},
  {"apply", "Change a running cluster to what its file says: show the plan, ask, apply it", file_or_plan,
   apply_flags, false, true,
   "troupe apply lab.yaml\ntroupe apply lab.yaml --plan plan.json\ntroupe apply plan.json --yes",
   "troupe check, troupe config show", verbs::apply},
  {"check", "Report every fault of a cluster file with its place; changes nothing", one_file, check_flags,
   true, false, "troupe check lab.yaml\ntroupe check lab.yaml --resolved\ntroupe check lab.yaml --connect",
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
   "Explain the same of one run of a trial",
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
  {"down",
   "Stop the cluster; running trials resume from their checkpoints when it is up again",
   {},
   down_flags,
   false,
   true,
   "troupe down",
   "troupe up",
   verbs::down},
  {"experiment create", "Submit an experiment", config_and_dir, create_flags, true, true,
   "troupe experiment create digits.yaml . --follow\ntroupe experiment create digits.yaml . --config "
   "searcher.max_trials=8",
   "troupe experiment list, troupe run", verbs::experiment_create},
  {"experiment list",
   "List experiments",
   {},
   list_flags,
   true,
   true,
   "troupe experiment list\ntroupe e ls --state active -o json",
   "troupe experiment describe",
   verbs::experiment_list},
  {"experiment describe",
   "Show one experiment",
   experiment,
   {},
   true,
   true,
   "troupe experiment describe 7\ntroupe experiment describe last -o json",
   "troupe trial list",
   verbs::experiment_describe},
  {"experiment follow",
   "Show an experiment live until it ends",
   experiment,
   {},
   false,
   true,
   "troupe experiment follow 7",
   "troupe experiment wait",
   verbs::experiment_follow},
  {"experiment pause",
   "Pause: trials save a checkpoint and release their slots",
   experiments,
   {},
   false,
   true,
   "troupe experiment pause 7",
   "troupe experiment activate",
   verbs::experiment_pause},
  {"experiment activate",
   "Resume a paused experiment",
   experiments,
   {},
   false,
   true,
   "troupe experiment activate 7",
   "troupe experiment pause",
   verbs::experiment_activate},
  {"experiment cancel",
   "End an experiment; trials may save a last checkpoint",
   experiments,
   {},
   false,
   true,
   "troupe experiment cancel 7",
   "troupe experiment kill",
   verbs::experiment_cancel},
  {"experiment kill",
   "End an experiment at once; work since the last checkpoint is lost",
   experiments,
   {},
   false,
   true,
   "troupe experiment kill 7",
   "troupe experiment cancel",
   verbs::experiment_kill},
  {"experiment set", "Change priority, weight, limit or pool of a live experiment", experiment, set_flags,
   false, true, "troupe experiment set 7 --priority 10\ntroupe experiment set 7 --max-slots none --pool gpu",
   "troupe explain experiment, docs/scheduling.md", verbs::experiment_set},
  {"experiment wait", "Wait for the end of an experiment; the exit code says how it ended", experiment,
   wait_flags, false, true, "troupe experiment wait 7 --timeout 3600", "troupe help exit-codes",
   verbs::experiment_wait},
  {"experiment pareto",
   "List the trials that no other beats in all metrics of the search",
   experiment,
   {},
   true,
   true,
   "troupe experiment pareto 7\ntroupe experiment pareto last -o json",
   "troupe trial list",
   verbs::experiment_pareto},
  {"experiment logs", "Show what the trials of an experiment printed", experiment, log_flags, true, true,
   "troupe experiment logs 7 -f", "troupe trial logs", verbs::experiment_logs},
  {"trial list",
   "List the trials of an experiment",
   experiment,
   {},
   true,
   true,
   "troupe trial list 7\ntroupe trial list last -o csv",
   "troupe trial describe",
   verbs::trial_list},
  {"trial describe",
   "Show one trial",
   trial,
   {},
   true,
   true,
   "troupe trial describe 12\ntroupe trial describe 12 -o json",
   "troupe trial metrics, troupe checkpoint list",
   verbs::trial_describe},
  {"trial logs", "Show what a trial printed", trial, log_flags, true, true,
   "troupe trial logs 12 -f\ntroupe trial logs 12 --tail 50", "troupe experiment logs", verbs::trial_logs},
  {"trial metrics", "Show every report of a trial, and its curve", trial, metrics_flags, true, true,
   "troupe trial metrics 12\ntroupe trial metrics 12 --group validation -o csv", "troupe trial describe",
   verbs::trial_metrics},
  {"trial kill",
   "End a trial at once",
   trials,
   {},
   false,
   true,
   "troupe trial kill 12",
   "troupe experiment kill",
   verbs::trial_kill},
  {"checkpoint list", "List the checkpoints of an experiment or trial", maybe_experiment, checkpoint_flags,
   true, true, "troupe checkpoint list 7\ntroupe checkpoint list --trial 12", "troupe checkpoint download",
   verbs::checkpoint_list},
  {"checkpoint describe",
   "Show one checkpoint",
   uuid,
   {},
   true,
   true,
   "troupe checkpoint describe 1f3a...",
   "troupe checkpoint download",
   verbs::checkpoint_describe},
  {"checkpoint download", "Copy the files of a checkpoint to this host", uuid, download_flags, false, true,
   "troupe checkpoint download 1f3a... --output-dir best", "troupe checkpoint list",
   verbs::checkpoint_download},
  {"agent list",
   "List the agents",
   {},
   {},
   true,
   true,
   "troupe agent list",
   "troupe slot list",
   verbs::agent_list},
  {"agent remove",
   "Forget an agent that is gone for good",
   one_agent,
   {},
   false,
   true,
   "troupe agent remove gpu01",
   "troupe agent list",
   verbs::agent_remove},
  {"agent enable",
   "Place work on an agent again",
   one_agent,
   {},
   false,
   true,
   "troupe agent enable gpu01",
   "troupe agent disable",
   verbs::agent_enable},
  {"agent disable", "Place nothing new on an agent", one_agent, disable_flags, false, true,
   "troupe agent disable gpu01 --drain", "troupe agent enable, troupe slot disable", verbs::agent_disable},
  {"slot list",
   "List the slots of all agents",
   {},
   {},
   true,
   true,
   "troupe slot list -o json",
   "troupe agent list",
   verbs::slot_list},
  {"slot enable",
   "Place work on a slot again",
   one_slot,
   {},
   false,
   true,
   "troupe slot enable gpu01 3",
   "troupe slot disable",
   verbs::slot_enable},
  {"slot disable", "Place nothing new on a slot", one_slot, disable_flags, false, true,
   "troupe slot disable gpu01 3 --drain", "troupe slot enable, troupe agent disable", verbs::slot_disable},
  {"queue list",
   "List the requests that wait for slots, by pool and turn",
   {},
   queue_flags,
   true,
   true,
   "troupe queue list --pool gpu",
   "troupe explain trial",
   verbs::queue_list},
  {"pool list",
   "List the resource pools",
   {},
   {},
   true,
   true,
   "troupe pool list",
   "troupe pool describe",
   verbs::pool_list},
  {"pool describe",
   "Show one pool with its quotas and experiments",
   one_pool,
   {},
   true,
   true,
   "troupe pool describe gpu\ntroupe pool describe gpu -o json",
   "troupe queue list",
   verbs::pool_describe},
  {"config",
   "Check experiment configurations and explain their fields",
   {},
   {},
   false,
   false,
   "troupe config --help",
   "",
   nullptr},
  {"config show",
   "Show the configuration that is in force",
   {},
   {},
   true,
   true,
   "troupe config show -o json",
   "troupe apply",
   verbs::config_show},
  {"pool replay",
   "Drive one pool by hand: JSON lines in, one JSON line out for each",
   events_file,
   {},
   false,
   false,
   "troupe pool replay -",
   "docs/scheduling.md",
   verbs::pool_replay},
  {"search", "Preview and simulate searches", {}, {}, false, false, "troupe search --help", "", nullptr},
  {"shell",
   "Inspect the live actors, and act on them",
   {},
   shell_flags,
   false,
   false,
   "troupe shell\ntroupe shell -e 'ps --top 3' -o json",
   "docs/shell.md",
   verbs::shell},
  {"tls init",
   "Make the cluster's certificates and join token",
   {},
   tls_flags,
   false,
   false,
   "troupe tls init --dir tls --host head.example.org",
   "troupe master, troupe agent",
   verbs::tls_init},
  {"version", "Print the version", {}, {}, false, false, "troupe version", "", verbs::version},
  {"completion",
   "Print completions for a shell",
   shell_kind,
   {},
   false,
   false,
   "source <(troupe completion bash)",
   "",
   verbs::completion},
};

} // namespace

std::span<const verb_spec> all_verbs() { return table; }

} // namespace troupe::cli
