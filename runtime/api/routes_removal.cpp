// Routes that delete what is stored (experiments, TensorBoard files, files of checkpoints) and that say how
// long logs are kept; and routes by which people describe checkpoints and trials declare those that they use.

#include "actors/retention/held_checkpoints.hpp"
#include "actors/retention/retention.hpp"
#include "model/config/cluster_config.hpp"
#include "runtime/api/checkpoint_uuid.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"
#include "storage/keys.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

constexpr std::size_t most_checkpoints = 10'000;

void delete_experiment(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  if (auto fine = allowed(*c, action::remove, {thing::experiment, to_string(row->id), row->owner}); !fine)
    return back(failure(fine.error()));
  command(c, back, commands::experiment_delete{row->id}, {}, [](const error& why) {
    return why.code == errc::conflict ? failure(failed_precondition, why.what) : failure(why);
  });
}

void delete_tensorboards(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  command(c, back, commands::experiment_erase_tensorboards{row->id}, {}, [](const error& why) {
    return why.code == errc::conflict ? failure(failed_precondition, why.what) : failure(why);
  });
}

/// Deletes checkpoints. `with_globs`: deletes only the files that match; without it all files are deleted.
handler delete_checkpoints(bool with_globs) {
  return [with_globs](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    commands::checkpoint_remove with;
    with.uuids = f.texts("checkpointUuids");
    if (with_globs) {
      with.globs = f.texts("checkpointGlobs");
      // No globs: the list of files is only read again, which the client calls "refreshing resources".
      with.refresh = with.globs.empty();
    }
    if (f.bad())
      return back(failure(*f.bad()));
    if (with.uuids.size() > most_checkpoints || with.globs.size() > 100)
      return back(failure({errc::invalid, "at most 10000 checkpoints and 100 globs at once"}));
    for (auto& uuid : with.uuids)
      uuid = stored_uuid(*c->parts->storage, std::move(uuid));
    std::sort(with.uuids.begin(), with.uuids.end());
    with.uuids.erase(std::unique(with.uuids.begin(), with.uuids.end()), with.uuids.end());
    std::string missing;
    for (const auto& uuid : with.uuids)
      if (!c->parts->storage->checkpoint(uuid))
        missing += (missing.empty() ? "" : ", ") + uuid.substr(0, 100);
    if (!missing.empty())
      return back(failure({errc::not_found, "checkpoints not found: " + missing}));
    auto versions = c->parts->storage->model_versions();
    if (!versions)
      return back(failure(versions.error()));
    for (const auto& one : *versions)
      if (std::binary_search(with.uuids.begin(), with.uuids.end(), one.checkpoint))
        with.models.push_back(one.model);
    command(c, back, std::move(with));
  };
}

result<checkpoint_row> checkpoint_with(const call& c, const std::string& uuid) {
  auto row = c.parts->storage->checkpoint(uuid);
  if (!row && row.error().code == errc::not_found)
    return error{errc::not_found, "checkpoint '" + uuid.substr(0, 100) + "' not found"};
  return row;
}

void set_metadata(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  const std::string uuid(c->named("checkpointUuid"));
  fields f{*body};
  f.need("checkpoint");
  fields inside{f.object("checkpoint"), "checkpoint"};
  inside.need("metadata"); // the new metadata replaces the old
  commands::checkpoint_describe with;
  with.uuid = uuid;
  with.metadata = inside.object("metadata");
  for (const auto* part : {&f, &inside})
    if (part->bad())
      return back(failure(*part->bad()));
  if (auto row = checkpoint_with(*c, uuid); !row)
    return back(failure(row.error()));
  command(c, back, std::move(with), [c, uuid](value) -> result<value> {
    auto row = checkpoint_with(*c, uuid);
    auto shape = row ? checkpoint_shape(*row, *c->parts->storage) : result<value>(row.error());
    return shape ? result<value>(value{{"checkpoint", std::move(*shape)}}) : shape.error();
  });
}

// ---- trials that use a checkpoint

