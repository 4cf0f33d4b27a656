// Rows of the verb table: agents, slots, pools, the configuration in force, and this program itself.

#include "runtime/cli/configuration_verbs.hpp"
#include "runtime/cli/pool_verbs.hpp"
#include "runtime/cli/rows.hpp"
#include "runtime/cli/verbs.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr argument_spec events_file[] = {{"FILE", "Events, a JSON object a line; - means standard input"}};
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
constexpr argument_spec one_agent[] = {{"AGENT", "Name of the agent"}};
constexpr argument_spec one_slot[] = {{"AGENT", "Name of the agent"}, {"SLOT", "Number of the slot"}};
constexpr argument_spec one_pool[] = {{"POOL", "Name of the pool"}};
constexpr option_spec disable_flags[] = {
  {"--drain", "", "Let what runs there end by itself (default: it is killed, and runs elsewhere)", toggle}};
constexpr option_spec queue_flags[] = {
  {"--pool", "NAME", "List only this pool", text},
  {"--at", "NUMBER", "Who waited after that fact; troupe experiment events has the numbers", number},
  where,
  sort,
};
constexpr argument_spec shell_kind[] = {{"SHELL", "bash"}};

constexpr option_spec event_flags[] = {
  {"--kind", "KIND",
   "List only: audit, facts that say who did it; shell, orders that were given in the shell; supervision, "
   "deaths and restarts of actors; node; fault",
   text, "audit shell supervision node fault"},
  {"--experiment", "EXPERIMENT", "List only facts of this experiment: its id, or `last`", text},
  {"--since", "TIME", "List only what happened since: 90s, 30m, 2h or 3d ago, or as 2026-11-25T08:00:00Z",
   text},
  {"--limit", "N", "List only the newest N", number},
  {"-f,--follow", "", "Continue with what happens from now on", toggle},
  where,
  sort,
};

constexpr verb_spec table[] = {
  {"agent list",
   "List the agents",
   {},
   grid_flags,
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
   "troupe queue list --pool gpu\ntroupe queue list --at 4711",
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
  {"events", "List what happened in the cluster, fact by fact", no_words, event_flags, true, true,
   "troupe events --kind audit --since 2d\ntroupe events --limit 20 --follow\n"
   "troupe events --kind audit -o csv",
   "troupe experiment events, troupe shell", verbs::events},
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

std::span<const verb_spec> of_cluster() { return table; }

} // namespace troupe::cli::rows
