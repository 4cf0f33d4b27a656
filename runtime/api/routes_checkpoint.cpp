// Routes for checkpoints: lists, a single checkpoint, and files.

#include "model/checkpoint_place.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/folder_archive.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/shapes.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

result<checkpoint_row> row_of(const call& c) {
  const auto uuid = std::string(c.named("checkpointUuid").substr(0, 100));
  auto row = c.parts->storage->checkpoint(uuid);
  if (!row && row.error().code == errc::not_found)
    return error{errc::not_found, "checkpoint '" + uuid + "' not found"};
  return row;
}

/// The number to sort by; nullopt, which comes last, where the checkpoint has none.
std::optional<double> sort_key(const call& c, const value& shape) {
  const auto metric = c.query.first("sortByMetric"), by = c.query.first("sortByAttr");
  const auto& training = shape["training"];
  if (!metric.empty()) {
    auto validation = training.find("validationMetrics");
    if (validation == training.end())
      return std::nullopt;
    const auto& all = (*validation)["avgMetrics"];
    auto own = all.find(std::string(metric));
    return own == all.end() ? std::nullopt : number_in(*own);
  }
  if (by == "SORT_BY_SEARCHER_METRIC") {
    auto own = training.find("searcherMetric");
    return own == training.end() ? std::nullopt : number_in(*own);
  }
  if (by == "SORT_BY_TRIAL_ID")
    return shape["trialId"].get<double>();
  if (by == "SORT_BY_BATCH_NUMBER")
    return number_in(shape["metadata"]["steps_completed"]).value_or(0);
  return 0;
}

/// The list of checkpoints. Without an order in the query, a list by the searcher's metric goes from better
/// to worse.
result<value> listed(const call& c, const std::vector<checkpoint_row>& rows, bool smaller_is_better) {
  std::vector<std::pair<std::optional<double>, value>> all;
  const auto states = c.query.every("states");
  for (const auto& row : rows) {
    if (states.empty() && row.state == checkpoint_state::deleted)
      continue; // these are listed only if the query names their state
    auto shape = checkpoint_shape(row, *c.parts->storage);
    if (!shape && shape.error().code == errc::not_found && !is_leaving(c, row.experiment))
      continue; // its trial alone is being deleted
    if (!shape)
      return shape.error();
    if (!states.empty() &&
        std::find(states.begin(), states.end(), (*shape)["state"].get<std::string>()) == states.end())
      continue;
    auto key = sort_key(c, *shape);
    all.emplace_back(key, std::move(*shape));
  }
  const auto by = c.query.first("sortByAttr"), order = c.query.first("orderBy");
  const bool best_first =
    by == "SORT_BY_SEARCHER_METRIC" && (order.empty() || order == "ORDER_BY_UNSPECIFIED");
  const bool down = best_first ? !smaller_is_better : order == "ORDER_BY_DESC";
  const auto text = [&](const value& x) {
    return by == "SORT_BY_UUID"       ? x["uuid"].get<std::string>()
           : by == "SORT_BY_END_TIME" ? x["reportTime"].get<std::string>()
                                      : std::string{};
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    if (!a.first || !b.first)
      return a.first.has_value() && !b.first.has_value();
    if (*a.first != *b.first)
      return down ? *a.first > *b.first : *a.first < *b.first;
    return down ? text(a.second) > text(b.second) : text(a.second) < text(b.second);
  });
  auto part = page_of(c.query, all.size());
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i)
    list.push_back(std::move(all[i].second));
  return value{{"checkpoints", std::move(list)}, {"pagination", part->pagination}};
}

result<value> of_trial(const call& c) {
  auto trial = c.parts->storage->trial(parse_id<trial_id>(c.named("trialId")));
  if (!trial)
    return trial.error().code == errc::not_found
             ? error{errc::not_found, "trial '" + std::string(c.named("trialId")) + "' not found"}
             : trial.error();
  auto rows = c.parts->storage->checkpoints(trial->id);
  auto of = c.parts->storage->experiment(trial->experiment);
  if (!rows || !of)
    return rows ? of.error() : rows.error();
  return listed(c, *rows, of->smaller_is_better);
}