result<void> check_version(const call& c, model_id model, std::uint64_t number) {
  auto versions = c.parts->storage->model_versions();
  if (!versions)
    return versions.error();
  const bool known = std::any_of(versions->begin(), versions->end(), [&](const auto& one) {
    return one.model == model && one.version == number;
  });
  if (known)
    return {};
  return error{errc::not_found,
               "version " + std::to_string(number) + " of model " + to_string(model) + " not found"};
}

void declare_source(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("trialSourceInfo");
  fields inside{f.object("trialSourceInfo"), "trialSourceInfo"};
  commands::trial_source_declare with;
  with.trial = inside.id<trial_id>("trialId");
  with.checkpoint = stored_uuid(*c->parts->storage, inside.text("checkpointUuid"));
  const auto kind = inside.text("trialSourceInfoType", "TRIAL_SOURCE_INFO_TYPE_INFERENCE");
  with.kind = kind.ends_with("FINE_TUNING") ? "FINE_TUNING" : "INFERENCE";
  with.description = inside.text("description");
  with.model = inside.id<model_id>("modelId");
  with.version = static_cast<std::uint64_t>(std::max<std::int64_t>(inside.number("modelVersion"), 0));
  for (const auto* part : {&f, &inside})
    if (part->bad())
      return back(failure(*part->bad()));
  if (c->by.is_task() && with.trial != c->by.allocation.trial())
    return back(failure({errc::denied, "a task's token does not open this"}));
  auto trial = c->parts->storage->trial(with.trial);
  if (!trial)
    return back(failure({errc::not_found, "trial '" + to_string(with.trial) + "' not found"}));
  if (auto row = checkpoint_with(*c, with.checkpoint); !row)
    return back(failure(row.error()));
  if (with.version)
    if (auto fine = check_version(*c, with.model, with.version); !fine)
      return back(failure(fine.error()));
  const auto answer = value{{"trialId", with.trial.value}, {"checkpointUuid", with.checkpoint}};
  command(c, back, std::move(with), [answer](value) -> result<value> { return answer; });
}

/// The reports of trials that declared that they use this checkpoint.
result<value> metrics_of_users(const call& c, const std::string& uuid) {
  auto declared = storage::records_of<trial_source_declared>(*c.parts->storage, uuid);
  if (!declared)
    return declared.error();
  const std::string kind(c.query.first("trialSourceInfoType"));
  const std::string group(c.query.first("metricGroup"));
  value reports = value::array();
  for (const auto& one : *declared) {
    if (!kind.empty() && !kind.ends_with("UNSPECIFIED") && !kind.ends_with(one.kind))
      continue;
    auto trial = c.parts->storage->trial(one.trial);
    if (!trial && trial.error().code == errc::not_found)
      continue; // the trial was deleted meanwhile
    if (!trial)
      return trial.error();
    auto gone = c.parts->columns->rollback(*trial, *c.parts->storage);
    if (!gone)
      return gone.error();
    for (std::uint64_t after = 0;;) {
      auto rows = c.parts->storage->metrics(one.trial, after, 1000, group);
      if (!rows)
        return rows.error();
      for (const auto& row : *rows)
        if (after = row.row; !(*gone)->archives(row))
          reports.push_back(metric_report_shape(row, trial->id, false, true));
      if (rows->size() < 1000)
        break;
    }
  }
  return value{{"metrics", std::move(reports)}};
}

result<value> metrics_of_checkpoint(const call& c) {
  auto row = checkpoint_with(c, std::string(c.named("checkpointUuid")));
  return row ? metrics_of_users(c, row->saved.uuid) : row.error();
}

result<value> metrics_of_version(const call& c) {
  auto models = c.parts->storage->models();
  auto versions = c.parts->storage->model_versions();
  if (!models || !versions)
    return models ? versions.error() : models.error();
  const std::string name(c.named("modelName"));
  const auto number = parse_id<model_id>(c.named("modelVersionNum")).value;
  for (const auto& model : *models)
    if (model.name == name || to_string(model.id) == name)
      for (const auto& version : *versions)
        if (version.model == model.id && version.version == number)
          return metrics_of_users(c, version.checkpoint);
  return error{errc::not_found,
               "version " + std::to_string(number) + " of model '" + name.substr(0, 100) + "' not found"};
}

