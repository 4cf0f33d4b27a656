#pragma once
// Tasks that are no trials as grpc-gateway prints Determined's messages, and as ours.

#include "runtime/api/accounts.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {

/// "STATE_RUNNING".
std::string work_state(const task_detail& task);
/// Where its service is reached: "/proxy/ID/"; empty where its kind has none. With the token that opens a
/// notebook, where `caller` may have it.
std::string service_address(const task_detail& task, const accounts& users, bool with_token);
/// `secrets`: whether the caller may see what opens it.
value work_shape(const task_detail& task, const accounts& users, bool secrets);
value own_work_shape(const task_detail& task, const accounts& users, time_point now);
/// The name of the log policy that matched last, into the shape of any task; nothing where none did.
void add_log_policy(value& shape, const std::string& matched);
/// taskState, parentId, config and so on, into a task's shape.
void add_other(value& shape, const task_detail& task);
/// Its name, pool and slots, into the summary of its allocation.
void add_other_summary(value& shape, const task_detail& task);
/// Agents of its newest run, with commas.
std::string agents_of(const task_detail& task);

} // namespace troupe::api