result<value> of_experiment(const call& c) {
  auto experiment = c.parts->storage->experiment(parse_id<experiment_id>(c.named("experimentId")));
  if (!experiment)
    return experiment.error().code == errc::not_found
             ? error{errc::not_found, "experiment '" + std::string(c.named("experimentId")) + "' not found"}
             : experiment.error();
  auto trials = c.parts->storage->trials(experiment->id);
  if (!trials)
    return trials.error();
  std::vector<checkpoint_row> all;
  for (const auto& trial : *trials) {
    if (trial.checkpoint_count == 0 && !c.query.has("states")) // deleted checkpoints are not counted here
      continue;
    auto rows = c.parts->storage->checkpoints(trial.id);
    if (!rows)
      return rows.error();
    std::move(rows->begin(), rows->end(), std::back_inserter(all));
  }
  return listed(c, all, experiment->smaller_is_better);
}

result<value> one(const call& c) {
  auto row = row_of(c);
  if (!row)
    return row.error();
  // The caller may see a version of a model without its experiment, which the shape tells of.
  auto shape = checkpoint_shape(*row, *(c.parts->all ? *c.parts->all : *c.parts).storage);
  return shape ? result<value>(value{{"checkpoint", std::move(*shape)}}) : shape.error();
}

result<response> sent(result<std::unique_ptr<body_stream>> body, const char* type) {
  if (!body)
    return body.error();
  response out;
  out.content_type = type;
  out.stream = std::move(*body);
  // A task wrote these bytes. So a browser saves them and never shows them as a page of ours.
  out.headers.emplace_back("Content-Disposition", "attachment");
  out.headers.emplace_back("Content-Security-Policy", "sandbox");
  return out;
}

result<response> files(const call& c) {
  auto row = row_of(c);
  if (!row)
    return row.error();
  if (auto path = c.query.first("path"); !path.empty())
    return sent(folder_file(folder_of(row->saved), std::string(path)), "application/octet-stream");
  return sent(folder_archive(folder_of(row->saved), archive_form::tar), "application/x-tar");
}

/// The archive that the stock client downloads. The Accept header chooses its form.
result<response> archive(const call& c) {
  auto row = row_of(c);
  if (!row)
    return row.error();
  const std::string_view accept = c.headers.accept;
  const auto wants = [&](const char* type) { return accept.find(type) != accept.npos; };
  if (wants("application/zip"))
    return sent(folder_archive(folder_of(row->saved), archive_form::zip), "application/zip");
  if (wants("application/x-tar"))
    return sent(folder_archive(folder_of(row->saved), archive_form::tar), "application/x-tar");
  if (wants("application/gzip") || wants("*/*") || accept.empty())
    return sent(folder_archive(folder_of(row->saved), archive_form::tar_gz), "application/gzip");
  return error{errc::invalid, "Accept has to name application/gzip, application/x-tar or application/zip"};
}

} // namespace

std::vector<route> checkpoint_routes() {
  return {
    {"GET",
     "/api/v1/trials/{trialId}/checkpoints",
     {action::view, thing::trial},
     answer_with(of_trial),
     "",
     "v1GetTrialCheckpointsResponse",
     "A trial's checkpoints."},
    {"GET",
     "/api/v1/experiments/{experimentId}/checkpoints",
     {action::view, thing::experiment},
     answer_with(of_experiment),
     "",
     "v1GetExperimentCheckpointsResponse",
     "An experiment's checkpoints."},
    {"GET",
     "/api/v1/checkpoints/{checkpointUuid}",
     {action::view, thing::checkpoint},
     answer_with(one),
     "",
     "v1GetCheckpointResponse",
     "One checkpoint."},
    {"GET",
     "/checkpoints/{checkpointUuid}",
     {action::view, thing::files},
     respond_with(archive),
     "",
     "archive",
     "Its files as tar.gz, tar or zip, by Accept."},
    {"GET",
     "/troupe/v1/checkpoints/{checkpointUuid}/files",
     {action::view, thing::files},
     respond_with(files),
     "",
     "archive",
     "Its files as a tar, or one file with ?path=."},
  };
}

} // namespace troupe::api
