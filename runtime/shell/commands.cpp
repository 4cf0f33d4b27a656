// The table of the shell's commands, in the order of help.

#include "runtime/shell/actions.hpp"

namespace troupe::shell {
namespace {

constexpr option ps_options[] = {
  {"--sort", "KEY", "Largest first: backlog, msg_per_s, messages, run_us_p99, wait_us_p99, restarts, uptime_s"},
  {"--top", "N", "Only the first N"},
  {"--window", "T", "Time over which rates are counted; 1s unless said"},
};
constexpr option top_options[] = {
  {"--sort", "KEY", "Largest first; msg_per_s unless said"},
  {"--window", "T", "Time between two pictures; 2s unless said"},
};
constexpr option state_options[] = {{"--diff", "T", "Look twice, so far apart, and show what changed"}};
constexpr option msgs_options[] = {{"-n,--max", "N", "Only the newest N"}};
constexpr option events_options[] = {
  {"-f,--follow", "", "Stay and show what comes"},
  {"-n,--max", "N", "At most N; 50 unless said, without an end with -f"},
  {"--for", "T", "End after so long; follows"},
};
constexpr option trace_options[] = {
  {"-n,--max", "N", "End after N messages; 100 unless said"},
  {"--rate", "N", "Show at most N a second"},
  {"--for", "T", "End after so long; 30s unless said"},
  {"--msg", "TYPE", "Only messages of this type"},
};
constexpr option follow_options[] = {
  {"-n,--max", "N", "End after N messages; 100 unless said"},
  {"--for", "T", "End after so long; 30s unless said"},
};
constexpr option kill_options[] = {{"-y,--yes", "", "Do it without asking; only who sits at a terminal is asked"}};
constexpr option watch_options[] = {
  {"-n,--every", "T", "Time between two runs; 2s unless said"},
  {"--max", "N", "End after N runs"},
};

constexpr command table[] = {
  {"nodes", "Look", "", 0, 0, {}, "Show the nodes of the cluster", "nodes\nnodes -o csv", what::none, false,
   actions::nodes},
  {"ps", "Look", "[kind=K] [node=N] [state=S] [TEXT]", 0, 8, ps_options, "List actors with rates over a window",
   "ps --top 4 --window 2s\nps kind=trial --sort backlog", what::kind, false, actions::ps},
  {"info", "Look", "ACTOR", 0, 1, {}, "Show identity, links, work, memory and recent messages of an actor", "info trial/7",
   what::actor, false, actions::info},
  {"tree", "Look", "[ACTOR]", 0, 1, {}, "Show who owns whom, with states and restarts", "tree\ntree experiment/3", what::actor,
   false, actions::tree},
  {"state", "Look", "ACTOR [PATH]", 0, 2, state_options, "Show the state of an actor, or a part of it, or what changes in it",
   "state pool/main queue[0]\nstate trial/7 --diff 1s", what::actor, false, actions::state},
  {"msgs", "Look", "ACTOR", 0, 1, msgs_options, "Show the newest messages of an actor, at most 32", "msgs trial/7", what::actor,
   false, actions::msgs},
  {"stats", "Look", "ACTOR", 0, 1, {}, "Show how long messages wait and run", "stats journal", what::actor, false,
   actions::stats},
  {"top", "Look", "[kind=K] [node=N] [TEXT]", 0, 8, top_options,
   "Show the busiest actors live; q leaves, s sorts, r reverses, / filters, Enter shows the chosen one", "top\ntop kind=agent --window 1s", what::kind, false,
   actions::top},
  {"links", "Look", "ACTOR", 0, 1, {}, "Show the owner, children and monitors of an actor", "links trial/7", what::actor, false,
   actions::links},
  {"who-waits", "Look", "[ACTOR]", 0, 1, {}, "Show requests without an answer yet, oldest first", "who-waits", what::actor,
   false,
   actions::who_waits},
  {"events", "Look", "[kind=K] [actor=A]", 0, 4, events_options, "Show what happened: states, supervision, audit",
   "events --max 20\nevents -f kind=audit", what::none, false, actions::events},
  {"log", "Look", "[LEVEL]", 0, 1, {}, "Show the level of the cluster's log; with LEVEL set it (after :rw)", "log\nlog debug",
   what::level, false, actions::log},
  {"trace", "Trace", "ACTOR", 0, 1, trace_options, "Show messages as an actor takes them, always bounded",
   "trace pool/main --max 20\ntrace trial/7 --msg checkpoint_saved --for 1m", what::actor, false, actions::trace},
  {"follow", "Trace", "CORRELATION", 1, 1, follow_options, "Show one request on its way through all actors",
   "follow trial/7 --for 10s", what::correlation, false, actions::follow},
  {"send", "Act", "ACTOR MESSAGE [FIELD=VALUE]...", 2, 64, {}, "Send a message; its fields are in docs/messages.md",
   "send trial/7 preempt reason=maintenance\nhelp send", what::message_of_actor, true, actions::send},
  {"kill", "Act", "ACTOR", 1, 1, kill_options, "End an actor; its owner starts it again from the journal", "kill trial/7",
   what::actor, true,
   actions::kill},
  {"restart", "Act", "ACTOR", 1, 1, {}, "End an actor and wait until it is back", "restart trial/7", what::actor, true,
   actions::restart},
  {"config set", "Act", "KEY VALUE", 2, 2, {}, "Change a setting of the running cluster", "config set log.level debug",
   what::none,
   true, actions::config_set},
  {"drain", "Act", "NODE [on|off]", 1, 2, {}, "Give a node no new work, or (off) give it work again",
   "drain gpu02\ndrain gpu02 off",
   what::node, true, actions::drain},
  {"fault", "Act", "ACTOR FAULT [KEY=VALUE]...", 2, 16, {},
   "Make something fail, where the node was started with --allow-faults",
   "fault trial/7 kill", what::actor, true, actions::fault},
  {"let", "Session", "NAME = VALUE | COMMAND", 0, 64, {}, "Keep a value or a command's result: $NAME, ${NAME.field}",
   "let t = ps kind=trial --top 1\ninfo $t", what::command, false, actions::unreachable_here},
  {"cd", "Session", "[ACTOR | NODE | ..]", 0, 1, {}, "Choose the actor or node that the next commands mean",
   "cd trial/7\ncd ..",
   what::actor, false, actions::cd},
  {"watch", "Session", "[-n T] COMMAND", 0, 64, watch_options, "Run a command again and again", "watch -n 2s ps --top 3",
   what::command, false, actions::unreachable_here},
  {"repeat", "Session", "N COMMAND", 0, 64, {}, "Run a command N times", "repeat 3 ps --top 1", what::command, false,
   actions::unreachable_here},
  {"source", "Session", "FILE", 1, 1, {}, "Run the commands of a file", "source morning.troupe", what::file, false,
   actions::source},
  {"help", "Session", "[COMMAND]", 0, 3, {}, "Show the commands, or one of them", "help\nhelp trace", what::command, false,
   actions::help},
  {"quit", "Session", "", 0, 0, {}, "Leave; so does Ctrl-D", "quit", what::none, false, actions::quit},
  {":rw", "Session", "", 0, 0, {}, "Allow changes for 15 minutes; for admins", ":rw", what::none, false, actions::read_write},
  {":ro", "Session", "", 0, 0, {}, "Allow no changes", ":ro", what::none, false, actions::read_only},
  {":attach", "Session", "[URL]", 0, 1, {}, "Go to another cluster, or show which it is", ":attach head:8080", what::none,
   false,
   actions::attach},
  {":table", "Session", "", 0, 0, {}, "Show results as tables", ":table", what::none, false, actions::as_table},
  {":json", "Session", "", 0, 0, {}, "Show results as JSON, one value a command", ":json", what::none, false, actions::as_json},
  {":csv", "Session", "", 0, 0, {}, "Show results as csv", ":csv", what::none, false, actions::as_csv},
  {":yaml", "Session", "", 0, 0, {}, "Show results as YAML", ":yaml", what::none, false, actions::as_yaml},
};

} // namespace

std::span<const command> all_commands() { return table; }

} // namespace troupe::shell
