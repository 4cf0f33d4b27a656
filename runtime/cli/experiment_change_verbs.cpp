// What `troupe experiment` changes of an experiment: its description, its place, its share of a pool, and its
// end.

#include "runtime/cli/experiments.hpp"
#include "runtime/cli/follow.hpp"
#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/things.hpp"
#include "runtime/client/submission.hpp"

#include <charconv>
#include <ostream>

namespace troupe::cli::verbs {
namespace {

std::string path_of(experiment_id id) { return "/api/v1/experiments/" + to_string(id); }

/// The experiment after an order; where it is gone, as it was before.
value now_or(client::server& cluster, experiment_id id, value before) {
  auto now = thing_at(cluster, path_of(id), "experiment");
  return now ? std::move(*now) : std::move(before);
}

/// Calls `act` for each experiment that is named. All are tried; the first failure gives the exit code.
template <class Act>
int on_experiments(session& s, const char* done, const Act& act) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  int code = exit_done;
  value rows = value::array();
  const bool wanted = wants_thing(s.given);
  const auto fails = [&](const error& why) {
    const int failed = s.fail(why);
    code = code == exit_done ? failed : code;
  };
  for (const auto& word : s.given.all("EXPERIMENT")) {
    auto id = named_experiment(**cluster, word);
    if (!id) {
      fails(id.error());
      continue;
    }
    auto before = wanted ? thing_at(**cluster, path_of(*id), "experiment") : result<value>(value());
    auto answer = before ? act(**cluster, path_of(*id)) : before;
    if (!answer)
      fails(answer.error());
    else if (wanted)
      rows.push_back(now_or(**cluster, *id, std::move(*before)));
    else
      s.io.out << done << " experiment " << to_string(*id) << "\n";
  }
  if (!wanted)
    return code;
  const int printed = s.print(show_rows(rows, experiment_columns(), s.output()));
  return code == exit_done ? printed : code;
}

/// A number from 0 on; none where `text` is anything else.
template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  return bad == std::errc{} && end == text.data() + text.size() && number >= 0 ? std::optional(number)
                                                                               : std::nullopt;
}

/// The options about a pool as the body of the request. Fails with errc::invalid and names the option.
result<value> wanted_resources(const arguments& given) {
  value body = value::object();
  if (given.has("--priority")) {
    const auto text = given.text("--priority");
    const auto priority = number_of<std::int64_t>(text);
    if (!priority || *priority < 1 || *priority > 99)
      return error{errc::invalid, "--priority '" + text +
                                    "': expected a whole number from 1 to 99; a smaller one comes first"};
    body["priority"] = *priority;
  }
  if (given.has("--weight")) {
    const auto text = given.text("--weight");
    const auto weight = number_of<double>(text);
    if (!weight || !(*weight <= 1e9))
      return error{errc::invalid, "--weight '" + text + "': expected a number from 0 on"};
    body["weight"] = *weight;
  }
  if (given.has("--max-slots")) {
    const auto text = given.text("--max-slots");
    const auto most = number_of<std::int64_t>(text);
    if (!most && text != "none")
      return error{errc::invalid, "--max-slots '" + text + "': expected a number from 0 on, or none"};
    body["maxSlots"] = most ? value(*most) : value();
  }
  if (given.has("--pool"))
    body["pool"] = given.text("--pool");
  return body;
}

/// The options about an experiment's description and its kept checkpoints as the body of the request.
value wanted_words(const arguments& given) {
  value body = value::object();
  for (const auto& [option, key] :
       {std::pair{"--name", "name"}, {"--description", "description"}, {"--notes", "notes"}})
    if (given.has(option))
      body[key] = given.text(option);
  for (const auto& [option, key] : {std::pair{"--save-experiment-best", "saveExperimentBest"},
                                    {"--save-trial-best", "saveTrialBest"},
                                    {"--save-trial-latest", "saveTrialLatest"}})
    if (given.has(option))
      body["checkpointStorage"][key] = given.number(option, 0);
  return body;
}

} // namespace

int experiment_archive(session& s, const arguments&) {
  return on_experiments(s, "archived", [](client::server& cluster, const std::string& path) {
    return cluster.post(path + "/archive");
  });
}

