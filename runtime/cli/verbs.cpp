#include "runtime/cli/verbs.hpp"
#include "runtime/cli/configuration_verbs.hpp"

namespace troupe::cli {
namespace {

using enum option_kind;

// ---- options of the node's verbs

constexpr option_spec data_dir{"--data-dir", "DIR", "Where the cluster keeps everything ($TROUPE_DATA_DIR)",
                               text};
constexpr option_spec listen{"--listen", "HOST:PORT", "Address of the HTTP API ($TROUPE_LISTEN)", text};
constexpr option_spec agent_listen{"--agent-listen", "HOST:PORT", "Address that agents of other hosts dial",
                                   text};
constexpr option_spec slots{"--slots", "N",
                            "Artificial CPU slots instead of the GPUs, else processors, of the host", number};
constexpr option_spec agent_name{"--name", "NAME", "Of the agent; else the host's", text};
constexpr option_spec cluster_file{"-f,--file", "CLUSTER.YAML", "Settings of the cluster", text};
constexpr option_spec tls_dir{"--tls-dir", "DIR",
                              "Certificates as `tls init` made them; without, plain on loopback only", text};
constexpr option_spec plain_http{
  "--plain-http", "",
  "HTTP without TLS on an address that other hosts reach: only behind a proxy that speaks TLS", toggle};
constexpr option_spec trace{"--trace-actors", "FILE", "Write one line for each message between actors", text};
constexpr option_spec faults{"--allow-faults", "",
                             "Let `troupe shell` drop, delay and pause messages: for tests", toggle};
constexpr option_spec detach{"-d,--daemon", "", "In the background, once it answers", toggle};

constexpr option_spec up_flags[] = {data_dir, listen,     agent_listen, slots, agent_name, cluster_file,
                                    tls_dir,  plain_http, detach,       trace, faults};
constexpr option_spec master_flags[] = {data_dir,   listen, agent_listen, cluster_file, tls_dir,
                                        plain_http, detach, trace,        faults};
constexpr option_spec agent_flags[] = {
  {"--master", "HOST:PORT", "The master's HTTP address ($TROUPE_MASTER)", text},
  data_dir,
  agent_name,
  slots,
  tls_dir,
  {"--token-file", "FILE", "With the join token; else the one in --tls-dir", text},
  detach,
  trace,
  faults,
};
constexpr option_spec check_flags[] = {
  {"--resolved", "", "Print the merged file, ranges expanded, with the place of each value", toggle},
  {"--connect", "",
   "Look at the hosts too: ports free, folders writable, room, GPUs, ssh, clocks; fails where one is not as "
   "it must be",
   toggle},
};
constexpr option_spec apply_flags[] = {
  {"-y,--yes", "", "Do it without asking", toggle},
  {"--plan", "OUT", "Write the plan to a file and change nothing; apply OUT does exactly that, or exits 8",
   text},
  {"--prune", "", "Remove users too that no file made", toggle},
};
constexpr option_spec service_flags[] = {
  {"--user", "", "For the service manager of this user, not of the system", toggle},
  {"--name", "NAME", "Of the unit; default troupe", text},
  {"--data-dir", "DIR", "Given to `up`", text},
  {"--dir", "DIR", "Where the unit goes; else the service manager's own folder", text},
  {"--replace", "", "Where there is another unit of this name already", toggle},
};
constexpr argument_spec maybe_file[] = {
  {"FILE", "The cluster's file; without, what is in force there already", false}};
constexpr argument_spec one_file[] = {{"FILE", "The cluster's file"}};
constexpr argument_spec file_or_plan[] = {{"FILE", "The cluster's file, or a plan that --plan wrote"}};
constexpr argument_spec service_file[] = {
  {"FILE", "The cluster's file; without, the unit starts `troupe up`", false}};
constexpr argument_spec maybe_key[] = {
  {"KEY", "As storage.type or users.tokens.name; without, the sections", false}};

constexpr option_spec run_flags[] = {
  {"--config", "KEY=VALUE", "Replaces one value of the configuration; may be given again", list},
  {"--resume", "[ID]", "Goes on with experiment ID, or with the newest unfinished one", maybe_text},
  {"--new", "", "Starts another experiment even where the same one is unfinished", toggle},
  data_dir,
  listen,
  slots,
  trace,
};
constexpr option_spec tls_flags[] = {
  {"--dir", "DIR", "Where the files go; else `tls` in the data directory", text},
  {"--host", "NAME", "Name or address that the master is dialled by; may be given again", list},
  {"--days", "N", "How long the certificates are good for", number},
  {"--replace", "", "Make new ones where there are some already", toggle},
};
constexpr option_spec shell_flags[] = {
  {"--attach", "URL", "The cluster to look into; else the one that is found", text},
  {"-e,--execute", "COMMAND", "Run this and end; may be given again", list},
  {"-f,--file", "FILE", "Run the commands of a file and end; - is standard input", text},
  {"-o,--output", "FORMAT", "table, json, csv or yaml; json is one value a command", text,
   "table json csv yaml"},
  {"--keep-going", "", "Go on after a command that failed; the exit code is still the first failure's",
   toggle},
};
constexpr option_spec down_flags[] = {
  {"--timeout", "SECONDS", "How long to wait for its end; default 60", number},
};

// ---- options of the client's verbs

constexpr option_spec follow_flag{"-f,--follow", "", "Stay until it ends", toggle};
constexpr option_spec create_flags[] = {
  follow_flag,
  {"--config", "KEY=VALUE", "Replaces one value of the configuration; may be given again", list},
  {"--paused", "", "Do not start it yet", toggle},
  {"--name", "NAME", "Instead of the configuration's", text},
  {"--key", "KEY", "The same key creates once; a repeat gives the first id", text},
};
constexpr option_spec list_flags[] = {
  {"--state", "STATE", "Only those: active, paused, completed, canceled, error", text,
   "active paused completed canceled error"},
};
constexpr option_spec wait_flags[] = {
  {"--timeout", "SECONDS", "Give up after so long, with exit code 7", number},
};
constexpr option_spec log_flags[] = {
  follow_flag,
  {"--tail", "N", "Only the last N lines", number},
  {"--rank", "N", "Only of this rank", number},
  {"-t,--timestamps", "", "With time, source and level", toggle},
};
constexpr option_spec metrics_flags[] = {
  {"--group", "GROUP", "Only training, validation, or system (the use of its slots, else left out)", text,
   "training validation system"},
  {"--metric", "NAME", "Draw this one; else the searcher's", text},
};
constexpr option_spec checkpoint_flags[] = {
  {"--trial", "TRIAL", "Only of this trial", number},
};
constexpr option_spec download_flags[] = {
  {"--output-dir", "DIR", "Where the files go; default ./UUID", text},
};

constexpr argument_spec config_and_dir[] = {
  {"CONFIG", "The experiment's configuration, YAML or JSON; - is standard input"},
  {"DIR", "Its files, a folder or one file, at most 95 MB", false},
};
constexpr argument_spec run_arguments[] = {
  {"CONFIG", "The experiment's configuration, YAML or JSON", false},
  {"DIR", "Its files, a folder or one file, at most 95 MB; else the folder of CONFIG", false},
};
constexpr argument_spec experiment[] = {{"EXPERIMENT", "Its id, or `last`"}};
constexpr argument_spec experiments[] = {{"EXPERIMENT", "Ids, or `last`", true, true}};
constexpr argument_spec maybe_experiment[] = {{"EXPERIMENT", "Its id, or `last`", false}};
constexpr argument_spec trial[] = {{"TRIAL", "Its id"}};
constexpr argument_spec trials[] = {{"TRIAL", "Ids", true, true}};
constexpr argument_spec uuid[] = {{"UUID", "Of the checkpoint"}};
constexpr argument_spec shell_kind[] = {{"SHELL", "bash"}};

constexpr verb_spec table[] = {
  {"run", "Train an experiment here and show it live; starts what is missing", run_arguments, run_flags,
   false, true, "troupe run configs/experiments/digits-asha.yaml\ntroupe run --resume",
   "troupe experiment create, troupe up", verbs::run},
  {"up", "Run a whole cluster: as a file says, or master and agent in one process", maybe_file, up_flags,
   false, false,
   "troupe up lab.yaml\ntroupe up --slots 4\ntroupe up -d --data-dir /var/lib/troupe --listen 127.0.0.1:8080",
   "troupe apply, troupe status, troupe down", verbs::up},
  {"apply", "Change a running cluster to what its file says: shows the plan, asks, does it", file_or_plan,
   apply_flags, false, true,
   "troupe apply lab.yaml\ntroupe apply lab.yaml --plan plan.json\ntroupe apply plan.json --yes",
   "troupe check, troupe config show", verbs::apply},
  {"check", "Say every fault of a cluster's file, with its place; changes nothing", one_file, check_flags,
   true, false, "troupe check lab.yaml\ntroupe check lab.yaml --resolved\ntroupe check lab.yaml --connect",
   "troupe explain, troupe config check", verbs::check},
  {"explain",
   "What a key of a cluster's file means: type, default, example",
   maybe_key,
   {},
   false,
   false,
   "troupe explain nodes.ssh.key\ntroupe explain defaults.max_restarts",
   "troupe check, troupe config explain",
   verbs::explain},
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
   "Show whether the cluster is up, and its slots",
   {},
   {},
   true,
   true,
   "troupe status\ntroupe status -o json",
   "troupe agent list",
   verbs::status},
  {"down",
   "Stop the cluster; running trials go on when it is up again",
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
   "Pause: trials save a checkpoint and give their slots back",
   experiments,
   {},
   false,
   true,
   "troupe experiment pause 7",
   "troupe experiment activate",
   verbs::experiment_pause},
  {"experiment activate",
   "Go on with a paused experiment",
   experiments,
   {},
   false,
   true,
   "troupe experiment activate 7",
   "troupe experiment pause",
   verbs::experiment_activate},
  {"experiment cancel",
   "End it; trials may save a last checkpoint",
   experiments,
   {},
   false,
   true,
   "troupe experiment cancel 7",
   "troupe experiment kill",
   verbs::experiment_cancel},
  {"experiment kill",
   "End it at once",
   experiments,
   {},
   false,
   true,
   "troupe experiment kill 7",
   "troupe experiment cancel",
   verbs::experiment_kill},
  {"experiment wait", "Wait for its end; the exit code says how it ended", experiment, wait_flags, false,
   true, "troupe experiment wait 7 --timeout 3600", "troupe help exit-codes", verbs::experiment_wait},
  {"experiment pareto",
   "List the trials that no other beats in all metrics of the search",
   experiment,
   {},
   true,
   true,
   "troupe experiment pareto 7\ntroupe experiment pareto last -o json",
   "troupe trial list",
   verbs::experiment_pareto},
  {"experiment logs", "Show what its trials printed", experiment, log_flags, true, true,
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
  {"checkpoint download", "Copy a checkpoint's files here", uuid, download_flags, false, true,
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
  {"slot list",
   "List the slots of all agents",
   {},
   {},
   true,
   true,
   "troupe slot list -o json",
   "troupe agent list",
   verbs::slot_list},
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
  {"search", "Preview and simulate searches", {}, {}, false, false, "troupe search --help", "", nullptr},
  {"shell",
   "Look into the live actors, and act on them",
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