// ---- how long logs are kept

std::int64_t days_in(fields& f) {
  f.need("numDays");
  const auto days = f.number("numDays");
  if (days < -1 || days > 32767)
    f.fault("numDays", "has to be -1 (for ever) to 32767");
  return days;
}

void retain_experiment(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  auto body = parse_object(c->body);
  if (!row || !body)
    return back(failure(row ? body.error() : row.error()));
  fields f{*body};
  commands::log_retain with{row->id, {}, days_in(f)};
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with));
}

void retain_trial(const call_ptr& c, const reply& back) {
  auto row = named_trial(*c);
  auto body = parse_object(c->body);
  if (!row || !body)
    return back(failure(row ? body.error() : row.error()));
  fields f{*body};
  commands::log_retain with{row->experiment, row->id, days_in(f)};
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with));
}

result<value> remaining_days(const call& c) {
  auto trial = named_trial(c);
  if (!trial)
    return trial.error();
  auto experiment = c.parts->storage->experiment(trial->experiment);
  if (!experiment)
    return experiment.error();
  auto said =
    storage::records_of<log_retention_changed>(*c.parts->storage, storage::keys::one(experiment->id.value));
  if (!said)
    return said.error();
  auto configuration = c.parts->storage->configuration();
  if (!configuration)
    return configuration.error();
  const auto usual =
    *configuration ? config::log_retention((*configuration)->configuration) : std::optional<duration>{};
  const auto life = log_life(retention_of(experiment->config), *said, trial->id, usual);
  if (!life)
    return value{{"remainingDays", -1}};
  if (trial->ended == time_point{})
    return value{{"remainingDays", nullptr}};
  const auto left = std::chrono::ceil<std::chrono::days>(trial->ended + *life - c.now).count();
  return value{{"remainingDays", std::max<std::int64_t>(0, left)}};
}

// ---- a preview of the collection of checkpoints

result<value> preview_gc(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto policy = retention_of(row->config);
  for (auto [key, to] : {std::pair{"saveExperimentBest", &policy.experiment_best},
                         {"saveTrialBest", &policy.trial_best},
                         {"saveTrialLatest", &policy.trial_latest}}) {
    auto number = c.query.number(key, static_cast<std::int64_t>(*to));
    if (!number)
      return number.error();
    if (*number < 0)
      return error{errc::invalid, to_snake(key) + " has to be 0 or more"};
    *to = static_cast<std::uint64_t>(*number);
  }
  auto trials = c.parts->storage->trials(row->id);
  if (!trials)
    return trials.error();
  std::vector<checkpoint_standing> all;
  std::map<std::string, value> shapes;
  for (const auto& trial : *trials) {
    auto saved = c.parts->storage->checkpoints(trial.id);
    if (!saved)
      return saved.error();
    for (const auto& one : *saved) {
      if (one.state == checkpoint_state::deleted)
        continue;
      auto shape = checkpoint_shape(one, *c.parts->storage);
      if (!shape && shape.error().code == errc::not_found && !is_leaving(c, row->id))
        continue; // its trial alone is being deleted
      if (!shape)
        return shape.error();
      const auto& training = (*shape)["training"];
      auto metric = training.find("searcherMetric");
      all.push_back({trial.id, one.saved.uuid, one.saved.steps,
                     metric == training.end() ? std::nullopt : number_in(*metric)});
      shapes[one.saved.uuid] = {{"UUID", one.saved.uuid},
                                {"TrialID", trial.id.value},
                                {"ExperimentID", row->id.value},
                                {"StepsCompleted", one.saved.steps},
                                {"State", "COMPLETED"},
                                {"ReportTime", to_rfc3339(one.at)},
                                {"Resources", one.saved.files},
                                {"Metadata", one.saved.metadata},
                                {"ValidationMetrics", training.value("validationMetrics", value())}};
    }
  }
  value list = value::array();
  const auto unwanted = superfluous(policy, row->smaller_is_better, all);
  auto held = held_checkpoints(*c.parts->storage, unwanted);
  if (!held)
    return held.error();
  for (const auto& uuid : unwanted)
    if (!held->contains(uuid))
      list.push_back(std::move(shapes[uuid]));
  return value{{"checkpoints", std::move(list)}, {"metric_name", row->metric}};
}

