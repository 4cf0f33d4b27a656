// Routes that find experiments and runs by filter and sort, and the columns and ranges that these have. A run
// is a trial together with its experiment's project, in which it has a name.

#include "model/names.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/run_search.hpp"
#include "runtime/api/search_filter.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace troupe::api {
namespace {

struct fixed_column {
  const char *name, *title, *type;
};

const std::vector<fixed_column> experiment_columns = {
  {"id", "ID", "NUMBER"},
  {"name", "Name", "TEXT"},
  {"description", "Description", "TEXT"},
  {"tags", "Tags", "TEXT"},
  {"forkedFrom", "Forked", "NUMBER"},
  {"startTime", "Start time", "DATE"},
  {"endTime", "End time", "DATE"},
  {"duration", "Duration", "NUMBER"},
  {"numTrials", "Trials", "NUMBER"},
  {"state", "State", "TEXT"},
  {"searcherType", "Searcher", "TEXT"},
  {"searcherMetric", "Searcher metric", "TEXT"},
  {"searcherMetricsVal", "Searcher metric value", "NUMBER"},
  {"resourcePool", "Resource pool", "TEXT"},
  {"projectId", "Project", "NUMBER"},
  {"progress", "Progress", "NUMBER"},
  {"user", "User", "TEXT"},
  {"checkpointCount", "Checkpoints", "NUMBER"},
  {"checkpointSize", "Checkpoint size", "NUMBER"},
  {"externalExperimentId", "External experiment ID", "TEXT"},
  {"externalTrialId", "External trial ID", "TEXT"},
};

const std::vector<fixed_column> run_columns = {
  {"id", "Global run ID", "NUMBER"},
  {"localId", "Run ID", "TEXT"},
  {"experimentDescription", "Search description", "TEXT"},
  {"tags", "Tags", "TEXT"},
  {"forkedFrom", "Forked", "NUMBER"},
  {"startTime", "Start time", "DATE"},
  {"endTime", "End time", "DATE"},
  {"duration", "Duration", "NUMBER"},
  {"state", "State", "TEXT"},
  {"searcherType", "Searcher", "TEXT"},
  {"searcherMetric", "Searcher metric", "TEXT"},
  {"searcherMetricsVal", "Searcher metric value", "NUMBER"},
  {"resourcePool", "Resource pool", "TEXT"},
  {"projectId", "Project", "NUMBER"},
  {"experimentProgress", "Search progress", "NUMBER"},
  {"user", "User", "TEXT"},
  {"checkpointCount", "Checkpoints", "NUMBER"},
  {"checkpointSize", "Checkpoint size", "NUMBER"},
  {"externalExperimentId", "External experiment ID", "TEXT"},
  {"externalRunId", "External run ID", "TEXT"},
  {"experimentId", "Search ID", "NUMBER"},
  {"experimentName", "Search name", "TEXT"},
  {"isExpMultitrial", "Part of a search", "TEXT"},
  {"parentArchived", "Parent archived", "TEXT"},
};

std::vector<known_column> known_of(const std::vector<fixed_column>& columns) {
  std::vector<known_column> out;
  for (const auto& one : columns) {
    const std::string_view type = one.type;
    const std::string_view name = one.name;
    const bool flag = name == "isExpMultitrial" || name == "parentArchived" || name == "archived";
    out.push_back({one.name, flag               ? column_kind::flag
                             : type == "NUMBER" ? column_kind::number
                             : type == "DATE"   ? column_kind::date
                                                : column_kind::text});
  }
  return out;
}

/// A reference to a section of a configuration; to null where the section is missing.
const value& config_section(const value& config, const char* name) {
  static const value none;
  const auto at = config.is_object() ? config.find(name) : config.end();
  return config.is_object() && at != config.end() ? *at : none;
}

value config_at(const value& config, const char* outer, const char* inner) {
  return config_section(config_section(config, outer), inner);
}

/// The value at a path with dots, where keys may contain dots, too; null where nothing is there.
value at_path(const value& x, std::string_view path) {
  if (!x.is_object())
    return nullptr;
  for (auto end = path.size();; end = path.rfind('.', end - 1)) { // tries the longest key first
    if (end == path.npos)
      return nullptr;
    const auto found = x.find(std::string(path.substr(0, end)));
    if (found != x.end()) {
      if (end == path.size())
        return *found;
      if (auto inside = at_path(*found, path.substr(end + 1)); !inside.is_null())
        return inside;
    }
    if (end == 0)
      return nullptr;
  }
}

/// The value GROUP.NAME.(min|max|mean|last) of the trial's summary. The name may contain dots. A text has
/// only `last`.
result<value> metric_at(const call& c, const trial_row& trial, const std::string& name) {
  const auto first = name.find('.'), last = name.rfind('.');
  if (first == name.npos || first == last)
    return value(nullptr);
  auto known = c.parts->columns->summaries(trial, *c.parts->storage);
  if (!known)
    return known.error();
  const auto group = (*known)->find(name.substr(0, first));
  if (group == (*known)->end())
    return value(nullptr);
  const auto metric = group->second.find(name.substr(first + 1, last - first - 1));
  if (metric == group->second.end())
    return value(nullptr);
  const auto how = name.substr(last + 1);
  if (metric->second.kind == metric_kind::text && how == "last")
    return value(metric->second.text);
  if (metric->second.kind != metric_kind::number)
    return value(nullptr);
  const double number = how == "min"    ? metric->second.min
                        : how == "max"  ? metric->second.max
                        : how == "mean" ? metric->second.mean()
                                        : metric->second.last;
  return std::isfinite(number) ? value(number) : value();
}

/// The present name of a run; empty where its project does not exist any more.
std::string local_id(const trial_row& trial, const experiment_row& of, const place_book& places) {
  const auto* project = places.find(of.project);
  return project && trial.number ? to_string(local_name{project->key, trial.number}) : std::string();
}

/// The run that has or had this name, with its experiment.
result<std::pair<trial_row, experiment_row>> run_named(const call& c, const std::string& text) {
  const auto name = parse_local_name(text);
  auto id = name ? c.parts->storage->trial_with_name(*name)
                 : result<trial_id>(error{errc::not_found, "there is no run " + text.substr(0, 50)});
  auto trial = id ? c.parts->storage->trial(*id) : result<trial_row>(id.error());
  auto of = trial ? c.parts->storage->experiment(trial->experiment) : result<experiment_row>(trial.error());
  if (!of)
    return of.error();
  return std::pair{std::move(*trial), std::move(*of)};
}

/// Replaces a former name of a run by its present one, so that the run is found by both.
wanted_value names_of_now(const call& c, const place_book& places) {
  return [&](const column_name& column, const value& wanted) -> value {
    if (column.of != column_of::row || column.name != "localId" || !wanted.is_string())
      return wanted;
    const auto run = run_named(c, wanted.get<std::string>());
    return run ? value(local_id(run->first, run->second, places)) : wanted;
  };
}

/// A row of a list. It reads its parts from storage only where a condition or a sort key needs them.
class candidate {
public:
  candidate(const call& c, experiment_row experiment, const place_book& places)
      : c_(&c), places_(&places), experiment_(std::move(experiment)) {}
  candidate(const call& c, std::shared_ptr<const experiment_row> experiment, trial_row trial,
            const place_book& places)
      : c_(&c), places_(&places), shared_(std::move(experiment)), trial_(std::move(trial)) {}

