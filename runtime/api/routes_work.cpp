// Routes for tasks that are not trials (commands, notebooks, shells, TensorBoards, generic tasks):
// Determined's and our own.

#include "model/checkpoint_place.hpp"
#include "model/config/document.hpp"
#include "model/config/secrets.hpp"
#include "model/config_in_force.hpp"
#include "model/names.hpp"
#include "runtime/api/context.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/experiment_choice.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/gathering.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/ssh_keys.hpp"
#include "runtime/api/unix_account_in.hpp"
#include "runtime/api/work_shapes.hpp"

#include <algorithm>
#include <set>

namespace troupe::api {
namespace {

constexpr duration listed_after_end = std::chrono::hours{24};

struct kind_words {
  task_kind kind;
  const char *one, *many;   ///< "command", "commands": keys of answers, and parts of paths
  const char *ask, *answer; ///< names of the types of the creation's body and answer
  const char *list, *got, *killed, *set_body, *set;
};
constexpr kind_words all_kinds[] = {
  {task_kind::command, "command", "commands", "v1LaunchCommandRequest", "v1LaunchCommandResponse",
   "v1GetCommandsResponse", "v1GetCommandResponse", "v1KillCommandResponse", "v1SetCommandPriorityRequest",
   "v1SetCommandPriorityResponse"},
  {task_kind::notebook, "notebook", "notebooks", "v1LaunchNotebookRequest", "v1LaunchNotebookResponse",
   "v1GetNotebooksResponse", "v1GetNotebookResponse", "v1KillNotebookResponse",
   "v1SetNotebookPriorityRequest", "v1SetNotebookPriorityResponse"},
  {task_kind::shell, "shell", "shells", "v1LaunchShellRequest", "v1LaunchShellResponse",
   "v1GetShellsResponse", "v1GetShellResponse", "v1KillShellResponse", "v1SetShellPriorityRequest",
   "v1SetShellPriorityResponse"},
  {task_kind::tensorboard, "tensorboard", "tensorboards", "v1LaunchTensorboardRequest",
   "v1LaunchTensorboardResponse", "v1GetTensorboardsResponse", "v1GetTensorboardResponse",
   "v1KillTensorboardResponse", "v1SetTensorboardPriorityRequest", "v1SetTensorboardPriorityResponse"},
};

/// The task that the path names. Fails with errc::not_found where it is of another kind.
result<task_detail> named_work(const call& c, std::optional<task_kind> kind) {
  const auto id = parse_task(c.named("taskId"));
  const error none{errc::not_found, std::string(kind ? name(*kind) : "task") + " '" +
                                      std::string(c.named("taskId").substr(0, 100)) + "' not found"};
  if (!id || id.is_trial() || (kind && id.kind() != *kind))
    return none;
  auto row = c.parts->storage->other_task(id);
  return row || row.error().code != errc::not_found ? row : none;
}

/// Whether the caller, who may see the task, may also get the credentials that open it. A notebook's token
/// acts as its owner. As in Determined, everybody who sees a shell may log in. Tasks of the other kinds have
/// only an address.
result<void> may_open(const call& c, const task_detail& task) {
  if (task.made.id.kind() != task_kind::notebook)
    return {};
  return allowed(c, action::view, {thing::secret, to_string(task.made.id), task.made.owner});
}

/// Whether the caller has the permission in the workspace. This is for requests that send no command, since
/// the guard checks commands.
result<void> may_in(const call& c, authority::permission what, workspace_id in) {
  if (!c.by.roles || c.by.is_task() || c.by.roles->holds(what, in))
    return {};
  return error{errc::denied, std::string("access denied: this needs the permission ") +
                               authority::permissions()[static_cast<std::size_t>(what)].name +
                               " in workspace " + to_string(in)};
}
result<void> may_use(const call& c, const task_detail& task) {
  return may_in(c, authority::permission::update_nsc, task.made.workspace);
}

value shape_for(const call& c, const task_detail& task) {
  return work_shape(task, *c.parts->users, bool(may_open(c, task)));
}

// ---- lists

std::vector<std::string> every(const query_list& query, const char* key) {
  std::vector<std::string> out;
  for (const auto& one : query.every(key))
    out.emplace_back(one);
  return out;
}

error no_workspace(std::int64_t id) {
  return {errc::not_found, "workspace '" + std::to_string(id) + "' not found"};
}

/// The workspace that the request names; an empty id where the number is 0 or missing.
result<workspace_id> wanted_workspace(fields& f, const char* key) {
  const auto number = f.number(key);
  return number < 0 ? result<workspace_id>(no_workspace(number))
                    : workspace_id{static_cast<std::uint64_t>(number)};
}

result<void> check_workspace(const call& c, std::int64_t id) {
  if (id == 0)
    return {};
  auto known = c.parts->storage->workspaces();
  if (!known)
    return known.error();
  const bool there = std::any_of(known->begin(), known->end(), [&](const auto& one) {
    return id > 0 && one.id.value == static_cast<std::uint64_t>(id);
  });
  return there ? result<void>() : no_workspace(id);
}

result<std::vector<task_detail>> listed(const call& c, task_kind kind) {
  auto rows = c.parts->storage->other_tasks(kind, c.now - listed_after_end);
  if (!rows)
    return rows;
  const auto users = every(c.query, "users"), ids = every(c.query, "userIds");
  auto workspace = c.query.number("workspaceId", 0);
  if (!workspace)
    return workspace.error();
  if (auto fine = check_workspace(c, *workspace); !fine)
    return fine.error();
  std::set<std::string> wanted(users.begin(), users.end());
  for (const auto& id : ids)
    if (auto user = c.parts->users->find(parse_id<user_id>(id).value))
      wanted.insert(user->name);
  const bool by_user = !users.empty() || !ids.empty();
  std::erase_if(*rows, [&](const task_detail& one) {
    return (by_user && !wanted.contains(c.parts->users->now_named(one.made.owner))) ||
           (*workspace > 0 && one.made.workspace.value != static_cast<std::uint64_t>(*workspace));
  });
  const auto key = c.query.first("sortBy");
  std::stable_sort(rows->begin(), rows->end(), [&](const task_detail& a, const task_detail& b) {
    if (key == "SORT_BY_DESCRIPTION")
      return a.made.name < b.made.name;
    if (key == "SORT_BY_START_TIME")
      return a.made.at < b.made.at;
    if (key == "SORT_BY_WORKSPACE_ID")
      return a.made.workspace < b.made.workspace;
    return a.made.id < b.made.id;
  });
  if (is_descending(c.query))
    std::reverse(rows->begin(), rows->end());
  return rows;
}

handler list_of(const kind_words& words) {
  return answer_with([words](const call& c) -> result<value> {
    auto rows = listed(c, words.kind);
    if (!rows)
      return rows.error();
    auto part = page_of(c.query, rows->size());
    if (!part)
      return part.error();
    auto all = value::array();
    for (auto i = part->first; i < part->last; ++i)
      all.push_back(shape_for(c, (*rows)[i]));
    return value{{words.many, std::move(all)}, {"pagination", part->pagination}};
  });
}

handler one_of(const kind_words& words) {
  return answer_with([words](const call& c) -> result<value> {
    auto row = named_work(c, words.kind);
    if (!row)
      return row.error();
    return value{{words.one, shape_for(c, *row)}, {"config", config::without_secrets(config_in_force(*row))}};
  });
}

// ---- creation

/// The keys of a shell: one for sshd, and one for its user, which the client brings with a passphrase or
/// which is made here.
result<value> shell_keys(const call& c, fields& f, const std::string& name) {
  const auto& users = *c.parts->users;
  auto key = fresh_ssh_key("troupe-" + name);
  const auto data = f.text("data");
  if (f.bad())
    return *f.bad();
  if (!data.empty()) {
    auto text = from_base64(data);
    auto given = text ? parse_json(*text) : result<value>(text.error());
    if (!given || !given->is_object())
      return error{errc::invalid, "data: expected base64 of a JSON object"};
    fields k{*given, "data"};
    const auto secret = k.text("privateKey"), open = k.text("publicKey");
    if (k.bad())
      return *k.bad();
    if (secret.empty() != open.empty())
      return error{errc::invalid, "data: privateKey and publicKey come together"};
    if (open.find('\n') != open.npos && open.find('\n') + 1 != open.size())
      return error{errc::invalid, "data.publicKey: expected one line"};
    if (!open.empty())
      key = {secret, open};
  }
  const auto host = fresh_ssh_key("troupe-host");
  return value{{"publicKey", key.public_line},
               {"privateKey", users.conceal(key.secret)},
               {"hostPublicKey", host.public_line},
               {"hostKey", users.conceal(host.secret)}};
}

/// The place of an experiment's event files as the stock client chooses it: a folder, or the address of a
/// bucket. A bucket's credentials are added, sealed, where the caller may use them.
value board_source(const call& c, const experiment_row& row, trial_id trial) {
  const auto storage = row.config->is_object() ? row.config->value("checkpoint_storage", value()) : value();
  const auto text = [&](const char* key) {
    return storage.is_object() && storage.contains(key) && storage[key].is_string()
             ? storage[key].get<std::string>()
             : std::string();
  };
  const auto type = text("type");
  auto place = c.parts->about.cluster_id + "/tensorboard/experiment/" + to_string(row.id);
  if (trial)
    place += "/trial/" + to_string(trial);
  value kept;
  if (type == "shared_fs" || type == "directory") {
    auto base = text(type == "shared_fs" ? "host_path" : "container_path");
    if (const auto sub = text("storage_path"); type == "shared_fs" && !sub.empty())
      base = sub.starts_with('/') ? sub : base + "/" + sub;
    place = base + "/" + place;
  } else if (!type.empty()) {
    place = address_in_bucket(storage, place);
    if (c.by.is(row.owner)) {
      kept = storage;
      config::each_secret_of_storage(kept, [&](value& secret) {
        secret = secret.is_string() ? value(c.parts->users->conceal(secret.get<std::string>())) : value();
      });
    } else {
      kept = value::object();
      for (const char* key : {"type", "bucket", "container", "prefix"})
        if (storage.contains(key))
          kept[key] = storage[key];
      for (const char* key : {"endpoint_url", "account_url"})
        if (const auto address = text(key); !address.empty())
          kept[key] = config::address_without_login(address);
    }
  }
  return {{"experiment", row.id.value},
          {"trial", trial ? value(trial.value) : value()},
          {"place", place},
          {"storage", kept}};
}

/// Takes the image and the names of its pull secrets from the newest experiment, unless the request has its
/// own. Credentials are never copied.
void take_image(const value& newest, value& config) {
  auto own = config;
  if (config.is_string()) {
    const auto read = config::read_document(config.get<std::string>(), "");
    own = read.faults.empty() ? config::to_value(read.root) : value();
  }
  auto environment = own.is_object() ? own.value("environment", value()) : value(false);
  if (environment.is_null())
    environment = value::object();
  if (!environment.is_object() || !newest.is_object())
    return; // the cluster refuses the task later
  const auto of_newest = [&](const char* at) { return newest.value(value::json_pointer(at), value()); };
  const auto image = of_newest("/environment/image");
  auto secrets = value::array();
  for (const auto& one : of_newest("/environment/pod_spec/spec/imagePullSecrets"))
    if (one.is_object() && one.contains("name"))
      secrets.push_back({{"name", one["name"]}});
  if (!image.is_null() && !environment.contains("image"))
    environment["image"] = image;
  if (!secrets.empty() && !environment.contains("pod_spec"))
    environment["pod_spec"] = {{"spec", {{"imagePullSecrets", secrets}}}};
  if (environment.empty())
    return;
  own["environment"] = std::move(environment);
  config = std::move(own);
}

result<value> board_details(const call& c, fields& f, value& config) {
  std::vector<std::pair<experiment_row, trial_id>> shown;
  auto experiments = value::array(), trials = value::array(), sources = value::array();
  const auto experiment_ids = f.ids<experiment_id>("experimentIds");
  const auto trial_ids = f.ids<trial_id>("trialIds");
  if (f.bad())
    return *f.bad();
  const auto missing = [](const char* what, std::uint64_t id) {
    return error{errc::not_found, std::string(what) + " '" + std::to_string(id) + "' not found"};
  };
  for (const auto id : experiment_ids) {
    auto row = c.parts->storage->experiment(id);
    if (!row)
      return missing("experiment", id.value);
    experiments.push_back(id.value);
    shown.emplace_back(std::move(*row), trial_id{});
  }
  for (const auto id : trial_ids) {
    auto trial = c.parts->storage->trial(id);
    auto row =
      trial ? c.parts->storage->experiment(trial->experiment) : result<experiment_row>(trial.error());
    if (!row)
      return missing("trial", id.value);
    trials.push_back(id.value);
    shown.emplace_back(std::move(*row), id);
  }
  const bool filtered = f.has("filters");
  if (filtered) {
    auto fitting = chosen_experiments(c, f, {});
    if (!fitting)
      return fitting.error();
    for (const auto id : *fitting)
      if (auto row = c.parts->storage->experiment(id);
          row && std::find(experiments.begin(), experiments.end(), value(id.value)) == experiments.end()) {
        experiments.push_back(id.value);
        shown.emplace_back(std::move(*row), trial_id{});
      }
  }
  if (f.bad())
    return *f.bad();
  if (shown.empty())
    return error{errc::invalid,
                 filtered ? "no experiments found" : "must set experiment, trial ids, or filters"};
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.first.id < b.first.id; });
  for (const auto& [row, trial] : shown)
    sources.push_back(board_source(c, row, trial));
  take_image(shown.back().first.config, config);
  return value{{"experimentIds", experiments}, {"trialIds", trials}, {"sources", sources}};
}

