#include "actors/cluster/cluster_experiments_part.hpp"

#include "actors/catalogue/pool_bindings.hpp"
#include "actors/catalogue/task_defaults.hpp"
#include "actors/cluster/accepted_config.hpp"
#include "actors/cluster/cluster_deletions_part.hpp"
#include "actors/cluster/cluster_members_part.hpp"
#include "actors/cluster/cluster_tasks_part.hpp"
#include "actors/cluster/cluster_unmanaged_part.hpp"
#include "actors/cluster/cluster_webhooks_part.hpp"
#include "actors/cluster/continuation.hpp"
#include "actors/cluster/warm_start.hpp"
#include "actors/retention/held_checkpoints.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config_in_force.hpp"
#include "model/described.hpp"
#include "model/names.hpp"

namespace troupe {

// ---- recovery and start

void cluster_experiments::recover(const experiment_row& row) {
  auto settings = settings_of(row.id, row.config, row.context, row.owner, row.created);
  if (!settings)
    return set_aside(row.id, settings.error().what);
  auto past = past_of(*peers_.reads, *settings);
  auto ok = past ? replayable(*past) : result<void>(past.error());
  if (!ok)
    return set_aside(row.id, ok.error().what);
  past->again = {row.continued, row.continued_trials, row.resources.empty(),
                 hparams_of_one(row.config, settings->seed)};
  add_trials(*past, *peers_.reads, *settings, self_->now());
  if (const auto sources = sources_of(*peers_.reads, row))
    machine_.uses.begin_with(row.id, *sources);
  start(std::move(*settings), *past, false, row.resources.empty() ? "" : row.resources.front().pool);
}

void cluster_experiments::set_aside(experiment_id id, const std::string& why, int tries) {
  machine_.uses.forget(id);
  auto next = peers_.reads->next_of(entity(id));
  append_facts last{
    entity(id), next ? *next : 0, {encode(experiment_changed{self_->now(), experiment_state::error, why})}};
  self_->request(peers_.journal, journal_timeout, std::move(last))
    .then(
      [this, id](const committed&) {
        abandon_tasks(id);
        with_.webhooks.tell_receivers(id, [] {});
      },
      [this, id, why, tries](const caf::error& fault) {
        // A gap means that facts were stored meanwhile which the actor had sent before it died. Where the
        // append fails for another reason, the next start of the master sets the experiment aside.
        if (from_caf(fault).code == errc::gap && tries > 0)
          set_aside(id, why, tries - 1);
      });
}

void cluster_experiments::abandon_tasks(experiment_id id) {
  auto trials = peers_.reads->trials(id);
  if (!trials)
    return;
  for (const auto& trial : *trials) {
    if (trial.runs.empty() || trial.runs.back().ended != time_point{})
      continue;
    with_.tell_members(run_let_go{{trial.id, trial.runs.back().run}, trial.runs.back().on});
  }
}

result<experiment_settings> cluster_experiments::settings_of(experiment_id id, const value& config,
                                                             const std::string& context,
                                                             const std::string& owner,
                                                             time_point submitted) const {
  return experiment_settings_of(
    {id, config, context, machine_.records.now_named(owner), setup_.checkpoint_dir, submitted});
}

void cluster_experiments::start(experiment_settings settings, const experiment_past& past, bool paused,
                                const std::string& pool) {
  const auto id = settings.id;
  settings.job.workspace = machine_.where.workspace_of(id); // may be another one than the text names
  add_defaults(settings.launch.sandbox, sandbox_defaults_of(settings, pool));
  const auto log_policies = settings.launch.config.get().value("log_policies", value());
  with_.tell_members(experiment_entered{id, settings.launch.config, pool});
  auto experiment = spawn_experiment(self_->system(), {std::move(settings), paused},
                                     {cluster_actor{self_},
                                      peers_.journal,
                                      {with_.members.pools(), machine_.who.pool_of(id)},
                                      peers_.reads,
                                      setup_.tokens},
                                     past);
  experiments_[id] = experiment;
  if (setup_.lines)
    setup_.lines->watch(id, log_policies);
  by_address_[experiment.address()] = id;
  self_->monitor(experiment);
}

sandbox_defaults cluster_experiments::sandbox_defaults_of(const experiment_settings& settings,
                                                          const std::string& pool) const {
  const auto& configuration = machine_.records.configuration().configuration;
  const auto named = config::pool_of_experiment(configuration, settings.launch.config);
  return task_defaults(machine_.records, machine_.where,
                       !pool.empty() ? pool
                       : named       ? *named
                                     : config::default_pool(configuration),
                       machine_.where.workspace_id_of(settings.id), settings.launch.owner);
}

void cluster_experiments::forget(experiment_id id) {
  if (auto it = experiments_.find(id); it != experiments_.end()) {
    by_address_.erase(it->second.address());
    experiments_.erase(it);
    machine_.uses.forget(id);
    if (setup_.lines)
      setup_.lines->forget(id);
    with_.tell_members(experiment_gone{id});
  }
}

bool cluster_experiments::child_down(const caf::down_msg& down) {
  const auto it = by_address_.find(down.source);
  if (it == by_address_.end())
    return false;
  const auto id = it->second;
  forget(id);
  if (closing_ || !down.reason)
    return true;
  auto row = peers_.reads->experiment(id);
  if (!row || terminal(row->state))
    return true;
  if (restarts_.again(id, self_->now()))
    recover(*row); // makes the actor again from what is durable
  else
    set_aside(id, "its actor died again and again: " + from_caf(down.reason).what);
  return true;
}

void cluster_experiments::end_all(const caf::error& why) {
  closing_ = true;
  for (auto& [id, experiment] : experiments_)
    self_->send_exit(experiment, why);
}

experiment_actor cluster_experiments::actor_of(experiment_id id) const {
  const auto it = experiments_.find(id);
  return it == experiments_.end() ? experiment_actor{} : it->second;
}

std::vector<experiment_actor> cluster_experiments::all() const {
  std::vector<experiment_actor> out;
  for (const auto& [id, experiment] : experiments_)
    out.push_back(experiment);
  return out;
}

// ---- orders to one of them

caf::result<command_result> cluster_experiments::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields), [this, &x](auto order) {
    if constexpr (std::is_same_v<decltype(order), commands::task_answers>) { // may also come from the owner
      const auto id = parse_allocation(order.allocation);
      return hand_on(id, std::move(order));
    } else if constexpr (commands::contains<commands::task_calls, decltype(order)>)
      return hand_on(parse_allocation(x.allocation), std::move(order));
    else
      return on(x.user, std::move(order));
  });
}

