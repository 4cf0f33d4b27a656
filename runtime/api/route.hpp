#pragma once
// One row per route: method, path, who may, what runs, and what the document says. Authentication and
// authorisation are read from here and from nowhere else.

#include "runtime/api/accounts.hpp"
#include "runtime/api/experiment_texts.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/api/http.hpp"
#include "runtime/api/runner_states.hpp"
#include "storage/journal.hpp"

#include <map>

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
  task,                   ///< only tasks; the handler compares the ids in the body with the caller
};

/// Who speaks, as the token says.
struct identity {
  principal who;
  std::uint64_t user_id = 0;
  experiment_id experiment; ///< where a task speaks that belongs to one
  allocation_id allocation; ///< where a task speaks
  bool is_task() const { return bool(allocation); }
};

struct cluster_identity {
  std::string cluster_id, master_id, cluster_name, troupe_version;
  std::uint16_t link_port = 0; ///< of the node link; 0: agents cannot join
  bool link_tls = false;
  std::string join_token; ///< that agents show for blobs; empty: not asked for
  std::uint32_t link_protocol = 1;
};

/// What handlers stand on.
struct services {
  gate& cluster;
  std::shared_ptr<storage::reader> storage;
  std::shared_ptr<accounts> users;
  cluster_identity about;
  std::function<time_point()> now;
  std::shared_ptr<runner_states> runners = std::make_shared<runner_states>();
  std::shared_ptr<experiment_texts> texts = std::make_shared<experiment_texts>();
};

struct call {
  std::shared_ptr<const services> parts;                ///< an answer may come after the server has gone
  std::string target;                                   ///< as it came
  std::map<std::string, std::string, std::less<>> path; ///< what {name} stands for
  query_list query;
  request_headers headers;
  std::string body;
  identity by;
  time_point now;

  std::string_view named(std::string_view name) const;
};
using call_ptr = std::shared_ptr<const call>;
using handler = std::function<void(const call_ptr&, const reply&)>;

struct route {
  const char* method;
  std::string path; ///< "/api/v1/experiments/{experimentId}"
  access who = access::user;
  handler run;
  const char* takes = "";   ///< name of the body's type, empty for none
  const char* answers = ""; ///< name of the answer's type
  const char* doc = "";
  std::size_t body_bytes = 1 << 20;
  std::chrono::seconds patience{60}; ///< for the answer; then 504
  bool slow = false;                 ///< takes long on a processor: not on a thread that serves connections
  bool from_facts =
    false; ///< the answer depends on committed facts alone, so that it may be kept until the next
};

inline constexpr std::size_t large_body = 126u << 20;

const char* name(access who);

/// Wraps a function that answers at once.
handler answer_with(std::function<result<value>(const call&)> make);
handler respond_with(std::function<result<response>(const call&)> make);

/// Runs a command behind the gate; `shape` makes the answer's body of what it gave, `on_error` may restate
/// its error.
void command(const call_ptr& c, const reply& back, const std::string& name, value with,
             std::function<result<value>(value)> shape = {},
             std::function<response(const error&)> on_error = {});

/// The one that `{experimentId}` of the path names; errc::invalid where it is not an id, errc::not_found.
result<experiment_row> named_experiment(const call& c);

/// The tables, one per file of routes.
std::vector<route> cluster_routes();
std::vector<route> user_routes();
std::vector<route> experiment_routes();
std::vector<route> trial_routes();
std::vector<route> checkpoint_routes();
std::vector<route> task_routes();
std::vector<route> troupe_routes();
std::vector<route> search_routes();
/// All of them, ours first; then what the contract knows and we have not built, answering 501.
std::vector<route> all_routes();

} // namespace troupe::api