/// Makes the command task.create of the stock client's request.
result<commands::task_create> stock_form(const call& c, fields& f, task_kind kind) {
  commands::task_create with;
  with.kind = name(kind);
  with.config = f.has("config") ? *f.get("config") : value::object();
  with.template_name = f.text("templateName");
  auto workspace = wanted_workspace(f, "workspaceId");
  if (!workspace)
    return workspace.error();
  with.workspace = *workspace;
  with.preview = f.flag("preview");
  const auto& files = f.list("files");
  f.text("data"); // commands ignore it, but its type is checked
  if (f.bad())
    return *f.bad();
  if (!with.config.is_object())
    return error{errc::invalid, "config: expected an object"};
  if (!files.empty()) {
    auto packed = packed_context(files, "files");
    if (!packed)
      return packed.error();
    with.context.held = std::move(*packed);
  }
  if (kind == task_kind::shell || kind == task_kind::tensorboard) {
    auto details =
      kind == task_kind::shell ? shell_keys(c, f, c.by.who.user) : board_details(c, f, with.config);
    if (!details)
      return details.error();
    with.details = std::move(*details);
  }
  return with;
}

handler create_stock(const kind_words& words) {
  return [words](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    auto with = stock_form(*c, f, words.kind);
    if (!with)
      return back(failure(with.error()));
    const bool preview = with->preview;
    command(c, back, std::move(*with), [c, words, preview](value got) -> result<value> {
      task_detail row;
      if (!preview) {
        auto made = c->parts->storage->other_task(parse_task(got.at("id").get<std::string>()));
        if (!made)
          return made.error();
        row = std::move(*made);
      }
      auto shape = shape_for(*c, row);
      if (preview) // nothing was created, so required fields are unset
        for (auto& one : shape)
          if (one.is_string())
            one = "";
      if (preview)
        shape["state"] = "STATE_UNSPECIFIED", shape["startTime"] = "1970-01-01T00:00:00Z";
      return value{{words.one, std::move(shape)},
                   {"config", config::without_secrets(got.at("config"))},
                   {"warnings", got.at("warnings")}};
    });
  };
}

