#include "model/authority/authority.hpp"

#include "model/authority/need_index.hpp"
#include "model/chosen_name.hpp"

#include <algorithm>

namespace troupe::authority {

const std::vector<rule>& rules() {
  using enum action;
  using enum thing;
  constexpr bool open = true;
  static const std::vector<rule> table = {
    // action, thing              users            tasks
    {{view, door}, users::all, tasks::all, open},
    {{create, session}, users::all, tasks::all, open},
    {{remove, session}, users::all, tasks::none},
    {{report, secret}, users::all, tasks::all, open}, // the handler checks the secret
    {{view, secret}, users::owner, tasks::own}, // what opens a task: a client inside it acts as its owner
    {{view, self}, users::all, tasks::all},
    {{change, self}, users::oneself, tasks::none},

    {{view, user}, users::all, tasks::none},
    {{create, user}, users::admins, tasks::none},
    {{change, user}, users::admins, tasks::none},
    {{remove, user}, users::admins, tasks::none},
    {{view, token}, users::oneself, tasks::none},
    {{create, token}, users::oneself, tasks::none},
    {{remove, token}, users::oneself, tasks::none},

    {{view, cluster}, users::all, tasks::none},
    {{kill, cluster}, users::admins, tasks::none},
    {{view, agent}, users::all, tasks::none},
    {{change, agent}, users::admins, tasks::none},
    {{remove, agent}, users::admins, tasks::none},
    {{view, configuration}, users::all, tasks::none},
    {{change, configuration}, users::admins, tasks::none},

    {{view, group}, users::all, tasks::none},
    {{change, group}, users::admins, tasks::none},
    {{view, role}, users::all, tasks::none},
    {{change, role}, users::admins, tasks::none},
    {{view, policy}, users::all, tasks::none},
    {{change, policy}, users::owner, tasks::none}, // of the workspace; those of the cluster have none
    {{view, pool}, users::all, tasks::none},
    {{change, pool}, users::admins, tasks::none},
    {{view, webhook}, users::all, tasks::none},
    {{create, webhook}, users::owner, tasks::none}, // the owner of the workspace
    {{change, webhook}, users::owner, tasks::none},
    {{remove, webhook}, users::owner, tasks::none},
    {{report, webhook}, users::all, tasks::all}, // the handler compares the experiments
    {{view, usage}, users::all, tasks::none},
    {{view, cluster_message}, users::admins, tasks::none},
    {{change, cluster_message}, users::admins, tasks::none},
    {{view, master}, users::admins, tasks::none},
    {{change, master}, users::admins, tasks::none},

    {{create, workspace}, users::all, tasks::none},
    {{view, workspace}, users::all, tasks::none},
    {{change, workspace}, users::owner, tasks::none},
    {{remove, workspace}, users::owner, tasks::none},
    {{create, project}, users::all, tasks::none},
    {{view, project}, users::all, tasks::none},
    {{change, project}, users::owner, tasks::none}, // the owner, or that of the workspace
    {{remove, project}, users::owner, tasks::none},
    {{view, config_template}, users::all, tasks::none},
    {{change, config_template}, users::all, tasks::none},
    {{create, model}, users::all, tasks::none},
    {{view, model}, users::all, tasks::all},
    {{change, model}, users::all, tasks::none},
    {{remove, model}, users::owner, tasks::none},

    {{create, experiment}, users::all, tasks::none},
    {{view, experiment}, users::all, tasks::own},
    {{change, experiment}, users::all, tasks::none},
    {{kill, experiment}, users::all, tasks::none},
    {{remove, experiment}, users::owner, tasks::none},
    {{move, experiment}, users::owner, tasks::none},
    {{view, search}, users::all, tasks::none},
    {{view, trial}, users::all, tasks::own},
    {{change, trial}, users::all, tasks::own},
    {{kill, trial}, users::all, tasks::none},
    {{remove, trial}, users::owner, tasks::none}, // the owner of its experiment
    {{create, trial}, users::all, tasks::none},   // unmanaged ones; searches create others
    {{report, trial}, users::unmanaged, tasks::own},
    {{create, task}, users::all, tasks::none},
    {{view, task}, users::all, tasks::own},
    {{change, task}, users::all, tasks::own},
    {{kill, task}, users::all, tasks::own},
    {{report, task},
     users::unmanaged,
     tasks::all}, // the handler compares the ids in the body with the caller
    {{view, allocation}, users::all, tasks::none},
    {{change, allocation}, users::all, tasks::own}, // its service answers, where it is, who is there
    {{report, allocation}, users::nobody, tasks::own},

    {{view, checkpoint}, users::all, tasks::own},
    {{change, checkpoint}, users::all, tasks::own},
    {{report, checkpoint},
     users::unmanaged,
     tasks::all}, // for the task's own allocation, which the command carries
    {{remove, checkpoint}, users::all, tasks::none},
    {{view, files}, users::all, tasks::none},
    {{view, log}, users::all, tasks::own},
    {{report, log}, users::unmanaged, tasks::all}, // lines of other tasks are dropped
    {{remove, log}, users::admins, tasks::none},

    {{view, actor}, users::all, tasks::none},
    {{change, actor}, users::admins, tasks::none},
    {{kill, actor}, users::admins, tasks::none},
    {{create, fault}, users::admins, tasks::none},
  };
  return table;
}

const rule* rule_of(need what) {
  static const need_index<rule> index(rules());
  return index.find(what);
}

namespace {

/// Whether a thing is the task's own, by the id that things of its kind have.
bool owns(const principal& task, const resource& on) {
  if (on.id.empty())
    return false;
  switch (on.kind) {
  case thing::experiment:
  case thing::checkpoint:
    return on.id == task.experiment;
  case thing::trial:
  case thing::task:
  case thing::log:
  case thing::secret:
    return on.id == task.task;
  case thing::allocation:
    return on.id == task.allocation;
  default:
    return false;
  }
}

result<void> asked(const principal& who, const rule* rule, const resource* on) {
  if (rule && rule->open)
    return {};
  if (who.user.empty() && !who.is_task())
    return error{errc::unauthorized, "no token: log in first"};
  bool fine = false;
  // While its owner has an active account, a task may also view what all users may view.
  if (rule && who.is_task())
    fine = rule->of_tasks == tasks::all || (rule->of_tasks == tasks::own && (!on || owns(who, *on))) ||
           (rule->on.what == action::view && rule->of_users == users::all && !who.id.empty());
  else if (rule)
    switch (rule->of_users) {
    case users::nobody:
      break;
    case users::admins:
      fine = who.admin;
      break;
    case users::oneself:
      fine = who.admin || !on || (!on->id.empty() && on->id == who.id);
      break;
    case users::owner:
      fine = who.admin || !on || who.is(on->owner);
      break;
    case users::unmanaged:
      fine = !on || on->unmanaged;
      break;
    case users::all:
      fine = true;
      break;
    }
  if (fine)
    return {};
  return error{errc::denied,
               who.is_task() ? "a task's token does not open this"
               : rule && rule->of_users == users::unmanaged
                 ? "access denied: users report of unmanaged experiments only; of others their tasks do"
                 : "access denied"};
}

} // namespace

bool bears(const std::string& name, const std::string& user, const std::vector<std::string>& former) {
  return !name.empty() && (name == user || (!former.empty() && std::find(former.begin(), former.end(),
                                                                         case_folded(name)) != former.end()));
}
bool principal::is(const std::string& owner) const { return bears(owner, user, former); }

result<void> may(const principal& who, action what, const resource& on) {
  return asked(who, rule_of({what, on.kind}), &on);
}
result<void> may_any(const principal& who, need what) { return asked(who, rule_of(what), nullptr); }

const char* name(action what) {
  switch (what) {
  case action::view:
    return "view";
  case action::create:
    return "create";
  case action::change:
    return "change";
  case action::kill:
    return "kill";
  case action::remove:
    return "remove";
  case action::move:
    return "move";
  case action::report:
    return "report";
  }
  return "";
}

const char* name(thing what) {
  switch (what) {
  case thing::door:
    return "door";
  case thing::session:
    return "session";
  case thing::self:
    return "self";
  case thing::cluster:
    return "cluster";
  case thing::agent:
    return "agent";
  case thing::configuration:
    return "configuration";
  case thing::user:
    return "user";
  case thing::token:
    return "token";
  case thing::workspace:
    return "workspace";
  case thing::project:
    return "project";
  case thing::config_template:
    return "template";
  case thing::model:
    return "model";
  case thing::experiment:
    return "experiment";
  case thing::search:
    return "search";
  case thing::trial:
    return "trial";
  case thing::task:
    return "task";
  case thing::allocation:
    return "allocation";
  case thing::checkpoint:
    return "checkpoint";
  case thing::files:
    return "files";
  case thing::log:
    return "log";
  case thing::actor:
    return "actor";
  case thing::fault:
    return "fault";
  case thing::secret:
    return "secret";
  case thing::group:
    return "group";
  case thing::role:
    return "role";
  case thing::policy:
    return "policy";
  case thing::pool:
    return "pool";
  case thing::webhook:
    return "webhook";
  case thing::cluster_message:
    return "cluster message";
  case thing::usage:
    return "usage";
  case thing::master:
    return "master";
  }
  return "";
}

std::string who_may(need what) {
  const auto* rule = rule_of(what);
  if (!rule)
    return "nobody";
  if (rule->open)
    return "open";
  const char* people = rule->of_users == users::all         ? "user"
                       : rule->of_users == users::oneself   ? "oneself or admin"
                       : rule->of_users == users::owner     ? "owner or admin"
                       : rule->of_users == users::admins    ? "admin"
                       : rule->of_users == users::unmanaged ? "user where unmanaged"
                                                            : "";
  const bool looks = what.what == action::view && rule->of_users == users::all;
  const char* programs = rule->of_tasks == tasks::all || looks ? "task"
                         : rule->of_tasks == tasks::own        ? "own task"
                                                               : "";
  return std::string(people) + (*people && *programs ? " or " : "") + programs;
}

} // namespace troupe::authority