  const experiment_row& experiment() const { return shared_ ? *shared_ : experiment_; }
  const trial_row* trial() const { return trial_ ? &*trial_ : nullptr; }

  result<value> at(const column_name& column) {
    const auto& row = experiment();
    switch (column.of) {
    case column_of::metadata:
      return trial_ && trial_->metadata.is_object() ? at_path(trial_->metadata, column.name) : value();
    case column_of::hyperparameter:
      return trial_ ? at_path(trial_->hparams, column.name)
                    : at_path(config_section(row.config, "hyperparameters"), column.name);
    case column_of::metric:
      if (trial_)
        return metric_at(*c_, *trial_, column.name);
      if (const auto known = best(); !known || !*known)
        return known ? result<value>(value(nullptr)) : known.error();
      return metric_at(*c_, *best_, column.name);
    case column_of::row:
      break;
    }
    return trial_ ? of_run(column.name) : of_experiment(column.name);
  }

  /// The value that rows are sorted by. Names of runs are sorted by their numbers.
  result<value> sorted_by(const column_name& column) {
    if (trial_ && column.of == column_of::row && column.name == "localId")
      return value(trial_->number);
    return at(column);
  }

private:
  /// The best trial of the experiment; null: there is none.
  result<const trial_row*> best() {
    if (!best_ && experiment().best_trial) {
      auto row = c_->parts->storage->trial(experiment().best_trial);
      if (!row && row.error().code != errc::not_found)
        return row.error();
      if (row)
        best_ = std::move(*row);
    }
    return best_ ? &*best_ : nullptr;
  }
  static value time_of(time_point at) { return at == time_point{} ? value() : value(to_rfc3339(at)); }
  static value seconds_of(time_point from, time_point until) {
    return std::chrono::duration_cast<std::chrono::seconds>(until - from).count();
  }