// ---- orders

/// The shape of the task after an order.
answer_shape work_after(const call_ptr& c, const kind_words& words) {
  return [c, words](value) -> result<value> {
    auto row = named_work(*c, words.kind);
    if (!row)
      return row.error();
    return value{{words.one, shape_for(*c, *row)}};
  };
}

handler kill_of(const kind_words& words) {
  return [words](const call_ptr& c, const reply& back) {
    auto row = named_work(*c, words.kind);
    if (!row)
      return back(failure(row.error()));
    command(c, back, commands::task_kill{to_string(row->made.id)}, work_after(c, words));
  };
}

result<std::int64_t> priority_in(const std::string& text) {
  auto body = parse_object(text);
  if (!body)
    return body.error();
  fields f{*body};
  f.need("priority");
  const auto priority = f.number("priority");
  if (!f.bad() && (priority < 1 || priority > 99))
    f.fault("priority", "has to be 1 to 99");
  return f.bad() ? result<std::int64_t>(*f.bad()) : priority;
}

handler priority_of(const kind_words& words) {
  return [words](const call_ptr& c, const reply& back) {
    auto priority = priority_in(c->body);
    auto row = priority ? named_work(*c, words.kind) : result<task_detail>(priority.error());
    if (!row)
      return back(failure(row.error()));
    command(c, back, commands::task_set{to_string(row->made.id), *priority, {}}, work_after(c, words));
  };
}

