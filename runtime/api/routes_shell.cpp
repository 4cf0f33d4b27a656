#include "runtime/api/routes_shell.hpp"

#include "runtime/api/errors.hpp"
#include "runtime/api/fact_shape.hpp"
#include "runtime/api/feed.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/told_facts.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::api {
namespace {

constexpr std::size_t most_fact_text = 300, facts_at_once = 256;

/// The command, with its fields read from the query.
template <class C>
result<C> in_query(const call& c) {
  value given = value::object();
  for (const auto& f : commands::field_rows<C>())
    if (c.query.has(f.rules.name))
      given[f.rules.name] = c.query.first(f.rules.name);
  return commands::read<C>(C::is.name, std::move(given), {.numbers_as_text = true});
}

template <class C>
handler look() {
  return [](const call_ptr& c, const reply& back) {
    auto with = in_query<C>(*c);
    if (!with)
      return back(failure(with.error()));
    command(c, back, std::move(*with), as_it_is);
  };
}

template <class C>
handler act() {
  return [](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    auto with = commands::read<C>(C::is.name, std::move(*body), {.numbers_as_text = true});
    if (!with)
      return back(failure(with.error()));
    command(c, back, std::move(*with), as_it_is);
  };
}

// ---- events: facts of the journal, and what the desk tells

value fact_row(const storage::committed_fact& one) {
  auto shape = fact_shape(one);
  if (!shape)
    return {{"at", ""},
            {"kind", "state"},
            {"actor", one.entity},
            {"what", "a fact of a newer version"},
            {"user", ""}};
  auto what = shape->value("type", std::string("fact"));
  const auto at = shape->value("at", std::string());
  for (const char* known : {"type", "at", "sequence", "entity", "number"})
    shape->erase(known);
  auto rest = shape->empty() ? std::string() : " " + to_json(*shape);
  if (rest.size() > most_fact_text)
    rest = rest.substr(0, most_fact_text) + "...";
  return {{"at", at}, {"kind", "state"}, {"actor", one.entity}, {"what", what + rest}, {"user", ""}};
}

void past_events(const call_ptr& c, const reply& back) {
  auto with = in_query<commands::shell_events>(*c);
  if (!with)
    return back(failure(with.error()));
  const auto most = static_cast<std::size_t>(std::clamp(with->max, 1.0, 10'000.0));
  const auto kind = with->kind;
  command(c, back, std::move(*with), [c, most, kind, tells = told_to(*c)](value got) -> result<value> {
    std::vector<value> rows;
    for (auto& row : got["rows"])
      rows.push_back(std::move(row));
    if (kind.empty() || kind == "state") {
      const auto newest = c->parts->storage->sequence();
      for (auto after = newest > most ? newest - most : 0; after < newest;) {
        auto facts = c->parts->storage->facts_after(after, facts_at_once);
        if (!facts)
          return facts.error();
        if (facts->empty())
          break;
        for (const auto& one : *facts) {
          if (!tells || tells(one))
            rows.push_back(fact_row(one));
          after = one.sequence;
        }
      }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const value& a, const value& b) {
      return a.value("at", std::string()) < b.value("at", std::string());
    });
    if (rows.size() > most)
      rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(most));
    value out = value::array();
    for (auto& row : rows)
      out.push_back(std::move(row));
    return value{{"rows", std::move(out)}, {"missing", got["missing"]}};
  });
}

/// Sends facts as they are committed, and the rows of the feed between them.
class live_events : public body_stream {
public:
  live_events(std::shared_ptr<storage::reader> storage, fact_choice tells, std::shared_ptr<feed> from,
              bool with_facts, std::uint64_t most)
      : storage_(std::move(storage)), tells_(std::move(tells)), feed_(from),
        rest_(feed_stream(std::move(from))), with_facts_(with_facts), after_(storage_->sequence()),
        left_(most) {}