  result<value> shared_column(const std::string& name) {
    const auto& row = experiment();
    if (name == "tags")
      return value(row.labels);
    if (name == "searcherType")
      return config_at(row.config, "searcher", "name");
    if (name == "searcherMetric")
      return value(row.metric);
    if (name == "forkedFrom")
      return row.parent ? value(row.parent.value) : value();
    if (name == "resourcePool")
      return value(pool_of(row, places_->usual_pool()));
    if (name == "projectId")
      return value(row.project.value);
    if (name == "user")
      return value(number_of(row.owner, *c_->parts->users));
    if (name == "externalExperimentId" && !row.external_id.empty())
      return value(row.external_id);
    return value(nullptr); // only unmanaged experiments and runs have these ids
  }

  result<value> of_experiment(const std::string& name) {
    const auto& row = experiment();
    if (name == "id")
      return value(row.id.value);
    if (name == "name")
      return value(row.name);
    if (name == "description")
      return value(row.description);
    if (name == "startTime")
      return time_of(row.created);
    if (name == "endTime")
      return time_of(row.ended);
    if (name == "duration")
      return seconds_of(row.created, row.ended == time_point{} ? c_->now : row.ended);
    if (name == "state")
      return value(troupe::name(row.state));
    if (name == "numTrials")
      return value(row.num_trials);
    if (name == "progress")
      return value(std::round(row.progress * 100));
    if (name == "searcherMetricsVal")
      return row.best_trial && std::isfinite(row.best_metric) ? value(row.best_metric) : value();
    if (name == "checkpointCount")
      return value(row.checkpoint_count);
    if (name == "checkpointSize")
      return value(row.checkpoint_bytes);
    if (name == "externalTrialId" && row.unmanaged) { // the name of its best trial
      const auto known = best();
      if (!known)
        return known.error();
      const auto own = *known ? external_name((*known)->key) : std::string();
      return own.empty() ? value() : value(own);
    }
    return shared_column(name);
  }

  result<value> of_run(const std::string& name) {
    const auto& row = experiment();
    const auto& t = *trial_;
    if (name == "id")
      return value(t.id.value);
    if (name == "localId") {
      auto text = local_id(t, row, *places_);
      return text.empty() ? value() : value(std::move(text));
    }
    if (name == "experimentDescription")
      return value(row.description);
    if (name == "experimentName")
      return value(row.name);
    if (name == "experimentId")
      return value(row.id.value);
    if (name == "startTime")
      return time_of(t.created);
    if (name == "endTime")
      return time_of(t.ended);
    if (name == "duration")
      return seconds_of(t.created, t.ended == time_point{} ? c_->now : t.ended);
    if (name == "state")
      return value(state_of(t));
    if (name == "experimentProgress")
      return value(std::round(row.progress * 100));
    if (name == "searcherMetricsVal")
      return t.best.row && std::isfinite(t.best.metric) ? value(t.best.metric) : value();
    if (name == "checkpointCount")
      return value(t.checkpoint_count);
    if (name == "checkpointSize")
      return value(t.checkpoint_bytes);
    if (name == "isExpMultitrial")
      return value(config_at(row.config, "searcher", "name") != "single");
    if (name == "parentArchived")
      return value(row.archived);
    if (name == "externalRunId" && !external_name(t.key).empty())
      return value(external_name(t.key));
    return shared_column(name);
  }