caf::result<command_result> cluster_experiments::on(const std::string& user,
                                                    const commands::experiment_activate& x) {
  return tell(x.id, experiment_activate{user});
}

caf::result<command_result> cluster_experiments::on(const std::string& user,
                                                    const commands::experiment_pause& x) {
  return tell(x.id, experiment_pause{user});
}

/// A continuation that is decided and not durable yet.
struct cluster_experiments::continuation_asked {
  experiment_row row; ///< the experiment when its continuation was decided
  std::vector<trial_row> trials;
  experiment_continued wanted;
  value overrides; ///< partial configuration that replaces values of the experiment's
};

caf::result<command_result> cluster_experiments::on(const std::string& user,
                                                    const commands::experiment_continue& x) {
  auto row = peers_.reads->experiment(x.id);
  if (!row)
    return refused({errc::not_found, "experiment '" + to_string(x.id) + "' not found"});
  if (!terminal(row->state) || experiments_.contains(x.id))
    return refused({errc::conflict, "experiment in non terminal state '" +
                                      std::string(troupe::name(row->state)) + "', try again later"});
  if (auto open = machine_.where.takes_experiments(row->project); !open)
    return refused(
      {open.error().code, "experiment " + to_string(x.id) + " cannot continue: " + open.error().what});
  const auto trials = peers_.reads->trials(x.id);
  if (!trials)
    return refused(trials.error());
  if (const auto* said = machine_.where.said_of(x.id)) // a change of it may be on its way to the journal
    lay_over(*row, *said);
  const auto workspace = machine_.where.workspace_id_of(row->project);
  auto wanted =
    to_continue(*row, *trials, x.config,
                {setup_.checkpoint_dir, machine_.who.configuration(),
                 machine_.rules.constraints_of(workspace), machine_.rules.invariant_of(workspace),
                 pools_of(machine_.rules, machine_.where, machine_.who.configuration(), workspace)},
                self_->now());
  if (!wanted)
    return refused(wanted.error());
  wanted->by = user;
  auto promise = self_->make_response_promise<command_result>();
  const auto asked = std::make_shared<continuation_asked>(
    continuation_asked{std::move(*row), std::move(*trials), std::move(*wanted), x.config});
  auto config = asked->wanted.config.is_object() ? asked->wanted.config : config_in_force(asked->row);
  const auto& cluster = machine_.who.configuration();
  const auto pool = config::pool_of_experiment(cluster, config);
  if (!pool || config::pool_settings(cluster, *pool).value("launch_error", value()) != true)
    record(*asked, promise); // the pool refuses nothing
  else
    with_.members.ask_capacity(*pool, [this, asked, config = std::move(config), name = *pool,
                                       promise](const result<pool_capacity>& its) mutable {
      if (auto no = its ? too_large(config, name, *its) : std::nullopt)
        promise.deliver(refused(*no));
      else
        record(*asked, promise);
    });
  return promise;
}