void report_idle(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  const bool idle = f.flag("idle");
  f.text("notebookId"); // the path names the notebook; only the type is checked
  if (f.bad())
    return back(failure(*f.bad()));
  auto row = named_work(*c, task_kind::notebook);
  if (!row)
    return back(failure(row.error()));
  if (idle) { // the task ends when nobody has reported use of it for long enough
    const auto fine = may_use(*c, *row);
    return back(fine ? json(value::object()) : failure(fine.error()));
  }
  command(c, back, commands::task_use{to_string(row->made.id)});
}

// ---- generic tasks

void create_generic(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::task_create with;
  with.kind = "generic";
  with.config = f.text("config");
  with.forked_from = f.text("forkedFrom");
  with.parent = f.text("parentId");
  with.inherit_context = f.flag("inheritContext");
  if (f.has("noPause"))
    with.no_pause = f.flag("noPause");
  const auto project = f.id<project_id>("projectId");
  const auto& files = f.list("contextDirectory");
  if (f.bad())
    return back(failure(*f.bad()));
  if (project) {
    auto known = c->parts->storage->project(project);
    if (!known)
      return back(failure(known.error()));
    with.workspace = known->workspace;
  }
  if (!files.empty()) {
    auto packed = packed_context(files, "contextDirectory");
    if (!packed)
      return back(failure(packed.error()));
    with.context.held = std::move(*packed);
  }
  command(c, back, std::move(with), [](value got) -> result<value> {
    return value{{"taskId", got.at("id")}, {"warnings", got.at("warnings")}};
  });
}

