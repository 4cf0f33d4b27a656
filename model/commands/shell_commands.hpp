#pragma once
// What `troupe shell` asks and orders. The shell asks the desk, which is on the master; the desk asks each
// node's inspector; an inspector asks an actor of its process.

#include "model/commands/commands.hpp"

namespace troupe::commands {

// ---- the desk: commands that only read

/// Commands that only read and name one actor.
template <class T>
constexpr auto actor_field() {
  return need("actor", &T::actor, "its name, or NAME@NODE");
}

struct shell_nodes : without_fields<shell_nodes> {
  static constexpr about is{
    "shell.nodes",     desk, {action::view, thing::actor}, repeat::question, "The processes of the cluster.",
    "{rows, missing}", {},   std::chrono::seconds(85)};
};
struct shell_ps {
  std::string kind, node, sort, filter;
  double top = 0, window = 1;
  template <class t = shell_ps>
  static constexpr auto fields() {
    return std::tuple{maybe("kind", &t::kind, "only actors of this kind"),
                      maybe("node", &t::node, "only actors of this node"),
                      maybe("sort", &t::sort, "column; numbers the largest first"),
                      maybe("filter", &t::filter, "part of the name"),
                      maybe("top", &t::top, "most rows; 0: all").between(0, 1e12),
                      maybe("window", &t::window, "seconds over which rates are taken; 0: over their lives")
                        .between(0, 1e12)};
  }
  static constexpr about is{
    "shell.ps",        desk, {action::view, thing::actor}, repeat::question, "The live actors of all nodes.",
    "{rows, missing}", {},   std::chrono::seconds(85)};
};
struct shell_info {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<shell_info>()}; }
  static constexpr about is{"shell.info",
                            desk,
                            {action::view, thing::actor},
                            repeat::question,
                            "One actor: identity, links, work, memory, recent messages.",
                            "an object",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_tree {
  std::string actor;
  template <class t = shell_tree>
  static constexpr auto fields() {
    return std::tuple{maybe("actor", &t::actor, "where the tree begins; empty: the cluster")};
  }
  static constexpr about is{"shell.tree",
                            desk,
                            {action::view, thing::actor},
                            repeat::question,
                            "The actors below an actor, with their owners.",
                            "{actor, state, restarts, children}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_state {
  std::string actor, path;
  double diff = 0;
  template <class t = shell_state>
  static constexpr auto fields() {
    return std::tuple{
      actor_field<t>(), maybe("path", &t::path, "the part that is wanted: queue[0].id"),
      maybe("diff", &t::diff, "seconds; what changes meanwhile is answered").between(0, 1e12)};
  }
  static constexpr about is{"shell.state",
                            desk,
                            {action::view, thing::actor},
                            repeat::question,
                            "The state of an actor's machine, a part of it, or what changes in it.",
                            "{actor, state} or {actor, changes}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_msgs {
  std::string actor;
  double max = 32;
  template <class t = shell_msgs>
  static constexpr auto fields() {
    return std::tuple{actor_field<t>(), maybe("max", &t::max, "most rows, 32 at most").between(0, 1e12)};
  }
  static constexpr about is{
    "shell.msgs",      desk, {action::view, thing::actor}, repeat::question, "The last messages of an actor.",
    "{rows, missing}", {},   std::chrono::seconds(85)};
};
struct shell_stats {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<shell_stats>()}; }
  static constexpr about is{"shell.stats",
                            desk,
                            {action::view, thing::actor},
                            repeat::question,
                            "Waits and run times of an actor's messages.",
                            "an object",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_links {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<shell_links>()}; }
  static constexpr about is{"shell.links",
                            desk,
                            {action::view, thing::actor},
                            repeat::question,
                            "Owner, children and monitors of an actor.",
                            "{rows, missing}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_waits : without_fields<shell_waits> {
  static constexpr about is{"shell.waits",
                            desk,
                            {action::view, thing::actor},
                            repeat::question,
                            "Requests that wait for an answer, the oldest first.",
                            "{rows, missing}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_events {
  std::string kind;
  double max = 100;
  template <class t = shell_events>
  static constexpr auto fields() {
    return std::tuple{maybe("kind", &t::kind, "what is wanted; empty: all")
                        .one_of_these("state, audit, supervision, node, fault"),
                      maybe("max", &t::max, "most rows").between(0, 1e12)};
  }
  static constexpr about is{"shell.events",
                            desk,
                            {action::view, thing::actor},
                            repeat::question,
                            "Events: the audit log, supervision, nodes; also as a stream.",
                            "{rows, missing}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_log : without_fields<shell_log> {
  static constexpr about is{
    "shell.log", desk, {action::view, thing::actor}, repeat::question, "The log level.",
    "{level}",   {},   std::chrono::seconds(85)};
};
struct shell_messages : without_fields<shell_messages> {
  static constexpr about is{
    "shell.messages",
    desk,
    {action::view, thing::actor},
    repeat::question,
    "The messages that operators may send to actors: the rows of this table that have a "
    "word.",
    "{rows, missing}",
    {},
    std::chrono::seconds(85)};
};

// ---- the desk: live views

template <class T>
constexpr auto bounds_of_stream() {
  return std::tuple{maybe("msg", &T::msg, "only messages of this type"),
                    maybe("max", &T::max, "most rows").between(0, 1e12),
                    maybe("rate", &T::rate, "most rows in a second").between(0, 1e12),
                    maybe("for", &T::for_s, "seconds until it ends").between(0, 1e12)};
}
struct shell_trace {
  std::string actor, msg;
  double max = 100, rate = 50, for_s = 30;
  template <class t = shell_trace>
  static constexpr auto fields() {
    return std::tuple_cat(std::tuple{actor_field<t>()}, bounds_of_stream<t>());
  }
  static constexpr about is{"shell.trace",
                            desk,
                            {action::view, thing::actor},
                            repeat::again,
                            "The messages of an actor as it handles them, as a stream."};
};
struct shell_follow {
  std::string correlation, msg;
  double max = 100, rate = 50, for_s = 30;
  std::vector<std::string> about_these;
  template <class t = shell_follow>
  static constexpr auto fields() {
    return std::tuple_cat(
      std::tuple{
        need("correlation", &t::correlation, "trial/7, experiment/3, or a request as req/ACTOR.NUMBER")},
      bounds_of_stream<t>(),
      std::tuple{maybe("about", &t::about_these, "what is followed besides; the API fills it in")});
  }
  static constexpr about is{
    "shell.follow",
    desk,
    {action::view, thing::actor},
    repeat::again,
    "The messages about one experiment, trial or request, at all actors, as a stream."};
};

// ---- the desk: orders

inline constexpr const char* log_levels = "error, warning, info, debug";

struct shell_log_set {
  std::string level;
  template <class t = shell_log_set>
  static constexpr auto fields() {
    return std::tuple{need("level", &t::level, "what is written at least").one_of_these(log_levels)};
  }
  static constexpr about is{"shell.log.set",
                            desk,
                            {action::change, thing::configuration},
                            repeat::safe,
                            "Sets the log level of all nodes.",
                            "{level}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_send {
  std::string actor, message;
  value given = value::object();
  template <class t = shell_send>
  static constexpr auto fields() {
    return std::tuple{actor_field<t>(), need("message", &t::message, "word of the message"),
                      maybe("fields", &t::given, "its fields; text is read as what they are").an_object()};
  }
  static constexpr about is{"shell.send",
                            desk,
                            {action::change, thing::actor},
                            repeat::again,
                            "Sends an operator's message to an actor; answers what it answers.",
                            "{answer}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_kill {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<shell_kill>()}; }
  static constexpr about is{"shell.kill",
                            desk,
                            {action::kill, thing::actor},
                            repeat::again,
                            "Ends an actor as if it had failed; its owner notices.",
                            "{done}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_restart {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<shell_restart>()}; }
  static constexpr about is{"shell.restart",
                            desk,
                            {action::kill, thing::actor},
                            repeat::again,
                            "Ends an actor and waits until its owner has made it again.",
                            "{done}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_config {
  std::string key;
  value wanted;
  template <class t = shell_config>
  static constexpr auto fields() {
    return std::tuple{need("key", &t::key, "log.level, trace.max or trace.rate"),
                      maybe("value", &t::wanted, "its new value")};
  }
  static constexpr about is{"shell.config",
                            desk,
                            {action::change, thing::configuration},
                            repeat::safe,
                            "Changes a setting of the running cluster.",
                            "{done}",
                            {},
                            std::chrono::seconds(85)};
};
struct shell_drain {
  std::string node;
  bool on = true;
  std::optional<std::int64_t> slot;
  template <class t = shell_drain>
  static constexpr auto fields() {
    return std::tuple{need("node", &t::node, "name of the node or of its agent"),
                      maybe("on", &t::on, "false: it takes work again"),
                      maybe("slot", &t::slot, "one slot of its agent; the whole agent unless said")};
  }
  static constexpr about is{
    "shell.drain", desk, {action::change, thing::agent}, repeat::safe, "Drains a node, or takes this back.",
    "{done}",      {},   std::chrono::seconds(85)};
};
struct shell_fault {
  std::string actor, fault;
  std::optional<double> n, delay_ms, for_ms, for_s;
  template <class t = shell_fault>
  static constexpr auto fields() {
    return std::tuple{
      actor_field<t>(),
      need("fault", &t::fault, "what is disturbed").one_of_these("kill, drop, delay, pause, clear"),
      maybe("n", &t::n, "messages, 1 to 10000"),
      maybe("delay_ms", &t::delay_ms, "milliseconds, 1 to 60000"),
      maybe("for_ms", &t::for_ms, "milliseconds, 1 to 120000"),
      maybe("for_s", &t::for_s, "the same in seconds")};
  }
  static constexpr about is{"shell.fault",
                            desk,
                            {action::create, thing::fault},
                            repeat::again,
                            "Disturbs the messages of an actor, for tests. Needs --allow-faults.",
                            "{done}",
                            {},
                            std::chrono::seconds(85)};
};

// ---- an inspector, asked by the desk: `what` of an inspect_request is the name without "inspect."

struct inspect_node : without_fields<inspect_node> {
  static constexpr about is{"inspect.node",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "The node in numbers.",
                            "{node, role, actors, backlog, version, uptime_s, code, allow_faults}"};
};
struct inspect_ps {
  std::uint64_t window_ms = 1000;
  std::string kind;
  template <class t = inspect_ps>
  static constexpr auto fields() {
    return std::tuple{maybe("window_ms", &t::window_ms, "over which rates are taken; 0: over their lives"),
                      maybe("kind", &t::kind, "only actors of this kind")};
  }
  static constexpr about is{
    "inspect.ps", inspector, {action::view, thing::actor}, repeat::question, "The live actors of the node.",
    "{rows}"};
};
struct inspect_tree : without_fields<inspect_tree> {
  static constexpr about is{"inspect.tree",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "The actors of the node, with their owners.",
                            "{rows: [{actor, owner, state, restarts}]}"};
};
struct inspect_names {
  std::vector<std::uint64_t> ids;
  template <class t = inspect_names>
  static constexpr auto fields() {
    return std::tuple{need("ids", &t::ids, "numbers of actors of this process")};
  }
  static constexpr about is{"inspect.names",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "Names for numbers of actors, of those that the node knows.",
                            "{names: {ID: name}}"};
};
struct inspect_waits : without_fields<inspect_waits> {
  static constexpr about is{"inspect.waits",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "Requests of the node's actors that wait for an answer.",
                            "{rows}"};
};
struct inspect_events {
  std::uint64_t after = 0, max = 512;
  template <class t = inspect_events>
  static constexpr auto fields() {
    return std::tuple{maybe("after", &t::after, "number of the newest that is known"),
                      maybe("max", &t::max, "most rows")};
  }
  static constexpr about is{
    "inspect.events",      inspector,       {action::view, thing::actor}, repeat::question,
    "Events of the node.", "{rows, newest}"};
};

// Questions about one actor: `what` of the inspect_request is "actor", and its field `what` is the name.

struct inspect_here {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<inspect_here>()}; }
  static constexpr about is{"inspect.here",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "Whether the actor is on the node.",
                            "{id, kind, owner}"};
};
struct inspect_info {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<inspect_info>()}; }
  static constexpr about is{"inspect.info",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "shell.info of an actor of the node.",
                            "an object"};
};
struct inspect_links {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<inspect_links>()}; }
  static constexpr about is{"inspect.links",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "shell.links of an actor of the node.",
                            "{rows}"};
};
struct inspect_state {
  std::string actor, path;
  template <class t = inspect_state>
  static constexpr auto fields() {
    return std::tuple{actor_field<t>(), maybe("path", &t::path, "the part that is wanted")};
  }
  static constexpr about is{"inspect.state",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "shell.state of an actor of the node.",
                            "{actor, state}"};
};
struct inspect_msgs {
  std::string actor;
  double max = 32;
  template <class t = inspect_msgs>
  static constexpr auto fields() {
    return std::tuple{actor_field<t>(), maybe("max", &t::max, "most rows")};
  }
  static constexpr about is{"inspect.msgs",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "shell.msgs of an actor of the node.",
                            "{rows}"};
};
struct inspect_stats {
  std::string actor;
  static constexpr auto fields() { return std::tuple{actor_field<inspect_stats>()}; }
  static constexpr about is{"inspect.stats",
                            inspector,
                            {action::view, thing::actor},
                            repeat::question,
                            "shell.stats of an actor of the node.",
                            "an object"};
};

struct inspect_end {
  std::string actor, why;
  template <class t = inspect_end>
  static constexpr auto fields() {
    return std::tuple{actor_field<t>(), maybe("why", &t::why, "the error that it dies of")};
  }
  static constexpr about is{"inspect.end",
                            inspector,
                            {action::kill, thing::actor},
                            repeat::again,
                            "Ends an actor with an error, and its children; its owner notices.",
                            "{id}"};
};
struct inspect_send {
  std::string actor, message, user;
  value given = value::object();
  template <class t = inspect_send>
  static constexpr auto fields() {
    return std::tuple{actor_field<t>(), need("message", &t::message, "word of the message"),
                      maybe("user", &t::user, "who sends it"),
                      maybe("fields", &t::given, "its fields, checked").an_object()};
  }
  static constexpr about is{"inspect.send",
                            inspector,
                            {action::change, thing::actor},
                            repeat::again,
                            "Delivers an operator's message.",
                            "what the actor answers"};
};
struct inspect_watch {
  std::string actor, msg;
  std::vector<std::string> about_these;
  std::uint64_t request = 0, requester = 0;
  double max = 100, rate = 50, for_ms = 30'000;
  template <class t = inspect_watch>
  static constexpr auto fields() {
    return std::tuple{maybe("actor", &t::actor, "the one that is watched; empty: all"),
                      maybe("about", &t::about_these, "experiments, trials and runs"),
                      maybe("request", &t::request, "number of a request"),
                      maybe("requester", &t::requester, "number of the actor that made it"),
                      maybe("msg", &t::msg, "only messages of this type"),
                      maybe("max", &t::max, "most rows"),
                      maybe("rate", &t::rate, "most rows in a second"),
                      maybe("for_ms", &t::for_ms, "milliseconds until it ends")};
  }
  static constexpr about is{"inspect.watch", inspector,         {action::view, thing::actor},
                            repeat::again,   "Begins a trace.", "{id}"};
};
struct inspect_taken {
  std::uint64_t id = 0;
  std::vector<std::string> about_these;
  template <class t = inspect_taken>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "of the trace"),
                      maybe("about", &t::about_these, "what it follows from now on; empty: as before")};
  }
  static constexpr about is{"inspect.taken",
                            inspector,
                            {action::view, thing::actor},
                            repeat::again,
                            "What a trace has shown since it was asked last.",
                            "{rows, seen, shown, dropped, over, gone}"};
};
struct inspect_unwatch {
  std::uint64_t id = 0;
  static constexpr auto fields() { return std::tuple{need("id", &inspect_unwatch::id, "of the trace")}; }
  static constexpr about is{
    "inspect.unwatch", inspector, {action::view, thing::actor}, repeat::safe, "Ends a trace."};
};
struct inspect_log {
  std::string level;
  template <class t = inspect_log>
  static constexpr auto fields() {
    return std::tuple{maybe("level", &t::level, "empty: stays").one_of_these(log_levels)};
  }
  static constexpr about is{"inspect.log",
                            inspector,
                            {action::change, thing::configuration},
                            repeat::safe,
                            "The log level of the node, after it was set.",
                            "{level}"};
};
struct inspect_fault {
  std::string actor, fault, from_actor;
  std::uint64_t n = 1, delay_ms = 100, for_ms = 10'000, from_node = 0;
  template <class t = inspect_fault>
  static constexpr auto fields() {
    return std::tuple{maybe("actor", &t::actor, "whose messages; empty: all"),
                      need("fault", &t::fault, "what is disturbed").one_of_these("drop, delay, pause, clear"),
                      maybe("n", &t::n, "messages").between(1, 10'000),
                      maybe("delay_ms", &t::delay_ms, "milliseconds").between(1, 60'000),
                      maybe("for_ms", &t::for_ms, "milliseconds").between(1, 120'000),
                      maybe("from_node", &t::from_node, "only what comes from this node; 0: all"),
                      maybe("from_actor", &t::from_actor, "only what comes from this actor; empty: all")};
  }
  static constexpr about is{"inspect.fault",
                            inspector,
                            {action::create, thing::fault},
                            repeat::again,
                            "Disturbs messages; `denied` unless the node allows faults."};
};

// ---- an actor, ordered by an operator through the inspector of its node

struct actor_ping : without_fields<actor_ping> {
  static constexpr about is{"actor.ping",
                            actor,
                            {action::view, thing::actor},
                            repeat::question,
                            "Answers how long the message waited in the mailbox.",
                            "{wait_us}",
                            {"ping", {"*"}, {}}};
};
struct pool_describe : without_fields<pool_describe> {
  static constexpr about is{"pool.describe",
                            actor,
                            {action::view, thing::actor},
                            repeat::question,
                            "The slots of the pool in numbers, their holders, and the requests that wait.",
                            "{total, used, agents, waiting}",
                            {"describe", {"pool"}, {}}};
};
struct journal_flush : without_fields<journal_flush> {
  static constexpr about is{"journal.flush",
                            actor,
                            {action::change, thing::actor},
                            repeat::safe,
                            "Commits what is queued, now.",
                            "{}",
                            {"flush", {"journal"}, {}}};
};
struct searcher_save : without_fields<searcher_save> {
  static constexpr about is{"searcher.save",
                            actor,
                            {action::view, thing::actor},
                            repeat::question,
                            "Answers the size of the search's state.",
                            "{state_bytes}",
                            {"save", {"searcher"}, {}}};
};
struct agent_redial : without_fields<agent_redial> {
  static constexpr about is{"agent.redial",
                            actor,
                            {action::change, thing::actor},
                            repeat::safe,
                            "Looks for the master now, where the link is down.",
                            "{}",
                            {"redial", {"agent_node"}, {}}};
};

} // namespace troupe::commands