  const call* c_;
  const place_book* places_;
  experiment_row experiment_;
  std::shared_ptr<const experiment_row> shared_;
  std::optional<trial_row> trial_, best_;
};

/// What the body of a search asks for.
struct search_request {
  std::int64_t project = 0;     ///< 0: all projects
  std::optional<bool> archived; ///< only rows that are archived, or that are not; nullopt: as the filter says
  query_list paging;
  search_filter filter;
  std::vector<sort_key> sort;
};

result<search_request> request_of(const call& c, const std::vector<fixed_column>& columns,
                                  const wanted_value& wanted = {}) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  search_request out;
  out.project = f.number("projectId");
  if (out.project < 0)
    f.fault("projectId", "has to be a number above 0, or be left out");
  if (f.has("archived"))
    out.archived = f.flag("archived");
  for (const char* key : {"offset", "limit"})
    if (f.has(key))
      out.paging.all.emplace_back(key, std::to_string(f.number(key)));
  const auto filter = f.text("filter"), sort = f.text("sort");
  if (f.bad())
    return *f.bad();
  const auto known = known_of(columns);
  auto read = search_filter::read(filter, known, wanted);
  if (!read)
    return read.error();
  auto keys = read_sort(sort, known);
  if (!keys)
    return keys.error();
  out.filter = std::move(*read);
  out.sort = std::move(*keys);
  return out;
}

/// The rows that fit, in order; where keys are equal the id decides. Memory holds only the ids and the sort
/// keys.
template <class Id>
struct found_row {
  Id id;
  std::vector<value> keys;
};

template <class Id>
result<bool> consider(const search_request& what, candidate& one, Id id, std::vector<found_row<Id>>& found) {
  const auto at = [&](const column_name& column) { return one.at(column); };
  auto fits = what.filter.takes(at);
  if (!fits || !*fits)
    return fits;
  found_row<Id> row{id, {}};
  for (const auto& key : what.sort) {
    auto x = one.sorted_by(key.column);
    if (!x)
      return x.error();
    if (auto number = number_in(*x); number && std::isnan(*number))
      *x = nullptr;
    row.keys.push_back(std::move(*x));
  }
  found.push_back(std::move(row));
  return true;
}

template <class Id>
void sort_found(const search_request& what, std::vector<found_row<Id>>& found) {
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    if (sorts_before(what.sort, a.keys, b.keys))
      return true;
    return !sorts_before(what.sort, b.keys, a.keys) && a.id < b.id;
  });
}

project_id project_of(const search_request& what) {
  return {what.project > 0 ? static_cast<std::uint64_t>(what.project) : 0};
}
bool shows(const search_request& what, bool archived) {
  return what.archived ? archived == *what.archived : !archived || what.filter.show_archived();
}
bool in_project(const search_request& what, const experiment_standing& x, const place_book& places) {
  return what.project > 0 ? x.project.value == static_cast<std::uint64_t>(what.project)
                          : what.archived.value_or(what.filter.show_archived()) || !places.hidden(x.project);
}

