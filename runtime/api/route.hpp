#pragma once
// The table of routes. A row says a route's method and path, what the route does to which thing, its handler,
// and what the document says. Only model/authority says who may do that.

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

/// The caller, as the token says.
struct identity {
  principal who;
  std::uint64_t user_id = 0;
  std::vector<std::string> former; ///< names that the user had, case folded
  experiment_id experiment;        ///< experiment of the calling task; 0: none
  allocation_id allocation;        ///< allocation of the calling task; 0: a user calls
  /// What the user may do now; null: roles decide nothing.
  std::shared_ptr<const authority::grants> roles = {};
  bool is_task() const { return bool(allocation); }
  /// Whether `owner`, a name in a fact, is the caller's, or that of the owner of the calling task.
  bool is(const std::string& owner) const { return authority::bears(owner, who.user, former); }
  /// Reads the user's present roles from the book; null: roles decide nothing.
  void take_roles(role_book* book);
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

/// What requests of browsers have to fulfil besides showing a token.
struct browser_rules {
  bool loopback = false;          ///< only names of this host are accepted as Host: others are DNS rebinding
  bool tls = false;               ///< browsers send our cookies over TLS only
  std::uint16_t proxy_port = 0;   ///< port of this server that shows tasks' pages only; 0: none
  std::vector<std::string> hosts; ///< further names that the server answers to
  std::shared_ptr<login_codes> codes = std::make_shared<login_codes>();
  std::string proxy_domain; ///< LABEL.DOMAIN is the page of a task's service; empty: none
};

class past_shelf;
class series_columns;
class slot_history;

/// What handlers work with.
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
  bool strict_queue = false;                ///< see class guard
  token_lives tokens = {};
  /// Set where these services show what one viewer sees: the services that show everything.
  std::shared_ptr<const services> all = {};
};

struct call {
  std::shared_ptr<const services> parts; ///< shared: an answer may come after the server has ended
  std::string target;                    ///< target as received
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
  authority::need right; ///< needed on the thing that the path names by {experimentId}, {trialId} ...
  handler run;
  const char* takes = "";   ///< name of the body's type, empty for none
  const char* answers = ""; ///< name of the answer's type
  const char* doc = "";
  std::size_t body_bytes = 1 << 20;
  std::chrono::seconds patience{60}; ///< time until the answer; then 504
  bool slow = false;       ///< takes much processor time, so it runs on a thread that serves no connections
  bool asks_again = false; ///< the handler checks the right on the thing that the body names
  bool leads_to_login = false; ///< a browser without a login is sent to the login page
  bool holds_secret = false;   ///< the answer has a token or a key, so it is never compressed
  /// The answer depends on committed facts only, so that it may be kept until the next fact.
  bool from_facts = false;
};

/// Fits 96 MiB of files in base64 and the JSON around them, so that a context slightly over its limit reaches
/// the check that names the limit.
inline constexpr std::size_t large_body = 129u << 20;

/// The row, marked as one whose handler checks the right; see route::asks_again.
inline route asks_again(route row) {
  row.asks_again = true;
  return row;
}

/// The row, marked as one whose answer has a token or a key.
inline route holds_secret(route row) {
  row.holds_secret = true;
  return row;
}

/// The row, marked as a page that people open with a browser.
inline route leads_to_login(route row) {
  row.leads_to_login = true;
  return row;
}

/// Whether the table of rights allows the caller to do this. Where roles decide, this looks only at
/// permissions of the cluster: the veil over storage and the guard of commands look at those of workspaces.
result<void> allowed(const call& c, action what, const authority::resource& on);

/// The thing of this kind that the path names; without an id where the path names none.
authority::resource named_thing(const call& c, thing kind);

/// Whether the task is a trial of an unmanaged experiment, for which a user speaks.
bool of_unmanaged(const call& c, task_id task);
/// The call of a user who speaks for an unmanaged trial, as if the trial's own task made it. Fails with
/// errc::denied where the trial is managed, with errc::conflict where it has no open run. `late`: an ended
/// run will do, because lines of a log may come after the end.
result<call_ptr> spoken_for(const call_ptr& c, task_id task, bool late = false);

/// Makes a handler of a function that answers at once.
handler answer_with(std::function<result<value>(const call&)> make);
handler respond_with(std::function<result<response>(const call&)> make);

using answer_shape = std::function<result<value>(value)>;
using error_shape = std::function<response(const error&)>;
/// Makes the answer of a command into the answer of the call: `shape` forms the body, and `on_error` may
/// state the error in another way.
answer answer_to(const call_ptr& c, const reply& back, answer_shape shape, error_shape on_error);

/// Runs a command through the gate. Without `shape` the answer's body is {}.
template <commands::command C>
void command(const call_ptr& c, const reply& back, C with, answer_shape shape = {},
             error_shape on_error = {}) {
  c->parts->cluster.order(c->by.who, std::move(with),
                          answer_to(c, back, std::move(shape), std::move(on_error)));
}
/// A shape for `command`: the answer's body is what the command gave.
inline result<value> as_it_is(value got) { return got; }

/// The experiment that `{experimentId}` of the path names. Fails with errc::invalid where that is not an id,
/// and with errc::not_found.
result<experiment_row> named_experiment(const call& c);
/// The trial that `text` names, and the trial that `{trialId}` of the path names. Both fail as
/// named_experiment.
result<trial_row> trial_of(const call& c, std::string_view text);
result<trial_row> named_trial(const call& c);
/// The trials of a list as "1,2", each once. Fails as trial_of, and with errc::invalid above 1,000.
result<std::vector<trial_row>> listed_trials(const call& c, std::string_view list);

/// Whether the experiment is gone, or its deletion takes its parts away one after the other: what is missing
/// of it then is not told on its own.
bool is_leaving(const call& c, experiment_id id);

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
/// The rows of all these tables.
std::vector<route> all_routes();

} // namespace troupe::api
