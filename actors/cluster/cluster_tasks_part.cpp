#include "actors/cluster/cluster_tasks_part.hpp"

#include "actors/catalogue/task_defaults.hpp"
#include "actors/cluster/accepted_task.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "system/random.hpp"

#include <caf/all.hpp>

#include <cstring>
#include <set>

namespace troupe {
namespace {

task_kind kind_named(const std::string& name_of_it) {
  for (auto kind : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                    task_kind::generic})
    if (name_of_it == name(kind))
      return kind;
  return task_kind::trial;
}

/// Its user and the key that it was created with; empty: it has none.
std::string key_of(const task_created& made) {
  const auto key = made.details.is_object() ? made.details.value("key", value()) : value();
  return key.is_string() ? made.owner + "\n" + key.get<std::string>() : std::string();
}

task_id fresh_id(task_kind kind) {
  const auto bytes = random_bytes(16);
  std::uint64_t halves[2];
  std::memcpy(halves, bytes.data(), sizeof halves);
  return task_id::of(kind, halves[0], halves[1]);
}

template <class Fact>
std::vector<Fact> facts_of(const storage::reader& reads, const std::string& stream) {
  std::vector<Fact> out;
  if (auto stored = reads.facts_of(stream))
    for (const auto& bytes : *stored)
      if (auto fact = decode_as<Fact>(bytes))
        out.push_back(std::move(*fact));
  return out;
}

command_result gone(const std::string& id) {
  return refused({errc::not_found, "task '" + id.substr(0, 100) + "' not found"});
}

} // namespace

cluster_tasks::cluster_tasks(actor_base<cluster_actor>* self, const cluster_setup& setup,
                             const cluster_peers& peers, cluster_machines& machine, needs with)
    : self_(self), setup_(setup), peers_(peers), machine_(machine), with_(std::move(with)) {}

// ---- recovery

void cluster_tasks::recover() {
  for (auto kind : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                    task_kind::generic})
    if (auto rows = peers_.reads->other_tasks(kind))
      for (const auto& row : *rows)
        if (!terminal(row.state))
          recover_one(row);
}

void cluster_tasks::recover_one(const task_detail& row) {
  auto settings = settings_of(row.made);
  if (!settings)
    return abandon(row, settings.error().what);
  const auto past = facts_of<task_fact>(*peers_.reads, entity(row.made.id));
  std::vector<allocation_fact> of_run;
  if (!row.runs.empty() && row.runs.back().ended == time_point{})
    of_run =
      facts_of<allocation_fact>(*peers_.reads, entity(allocation_id{row.made.id, row.runs.back().run}));
  start(std::move(*settings), row.made, past, std::move(of_run));
}

/// It alone ends as error; the rest serve.
void cluster_tasks::abandon(const task_detail& row, const std::string& why) {
  const auto id = row.made.id;
  const auto next = peers_.reads->next_of(entity(id));
  append_facts last{entity(id), next ? *next : 0, {}};
  if (!row.runs.empty() && row.runs.back().ended == time_point{})
    last.facts.push_back(
      encode(run_ended{self_->now(), row.runs.back().run, end::lost, 0, 0, self_->now(), why}));
  last.facts.push_back(encode(task_ended{self_->now(), task_state::error, -1, why}));
  self_->request(peers_.journal, journal_timeout, std::move(last))
    .then([](const committed&) {}, [](const caf::error&) {}); // else the next start does it
}

void cluster_tasks::add_open(std::map<std::string, expect_tasks>& by_agent) const {
  auto open = peers_.reads->open_tasks();
  for (const auto& task : open ? *open : std::vector<task_row>()) {
    if (task.id.is_trial())
      continue;
    auto runs = peers_.reads->runs(task.id);
    if (runs && !runs->empty())
      for (const auto& part : runs->back().on)
        by_agent[part.agent].tasks.push_back({{task.id, runs->back().run}, part.slots});
  }
}

