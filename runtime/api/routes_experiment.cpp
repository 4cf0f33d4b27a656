// Routes for experiments: lists, a single experiment, its trials and checkpoints, and orders to it.

#include "runtime/api/creation.hpp"
#include "runtime/api/default_config.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/open_runs.hpp"
#include "runtime/api/past.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/veil.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace troupe::api {
namespace {

using entry = experiment_texts::entry;

/// The filter of a list, read from the query once for all rows.
class list_filter {
public:
  explicit list_filter(const call& c)
      : call_(c), project_(parse_id<project_id>(c.query.first("projectId"))),
        by_archived_(c.query.has("archived")), archived_(c.query.flag("archived")),
        name_(folded(c.query.first("name"))), description_(folded(c.query.first("description"))),
        states_(c.query.every("states")), users_(c.query.every("users")),
        user_ids_(c.query.every("userIds")) {
    for (const auto label : c.query.every("labels"))
      labels_.emplace_back(std::string(label));
    for (const auto text : c.query.every("experimentIdFilter.incl"))
      only_.insert(parse_id<experiment_id>(text));
    for (const auto text : c.query.every("experimentIdFilter.notIn"))
      without_.insert(parse_id<experiment_id>(text));
    const auto bound = [&](const char* key) {
      const auto text = c.query.first(key);
      return text.empty() ? std::optional<experiment_id>() : parse_id<experiment_id>(text);
    };
    above_ = bound("experimentIdFilter.gt");
    from_ = bound("experimentIdFilter.gte");
    below_ = bound("experimentIdFilter.lt");
    up_to_ = bound("experimentIdFilter.lte");
  }

  bool takes(const entry& one, const place_book& places) const {
    const auto& now = one.now;
    const auto& face = *one.lasting;
    if ((project_ && now.project != project_) || !takes(now.id) || !takes(now.state))
      return false;
    if (by_archived_) {
      // Without a project, experiments in archived projects and workspaces count as archived, too.
      const bool archived = now.archived || (!project_ && places.hidden(now.project));
      if (archived != archived_)
        return false;
    }
    for (const auto& label : labels_)
      if (std::find(face.labels.begin(), face.labels.end(), label) == face.labels.end())
        return false;
    return takes_owner(face.owner) && (name_.empty() || folded(face.name).find(name_) != std::string::npos) &&
           (description_.empty() || folded(face.description).find(description_) != std::string::npos);
  }

private:
  bool takes(experiment_id id) const {
    return (!above_ || id > *above_) && (!from_ || id >= *from_) && (!below_ || id < *below_) &&
           (!up_to_ || id <= *up_to_) && (only_.empty() || only_.contains(id)) && !without_.contains(id);
  }
  /// Whether the filter accepts the state. The stored state counts, not the finer state that is shown.
  bool takes(experiment_state state) const {
    if (states_.empty())
      return true;
    const auto own = state_name(state);
    return std::any_of(states_.begin(), states_.end(),
                       [&](auto wanted) { return wanted == own || wanted == "STATE_UNSPECIFIED"; });
  }
  bool takes_owner(const std::string& name) const {
    if (users_.empty() && user_ids_.empty())
      return true;
    const auto owner = call_.parts->users->owner(name);
    if (!users_.empty() &&
        std::find(users_.begin(), users_.end(), owner ? owner->name : name) == users_.end())
      return false;
    if (user_ids_.empty())
      return true;
    return owner &&
           std::find(user_ids_.begin(), user_ids_.end(), std::to_string(owner->id)) != user_ids_.end();
  }

