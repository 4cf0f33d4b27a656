#include "runtime/cli/experiments.hpp"
#include "runtime/cli/follow.hpp"
#include "runtime/cli/interrupt.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/client/cluster_configuration.hpp"
#include "runtime/client/event_stream.hpp"
#include "runtime/client/submission.hpp"

#include <algorithm>
#include <ostream>

namespace troupe::cli::verbs {
namespace {

/// Calls `act` for each experiment that is named. All are tried; the first failure gives the exit code.
int change(session& s, const std::string& act, const std::string& done) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  int code = exit_done;
  for (const auto& word : s.given.all("EXPERIMENT")) {
    auto id = named_experiment(**cluster, word);
    auto answer =
      id ? (*cluster)->post("/api/v1/experiments/" + to_string(*id) + "/" + act) : result<value>(id.error());
    if (answer) {
      s.io.out << done << " experiment " << to_string(*id) << "\n";
      continue;
    }
    int failed = s.fail(answer.error());
    code = code == exit_done ? failed : code;
  }
  return code;
}

std::string state_in(const value& experiment) { return shown(part(experiment, "state"), show_as::state, {}); }

bool ended(const std::string& state) {
  return state == "COMPLETED" || state == "CANCELED" || state == "ERROR";
}

} // namespace

int experiment_create(session& s, const arguments& given) {
  client::submission wanted{given.text("CONFIG"),   given.text("DIR"),   given.all("--config"),
                            !given.has("--paused"), given.text("--key"), given.text("--name")};
  auto cluster = s.server();
  if (cluster) // the cluster's defaults lie below; a cluster that cannot be asked says so at the submission
    if (auto live = client::live(**cluster))
      wanted.cluster = std::move(live->configuration);
  auto what = client::prepare(wanted, s.io.in);
  if (!what)
    return s.fail(what.error());
  s.io.err << what->warnings;
  if (!cluster)
    return s.fail(cluster.error());
  std::vector<std::string> warnings;
  auto id = (*cluster)->create(what->what, &warnings);
  if (!id)
    return s.fail(id.error());
  for (const auto& one : warnings)
    say_warning(s, one);
  auto options = s.output();
  if (options.quiet)
    s.io.out << to_string(*id) << std::endl;
  else if (options.format == output_format::table)
    s.io.out << "experiment " << to_string(*id) << std::endl;
  else if (int code = s.print(show_one({{"id", id->value}}, {{"ID", "id"}}, options)); code != exit_done)
    return code;
  if (!given.has("--follow"))
    return exit_done;
  return follow_to_exit(s, **cluster, *id);
}

int experiment_list(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  client::query with{{"sortBy", "SORT_BY_ID"}, {"orderBy", "ORDER_BY_ASC"}};
  if (auto state = given.text("--state"); !state.empty()) {
    std::transform(state.begin(), state.end(), state.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    with.emplace_back("states", "STATE_" + state);
  }
  auto rows = (*cluster)->list("/api/v1/experiments", "experiments", with);
  if (rows)
    rows = s.chosen(*std::move(rows), experiment_grid(s.io.now()));
  return rows ? s.print(show_rows(*rows, experiment_columns(), s.output())) : s.fail(rows.error());
}

int experiment_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  auto got = (*cluster)->get("/api/v1/experiments/" + to_string(*id));
  if (!got)
    return s.fail(got.error());
  auto outcome = (*cluster)->get("/troupe/v1/experiments/" + to_string(*id) + "/outcome");
  if (!outcome)
    return s.fail(outcome.error());
  auto experiment = part(got->body, "experiment");
  auto columns = experiment_columns();
  if (const auto& why = part(outcome->body, "why"); why.is_string() && why != "") {
    experiment["why"] = why;
    columns.push_back({"WHY", "why"});
  }
  columns.push_back({"SEARCHER", "searcherType"});
  columns.push_back({"HYPERPARAMETERS", "config.hyperparameters", show_as::plain});
  return s.print(show_one(experiment, columns, s.output()));
}

int experiment_pareto(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  auto got = (*cluster)->get("/troupe/v1/experiments/" + to_string(*id) + "/pareto");
  if (!got)
    return s.fail(got.error());
  return s.print(show_rows(part(got->body, "front"),
                           {{"TRIAL", "trialId"},
                            {"METRICS", "metrics", show_as::compact},
                            {"STEPS", "totalBatches", show_as::number},
                            {"HYPERPARAMETERS", "hparams", show_as::compact},
                            {"CHECKPOINT", "latestCheckpoint"}},
                           s.output()));
}

int experiment_pause(session& s, const arguments&) { return change(s, "pause", "pausing"); }
int experiment_activate(session& s, const arguments&) { return change(s, "activate", "activated"); }
int experiment_cancel(session& s, const arguments&) { return change(s, "cancel", "canceling"); }
int experiment_kill(session& s, const arguments&) { return change(s, "kill", "killing"); }

int experiment_follow(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  return id ? follow_to_exit(s, **cluster, *id) : s.fail(id.error());
}

int experiment_wait(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  using clock = std::chrono::steady_clock;
  auto until = given.has("--timeout") ? clock::now() + std::chrono::seconds(given.number("--timeout", 0))
                                      : clock::time_point::max();
  auto path = "/api/v1/experiments/" + to_string(*id);
  auto got = (*cluster)->get(path);
  if (!got)
    return s.fail(got.error());
  interrupt_watch watch;
  client::event_stream events(**cluster, *id, got->sequence.value_or(0));
  auto state = state_in(part(got->body, "experiment"));
  while (!ended(state)) {
    if (watch.seen()) {
      s.io.err << "interrupted; experiment " << to_string(*id)
               << " continues (to end it: troupe experiment cancel " << to_string(*id) << ")\n";
      return exit_interrupted;
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now());
    if (left.count() <= 0)
      return s.fail({errc::timeout, "experiment " + to_string(*id) + " is still " + state +
                                      "\nhint: it continues; troupe "
                                      "experiment wait " +
                                      to_string(*id)});
    auto step = events.poll(std::min<std::chrono::milliseconds>(left, std::chrono::milliseconds(500)));
    if (!step)
      return s.fail(step.error());
    using link = client::event_stream::step::link;
    if (step->change == link::lost)
      s.io.err << "lost the cluster (" << step->why << "); waiting for it\n";
    if (step->change == link::back)
      s.io.err << "the cluster is back\n";
    for (const auto& fact : step->events)
      if (part(fact, "type") == "experiment_changed")
        state = shown(part(fact, "state"), show_as::state, {});
  }
  s.io.out << "experiment " << to_string(*id) << " " << state << "\n";
  return exit_of_state(state);
}

} // namespace troupe::cli::verbs