result<task_settings> cluster_tasks::settings_of(const task_created& made) const {
  const auto at = machine_.where.workspaces().find(made.workspace);
  auto settings = task_settings_of(made, at == machine_.where.workspaces().end() ? "" : at->second.name);
  if (!settings)
    return settings;
  auto& launch = settings->launch;
  const auto& tokens = setup_.tokens;
  add_defaults(launch.sandbox,
               task_defaults(machine_.records, machine_.where, made.pool, made.workspace, made.owner));
  launch.cluster_id = tokens.cluster_id;
  launch.master_id = tokens.master_id;
  if (tokens.of_task)
    launch.user_token = tokens.of_task(made.id, made.owner);
  if (auto service = service_config(made, tokens.reveal); !service.is_null())
    launch.env["TROUPE_SERVICE_CONFIG"] = to_json(service);
  if (made.id.kind() == task_kind::notebook && tokens.service)
    launch.env["JUPYTER_TOKEN"] = tokens.service(made.id, made.owner);
  if (made.id.kind() == task_kind::tensorboard)
    launch.env.emplace("TF_CPP_MIN_LOG_LEVEL", "3");
  return settings;
}

void cluster_tasks::start(task_settings settings, const task_created& made,
                          const std::vector<task_fact>& past, std::vector<allocation_fact> of_run) {
  with_.tell_members(
    experiment_entered{job_of(made.id), {{"resources", {{"resource_pool", made.pool}}}}, made.pool});
  auto pool = machine_.who.pool_of(job_of(made.id));
  auto actor = spawn_task_actor(self_->system(), std::move(settings),
                                {cluster_actor{self_},
                                 peers_.journal,
                                 {with_.pools(), pool.empty() ? made.pool : pool},
                                 peers_.reads,
                                 setup_.tokens},
                                past, std::move(of_run));
  tasks_[made.id] = {actor, made.parent, made.no_pause, made.workspace};
  by_address_[actor.address()] = made.id;
  self_->monitor(actor);
}

std::vector<task_actor> cluster_tasks::all() const {
  std::vector<task_actor> out;
  for (const auto& [id, one] : tasks_)
    out.push_back(one.actor);
  return out;
}

void cluster_tasks::finished(task_id id) {
  const auto it = tasks_.find(id);
  if (it == tasks_.end())
    return;
  by_address_.erase(it->second.actor.address());
  tasks_.erase(it);
  with_.tell_members(experiment_gone{job_of(id)});
}

bool cluster_tasks::child_down(const caf::down_msg& down) {
  const auto it = by_address_.find(down.source);
  if (it == by_address_.end())
    return false;
  const auto id = it->second;
  finished(id);
  if (closing_)
    return true;
  auto row = peers_.reads->other_task(id);
  if (!row || terminal(row->state))
    return true;
  if (!restarts_.again(id, self_->now()))
    abandon(*row, "its actor died again and again: " + from_caf(down.reason).what);
  else
    recover_one(*row); // made again from what is durable
  return true;
}

void cluster_tasks::end_all(const caf::error& why) {
  closing_ = true;
  for (const auto& [id, one] : tasks_)
    self_->send_exit(one.actor, why);
}

// ---- creation

result<task_detail> cluster_tasks::known(const std::string& id) const {
  const auto parsed = parse_task(id);
  auto row = parsed && !parsed.is_trial() ? peers_.reads->other_task(parsed)
                                          : result<task_detail>(error{errc::not_found, ""});
  if (!row && row.error().code == errc::not_found)
    return error{errc::not_found, "task '" + id.substr(0, 100) + "' not found"};
  if (row && parsed.kind() == task_kind::checkpoint_gc)
    return error{errc::invalid,
                 "task '" + id + "' removes files of checkpoints: it takes no orders, and ends by itself"};
  return row;
}

