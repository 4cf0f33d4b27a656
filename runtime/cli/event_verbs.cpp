// `troupe events`, `troupe experiment events`, `troupe trial events`: what happened, fact by fact.

#include "runtime/cli/experiments.hpp"
#include "runtime/cli/interrupt.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/client/event_stream.hpp"

#include <charconv>
#include <deque>
#include <ostream>

namespace troupe::cli::verbs {
namespace {

constexpr std::chrono::seconds patience{60}; ///< longest wait for a further fact

/// A fact as a row: fields of every fact, and the rest under `fields`.
value row_of(value fact) {
  value row = value::object();
  for (const char* key : {"sequence", "at", "type", "entity", "experiment"})
    if (auto found = fact.find(key); found != fact.end()) {
      row[key] = std::move(*found);
      fact.erase(found);
    }
  fact.erase("number");
  row["fields"] = std::move(fact);
  return row;
}

// ---- events of the whole cluster

const std::vector<column> fact_columns = {{"NUMBER", "sequence"}, {"AT", "at"},
                                          {"BY", "fields.by"},    {"WHAT", "type"},
                                          {"OF", "entity"},       {"FIELDS", "fields", show_as::compact}};
const std::vector<column> desk_columns = {
  {"AT", "at"}, {"KIND", "kind"}, {"USER", "user"}, {"ACTOR", "actor"}, {"WHAT", "what"}};

/// "2h" is 2 hours before `now`; otherwise the text is a time of RFC 3339.
result<time_point> since_in(const std::string& text, time_point now) {
  if (const auto at = from_rfc3339(text))
    return *at;
  std::int64_t number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  const std::int64_t seconds = unit == "s"   ? 1
                               : unit == "m" ? 60
                               : unit == "h" ? 3600
                               : unit == "d" ? 86'400
                                             : 0;
  if (bad != std::errc{} || number < 0 || number > 1'000'000 || seconds == 0)
    return error{errc::invalid, "--since '" + text +
                                  "': expected how long ago, as 90s, 30m, 2h or 3d, or a time" +
                                  "\nhint: --since 2h, --since 2026-11-25T08:00:00Z"};
  return now - std::chrono::seconds(number * seconds);
}

/// Prints rows as they come: a table or CSV with one header, YAML as one list, JSON as one object a line.
class live_rows {
public:
  live_rows(session& s) : s_(s), options_(s.output()) {}

