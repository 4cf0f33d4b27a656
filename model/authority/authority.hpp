#pragma once
// Who may do what: one table of rules, and one question. Pure. A route, the desk of the shell and a command
// say which action on which thing they are; nothing else decides on rights.

#include "model/result.hpp"

#include <string>
#include <vector>

namespace troupe::authority {

enum class action {
  view,   ///< reads, and changes nothing
  create, ///< makes one
  change, ///< sets what it is, or stops and continues it
  kill,   ///< ends it at once, at the cost of what is not saved
  remove, ///< erases stored data
  move,   ///< takes it to another place
  report, ///< says what happened to the caller
};

enum class thing {
  door,          ///< open before a login, or with a secret of its own: health, link, fence, blobs
  session,       ///< logging in
  self,          ///< the caller's own account: password and display name
  cluster,       ///< the node itself, its slots, queue and agents
  agent,         ///< one host
  configuration, ///< the configuration in force
  user,          ///< any account
  token,         ///< access tokens of accounts
  workspace,
  project,
  config_template,
  model, ///< a registered model, with its versions
  experiment,
  search, ///< what an experiment has heard, decided and found
  trial,
  task,       ///< a trial, or a task of another kind
  allocation, ///< one run of a task
  checkpoint,
  files,  ///< the files that an experiment was submitted with, or that its checkpoints hold
  log,    ///< the output of a task
  actor,  ///< what the shell shows
  fault,  ///< disturbances for tests
  secret, ///< a command that checks its own token
  group,  ///< a group of users
  role,
  policy,  ///< what configurations must be
  pool,    ///< who may use a pool
  webhook, ///< a receiver of events
  cluster_message,
  usage,  ///< who used how many slots
  master, ///< settings of the master's program
};

struct need {
  action what = action::view;
  thing on = thing::door;
  friend constexpr bool operator==(need, need) = default;
};

/// Whether `name` is the account's present name `user`, or one of its former names (case folded). No other
/// account may ever take one of these.
bool bears(const std::string& name, const std::string& user, const std::vector<std::string>& former);

/// Who asks. A task acts for its owner, with fewer rights.
struct principal {
  std::string user; ///< name of the account; empty: not logged in
  bool admin = false;
  std::string id; ///< id of the account
  // These are a task's; they are empty for a user.
  std::string experiment, task, allocation; ///< `task`: a trial's number, or a UUID
  std::vector<std::string> former = {};     ///< former names of the account, case folded
  bool is_task() const { return !allocation.empty(); }
  /// Whether this account is the owner that a fact names in this way.
  bool is(const std::string& owner) const;
};

/// One thing. An empty `id` means all things of the kind. For checkpoints, files and logs it is the id of
/// their experiment or trial.
struct resource {
  thing kind = thing::door;
  std::string id;
  std::string owner;      ///< name of the account; needed where a rule asks for it
  bool unmanaged = false; ///< whether its experiment is unmanaged: no task of the cluster acts for it
};

/// Whether `who` may do it to any thing of the kind: asked where the thing is known only later.
result<void> may_any(const principal& who, need what);
/// Fails with errc::unauthorized where the table asks for a login and there is none; with errc::denied, and a
/// reason.
result<void> may(const principal& who, action what, const resource& on);

/// owner: the thing's owner, and admins; unmanaged: all users, where the experiment is unmanaged
enum class users { nobody, admins, oneself, owner, unmanaged, all };
enum class tasks { none, own, all };

struct rule {
  need on;
  users of_users = users::nobody;
  tasks of_tasks = tasks::none;
  bool open = false; ///< allowed without a login
};

/// Each pair of action and thing that is ever asked about has one row; other pairs are denied.
const std::vector<rule>& rules();
const rule* rule_of(need what);

const char* name(action what);
const char* name(thing what);
/// "admin", "user or own task": shown in documents.
std::string who_may(need what);

} // namespace troupe::authority