result<task_created> cluster_tasks::to_create(const std::string& user, commands::task_create& x,
                                              value& answer) {
  const auto kind = kind_named(x.kind);
  if (kind == task_kind::trial)
    return error{errc::invalid, "'" + x.kind + "' is not a kind of task"};
  const auto workspace = x.workspace ? x.workspace : workspace_id{1};
  if (!machine_.where.open(workspace))
    return error{errc::not_found, "workspace '" + to_string(workspace) + "' not found"};
  const auto& place = machine_.where.workspaces().at(workspace);
  task_created made;
  made.at = self_->now();
  made.id = fresh_id(kind);
  made.owner = user;
  made.workspace = workspace;
  made.context = x.context_blob;
  made.details = x.details;
  if (x.no_pause)
    made.no_pause = *x.no_pause ? 1 : 0;
  task_surface below;
  below.cluster = machine_.who.configuration();
  if (!x.template_name.empty()) {
    const auto* known_template = machine_.books.find_template(x.template_name);
    if (!known_template)
      return error{errc::not_found, "template '" + x.template_name + "' not found"};
    below.template_config = known_template->config;
  }
  if (!x.parent.empty()) {
    auto parent = known(x.parent);
    if (!parent)
      return parent.error();
    made.parent = parent->made.id;
    if (x.inherit_context && made.context.empty() && x.context.held.empty())
      made.context = parent->made.context;
  } else if (x.inherit_context) {
    return error{errc::invalid, "inheritContext needs parentId"};
  }
  auto config = x.config;
  if (!x.forked_from.empty()) {
    auto from = known(x.forked_from);
    if (!from)
      return from.error();
    made.forked_from = from->made.id;
    if (made.context.empty() && x.context.held.empty())
      made.context = from->made.context;
    auto merged = forked_config(from->made, config);
    if (!merged)
      return merged.error();
    config = std::move(*merged);
  } else if (kind == task_kind::generic && (config.is_null() || config == "")) {
    return error{errc::invalid, "No config file nor forked task provided"};
  }
  if (kind != task_kind::generic) {
    below.invariant = machine_.rules.invariant_of(workspace, "NTSC");
    below.constraints = machine_.rules.constraints_of(workspace, "NTSC");
  }
  below.compute_pool = place.compute_pool;
  below.aux_pool = place.aux_pool;
  below.may_use = [this, workspace](const std::string& pool) {
    return machine_.rules.may_use(pool, workspace);
  };
  below.largest_agent = [this](const std::string& pool) { return machine_.who.largest_agent_in(pool); };
  auto accepted = accept_task(made.id, config, x.config_name, below);
  if (!accepted)
    return accepted.error();
  made.config = std::move(accepted->config);
  made.source = std::move(accepted->source);
  made.pool = std::move(accepted->pool);
  const auto defaults = task_defaults(machine_.records, machine_.where, made.pool, workspace, user);
  if (const auto& as = defaults.account; as && kind == task_kind::shell) // who logs in has to know it
    made.details["account"] = {{"user", as->user}, {"uid", as->uid}, {"group", as->group}, {"gid", as->gid}};
  made.name = std::move(accepted->name);
  auto warnings = value::array();
  const auto slots =
    number_in(made.config.value(value::json_pointer("/resources/slots"), value(0))).value_or(0);
  if (slots > machine_.who.slots_in(made.pool))
    warnings.push_back("LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED");
  answer = {{"id", to_string(made.id)}, {"config", made.config}, {"pool", made.pool}, {"warnings", warnings}};
  return made;
}

caf::result<command_result> cluster_tasks::on(const std::string& user, commands::task_create x) {
  if (!x.key.empty()) {
    if (const auto before = made_with(kind_named(x.kind), user, x.key))
      return answered({{"id", to_string(before->made.id)},
                       {"config", before->made.config},
                       {"pool", before->made.pool},
                       {"warnings", value::array()}});
    if (creating_.contains(user + "\n" + x.key))
      return refused({errc::busy, "a task with this key is being created\nhint: ask once more"});
  }
  value answer;
  auto made = to_create(user, x, answer);
  if (!made)
    return refused(made.error());
  if (x.preview)
    return answered(std::move(answer));
  if (!x.key.empty()) {
    made->details["key"] = x.key;
    creating_.insert(user + "\n" + x.key);
  }
  auto to = self_->make_response_promise<command_result>();
  if (x.context.held.empty()) {
    append(std::move(*made), std::move(answer), to);
    return to;
  }
  const auto key = key_of(*made);
  self_->request(peers_.journal, journal_timeout, store_blob{std::move(x.context.held)})
    .then(
      [this, made = std::move(*made), answer = std::move(answer), to](const blob_stored& blob) mutable {
        made.context = blob.name;
        append(std::move(made), std::move(answer), to);
      },
      [this, key, to](const caf::error& why) mutable {
        creating_.erase(key);
        to.deliver(refused(from_caf(why)));
      });
  return to;
}

