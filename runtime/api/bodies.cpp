#include "runtime/api/bodies.hpp"

#include "model/commands/table.hpp"
#include "runtime/api/http.hpp"
#include "runtime/api/schema_words.hpp"

#include <algorithm>
#include <map>

namespace troupe::api {
namespace taking { // keeps the short names below from clashing with those of other files
namespace {

using namespace schema;

struct property {
  const char* name;
  value schema;
  const char* doc = "";
  bool required = false;
};

value object(std::vector<property> all) {
  value out{{"type", "object"}}, required = value::array();
  for (auto& one : all) {
    auto& to = out["properties"][one.name] = std::move(one.schema);
    if (*one.doc)
      to["description"] = one.doc;
    if (one.required)
      required.push_back(one.name);
  }
  if (!required.empty())
    out["required"] = std::move(required);
  return out;
}

/// The schema of a map of numbers by path, each a number or a text.
value sizes() {
  return {{"type", "object"}, {"additionalProperties", {{"type", "string"}, {"format", "int64"}}}};
}

/// The schema of a command as our own routes name its fields, without those that the API fills in.
value of_command(value schema, std::initializer_list<const char*> filled_in = {}) {
  value properties = value::object();
  for (auto& one : schema["properties"].items())
    if (std::none_of(filled_in.begin(), filled_in.end(), [&](const char* x) { return one.key() == x; }))
      properties[to_camel(one.key())] = one.value();
  schema["properties"] = std::move(properties);
  return schema;
}

value trial_metrics() {
  return object({{"trialId", whole(), "as in the path"},
                 {"trialRunId", whole(), "the caller's own run"},
                 {"stepsCompleted", whole(), "batches that were trained"},
                 {"reportTime", text(), "RFC 3339; missing: now"},
                 {"metrics",
                  object({{"avgMetrics", any_object(), "numbers and values by name"},
                          {"batchMetrics", list_of(any_object()), "of each batch"}}),
                  "", true}});
}

value unix_account() {
  return object(
    {{"agentUid", whole()}, {"agentGid", whole()}, {"agentUser", text()}, {"agentGroup", text()}});
}

/// Adds the bodies of users, groups, roles, policies and removals.
void add_bodies_of_people(std::map<std::string, value>& all) {
  const auto ids = list_of(whole());
  const auto texts = list_of(text());
  const auto days = whole();
  all["v1CheckpointsRemoveFilesRequest"] =
    object({{"checkpointUuids", texts, "", true},
            {"checkpointGlobs", texts, "patterns of paths, `**` over folders", true}});
  all["v1DeleteCheckpointsRequest"] = object({{"checkpointUuids", texts, "", true}});
  all["v1PostCheckpointMetadataRequest"] =
    object({{"checkpoint", object({{"uuid", text(), "as in the path"}, {"metadata", any_object(), "", true}}),
             "", true}});
  all["v1ReportTrialSourceInfoRequest"] =
    object({{"trialSourceInfo",
             object({{"trialId", whole(), "", true},
                     {"checkpointUuid", text(), "", true},
                     {"trialSourceInfoType", text(), "TRIAL_SOURCE_INFO_TYPE_INFERENCE or _FINE_TUNING"},
                     {"description", text()},
                     {"modelId", whole()},
                     {"modelVersion", whole()}}),
             "", true}});
  const auto retain = object({{"numDays", days, "-1: for ever", true}});
  all["v1PutExperimentRetainLogsRequest"] = all["v1PutTrialRetainLogsRequest"] = retain;
  all["v1PutExperimentsRetainLogsRequest"] = object({{"numDays", days, "-1: for ever", true},
                                                     {"experimentIds", ids},
                                                     {"filters", any_object(), "in place of the ids"},
                                                     {"projectId", whole(), "as in the path"}});
  all["v1PatchUsersRequest"] = object({{"userIds", ids},
                                       {"activate", flag(), "false: they cannot log in", true},
                                       {"filters", any_object(), "in place of the ids: name, admin"}});
  all["v1PostUserSettingRequest"] = object(
    {{"settings",
      list_of(object(
        {{"key", text(), "", true}, {"value", text(), "empty: it is removed"}, {"storagePath", text()}})),
      "", true}});
  all["v1PostUserActivityRequest"] = object({{"activityType", text(), "ACTIVITY_TYPE_GET"},
                                             {"entityType", text(), "ENTITY_TYPE_PROJECT"},
                                             {"entityId", whole(), "", true}});
  all["v1PostAccessTokenRequest"] =
    object({{"userId", whole(), "missing: the caller"},
            {"lifespan", text(), "as 720h; -1 or missing: 30 days, the longest"},
            {"description", text()}});
  all["v1PatchAccessTokenRequest"] = object({{"tokenId", whole(), "as in the path"},
                                             {"description", text()},
                                             {"setRevoked", flag(), "true: void from now on"}});
  all["v1CreateGroupRequest"] = object({{"name", text(), "", true}, {"addUsers", ids}});
  all["v1UpdateGroupRequest"] = object(
    {{"name", text()}, {"addUsers", ids}, {"removeUsers", ids}, {"groupId", whole(), "as in the path"}});
  all["v1GetGroupsRequest"] = object({{"limit", whole(), "1 to 500", true},
                                      {"offset", whole()},
                                      {"name", text()},
                                      {"userId", whole(), "only groups with this user"}});
  all["v1AssignMultipleGroupsRequest"] =
    object({{"userIds", ids, "", true}, {"addGroups", ids}, {"removeGroups", ids}});
  all["v1ListRolesRequest"] = object({{"limit", whole(), "1 to 500", true}, {"offset", whole()}});
  all["v1SearchRolesAssignableToScopeRequest"] =
    object({{"limit", whole(), "1 to 500", true},
            {"offset", whole()},
            {"workspaceId", whole(), "only roles that can be given in a workspace"}});
  all["v1GetRolesByIDRequest"] = object({{"roleIds", ids, "", true}});
  const auto given = object({{"role", object({{"roleId", whole(), "", true}}), "", true},
                             {"scopeWorkspaceId", whole(), "missing: everywhere"}});
  all["v1AssignRolesRequest"] = all["v1RemoveAssignmentsRequest"] =
    object({{"userRoleAssignments",
             list_of(object({{"userId", whole(), "", true}, {"roleAssignment", given, "", true}}))},
            {"groupRoleAssignments",
             list_of(object({{"groupId", whole(), "", true}, {"roleAssignment", given, "", true}}))}});
  all["v1PutGlobalConfigPoliciesRequest"] = all["v1PutWorkspaceConfigPoliciesRequest"] =
    object({{"configPolicies", text(), "YAML or JSON: invariant_config, constraints", true},
            {"workloadType", text(), "as in the path"},
            {"workspaceId", whole(), "as in the path"}});
  all["v1BindRPToWorkspaceRequest"] = all["v1OverwriteRPWorkspaceBindingsRequest"] =
    all["v1UnbindRPFromWorkspaceRequest"] = object(
      {{"workspaceIds", ids}, {"workspaceNames", texts}, {"resourcePoolName", text(), "as in the path"}});
  all["v1SetClusterMessageRequest"] = object({{"message", text(), "1 to 250 characters", true},
                                              {"startTime", text(), "RFC 3339; missing: now"},
                                              {"endTime", text(), "RFC 3339; missing: never"},
                                              {"duration", text(), "as 2h30m, in place of endTime"}});
}

/// Adds the bodies of searches over experiments and runs, and of actions on runs.
void add_bodies_of_searches(std::map<std::string, value>& all) {
  const auto ids = list_of(whole());
  all["v1SearchExperimentsRequest"] = all["v1SearchRunsRequest"] =
    object({{"projectId", whole(), "missing: all"},
            {"offset", whole()},
            {"limit", whole(), "0: 100, -1: all, -2: none"},
            {"sort", text(), "column=asc|desc, several with commas"},
            {"archived", flag(), "only those that are archived, or are not; missing: as the filter says"},
            {"filter", text(), "JSON: filterGroup, showArchived"}});
  for (const char* verb : {"Kill", "Pause", "Resume", "Archive", "Unarchive", "Delete"})
    all[std::string("v1") + verb + "RunsRequest"] =
      object({{"runIds", ids}, {"filter", text(), "in place of the ids"}, {"projectId", whole()}});
  all["v1MoveRunsRequest"] = object({{"runIds", ids},
                                     {"filter", text(), "in place of the ids"},
                                     {"sourceProjectId", whole()},
                                     {"destinationProjectId", whole(), "", true},
                                     {"skipMultitrial", flag(), "runs of searches stay"}});
  all["v1PreviewHPSearchRequest"] =
    object({{"config", any_object(), "configuration of an experiment", true}, {"seed", whole()}});
}

/// Adds the bodies of tasks that are not trials.
void add_bodies_of_work(std::map<std::string, value>& all) {
  const auto launch = [](std::vector<property> more = {}) {
    std::vector<property> fields{{"config", any_object(), "over the template"},
                                 {"templateName", text()},
                                 {"files", list_of(any_object()), "below its working directory"},
                                 {"workspaceId", whole(), "0: 1"}};
    std::move(more.begin(), more.end(), std::back_inserter(fields));
    return object(std::move(fields));
  };
  const property keys{"data", text(), "base64 of {privateKey, publicKey}, for a shell's own keys"};
  const property preview{"preview", flag(), "true: nothing starts"};
  all["v1LaunchCommandRequest"] = launch({keys});
  all["v1LaunchShellRequest"] = launch({keys});
  all["v1LaunchNotebookRequest"] = launch({preview});
  all["v1LaunchTensorboardRequest"] =
    launch({{"experimentIds", list_of(whole())},
            {"trialIds", list_of(whole())},
            {"filters", any_object(), "as of actions on many experiments"}});
  for (const char* one : {"Command", "Notebook", "Shell", "Tensorboard"})
    all["v1Set" + std::string(one) + "PriorityRequest"] = object({{"priority", whole(), "1 to 99", true}});
  all["v1IdleNotebookRequest"] = object({{"notebookId", text(), "as in the path"}, {"idle", flag()}});
  all["v1CreateGenericTaskRequest"] =
    object({{"config", text(), "YAML; empty: that of forkedFrom", true},
            {"contextDirectory", list_of(any_object()), "below its working directory", true},
            {"projectId", whole()},
            {"forkedFrom", text()},
            {"parentId", text()},
            {"inheritContext", flag(), "the files are those of the parent"},
            {"noPause", flag()}});
  all["v1KillGenericTaskRequest"] =
    object({{"taskId", text(), "as in the path"}, {"killFromRoot", flag(), "the whole tree that it is in"}});
  all["v1AllocationWaitingRequest"] = object({{"allocationId", text(), "as in the path"}});
  all["v1AllocationReadyRequest"] = object(
    {{"allocationId", text(), "as in the path"},
     {"agentUserGroup", unix_account(), "the account that the service runs as: logins to a shell name it"}});
  all["v1PostAllocationProxyAddressRequest"] =
    object({{"allocationId", text(), "as in the path"}, {"proxyAddress", text(), "never dialled"}});
  all["v1NotifyContainerRunningRequest"] = object({{"allocationId", text(), "as in the path"},
                                                   {"requestUuid", text(), "of the caller"},
                                                   {"numPeers", whole(), "how many say so"},
                                                   {"rank", whole()},
                                                   {"nodeName", text()},
                                                   {"data", any_object(), "what the others get", true}});
  all["CreateTask"] =
    object({{"kind", text(), "command, notebook, shell, tensorboard or generic", true},
            {"config", value::object(), "text or object"},
            {"configName", text(), "the file that diagnostics name"},
            {"template", text()},
            {"workspace", whole()},
            {"files", list_of(any_object()), "as the stock client sends them"},
            {"context", text(), "base64 of a tar in place of `files`"},
            {"preview", flag(), "true: nothing starts"},
            {"experimentIds", list_of(whole()), "of a TensorBoard"},
            {"trialIds", list_of(whole()), "of a TensorBoard"},
            {"filters", any_object(), "of a TensorBoard: as of actions on many experiments"},
            {"data", text(), "base64 of {privateKey, publicKey}, for a shell's own keys"},
            {"forkedFrom", text()},
            {"parent", text()},
            {"inheritContext", flag()},
            {"noPause", flag()},
            {"key", text(), "the same key creates once, until a day after the task's end"}});
  all["SetTask"] = object({{"priority", whole(), "1 to 99", true}});
}

std::map<std::string, value> made() {
  using namespace commands;
  std::map<std::string, value> all;
  // ---- bodies of our own routes
  auto create =
    of_command(schema_of<experiment_create>(), {"context_blob", "parent", "unmanaged", "external_id"});
  create["properties"]["config"] = {{"type", "string"}, {"description", "text of the configuration"}};
  create["properties"]["context"] = {
    {"type", "string"}, {"format", "byte"}, {"description", "the files, a tar"}};
  all["CreateExperiment"] = std::move(create);
  all["ConfigurationChange"] = of_command(schema_of<configuration_put>());
  all["FenceClaim"] = of_command(schema_of<fence>());
  all["FenceClaim"].erase("required"); // no field is required: a missing one means no agent
  all["SearchOrders"] =
    object({{"actions", list_of(any_object()), "in the words of `troupe search replay`", true},
            {"upto", whole(), "id of the newest event that they rest on: makes a repeat safe"},
            {"driver", text(), "name of the process that drives the search"},
            {"take_over", flag(), "another driver gives way"}});
  all["ShellLog"] = schema_of<shell_log_set>();
  all["ShellSend"] = schema_of<shell_send>();
  all["ShellActor"] = schema_of<shell_kill>();
  all["ShellSetting"] = schema_of<shell_config>();
  all["ShellDrain"] = schema_of<shell_drain>();
  all["ShellFault"] = schema_of<shell_fault>();
  all["SessionRequest"] = object(
    {{"username", text()}, {"password", text()}, {"code", text(), "of a one-time link, instead of the two"}});
  // ---- bodies of the stock client
  all["string"] = text();
  all["v1LoginRequest"] = object(
    {{"username", text()}, {"password", text()}, {"isHashed", flag(), "the client hashed the password"}});
  const auto user = [](bool made) {
    std::vector<property> fields{{"username", text(), "", made},
                                 {"displayName", text()},
                                 {"admin", flag()},
                                 {"active", flag()},
                                 {"agentUserGroup", unix_account(), "as whom tasks run"}};
    return fields;
  };
  all["v1PostUserRequest"] = object({{"user", object(user(true)), "", true},
                                     {"password", text()},
                                     {"isHashed", flag(), "the client hashed the password"}});
  auto change = user(false);
  change.push_back({"password", text()});
  change.push_back({"isHashed", flag(), "the client hashed the password"});
  all["v1PatchUser"] = object(change);
  all["v1CreateExperimentRequest"] =
    object({{"config", text(), "text of the configuration", true},
            {"modelDefinition",
             list_of(object({{"path", text(), "", true},
                             {"type", whole(), "48: a file, 53: a folder"},
                             {"content", {{"type", "string"}, {"format", "byte"}}},
                             {"mode", whole()},
                             {"mtime", whole()},
                             {"uid", whole()},
                             {"gid", whole()}})),
             "the files"},
            {"activate", flag(), "false: it begins paused"},
            {"validateOnly", flag(), "nothing is created"},
            {"parentId", whole(), "the experiment that it is forked from"},
            {"projectId", whole(), "where it belongs; 0: what the configuration names"},
            {"template", text(), "name of a template below the configuration"},
            {"unmanaged", flag(), "its trials are processes outside of the cluster"}});
  const auto workspace = [&](bool made) {
    return object(
      {{"name", text(), "1 to 80 characters", made},
       {"agentUserGroup", unix_account(), "as whom tasks that start there run; by an admin"},
       {"checkpointStorageConfig", any_object(), "section of a configuration; empty: none of its own"},
       {"defaultComputePool", text()},
       {"defaultAuxPool", text()}});
  };
  all["v1PostWorkspaceRequest"] = workspace(true);
  all["v1PatchWorkspace"] = workspace(false);
  all["v1PostProjectRequest"] =
    object({{"name", text(), "", true},
            {"description", text()},
            {"key", text(), "1 to 5 letters and digits; missing: made from the name"},
            {"workspaceId", whole(), "as in the path"}});
  all["v1PatchProject"] = object({{"name", text()}, {"description", text()}, {"key", text()}});
  all["v1MoveProjectRequest"] =
    object({{"destinationWorkspaceId", whole(), "", true}, {"projectId", whole(), "as in the path"}});
  const auto note = object({{"name", text()}, {"contents", text()}});
  all["v1Note"] = note;
  all["v1PutProjectNotesRequest"] =
    object({{"notes", list_of(note), "all of them"}, {"projectId", whole(), "as in the path"}});
  all["v1PatchExperiment"] = object(
    {{"id", whole(), "as in the path"},
     {"name", text(), "not blank"},
     {"description", text()},
     {"notes", text()},
     {"labels", list_of(text()), "all of them"},
     {"resources",
      object(
        {{"maxSlots", whole(), "null: any number"}, {"priority", whole(), "1 to 99"}, {"weight", number()}}),
      "what it may have of its pool from now on"},
     {"checkpointStorage", any_object(), "refused unless empty"}});
  all["ExperimentResources"] = object({{"priority", whole(), "1 to 99"},
                                       {"weight", number(), "of a fair pool"},
                                       {"maxSlots", whole(), "null: any number"},
                                       {"pool", text(), "its runs go there"}});
  all["v1DisableAgentRequest"] =
    object({{"agentId", text(), "as in the path"},
            {"drain", flag(), "what runs there ends by itself; else it is killed"}});
  all["v1DisableSlotRequest"] =
    object({{"agentId", text(), "as in the path"},
            {"slotId", text(), "as in the path"},
            {"drain", flag(), "what runs there ends by itself; else it is killed"}});
  all["v1UpdateJobQueueRequest"] = object({{"updates",
                                            list_of(object({{"jobId", text(), "", true},
                                                            {"priority", whole()},
                                                            {"weight", number()},
                                                            {"resourcePool", text()},
                                                            {"aheadOf", text(), "refused"},
                                                            {"behindOf", text(), "refused"}})),
                                            "in this order"}});
  all["TaskLogLines"] = list_of(object({{"task_id", text()},
                                        {"timestamp", text(), "RFC 3339; missing: now"},
                                        {"log", text()},
                                        {"level", text()},
                                        {"stdtype", text()},
                                        {"rank_id", whole()},
                                        {"rank", whole(), "counts where rank_id is missing"}}));
  all["v1PatchMasterConfigRequest"] = object(
    {{"config", object({{"log", object({{"level", text(), "LOG_LEVEL_INFO ..."}, {"color", flag()}})}})},
     {"fieldMask", object({{"paths", list_of(text()), "log, log.level or log.color"}})}});
  all["v1ContinueExperimentRequest"] =
    object({{"id", whole(), "number of the experiment", true},
            {"overrideConfig", text(), "YAML or JSON, laid over its configuration; of `single` alone"}});
  all["v1Webhook"] = object(
    {{"name", text(), "by which experiments name it"},
     {"url", text(), "http or https", true},
     {"webhookType", text(), "WEBHOOK_TYPE_DEFAULT or WEBHOOK_TYPE_SLACK"},
     {"workspaceId", whole(), "where it holds; missing: everywhere"},
     {"mode", text(), "WEBHOOK_MODE_WORKSPACE, or WEBHOOK_MODE_SPECIFIC: of experiments that name it"},
     {"triggers",
      list_of(object({{"triggerType", text(), "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE, _TASK_LOG, _CUSTOM"},
                      {"condition", any_object(), "{state}, {regex} or {}"}}))}});
  all["v1PatchWebhook"] = object({{"url", text(), "http or https", true}});
  all["v1PostWebhookEventDataRequest"] =
    object({{"experimentId", whole(), "", true},
            {"trialId", whole()},
            {"data",
             object({{"title", text()}, {"description", text()}, {"level", text(), "LOG_LEVEL_INFO ..."}})}});
  all["v1MoveExperimentRequest"] =
    object({{"destinationProjectId", whole(), "", true}, {"experimentId", whole(), "as in the path"}});
  std::vector<property> many{{"projectId", whole()},
                             {"experimentIds", list_of(whole())},
                             {"filters",
                              object({{"name", text(), "a part of it, in any case"},
                                      {"description", text(), "a part of it, in any case"},
                                      {"labels", list_of(text()), "all of them"},
                                      {"archived", flag()},
                                      {"states", list_of(text())},
                                      {"userIds", list_of(whole())},
                                      {"projectId", whole()},
                                      {"excludedExperimentIds", list_of(whole())}}),
                              "in the place of the ids"}};
  all["v1BulkAction"] = object(many);
  many.push_back({"destinationProjectId", whole(), "", true});
  all["v1MoveExperimentsRequest"] = object(many);
  all["v1Template"] = object({{"name", text(), "as in the path"},
                              {"config", any_object(), "section of a configuration", true},
                              {"workspaceId", whole(), "0: 1, or where it is"}});
  all["object"] = any_object();
  all["v1PatchTemplateNameRequest"] = object({{"oldName", text(), "", true}, {"newName", text(), "", true}});
  const auto model = [&](bool made) {
    return object({{"name", text(), "", made},
                   {"description", text()},
                   {"notes", text()},
                   {"labels", list_of(text()), "all of them"},
                   {"metadata", any_object()},
                   {"workspaceId", whole()},
                   {"workspaceName", text()}});
  };
  all["v1PostModelRequest"] = model(true);
  all["v1PatchModel"] = model(false);
  all["v1MoveModelRequest"] =
    object({{"destinationWorkspaceId", whole(), "", true}, {"modelName", text(), "as in the path"}});
  const auto version = [&](bool made) {
    std::vector<property> fields{{"name", text()},
                                 {"comment", text()},
                                 {"notes", text()},
                                 {"labels", list_of(text()), "all of them"},
                                 {"metadata", any_object()}};
    if (made) {
      fields.push_back({"checkpointUuid", text(), "of one that is COMPLETED", true});
      fields.push_back({"modelName", text(), "as in the path"});
    }
    return object(fields);
  };
  all["v1PostModelVersionRequest"] = version(true);
  all["v1PatchModelVersion"] = version(false);
  all["v1GetModelDefFileRequest"] = object({{"path", text(), "as the tree names it", true}});
  all["v1TrialMetrics"] = trial_metrics();
  all["v1ReportTrialMetricsRequest"] =
    object({{"group", text(), "training, validation, or a name of its own without a point", true},
            {"metrics", trial_metrics(), "", true}});
  all["v1ReportTrialProgressRequest"] =
    object({{"progress", number(), "a fraction, or a part of searcher.max_length", true},
            {"isRaw", flag(), "it is a fraction"}});
  all["v1TrialRunnerMetadata"] = object({{"state", text(), "what the runner does, for people"}});
  all["v1TrialEarlyExit"] =
    object({{"reason",
             {{"type", "string"}, {"enum", {"EXITED_REASON_INVALID_HP", "EXITED_REASON_INIT_INVALID_HP"}}},
             "",
             true}});
  all["v1Checkpoint"] =
    object({{"uuid", text(), "", true},
            {"allocationId", text(), "the caller's own"},
            {"state", {{"type", "string"}, {"enum", {"STATE_COMPLETED"}}}},
            {"resources", sizes(), "bytes by path; folders end with '/'"},
            {"metadata", object({{"steps_completed", whole(), "batches that it holds", true}}),
             "the script's own, besides", true}});
  all["v1PatchCheckpointsRequest"] = object(
    {{"checkpoints",
      list_of(object({{"uuid", text(), "", true},
                      {"resources", object({{"resources", sizes(), "what is left: empty says deleted"}}),
                       "missing: the files stay as they are"}}))}});
  all["v1PostTaskLogsRequest"] = object({{"logs", list_of(object({{"taskId", text()},
                                                                  {"timestamp", text(), "RFC 3339"},
                                                                  {"log", text()},
                                                                  {"level", text(), "LOG_LEVEL_ERROR ..."},
                                                                  {"stdtype", text(), "stdout or stderr"},
                                                                  {"rankId", whole()},
                                                                  {"agentId", text()}}))}});
  all["v1PostRunMetadataRequest"] =
    object({{"metadata", any_object(), "replaces what the trial has; 64 KiB at most", true}});
  const auto new_trial =
    object({{"experimentId", whole(), "of an unmanaged experiment", true},
            {"hparams", any_object(), "hyperparameters by name"},
            {"unmanaged", flag(), "has to be true: a search makes the trials of others", true}});
  all["v1CreateTrialRequest"] = new_trial;
  all["v1PutTrialRequest"] = object({{"createTrialRequest", new_trial, "", true},
                                     {"externalTrialId", text(), "its name within the experiment", true}});
  all["v1StartTrialRequest"] =
    object({{"trialId", whole(), "as in the path"},
            {"resume", flag(), "continue from the newest checkpoint of the trial"}});
  all["v1PatchTrialRequest"] = object(
    {{"trialId", whole(), "as in the path"},
     {"state", text(), "STATE_RUNNING, STATE_COMPLETED, STATE_CANCELED or STATE_ERROR; missing: it lives"}});
  all["v1PostTrialProfilerMetricsBatchRequest"] =
    object({{"batches", list_of(any_object()),
             "each {values, batches, timestamps, labels: {trialId, name, agentId, gpuUuid, metricType}}"}});
  all["v1RunPrepareForReportingRequest"] = object({{"runId", whole(), "the caller's own trial", true}});
  all["v1AllocationAllGatherRequest"] = object({{"requestUuid", text(), "of the caller"},
                                                {"numPeers", whole(), "how many bring their data"},
                                                {"data", any_object(), "what the others get"}});
  // The paths of these routes name the allocation; the body's own field is only described.
  const auto of_path = [](std::vector<property> more = {}) {
    more.insert(more.begin(), {"allocationId", text(), "as in the path"});
    return object(std::move(more));
  };
  all["v1AckAllocationPreemptionSignalRequest"] = of_path();
  all["v1AllocationPendingPreemptionSignalRequest"] = of_path();
  all["v1MarkAllocationResourcesDaemonRequest"] = of_path({{"resourcesId", text(), "as in the path"}});
  all["v1PostAllocationAcceleratorDataRequest"] =
    of_path({{"acceleratorData", any_object(), "taken, not kept"}});
  add_bodies_of_people(all);
  add_bodies_of_searches(all);
  add_bodies_of_work(all);
  return all;
}

} // namespace
} // namespace taking

value body_schema(const std::string& name) {
  static const auto all = taking::made();
  auto it = all.find(name);
  return it == all.end() ? value() : it->second;
}

} // namespace troupe::api
