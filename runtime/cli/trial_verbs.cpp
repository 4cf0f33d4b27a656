#include "runtime/cli/curve.hpp"
#include "runtime/cli/experiments.hpp"
#include "runtime/cli/verbs.hpp"

#include <algorithm>
#include <map>
#include <ostream>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> trial_columns = {
  {"ID", "id"},
  {"STATE", "state", show_as::state},
  {"STEPS", "totalBatchesProcessed", show_as::number},
  {"RESTARTS", "restarts", show_as::number},
  {"BEST", "bestValidation.metrics.avgMetrics", show_as::compact},
  {"LATEST", "latestValidation.metrics.avgMetrics", show_as::compact},
  {"HYPERPARAMETERS", "hparams", show_as::compact},
  {"STARTED", "startTime", show_as::age},
  {"ENDED", "endTime", show_as::age},
  {"REASON", "why"}};

struct metric_choice {
  std::string name;
  bool smaller_is_better = true;
};

/// The searcher's metric of the trial's experiment.
metric_choice searcher_metric(client::server& cluster, trial_id id) {
  auto trial = cluster.get("/api/v1/trials/" + to_string(id));
  if (!trial)
    return {};
  auto experiment = cluster.get("/api/v1/experiments/" + to_json(part(trial->body, "trial.experimentId")));
  if (!experiment)
    return {};
  const auto& searcher = part(experiment->body, "experiment.config.searcher");
  metric_choice choice;
  if (searcher.is_object()) {
    const auto& name = part(searcher, "metric");
    choice.name = name.is_string() ? name.get<std::string>() : "";
    choice.smaller_is_better = part(searcher, "smaller_is_better") != value(false);
  }
  return choice;
}

/// Finds a metric, which may be reported directly or within the groups of Determined's reports.
std::optional<double> metric_in(const value& metrics, const std::string& name) {
  for (const char* below : {"", "avgMetrics", "avg_metrics", "validation_metrics"}) {
    const auto& map = *below ? part(metrics, below) : metrics;
    if (map.is_object())
      if (auto at = map.find(name); at != map.end())
        return number_in(*at);
  }
  return std::nullopt;
}

/// An element of a list with commas, as the server reads it.
std::string element(const std::string& name) {
  std::string out;
  for (char c : name)
    out += c == '%' ? "%25" : c == ',' ? "%2C" : std::string(1, c);
  return out;
}

/// The trials of an experiment as the page's grid has them; --where and --sort choose among them.
result<value> chosen_trials(session& s, client::server& cluster, experiment_id id) {
  const auto path = "/troupe/v1/experiments/" + to_string(id);
  const auto keys = keys_named(s.given.text("--where"), s.given.text("--sort"));
  std::vector<std::string> metrics;
  if (std::any_of(keys.begin(), keys.end(), [](const auto& key) { return key.starts_with("m."); })) {
    auto got = cluster.get(path + "/metrics");
    if (!got)
      return got.error();
    for (const auto& one : part(got->body, "metrics"))
      if (part(one, "kind") == "number")
        metrics.push_back(part(one, "group").get<std::string>() + "." + part(one, "name").get<std::string>());
  }
  std::string asked;
  for (const auto& one : metrics_named(keys, metrics))
    asked += (asked.empty() ? "" : ",") + element(one);
  client::query with;
  if (!asked.empty())
    with.emplace_back("metrics", asked);
  if (s.given.has("--at"))
    with.emplace_back("at", std::to_string(s.given.number("--at", 0)));
  auto got = cluster.get(path + "/trials", with);
  if (!got)
    return got.error();
  auto rows = part(got->body, "trials");
  const auto columns = trial_grid(rows, metrics, s.io.now());
  return s.chosen(std::move(rows), columns);
}

/// For a moment of the past the page's rows are all that exists.
const std::vector<column> past_columns = {{"ID", "id"},
                                          {"STATE", "state", show_as::state},
                                          {"STEPS", "totalBatches", show_as::number},
                                          {"RESTARTS", "restarts", show_as::number},
                                          {"BEST", "best.metric", show_as::number},
                                          {"LATEST", "latest.metric", show_as::number},
                                          {"HYPERPARAMETERS", "hparams", show_as::compact},
                                          {"STARTED", "startTime", show_as::age},
                                          {"ENDED", "endTime", show_as::age},
                                          {"REASON", "stop.why"}};

} // namespace