std::optional<task_detail> cluster_tasks::made_with(task_kind kind, const std::string& user,
                                                    const std::string& key) const {
  if (kind == task_kind::trial) // no kind of task has this name
    return std::nullopt;
  auto rows = peers_.reads->other_tasks(kind, self_->now() - std::chrono::hours{24});
  if (rows)
    for (auto& row : *rows)
      if (key_of(row.made) == user + "\n" + key)
        return std::move(row);
  return std::nullopt;
}

void cluster_tasks::append(task_created made, value answer, promise to) {
  auto facts = task::birth(made);
  append_facts first{entity(made.id), 0, {}};
  for (const auto& fact : facts)
    first.facts.push_back(encode_as(fact));
  const auto key = key_of(made);
  self_->request(peers_.journal, journal_timeout, std::move(first))
    .then(
      [this, key, made = std::move(made), facts = std::move(facts), answer = std::move(answer),
       to](const committed&) mutable {
        creating_.erase(key);
        auto settings = settings_of(made);
        if (!settings) { // accept_task has tried it
          to.deliver(refused(settings.error()));
          return;
        }
        start(std::move(*settings), made, facts);
        to.deliver(answered(std::move(answer)));
      },
      [this, key, to](const caf::error& why) mutable {
        creating_.erase(key);
        to.deliver(refused(from_caf(why)));
      });
}

// ---- orders

caf::result<command_result> cluster_tasks::order(task_id id, task_call call) {
  const auto it = tasks_.find(id);
  if (it == tasks_.end())
    return refused({errc::conflict, "task " + to_string(id) + " has ended"});
  return self_->delegate(it->second.actor, std::move(call));
}

task_id cluster_tasks::root_of(task_id id) const {
  for (int depth = 0; depth < 1000; ++depth) {
    auto row = peers_.reads->other_task(id);
    if (!row || !row->made.parent)
      break;
    id = row->made.parent;
  }
  return id;
}

/// It and what lives below it: children of one that has ended as well.
std::vector<task_id> cluster_tasks::below(task_id root) const {
  std::vector<task_id> all;
  for (const auto& [id, one] : tasks_)
    for (auto at = id; at;) {
      if (at == root) {
        all.push_back(id);
        break;
      }
      const auto live = tasks_.find(at);
      if (live != tasks_.end()) {
        at = live->second.parent;
      } else {
        auto row = peers_.reads->other_task(at);
        at = row ? row->made.parent : task_id{};
      }
    }
  return all;
}

void cluster_tasks::order_all(const std::vector<task_id>& ids, const std::function<task_call(task_id)>& call,
                              promise to) {
  struct pending {
    std::size_t left;
    command_result worst = answered();
  };
  auto all = std::make_shared<pending>(pending{ids.size() + 1});
  auto one_done = [all, to](const std::optional<error>& no) mutable {
    if (no && no->code != errc::conflict && all->worst.got)
      all->worst = refused(*no);
    if (--all->left == 0)
      to.deliver(all->worst);
  };
  for (const auto id : ids)
    if (const auto it = tasks_.find(id); it != tasks_.end())
      self_->request(it->second.actor, journal_timeout, call(id))
        .then(
          [one_done](const command_result& got) mutable {
            one_done(got.got ? std::optional<error>() : got.got.error());
          },
          [one_done](const caf::error& why) mutable {
            one_done(why == caf::sec::request_receiver_down ? std::optional<error>() : from_caf(why));
          });
    else
      one_done(std::nullopt);
  one_done(std::nullopt);
}