/// Whether the trials can continue with their checkpoints, and with the one that the configuration names.
/// Puts the latter into the configuration, where that changes.
result<void> cluster_experiments::check_usable(continuation_asked& x) const {
  const auto continues = [&](const trial_row& one) {
    return std::find(x.wanted.trials.begin(), x.wanted.trials.end(), one.id) != x.wanted.trials.end();
  };
  const auto unusable = [this](const checkpoint_row& one) {
    return machine_.uses.unusable(one, machine_.ids);
  };
  // A trial without a checkpoint begins with the one that the configuration names.
  const bool anew = std::any_of(x.trials.begin(), x.trials.end(), [&](const trial_row& one) {
    return one.latest_checkpoint.empty() && continues(one);
  });
  const bool changes = x.wanted.config.is_object();
  auto config = changes ? x.wanted.config : x.row.config.get();
  if (anew || starts_elsewhere(x.row.config.get(), config))
    if (auto fine = resolve_source(*peers_.reads, unusable, config); !fine)
      return fine;
  for (const auto& trial : x.trials)
    if (continues(trial))
      if (const auto newest = peers_.reads->checkpoint(trial.latest_checkpoint);
          newest && newest->state == checkpoint_state::completed)
        if (const auto why = unusable(*newest); !why.empty())
          return error{errc::conflict, "checkpoint " + newest->saved.uuid + ", with which trial " +
                                         to_string(trial.id) + " would continue, " + why};
  if (changes)
    x.wanted.config = std::move(config);
  return {};
}

void cluster_experiments::record(continuation_asked& x, caf::typed_response_promise<command_result> promise) {
  if (auto fine = check_usable(x); !fine) {
    promise.deliver(refused(fine.error()));
    return;
  }
  const auto& wanted = x.wanted;
  const auto sources = source_in(wanted.config.is_object() ? wanted.config : x.row.config.get());
  auto facts = machine_.ids.go_on(wanted, x.row.continued);
  if (facts.empty()) {
    promise.deliver(
      refused({errc::conflict, "experiment " + to_string(wanted.id) + " is being continued or deleted"}));
    return;
  }
  machine_.uses.begin_with(wanted.id, sources);
  machine_.pass_on(facts);
  const auto add = [&facts](auto more) {
    for (auto& one : more)
      std::visit([&](auto& fact) { facts.emplace_back(std::move(fact)); }, one);
  };
  add(machine_.where.say_anew(wanted));
  if (wanted.config.is_object())
    if (const auto days = log_days_named(x.overrides, wanted.config))
      if (auto kept = machine_.rules.retain({wanted.id, {}, *days}, wanted.by, self_->now()))
        add(std::move(*kept)); // counts over what was set before
  with_.take(std::move(facts), [this, promise, id = wanted.id](const caf::error& why) mutable {
    if (why) {
      machine_.uses.forget(id);
      promise.deliver(refused(from_caf(why)));
      return;
    }
    if (auto now = peers_.reads->experiment(id)) // a restart of the master would begin with the same step
      recover(*now);
    with_.deletions.delete_doomed(); // the project may have been deleted meanwhile
    promise.deliver(answered());
  });
}

caf::result<command_result> cluster_experiments::on(const std::string& user,
                                                    const commands::experiment_cancel& x) {
  return tell(x.id, experiment_stop{false, "canceled by " + user, false, user});
}

caf::result<command_result> cluster_experiments::on(const std::string& user,
                                                    const commands::experiment_kill& x) {
  return tell(x.id, experiment_stop{true, "killed by " + user, false, user});
}