result<value> generic_config(const call& c) {
  auto row = named_work(c, std::nullopt);
  if (!row)
    return row.error();
  // The client reads this text as JSON.
  return value{{"config", to_json(config::without_secrets(config_in_force(*row)))}};
}

/// The answer to an error. A conflict becomes 400, as for experiments: the state does not allow the request.
response of_state(const error& why) {
  return why.code == errc::conflict ? failure(failed_precondition, why.what) : failure(why);
}

void kill_tree(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::task_kill with;
  with.from_root = f.flag("killFromRoot");
  f.text("taskId"); // the path names the task; only the type is checked
  if (f.bad())
    return back(failure(*f.bad()));
  auto row = named_work(*c, std::nullopt);
  if (!row)
    return back(failure(row.error()));
  with.id = to_string(row->made.id);
  with.tree = row->made.id.kind() == task_kind::generic;
  command(c, back, std::move(with), {}, of_state);
}

void pause(const call_ptr& c, const reply& back) {
  auto row = named_work(*c, std::nullopt);
  row ? command(c, back, commands::task_pause{to_string(row->made.id)}, {}, of_state)
      : back(failure(row.error()));
}
void unpause(const call_ptr& c, const reply& back) {
  auto row = named_work(*c, std::nullopt);
  row ? command(c, back, commands::task_unpause{to_string(row->made.id)}, {}, of_state)
      : back(failure(row.error()));
}

// ---- reports of a task's processes

/// The open allocation that the path names, for its own task or for a user who may change the task.
result<allocation_id> open_allocation(const call& c) {
  if (c.by.is_task())
    return c.by.allocation;
  const auto id = named_allocation(c.named("allocationId"));
  const error none{errc::not_found,
                   "allocation '" + std::string(c.named("allocationId").substr(0, 100)) + "' not found"};
  auto task = c.parts->storage->task(id.task);
  if (!task)
    return task.error().code == errc::not_found ? none : task.error();
  if (!task->open || task->run != id.run)
    return none;
  if (!c.by.roles)
    return id;
  if (id.task.is_trial()) {
    const auto fine =
      may_in(c, authority::permission::update_experiment, c.parts->roles->workspace_of(task->experiment));
    return fine ? result<allocation_id>(id) : fine.error();
  }
  auto row = c.parts->storage->other_task(id.task);
  if (!row)
    return row.error();
  const auto fine = may_use(c, *row);
  return fine ? result<allocation_id>(id) : fine.error();
}

