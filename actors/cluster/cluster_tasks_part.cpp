#include "actors/cluster/cluster_tasks_part.hpp"

#include "actors/catalogue/pool_bindings.hpp"
#include "actors/catalogue/task_defaults.hpp"
#include "actors/cluster/cluster_members_part.hpp"
#include "actors/retention/bucket_order.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/chosen_name.hpp"
#include "model/config/secrets.hpp"

#include <cstring>
#include <set>

namespace troupe {
namespace {

/// The owner of the task and the key that it was created with, in one text; empty: it was created without a
/// key.
std::string key_of(const task_created& made) {
  const auto key = made.details.is_object() ? made.details.value("key", value()) : value();
  return key.is_string() ? made.owner + "\n" + key.get<std::string>() : std::string();
}

task_id fresh_id(task_kind kind, const std::string& bytes) {
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

/// The checkpoints of which the task removes files.
std::vector<std::string> removed_by(const task_created& made) {
  return made.id.kind() == task_kind::checkpoint_gc ? troupe::removed_by(made.details)
                                                    : std::vector<std::string>();
}

tree_member member_of(const task_detail& row) { return {row.made.id, row.made.no_pause, row.state}; }

error being_made_again(task_id id) {
  return {errc::busy, "task " + to_string(id) + " is being made again\nhint: ask once more"};
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
  // The tasks that ended are left out, as there may be one for each experiment that was ever deleted.
  if (auto rows = peers_.reads->other_tasks(task_kind::checkpoint_gc, self_->now()))
    for (const auto& row : *rows)
      if (!terminal(row.state) && collects_on_agent(row.made))
        recover_one(row);
}

void cluster_tasks::recover_one(const task_detail& row) {
  machine_.uses.begin_removal(to_string(row.made.id), removed_by(row.made));
  auto settings = settings_of(row.made);
  if (!settings) {
    finished(row.made.id); // drops the entry of a task whose actor was being made again
    return abandon(row, settings.error().what);
  }
  const auto past = facts_of<task_fact>(*peers_.reads, entity(row.made.id));
  std::vector<allocation_fact> of_run;
  if (!row.runs.empty() && row.runs.back().ended == time_point{})
    of_run =
      facts_of<allocation_fact>(*peers_.reads, entity(allocation_id{row.made.id, row.runs.back().run}));
  start(std::move(*settings), row.made, past, std::move(of_run));
}

/// Ends a task that cannot be started as ERROR, together with its open run; all other tasks go on.
void cluster_tasks::abandon(const task_detail& row, const std::string& why) {
  ending_[row.made.id] = {why, {}, {}};
  say_last_words(row.made.id);
}

/// Appends the end of an abandoned task; a failed append is tried again until the end is durable. The first
/// append may fail because facts that the dead actor had sent come in between. After a timeout the end may be
/// stored all the same, so each try looks at the row first.
void cluster_tasks::say_last_words(task_id id) {
  auto& last = ending_.at(id);
  const auto next = peers_.reads->next_of(entity(id));
  const auto row = peers_.reads->other_task(id);
  if (row && terminal(row->state))
    return last_words_are_said(id);
  append_facts words{entity(id), next ? *next : 0, {}};
  if (row && !row->runs.empty() && row->runs.back().ended == time_point{}) {
    last.run = {id, row->runs.back().run};
    last.on = row->runs.back().on;
    words.facts.push_back(
      encode(run_ended{self_->now(), last.run.run, end::lost, 0, 0, self_->now(), last.why}));
  }
  words.facts.push_back(encode(task_ended{self_->now(), task_state::error, -1, last.why}));
  self_->request(peers_.journal, journal_timeout, std::move(words))
    .then([this, id](const committed&) { last_words_are_said(id); },
          [this](const caf::error&) {
            if (closing_ || end_at_)
              return;
            end_at_ = self_->now() + std::chrono::seconds(1);
            with_.arm();
          });
}

void cluster_tasks::last_words_are_said(task_id id) {
  const auto last = ending_.extract(id);
  if (last && last.mapped().run.run)
    with_.tell_members(run_let_go{last.mapped().run, last.mapped().on});
}

void cluster_tasks::time_passed() {
  if (!end_at_ || self_->now() < *end_at_)
    return;
  end_at_.reset();
  std::vector<task_id> left;
  for (const auto& [id, last] : ending_)
    left.push_back(id);
  for (const auto id : left)
    say_last_words(id);
}

void cluster_tasks::each_open(const std::function<void(task_id, const run_row&)>& each) const {
  auto open = peers_.reads->open_tasks();
  for (const auto& task : open ? *open : std::vector<task_row>()) {
    if (task.id.is_trial())
      continue;
    auto runs = peers_.reads->runs(task.id);
    if (runs && !runs->empty())
      each(task.id, runs->back());
  }
}

/// The creation of a task that removes files of checkpoints, with what the task needs of its experiment: the
/// environment that its trials had, and the storage that it is about, whose secrets no fact of the task
/// holds.
result<task_created> cluster_tasks::with_experiment(task_created made) const {
  const auto of = made.details.is_object() ? made.details.value("experiment", value()) : value();
  auto row = peers_.reads->experiment({of.is_number_unsigned() ? of.get<std::uint64_t>() : 0});
  if (!row)
    return row.error();
  value config = row->config;
  if (const auto since = made.details.value(storage_of_continuation, value()); since.is_number_unsigned()) {
    auto history = storage_history::of(*peers_.reads, *row);
    if (!history)
      return history.error();
    config = history->config(since.get<std::uint32_t>());
  }
  const auto part = [&](const char* key) {
    return config.is_object() ? config.value(key, value()) : value();
  };
  made.details["storage"] = part("checkpoint_storage");
  made.config["bind_mounts"] = part("bind_mounts");
  made.config["environment"] = part("environment");
  if (auto& environment = made.config["environment"]; environment.is_object())
    environment.erase("proxy_ports");
  return made;
}

result<task_settings> cluster_tasks::settings_of(const task_created& created) const {
  auto complete =
    created.id.kind() == task_kind::checkpoint_gc ? with_experiment(created) : result<task_created>(created);
  if (!complete)
    return complete.error();
  const auto& made = *complete;
  const auto at = machine_.where.workspaces().find(made.workspace);
  auto settings = task_settings_of(made, at == machine_.where.workspaces().end() ? "" : at->second.name);
  if (!settings)
    return settings;
  auto& launch = settings->launch;
  launch.owner = settings->spec.job.user = machine_.records.now_named(made.owner);
  const auto& tokens = setup_.tokens;
  add_defaults(launch.sandbox,
               task_defaults(machine_.records, machine_.where, made.pool, made.workspace, made.owner));
  launch.cluster_id = tokens.cluster_id;
  launch.master_id = tokens.master_id;
  if (tokens.of_task)
    launch.user_token = tokens.of_task(made.id, made.owner);
  const auto events = setup_.checkpoint_dir.empty() || tokens.cluster_id.empty()
                        ? ""
                        : setup_.checkpoint_dir + "/" + tokens.cluster_id + "/tensorboard";
  if (auto service = service_config(made, {tokens.reveal, events, tokens.cluster_id}); !service.is_null())
    launch.env["TROUPE_SERVICE_CONFIG"] = to_json(service);
  if (made.id.kind() == task_kind::notebook) { // scripts made for Determined read these variables
    launch.env["NOTEBOOK_CONFIG"] = to_json(config::without_secrets(made.config));
    if (auto type = made.config.find("notebook_idle_type"); type != made.config.end() && type->is_string())
      launch.env["NOTEBOOK_IDLE_TYPE"] = type->get<std::string>();
    if (tokens.service)
      launch.env["JUPYTER_TOKEN"] = launch.env["DET_NOTEBOOK_TOKEN"] = tokens.service(made.id, made.owner);
  }
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
  if (setup_.lines)
    setup_.lines->watch_other(made.id,
                              made.config.is_object() ? made.config.value("log_policies", value()) : value());
  const auto order = std::move(tasks_[made.id].to_hear);
  tasks_[made.id] = {actor, made.parent, made.no_pause, made.workspace, {}};
  by_address_[actor.address()] = made.id;
  self_->monitor(actor);
  if (order)
    stop(made.id, *order);
}

std::vector<task_actor> cluster_tasks::all() const {
  std::vector<task_actor> out;
  for (const auto& [id, one] : tasks_)
    if (one.actor)
      out.push_back(one.actor);
  return out;
}

task_actor cluster_tasks::actor_of(task_id id) const {
  const auto it = tasks_.find(id);
  return it == tasks_.end() ? task_actor{} : it->second.actor;
}

void cluster_tasks::finished(task_id id) {
  machine_.uses.end_removal(to_string(id));
  const auto it = tasks_.find(id);
  if (it == tasks_.end())
    return;
  if (it->second.actor)
    by_address_.erase(it->second.actor.address());
  tasks_.erase(it);
  if (setup_.lines)
    setup_.lines->forget_other(id);
  with_.tell_members(experiment_gone{job_of(id)});
}

bool cluster_tasks::child_down(const caf::down_msg& down) {
  const auto it = by_address_.find(down.source);
  if (it == by_address_.end())
    return false;
  const auto id = it->second;
  auto row = peers_.reads->other_task(id);
  const bool over = closing_ || !row || terminal(row->state);
  if (!over && restarts_.again(id, self_->now())) {
    by_address_.erase(it);
    tasks_.at(id).actor = nullptr;
    make_again(id);
    return true;
  }
  finished(id);
  if (!over)
    abandon(*row, "its actor died again and again: " + from_caf(down.reason).what);
  return true;
}

/// Makes the actor of a task again from its durable facts, once the journal has taken all that the dead actor
/// had sent. Otherwise a kill could be stored after the next actor has read the facts, and no actor would
/// obey it.
void cluster_tasks::make_again(task_id id) {
  const auto recover = [this, id] {
    const auto row = peers_.reads->other_task(id);
    if (closing_ || !row || terminal(row->state))
      return finished(id);
    recover_one(*row);
  };
  self_->request(peers_.journal, journal_timeout, append_facts{entity(id), 0, {}})
    .then([recover](const committed&) { recover(); },
          [this, id, recover](const caf::error& why) {
            if (why == caf::sec::request_timeout && !closing_)
              make_again(id);
            else
              recover();
          });
}

void cluster_tasks::end_all(const caf::error& why) {
  closing_ = true;
  for (const auto& one : all())
    self_->send_exit(one, why);
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

task_world cluster_tasks::world(const std::string& user) const {
  task_world out;
  out.now = self_->now();
  out.fresh_id = [this](task_kind kind) { return fresh_id(kind, setup_.id_bytes(16)); };
  out.workspace = [this](workspace_id id) {
    return machine_.where.open(id) ? &machine_.where.workspaces().at(id) : nullptr;
  };
  out.template_named = [this](const std::string& name) { return machine_.books.find_template(name); };
  out.task = [this](const std::string& id) -> result<task_created> {
    auto row = known(id);
    return row ? result<task_created>(std::move(row->made)) : row.error();
  };
  out.cluster = machine_.who.configuration();
  out.invariant = [this](workspace_id in) { return machine_.rules.invariant_of(in, "NTSC"); };
  out.constraints = [this](workspace_id in) { return machine_.rules.constraints_of(in, "NTSC"); };
  out.pools = [this](workspace_id in) {
    return pools_of(machine_.rules, machine_.where, machine_.who.configuration(), in);
  };
  out.account = [this, user](const task_created& made) {
    return task_defaults(machine_.records, machine_.where, made.pool, made.workspace, user).account;
  };
  return out;
}

caf::result<command_result> cluster_tasks::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields),
                                     [this, &x](auto order) { return on(x.user, std::move(order)); });
}

caf::result<command_result> cluster_tasks::on(const std::string& user, commands::task_create x) {
  if (!x.key.empty()) {
    if (const auto before = made_with(kind_named(x.kind), user, x.key))
      return answered({{"id", to_string(before->made.id)},
                       {"config", before->made.config},
                       {"pool", before->made.pool},
                       {"warnings", value::array()}});
    if (auto fine = check_submitters_key(x.key); !fine) // earlier builds took others
      return refused(fine.error());
    if (creating_.contains(user + "\n" + x.key))
      return refused({errc::busy, "a task with this key is being created\nhint: ask once more"});
  }
  auto here = world(user);
  if (kind_named(x.kind) == task_kind::checkpoint_gc) // also in a workspace that is archived or being deleted
    here.workspace = [this](workspace_id id) {
      const auto at = machine_.where.workspaces().find(id);
      return at == machine_.where.workspaces().end() ? nullptr : &at->second;
    };
  auto created = to_create(x, user, here);
  if (!created)
    return refused(created.error());
  const auto going = removed_by(created->made);
  for (const auto& uuid : going)
    if (machine_.uses.in_use(uuid, machine_.books))
      return refused({errc::conflict, "checkpoint " + uuid + " is in use"});
  if (!x.preview)
    machine_.uses.begin_removal(to_string(created->made.id), going);
  if (!x.key.empty() && !x.preview) {
    created->made.details["key"] = x.key;
    creating_.insert(user + "\n" + x.key);
  }
  auto to = self_->make_response_promise<command_result>();
  with_.members.ask_capacity(created->made.pool,
                             [this, wanted = *created, files = std::move(x.context.held), preview = x.preview,
                              to](const result<pool_capacity>& pool) mutable {
                               if (auto no = pool ? unfulfillable(wanted.made, *pool) : std::nullopt) {
                                 give_up(wanted.made);
                                 to.deliver(refused(*no));
                                 return;
                               }
                               if (pool)
                                 wanted.answer["warnings"] = launch_warnings(wanted.made, *pool);
                               if (preview)
                                 to.deliver(answered(std::move(wanted.answer)));
                               else
                                 store(std::move(wanted), std::move(files), to);
                             });
  return to;
}

void cluster_tasks::store(created_task wanted, std::string files, promise to) {
  auto& [made, answer] = wanted;
  if (files.empty())
    return append(std::move(made), std::move(answer), to);
  self_->request(peers_.journal, journal_timeout, store_blob{std::move(files)})
    .then(
      [this, made, answer, to](const blob_stored& blob) mutable {
        made.context = blob.name;
        append(std::move(made), std::move(answer), to);
      },
      [this, made, to](const caf::error& why) mutable {
        give_up(made);
        to.deliver(refused(from_caf(why)));
      });
}

/// Forgets a creation that comes to nothing.
void cluster_tasks::give_up(const task_created& made) {
  creating_.erase(key_of(made));
  machine_.uses.end_removal(to_string(made.id));
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

struct cluster_tasks::creation {
  task_created made;
  std::vector<task_fact> facts;
  value answer;
  promise to;
};

void cluster_tasks::append(task_created made, value answer, promise to) {
  auto facts = task::birth(made);
  append(std::make_shared<creation>(creation{std::move(made), std::move(facts), std::move(answer), to}));
}

void cluster_tasks::append(std::shared_ptr<creation> x) {
  append_facts first{entity(x->made.id), 0, {}};
  for (const auto& fact : x->facts)
    first.facts.push_back(encode_as(fact));
  self_->request(peers_.journal, journal_timeout, std::move(first))
    .then(
      [this, x](const committed&) {
        creating_.erase(key_of(x->made));
        auto settings = settings_of(x->made);
        if (!settings) { // not expected, as accept_task has built the settings once
          if (const auto row = peers_.reads->other_task(x->made.id))
            abandon(*row, settings.error().what);
          x->to.deliver(refused(settings.error()));
          return;
        }
        start(std::move(*settings), x->made, x->facts);
        x->to.deliver(answered(std::move(x->answer)));
      },
      [this, x](const caf::error& why) {
        // After a timeout the journal may still store the creation, and then the task needs an actor. So the
        // append is repeated: a repeat changes nothing and is answered like the first.
        if (why == caf::sec::request_timeout && !closing_)
          return append(x);
        give_up(x->made);
        x->to.deliver(refused(from_caf(why)));
      });
}

// ---- orders

caf::result<command_result> cluster_tasks::order(task_id id, task_call call) {
  const auto it = tasks_.find(id);
  if (it == tasks_.end())
    return refused({errc::conflict, "task " + to_string(id) + " has ended"});
  if (!it->second.actor)
    return refused(being_made_again(id));
  return self_->delegate(it->second.actor, std::move(call));
}

/// The parents of all live tasks and of `asked`, and the parents of those up to the roots, ended tasks
/// included.
task_parents cluster_tasks::parents_of_all(task_id asked) const {
  task_parents out;
  const auto climb = [&](task_id id) {
    while (id && !out.contains(id)) {
      const auto live = tasks_.find(id);
      auto above = live == tasks_.end() ? task_id{} : live->second.parent;
      if (live == tasks_.end())
        if (auto row = peers_.reads->other_task(id))
          above = row->made.parent;
      if (above)
        out[id] = above;
      id = above;
    }
  };
  climb(asked);
  for (const auto& [id, one] : tasks_)
    climb(id);
  return out;
}

/// The live tasks among `asked` and all tasks below it, also below children that have ended; with
/// `from_root`, those of the whole tree that `asked` is in.
std::vector<task_id> cluster_tasks::live_below(task_id asked, bool from_root) const {
  std::vector<task_id> all;
  for (const auto& [id, one] : tasks_)
    all.push_back(id);
  const auto parents = parents_of_all(asked);
  return below(parents, all, from_root ? root_of(parents, asked) : asked);
}

/// The result of `live_below` with the states that the journal has.
std::vector<tree_member> cluster_tasks::members_below(task_id root) const {
  std::vector<tree_member> out;
  for (const auto id : live_below(root))
    if (auto row = peers_.reads->other_task(id))
      out.push_back({id, tasks_.at(id).no_pause, row->state});
  return out;
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
    if (const auto it = tasks_.find(id); it != tasks_.end() && !it->second.actor)
      one_done(being_made_again(id));
    else if (it != tasks_.end())
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
    return task_call_of({one, {}}, commands::task_stop{"killed by " + user, user});
  };
  if (!x.tree)
    return terminal(row->state) ? answered() : order(id, stop(id));
  auto to = self_->make_response_promise<command_result>();
  order_all(live_below(id, x.from_root), stop, to);
  return to;
}

caf::result<command_result> cluster_tasks::on(const std::string& user, const commands::task_pause& x) {
  auto row = known(x.id);
  if (!row)
    return refused(row.error());
  if (const auto no = refuses_pause(member_of(*row), x.id))
    return refused(*no);
  const auto ids = paused_with(members_below(row->made.id), row->made.id);
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
  if (const auto no = refuses_unpause(member_of(*row), x.id))
    return refused(*no);
  // Tasks below this one that were paused with it go on with it.
  const auto ids = unpaused_with(members_below(row->made.id), row->made.id);
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

void cluster_tasks::kill_in(workspace_id workspace, const commands::task_stop& order) {
  for (const auto& [id, one] : tasks_)
    if (one.workspace == workspace && id.kind() != task_kind::checkpoint_gc)
      stop(id, order);
}

void cluster_tasks::stop(task_id id, const commands::task_stop& order) {
  auto& one = tasks_.at(id);
  if (!one.actor)
    one.to_hear = order;
  else
    self_->request(one.actor, journal_timeout, task_call_of({id, {}}, order))
      .then([](const command_result&) {}, [](const caf::error&) {}); // the task tells its end in any case
}

} // namespace troupe
