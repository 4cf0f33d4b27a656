#pragma once
// Who may call which route, as it was before the rights moved into model/authority: golden, so that the table
// of rights changes none of it unseen. A route that is not named here is for anyone with a token.

#include <string>

namespace troupe::api {

enum class access {
  open,                   ///< without a token
  anyone,                 ///< any user, any live task
  user,                   ///< any user, no task
  admin,                  ///< users who are admins
  user_or_own_experiment, ///< any user, or a task of {experimentId}
  user_or_own_trial,      ///< any user, or the task of {trialId}
  user_or_own_task,       ///< any user, or the task {taskId}
  own_allocation,         ///< only the task that is {allocationId}
  own_trial,              ///< only the task of {trialId}
  task,                   ///< only tasks
};

struct golden_access {
  const char* method;
  const char* path;
  access who;
};

inline constexpr golden_access golden[] = {
  {"GET", "/api/v1/agents", access::user},
  {"GET", "/api/v1/agents/{agentId}", access::user},
  {"GET", "/api/v1/agents/{agentId}/slots", access::user},
  {"GET", "/api/v1/agents/{agentId}/slots/{slotId}", access::user},
  {"GET", "/api/v1/allocations/{allocationId}", access::user},
  {"POST", "/api/v1/allocations/{allocationId}/acceleratorData", access::own_allocation},
  {"POST", "/api/v1/allocations/{allocationId}/all_gather", access::own_allocation},
  {"POST", "/api/v1/allocations/{allocationId}/resources/{resourcesId}/daemon", access::own_allocation},
  {"GET", "/api/v1/allocations/{allocationId}/resources/{resourcesId}/rendezvous", access::own_allocation},
  {"POST", "/api/v1/allocations/{allocationId}/signals/ack_preemption", access::own_allocation},
  {"POST", "/api/v1/allocations/{allocationId}/signals/pending_preemption", access::own_allocation},
  {"GET", "/api/v1/allocations/{allocationId}/signals/preemption", access::own_allocation},
  {"POST", "/api/v1/auth/login", access::open},
  {"POST", "/api/v1/auth/logout", access::user},
  {"PATCH", "/api/v1/checkpoints", access::anyone},
  {"POST", "/api/v1/checkpoints", access::task},
  {"GET", "/api/v1/checkpoints/{checkpointUuid}", access::anyone},
  {"POST", "/api/v1/cleanup_logs", access::admin},
  {"GET", "/api/v1/experiments", access::user},
  {"POST", "/api/v1/experiments", access::user},
  {"GET", "/api/v1/experiments/{experimentId}", access::user_or_own_experiment},
  {"POST", "/api/v1/experiments/{experimentId}/activate", access::user},
  {"POST", "/api/v1/experiments/{experimentId}/cancel", access::user},
  {"GET", "/api/v1/experiments/{experimentId}/checkpoints", access::user_or_own_experiment},
  {"POST", "/api/v1/experiments/{experimentId}/file", access::user},
  {"GET", "/api/v1/experiments/{experimentId}/file_tree", access::user},
  {"POST", "/api/v1/experiments/{experimentId}/kill", access::user},
  {"GET", "/api/v1/experiments/{experimentId}/model_def", access::user},
  {"POST", "/api/v1/experiments/{experimentId}/pause", access::user},
  {"GET", "/api/v1/experiments/{experimentId}/searcher/best_searcher_validation_metric",
   access::user_or_own_experiment},
  {"GET", "/api/v1/experiments/{experimentId}/trials", access::user_or_own_experiment},
  {"GET", "/api/v1/master", access::open},
  {"GET", "/api/v1/me", access::anyone},
  {"POST", "/api/v1/runs/start", access::task},
  {"GET", "/api/v1/runs/{trialId}/metadata", access::user_or_own_trial},
  {"POST", "/api/v1/runs/{trialId}/metadata", access::user_or_own_trial},
  {"POST", "/api/v1/task/logs", access::task},
  {"GET", "/api/v1/tasks", access::user},
  {"GET", "/api/v1/tasks/{taskId}", access::user_or_own_task},
  {"GET", "/api/v1/tasks/{taskId}/context_directory", access::user_or_own_task},
  {"GET", "/api/v1/tasks/{taskId}/logs", access::user_or_own_task},
  {"GET", "/api/v1/tasks/{taskId}/logs/fields", access::user_or_own_task},
  {"GET", "/api/v1/trials/metrics/training_metrics", access::user},
  {"GET", "/api/v1/trials/metrics/trial_metrics", access::user},
  {"GET", "/api/v1/trials/metrics/validation_metrics", access::user},
  {"GET", "/api/v1/trials/{trialId}", access::user_or_own_trial},
  {"GET", "/api/v1/trials/{trialId}/checkpoints", access::user_or_own_trial},
  {"POST", "/api/v1/trials/{trialId}/early_exit", access::own_trial},
  {"POST", "/api/v1/trials/{trialId}/kill", access::user},
  {"GET", "/api/v1/trials/{trialId}/logs", access::user_or_own_trial},
  {"GET", "/api/v1/trials/{trialId}/logs/fields", access::user_or_own_trial},
  {"POST", "/api/v1/trials/{trialId}/metrics", access::own_trial},
  {"POST", "/api/v1/trials/{trialId}/progress", access::own_trial},
  {"POST", "/api/v1/trials/{trialId}/runner/metadata", access::own_trial},
  {"POST", "/api/v1/trials/{trialId}/training_metrics", access::own_trial},
  {"POST", "/api/v1/trials/{trialId}/validation_metrics", access::own_trial},
  {"GET", "/api/v1/trials/{trialId}/workloads", access::user_or_own_trial},
  {"GET", "/api/v1/users", access::user},
  {"POST", "/api/v1/users", access::admin},
  {"GET", "/api/v1/users/{userId}", access::user},
  {"PATCH", "/api/v1/users/{userId}", access::user},
  {"POST", "/api/v1/users/{userId}/password", access::user},
  {"GET", "/api/v1/users/{username}/by-username", access::user},
  {"GET", "/checkpoints/{checkpointUuid}", access::user},
  {"GET", "/health", access::open},
  {"GET", "/info", access::open},
  {"GET", "/troupe/v1/blobs/{name}", access::open},
  {"GET", "/troupe/v1/checkpoints/{checkpointUuid}/files", access::user},
  {"GET", "/troupe/v1/configuration", access::user},
  {"POST", "/troupe/v1/configuration", access::admin},
  {"GET", "/troupe/v1/events", access::user},
  {"POST", "/troupe/v1/experiments", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/explain", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/file", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/importance", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/metrics", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/outcome", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/pareto", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/search", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/searcher/events", access::user},
  {"POST", "/troupe/v1/experiments/{experimentId}/searcher/orders", access::user},
  {"GET", "/troupe/v1/experiments/{experimentId}/trials", access::user},
  {"POST", "/troupe/v1/agents/{agentId}/remove", access::admin},
  {"POST", "/troupe/v1/fence", access::open},
  {"GET", "/troupe/v1/link", access::open},
  {"GET", "/troupe/v1/live", access::user},
  {"GET", "/troupe/v1/logs/search", access::user},
  {"GET", "/troupe/v1/openapi.json", access::open},
  {"GET", "/troupe/v1/pools", access::user},
  {"GET", "/troupe/v1/queue", access::user},
  {"GET", "/troupe/v1/series", access::user},
  {"POST", "/troupe/v1/session", access::open},
  {"GET", "/troupe/v1/session", access::open},
  {"DELETE", "/troupe/v1/session", access::user},
  {"POST", "/troupe/v1/session/codes", access::user},
  {"POST", "/troupe/v1/shell/config", access::admin},
  {"POST", "/troupe/v1/shell/drain", access::admin},
  {"GET", "/troupe/v1/shell/events", access::user},
  {"POST", "/troupe/v1/shell/fault", access::admin},
  {"GET", "/troupe/v1/shell/follow", access::user},
  {"GET", "/troupe/v1/shell/info", access::user},
  {"POST", "/troupe/v1/shell/kill", access::admin},
  {"GET", "/troupe/v1/shell/links", access::user},
  {"GET", "/troupe/v1/shell/log", access::user},
  {"POST", "/troupe/v1/shell/log", access::admin},
  {"GET", "/troupe/v1/shell/messages", access::user},
  {"GET", "/troupe/v1/shell/msgs", access::user},
  {"GET", "/troupe/v1/shell/nodes", access::user},
  {"GET", "/troupe/v1/shell/ps", access::user},
  {"POST", "/troupe/v1/shell/restart", access::admin},
  {"POST", "/troupe/v1/shell/send", access::admin},
  {"GET", "/troupe/v1/shell/state", access::user},
  {"GET", "/troupe/v1/shell/stats", access::user},
  {"GET", "/troupe/v1/shell/trace", access::user},
  {"GET", "/troupe/v1/shell/tree", access::user},
  {"GET", "/troupe/v1/shell/waits", access::user},
  {"POST", "/troupe/v1/shutdown", access::admin},
  {"GET", "/troupe/v1/status", access::user},
  {"GET", "/troupe/v1/trials/{trialId}/explain", access::user},
  {"GET", "/troupe/v1/trials/{trialId}/log", access::user_or_own_trial},
  {"GET", "/troupe/v1/trials/{trialId}/metrics", access::user_or_own_trial},
};

inline access access_of(const std::string& method, const std::string& path) {
  for (const auto& one : golden)
    if (method == one.method && path == one.path)
      return one.who;
  return access::anyone;
}

} // namespace troupe::api