result<std::vector<found_row<experiment_id>>> find_experiments(const call& c, const search_request& what,
                                                               const place_book& places) {
  auto all = c.parts->storage->experiment_standings();
  if (!all)
    return all.error();
  std::vector<found_row<experiment_id>> found;
  for (const auto& standing : *all) {
    if (!shows(what, standing.archived) || !in_project(what, standing, places))
      continue;
    auto row = c.parts->storage->experiment(standing.id);
    if (!row && row.error().code == errc::not_found)
      continue; // the row was deleted meanwhile
    if (!row)
      return row.error();
    candidate one(c, std::move(*row), places);
    if (auto done = consider(what, one, standing.id, found); !done)
      return done.error();
  }
  sort_found(what, found);
  return found;
}

result<value> search_experiments(const call& c) {
  auto what = request_of(c, experiment_columns);
  if (!what)
    return what.error();
  auto places = place_book::read(*c.parts->storage);
  if (!places)
    return places.error();
  if (auto fine = places->check(project_of(*what)); !fine)
    return fine.error();
  auto found = find_experiments(c, *what, *places);
  if (!found)
    return found.error();
  auto part = page_of(what->paging, found->size(), 100);
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i) {
    auto row = c.parts->storage->experiment((*found)[i].id);
    if (!row)
      continue; // the row was deleted meanwhile
    value one = {{"experiment", experiment_shape(*row, *c.parts->users, *places)}};
    if (one["experiment"]["notes"] != "")
      one["experiment"]["notes"] = "omitted";
    if (row->best_trial)
      if (auto best = c.parts->storage->trial(row->best_trial)) {
        auto shape = trial_shape(*best, *c.parts->storage, c.now);
        if (!shape && shape.error().code == errc::not_found)
          continue; // the experiment is being deleted
        if (!shape)
          return shape.error();
        one["bestTrial"] = std::move(*shape);
        if (const auto own = external_name(best->key); !own.empty())
          one["experiment"]["externalTrialId"] = own;
      }
    list.push_back(std::move(one));
  }
  return value{{"experiments", std::move(list)}, {"pagination", part->pagination}};
}

// ---- runs

result<std::vector<found_row<trial_id>>> find_runs(const call& c, const search_request& what,
                                                   const place_book& places) {
  auto all = c.parts->storage->experiment_standings();
  if (!all)
    return all.error();
  std::vector<found_row<trial_id>> found;
  for (const auto& standing : *all) {
    if ((standing.archived && !shows(what, true)) || !in_project(what, standing, places))
      continue;
    auto row = c.parts->storage->experiment(standing.id);
    auto trials = c.parts->storage->trials(standing.id);
    if (!row && row.error().code == errc::not_found)
      continue;
    if (!row || !trials)
      return row ? trials.error() : row.error();
    const auto shared = std::make_shared<const experiment_row>(std::move(*row));
    for (auto& trial : *trials) {
      if (trial.deletion == deletion_step::ordered || !shows(what, trial.archived || standing.archived))
        continue;
      const auto id = trial.id;
      candidate one(c, shared, std::move(trial), places);
      if (auto done = consider(what, one, id, found); !done)
        return done.error();
    }
  }
  sort_found(what, found);
  return found;
}

