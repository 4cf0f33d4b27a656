#pragma once
// Tasks that are not trials, in the form in which grpc-gateway prints Determined's messages and in our own.

#include "runtime/api/accounts.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {

/// The state of the task, as "STATE_RUNNING".
std::string work_state(const task_detail& task);
/// The path of the task's service, "/proxy/ID/"; empty where its kind has none. `with_token` adds to a
/// notebook's path the token that opens it.
std::string service_address(const task_detail& task, const accounts& users, bool with_token);
/// `secrets`: whether the caller may see the credentials that open the task.
value work_shape(const task_detail& task, const accounts& users, bool secrets);
value own_work_shape(const task_detail& task, const accounts& users, time_point now);
/// Adds the name of the log policy that matched last to the shape of any task; adds nothing where `matched`
/// is empty.
void add_log_policy(value& shape, const std::string& matched);
/// Adds taskState, parentId, config and so on to the shape of a task.
void add_other(value& shape, const task_detail& task);
/// Adds the task's name, pool and slots to the summary of its allocation.
void add_other_summary(value& shape, const task_detail& task);
/// The agents of the task's newest run, separated by commas.
std::string agents_of(const task_detail& task);

} // namespace troupe::api
