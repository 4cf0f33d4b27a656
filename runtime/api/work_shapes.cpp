#include "runtime/api/work_shapes.hpp"

#include "actors/task/task_settings.hpp"
#include "model/config/secrets.hpp"
#include "model/config_in_force.hpp"
#include "runtime/api/place_shapes.hpp"

#include <pwd.h>
#include <unistd.h>

namespace troupe::api {
namespace {

value detail(const task_detail& task, const char* key) {
  return task.made.details.is_object() ? task.made.details.value(key, value()) : value();
}

const run_row* newest(const task_detail& task) { return task.runs.empty() ? nullptr : &task.runs.back(); }

/// Whether the task runs. The master itself runs a collection of checkpoints that it reaches, without slots.
bool is_running(const task_detail& task) {
  const auto* run = newest(task);
  return run && run->ended == time_point{} &&
         (!run->on.empty() ||
          (task.made.id.kind() == task_kind::checkpoint_gc && !collects_on_agent(task.made)));
}

bool has_service(task_kind kind) {
  return kind == task_kind::notebook || kind == task_kind::shell || kind == task_kind::tensorboard;
}

/// The account that the task runs as: that of its configuration, or else of its owner, or else the one that
/// its service reported, or else that of this process.
value account_of(const task_detail& task, const accounts& users) {
  if (auto given = detail(task, "account"); given.is_object())
    return given;
  if (auto owner = users.owner(task.made.owner); owner && owner->runs_as)
    return {{"user", owner->runs_as->user},
            {"uid", owner->runs_as->uid},
            {"group", owner->runs_as->group},
            {"gid", owner->runs_as->gid}};
  if (!task.runs_as.empty()) {
    const auto& said = task.runs_as[0];
    return {{"user", said.user}, {"uid", said.uid}, {"group", said.group}, {"gid", said.gid}};
  }
  passwd entry{}, *found = nullptr;
  char buffer[4096];
  const bool known = ::getpwuid_r(::geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found;
  return {{"user", known ? found->pw_name : std::to_string(::geteuid())},
          {"uid", ::geteuid()},
          {"group", ""},
          {"gid", ::getegid()}};
}

std::string exit_of(const task_detail& task) {
  if (task.state == task_state::completed)
    return "allocation exited successfully"; // users' scripts around `det` expect this text
  return task.why.empty() ? "exit code " + std::to_string(task.exit_code) : task.why;
}

} // namespace

std::string work_state(const task_detail& task) {
  if (terminal(task.state))
    return "STATE_TERMINATED";
  if (task.state == task_state::stopping_canceled || task.state == task_state::stopping_paused)
    return "STATE_TERMINATING";
  return is_running(task) ? "STATE_RUNNING" : "STATE_QUEUED";
}

std::string service_address(const task_detail& task, const accounts& users, bool with_token) {
  const auto kind = task.made.id.kind();
  if (!has_service(kind))
    return {};
  auto address = "/proxy/" + to_string(task.made.id) + "/";
  if (kind == task_kind::notebook && with_token)
    if (auto owner = users.owner(task.made.owner))
      address += "?token=" + users.service_token(task.made.id, owner->id);
  return address;
}

std::string agents_of(const task_detail& task) {
  std::string names;
  if (const auto* run = newest(task))
    for (const auto& part : run->on)
      names += (names.empty() ? "" : ",") + part.agent;
  return names;
}

value work_shape(const task_detail& task, const accounts& users, bool secrets) {
  const auto& made = task.made;
  const auto owner = users.owner(made.owner);
  value out{{"id", to_string(made.id)},
            {"description", made.name},
            {"state", work_state(task)},
            {"startTime", to_rfc3339(made.at)},
            {"container", nullptr},
            {"username", owner ? owner->name : made.owner},
            {"userId", owner ? owner->id : 0},
            {"displayName",
             owner && !owner->display_name.empty() ? owner->display_name : users.now_named(made.owner)},
            {"resourcePool", made.pool},
            {"exitStatus", terminal(task.state) ? exit_of(task) : ""},
            {"jobId", to_string(made.id)},
            {"workspaceId", made.workspace.value}};
  switch (made.id.kind()) {
  case task_kind::notebook:
    out["serviceAddress"] = service_address(task, users, secrets);
    break;
  case task_kind::tensorboard: {
    out["serviceAddress"] = service_address(task, users, false);
    for (const char* key : {"experimentIds", "trialIds"}) {
      auto ids = detail(task, key);
      out[key] = ids.is_array() ? ids : value::array();
    }
    break;
  }
  case task_kind::shell: {
    out["publicKey"] = detail(task, "publicKey");
    out["privateKey"] = "";
    if (const auto key = detail(task, "privateKey"); secrets && key.is_string())
      if (auto open = users.reveal(key.get<std::string>()))
        out["privateKey"] = *open;
    out["addresses"] = value::array();
    out["agentUserGroup"] = account_of(task, users);
    break;
  }
  default:
    break;
  }
  return out;
}

value own_work_shape(const task_detail& task, const accounts& users, time_point now) {
  const auto& made = task.made;
  const auto* run = newest(task);
  int slots = 0;
  if (run)
    for (const auto& part : run->on)
      slots += static_cast<int>(part.slots.size());
  const auto wanted =
    made.config.is_object() ? made.config.value(value::json_pointer("/resources/slots"), value(0)) : value(0);
  const bool live = !terminal(task.state);
  const auto kind = made.id.kind();
  const bool serves = has_service(kind);
  const auto services = services_of(made.config, made.id);
  const auto main_one = std::find_if(services.begin(), services.end(),
                                     [id = to_string(made.id)](const task_service& x) { return x.id == id; });
  const auto address = main_one != services.end() ? main_one : services.begin();
  value out{{"id", to_string(made.id)},
            {"kind", name(kind)},
            {"name", made.name},
            {"state", task.state == task_state::active && !is_running(task) ? "QUEUED" : name(task.state)},
            {"running", is_running(task)},
            {"priority", task.priority > 0 ? value(task.priority)
                         : made.config.is_object()
                           ? made.config.value(value::json_pointer("/resources/priority"), value())
                           : value()},
            {"owner", users.now_named(made.owner)},
            {"workspace", made.workspace.value},
            {"pool", made.pool},
            {"slots", run && !run->on.empty() ? value(slots) : wanted},
            {"agent", agents_of(task)},
            {"created", to_rfc3339(made.at)},
            {"started", run && run->placed != time_point{} ? value(to_rfc3339(run->placed)) : value()},
            {"ended", live ? value() : value(to_rfc3339(task.ended))},
            {"ready", serves ? live && task.ready : live && is_running(task)},
            {"idle", live && task.ready && task.active != time_point{}
                       ? value(std::chrono::duration<double>(now - task.active).count())
                       : value()},
            {"exit", live || task.exit_code < 0 ? value() : value(task.exit_code)},
            {"why", task.why},
            {"runs", task.runs.size()},
            {"parent", made.parent ? value(to_string(made.parent)) : value()},
            {"address", services.empty() ? value() : value("/proxy/" + address->id + "/")}};
  add_log_policy(out, task.log_policy);
  return out;
}

void add_log_policy(value& shape, const std::string& matched) {
  if (!matched.empty())
    shape["logPolicyMatched"] = matched;
}

void add_other_summary(value& shape, const task_detail& task) {
  add_log_policy(shape, task.log_policy);
  shape["name"] = task.made.name;
  shape["resourcePool"] = task.made.pool;
  if (const auto* run = newest(task); !run || run->on.empty())
    shape["slotsNeeded"] = task.made.config.value(value::json_pointer("/resources/slots"), value(0));
}

void add_other(value& shape, const task_detail& task) {
  const auto& made = task.made;
  if (made.id.kind() == task_kind::generic) {
    shape["taskState"] = "GENERIC_TASK_STATE_" + std::string(name(task.state));
    shape["noPause"] = made.no_pause == 1;
    if (made.parent)
      shape["parentId"] = to_string(made.parent);
    if (made.forked_from)
      shape["forkedFrom"] = to_string(made.forked_from);
  }
  add_log_policy(shape, task.log_policy);
  shape["config"] = to_json(config::without_secrets(config_in_force(task)));
  if (has_service(made.id.kind())) // a service has to report that it is ready
    for (auto& run : shape["allocations"])
      run["isReady"] = run["isReady"] == true && task.ready;
}

} // namespace troupe::api
