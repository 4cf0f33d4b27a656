// `troupe experiment events`, `troupe trial events`: what happened, fact by fact.

#include "runtime/cli/experiments.hpp"
#include "runtime/cli/interrupt.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/client/event_stream.hpp"

namespace troupe::cli::verbs {
namespace {

constexpr std::chrono::seconds patience{60}; ///< without a further fact

/// A fact as a row: what every one has, and the rest under `fields`.
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

/// The facts of an experiment up to the newest of now, oldest first; of one entity where it is named.
result<value> facts_of(client::server& cluster, experiment_id id, const std::string& entity) {
  auto known = cluster.get("/troupe/v1/experiments/" + to_string(id) + "/history");
  if (!known)
    return known.error();
  const auto& history = part(known->body, "history");
  value rows = value::array();
  if (!history.is_array() || history.empty())
    return rows;
  const auto last = history.back().at("sequence").get<std::uint64_t>();
  client::event_stream events(cluster, id, history.front().at("sequence").get<std::uint64_t>() - 1);
  interrupt_watch watch;
  using clock = std::chrono::steady_clock;
  for (auto until = clock::now() + patience; events.last() < last;) {
    auto step = events.poll(std::chrono::milliseconds(500));
    if (!step)
      return step.error();
    if (!step->events.empty())
      until = clock::now() + patience;
    if (watch.seen() || clock::now() > until)
      return error{errc::timeout, "the facts were read up to number " + std::to_string(events.last()) +
                                    " of " + std::to_string(last) + " only"};
    for (auto& fact : step->events)
      if (part(fact, "sequence") <= last && (entity.empty() || part(fact, "entity") == entity))
        rows.push_back(row_of(std::move(fact)));
  }
  return rows;
}

int print_facts(session& s, client::server& cluster, experiment_id id, const std::string& entity) {
  auto rows = facts_of(cluster, id, entity);
  if (!rows)
    return s.fail(rows.error());
  return s.print(show_rows(*rows,
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