  const call& call_;
  project_id project_; ///< 0: any project
  bool by_archived_, archived_;
  std::string name_, description_; ///< in lower case
  std::vector<std::string_view> states_, users_, user_ids_;
  std::vector<value> labels_;
  std::set<experiment_id> only_, without_;
  std::optional<experiment_id> above_, from_, below_, up_to_;
};

/// The experiments that the caller may see, remembered by project, as most experiments lie in a few projects.
class shown_places {
public:
  explicit shown_places(const storage::reader& by) : by_(dynamic_cast<const screen*>(&by)) {}
  bool have(const experiment_standing& one) const {
    if (!by_)
      return true;
    const auto [at, fresh] = known_.try_emplace(one.project, false);
    if (fresh)
      at->second = by_->shows({}, one.project);
    return at->second || by_->shows(one.id, one.project);
  }

private:
  const screen* by_;
  mutable std::map<project_id, bool> known_;
};

using listed_entries = std::vector<const entry*>;

/// Puts the first `count` entries in order. Entries with the same key are ordered by their ids, in the same
/// direction.
template <class Key>
void first_by(listed_entries& all, std::size_t count, bool descending, const Key& key) {
  const auto before = [&](const entry* a, const entry* b) {
    const auto &x = key(*a), &y = key(*b);
    return x < y || (!(y < x) && a->now.id < b->now.id);
  };
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
  if (descending)
    std::partial_sort(all.begin(), end, all.end(),
                      [&](const entry* a, const entry* b) { return before(b, a); });
  else
    std::partial_sort(all.begin(), end, all.end(), before);
}

/// The same by an optional. Entries without a value come last; entries with the same value are ordered by
/// rising ids. Both hold for either direction.
template <class Key>
void first_by_optional(listed_entries& all, std::size_t count, bool descending, const Key& key) {
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [&](const entry* a, const entry* b) {
                      const auto x = key(*a), y = key(*b);
                      if (x.has_value() != y.has_value())
                        return x.has_value();
                      if (x && *x != *y)
                        return descending ? *y < *x : *x < *y;
                      return a->now.id < b->now.id;
                    });
}

std::optional<experiment_texts::text> text_to_sort_by(const call& c) {
  using enum experiment_texts::text;
  const auto by = c.query.first("sortBy");
  if (by == "SORT_BY_NAME")
    return name;
  if (by == "SORT_BY_USER")
    return owner;
  if (by == "SORT_BY_DESCRIPTION")
    return description;
  if (by == "SORT_BY_RESOURCE_POOL")
    return pool;
  return std::nullopt;
}

void sort_entries(const call& c, const experiment_texts::listing& of, listed_entries& all,
                  std::size_t count) {
  const bool descending = is_descending(c.query);
  const auto by = c.query.first("sortBy");
  const auto key = [&](const auto& of) { first_by(all, count, descending, of); };
  if (const auto text = text_to_sort_by(c); text && of.ranks)
    key([&](const entry& x) { return (*of.ranks)[static_cast<std::size_t>(&x - of.rows->data())]; });
  else if (text)
    key([&](const entry& x) -> const auto& { return experiment_texts::text_of(x, *text); });
  else if (by == "SORT_BY_START_TIME")
    key([](const entry& x) { return x.lasting->created; });
  else if (by == "SORT_BY_STATE")
    key([](const entry& x) { return std::string_view(name(x.now.state)); });
  else if (by == "SORT_BY_NUM_TRIALS")
    key([](const entry& x) { return x.now.num_trials; });
  else if (by == "SORT_BY_PROGRESS")
    key([](const entry& x) { return x.now.progress; });
  else if (by == "SORT_BY_FORKED_FROM")
    key([](const entry& x) { return x.lasting->parent; });
  else if (by == "SORT_BY_PROJECT_ID")
    key([](const entry& x) { return x.now.project; });
  else if (by == "SORT_BY_CHECKPOINT_SIZE")
    key([](const entry& x) { return x.now.checkpoint_bytes; });
  else if (by == "SORT_BY_CHECKPOINT_COUNT")
    key([](const entry& x) { return x.now.checkpoint_count; });
  else if (by == "SORT_BY_SEARCHER_METRIC_VAL")
    first_by_optional(all, count, descending, [](const entry& x) {
      return x.now.best_trial && !std::isnan(x.now.best_metric) ? std::optional(x.now.best_metric)
                                                                : std::nullopt;
    });
  else if (by == "SORT_BY_END_TIME")
    first_by_optional(all, count, descending, [](const entry& x) {
      return x.now.ended == time_point{} ? std::nullopt : std::optional(x.now.ended);
    });
  else
    key([](const entry& x) { return x.now.id; });
}

result<response> list(const call& c) {
  const auto& everything = *(c.parts->all ? *c.parts->all : *c.parts).storage;
  const auto kept = c.parts->texts->kept(everything, text_to_sort_by(c));
  if (!kept)
    return kept.error();
  auto places = place_book::read(*c.parts->storage);
  if (!places)
    return places.error();
  if (auto fine = places->check(parse_id<project_id>(c.query.first("projectId"))); !fine)
    return fine.error();
  listed_entries found;
  const list_filter filter(c);
  const shown_places shown(*c.parts->storage);
  for (const auto& one : *kept->rows)
    if (shown.have(one.now) && filter.takes(one, *places))
      found.push_back(&one);
  auto part = page_of(c.query, found.size(), 100);
  if (!part)
    return part.error();
  sort_entries(c, *kept, found, part->last);
  response out;
  out.body = "{\"experiments\":[";
  for (auto i = part->first; i < part->last; ++i) {
    if (i > part->first)
      out.body += ',';
    if (auto ok = c.parts->texts->write(*found[i], everything, *c.parts->users, *places, out.body); !ok)
      return ok.error();
  }
  out.body += "],\"pagination\":" + to_json(part->pagination) + "}";
  if (c.query.has("pretty"))
    out.body = to_json(parse_json(out.body).value(), 2);
  return out;
}

