#include "runtime/api/answers.hpp"

#include "runtime/api/schema_words.hpp"

#include <string_view>

namespace troupe::api {
namespace answering { // keeps the short names below from clashing with those of other files
namespace {

using namespace schema;

struct field {
  std::string_view name; ///< ends with a "?" where the field may be missing
  value schema;
  const char* doc = "";
};

value fields(std::vector<field> all) {
  value out{{"type", "object"}, {"properties", value::object()}}, required = value::array();
  for (auto& one : all) {
    const bool optional = one.name.ends_with('?');
    const std::string name(one.name.substr(0, one.name.size() - (optional ? 1 : 0)));
    // OpenAPI 3.0 ignores what stands beside a reference, so the reference is put into `allOf`.
    if (*one.doc && one.schema.contains("$ref"))
      one.schema = {{"allOf", value::array({std::move(one.schema)})}};
    if (*one.doc)
      one.schema["description"] = one.doc;
    out["properties"][name] = std::move(one.schema);
    if (!optional)
      required.push_back(name);
  }
  if (!required.empty())
    out["required"] = std::move(required);
  return out;
}

value a(const char* name) { return {{"$ref", std::string("#/components/schemas/") + name}}; }
value or_null(value x) {
  if (x.contains("$ref"))
    x = {{"allOf", value::array({std::move(x)})}};
  x["nullable"] = true;
  return x;
}
value map_of(value x) { return {{"type", "object"}, {"additionalProperties", std::move(x)}}; }
value anything() { return value::object(); }
value time() { return {{"type", "string"}, {"format", "date-time"}}; }
value one_of(std::initializer_list<const char*> words) {
  value x = text();
  for (const char* word : words)
    x["enum"].push_back(word);
  return x;
}
/// The schema, which also allows further fields of any kind.
value open(value x) {
  x["additionalProperties"] = true;
  return x;
}
value pair_of(value x) {
  x = list_of(std::move(x));
  x["minItems"] = x["maxItems"] = 2;
  return x;
}
value texts() { return list_of(text()); }
value metric() { return a("MetricValue"); }
value rows_of(const char* name) {
  return fields({{"rows", list_of(a(name))}, {"missing", list_of(a("ShellMissing"))}});
}

using schemas = std::map<std::string, value>;

void add_experiments(schemas& all) {
  all["v1Pagination"] = fields({{"offset", whole()},
                                {"limit", whole()},
                                {"startIndex", whole()},
                                {"endIndex", whole()},
                                {"total", whole()}});
  all["v1Experiment"] = fields({{"id", whole()},
                                {"name", text()},
                                {"description", text()},
                                {"labels", texts()},
                                {"notes", text()},
                                {"archived", flag()},
                                {"unmanaged", flag()},
                                {"externalExperimentId?", text()},
                                {"config", any_object(), "as it was resolved"},
                                {"originalConfig?", text(), "as it was submitted; live rows are without"},
                                {"jobId", text()},
                                {"resourcePool", text()},
                                {"searcherType", text()},
                                {"searcherMetric", text()},
                                {"startTime", time()},
                                {"endTime?", time()},
                                {"duration?", whole(), "seconds"},
                                {"forkedFrom", or_null(whole())},
                                {"username", text()},
                                {"displayName", text()},
                                {"userId?", whole()},
                                {"numTrials", whole()},
                                {"trialIds?", list_of(whole()), "of one experiment; in lists absent"},
                                {"checkpointCount", whole()},
                                {"checkpointSize", text(), "bytes"},
                                {"state", text()},
                                {"progress", number()},
                                {"bestTrialId?", whole()},
                                {"bestTrialSearcherMetric?", metric()},
                                {"projectId", whole()},
                                {"projectName", text()},
                                {"projectOwnerId", whole()},
                                {"workspaceId", whole()},
                                {"workspaceName", text()},
                                {"parentArchived", flag()}});
  all["v1GetExperimentsResponse"] =
    fields({{"experiments", list_of(a("v1Experiment"))}, {"pagination", a("v1Pagination")}});
  all["v1GetExperimentResponse"] = fields(
    {{"experiment", a("v1Experiment")}, {"config", any_object()}, {"jobSummary", or_null(any_object())}});
  all["DefaultConfig"] = fields({{"config", any_object(), "complete; null where nothing is the default"}});
  all["FileNode"] = fields({{"path", text()},
                            {"name", text()},
                            {"isDir", flag()},
                            {"contentLength", whole()},
                            {"modifiedTime", text()},
                            {"files", list_of(a("FileNode"))}});
  all["v1GetModelDefTreeResponse"] = fields({{"files", list_of(a("FileNode"))}});
  all["v1GetModelDefFileResponse"] = fields({{"file", {{"type", "string"}, {"format", "byte"}}}});
}

void add_trials(schemas& all) {
  all["Validation"] = fields({{"totalBatches", whole()},
                              {"metric", or_null(metric()), "the searcher's; null where it names several"},
                              {"units?", metric(), "the value of the searcher's time metric"}});
  all["Stop"] = fields({{"why", text()},
                        {"rung", whole(), "-1: no rung decided"},
                        {"units", number()},
                        {"metric", metric()},
                        {"needed", metric()}});
  all["MetricSummary"] = fields(
    {{"last", metric()}, {"min", metric(), "of the finite ones"}, {"max", metric(), "of the finite ones"}});
  all["TrialProgress"] =
    fields({{"id", whole()},
            {"experimentId", whole()},
            {"state", text()},
            {"hparams", any_object()},
            {"restarts", whole()},
            {"runs", whole()},
            {"totalBatches", whole()},
            {"best", or_null(a("Validation"))},
            {"latest", or_null(a("Validation"))},
            {"stop", or_null(a("Stop"))},
            {"latestCheckpoint", text()},
            {"startTime", time()},
            {"endTime?", time()},
            {"agents", texts()},
            {"why", text()},
            {"metrics?", map_of(a("MetricSummary")), "by group.name, where `metrics` asks for some"}});
  all["TrialProgressList"] = fields({{"trials", list_of(a("TrialProgress"))}});
  all["v1MetricsWorkload"] =
    fields({{"totalBatches", whole()},
            {"numInputs", whole()},
            {"endTime", time()},
            {"metrics", fields({{"avgMetrics", any_object()}, {"batchMetrics", list_of(any_object())}})}});
  all["v1CheckpointWorkload"] = fields({{"uuid", text()},
                                        {"state", text()},
                                        {"totalBatches", whole()},
                                        {"endTime", time()},
                                        {"resources", map_of(text()), "bytes by path"},
                                        {"metadata", any_object()}});
  all["v1Trial"] = fields({{"id", whole()},
                           {"experimentId", whole()},
                           {"state", text()},
                           {"hparams", any_object()},
                           {"restarts", whole()},
                           {"preemptions", whole()},
                           {"preemptedSlotSeconds", number()},
                           {"startTime", time()},
                           {"endTime?", time()},
                           {"totalBatchesProcessed", whole()},
                           {"bestValidation", or_null(a("v1MetricsWorkload"))},
                           {"latestValidation", or_null(a("v1MetricsWorkload"))},
                           {"bestCheckpoint", or_null(a("v1CheckpointWorkload"))},
                           {"checkpointCount", whole()},
                           {"totalCheckpointSize", text()},
                           {"wallClockTime", number()},
                           {"runnerState", text()},
                           {"why", text()},
                           {"summaryMetrics", or_null(any_object())},
                           {"taskId", text()},
                           {"taskIds", texts()},
                           {"logPolicyMatched?", text()},
                           {"logRetentionDays?", whole(), "-1: for ever"},
                           {"metadata?", any_object()},
                           {"searcherMetricValue?", metric()},
                           {"warmStartCheckpointUuid?", text()}});
  all["v1GetTrialResponse"] = fields({{"trial", a("v1Trial")}});
  all["v1Allocation"] = fields({{"allocationId", text()},
                                {"taskId", text()},
                                {"state", text()},
                                {"isReady", flag()},
                                {"slots", whole()},
                                {"startTime", time()},
                                {"endTime?", time()},
                                {"exitReason?", text()}});
  all["v1Task"] = open(fields({{"taskId", text()},
                               {"taskType", text()},
                               {"startTime", time()},
                               {"endTime?", time()},
                               {"logPolicyMatched?", text()},
                               {"allocations", list_of(a("v1Allocation"))}}));
  all["v1GetTaskResponse"] = fields({{"task", a("v1Task")}});
  all["MetricReport"] =
    fields({{"row", whole(), "`after` of the next reading"},
            {"group", text()},
            {"totalBatches", whole()},
            {"trialRunId", whole()},
            {"endTime", time()},
            {"archived", flag(), "true: of a run that was given up, and trained again since"},
            {"metrics", any_object()}});
  all["CheckpointRow"] = fields({{"uuid", text()},
                                 {"trialId", whole()},
                                 {"taskId", text()},
                                 {"allocationId", text()},
                                 {"reportTime", time()},
                                 {"state", text()},
                                 {"resources", map_of(text()), "bytes by path"},
                                 {"metadata", open(fields({{"steps_completed?", whole()}}))},
                                 {"training", fields({{"trialId", whole()},
                                                      {"experimentId", whole()},
                                                      {"experimentConfig", any_object()},
                                                      {"hparams", any_object()},
                                                      {"searcherMetric?", metric()},
                                                      {"validationMetrics?", any_object()}})}});
  all["v1GetExperimentCheckpointsResponse"] = all["v1GetTrialCheckpointsResponse"] =
    fields({{"checkpoints", list_of(a("CheckpointRow"))}, {"pagination", a("v1Pagination")}});
  all["Outcome"] = fields({{"id", whole()},
                           {"state", text()},
                           {"why", text()},
                           {"numTrials", whole()},
                           {"metric", text()},
                           {"smallerIsBetter", flag()},
                           {"progress", number()},
                           {"bestTrialId", or_null(whole())},
                           {"bestMetric", or_null(metric())},
                           {"bestTrial", or_null(a("v1Trial"))},
                           {"bestCheckpoint", or_null(a("CheckpointFiles"))},
                           {"bestSoFar?", list_of(metric()), "with `history`"}});
  all["CheckpointFiles"] = fields({{"uuid", text()},
                                   {"trialId", whole()},
                                   {"totalBatches", whole()},
                                   {"path", text()},
                                   {"files", map_of(whole()), "bytes by path"}});
}

void add_curves(schemas& all) {
  const auto points = [] { return list_of(metric()); };
  all["SeriesLine"] = fields({{"trial", whole()},
                              {"row", whole(), "of the newest report that counts"},
                              {"count", whole(), "of all points, of which these are some"},
                              {"x", points()},
                              {"y", points()}});
  all["Series"] = fields({{"sequence", whole()},
                          {"group", text()},
                          {"metric", text()},
                          {"x", text()},
                          {"series", list_of(a("SeriesLine"))}});
  all["MetricInfo"] = fields({{"group", text()},
                              {"name", text()},
                              {"kind", one_of({"number", "matrix", "table", "vector", "text", "other"})},
                              {"trials", whole()},
                              {"reports", whole()},
                              {"lastReport", time(), "of any of its trials"}});
  all["MetricList"] = fields({{"metrics", list_of(a("MetricInfo"))}});
  all["Moment"] =
    fields({{"sequence", whole(), "for `at`"},
            {"at", time()},
            {"type", text()},
            {"trial?", whole()},
            {"run?", whole()},
            {"on?", list_of(a("SlotsOn")), "of `allocation_placed`; empty: the run waits again"},
            {"why?", text(), "how a run ended"},
            {"state?", text(), "of `trial_ended`"}});
  all["History"] = fields({{"history", list_of(a("Moment"))}});
  all["Importance"] = fields({{"method", text()},
                              {"metric", text()},
                              {"trials", whole()},
                              {"hparams", list_of(fields({{"name", text()}, {"importance", number()}}))}});
  all["ParetoFront"] =
    fields({{"metrics", list_of(fields({{"name", text()}, {"smallerIsBetter", flag()}}))},
            {"trials", whole(), "that have all of the metrics"},
            {"leftOut", whole(), "with a validation that lacks one, or has a value that is not finite"},
            {"front", list_of(fields({{"trialId", whole()},
                                      {"hparams", any_object()},
                                      {"metrics", map_of(number())},
                                      {"totalBatches", whole()},
                                      {"latestCheckpoint", text()}}))}});
  all["RungTrial"] = fields({{"trial", whole()},
                             {"metric", metric()},
                             {"fate", one_of({"runs", "waits", "went on", "stopped", "finished", "ended"})},
                             {"needed?", metric(), "the bound when that was decided"}});
  all["Rung"] = fields({{"units", whole()},
                        {"entered", whole()},
                        {"stopped", whole()},
                        {"needed", metric(), "the bound now; NaN: none yet"},
                        {"trials", list_of(a("RungTrial"))}});
  all["Bracket"] = fields({{"maxTrials", whole()}, {"rungs", list_of(a("Rung"))}});
  all["Decision"] = fields({{"sequence", whole(), "among the facts of the experiment"},
                            {"at", time()},
                            {"trial?", whole(), "missing: of the experiment"},
                            {"what", text()},
                            {"why", text()},
                            {"rung?", whole()},
                            {"units?", number()},
                            {"metric?", metric()},
                            {"needed?", metric()},
                            {"until?", metric()},
                            {"source?", whole(), "the trial whose weights it took"},
                            {"checkpoint?", text()},
                            {"hparams?", any_object()}});
  all["SearchStory"] = fields({{"searcher", text()},
                               {"metric", text()},
                               {"timeMetric", text(), "empty: reports are counted"},
                               {"smallerIsBetter", flag()},
                               {"brackets", list_of(a("Bracket"))},
                               {"decisions", list_of(a("Decision"))}});
}

void add_places(schemas& all) {
  all["v1Device"] = fields({{"id", whole()}, {"brand", text()}, {"uuid", text()}, {"type", text()}});
  all["v1Container"] =
    fields({{"id", text()},
            {"parent", text()},
            {"state", text()},
            {"devices", list_of(a("v1Device"))},
            {"permissionDenied?", flag(), "true: of a run that one may not see, and `id` is not its name"}});
  all["SlotUsage"] = fields({{"utilization_percent?", number()},
                             {"memory_bytes?", whole()},
                             {"memory_used_bytes?", whole()},
                             {"temperature_celsius?", number()},
                             {"fault?", text()}});
  all["v1Slot"] = fields({{"id", text()},
                          {"enabled", flag()},
                          {"draining", flag()},
                          {"device", a("v1Device")},
                          {"container", or_null(a("v1Container"))},
                          {"usage?", a("SlotUsage")}});
  all["v1Agent"] = fields({{"id", text()},
                           {"addresses", texts()},
                           {"resourcePools", texts()},
                           {"registeredTime", time()},
                           {"version", text()},
                           {"enabled", flag()},
                           {"draining", flag()},
                           {"labels", map_of(text())},
                           {"state", text()},
                           {"slots", map_of(a("v1Slot"))},
                           {"containers", map_of(a("v1Container"))},
                           {"slotStats", any_object()}});
  all["v1GetAgentsResponse"] = fields({{"agents", list_of(a("v1Agent"))}, {"pagination", a("v1Pagination")}});
  all["Status"] = fields({{"slots", fields({{"total", whole()}, {"used", whole()}})},
                          {"agents", whole()},
                          {"waiting", whole()},
                          {"experimentsActive", whole()}});
  all["LiveStatus"] = fields({{"slots", fields({{"total", whole()}, {"used", whole()}})},
                              {"agents", whole()},
                              {"waiting", whole()},
                              {"experiments_active", whole()}});
  all["Waiting"] = fields({{"position", or_null(whole()), "in its pool, from 1; null: of the past"},
                           {"allocation", text()},
                           {"trial", whole(), "0: of a task that is not a trial"},
                           {"experiment", or_null(whole()), "null: of a task that is not a trial"},
                           {"pool", or_null(text()), "null: of the past, where no fact says it"},
                           {"slots", whole()},
                           {"priority", or_null(whole()), "null: of the past, where it was its pool's"},
                           {"weight", number()},
                           {"user", text()},
                           {"since", time()},
                           {"reason", or_null(text()), "a code of docs/scheduling.md; null: of the past"}});
  all["Queue"] = fields({{"waiting", list_of(a("Waiting"))},
                         {"sequence?", whole(), "with `at`: that fact"},
                         {"at?", time(), "with `at`: its time"}});
  all["Pools"] = fields(
    {{"pools",
      list_of(fields({{"name", text()},
                      {"default", flag()},
                      {"scheduler", text()},
                      {"preemption", flag()},
                      {"slots", fields({{"total", whole()}, {"used", whole()}, {"reserved", whole()}})},
                      {"agents", whole()},
                      {"waiting", whole()},
                      {"experiments", whole()},
                      {"provider", or_null(any_object())}}))}});
  all["Usage"] =
    fields({{"slots", fields({{"t", list_of(time())},
                              {"total", list_of(number())},
                              {"used", list_of(number())},
                              {"waiting", list_of(number())}})},
            {"by", list_of(fields({{"user", text()},
                                   {"experiment", or_null(whole()), "null: of tasks that are not trials"},
                                   {"slotHours", number()}}))}});
}

void add_explanations(schemas& all) {
  all["Reason"] = fields({{"code", text()}, {"text", text()}});
  all["WouldFree"] =
    fields({{"allocation", or_null(text()), "null: one that the caller may not see"},
            {"agents", texts()},
            {"slots", whole()},
            {"how", one_of({"ends", "preempted"})},
            {"stopping", flag(), "it was preempted already, and saves"},
            {"preemptedFor", or_null(text()), "the allocation that gets its slots, where it saves already"},
            {"costSeconds", number(), "slot-seconds that would be lost; 0: it is never preempted"},
            {"fromPriority", or_null(whole()), "the priority from which on it is preempted"},
            {"expectedSeconds", or_null(number()),
             "until it ends, or, where it is preempted, until it may be; null: unknown, or it may be now"}});
  all["RunPlace"] = fields({{"run", whole()},
                            {"agents", texts()},
                            {"fromSteps", whole()},
                            {"fromCheckpoint", text()},
                            {"startTime", time()},
                            {"endTime", or_null(time())}});
  all["SlotsOn"] = fields({{"agent", text()}, {"slots", list_of(whole())}});
  all["Explanation"] = fields(
    {{"allocation", or_null(text())},
     {"trial", or_null(whole()), "null: a task that is not a trial"},
     {"experiment", or_null(whole())},
     {"task?", text(), "of a task that is not a trial: its UUID"},
     {"kind?", text(), "of such a task"},
     {"pool", text()},
     {"state", one_of({"QUEUED", "STARTING", "RUNNING", "STOPPING", "PAUSED", "BACK_OFF", "ENDED"})},
     {"slots", whole()},
     {"priority", whole()},
     {"weight", number()},
     {"user", text()},
     {"since", time()},
     {"waitedSeconds", or_null(whole())},
     {"position", or_null(whole()), "1: next"},
     {"reason", a("Reason")},
     {"also", list_of(a("Reason")), "further ones"},
     {"agents", list_of(fields({{"agent", text()}, {"free", whole()}, {"fits", flag()}, {"why", text()}}))},
     {"wouldFree", list_of(a("WouldFree"))},
     {"behind", or_null(text()), "the allocation that it waits behind, or that gets its slots"},
     {"reservation", or_null(fields({{"since", time()}, {"on", list_of(a("SlotsOn"))}}))},
     {"estimate",
      or_null(fields({{"at", time()}, {"seconds", number()}, {"from", one_of({"history", "progress"})}}))},
     {"advice", text()},
     {"runs?", list_of(a("RunPlace")), "of a trial"},
     {"log?", list_of(whole()), "of a trial that failed: the numbers of its last lines"}});
  all["ExperimentExplanation"] =
    fields({{"experiment", whole()},
            {"pool", text()},
            {"state", text()},
            {"trials", fields({{"running", whole()}, {"waiting", whole()}, {"paused", whole()}})},
            {"since", time()},
            {"reason", a("Reason")},
            {"wouldFree", list_of(a("WouldFree")), "of the first that waits, where none runs"},
            {"advice", text()},
            {"waiting", list_of(a("Explanation")), "at most 20 of its trials"}});
}

void add_logs_and_events(schemas& all) {
  all["LogLine"] = fields({{"line", whole()},
                           {"at", time()},
                           {"level", text()},
                           {"rank", whole()},
                           {"agent", text()},
                           {"run", whole()},
                           {"stream", text()},
                           {"text", text()},
                           {"trial?", whole(), "in searches and live"},
                           {"spans?", list_of(pair_of(whole())), "of a search: bytes of the text"}});
  all["LogPage"] = fields({{"first", whole()}, {"last", whole()}, {"lines", list_of(a("LogLine"))}});
  all["LogSearchEnd"] =
    fields({{"scanned", whole()},
            {"hits", whole()},
            {"after", or_null(text()),
             "from there the next search continues; null: the log was searched to its end"}});
  all["LogHit"] = fields({{"result?", a("LogLine")}, {"end?", a("LogSearchEnd"), "the last one"}});
  all["Event"] = open(fields({{"sequence", whole()},
                              {"entity", text()},
                              {"number", whole()},
                              {"type", text(), "which says what further fields there are"},
                              {"at", text()},
                              {"experiment?", whole()}}));
  all["LiveHello"] =
    fields({{"sequence", whole()},
            {"masterId", text()},
            {"version", text()},
            {"user", whole(), "number of the user who reads; of a task: that of its owner"}});
  all["LivePoints"] = fields({{"experiment", whole()},
                              {"group", text()},
                              {"metric", text()},
                              {"trial", whole()},
                              {"row", whole()},
                              {"steps", list_of(whole())},
                              {"at", list_of(number()), "seconds since 1970"},
                              {"y", list_of(metric())}});
  all["LiveCluster"] = fields(
    {{"status", a("LiveStatus")}, {"agents", list_of(a("v1Agent"))}, {"waiting", list_of(a("Waiting"))}});
  all["LiveLost"] = fields({{"topic", text()}, {"count", whole()}});
  all["LiveGone"] = fields({{"experiment", whole(), "it was deleted, or may not be seen any more"}});
  all["LiveEvent"] = value::object();
  for (const char* name : {"LiveHello", "v1Experiment", "LiveGone", "TrialProgress", "LivePoints", "LogLine",
                           "LiveCluster", "LiveLost"})
    all["LiveEvent"]["oneOf"].push_back(a(name));
}

void add_people(schemas& all) {
  all["v1AgentUserGroup"] =
    fields({{"agentUid", whole()}, {"agentGid", whole()}, {"agentUser", text()}, {"agentGroup", text()}});
  all["v1User"] = fields({{"id", whole()},
                          {"username", text()},
                          {"displayName", text()},
                          {"admin", flag()},
                          {"active", flag()},
                          {"remote", flag()},
                          {"agentUserGroup", or_null(a("v1AgentUserGroup"))},
                          {"modifiedAt", time()},
                          {"lastAuthAt", or_null(time())}});
  all["v1GetUsersResponse"] = fields({{"users", list_of(a("v1User"))}, {"pagination", a("v1Pagination")}});
  all["Session"] = fields(
    {{"user", or_null(a("v1User")), "null: nobody, and nothing else is there"},
     {"rights?", texts(), "as \"kill experiment\""},
     {"rightsIn?", map_of(list_of(whole())), "of those that roles give for some workspaces alone: in which"},
     {"clusterName?", text()},
     {"clusterId?", text()},
     {"masterId?", text()},
     {"version?", text()}});
}

void add_actors(schemas& all) {
  const auto us = [] { return or_null(number()); };
  all["ShellMissing"] = fields({{"node", text()}, {"why", text()}});
  all["ShellActorRow"] = fields({{"actor", text()},
                                 {"kind", text()},
                                 {"node", text()},
                                 {"backlog", whole()},
                                 {"messages", whole()},
                                 {"msg_per_s", number()},
                                 {"restarts", whole()},
                                 {"run_us_p50", us()},
                                 {"run_us_p99", us()},
                                 {"wait_us_p50", us()},
                                 {"wait_us_p99", us()},
                                 {"state", text()},
                                 {"uptime_s", number()}});
  all["ShellActors"] = rows_of("ShellActorRow");
  all["ShellTree"] = fields(
    {{"actor", text()}, {"state", text()}, {"restarts", whole()}, {"children", list_of(a("ShellTree"))}});
  all["ShellNote"] = fields({{"at", time()},
                             {"from", text()},
                             {"type", text()},
                             {"correlation", text()},
                             {"wait_us", us()},
                             {"run_us", us()},
                             {"text", text()}});
  all["ShellNotes"] = rows_of("ShellNote");
  all["ShellLink"] =
    fields({{"actor", text()}, {"peer", text()}, {"how", one_of({"owner", "child", "monitor"})}});
  all["ShellLinks"] = rows_of("ShellLink");
  all["ShellEvent"] = fields({{"at", text()},
                              {"kind", text()},
                              {"actor", text()},
                              {"what", text()},
                              {"user", text()},
                              {"node?", text()}});
  all["ShellEvents"] = rows_of("ShellEvent");
  all["ShellOrder"] = fields(
    {{"name", text()},
     {"kinds", texts(), "of actors that take it; none: all"},
     {"fields", list_of(fields({{"name", text()}, {"type", text()}, {"required", flag()}, {"doc", text()}}))},
     {"permission", text()},
     {"doc", text()}});
  all["ShellOrders"] = rows_of("ShellOrder");
  all["ShellState"] = fields({{"actor", text()},
                              {"state?", anything(), "of its machine, or the part that was asked for"},
                              {"changes?", list_of(any_object()), "with `diff`"}});
  all["ShellInfo"] = fields({{"identity", any_object()},
                             {"links", list_of(a("ShellLink"))},
                             {"waits_for", list_of(any_object())},
                             {"work", any_object()},
                             {"memory", any_object()},
                             {"recent", list_of(a("ShellNote"))}});
}

schemas made() {
  schemas all;
  all["MetricValue"] = {{"description", "A number; JSON has no word for those that are not finite."},
                        {"oneOf", value::array({number(), one_of({"NaN", "Infinity", "-Infinity"})})}};
  add_experiments(all);
  add_trials(all);
  add_curves(all);
  add_places(all);
  add_explanations(all);
  add_logs_and_events(all);
  add_people(all);
  add_actors(all);
  return all;
}

} // namespace
} // namespace answering

const std::map<std::string, value>& answer_schemas() {
  static const auto all = answering::made();
  return all;
}

} // namespace troupe::api