caf::result<command_result> cluster_tasks::on(const std::string& user, const commands::task_kill& x) {
  auto row = known(x.id);
  if (!row)
    return refused(row.error());
  const auto id = row->made.id;
  const auto stop = [&](task_id one) {
    return task_call_of({one, {}}, commands::task_stop{"killed by " + user});
  };
  if (!x.tree)
    return terminal(row->state) ? answered() : order(id, stop(id));
  if (terminal(row->state))
    return refused(
      {errc::invalid, "cannot cancel task " + x.id + " as it is in state " + std::string(name(row->state))});
  auto to = self_->make_response_promise<command_result>();
  order_all(below(x.from_root ? root_of(id) : id), stop, to);
  return to;
}

caf::result<command_result> cluster_tasks::on(const std::string& user, const commands::task_pause& x) {
  auto row = known(x.id);
  if (!row)
    return refused(row.error());
  if (row->made.no_pause == 1)
    return refused({errc::invalid, "cannot pause task " + x.id + ": it was made with noPause"});
  if (row->made.id.kind() != task_kind::generic || row->state != task_state::active)
    return refused(
      {errc::invalid, "cannot pause task " + x.id + " as it is in state " + std::string(name(row->state))});
  std::vector<task_id> ids;
  for (const auto id : below(row->made.id)) {
    const auto below_it = peers_.reads->other_task(id);
    if (id == row->made.id ||
        (tasks_.at(id).no_pause == 0 && below_it && below_it->state == task_state::active))
      ids.push_back(id);
  }
  auto to = self_->make_response_promise<command_result>();
  order_all(
    ids,
    [&](task_id one) {
      return task_call_of({one, {}}, commands::task_hold{true, user});
    },
    to);
  return to;
}

caf::result<command_result> cluster_tasks::on(const std::string& user, const commands::task_unpause& x) {
  auto row = known(x.id);
  if (!row)
    return refused(row.error());
  if (row->state != task_state::paused && row->state != task_state::stopping_paused)
    return refused(
      {errc::invalid, "cannot unpause task " + x.id + " as it is in state " + std::string(name(row->state))});
  std::vector<task_id> ids; // with what was paused with it
  for (const auto id : below(row->made.id)) {
    const auto below_it = peers_.reads->other_task(id);
    const bool paused =
      below_it && (below_it->state == task_state::paused || below_it->state == task_state::stopping_paused);
    if (id == row->made.id || (paused && tasks_.at(id).no_pause == 0))
      ids.push_back(id);
  }
  auto to = self_->make_response_promise<command_result>();
  order_all(
    ids,
    [&](task_id one) {
      return task_call_of({one, {}}, commands::task_hold{false, user});
    },
    to);
  return to;
}

caf::result<command_result> cluster_tasks::on(const std::string& user, const commands::task_set& x) {
  auto row = known(x.id);
  if (!row)
    return refused(row.error());
  const auto limits = machine_.rules.constraints_of(row->made.workspace, "NTSC");
  if (auto fine = check_constraints({{"resources", {{"priority", x.priority}}}}, limits); !fine)
    return refused(fine.error());
  return order(row->made.id, task_call_of({row->made.id, {}}, commands::task_set{x.id, x.priority, user}));
}

caf::result<command_result> cluster_tasks::on(const std::string&, const commands::task_use& x) {
  const auto id = parse_task(x.id);
  if (!tasks_.contains(id))
    return known(x.id) ? answered() : gone(x.id);
  return order(id, task_call_of({id, {}}, x));
}

caf::result<command_result> cluster_tasks::hand_on(allocation_id from, task_call call) {
  if (!tasks_.contains(from.task))
    return refused({errc::conflict, "allocation " + to_string(from) + " is over"});
  return order(from.task, std::move(call));
}

void cluster_tasks::kill_in(workspace_id workspace, const std::string& why) {
  for (const auto& [id, one] : tasks_)
    if (one.workspace == workspace)
      self_->request(one.actor, journal_timeout, task_call_of({id, {}}, commands::task_stop{why}))
        .then([](const command_result&) {}, [](const caf::error&) {}); // its end is heard of in any case
}

} // namespace troupe
