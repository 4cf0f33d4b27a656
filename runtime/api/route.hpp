#pragma once
// One row per route: method, path, what it does to which thing, what runs, and what the document says. Who
// may do that is said by model/authority alone.

#include "runtime/api/accounts.hpp"
#include "runtime/api/experiment_texts.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/api/http.hpp"
#include "runtime/api/login_codes.hpp"
#include "runtime/api/proxy_desk.hpp"
#include "runtime/api/role_book.hpp"
#include "runtime/api/runner_states.hpp"
#include "runtime/api/trial_texts.hpp"
#include "storage/journal.hpp"

#include <map>

namespace troupe::api {

using authority::action;
using authority::thing;

/// Who speaks, as the token says.
struct identity {
  principal who;
  std::uint64_t user_id = 0;
  std::vector<std::string> former;                     ///< names that the user had, case folded
  experiment_id experiment;                            ///< experiment of the calling task; 0: none
  allocation_id allocation;                            ///< allocation of the calling task; 0: a user calls
  std::shared_ptr<const authority::grants> roles = {}; ///< where roles decide: what the user may now
  bool is_task() const { return bool(allocation); }
  /// Whether the owner that a fact names so is the caller, or the owner of the calling task.
  bool is(const std::string& owner) const { return authority::bears(owner, who.user, former); }
  void take_roles(role_book* book); ///< of the user as they are now; null: roles decide nothing
  /// The caller in the form of the table of rights.
  authority::principal asks() const;
};

struct cluster_identity {
  std::string cluster_id, master_id, cluster_name, troupe_version;
  std::uint16_t link_port = 0; ///< port of the node link; 0: agents cannot register
  bool link_tls = false;
  std::string join_token; ///< token that agents show for blobs; empty: not asked for
  std::uint32_t link_protocol = 1;
};

/// What the web page's users are asked for beside their token.
struct browser_rules {
  bool loopback = false;          ///< only names of this host are answered: others are DNS rebinding
  bool tls = false;               ///< cookies go over TLS alone
  std::uint16_t proxy_port = 0;   ///< a port of this server that shows tasks' pages alone; 0: none
  std::vector<std::string> hosts; ///< further names that the server answers to
  std::shared_ptr<login_codes> codes = std::make_shared<login_codes>();
  std::string proxy_domain; ///< LABEL.DOMAIN is the page of a task's service; empty: none
};

class past_shelf;
class series_columns;
class slot_history;

/// What handlers stand on.
struct services {
  gate& cluster;
  std::shared_ptr<storage::reader> storage;
  std::shared_ptr<accounts> users;
  cluster_identity about;
  std::function<time_point()> now;
  std::shared_ptr<runner_states> runners = std::make_shared<runner_states>();
  std::shared_ptr<experiment_texts> texts = std::make_shared<experiment_texts>();
  std::shared_ptr<trial_texts> trials = std::make_shared<trial_texts>();
  browser_rules browsers = {};
  std::shared_ptr<series_columns> columns = {}; ///< made by the service where it is empty
  std::shared_ptr<proxy_desk> proxy = std::make_shared<proxy_desk>();
  /// An empty journal in memory, in which the past of an experiment is folded; empty: the past is not shown.
  std::function<std::unique_ptr<storage::journal>()> empty_journal = {};
  std::shared_ptr<past_shelf> past = {};    ///< made by the service
  std::shared_ptr<slot_history> slots = {}; ///< made by the service
  std::shared_ptr<role_book> roles = {};    ///< empty: roles decide nothing
  bool strict_queue = false;                ///< see guard
  token_lives tokens = {};
  std::shared_ptr<const services> all = {}; ///< of what one viewer sees: everybody's
};

struct call {
  std::shared_ptr<const services> parts;                ///< an answer may come after the server has gone
  std::string target;                                   ///< target as received
  std::map<std::string, std::string, std::less<>> path; ///< values of {name} in the path
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
  std::string path;      ///< "/api/v1/experiments/{experimentId}"; a last "{name*}" takes all that follows
  authority::need right; ///< on the thing that the path names, by its {experimentId}, {trialId} ...
  handler run;
  const char* takes = "";   ///< name of the body's type, empty for none
  const char* answers = ""; ///< name of the answer's type
  const char* doc = "";
  std::size_t body_bytes = 1 << 20;
  std::chrono::seconds patience{60}; ///< time until the answer; then 504
  bool slow = false;                 ///< takes long on a processor: not on a thread that serves connections
  bool asks_again = false;           ///< the handler asks for the right, on the thing that the body names
  bool leads_to_login = false; ///< who is not logged in and goes there with a browser is asked to log in
  bool from_facts =
    false; ///< the answer depends on committed facts alone, so that it may be kept until the next
};

/// 96 MiB of files in base64, so that a context that is over its limit is told so, and what stands around
/// them.
inline constexpr std::size_t large_body = 129u << 20;

/// The row with what its handler asks again; see there.
inline route asks_again(route row) {
  row.asks_again = true;
  return row;
}

/// The row of a page that people go to with a browser.
inline route leads_to_login(route row) {
  row.leads_to_login = true;
  return row;
}

/// Whether the caller may, by the table of rights. Where roles decide, only permissions of the cluster are
/// looked at here: for those of workspaces there are the veil over storage and the guard of commands.
result<void> allowed(const call& c, action what, const authority::resource& on);

/// What the path names of the kind that the route is about; without an id where it names none.
authority::resource named_thing(const call& c, thing kind);

/// Whether the task is a trial of an unmanaged experiment: a user speaks for it.
bool of_unmanaged(const call& c, task_id task);
/// The call of a user who speaks for an unmanaged trial, as if its own task made it. errc::denied where the
/// trial is managed, errc::conflict where it has no open run; `late`: the newest will do, as lines of its log
/// come after its end.
result<call_ptr> spoken_for(const call_ptr& c, task_id task, bool late = false);

/// Wraps a function that answers at once.
handler answer_with(std::function<result<value>(const call&)> make);
handler respond_with(std::function<result<response>(const call&)> make);

using answer_shape = std::function<result<value>(value)>;
using error_shape = std::function<response(const error&)>;
/// Answers a call with what a command gave, in `shape`; `on_error` may restate its error.
answer answer_to(const call_ptr& c, const reply& back, answer_shape shape, error_shape on_error);

/// Runs a command behind the gate. Without a shape the answer's body is {}.
template <commands::command C>
void command(const call_ptr& c, const reply& back, C with, answer_shape shape = {},
             error_shape on_error = {}) {
  c->parts->cluster.order(c->by.who, std::move(with),
                          answer_to(c, back, std::move(shape), std::move(on_error)));
}
/// The answer's body is what the command gave.
inline result<value> as_it_is(value got) { return got; }

/// The one that `{experimentId}` of the path names; errc::invalid where it is not an id, errc::not_found.
result<experiment_row> named_experiment(const call& c);
/// The same of a trial that a text names, and of the one that `{trialId}` of the path does.
result<trial_row> trial_of(const call& c, std::string_view text);
result<trial_row> named_trial(const call& c);

/// The tables, one per file of routes.
std::vector<route> cluster_routes();
std::vector<route> pool_routes();
std::vector<route> user_routes();
std::vector<route> experiment_routes();
std::vector<route> trial_routes();
std::vector<route> checkpoint_routes();
std::vector<route> task_routes();
std::vector<route> troupe_routes();
std::vector<route> search_routes();
std::vector<route> place_routes();
std::vector<route> registry_routes();
std::vector<route> description_routes();
std::vector<route> removal_routes();
std::vector<route> people_routes();
std::vector<route> rule_routes();
std::vector<route> webhook_routes();
std::vector<route> stream_routes();
std::vector<route> master_routes();
std::vector<route> run_routes();
std::vector<route> insight_routes();
std::vector<route> session_routes();
std::vector<route> series_routes();
std::vector<route> usage_routes();
std::vector<route> history_routes();
std::vector<route> analysis_routes();
std::vector<route> live_routes();
std::vector<route> log_routes();
std::vector<route> file_routes();
std::vector<route> proxy_routes();
std::vector<route> work_routes();
std::vector<route> unmanaged_routes();
/// All of them.
std::vector<route> all_routes();

} // namespace troupe::api