  result<piece> next(time_point now) override {
    piece out;
    if (with_facts_) {
      auto facts = storage_->facts_after(after_, facts_at_once);
      if (!facts)
        return facts.error();
      for (const auto& one : *facts) {
        after_ = one.sequence;
        if (tells_ && !tells_(one))
          continue;
        out.bytes += sse_event(fact_row(one));
        if (--left_ == 0)
          return last(std::move(out));
      }
    }
    if (out.bytes.empty()) {
      auto more = rest_->next(now);
      if (!more)
        return more.error();
      for (auto at = more->bytes.find("data: "); at != std::string::npos && left_ > 0;
           at = more->bytes.find("data: ", at + 1))
        if (at == 0 || more->bytes[at - 1] == '\n')
          if (--left_ == 0) {
            more->bytes.resize(more->bytes.find("\n\n", at) + 2);
            return last(std::move(*more));
          }
      return more;
    }
    return out;
  }

private:
  static piece last(piece out) {
    out.bytes += sse_event({{"why", "max"}}, "end");
    out.last = true;
    return out;
  }
  std::shared_ptr<storage::reader> storage_;
  fact_choice tells_;
  std::shared_ptr<feed> feed_;
  std::unique_ptr<body_stream> rest_;
  bool with_facts_;
  std::uint64_t after_, left_;
};

response sse(std::unique_ptr<body_stream> body) {
  response out;
  out.content_type = "text/event-stream";
  out.headers.emplace_back("Cache-Control", "no-store");
  out.stream = std::move(body);
  return out;
}

template <class C>
void open_feed(const call_ptr& c, const reply& back, C with,
               std::function<std::unique_ptr<body_stream>(std::shared_ptr<feed>)> body) {
  auto* gate = dynamic_cast<feed_gate*>(&c->parts->cluster);
  if (!gate)
    return back(failure({errc::unsupported, "this server has no live view"}));
  auto to = std::make_shared<feed>();
  gate->watch(c->by.who, std::move(with), to, [c, back, to, body = std::move(body)](result<value> got) {
    if (!got) {
      to->close();
      return back(failure(got.error()));
    }
    back(sse(body(to)));
  });
}

void events(const call_ptr& c, const reply& back) {
  if (!c->query.flag("follow"))
    return past_events(c, back);
  auto with = in_query<commands::shell_events>(*c);
  if (!with)
    return back(failure(with.error()));
  const auto most = c->query.has("max") ? static_cast<std::uint64_t>(with->max) : 0;
  const auto kind = with->kind;
  open_feed(c, back, std::move(*with), [c, kind, most](std::shared_ptr<feed> from) {
    return std::make_unique<live_events>(c->parts->storage, told_to(*c), std::move(from),
                                         kind.empty() || kind == "state",
                                         most == 0 ? std::uint64_t(-1) : most);
  });
}

void trace(const call_ptr& c, const reply& back) {
  auto with = in_query<commands::shell_trace>(*c);
  if (!with)
    return back(failure(with.error()));
  open_feed(c, back, std::move(*with),
            [](std::shared_ptr<feed> from) { return feed_stream(std::move(from)); });
}

void follow(const call_ptr& c, const reply& back) {
  auto with = in_query<commands::shell_follow>(*c);
  if (!with)
    return back(failure(with.error()));
  // Things that have ended have no actors, but storage knows them.
  const auto& wanted = with->correlation;
  std::vector<std::string> about{wanted};
  const auto id = wanted.substr(std::min(wanted.size(), wanted.find('/') + 1));
  if (wanted.starts_with("trial/")) {
    if (auto row = c->parts->storage->trial(parse_id<trial_id>(id)); !row)
      return back(failure({errc::not_found, "no trial is known under '" + wanted.substr(0, 100) + "'"}));
  } else if (wanted.starts_with("allocation/") || wanted.starts_with("task/")) {
    const auto task = wanted.starts_with("task/") ? parse_task(id) : parse_allocation(id).task;
    if (auto row = c->parts->storage->task(task); !row)
      return back(failure({errc::not_found, "no task is known under '" + wanted.substr(0, 100) + "'"}));
  } else if (wanted.starts_with("experiment/")) {
    auto trials = c->parts->storage->trials(parse_id<experiment_id>(id));
    if (!trials || !c->parts->storage->experiment(parse_id<experiment_id>(id)))
      return back(failure({errc::not_found, "no experiment is known under '" + wanted.substr(0, 100) + "'"}));
    for (const auto& trial : *trials)
      about.push_back("trial/" + to_string(trial.id));
  }
  with->about_these = std::move(about);
  open_feed(c, back, std::move(*with),
            [](std::shared_ptr<feed> from) { return feed_stream(std::move(from)); });
}

} // namespace

