#include "runtime/cli/experiments.hpp"
#include "runtime/cli/interrupt.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/client/event_stream.hpp"
#include "runtime/client/whole_lines.hpp"

#include <list>
#include <ostream>
#include <set>

namespace troupe::cli::verbs {
namespace {

/// Prints log lines as they come. JSON is one list, or one object a line when following.
class log_printer {
public:
  log_printer(session& s, bool name_trials)
      : s_(s), options_(s.output()), name_trials_(name_trials), follow_(s.given.has("--follow")),
        rank_(s.given.number("--rank", -1)) {}

  void take(const value& line) {
    const auto& log = part(line, "result").is_object() ? part(line, "result") : line;
    if (rank_ >= 0 && number_in(part(log, "rankId")).value_or(0) != static_cast<double>(rank_))
      return;
    if (options_.format == output_format::json && follow_)
      s_.io.out << to_json(log) << "\n";
    else if (options_.format != output_format::table)
      rows_.push_back(log);
    else
      print(log);
  }

  void flush() { s_.io.out.flush(); }

  int finish() {
    if (options_.format == output_format::table || (options_.format == output_format::json && follow_))
      return exit_done;
    return s_.print(show_rows(rows_,
                              {{"ID", "id"},
                               {"TIMESTAMP", "timestamp"},
                               {"TRIAL", "trialId"},
                               {"RANK", "rankId"},
                               {"LEVEL", "level", show_as::state},
                               {"LOG", "log"}},
                              options_));
  }

private:
  void print(const value& log) {
    auto line = s_.given.has("--timestamps") || !part(log, "log").is_string()
                  ? shown(part(log, "message"), show_as::plain, {})
                  : log_text(log);
    if (!line.ends_with('\n'))
      line += '\n';
    if (name_trials_)
      s_.io.out << painted("[trial " + to_json(part(log, "trialId")) + "] ", paint::cyan, s_.io.screen);
    s_.io.out << line;
  }

  session& s_;
  output_options options_;
  bool name_trials_, follow_;
  std::int64_t rank_;
  value rows_ = value::array();
};

std::string log_path(trial_id id) { return "/api/v1/trials/" + to_string(id) + "/logs"; }

/// Which lines are wanted.
client::query wanted_lines(const session& s) {
  client::query out;
  if (s.given.has("--search"))
    out.emplace_back("searchText", s.given.text("--search"));
  if (s.given.has("--regex"))
    out.emplace_back("enableRegex", "true");
  return out;
}

std::optional<error> misses_search(const arguments& given) {
  if (!given.has("--regex") || given.has("--search"))
    return std::nullopt;
  return error{errc::invalid, "--regex says how the TEXT of --search is read, and --search is missing"};
}

/// Prints the last lines, oldest first.
result<void> print_tail(client::server& cluster, trial_id id, std::int64_t count, client::query with,
                        log_printer& printer) {
  std::vector<value> lines;
  with.emplace_back("limit", std::to_string(count));
  with.emplace_back("orderBy", "ORDER_BY_DESC");
  auto ok = cluster.lines(log_path(id), with, false,
                          [&](value line) { return lines.push_back(std::move(line)), true; });
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    printer.take(*line);
  return ok;
}

result<void> print_logs(session& s, client::server& cluster, trial_id id, log_printer& printer,
                        const interrupt_watch& watch) {
  bool follow = s.given.has("--follow");
  if (s.given.has("--tail") && !follow)
    return print_tail(cluster, id, s.given.number("--tail", 0), wanted_lines(s), printer);
  auto with = wanted_lines(s);
  if (follow)
    with.emplace_back("follow", "true");
  return cluster.lines(
    log_path(id), with, follow,
    [&](value line) {
      printer.take(line);
      if (follow)
        printer.flush();
      return true;
    },
    [&] { return watch.seen(); });
}

/// The log of one trial while it grows; reading does not wait.
struct live_log {
  trial_id id;
  std::unique_ptr<client::http_stream> stream;
  std::string bytes;

  /// False once the log has ended.
  bool read(log_printer& printer) {
    auto more = stream->read(bytes, std::chrono::milliseconds(0));
    if (stream->status() == 200)
      client::take_whole_lines(bytes, false, [&](std::string_view text) {
        if (auto line = parse_json(text))
          printer.take(*line);
        return true;
      });
    return more && *more;
  }
};

/// Opens the log of each trial when it first runs, and goes on until the experiment has ended.
int follow_experiment(session& s, client::server& cluster, experiment_id id, log_printer& printer) {
  auto got = cluster.get("/troupe/v1/experiments/" + to_string(id) + "/trials");
  if (!got)
    return s.fail(got.error());
  auto described = cluster.get("/api/v1/experiments/" + to_string(id));
  if (!described)
    return s.fail(described.error());
  auto state = shown(part(described->body, "experiment.state"), show_as::state, {});
  auto is_end = [](const std::string& x) { return x == "COMPLETED" || x == "CANCELED" || x == "ERROR"; };
  std::set<trial_id> known;
  std::list<live_log> open;
  auto with = wanted_lines(s);
  with.emplace_back("follow", "true");
  auto add = [&](trial_id trial) {
    if (!trial || !known.insert(trial).second)
      return;
    if (auto stream = cluster.open(log_path(trial), with, {}, std::chrono::hours(24 * 365)))
      open.push_back({trial, *std::move(stream), ""});
  };
  for (const auto& trial : part(got->body, "trials"))
    add(trial_id{trial.value("id", std::uint64_t{0})});
  interrupt_watch watch;
  client::event_stream events(cluster, id, got->sequence.value_or(0));
  while (!watch.seen() && (!is_end(state) || !open.empty())) {
    auto step = events.poll(std::chrono::milliseconds(100));
    if (!step)
      return s.fail(step.error());
    for (const auto& fact : step->events) {
      if (part(fact, "type") == "experiment_changed")
        state = shown(part(fact, "state"), show_as::state, {});
      auto entity = shown(part(fact, "entity"), show_as::plain, {});
      if (part(fact, "type") == "run_started" && entity.starts_with("trial/"))
        add(parse_id<trial_id>(entity.substr(6)));
    }
    open.remove_if([&](live_log& log) { return !log.read(printer); });
    printer.flush();
  }
  return watch.seen() ? static_cast<int>(exit_interrupted) : printer.finish();
}

} // namespace

int trial_logs(session& s, const arguments& given) {
  if (const auto odd = misses_search(given))
    return s.fail(*odd);
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_trial(given.text("TRIAL"));
  if (!id)
    return s.fail(id.error());
  log_printer printer(s, false);
  interrupt_watch watch;
  if (auto ok = print_logs(s, **cluster, *id, printer, watch); !ok)
    return s.fail(ok.error());
  return watch.seen() ? static_cast<int>(exit_interrupted) : printer.finish();
}

int experiment_logs(session& s, const arguments& given) {
  if (const auto odd = misses_search(given))
    return s.fail(*odd);
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  log_printer printer(s, true);
  if (given.has("--follow"))
    return follow_experiment(s, **cluster, *id, printer);
  auto rows = (*cluster)->list("/api/v1/experiments/" + to_string(*id) + "/trials", "trials");
  if (!rows)
    return s.fail(rows.error());
  interrupt_watch watch;
  for (const auto& trial : *rows) {
    if (watch.seen())
      return exit_interrupted;
    if (auto ok = print_logs(s, **cluster, trial_id{trial.value("id", std::uint64_t{0})}, printer, watch);
        !ok)
      return s.fail(ok.error());
  }
  return printer.finish();
}

} // namespace troupe::cli::verbs
