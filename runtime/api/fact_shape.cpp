#include "runtime/api/fact_shape.hpp"

#include "model/config/secrets.hpp"

namespace troupe::api {
namespace {

constexpr std::size_t most_known = 100'000;

const char* name(search_input input) {
  switch (input) {
  case search_input::started:
    return "started";
  case search_input::validated:
    return "validated";
  case search_input::exited_early:
    return "exitedEarly";
  case search_input::exited:
    return "exited";
  case search_input::checkpointed:
    return "checkpointed";
  case search_input::ordered:
    return "ordered";
  case search_input::continued:
    return "continued";
  }
  return "started";
}

value placements(const std::vector<placement>& on) {
  value list = value::array();
  for (const auto& part : on)
    list.push_back({{"agent", part.agent}, {"slots", part.slots}});
  return list;
}

value time_or_null(time_point at) { return at == time_point{} ? value(nullptr) : value(to_rfc3339(at)); }

// There is one `fact_fields` for each fact: it gives the fact's fields by name, without `at`. The
// configuration and source of an experiment are left out, because they are large and never change.
value fact_fields(const experiment_created& x) {
  // The number of a key (`numbered_key`) would tell of experiments that not everybody sees.
  const auto key = x.key.substr(0, x.key.find('\0'));
  return {{"id", x.id.value},     {"name", x.name}, {"owner", x.owner},        {"by", x.owner},
          {"context", x.context}, {"key", key},     {"parent", x.parent.value}};
}
value fact_fields(const experiment_swept& x) { return {{"experiment", x.id.value}}; }
value fact_fields(const agent_joined& x) {
  return {{"agent", x.agent}, {"id", x.id}, {"slots", x.slots}, {"host", x.host}, {"pool", x.pool}};
}
value fact_fields(const agent_changed& x) {
  return {{"agent", x.agent}, {"draining", x.draining}, {"disabled", x.disabled},
          {"by", x.by},       {"ends", x.ends},         {"ended", x.ended}};
}
value fact_fields(const agent_left& x) { return {{"agent", x.agent}, {"id", x.id}, {"by", x.by}}; }
value fact_fields(const user_changed& x) {
  return {{"by", x.by},
          {"id", x.id.value},
          {"name", x.name},
          {"displayName", x.display_name},
          {"admin", x.admin},
          {"active", x.active},
          {"generation", x.generation}};
}
value fact_fields(const token_changed& x) {
  return {{"by", x.by},           {"user", x.user.value}, {"name", x.name}, {"until", time_or_null(x.until)},
          {"revoked", x.revoked}, {"number", x.number}};
}
value fact_fields(const configuration_changed& x) { return {{"by", x.by}, {"revision", x.revision}}; }
value fact_fields(const setting_changed& x) { return {{"by", x.by}, {"key", x.key}, {"to", x.to}}; }
value fact_fields(const workspace_changed& x) {
  return {{"by", x.by},
          {"id", x.id.value},
          {"name", x.name},
          {"owner", x.owner},
          {"archived", x.archived},
          {"deleted", x.deleted},
          {"pinnedBy", x.pinned_by}};
}
value fact_fields(const project_changed& x) {
  return {{"by", x.by},   {"id", x.id.value}, {"workspace", x.workspace.value}, {"name", x.name},
          {"key", x.key}, {"owner", x.owner}, {"archived", x.archived},         {"deleted", x.deleted}};
}
value fact_fields(const template_changed& x) {
  return {{"by", x.by}, {"name", x.name}, {"workspace", x.workspace.value}, {"deleted", x.deleted}};
}
value fact_fields(const model_changed& x) {
  return {
    {"by", x.by},       {"id", x.id.value},       {"name", x.name},      {"workspace", x.workspace.value},
    {"owner", x.owner}, {"archived", x.archived}, {"deleted", x.deleted}};
}
value fact_fields(const model_version_changed& x) {
  return {{"by", x.by},
          {"model", x.model.value},
          {"version", x.version},
          {"checkpoint", x.checkpoint},
          {"deleted", x.deleted}};
}
value fact_fields(const experiment_moved& x) {
  return {{"by", x.by}, {"id", x.id.value}, {"project", x.project.value}};
}
value fact_fields(const experiment_described& x) {
  value out{{"by", x.by},         {"id", x.id.value}, {"name", x.name},        {"description", x.description},
            {"labels", x.labels}, {"notes", x.notes}, {"archived", x.archived}};
  for (const auto& [key, number] : {std::pair{"saveExperimentBest", x.save_experiment_best},
                                    {"saveTrialBest", x.save_trial_best},
                                    {"saveTrialLatest", x.save_trial_latest}})
    if (number >= 0)
      out[key] = number;
  return out;
}
const char* name(deletion_step step) {
  switch (step) {
  case deletion_step::none:
    return "none";
  case deletion_step::ordered:
    return "ordered";
  case deletion_step::failed:
    return "failed";
  case deletion_step::done:
    return "done";
  }
  return "none";
}
template <class Id>
value numbers(const std::vector<Id>& ids) {
  value list = value::array();
  for (const auto id : ids)
    list.push_back(id.value);
  return list;
}
value fact_fields(const experiment_continued& x) {
  value trials = value::array();
  for (const auto& id : x.trials)
    trials.push_back(id.value);
  return {{"by", x.by}, {"experiment", x.id.value}, {"number", x.number}, {"trials", std::move(trials)}};
}
value fact_fields(const experiment_resumed& x) { return {{"number", x.number}, {"trials", x.trials.size()}}; }
value fact_fields(const trial_continued& x) { return {{"number", x.number}, {"run", x.run.value}}; }
value fact_fields(const trial_heard&) { return value::object(); }
value fact_fields(const log_policy_matched& x) {
  return {{"run", x.run.value},
          {"policy", x.policy},
          {"pattern", x.pattern},
          {"line", x.line},
          {"excludeAgent", x.exclude_agent},
          {"cancelRetries", x.cancel_retries}};
}
value fact_fields(const experiment_deleted& x) {
  return {
    {"by", x.by}, {"id", x.id.value}, {"step", name(x.step)}, {"why", x.why}, {"trials", numbers(x.trials)}};
}
value fact_fields(const trial_archived& x) {
  return {
    {"by", x.by}, {"experiment", x.experiment.value}, {"trial", x.trial.value}, {"archived", x.archived}};
}
value fact_fields(const trial_deleted& x) {
  return {{"by", x.by},
          {"experiment", x.experiment.value},
          {"trial", x.trial.value},
          {"step", name(x.step)},
          {"why", x.why}};
}
value fact_fields(const checkpoint_files_removed& x) {
  return {{"by", x.by},
          {"id", to_string(x.id)},
          {"step", name(x.step)},
          {"experiment", x.experiment.value},
          {"cause", x.cause},
          {"checkpoints", x.checkpoints},
          {"globs", x.globs},
          {"removed", x.removed},
          {"failed", x.failed},
          {"why", x.why},
          {"trial", x.trial.value}};
}
value fact_fields(const log_retention_changed& x) {
  return {{"by", x.by}, {"experiment", x.experiment.value}, {"trial", x.trial.value}, {"days", x.days}};
}
value fact_fields(const group_changed& x) {
  return {{"by", x.by},
          {"id", x.id.value},
          {"name", x.name},
          {"members", numbers(x.members)},
          {"deleted", x.deleted}};
}
value fact_fields(const roles_changed& x) {
  return {{"by", x.by},
          {"role", x.role},
          {"user", x.user.value},
          {"group", x.group.value},
          {"workspace", x.workspace.value},
          {"deleted", x.deleted}};
}
value fact_fields(const policy_changed& x) {
  return {{"by", x.by},
          {"workspace", x.workspace.value},
          {"kind", x.kind},
          {"policies", config::policies_without_secrets(x.policies)}};
}
value fact_fields(const pool_bound& x) {
  return {{"by", x.by}, {"pool", x.pool}, {"workspaces", numbers(x.workspaces)}};
}
// The address of a webhook is left out, because it may hold a secret of the receiver.
value fact_fields(const webhook_changed& x) {
  return {{"by", x.by},
          {"id", x.id.value},
          {"name", x.name},
          {"workspace", x.workspace.value},
          {"triggers", x.triggers},
          {"deleted", x.deleted}};
}
value fact_fields(const webhook_event& x) { // the master sends the event, whoever caused it
  return {
    {"by", "troupe"}, {"id", x.id}, {"webhook", x.webhook.value}, {"step", name(x.step)}, {"why", x.why}};
}
value fact_fields(const cluster_message_changed& x) {
  return {{"by", x.by}, {"message", x.message}, {"from", x.from}, {"until", x.until}};
}
value fact_fields(const user_setting_changed& x) {
  return {{"by", x.by}, {"user", x.user.value}, {"key", x.key}, {"path", x.path}};
}
value fact_fields(const project_visited& x) { return {{"user", x.user.value}, {"project", x.project.value}}; }
value fact_fields(const trial_source_declared& x) {
  return {{"by", x.by},     {"trial", x.trial.value}, {"checkpoint", x.checkpoint},
          {"kind", x.kind}, {"model", x.model.value}, {"version", x.version}};
}
value fact_fields(const checkpoint_described& x) {
  return {{"by", x.by}, {"uuid", x.uuid}, {"metadata", x.metadata}};
}
value fact_fields(const experiment_changed& x) {
  return {{"state", troupe::name(x.state)}, {"why", x.why}, {"by", x.by}};
}
value fact_fields(const search_stepped& x) {
  value created = value::array(), stopped = value::array();
  for (const auto& t : x.created)
    created.push_back({{"trial", t.trial.value},
                       {"key", t.key},
                       {"hparams", t.hparams},
                       {"seed", t.seed},
                       {"sourceCheckpoint", t.source_checkpoint}});
  for (const auto& t : x.stopped)
    stopped.push_back({{"trial", t.trial.value},
                       {"why", t.why},
                       {"rung", t.rung},
                       {"units", t.units},
                       {"metric", t.metric},
                       {"needed", t.needed}});
  value paused = value::array(), resumed = value::array(), perturbed = value::array();
  for (auto id : x.paused)
    paused.push_back(id.value);
  for (const auto& t : x.resumed)
    resumed.push_back({{"trial", t.trial.value}, {"until", t.until}});
  for (const auto& t : x.perturbed)
    perturbed.push_back({{"trial", t.trial.value},
                         {"source", t.source.value},
                         {"checkpoint", t.checkpoint},
                         {"steps", t.steps},
                         {"hparams", t.hparams},
                         {"number", t.number}});
  return {{"input", name(x.input)},     {"trial", x.trial.value}, {"row", x.row},
          {"steps", x.steps},           {"metrics", x.metrics},   {"reason", x.reason},
          {"created", created},         {"stopped", stopped},     {"shutDown", x.shut_down},
          {"cancel", x.cancel},         {"failure", x.failure},   {"progress", x.progress},
          {"paused", paused},           {"resumed", resumed},     {"perturbed", perturbed},
          {"checkpoint", x.checkpoint}, {"time", x.time}};
}
value fact_fields(const trial_activated&) { return value::object(); }
value fact_fields(const trial_paused&) { return value::object(); }
value fact_fields(const trial_stop_ordered& x) {
  return {{"outcome", troupe::name(x.outcome)}, {"kill", x.kill}, {"why", x.why}, {"by", x.by}};
}
value fact_fields(const trial_perturbed& x) {
  return {{"number", x.number},
          {"run", x.run.value},
          {"checkpoint", x.checkpoint},
          {"steps", x.steps},
          {"hparams", x.hparams}};
}
value fact_fields(const run_started& x) {
  return {{"run", x.run.value}, {"fromCheckpoint", x.from_checkpoint}, {"fromSteps", x.from_steps}};
}
value fact_fields(const checkpoint_recorded& x) {
  return {{"run", x.run.value},
          {"saved",
           {{"uuid", x.saved.uuid},
            {"steps", x.saved.steps},
            {"files", x.saved.files},
            {"metadata", x.saved.metadata},
            {"path", x.saved.path},
            {"place", {{"store", x.saved.place.store}, {"key", x.saved.place.key}}}}}};
}
value fact_fields(const checkpoint_changed& x) {
  return {{"uuid", x.uuid}, {"files", x.files}, {"by", x.by}};
}
value fact_fields(const trial_metadata_set& x) { return {{"metadata", x.metadata}, {"by", x.by}}; }
value fact_fields(const trial_progressed& x) { return {{"progress", x.progress}}; }
value fact_fields(const allocation_ready&) { return value::object(); }
value fact_fields(const allocation_yielded& x) { return {{"outside", x.outside}}; }
value fact_fields(const allocation_gave_up&) { return value::object(); }
value fact_fields(const part_made_daemon& x) { return {{"agent", x.agent}}; }
value fact_fields(const member_lost& x) { return {{"agent", x.agent}, {"rank", x.rank}, {"why", x.why}}; }
value fact_fields(const experiment_resources_changed& x) {
  return {{"by", x.by},
          {"priority", x.priority ? value(x.priority) : value()},
          {"weight", x.weight},
          {"max_slots", x.max_slots < 0 ? value() : value(x.max_slots)},
          {"pool", x.pool}};
}
value fact_fields(const allocation_preempted& x) {
  return {{"for", x.wanted_by ? value(to_string(x.wanted_by)) : value()},
          {"reason", x.reason},
          {"detail", x.detail}};
}
value fact_fields(const allocation_resized& x) {
  return {{"generation", x.generation},
          {"members", x.members},
          {"ranks", x.ranks},
          {"later", x.later},
          {"why", x.why}};
}
value fact_fields(const run_ended& x) {
  return {{"run", x.run.value}, {"why", troupe::name(x.why)}, {"restarts", x.restarts},
          {"losses", x.losses}, {"detail", x.detail},         {"retryAt", time_or_null(x.retry_at)}};
}
value fact_fields(const trial_ended& x) {
  return {{"state", troupe::name(x.state)}, {"why", x.why}, {"exitReason", x.exit_reason}};
}
value fact_fields(const task_created& x) {
  // What removes files of checkpoints runs for their owner; somebody else may have ordered it, or the policy.
  const bool collects = x.id.kind() == task_kind::checkpoint_gc && x.details.is_object();
  return {{"id", to_string(x.id)},
          {"kind", troupe::name(x.id.kind())},
          {"name", x.name},
          {"owner", x.owner},
          {"by", collects ? x.details.value("by", value(x.owner)) : value(x.owner)},
          {"workspace", x.workspace.value},
          {"context", x.context},
          {"pool", x.pool},
          {"parent", x.parent ? value(to_string(x.parent)) : value()},
          {"forkedFrom", x.forked_from ? value(to_string(x.forked_from)) : value()},
          {"noPause", x.no_pause == 1}};
}
value fact_fields(const task_ready& x) {
  value out{{"run", x.run.value}};
  if (!x.runs_as.empty())
    out["account"] = x.runs_as[0].user;
  return out;
}
value fact_fields(const task_active&) { return value::object(); }
value fact_fields(const task_paused& x) { return {{"paused", x.paused}, {"by", x.by}}; }
value fact_fields(const task_stop_ordered& x) { return {{"why", x.why}, {"by", x.by}}; }
value fact_fields(const task_prioritized& x) { return {{"by", x.by}, {"priority", x.priority}}; }
value fact_fields(const task_ended& x) {
  return {{"state", troupe::name(x.state)}, {"exitCode", x.exit_code}, {"why", x.why}};
}
value fact_fields(const allocation_placed& x) {
  return {{"on", placements(x.on)},
          {"pool", x.pool},
          {"backfilled", x.backfilled},
          {"home", x.home.empty() ? value() : value(x.home)}};
}
value fact_fields(const instance_changed& x) {
  return {{"pool", x.pool},   {"what", x.what}, {"order", x.order},
          {"count", x.count}, {"ids", x.ids},   {"why", x.why}};
}
value fact_fields(const allocation_closed& x) {
  return {{"why", troupe::name(x.why)}, {"exitCode", x.exit_code},      {"detail", x.detail},
          {"finished", x.finished},     {"unplaceable", x.unplaceable}, {"unbegun", x.unbegun}};
}

/// The workspace, model or user that a fact of the stream "cluster" is about, as the name of a stream; empty
/// where it is about none of these.
template <class T>
std::string subject_of(const T& x) {
  if constexpr (std::is_same_v<T, workspace_changed>)
    return "workspace/" + to_string(x.id);
  else if constexpr (std::is_same_v<T, project_changed>)
    return "workspace/" + to_string(x.workspace);
  else if constexpr (std::is_same_v<T, model_changed>)
    return "model/" + to_string(x.id);
  else if constexpr (std::is_same_v<T, model_version_changed>)
    return "model/" + to_string(x.model);
  else if constexpr (std::is_same_v<T, user_changed>)
    return "user/" + to_string(x.id);
  else if constexpr (std::is_same_v<T, token_changed> || std::is_same_v<T, user_setting_changed> ||
                     std::is_same_v<T, project_visited>)
    return "user/" + to_string(x.user);
  else
    return {};
}

} // namespace

result<value> fact_shape(const storage::committed_fact& one) {
  auto decoded = decode(one.bytes);
  if (!decoded)
    return decoded.error();
  auto x = std::visit(
    [&](const auto& fact) {
      auto named = fact_fields(fact);
      named["type"] = fact.tag;
      named["at"] = to_rfc3339(fact.at);
      auto subject = subject_of(fact);
      named["entity"] = subject.empty() ? one.entity : std::move(subject);
      return named;
    },
    *decoded);
  x["sequence"] = one.sequence;
  x["number"] = one.number;
  return x;
}

experiment_id experiment_of(const storage::committed_fact& one, const value& shape,
                            const storage::reader& storage, std::map<task_id, experiment_id>& known) {
  const std::string_view entity = one.entity;
  const auto slash = entity.find('/');
  const auto kind = entity.substr(0, slash),
             rest = slash == entity.npos ? std::string_view{} : entity.substr(slash + 1);
  if (kind == "experiment")
    return parse_id<experiment_id>(rest);
  if (kind == cluster_entity) {
    const auto type = shape.value("type", std::string());
    for (const char* own :
         {experiment_created::tag, experiment_moved::tag, experiment_described::tag, experiment_deleted::tag})
      if (type == own)
        return {shape.at("id").get<std::uint64_t>()};
    return {};
  }
  const auto task = kind == "allocation" ? parse_allocation(rest).task : parse_task(rest);
  auto found = known.find(task);
  if (found != known.end())
    return found->second;
  if (known.size() >= most_known)
    known.clear();
  auto row = storage.task(task);
  return row ? known[task] = row->experiment : experiment_id{};
}

} // namespace troupe::api