caf::result<command_result> cluster_experiments::on(const std::string& user,
                                                    const commands::experiment_set& x) {
  if (!x.priority && !x.weight && !x.max_slots && !x.pool)
    return refused({errc::invalid, "nothing is set: name priority, weight, max_slots or pool"});
  const experiment_placed placed{x.id, x.pool.value_or("")};
  const auto it = experiments_.find(x.id);
  if (it == experiments_.end())
    return has_ended(x.id);
  if (const auto most = x.max_slots.value_or(-1); most >= 0)
    if (const auto row = peers_.reads->experiment(x.id))
      if (auto no = below_one_trial(row->config.get(), most))
        return refused(*no);
  const auto workspace = machine_.where.workspace_id_of(x.id);
  if (auto fine = machine_.rules.check_change(workspace, x); !fine)
    return refused(fine.error());
  if (x.pool)
    if (auto fine =
          pools_of(machine_.rules, machine_.where, machine_.who.configuration(), workspace).check(*x.pool);
        !fine)
      return refused(fine.error());
  experiment_set order{user, static_cast<int>(x.priority.value_or(0)), x.weight.value_or(-1),
                       static_cast<int>(x.max_slots.value_or(-2)), placed.pool};
  auto promise = self_->make_response_promise<command_result>();
  self_->request(it->second, journal_timeout, std::move(order))
    .then(
      [this, promise, placed](const committed&) mutable {
        if (auto to = experiments_.find(placed.id); !placed.pool.empty() && to != experiments_.end()) {
          with_.tell_members(placed);
          if (auto pool = with_.members.pools().find(placed.pool); pool != with_.members.pools().end())
            self_->send(to->second, pool_chosen{placed.pool, pool->second});
        }
        promise.deliver(answered());
      },
      [this, promise, placed](const caf::error& why) mutable {
        promise.deliver(of_gone(placed.id, why, [&] { return has_ended(placed.id); }));
      });
  return promise;
}

template <class Event>
caf::result<command_result> cluster_experiments::tell(experiment_id id, Event ev) {
  auto of_ended = [this, id] {
    // An order to stop an experiment that has ended is fulfilled.
    return std::is_same_v<Event, experiment_stop> && peers_.reads->experiment(id) ? answered()
                                                                                  : has_ended(id);
  };
  if (auto it = experiments_.find(id); it != experiments_.end())
    return forward(id, it->second, std::move(ev), of_ended);
  if (auto row = peers_.reads->experiment(id); row && row->unmanaged && !terminal(row->state)) {
    if constexpr (std::is_same_v<Event, experiment_stop>)
      return with_.unmanaged.stop(*row, ev.why, ev.by);
    return refused({errc::conflict, "experiment " + to_string(id) +
                                      " is unmanaged: only its own processes begin, pause and end"});
  }
  return of_ended();
}

bool cluster_experiments::has_stopped(experiment_id id) const {
  if (experiments_.contains(id))
    return false;
  const auto row = peers_.reads->experiment(id);
  return !row || !row->unmanaged || terminal(row->state);
}

command_result cluster_experiments::has_ended(experiment_id id) const {
  auto row = peers_.reads->experiment(id);
  if (!row)
    return refused({errc::not_found, "experiment " + to_string(id) + " not found"});
  if (row->unmanaged && !terminal(row->state))
    return refused({errc::conflict, "experiment " + to_string(id) +
                                      " is unmanaged: nothing of it runs here, or waits for slots"});
  return refused(
    {errc::conflict, "experiment " + to_string(id) + " is " + std::string(troupe::name(row->state))});
}

caf::result<command_result> cluster_experiments::on(const std::string& user, const commands::trial_kill& x) {
  auto row = peers_.reads->trial(x.id);
  if (!row)
    return refused({errc::not_found, "trial " + to_string(x.id) + " not found"});
  auto it = experiments_.find(row->experiment);
  if (terminal(row->state))
    return answered();
  if (auto of = peers_.reads->experiment(row->experiment); of && of->unmanaged)
    return with_.unmanaged.stop(*row, "killed by " + user, user);
  if (it == experiments_.end())
    return answered();
  return forward(row->experiment, it->second, kill_trial{x.id, user}, [] { return answered(); });
}

template <class OfTask>
caf::result<command_result> cluster_experiments::hand_on(allocation_id from, OfTask x) {
  if constexpr (std::is_same_v<OfTask, commands::allocation_rendezvous>) {
    auto& hosts = x.hosts.emplace();
    for (const auto& [agent, known] : machine_.who.agents())
      hosts[agent] = known.host;
  }
  if (from.task && !from.task.is_trial())
    return with_.tasks.hand_on(from, task_call_of(from, std::move(x)));
  const auto live = actor_of(x.experiment);
  if constexpr (commands::contains<commands::trial_calls, OfTask>)
    if (!live)
      if (auto row = peers_.reads->experiment(x.experiment); row && row->unmanaged)
        return with_.unmanaged.on(from, std::move(x));
  if (!live)
    return refused({errc::conflict, "allocation " + to_string(from) + " is over"});
  return self_->delegate(live, task_call_of(from, std::move(x)));
}