result<response> model_definition(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  response out;
  if (!row->context.empty()) {
    auto bytes = c.parts->storage->blob(row->context);
    if (!bytes)
      return bytes.error();
    out.body = std::move(*bytes);
  }
  out.content_type = "application/x-gtar";
  out.headers.emplace_back("Content-Disposition",
                           "attachment; filename=experiment_" + to_string(row->id) + "_model_def.tar.gz");
  out.headers.emplace_back("Content-Security-Policy", "sandbox");
  return out;
}

route patient(route row) {
  row.patience = std::chrono::seconds{600};
  return row;
}

} // namespace

std::vector<route> removal_routes() {
  const authority::need change{action::change, thing::experiment}, remove{action::remove, thing::checkpoint};
  return {
    asks_again({"DELETE",
                "/api/v1/experiments/{experimentId}",
                {action::remove, thing::experiment},
                delete_experiment,
                "",
                "Empty",
                "Deletes an ended experiment, its checkpoints, reports and logs, behind the answer."}),
    patient({"DELETE", "/api/v1/experiments/{experimentId}/tensorboard-files", change, delete_tensorboards,
             "", "Empty", "Deletes the TensorBoard files of an ended experiment."}),
    patient({"POST", "/api/v1/checkpoints/rm", remove, delete_checkpoints(true),
             "v1CheckpointsRemoveFilesRequest", "Empty",
             "Deletes the files of checkpoints that match a glob."}),
    patient({"DELETE", "/api/v1/checkpoints", remove, delete_checkpoints(false), "v1DeleteCheckpointsRequest",
             "Empty", "Deletes checkpoints."}),
    {"POST",
     "/api/v1/checkpoints/{checkpointUuid}/metadata",
     {action::change, thing::checkpoint},
     set_metadata,
     "v1PostCheckpointMetadataRequest",
     "v1PostCheckpointMetadataResponse",
     "Replaces the metadata of a checkpoint."},
    {"GET",
     "/api/v1/checkpoints/{checkpointUuid}/metrics",
     {action::view, thing::experiment},
     answer_with(metrics_of_checkpoint),
     "",
     "v1GetTrialMetricsByCheckpointResponse",
     "Reports of trials that use a checkpoint."},
    {"GET",
     "/api/v1/models/{modelName}/versions/{modelVersionNum}/metrics",
     {action::view, thing::experiment},
     answer_with(metrics_of_version),
     "",
     "v1GetTrialMetricsByModelVersionResponse",
     "Reports of trials that use a version of a model."},
    asks_again({"POST",
                "/api/v1/trial-source-info",
                {action::change, thing::trial},
                declare_source,
                "v1ReportTrialSourceInfoRequest",
                "v1ReportTrialSourceInfoResponse",
                "Says that a trial uses a checkpoint."}),
    {"PUT", "/api/v1/experiments/{experimentId}/retain_logs", change, retain_experiment,
     "v1PutExperimentRetainLogsRequest", "Empty", "Says how many days the logs of its trials are kept."},
    {"PUT",
     "/api/v1/trials/{trialId}/retain_logs",
     {action::change, thing::experiment},
     retain_trial,
     "v1PutTrialRetainLogsRequest",
     "Empty",
     "Says how many days the log of a trial is kept."},
    {"GET",
     "/api/v1/trials/{trialId}/remaining_log_retention_days",
     {action::view, thing::trial},
     answer_with(remaining_days),
     "",
     "v1GetTrialRemainingLogRetentionDaysResponse",
     "Days until the log of a trial is erased: -1 never, null while it runs."},
    {"GET",
     "/experiments/{experimentId}/preview_gc",
     {action::view, thing::experiment},
     answer_with(preview_gc),
     "",
     "PreviewGc",
     "The checkpoints that a storage policy would not keep."},
    {"GET",
     "/experiments/{experimentId}/model_def",
     {action::view, thing::files},
     respond_with(model_definition),
     "",
     "archive",
     "The files that it was submitted with, as tar.gz."},
  };
}

} // namespace troupe::api