/// Takes the report that a task is ready; for a trial nothing depends on it. A service of ours also reports
/// the account that it runs as (`agentUserGroup`): a login to a shell has to name the account, and only the
/// agent knows it where none is configured.
void ready(const call_ptr& c, const reply& back) {
  const auto id = open_allocation(*c);
  if (!id)
    return back(failure(id.error()));
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::task_answers with;
  with.allocation = to_string(*id);
  with.experiment = c->by.experiment;
  with.runs_as = unix_account_in(f);
  if (f.bad())
    return back(failure(*f.bad()));
  if (id->task.is_trial())
    return back(json(value::object()));
  command(c, back, std::move(with));
}

/// Accepts the address that a task reports and does not use it, because connections to a task come only from
/// its agent.
result<value> acknowledged(const call& c) {
  if (const auto id = open_allocation(c); !id)
    return id.error();
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  f.text("proxyAddress");
  return f.bad() ? result<value>(*f.bad()) : value::object();
}

handler container_running() {
  return [held = std::make_shared<gathering>()](const call_ptr& c, const reply& back) {
    const auto id = open_allocation(*c);
    if (!id)
      return back(failure(id.error()));
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    const auto request = f.text("requestUuid");
    const auto peers = f.number("numPeers");
    f.number("rank"), f.text("nodeName"); // only people read these; their types are checked
    auto data = f.object("data");
    if (f.bad())
      return back(failure(*f.bad()));
    held->add(*id, request, static_cast<std::size_t>(std::max<std::int64_t>(peers, 0)), std::move(data),
              c->now, back);
  };
}

// ---- our own routes

bool is_state_of_tasks(const std::string& text) {
  for (auto one :
       {task_state::active, task_state::stopping_paused, task_state::paused, task_state::stopping_canceled,
        task_state::canceled, task_state::completed, task_state::error})
    if (folded(text) == folded(name(one)))
      return true;
  return false;
}

/// Finds a workspace by its number, or else by its name; 0 where `text` names none.
result<workspace_id> workspace_asked_for(const place_book& book, const std::string& text) {
  if (text.empty() || text == "0")
    return workspace_id{};
  for (const auto& one : book.workspaces())
    if (to_string(one.id) == text)
      return one.id;
  for (const auto& one : book.workspaces())
    if (one.name == text)
      return one.id;
  return error{errc::not_found, "workspace '" + text.substr(0, 100) + "' not found"};
}

value own_shape(const call& c, const task_detail& row, const place_book& book) {
  auto shape = own_work_shape(row, *c.parts->users, c.now);
  const auto* in = book.find(row.made.workspace);
  shape["workspaceName"] = in ? value(in->name) : value();
  return shape;
}

result<value> own_list(const call& c) {
  const std::string kind(c.query.first("kind")), state(c.query.first("state")), user(c.query.first("user"));
  auto book = place_book::read(*c.parts->storage);
  if (!book)
    return book.error();
  const auto workspace = workspace_asked_for(*book, std::string(c.query.first("workspace")));
  if (!workspace)
    return workspace.error();
  if (!state.empty() && state != "live" && folded(state) != "queued" && !is_state_of_tasks(state))
    return error{errc::invalid,
                 "'" + state.substr(0, 40) + "' is not a state of tasks: live, or as their rows say"};
  auto all = value::array();
  bool known = kind.empty();
  for (auto one : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                   task_kind::generic}) {
    if (!kind.empty() && kind != name(one))
      continue;
    known = true;
    auto rows = c.parts->storage->other_tasks(one);
    if (!rows)
      return rows.error();
    for (const auto& row : *rows) {
      const bool live = !terminal(row.state);
      if ((state == "live" && !live) ||
          (!user.empty() && c.parts->users->now_named(row.made.owner) != user) ||
          (*workspace && row.made.workspace != *workspace))
        continue;
      auto shape = own_shape(c, row, *book);
      if (state.empty() || state == "live" ||
          folded(state) == folded(shape["state"].get_ref<const std::string&>()))
        all.push_back(std::move(shape));
    }
  }
  if (!known)
    return error{errc::invalid,
                 "'" + kind.substr(0, 40) +
                   "' is not a kind of task: command, notebook, shell, tensorboard or generic"};
  return value{{"tasks", std::move(all)}};
}