int experiment_unarchive(session& s, const arguments&) {
  return on_experiments(s, "unarchived", [](client::server& cluster, const std::string& path) {
    return cluster.post(path + "/unarchive");
  });
}

int experiment_delete(session& s, const arguments& given) {
  if (!given.has("--yes"))
    return s.fail(
      {errc::invalid, "deletes checkpoints, reports and logs, which cannot be taken back\nhint: give --yes"});
  return on_experiments(s, "deleting", [](client::server& cluster, const std::string& path) {
    return cluster.change("DELETE", path);
  });
}

int experiment_move(session& s, const arguments& given) {
  if (!given.has("--project"))
    return s.fail({errc::invalid, "it is not said where they go\nhint: --project WORKSPACE/NAME, or its "
                                  "number; troupe project list"});
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto to = project_named(**cluster, given.text("--project"));
  if (!to)
    return s.fail(to.error());
  const auto project = part(*to, "id");
  return on_experiments(s, "moved", [&](client::server& c, const std::string& path) {
    return c.post(path + "/move", {{"destinationProjectId", project}});
  });
}

int experiment_continue(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  std::string text;
  if (given.has("--config-file")) {
    auto read = client::read_config(given.text("--config-file"), s.io.in);
    if (!read)
      return s.fail(read.error());
    text = std::move(*read);
  }
  if (const auto pairs = given.all("--config"); !pairs.empty()) {
    auto both = client::with_overrides(text.empty() ? "{}" : text, "the configuration", pairs);
    if (!both)
      return s.fail(both.error());
    text = std::move(*both);
  }
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  auto done = (*cluster)->post("/api/v1/experiments/continue", {{"id", id->value}, {"overrideConfig", text}});
  if (!done)
    return s.fail(done.error());
  const int code = print_deed(s, deed{"continued experiment " + to_string(*id), part(*done, "experiment")},
                              experiment_columns());
  s.io.out.flush();
  return code == exit_done && given.has("--follow") ? follow_to_exit(s, **cluster, *id) : code;
}

int experiment_label(session& s, const arguments& given) {
  return act_on(s, {{"ID", "id"}, {"NAME", "name"}, {"LABELS", "labels"}},
                [&](client::server& cluster) -> result<deed> {
                  auto id = named_experiment(cluster, given.text("EXPERIMENT"));
                  if (!id)
                    return id.error();
                  auto now = thing_at(cluster, path_of(*id), "experiment");
                  if (!now)
                    return now.error();
                  if (given.has("--add") || given.has("--remove")) {
                    const auto labels = changed_labels(part(*now, "labels"), given, "--add", "--remove");
                    auto done = cluster.change("PATCH", path_of(*id), {{"labels", labels}});
                    if (!done)
                      return done.error();
                    now = part(*done, "experiment");
                  }
                  std::string lines;
                  for (const auto& one : part(*now, "labels"))
                    lines += (lines.empty() ? "" : "\n") + one.get<std::string>();
                  return deed{lines, std::move(*now)};
                });
}

int experiment_set(session& s, const arguments& given) {
  auto resources = wanted_resources(given);
  if (!resources)
    return s.fail(resources.error());
  const auto words = wanted_words(given);
  if (resources->empty() && words.empty())
    return s.fail({errc::invalid,
                   "nothing is set\nhint: --priority N, --weight X, --max-slots N or none, --pool NAME, "
                   "--name NAME, --description TEXT, --notes TEXT, --save-experiment-best N, "
                   "--save-trial-best N, --save-trial-latest N"});
  return act_on(s, experiment_columns(), [&](client::server& cluster) -> result<deed> {
    auto id = named_experiment(cluster, given.text("EXPERIMENT"));
    if (!id)
      return id.error();
    // What only a live experiment accepts comes first: where it is refused, nothing has changed.
    if (!resources->empty())
      if (auto done = cluster.post("/troupe/v1/experiments/" + to_string(*id) + "/resources", *resources);
          !done)
        return done.error();
    if (!words.empty())
      if (auto done = cluster.change("PATCH", path_of(*id), words); !done)
        return done.error();
    deed did{"changed experiment " + to_string(*id), {}};
    if (wants_thing(given)) {
      auto now = thing_at(cluster, path_of(*id), "experiment");
      if (!now)
        return now.error();
      did.thing = std::move(*now);
    }
    return did;
  });
}

} // namespace troupe::cli::verbs
