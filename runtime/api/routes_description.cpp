// Routes by which people describe experiments and put them in order (name, description, notes, labels,
// archive, project), for one experiment or many at once.

#include "actors/catalogue/places.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/experiment_choice.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/guard.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/resource_patch.hpp"
#include "runtime/api/route.hpp"

#include <algorithm>
#include <set>

namespace troupe::api {
namespace {

result<void> may_move(const call& c, const experiment_row& row) {
  return allowed(c, action::move, {thing::experiment, to_string(row.id), row.owner});
}

/// The answer with the experiment as it is after a change.
answer_shape experiment_after(const call_ptr& c, experiment_id id) {
  return [c, id](value) -> result<value> {
    auto row = c->parts->storage->experiment(id);
    if (!row)
      return row.error();
    auto places = place_book::read(*c->parts->storage);
    if (!places)
      return places.error();
    return value{{"experiment", experiment_shape(*row, *c->parts->users, *places)}};
  };
}

answer_shape labels_after(const call_ptr& c, experiment_id id) {
  return [c, id](value) -> result<value> {
    auto row = c->parts->storage->experiment(id);
    return row ? result<value>(value{{"labels", row->labels}}) : row.error();
  };
}

void patch(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::experiment_describe with;
  with.id = row->id;
  if (f.has("name"))
    with.name = f.text("name");
  if (f.has("description"))
    with.description = f.text("description");
  if (f.has("notes"))
    with.notes = f.text("notes");
  if (f.has("labels"))
    with.labels = f.texts("labels");
  f.number("id"); // the path names it; only the type is checked
  std::optional<commands::experiment_set> resources;
  if (const auto& given = f.object("resources"); !given.empty()) {
    auto read = resource_patch(row->id, given, false);
    if (!read)
      return back(failure(read.error()));
    resources = std::move(*read);
  }
  fields storage{f.object("checkpointStorage"), "checkpointStorage"};
  for (auto [key, to] : {std::pair{"saveExperimentBest", &with.save_experiment_best},
                         {"saveTrialBest", &with.save_trial_best},
                         {"saveTrialLatest", &with.save_trial_latest}})
    if (storage.has(key) && ((*to = storage.number(key)) < 0 || **to > 1'000'000'000))
      storage.fault(key, "has to be 0 to 1000000000");
  if (storage.bad())
    return back(failure(*storage.bad()));
  if (f.bad())
    return back(failure(*f.bad()));
  if (!resources)
    return command(c, back, std::move(with), experiment_after(c, row->id));
  if (auto fine = may_order(c->parts->cluster, c->by.who, *resources); !fine)
    return back(failure(fine.error()));
  if (terminal(row->state))
    return back(failure(
      {errc::not_found, "experiment '" + to_string(row->id) +
                          "' has ended: its priority, weight and number of slots are not found any more"}));
  if (!with.name && !with.description && !with.notes && !with.labels && !with.save_experiment_best &&
      !with.save_trial_best && !with.save_trial_latest)
    return command(c, back, std::move(*resources), experiment_after(c, row->id));
  // The change that policies and pools may refuse is made first, so that a refusal leaves everything as it
  // was.
  experiment_described now;
  now.name = row->name;
  now.labels = row->labels;
  if (auto fine = places::check(with, now); !fine)
    return back(failure(fine.error()));
  c->parts->cluster.order(
    c->by.who, std::move(*resources), [c, back, id = row->id, with = std::move(with)](result<value> done) {
      done ? command(c, back, with, experiment_after(c, id)) : back(failure(done.error()));
    });
}

handler label(bool put) {
  return [put](const call_ptr& c, const reply& back) {
    auto row = named_experiment(*c);
    if (!row)
      return back(failure(row.error()));
    commands::experiment_describe with;
    with.id = row->id;
    (put ? with.add_labels : with.remove_labels).emplace({std::string(c->named("label"))});
    command(c, back, std::move(with), labels_after(c, row->id));
  };
}

handler archive(bool archived) {
  return [archived](const call_ptr& c, const reply& back) {
    auto row = named_experiment(*c);
    if (!row)
      return back(failure(row.error()));
    commands::experiment_describe with;
    with.id = row->id;
    with.archived = archived;
    command(c, back, std::move(with));
  };
}

void move(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  if (auto fine = may_move(*c, *row); !fine)
    return back(failure(fine.error()));
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("destinationProjectId");
  const auto to = f.id<project_id>("destinationProjectId");
  f.number("experimentId"); // the path names it; only the type is checked
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, commands::experiment_move{row->id, to});
}

void go_on(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("id");
  commands::experiment_continue with{f.id<experiment_id>("id"), f.text("overrideConfig")};
  if (f.bad())
    return back(failure(*f.bad()));
  auto row = c->parts->storage->experiment(with.id);
  if (!row)
    return back(failure({errc::not_found, "experiment '" + to_string(with.id) + "' not found"}));
  if (auto fine = allowed(*c, action::change, {thing::experiment, to_string(row->id), row->owner}); !fine)
    return back(failure(fine.error()));
  command(
    c, back, std::move(with),
    [after = experiment_after(c, row->id)](value got) -> result<value> {
      auto out = after(std::move(got));
      if (out)
        (*out)["warnings"] = value::array();
      return out;
    },
    [](const error& why) {
      return why.code == errc::conflict ? failure(failed_precondition, why.what) : failure(why);
    });
}

result<value> labels_in_use(const call& c) {
  auto all = c.parts->texts->all(*c.parts->storage);
  if (!all)
    return all.error();
  const auto project = parse_id<project_id>(c.query.first("projectId"));
  auto places = place_book::read(*c.parts->storage);
  if (!places)
    return places.error();
  if (auto fine = places->check(project); !fine)
    return fine.error();
  std::map<std::string, std::size_t> used;
  for (const auto& one : *all)
    if (!project || one.now.project == project)
      for (const auto& text : one.lasting->labels)
        ++used[text.get<std::string>()];
  std::vector<std::pair<std::string, std::size_t>> sorted(used.begin(), used.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  value out = value::array();
  for (auto& [text, times] : sorted)
    out.push_back(text);
  return value{{"labels", std::move(out)}};
}

// ---- many at once

constexpr std::size_t most_at_once = 10'000;

/// The texts in the list under `key`.
std::vector<std::string> words_under(fields& f, const char* key) {
  std::vector<std::string> out;
  for (const auto& one : f.list(key))
    if (one.is_string())
      out.push_back(one);
    else
      f.fault(key, "has to be a list of texts");
  return out;
}

} // namespace

result<std::vector<experiment_id>> chosen_experiments(const call& c, fields& f, project_id in,
                                                      const std::string& usual_state) {
  std::vector<experiment_id> ids;
  std::set<experiment_id> known;
  for (const auto id : f.ids<experiment_id>("experimentIds"))
    if (known.insert(id).second)
      ids.push_back(id);
  const bool filtered = f.has("filters");
  fields by{f.object("filters"), "filters"};
  if (!filtered) {
    if (ids.size() > most_at_once)
      return error{errc::invalid, "experimentIds: at most " + std::to_string(most_at_once) + " at once"};
    if (f.bad())
      return *f.bad();
    return ids;
  }
  auto all = c.parts->texts->all(*c.parts->storage);
  if (!all)
    return all.error();
  const auto name = by.text("name"), description = by.text("description");
  const auto project = by.number("projectId");
  const auto labels = words_under(by, "labels");
  auto states = words_under(by, "states");
  const auto users = by.ids<user_id>("userIds");
  const auto without = by.ids<experiment_id>("excludedExperimentIds");
  const auto is_in = [](const auto& list, const auto& x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  for (const auto& state : states)
    if (!is_state_of_experiments(state))
      by.fault("states", "there is no state '" + state.substr(0, 50) + "'");
  (void)by.flag("archived");
  if (by.bad())
    return *by.bad();
  if (states.empty() && !usual_state.empty())
    states.push_back(usual_state);
  ids.clear();
  for (const auto& one : *all) {
    const auto& face = *one.lasting;
    bool fits = contains_folded(face.name, name) && (!in || one.now.project == in) &&
                (project <= 0 || one.now.project.value == std::uint64_t(project)) &&
                !is_in(without, one.now.id) &&
                (states.empty() || is_in(states, std::string(state_name(one.now.state)))) &&
                (users.empty() || is_in(users, user_id{number_of(face.owner, *c.parts->users)})) &&
                (!by.has("archived") || by.flag("archived") == one.now.archived);
    for (const auto& label : labels)
      fits = fits && std::find(face.labels.begin(), face.labels.end(), value(label)) != face.labels.end();
    if (fits && !description.empty()) {
      auto row = c.parts->storage->experiment(one.now.id);
      fits = row && contains_folded(row->description, description);
    }
    if (fits)
      ids.push_back(one.now.id);
  }
  return ids;
}

namespace {

/// Collects the outcomes of orders, one for each experiment.
struct bulk {
  std::size_t left = 0;
  std::map<experiment_id, std::string> errors;
  std::mutex mutex;
};

/// No state keeps an experiment from getting an order: the cluster looks at it alone.
result<void> of_any_state(const experiment_row&) { return {}; }

/// Gives one order for each experiment, all together. `make` returns the order, or the refusal of a caller
/// who may not give it; `fits` fails where the experiment's state keeps it from getting the order, and is
/// asked only for who may give it. `usual_state` as chosen_experiments takes it.
template <class Make, class Fits>
void on_each(const call_ptr& c, const reply& back, const Make& make, const Fits& fits,
             const std::string& usual_state = "") {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.number("projectId");
  const auto in = parse_id<project_id>(c->named("projectId")); // no id: of all projects
  if (!in && c->named("projectId") != "-1")
    f.fault("projectId", "of the path has to be a project's number, or -1 for all");
  auto ids = chosen_experiments(*c, f, in, usual_state);
  if (!ids)
    return back(failure(ids.error()));
  if (f.bad())
    return back(failure(*f.bad()));
  auto work = std::make_shared<bulk>();
  work->left = ids->size() + 1;
  const auto done = [work, back, pretty = c->query.has("pretty")](experiment_id id, const std::string& why) {
    std::lock_guard lock(work->mutex);
    if (id)
      work->errors[id] = why;
    if (--work->left)
      return;
    value results = value::array();
    for (const auto& [one, text] : work->errors)
      results.push_back({{"id", one.value}, {"error", text}});
    back(json({{"results", std::move(results)}}, pretty));
  };
  std::vector<grouped_order> orders;
  for (const auto id : *ids) {
    auto row = c->parts->storage->experiment(id);
    auto order = row ? make(*row) : decltype(make(*row))(error{errc::not_found, ""});
    if (!row || (in && row->project != in))
      done(id, "experiment '" + to_string(id) + "' not found");
    else if (!order)
      done(id, order.error().what);
    else if (auto fine = may_order(c->parts->cluster, c->by.who, *order); !fine)
      done(id, fine.error().what);
    else if (fine = fits(*row); !fine)
      done(id, fine.error().what);
    else
      orders.push_back(grouped(std::move(*order), [done, id](result<value> got) {
        done(id, got ? std::string() : got.error().what);
      }));
  }
  c->parts->cluster.call_together(c->by.who, std::move(orders));
  done({}, "");
}

template <class Order>
handler bulk_of() {
  return [](const call_ptr& c, const reply& back) {
    on_each(
      c, back, [](const experiment_row& row) -> result<Order> { return Order{row.id}; },
      [](const experiment_row& row) -> result<void> {
        if (row.archived)
          return error{errc::not_found, "experiment '" + to_string(row.id) + "' not found"};
        // An experiment that has ended may be killed again, as on the route of one experiment.
        if (terminal(row.state) && !std::is_same_v<Order, commands::experiment_kill>)
          return error{errc::conflict, "experiment in terminal state"};
        return {};
      },
      std::is_same_v<Order, commands::experiment_activate> ? "STATE_PAUSED" : "");
  };
}

handler bulk_archive(bool archived) {
  return [archived](const call_ptr& c, const reply& back) {
    on_each(
      c, back,
      [archived](const experiment_row& row) -> result<commands::experiment_describe> {
        commands::experiment_describe with;
        with.id = row.id;
        with.archived = archived;
        return with;
      },
      [archived](const experiment_row& row) -> result<void> {
        if (row.archived == archived)
          return error{errc::conflict,
                       archived ? "Experiment is already archived." : "Experiment is not archived."};
        return {};
      });
  };
}

void bulk_move(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("destinationProjectId");
  const auto to = f.id<project_id>("destinationProjectId");
  if (f.bad())
    return back(failure(*f.bad()));
  on_each(
    c, back,
    [&](const experiment_row& row) -> result<commands::experiment_move> {
      if (auto fine = may_move(*c, row); !fine)
        return fine.error();
      return commands::experiment_move{row.id, to};
    },
    of_any_state);
}

void bulk_delete(const call_ptr& c, const reply& back) {
  on_each(
    c, back,
    [&](const experiment_row& row) -> result<commands::experiment_delete> {
      if (auto fine = allowed(*c, action::remove, {thing::experiment, to_string(row.id), row.owner}); !fine)
        return fine.error();
      return commands::experiment_delete{row.id};
    },
    of_any_state);
}

void bulk_retain(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("numDays");
  const auto days = f.number("numDays");
  if (days < -1 || days > 32767)
    f.fault("numDays", "has to be -1 (for ever) to 32767");
  if (f.bad())
    return back(failure(*f.bad()));
  on_each(
    c, back,
    [&](const experiment_row& row) -> result<commands::log_retain> {
      return commands::log_retain{row.id, {}, days};
    },
    of_any_state);
}

} // namespace

std::vector<route> description_routes() {
  const authority::need view{action::view, thing::experiment}, to_move{action::move, thing::experiment},
    change{action::change, thing::experiment};
  const auto bulk = [&](const char* verb, handler run, authority::need right, const char* type,
                        const char* answers, const char* doc) {
    return route{"POST", std::string("/api/v1/projects/{projectId}/experiments/") + verb,
                 right,  std::move(run),
                 type,   answers,
                 doc};
  };
  return {
    {"PATCH", "/api/v1/experiments/{experimentId}", change, patch, "v1PatchExperiment",
     "v1PatchExperimentResponse",
     "Changes name, description, notes, labels, resources and which checkpoints are kept."},
    {"GET", "/api/v1/experiment/labels", view, answer_with(labels_in_use), "",
     "v1GetExperimentLabelsResponse", "Labels of experiments, the most used first."},
    {"PUT", "/api/v1/experiments/{experimentId}/labels/{label}", change, label(true), "",
     "v1PutExperimentLabelResponse", "Adds a label."},
    {"DELETE", "/api/v1/experiments/{experimentId}/labels/{label}", change, label(false), "",
     "v1DeleteExperimentLabelResponse", "Takes a label away."},
    {"POST", "/api/v1/experiments/{experimentId}/archive", change, archive(true), "", "Empty",
     "Archives an experiment that has ended."},
    {"POST", "/api/v1/experiments/{experimentId}/unarchive", change, archive(false), "", "Empty",
     "Opens an archived experiment again."},
    asks_again(
      {"POST", "/api/v1/experiments/continue", change, go_on, "v1ContinueExperimentRequest",
       "v1ContinueExperimentResponse",
       "Continues an experiment that has ended: what did not complete, then what its search has left."}),
    asks_again({"POST", "/api/v1/experiments/{experimentId}/move", to_move, move, "v1MoveExperimentRequest",
                "Empty", "Moves an experiment to another project."}),
    bulk("archive", bulk_archive(true), change, "v1BulkAction", "v1ArchiveExperimentsResponse",
         "Archives many experiments."),
    bulk("unarchive", bulk_archive(false), change, "v1BulkAction", "v1UnarchiveExperimentsResponse",
         "Opens many archived experiments again."),
    asks_again(bulk("move", bulk_move, to_move, "v1MoveExperimentsRequest", "v1MoveExperimentsResponse",
                    "Moves many experiments.")),
    bulk("pause", bulk_of<commands::experiment_pause>(), change, "v1BulkAction", "v1PauseExperimentsResponse",
         "Pauses many experiments."),
    bulk("activate", bulk_of<commands::experiment_activate>(), change, "v1BulkAction",
         "v1ActivateExperimentsResponse", "Goes on with many experiments."),
    bulk("cancel", bulk_of<commands::experiment_cancel>(), change, "v1BulkAction",
         "v1CancelExperimentsResponse", "Cancels many experiments."),
    bulk("kill", bulk_of<commands::experiment_kill>(), {action::kill, thing::experiment}, "v1BulkAction",
         "v1KillExperimentsResponse", "Kills many experiments."),
    asks_again({"DELETE",
                "/api/v1/projects/{projectId}/experiments/delete",
                {action::remove, thing::experiment},
                bulk_delete,
                "v1BulkAction",
                "v1DeleteExperimentsResponse",
                "Deletes many ended experiments, behind the answer."}),
    {"PUT", "/api/v1/projects/{projectId}/experiments/retain_logs", change, bulk_retain,
     "v1PutExperimentsRetainLogsRequest", "v1PutExperimentsRetainLogsResponse",
     "Says how many days the logs of many experiments are kept."},
  };
}

} // namespace troupe::api