result<value> own_one(const call& c) {
  auto row = named_work(c, std::nullopt);
  if (!row)
    return row.error();
  auto book = place_book::read(*c.parts->storage);
  if (!book)
    return book.error();
  auto shape = own_shape(c, *row, *book);
  shape["config"] = config::without_secrets(config_in_force(*row));
  return shape;
}

/// Creates a task. As for experiments, the body is JSON alone, or one line of JSON and after it the bytes of
/// a tar.
void own_create(const call_ptr& c, const reply& back) {
  std::string_view text = c->body, tar;
  if (std::string_view(c->headers.content_type).starts_with("application/x-troupe-experiment")) {
    const auto line = text.find('\n');
    if (line == text.npos)
      return back(
        failure({errc::invalid, "the body has to begin with one line of JSON, then the bytes of the tar"}));
    tar = text.substr(line + 1);
    text = text.substr(0, line);
  }
  auto body = parse_object(text);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("kind");
  const auto kind = f.text("kind");
  commands::task_create with;
  with.kind = kind;
  with.config = f.has("config") ? *f.get("config") : value::object();
  with.config_name = f.text("configName", "<config>");
  with.template_name = f.text("template");
  auto workspace = wanted_workspace(f, "workspace");
  if (!workspace)
    return back(failure(workspace.error()));
  with.workspace = *workspace;
  with.preview = f.flag("preview");
  with.forked_from = f.text("forkedFrom");
  with.parent = f.text("parent");
  with.inherit_context = f.flag("inheritContext");
  with.key = f.text("key");
  if (f.has("noPause"))
    with.no_pause = f.flag("noPause");
  const auto archive = f.text("context");
  const auto& files = f.list("files");
  // Only some kinds use these; their types are checked.
  f.list("experimentIds"), f.list("trialIds"), f.object("filters"), f.text("data");
  const auto known = std::find_if(std::begin(all_kinds), std::end(all_kinds),
                                  [&](const auto& one) { return kind == one.one; });
  if (!f.bad() && known == std::end(all_kinds) && kind != "generic")
    f.fault("kind", "expected command, notebook, shell, tensorboard or generic");
  if (f.bad())
    return back(failure(*f.bad()));
  if (!archive.empty() || !tar.empty()) {
    auto bytes = tar.empty() ? from_base64(archive) : result<std::string>(std::string(tar));
    auto checked = bytes ? checked_context(std::move(*bytes)) : bytes;
    if (!checked)
      return back(failure(checked.error()));
    with.context.held = std::move(*checked);
  } else if (!files.empty()) {
    auto packed = packed_context(files, "files");
    if (!packed)
      return back(failure(packed.error()));
    with.context.held = std::move(*packed);
  }
  if (kind == "shell" || kind == "tensorboard") {
    auto details = kind == "shell" ? shell_keys(*c, f, c->by.who.user) : board_details(*c, f, with.config);
    if (!details)
      return back(failure(details.error()));
    with.details = std::move(*details);
  }
  const bool preview = with.preview;
  command(c, back, std::move(with), [c, preview](value got) -> result<value> {
    if (preview)
      return value{{"config", config::without_secrets(got.at("config"))}, {"warnings", got.at("warnings")}};
    auto row = c->parts->storage->other_task(parse_task(got.at("id").get<std::string>()));
    if (!row)
      return row.error();
    auto book = place_book::read(*c->parts->storage);
    if (!book)
      return book.error();
    auto shape = own_shape(*c, *row, *book);
    shape["warnings"] = got.at("warnings");
    return shape;
  });
}

void own_kill(const call_ptr& c, const reply& back) {
  auto row = named_work(*c, std::nullopt);
  if (!row)
    return back(failure(row.error()));
  const bool tree = row->made.id.kind() == task_kind::generic && !terminal(row->state);
  command(c, back, commands::task_kill{to_string(row->made.id), tree, false});
}

void own_set(const call_ptr& c, const reply& back) {
  auto priority = priority_in(c->body);
  auto row = priority ? named_work(*c, std::nullopt) : result<task_detail>(priority.error());
  if (!row)
    return back(failure(row.error()));
  command(c, back, commands::task_set{to_string(row->made.id), *priority, {}});
}