void one(const call_ptr& c, const reply& back) {
  const auto seen = std::to_string(c->parts->storage->sequence());
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  auto places = place_book::read(*c->parts->storage);
  if (!places)
    return back(failure(places.error()));
  const auto trials = c->parts->storage->trial_ids(row->id);
  if (!trials)
    return back(failure(trials.error()));
  auto shape = experiment_shape(*row, *c->parts->users, *places);
  auto& ids = shape["trialIds"] = value::array();
  for (const auto id : *trials)
    ids.push_back(id.value);
  const auto answer = [back, seen, pretty = c->query.has("pretty")](value shape, value summary) {
    auto config = shape["config"];
    auto out = json(
      {{"config", std::move(config)}, {"experiment", std::move(shape)}, {"jobSummary", std::move(summary)}},
      pretty);
    out.headers.emplace_back("Troupe-Sequence", seen);
    back(std::move(out));
  };
  if (terminal(row->state) || row->unmanaged)
    return answer(std::move(shape), nullptr);
  const auto open = open_runs_of(*c->parts->storage, *trials);
  if (!open)
    return back(failure(open.error()));
  commands::pool_details of_pool{pool_of(*row, places->usual_pool())};
  c->parts->cluster.order(
    c->by.who, std::move(of_pool),
    [answer, id = row->id, open = *open, shape = std::move(shape)](result<value> pool) mutable {
      answer(std::move(shape), pool ? job_summary(id, open, *pool) : value());
    });
}

result<void> sort_trials(const call& c, std::vector<trial_row>& rows) {
  const bool down = is_descending(c.query);
  const auto by = c.query.first("sortBy");
  const auto metric_of = [](const validation_row& x) {
    return x.row && !std::isnan(x.metric) ? std::optional(x.metric) : std::nullopt;
  };
  const auto span_of = [&](const trial_row& x) {
    return x.runs.empty() ? std::nullopt
                          : std::optional((x.ended == time_point{} ? c.now : x.ended) - x.created);
  };
  std::sort(rows.begin(), rows.end(),
            [&](const auto& a, const auto& b) { return down ? b.id < a.id : a.id < b.id; });
  if (by == "SORT_BY_START_TIME")
    sort_unset_last(rows, down, [](const trial_row& x) { return std::optional(x.created); });
  else if (by == "SORT_BY_END_TIME")
    sort_unset_last(rows, down, [](const trial_row& x) {
      return x.ended == time_point{} ? std::nullopt : std::optional(x.ended);
    });
  else if (by == "SORT_BY_STATE")
    sort_unset_last(rows, down, [](const trial_row& x) { return std::optional(state_of(x)); });
  else if (by == "SORT_BY_BEST_VALIDATION_METRIC")
    sort_unset_last(rows, down, [&](const trial_row& x) { return metric_of(x.best); });
  else if (by == "SORT_BY_LATEST_VALIDATION_METRIC")
    sort_unset_last(rows, down, [&](const trial_row& x) { return metric_of(x.latest); });
  else if (by == "SORT_BY_BATCHES_PROCESSED")
    sort_unset_last(rows, down, [](const trial_row& x) { return std::optional(steps_processed(x)); });
  else if (by == "SORT_BY_DURATION")
    sort_unset_last(rows, down, span_of);
  else if (by == "SORT_BY_RESTARTS")
    sort_unset_last(rows, down, [](const trial_row& x) { return std::optional(x.restarts); });
  else if (by == "SORT_BY_CHECKPOINT_SIZE")
    sort_unset_last(rows, down, [](const trial_row& x) { return std::optional(x.checkpoint_bytes); });
  return {};
}