int trial_list(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  if (given.has("--at")) {
    auto rows = chosen_trials(s, **cluster, *id);
    return rows ? s.print(show_rows(*rows, past_columns, s.output())) : s.fail(rows.error());
  }
  auto rows = (*cluster)->list("/api/v1/experiments/" + to_string(*id) + "/trials", "trials");
  if (!rows)
    return s.fail(rows.error());
  if (given.has("--where") || given.has("--sort")) {
    auto chosen = chosen_trials(s, **cluster, *id);
    if (!chosen)
      return s.fail(chosen.error());
    std::map<value, value> by_id;
    for (auto& row : *rows)
      by_id.emplace(part(row, "id"), std::move(row));
    *rows = value::array();
    for (const auto& one : *chosen)
      if (auto found = by_id.find(part(one, "id")); found != by_id.end()) // a trial may have just begun
        rows->push_back(std::move(found->second));
  }
  return s.print(show_rows(*rows, trial_columns, s.output()));
}

int trial_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_trial(given.text("TRIAL"));
  if (!id)
    return s.fail(id.error());
  auto got = (*cluster)->get("/api/v1/trials/" + to_string(*id));
  if (!got)
    return s.fail(got.error());
  auto thing = part(got->body, "trial");
  auto columns = trial_columns;
  columns.insert(columns.begin() + 1, {"EXPERIMENT", "experimentId"});
  columns.push_back({"PREEMPTIONS", "preemptions", show_as::number});
  columns.push_back({"PREEMPTED SLOT-SECONDS", "preemptedSlotSeconds", show_as::number});
  columns.push_back({"CHECKPOINTS", "checkpointCount", show_as::number});
  columns.push_back({"CHECKPOINT", "bestCheckpoint.uuid"});
  auto options = s.output();
  if (auto code = s.print(show_one(thing, columns, options)); code != exit_done)
    return code;
  if (options.format == output_format::table && !options.quiet && options.columns.empty())
    s.io.out << "\ncurve:       troupe trial metrics " << to_string(*id)
             << "\ncheckpoints: troupe checkpoint list --trial " << to_string(*id) << "\n";
  return exit_done;
}

int trial_metrics(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_trial(given.text("TRIAL"));
  if (!id)
    return s.fail(id.error());
  client::query with;
  if (given.has("--group"))
    with.emplace_back("group", given.text("--group"));
  const auto path = "/troupe/v1/trials/" + to_string(*id) + "/metrics";
  auto options = s.output();
  if (options.format == output_format::json && options.columns.empty() && !given.has("--where") &&
      !given.has("--sort")) { // in the order of the stream: the rows may not fit in memory
    auto ok = (*cluster)->download(path, with, [&](std::string_view part) { return bool(s.io.out << part); });
    if (!ok)
      return s.fail(ok.error());
    s.io.out << "\n";
    return exit_done;
  }
  auto got = (*cluster)->get(path, with);
  if (!got)
    return s.fail(got.error());
  const auto& rows = got->body;
  auto chosen = s.chosen(rows, report_grid(rows));
  if (!chosen)
    return s.fail(chosen.error());
  if (auto code = s.print(show_rows(*chosen,
                                    {{"ROW", "row"},
                                     {"GROUP", "group"},
                                     {"STEPS", "totalBatches", show_as::number},
                                     {"RUN", "trialRunId"},
                                     {"ARCHIVED", "archived"},
                                     {"METRICS", "metrics", show_as::compact}},
                                    options));
      code != exit_done)
    return code;
  if (options.format != output_format::table || options.quiet || !options.columns.empty())
    return exit_done;
  auto choice =
    given.has("--metric") ? metric_choice{given.text("--metric"), true} : searcher_metric(**cluster, *id);
  const std::vector<std::string> shown = given.has("--group")
                                           ? std::vector{given.text("--group")}
                                           : std::vector<std::string>{"validation", "training"};
  for (const auto& group : shown) {
    std::map<double, double> by_step; // the last report of a step counts
    for (const auto& row : rows)
      if (part(row, "group") == group && part(row, "archived") != value(true))
        if (auto y = metric_in(part(row, "metrics"), choice.name))
          by_step[number_in(part(row, "totalBatches")).value_or(0)] = *y;
    if (by_step.size() < 2)
      continue;
    s.io.out << "\n"
             << group << " " << choice.name << "\n"
             << draw_curve({by_step.begin(), by_step.end()}, s.io.screen);
    break;
  }
  return exit_done;
}

int trial_kill(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  int code = exit_done;
  for (const auto& word : given.all("TRIAL")) {
    auto id = named_trial(word);
    auto answer =
      id ? (*cluster)->post("/api/v1/trials/" + to_string(*id) + "/kill") : result<value>(id.error());
    if (answer) {
      s.io.out << "killing trial " << to_string(*id) << "\n";
      continue;
    }
    int failed = s.fail(answer.error());
    code = code == exit_done ? failed : code;
  }
  return code;
}

} // namespace troupe::cli::verbs
