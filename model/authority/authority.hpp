#pragma once
// Who may do what: one table of rules, and one question. Pure; a route, the desk of the shell and a command
// say which action on which thing they are, and nothing else decides on rights.

#include "model/result.hpp"

#include <string>
#include <vector>

namespace troupe::authority {

enum class action {
  view,   ///< reads, and changes nothing
  create, ///< makes one
  change, ///< sets what it is, or stops and continues it
  kill,   ///< ends it at once, at the cost of what is not saved
  remove, ///< erases what is stored
  move,   ///< takes it to another place
  report, ///< says what happened, as the one whom it happened to
};

enum class thing {
  door,          ///< what is said before a login, or with a secret of its own: health, link, fence, blobs
  session,       ///< a login
  self,          ///< the caller's own account: password and display name
  cluster,       ///< the node itself, its slots, queue and agents
  agent,         ///< one host
  configuration, ///< what is in force
  user,          ///< any account
  token,         ///< access tokens of accounts
  workspace,
  project,
  config_template,
  model, ///< of the registry, with its versions
  experiment,
  search, ///< what an experiment has heard, decided and found
  trial,
  task,       ///< a trial, or what runs besides
  allocation, ///< one run of a task
  checkpoint,
  files,  ///< what an experiment was submitted with, and what its checkpoints hold
  log,    ///< the output of a task
  actor,  ///< what the shell looks at
  fault,  ///< disturbances for tests
  secret, ///< a command whose own token is checked by whoever takes it
  group,  ///< users that belong together
  role,
  policy,  ///< what configurations have to be
  pool,    ///< who may use it
  webhook, ///< a receiver of events
  cluster_message,
  usage,  ///< who used how many slots
  master, ///< settings of the node's program
};

struct need {
  action what = action::view;
  thing on = thing::door;
  friend constexpr bool operator==(need, need) = default;
};

/// Whether `name` is that of the account: its present name `user`, or one of its former ones (case folded).
/// No other account may ever take one of these.
bool bears(const std::string& name, const std::string& user, const std::vector<std::string>& former);

/// Who asks. A task speaks for its owner, and may less.
struct principal {
  std::string user; ///< name of the account; empty: not logged in
  bool admin = false;
  std::string id; ///< of the account
  // Of a task; empty for a user:
  std::string experiment, task, allocation; ///< `task`: a trial's number, or a UUID
  std::vector<std::string> former = {};     ///< names that the account had, case folded
  bool is_task() const { return !allocation.empty(); }
  /// Whether the owner that a fact names so is this account.
  bool is(const std::string& owner) const;
};

/// One thing. `id` is empty where the action is on all things of the kind.
/// Of checkpoints, files and logs it is the id of the experiment or trial that they belong to.
struct resource {
  thing kind = thing::door;
  std::string id;
  std::string owner;      ///< name of the account, where a rule asks for it
  bool unmanaged = false; ///< of an unmanaged experiment: no task of the cluster speaks for it
};

/// Whether `who` may do it to any thing of the kind at all: asked where the thing is known only later.
result<void> may_any(const principal& who, need what);
/// errc::unauthorized where nobody is logged in and the table asks for somebody; errc::denied with a reason.
result<void> may(const principal& who, action what, const resource& on);

/// owner: of the thing, and admins; unmanaged: all, where the thing is of an unmanaged experiment
enum class users { nobody, admins, oneself, owner, unmanaged, all };
enum class tasks { none, own, all };

struct rule {
  need on;
  users of_users = users::nobody;
  tasks of_tasks = tasks::none;
  bool open = false; ///< without a login
};

/// Each pair of action and thing that is asked about stands here once; what does not is denied.
const std::vector<rule>& rules();
const rule* rule_of(need what);

const char* name(action what);
const char* name(thing what);
/// "admin", "user or own task": for documents.
std::string who_may(need what);

} // namespace troupe::authority