result<value> run_shape(const call& c, trial_id id, const place_book& places) {
  auto trial = c.parts->storage->trial(id);
  auto row = trial ? c.parts->storage->experiment(trial->experiment) : result<experiment_row>(trial.error());
  if (!row)
    return row.error();
  auto summary = summary_metrics(*trial, *c.parts->columns, *c.parts->storage);
  if (!summary)
    return summary.error();
  const auto place = places.place_of(row->project, *c.parts->users);
  value out = {{"id", id.value},
               {"startTime", to_rfc3339(trial->created)},
               {"state", state_name(*trial)},
               {"labels", row->labels},
               {"checkpointSize", std::to_string(trial->checkpoint_bytes)},
               {"checkpointCount", trial->checkpoint_count},
               {"hyperparameters", trial->hparams.is_null() ? value::object() : trial->hparams},
               {"summaryMetrics", std::move(*summary)},
               {"userId", number_of(row->owner, *c.parts->users)},
               {"projectId", place["projectId"]},
               {"projectName", place["projectName"]},
               {"workspaceId", place["workspaceId"]},
               {"workspaceName", place["workspaceName"]},
               {"parentArchived", place["parentArchived"]},
               {"archived", trial->archived || row->archived},
               {"experiment",
                {{"id", row->id.value},
                 {"name", row->name},
                 {"searcherType", config_at(row->config, "searcher", "name").is_string()
                                    ? config_at(row->config, "searcher", "name")
                                    : value("")},
                 {"searcherMetric", row->metric},
                 {"description", row->description},
                 {"resourcePool", pool_of(*row, places.usual_pool())},
                 {"progress", row->progress},
                 {"forkedFrom", row->parent ? value(row->parent.value) : value()},
                 {"isMultitrial", is_search(*row)},
                 {"unmanaged", row->unmanaged}}}};
  if (auto name = local_id(*trial, *row, places); !name.empty())
    out["localId"] = std::move(name);
  if (!row->external_id.empty())
    out["experiment"]["externalExperimentId"] = row->external_id;
  if (const auto name = external_name(trial->key); !name.empty())
    out["externalRunId"] = name;
  if (trial->ended != time_point{}) {
    out["endTime"] = to_rfc3339(trial->ended);
    out["duration"] = std::chrono::duration_cast<std::chrono::seconds>(trial->ended - trial->created).count();
  }
  if (trial->best.row && std::isfinite(trial->best.metric))
    out["searcherMetricValue"] = trial->best.metric;
  if (trial->metadata.is_object())
    out["metadata"] = trial->metadata;
  return out;
}

result<value> search_runs(const call& c) {
  auto places = place_book::read(*c.parts->storage);
  if (!places)
    return places.error();
  auto what = request_of(c, run_columns, names_of_now(c, *places));
  if (!what)
    return what.error();
  if (auto fine = places->check(project_of(*what)); !fine)
    return fine.error();
  auto found = find_runs(c, *what, *places);
  if (!found)
    return found.error();
  auto part = page_of(what->paging, found->size(), 100);
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i) {
    auto one = run_shape(c, (*found)[i].id, *places);
    if (!one && one.error().code == errc::not_found)
      continue; // the row was deleted meanwhile
    if (!one)
      return one.error();
    list.push_back(std::move(*one));
  }
  return value{{"runs", std::move(list)}, {"pagination", part->pagination}};
}

/// Redirects a browser to a run by its name, also where the run moved to another project since the link was
/// written.
result<response> page_of_run(const call& c) {
  auto run = run_named(c, std::string(c.named("localId")));
  if (!run)
    return run.error();
  response out;
  out.status = 303;
  out.headers.emplace_back("Location", "/ui/trials/" + to_string(run->first.id));
  return out;
}

// ---- columns and ranges

std::optional<project_id> named_project(const call& c, const place_book& places) {
  const auto id = parse_id<project_id>(c.named(c.path.contains("id") ? "id" : "projectId"));
  return places.find(id) ? std::optional{id} : std::nullopt;
}

error no_project(const call& c) {
  return {errc::not_found, "project '" +
                             std::string(c.named(c.path.contains("id") ? "id" : "projectId").substr(0, 30)) +
                             "' not found"};
}

/// Calls `each` with every experiment of the project that the path names.
template <class F>
result<void> each_experiment(const call& c, F each) {
  auto places = place_book::read(*c.parts->storage);
  if (!places)
    return places.error();
  const auto project = named_project(c, *places);
  if (!project)
    return no_project(c);
  auto all = c.parts->storage->experiment_standings();
  if (!all)
    return all.error();
  for (const auto& standing : *all)
    if (standing.project == *project)
      if (auto row = c.parts->storage->experiment(standing.id))
        if (auto done = each(*row); !done)
          return done;
  return {};
}