result<value> trials(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto rows = c.parts->storage->trials(row->id);
  if (!rows)
    return rows.error();
  if (const auto states = c.query.every("states"); !states.empty())
    std::erase_if(*rows, [&](const auto& t) {
      return std::find(states.begin(), states.end(), state_name(t)) == states.end();
    });
  if (auto sorted = sort_trials(c, *rows); !sorted)
    return sorted.error();
  auto part = page_of(c.query, rows->size());
  if (!part)
    return part.error();
  value shaped = value::array();
  for (auto i = part->first; i < part->last; ++i) {
    auto shape = trial_shape((*rows)[i], *c.parts->storage, c.now);
    auto summary = shape ? summary_metrics((*rows)[i], *c.parts->columns, *c.parts->storage) : shape;
    if (!summary && summary.error().code == errc::not_found && !is_leaving(c, row->id))
      continue; // this trial alone is being deleted
    if (!summary)
      return summary.error();
    (*shape)["summaryMetrics"] = std::move(*summary);
    shaped.push_back(std::move(*shape));
  }
  if (auto added = add_log_retention(shaped, *row, *c.parts->storage); !added)
    return added.error();
  return value{{"trials", std::move(shaped)}, {"pagination", part->pagination}};
}

/// The rows of a progress table. With `metrics=validation.acc,training.loss` each trial also has the
/// summaries of these metrics.
result<response> progress_of_trials(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  const auto wanted = metric_names(c.query.first("metrics"));
  if (!wanted)
    return wanted.error();
  if (wanted->empty() && !c.query.has("pretty")) {
    response out;
    out.body = "{\"trials\":[";
    // A caller who may see one trial may see all of the experiment.
    const auto& everything = *(c.parts->all ? *c.parts->all : *c.parts).storage;
    if (auto written = c.parts->trials->write(row->id, everything, out.body); !written)
      return written.error();
    out.body += "]}";
    out.kept = terminal(row->state); // otherwise reports may come, which are not facts
    return out;
  }
  auto rows = c.parts->storage->trials(row->id);
  if (!rows)
    return rows.error();
  value shaped = value::array();
  for (const auto& t : *rows) {
    shaped.push_back(trial_progress_shape(t));
    if (wanted->empty())
      continue;
    auto known = c.parts->columns->summaries(t, *c.parts->storage);
    if (!known)
      return known.error();
    shaped.back()["metrics"] = summaries_shape(**known, *wanted);
  }
  auto out = json({{"trials", std::move(shaped)}}, c.query.has("pretty"));
  out.kept = wanted->empty() && terminal(row->state); // reports may come, as above
  return out;
}

/// The best value so far after each trial that ended or has a validation, at most `most` of them.
result<value> best_so_far(const call& c, const experiment_row& row, std::size_t most) {
  auto rows = c.parts->storage->trials(row.id);
  if (!rows)
    return rows.error();
  std::erase_if(*rows, [](const auto& t) { return t.best.row == 0 || std::isnan(t.best.metric); });
  const auto end = [](const trial_row& t) { return t.ended == time_point{} ? time_point::max() : t.ended; };
  std::stable_sort(rows->begin(), rows->end(), [&](const auto& a, const auto& b) { return end(a) < end(b); });
  value list = value::array();
  double best = 0;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const auto y = (*rows)[i].best.metric;
    best = i == 0 ? y : row.smaller_is_better ? std::min(best, y) : std::max(best, y);
    // Takes the last value of each stretch, so that the curve keeps its steps and its end.
    if ((i + 1) * most / rows->size() > i * most / rows->size() || rows->size() <= most)
      list.push_back(best);
  }
  return list;
}

/// The outcome of an experiment. With `history=50` it has the course of the best value, too, in at most 50
/// numbers.
result<value> outcome(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto history = c.query.number("history", 0);
  if (!history)
    return history.error();
  if (*history < 0 || *history > 1000)
    return error{errc::invalid, "history has to be 0 to 1000"};
  value x = {{"id", row->id.value},       {"state", state_name(row->state)},
             {"why", row->why},           {"numTrials", row->num_trials},
             {"metric", row->metric},     {"smallerIsBetter", row->smaller_is_better},
             {"progress", row->progress}, {"bestTrialId", nullptr},
             {"bestMetric", nullptr},     {"bestTrial", nullptr},
             {"bestCheckpoint", nullptr}};
  if (*history > 0) {
    auto list = best_so_far(c, *row, static_cast<std::size_t>(*history));
    if (!list)
      return list.error();
    x["bestSoFar"] = std::move(*list);
  }
  if (!row->best_trial)
    return x;
  auto best = c.parts->storage->trial(row->best_trial);
  auto shape = best ? trial_shape(*best, *c.parts->storage, c.now) : result<value>(best.error());
  if (!shape && shape.error().code == errc::not_found && !is_leaving(c, row->id))
    return x; // the best trial alone is being deleted
  if (!best)
    return best.error();
  auto saved = best_checkpoint(*best, *c.parts->storage);
  if (!shape)
    return shape.error();
  if (!saved)
    return saved.error();
  x["bestTrialId"] = row->best_trial.value;
  x["bestMetric"] = row->best_metric;
  x["bestTrial"] = std::move(*shape);
  if (*saved) {
    auto files = checkpoint_files_shape(**saved, *row, *c.parts->storage);
    if (!files)
      return files.error();
    x["bestCheckpoint"] = std::move(*files);
  }
  return x;
}