  int print(value all) {
    auto rows = s_.chosen(std::move(all), fact_grid());
    if (!rows)
      return s_.fail(rows.error());
    if (rows->empty())
      return exit_done;
    int code = exit_done;
    if (options_.format == output_format::json && !options_.quiet)
      for (const auto& row : *rows)
        s_.io.out << to_json(row) << "\n";
    else
      code = s_.print(show_rows(*rows, fact_columns, options_));
    options_.header = false;
    s_.io.out.flush();
    return code;
  }

private:
  session& s_;
  output_options options_;
};

/// Which facts are wanted.
struct fact_query {
  experiment_id experiment;
  client::query filter;
  std::size_t limit = 0; ///< only the newest ones; 0: all
};

/// The facts up to number `last`, oldest first.
result<value> facts_until(client::server& cluster, const fact_query& what, std::uint64_t last,
                          const interrupt_watch& watch) {
  client::query with{{"after", "0"}, {"until", std::to_string(last)}};
  if (what.experiment)
    with.emplace_back("experiment", to_string(what.experiment));
  with.insert(with.end(), what.filter.begin(), what.filter.end());
  auto opened = cluster.open("/troupe/v1/events", with, {"Accept: text/event-stream"}, patience);
  if (!opened)
    return opened.error();
  std::deque<value> newest;
  client::sse_parser parser;
  std::string bytes, refusal;
  for (bool open = true; open;) {
    auto more = (*opened)->read(bytes, std::chrono::milliseconds(500));
    if (!more)
      return more.error();
    open = *more;
    if (watch.seen())
      return error{errc::timeout, "interrupted: not all facts were read"};
    if (const int status = (*opened)->status(); status != 0 && status != 200) {
      refusal = bytes;
      continue;
    }
    for (const auto& event : parser.feed(bytes))
      if (auto fact = parse_json(event.data); fact && fact->is_object()) {
        newest.push_back(row_of(std::move(*fact)));
        if (what.limit != 0 && newest.size() > what.limit)
          newest.pop_front();
      }
    bytes.clear();
  }
  if (const int status = (*opened)->status(); status != 200)
    return cluster.fault_of({status, refusal, {}});
  value rows = value::array();
  for (auto& one : newest)
    rows.push_back(std::move(one));
  return rows;
}

/// Prints facts that come after number `last`, until the user interrupts.
int follow_facts(session& s, client::server& cluster, const fact_query& what, std::uint64_t last,
                 live_rows& printer, const interrupt_watch& watch) {
  client::event_stream events(cluster, what.experiment, last, what.filter);
  using link = client::event_stream::step::link;
  while (!watch.seen()) {
    auto step = events.poll(std::chrono::milliseconds(500));
    if (!step)
      return s.fail(step.error());
    if (step->change == link::lost)
      s.io.err << "lost the cluster (" << step->why << "); waiting for it\n";
    if (step->change == link::back)
      s.io.err << "the cluster is back\n";
    value rows = value::array();
    for (auto& fact : step->events)
      rows.push_back(row_of(std::move(fact)));
    if (const int code = printer.print(std::move(rows)); code != exit_done)
      return code;
  }
  return exit_interrupted;
}

/// Prints what the shell's desk keeps; these are not facts of the journal.
int print_desk(session& s, client::server& cluster, const std::string& kind, const std::string& since) {
  for (const char* option : {"--follow", "--experiment"})
    if (s.given.has(option))
      return s.fail({errc::invalid, std::string(option) + " is for facts, not for --kind " +
                                      s.given.text("--kind") +
                                      "\nhint: troupe shell -e 'events -f kind=" + kind + "'"});
  const auto limit = s.given.number("--limit", 10'000);
  auto got = cluster.get("/troupe/v1/shell/events", {{"kind", kind}, {"max", std::to_string(limit)}});
  if (!got)
    return s.fail(got.error());
  for (const auto& node : part(got->body, "missing"))
    s.io.err << "node " << shown(part(node, "node"), show_as::plain, {})
             << " did not answer: " << shown(part(node, "why"), show_as::plain, {}) << "\n";
  value rows = value::array();
  for (const auto& row : part(got->body, "rows")) // times compare as text, because all have the same digits
    if (limit != 0 && shown(part(row, "at"), show_as::plain, {}) >= since)
      rows.push_back(row);
  auto chosen = s.chosen(std::move(rows), desk_grid());
  return chosen ? s.print(show_rows(*chosen, desk_columns, s.output())) : s.fail(chosen.error());
}

} // namespace

int events(session& s, const arguments& given) {
  if (given.has("--sort") && given.has("--follow"))
    return s.fail({errc::invalid,
                   "--sort orders what there is, and --follow continues without end: leave one of them out"});
  std::string since;
  if (given.has("--since")) {
    auto at = since_in(given.text("--since"), s.io.now());
    if (!at)
      return s.fail(at.error());
    since = to_rfc3339(*at);
  }
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  const auto kind = given.text("--kind");
  if (!kind.empty() && kind != "audit")
    return print_desk(s, **cluster, kind == "shell" ? "audit" : kind, since);
  fact_query what;
  if (given.has("--experiment")) {
    auto id = named_experiment(**cluster, given.text("--experiment"));
    if (!id)
      return s.fail(id.error());
    what.experiment = *id;
  }
  if (!kind.empty())
    what.filter.emplace_back("kind", kind);
  if (!since.empty())
    what.filter.emplace_back("since", since);
  const auto limit = static_cast<std::size_t>(given.number("--limit", 0));
  what.limit = given.has("--where") ? 0 : limit; // the newest of those that match
  auto now = (*cluster)->get("/api/v1/me");      // the answer says how far the journal has come
  if (!now)
    return s.fail(now.error());
  const auto last = now->sequence.value_or(0);
  interrupt_watch watch;
  auto rows = last == 0 || (given.has("--limit") && limit == 0) ? result<value>(value::array())
                                                                : facts_until(**cluster, what, last, watch);
  if (!rows)
    return watch.seen() ? static_cast<int>(exit_interrupted) : s.fail(rows.error());
  rows = selected(*std::move(rows), fact_grid(), given.text("--where"), "");
  if (!rows)
    return s.fail(rows.error());
  if (limit != 0 && rows->size() > limit)
    rows->erase(rows->begin(), rows->end() - static_cast<std::ptrdiff_t>(limit));
  if (!given.has("--follow")) {
    auto chosen = s.chosen(*std::move(rows), fact_grid());
    return chosen ? s.print(show_rows(*chosen, fact_columns, s.output())) : s.fail(chosen.error());
  }
  live_rows printer(s);
  if (const int code = printer.print(*std::move(rows)); code != exit_done)
    return code;
  return follow_facts(s, **cluster, what, last, printer, watch);
}

namespace {

/// Prints only the facts of `entity` where it is named.
int print_facts(session& s, client::server& cluster, experiment_id id, const std::string& entity) {
  auto now = cluster.get("/api/v1/me"); // the answer says how far the journal has come
  if (!now)
    return s.fail(now.error());
  interrupt_watch watch;
  auto rows = facts_until(cluster, {.experiment = id}, now->sequence.value_or(0), watch);
  if (!rows)
    return watch.seen() ? static_cast<int>(exit_interrupted) : s.fail(rows.error());
  value own = value::array();
  for (auto& fact : *rows)
    if (entity.empty() || part(fact, "entity") == entity)
      own.push_back(std::move(fact));
  auto chosen = s.chosen(std::move(own), fact_grid());
  if (!chosen)
    return s.fail(chosen.error());
  return s.print(show_rows(*chosen,
                           {{"NUMBER", "sequence"},
                            {"AT", "at"},
                            {"WHAT", "type"},
                            {"OF", "entity"},
                            {"FIELDS", "fields", show_as::compact}},
                           s.output()));
}

} // namespace

int experiment_events(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  return id ? print_facts(s, **cluster, *id, "") : s.fail(id.error());
}

int trial_events(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_trial(given.text("TRIAL"));
  if (!id)
    return s.fail(id.error());
  auto got = (*cluster)->get("/api/v1/trials/" + to_string(*id));
  if (!got)
    return s.fail(got.error());
  const experiment_id of{part(got->body, "trial.experimentId").get<std::uint64_t>()};
  return print_facts(s, **cluster, of, "trial/" + to_string(*id));
}

} // namespace troupe::cli::verbs