/// Adds the paths of a map's values, with dots between keys, and each value's kind; null has no kind. A
/// section with a `type` counts as one value. `times`: whether a text that reads as a time is a date.
void add_paths(const value& x, const std::string& before, bool times,
               std::map<std::string, std::set<std::string>>& to, int depth = 0) {
  if (!x.is_object() || depth > 10)
    return;
  for (const auto& [key, one] : x.items()) {
    const auto path = before.empty() ? key : before + "." + key;
    const bool section = one.is_object() && one.contains("type") && one["type"].is_string();
    if (one.is_object() && !section) {
      add_paths(one, path, times, to, depth + 1);
      continue;
    }
    const auto type = section ? one["type"].get<std::string>() : std::string();
    const auto& leaf = type == "const" ? one.value("val", value()) : one;
    const auto choices = type == "categorical" ? one.value("vals", value::array()) : value::array();
    const bool number = section && type != "const" ? std::all_of(choices.begin(), choices.end(),
                                                                 [](const value& v) { return v.is_number(); })
                                                   : leaf.is_number();
    const bool date = times && leaf.is_string() && reads_as_time(leaf.get<std::string>());
    auto& kinds = to[path];
    if (number || !leaf.is_null())
      kinds.insert(number ? "NUMBER" : date ? "DATE" : leaf.is_array() ? "ARRAY" : "TEXT");
  }
}

value column_shape(const std::string& column, const char* location, const std::string& type,
                   const std::string& title = "") {
  return {{"column", column},
          {"location", std::string("LOCATION_TYPE_") + location},
          {"type", "COLUMN_TYPE_" + type},
          {"displayName", title}};
}

result<value> columns(const call& c) {
  const bool runs = c.query.first("tableType") == "TABLE_TYPE_RUN";
  std::map<std::string, std::set<std::string>> hparams, metadata, metrics;
  auto done = each_experiment(c, [&](const experiment_row& row) -> result<void> {
    if (!runs && row.config->is_object())
      add_paths(row.config->value("hyperparameters", value()), "", false, hparams);
    auto trials = c.parts->storage->trials(row.id);
    if (!trials)
      return trials.error();
    for (const auto& trial : *trials) {
      if (runs) {
        add_paths(trial.hparams, "", false, hparams);
        add_paths(trial.metadata, "", true, metadata);
      }
      auto known = c.parts->columns->summaries(trial, *c.parts->storage);
      if (!known)
        return known.error();
      for (const auto& [group, all] : **known)
        for (const auto& [name, one] : all)
          metrics[group + "." + name].insert(one.kind == metric_kind::number ? "NUMBER" : "TEXT");
    }
    return {};
  });
  if (!done)
    return done.error();
  value list = value::array();
  for (const auto& one : runs ? run_columns : experiment_columns)
    list.push_back(column_shape(one.name, runs ? "RUN" : "EXPERIMENT", one.type, one.title));
  const auto type_of = [](const std::set<std::string>& seen) {
    return seen.empty() ? std::string("TEXT") : seen.size() == 1 ? *seen.begin() : std::string("UNSPECIFIED");
  };
  for (const auto& [name, seen] : metrics) {
    const char* location = name.starts_with("training.")     ? "TRAINING"
                           : name.starts_with("validation.") ? "VALIDATIONS"
                                                             : "CUSTOM_METRIC";
    const auto type = type_of(seen);
    for (const char* how : {"last", "max", "mean", "min"})
      if (type == "NUMBER" || std::string_view(how) == "last")
        list.push_back(column_shape(name + "." + how, location, type));
  }
  for (const auto& [name, seen] : hparams)
    list.push_back(
      column_shape("hp." + name, runs ? "RUN_HYPERPARAMETERS" : "HYPERPARAMETERS", type_of(seen)));
  for (const auto& [name, seen] : metadata)
    list.push_back(column_shape("metadata." + name, "RUN_METADATA", type_of(seen)));
  return value{{"columns", std::move(list)}};
}