std::vector<route> shell_routes() {
  const auto get = [](const char* path, handler run, const char* answers, const char* doc) {
    return route{"GET",
                 std::string("/troupe/v1/shell/") + path,
                 {action::view, thing::actor},
                 std::move(run),
                 "",
                 answers,
                 doc};
  };
  const auto post = []<class C>(const char* path, C, const char* takes, const char* doc) {
    return route{"POST", std::string("/troupe/v1/shell/") + path, C::is.right, act<C>(), takes, "ShellDone",
                 doc};
  };
  std::vector<route> all;
  all.push_back(get("nodes", look<commands::shell_nodes>(), "ShellRows", "The processes of the cluster."));
  all.push_back(get("ps", look<commands::shell_ps>(), "ShellActors",
                    "The live actors of all nodes; rates over `window` seconds, 0: over their lives."));
  all.back().patience = std::chrono::seconds(90);
  all.push_back(get("info", look<commands::shell_info>(), "ShellInfo",
                    "One actor: identity, links, work, memory, recent messages."));
  all.push_back(
    get("tree", look<commands::shell_tree>(), "ShellTree", "Who owns whom, from an actor or the root."));
  all.push_back(get(
    "state", look<commands::shell_state>(), "ShellState",
    "The state of an actor's machine, or a part of it; with `diff` what changed within so many seconds."));
  all.back().patience = std::chrono::seconds(90);
  all.push_back(
    get("msgs", look<commands::shell_msgs>(), "ShellNotes", "The last messages of an actor, 32 at most."));
  all.push_back(
    get("stats", look<commands::shell_stats>(), "ShellStats", "Waits and run times of an actor's messages."));
  all.push_back(
    get("links", look<commands::shell_links>(), "ShellLinks", "Owner, children and monitors of an actor."));
  all.push_back(get("waits", look<commands::shell_waits>(), "ShellRows",
                    "Requests that wait for an answer, the oldest first."));
  all.push_back(
    get("events", events, "ShellEvents",
        "What happened: facts, the audit log, supervision, nodes; with `follow` as server-sent events."));
  all.push_back(get("log", look<commands::shell_log>(), "ShellLogLevel", "The log level."));
  all.push_back(get("messages", look<commands::shell_messages>(), "ShellOrders",
                    "The messages that operators may send to actors."));
  all.push_back(get("trace", trace, "stream of ShellMessage",
                    "The messages of an actor as it handles them, bounded in number, rate and time."));
  all.push_back(get("follow", follow, "stream of ShellMessage",
                    "The messages about one experiment, trial or request, at all actors."));
  all.push_back(post("log", commands::shell_log_set{}, "ShellLog", "Sets the log level of all nodes."));
  all.push_back(post("send", commands::shell_send{}, "ShellSend",
                     "Sends an operator's message to an actor; answers what it answers."));
  all.push_back(post("kill", commands::shell_kill{}, "ShellActor",
                     "Ends an actor as if it had failed; its owner notices."));
  all.push_back(post("restart", commands::shell_restart{}, "ShellActor",
                     "Ends an actor and waits until its owner has made it again."));
  all.push_back(
    post("config", commands::shell_config{}, "ShellSetting", "Changes a setting of the running cluster."));
  all.push_back(
    post("drain", commands::shell_drain{}, "ShellDrain", "Nothing new is placed on a node, or again is."));
  all.push_back(post("fault", commands::shell_fault{}, "ShellFault",
                     "For tests: kill, drop, delay, pause, clear. Needs --allow-faults."));
  return all;
}

} // namespace troupe::api