// ---- searches that are driven by a process outside the master

/// The UUIDs of the checkpoints with which the orders begin trials. Refused are those that can come into no
/// use; one with which a trial of the experiment has begun is accepted, as orders may be repeated.
result<std::set<std::string>> cluster_experiments::sources_in(experiment_id id, const value& orders) const {
  std::set<std::string> out;
  const auto actions = orders.value("actions", value());
  if (!actions.is_array())
    return out; // the search refuses such orders itself
  const auto own = machine_.uses.sources().find(id);
  for (const auto& one : actions) {
    const auto given = one.is_object() ? one.value("source_checkpoint", value()) : value();
    const auto uuid = given.is_string() ? given.get<std::string>() : std::string();
    if (uuid.empty() || (own != machine_.uses.sources().end() && own->second.contains(uuid)))
      continue;
    const auto row = peers_.reads->checkpoint(uuid);
    if (const auto why = row ? machine_.uses.unusable(*row, machine_.ids) : "not found"; !why.empty())
      return error{errc::invalid, "source_checkpoint: checkpoint '" + uuid + "' " + why};
    out.insert(uuid);
  }
  return out;
}

caf::result<command_result> cluster_experiments::on(const std::string&, commands::search_order x) {
  const auto id = x.id;
  auto it = experiments_.find(id);
  if (it == experiments_.end())
    return has_ended(id);
  const auto sources = sources_in(id, x.orders);
  if (!sources)
    return refused(sources.error());
  if (!sources->empty()) // before the search takes the orders, so that no checkpoint is deleted meanwhile
    machine_.uses.begin_with(id, *sources);
  auto promise = self_->make_response_promise<command_result>();
  self_->request(it->second, journal_timeout, search_orders{std::move(x.orders)})
    .then(
      [promise](const orders_answered& got) mutable {
        if (!got.refused.empty()) {
          promise.deliver(refused({errc::invalid, got.refused}));
          return;
        }
        value created = value::object();
        for (const auto& [key, trial] : got.created)
          created[key] = trial.value;
        promise.deliver(answered({{"last", got.heard}, {"trials", std::move(created)}}));
      },
      [this, id, promise](const caf::error& why) mutable {
        promise.deliver(of_gone(id, why, [&] { return has_ended(id); }));
      });
  return promise;
}

caf::result<command_result> cluster_experiments::on(const std::string&, const commands::search_wait& x) {
  const auto id = x.id;
  auto it = experiments_.find(id);
  if (it == experiments_.end())
    return answered(); // the experiment has ended, so no more events will come
  await_events wish{x.after, x.timeout_ms};
  auto promise = self_->make_response_promise<command_result>();
  self_->request(it->second, std::chrono::milliseconds(wish.timeout_ms) + journal_timeout, wish)
    .then([promise](const events_heard&) mutable { promise.deliver(answered()); },
          [this, id, promise](const caf::error& why) mutable {
            promise.deliver(of_gone(id, why, [] { return answered(); }));
          });
  return promise;
}

/// Sends the message to the experiment and answers with its answer. `of_ended` gives the answer where the
/// experiment ended while the message was on its way.
template <class Message, class OfEnded>
caf::result<command_result> cluster_experiments::forward(experiment_id id, const experiment_actor& to,
                                                         Message message, OfEnded of_ended) {
  auto promise = self_->make_response_promise<command_result>();
  self_->request(to, journal_timeout, std::move(message))
    .then([promise](const committed&) mutable { promise.deliver(answered()); },
          [this, id, promise, of_ended](const caf::error& why) mutable {
            promise.deliver(of_gone(id, why, of_ended));
          });
  return promise;
}

/// The answer in place of an experiment's actor that failed or no longer lives.
template <class OfEnded>
command_result cluster_experiments::of_gone(experiment_id id, const caf::error& why,
                                            const OfEnded& of_ended) const {
  if (why != caf::sec::request_receiver_down)
    return refused(from_caf(why));
  if (auto row = peers_.reads->experiment(id); row && !terminal(row->state))
    return refused(
      {errc::timeout, "experiment " + to_string(id) + " is being started again\nhint: ask once more"});
  return of_ended();
}

} // namespace troupe