result<value> metric_ranges(const call& c) {
  std::map<std::string, std::pair<double, double>> ranges;
  const auto add = [&](const std::string& name, double x) {
    if (!std::isfinite(x))
      return;
    auto [at, fresh] = ranges.try_emplace(name, x, x);
    at->second = {std::min(at->second.first, x), std::max(at->second.second, x)};
  };
  auto done = each_experiment(c, [&](const experiment_row& row) -> result<void> {
    if (!row.best_trial)
      return {};
    add("searcherMetricsVal", row.best_metric);
    auto best = c.parts->storage->trial(row.best_trial);
    if (!best)
      return best.error().code == errc::not_found ? result<void>{} : best.error();
    auto known = c.parts->columns->summaries(*best, *c.parts->storage);
    if (!known)
      return known.error();
    for (const auto& [group, all] : **known)
      for (const auto& [name, one] : all)
        if (one.kind == metric_kind::number) {
          add(group + "." + name + ".last", one.last);
          add(group + "." + name + ".min", one.min);
          add(group + "." + name + ".max", one.max);
        }
    return {};
  });
  if (!done)
    return done.error();
  value list = value::array();
  for (const auto& [name, range] : ranges)
    list.push_back({{"metricsName", name}, {"min", range.first}, {"max", range.second}});
  return value{{"ranges", std::move(list)}};
}

result<value> metadata_values(const call& c) {
  std::string key(c.named("key"));
  if (key.starts_with("metadata."))
    key = key.substr(9);
  std::set<std::string> seen;
  auto done = each_experiment(c, [&](const experiment_row& row) -> result<void> {
    auto trials = c.parts->storage->trials(row.id);
    if (!trials)
      return trials.error();
    for (const auto& trial : *trials)
      if (const auto x = at_path(trial.metadata, key); x.is_string() && seen.size() < 1000)
        seen.insert(x.get<std::string>());
    return {};
  });
  return done ? result<value>(value{{"values", seen}}) : done.error();
}

} // namespace

bool is_search(const experiment_row& row) { return config_at(row.config, "searcher", "name") != "single"; }

result<std::vector<trial_id>> runs_that_fit(const call& c, project_id project, const std::string& filter) {
  auto places = place_book::read(*c.parts->storage);
  if (!places)
    return places.error();
  search_request what;
  what.project = static_cast<std::int64_t>(project.value);
  auto read = search_filter::read(filter, known_of(run_columns), names_of_now(c, *places));
  if (!read)
    return read.error();
  what.filter = std::move(*read);
  auto found = find_runs(c, what, *places);
  if (!found)
    return found.error();
  std::vector<trial_id> out;
  for (const auto& one : *found)
    out.push_back(one.id);
  return out;
}

std::vector<route> run_routes() {
  const authority::need view{action::view, thing::experiment}, view_project{action::view, thing::project};
  std::vector<route> rows = {
    {"POST", "/api/v1/experiments-search", view, answer_with(search_experiments),
     "v1SearchExperimentsRequest", "v1SearchExperimentsResponse",
     "Experiments by filter and sort, 100 unless a limit is given."},
    {"POST", "/api/v1/runs", view, answer_with(search_runs), "v1SearchRunsRequest", "v1SearchRunsResponse",
     "Trials with their places, by filter and sort."},
    {"GET", "/api/v1/projects/{id}/columns", view_project, answer_with(columns), "",
     "v1GetProjectColumnsResponse", "What its experiments, or runs, can be filtered and sorted by."},
    {"GET", "/api/v1/projects/{id}/experiments/metric-ranges", view_project, answer_with(metric_ranges), "",
     "v1GetProjectNumericMetricsRangeResponse", "The least and greatest of each metric of its best trials."},
    {"GET", "/api/v1/projects/{projectId}/metadata/{key}", view_project, answer_with(metadata_values), "",
     "v1GetMetadataValuesResponse", "Texts that its runs have under a key of their metadata."},
    leads_to_login({"GET", "/det/runs/{localId}", view, respond_with(page_of_run), "", "Redirection",
                    "The page of a run by a name that it has or had, as CAT-12."}),
  };
  for (auto& row : run_action_routes())
    rows.push_back(std::move(row));
  for (auto& row : rows)
    row.slow = true; // these routes read every row of a project
  return rows;
}

} // namespace troupe::api