result<value> defaults(const call& c) {
  auto row = named_experiment(c);
  auto made = row ? default_config(*row, *c.parts->storage) : result<value>(row.error());
  return made ? result<value>(value{{"config", std::move(*made)}}) : made.error();
}

/// The metric of the best validation, with its sign changed where needed so that smaller is better; 404 where
/// there is none yet.
result<value> best_validation(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  if (!row->best_trial)
    return error{errc::not_found, "no validation of experiment '" + to_string(row->id) + "' yet"};
  return value{{"metric", row->best_metric}};
}

template <class C>
handler ordered() {
  return [](const call_ptr& c, const reply& back) {
    const auto row = named_experiment(*c);
    if (!row)
      return back(failure(row.error()));
    command(c, back, C{row->id}, {}, [](const error& why) {
      return why.code == errc::conflict ? failure(failed_precondition, why.what) : failure(why);
    });
  };
}

route reads_reports(route row) { // reading a million reports for the first time takes seconds
  row.slow = true;
  return row;
}
route of_facts(route row) {
  row.from_facts = true;
  return row;
}

} // namespace

std::vector<route> experiment_routes() {
  std::vector<route> rows = {
    of_facts({"GET",
              "/api/v1/experiments",
              {action::view, thing::experiment},
              respond_with(list),
              "",
              "v1GetExperimentsResponse",
              "Experiments, 100 unless a limit is given."}),
    of_facts({"GET",
              "/api/v1/experiments/{experimentId}",
              {action::view, thing::experiment},
              one,
              "",
              "v1GetExperimentResponse",
              "One experiment."}),
    reads_reports({"GET",
                   "/api/v1/experiments/{experimentId}/trials",
                   {action::view, thing::experiment},
                   answer_with(trials),
                   "",
                   "v1GetExperimentTrialsResponse",
                   "Its trials."}),
    {"GET",
     "/api/v1/experiments/{experimentId}/searcher/best_searcher_validation_metric",
     {action::view, thing::experiment},
     answer_with(best_validation),
     "",
     "v1GetBestSearcherValidationMetricResponse",
     "The best validation so far; 404 where there is none."},
    {"POST",
     "/api/v1/experiments/{experimentId}/activate",
     {action::change, thing::experiment},
     ordered<commands::experiment_activate>(),
     "",
     "Empty",
     "Goes on with a paused experiment."},
    {"POST",
     "/api/v1/experiments/{experimentId}/pause",
     {action::change, thing::experiment},
     ordered<commands::experiment_pause>(),
     "",
     "Empty",
     "Pauses through a checkpoint."},
    {"POST",
     "/api/v1/experiments/{experimentId}/cancel",
     {action::change, thing::experiment},
     ordered<commands::experiment_cancel>(),
     "",
     "Empty",
     "Ends after a last checkpoint."},
    {"POST",
     "/api/v1/experiments/{experimentId}/kill",
     {action::kill, thing::experiment},
     ordered<commands::experiment_kill>(),
     "",
     "Empty",
     "Ends at once."},
    of_facts({"GET",
              "/troupe/v1/experiments/{experimentId}/trials",
              {action::view, thing::search},
              as_of(respond_with(progress_of_trials)),
              "",
              "TrialProgressList",
              "Every trial with what a progress table needs; `metrics` names those to summarise."}),
    {"GET",
     "/troupe/v1/experiments/{experimentId}/outcome",
     {action::view, thing::search},
     as_of(answer_with(outcome)),
     "",
     "Outcome",
     "The best trial, its metric and its checkpoint."},
    {"GET",
     "/troupe/v1/experiments/{experimentId}/defaults",
     {action::view, thing::search},
     answer_with(defaults),
     "",
     "DefaultConfig",
     "Its configuration as it would be out of defaults alone; null where there is none."},
  };
  for (auto& row : creation_routes())
    rows.push_back(std::move(row));
  return rows;
}

} // namespace troupe::api