/// The keys and the account that `troupe ssh` needs for a login.
result<value> own_access(const call& c) {
  auto row = named_work(c, std::nullopt);
  if (!row)
    return row.error();
  if (auto fine = may_open(c, *row); !fine)
    return fine.error();
  const auto shape = work_shape(*row, *c.parts->users, true);
  value out{{"address", service_address(*row, *c.parts->users, true)}};
  for (const char* key : {"privateKey", "publicKey", "agentUserGroup"})
    if (shape.contains(key))
      out[key] = shape[key];
  if (row->made.details.is_object() && row->made.details.contains("hostPublicKey"))
    out["hostPublicKey"] = row->made.details["hostPublicKey"];
  return out;
}

route large(route row) {
  row.body_bytes = large_body;
  row.slow = true;
  return row;
}
route held_long(route row) {
  row.patience = std::chrono::hours{1};
  return row;
}

} // namespace

std::vector<route> work_routes() {
  constexpr authority::need see{action::view, thing::task}, make{action::create, thing::task},
    change{action::change, thing::task}, kill{action::kill, thing::task},
    say{action::change, thing::allocation};
  std::vector<route> all;
  for (const auto& words : all_kinds) {
    const auto path = "/api/v1/" + std::string(words.many);
    all.push_back(
      {"GET", path, see, list_of(words), "", words.list, "Tasks of this kind; ended ones for a day."});
    all.push_back(
      holds_secret(large({"POST", path, make, create_stock(words), words.ask, words.answer, "Starts one."})));
    all.push_back(
      holds_secret({"GET", path + "/{taskId}", see, one_of(words), "", words.got, "One of them."}));
    all.push_back(
      {"POST", path + "/{taskId}/kill", kill, kill_of(words), "", words.killed, "Ends it at once."});
    all.push_back({"POST", path + "/{taskId}/set_priority", change, priority_of(words), words.set_body,
                   words.set, "Changes its priority."});
  }
  const std::string a = "/api/v1/allocations/{allocationId}", t = "/api/v1/tasks/{taskId}",
                    own = "/troupe/v1/tasks";
  for (auto& row : std::vector<route>{
         {"PUT", "/api/v1/notebooks/{taskId}/report_idle", change, report_idle, "v1IdleNotebookRequest",
          "Empty", "Whether anybody uses the notebook, as it says itself."},
         large({"POST", "/api/v1/generic-tasks", make, create_generic, "v1CreateGenericTaskRequest",
                "v1CreateGenericTaskResponse", "Starts any program as a task."}),
         {"GET", t + "/config", see, answer_with(generic_config), "", "v1GetGenericTaskConfigResponse",
          "The complete configuration of a task, as JSON."},
         {"POST", t + "/kill", kill, kill_tree, "v1KillGenericTaskRequest", "Empty",
          "Ends a task and those below it, or the whole tree from its root."},
         {"POST", t + "/pause", change, pause, "", "Empty", "Pauses a generic task."},
         {"POST", t + "/unpause", change, unpause, "", "Empty", "Lets a paused task run again."},
         {"POST", a + "/ready", say, ready, "v1AllocationReadyRequest", "Empty",
          "The service of the task answers."},
         {"POST", a + "/waiting", say, answer_with(acknowledged), "v1AllocationWaitingRequest", "Empty",
          "The service of the task waits for something."},
         {"POST", a + "/proxy_address", say, answer_with(acknowledged), "v1PostAllocationProxyAddressRequest",
          "Empty", "Acknowledged, and never dialled."},
         held_long({"POST", a + "/notify_container_running", say, container_running(),
                    "v1NotifyContainerRunningRequest", "v1NotifyContainerRunningResponse",
                    "Waits until all ranks have said so; answers what they brought."}),
         {"GET", own, see, answer_with(own_list), "", "list of Task", "Tasks that are not trials."},
         large({"POST", own, make, own_create, "CreateTask", "Task", "Starts a task that is not a trial."}),
         {"GET", own + "/{taskId}", see, answer_with(own_one), "", "Task",
          "One task with its configuration."},
         {"POST", own + "/{taskId}/kill", kill, own_kill, "", "Empty", "Ends it at once."},
         {"POST", own + "/{taskId}/set", change, own_set, "SetTask", "Empty", "Changes its priority."},
         holds_secret(
           {"GET", own + "/{taskId}/access", see, answer_with(own_access), "", "TaskAccess",
            "What opens it: keys and account of a shell, the address of a notebook with its token."})})
    all.push_back(std::move(row));
  return all;
}

} // namespace troupe::api
