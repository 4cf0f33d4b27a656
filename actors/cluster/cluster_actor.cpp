#include "actors/cluster/cluster_actor.hpp"

#include "actors/catalogue/catalogue_commands.hpp"
#include "actors/catalogue/house_changes.hpp"
#include "actors/catalogue/place_changes.hpp"
#include "actors/catalogue/pool_bindings.hpp"
#include "actors/catalogue/task_defaults.hpp"
#include "actors/cluster/accepted_config.hpp"
#include "actors/cluster/cluster_deletions_part.hpp"
#include "actors/cluster/cluster_explain_part.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/cluster/cluster_members_part.hpp"
#include "actors/cluster/cluster_tasks_part.hpp"
#include "actors/cluster/cluster_unmanaged_part.hpp"
#include "actors/cluster/cluster_webhooks_part.hpp"
#include "actors/cluster/continuation.hpp"
#include "actors/experiment/experiment_actor.hpp"
#include "actors/provider/provisioner_actor.hpp"
#include "actors/same_secret.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/secrets.hpp"
#include "model/names.hpp"
#include "system/random.hpp"

#include <algorithm>
#include <set>

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<cluster_actor>;
using command_promise = caf::typed_response_promise<command_result>;

class cluster_shell_state : durable<cluster_shell_state, cluster_actor, cluster_fact, members_action> {
  friend class durable<cluster_shell_state, cluster_actor, cluster_fact, members_action>;

public:
  static inline const char* name = "cluster";
  explicit cluster_shell_state(base* self) : durable(self) {}

  cluster_actor::behavior_type make_behavior(cluster_setup setup, cluster_peers peers) {
    self_->enter("cluster");
    setup_ = std::move(setup);
    peers_ = std::move(peers);
    self_->set_down_handler([this](const caf::down_msg& down) { child_down(down); });
    recover();
    return {
      [this](register_agent& x, agent_actor& who) { return admit(std::move(x), std::move(who)); },
      [this](client_command& x) {
        return obey<commands_here>(x.name, std::move(x.fields), [this, &x](auto order) {
          return on({x.user, x.allocation}, std::move(order));
        });
      },
      [this](const reserve_trials& x) { return trials_reserved{machine_->ids.reserve_trials(x.count)}; },
      [this](const experiment_finished& x) {
        forget(x.id);
        webhooks_->tell_receivers(x.id, [this, id = x.id] { deletions_->sweep(id, false); });
        deletions_->delete_doomed();
      },
      [this](route_validation& x) {
        if (auto it = experiments_.find(x.experiment); it != experiments_.end())
          self_->send(it->second, std::move(x.what));
        else if (auto row = peers_.reads->experiment(x.experiment); row && row->unmanaged)
          unmanaged_->take(x);
      },
      [this](const time_passed&) {
        timer_fired();
        webhooks_->send_due();
        unmanaged_->time_passed();
      },
      [this](const task_finished& x) { tasks_->finished(x.id); },
      [this](const sweep_finished& x) { take(machine_->ids.swept(x.id, self_->now()), {}); },
      [this](const lines_matched& x) { return webhooks_->take_matches(x); },
      [this](const webhook_told& x) { webhooks_->heard_of_delivery(x); },
      [this](node_joined& x) {
        if (setup_.on_node)
          setup_.on_node(std::move(x));
      },
    };
  }

private:
  struct caller {
    const std::string& user;
    const std::string& allocation; ///< where a task speaks
  };

  cluster_machines& machine() { return *machine_; }
  members& who() { return machine_->who; }
  std::optional<time_point> deadline() const {
    const auto post = machine_->post.deadline(), silence = unmanaged_->deadline();
    return post && silence ? std::min(*post, *silence) : post ? post : silence;
  }
  template <class Action>
  void run(const Action& x) {
    members_->run(x);
  }
  void tell_members(const members_event& ev, done_callback done = {}) {
    auto s = who().apply(ev, self_->now());
    take(std::move(s.facts), std::move(s.actions), std::move(done));
  }

  std::vector<provider_fact> instances_of(const std::string& pool) const {
    std::vector<provider_fact> past;
    if (auto facts = peers_.reads->facts_of(provider_entity(pool)))
      for (const auto& bytes : *facts)
        if (auto fact = decode_as<provider_fact>(bytes))
          past.push_back(std::move(*fact));
    return past;
  }

  // ---- recovery

  void recover() {
    id_counters ids;
    auto rows = peers_.reads->experiments();
    if (rows)
      for (const auto& row : *rows)
        ids.newest_experiment = std::max(ids.newest_experiment, row.id);
    ids.newest_trial = peers_.reads->newest_trial();
    machine_.emplace(cluster_machines{
      cluster(ids), members({setup_.lease.give_away, self_->now(), std::move(setup_.configuration)})});
    machine_->post = deliveries{setup_.base_url};
    std::size_t stored = 0;
    if (auto facts = peers_.reads->facts_of(cluster_entity))
      for (const auto& bytes : *facts) {
        ++stored;
        if (auto fact = decode_as<cluster_fact>(bytes)) {
          machine_->replay(*fact);
          if (const auto* changed = std::get_if<configuration_changed>(&*fact)) // of an earlier life
            setup_.lease.first_give_away =
              std::max(setup_.lease.first_give_away, config::leases(changed->configuration).give_away);
        }
      }
    if (stored == 0) // nobody holds a lease of an earlier life
      setup_.lease.first_give_away = setup_.lease.give_away;
    epoch_ = static_cast<std::uint64_t>(self_->now().time_since_epoch().count());
    members_.emplace(self_, setup_, machine_->who,
                     cluster_members::needs{[this] { return tasks_in_journal(); },
                                            [this] { return all_experiments(); },
                                            [this] { return tasks_->all(); },
                                            [this](const std::string& pool) { return instances_of(pool); },
                                            peers_.journal, [this](const caf::error& why) { leave(why); }});
    tasks_.emplace(self_, setup_, peers_, *machine_,
                   cluster_tasks::needs{[this] { return members_->pools(); },
                                        [this](const members_event& ev) { tell_members(ev); },
                                        [this](const allocation_id& run, const std::vector<placement>& on) {
                                          let_go(run, on);
                                        }});
    const auto live = [this](experiment_id id) {
      const auto it = experiments_.find(id);
      return it == experiments_.end() ? experiment_actor{} : it->second;
    };
    const auto take_facts = [this](std::vector<cluster_fact> facts, done_callback done) {
      take(std::move(facts), {}, std::move(done));
    };
    webhooks_.emplace(
      self_, setup_, peers_, *machine_,
      cluster_webhooks::needs{take_facts, live, [this](task_id id) { return tasks_->actor_of(id); },
                              [this](const experiment_row& row) { return pool_name_of(row); }});
    deletions_.emplace(self_, setup_, peers_, *machine_,
                       cluster_deletions::needs{
                         take_facts, live,
                         [this](const trial_row& row, task_call call, trial_fact fact, change_done done) {
                           change_trial(row, std::move(call), std::move(fact), std::move(done));
                         },
                         [this](experiment_id id, std::function<void()> then) {
                           webhooks_->tell_receivers(id, std::move(then));
                         }});
    unmanaged_.emplace(
      self_, peers_, *machine_,
      cluster_unmanaged::needs{[this](experiment_id id) { webhooks_->tell_receivers(id, [] {}); },
                               [this](const experiment_row& row) {
                                 return settings_of(row.id, row.config, row.context, row.owner, row.created);
                               },
                               [this] { arm(deadline()); }});
    explain_.emplace(self_, peers_.reads,
                     cluster_explain::needs{[this](const std::string& name) {
                                              const auto it = members_->pools().find(name);
                                              return it == members_->pools().end() ? pool_actor{}
                                                                                   : it->second;
                                            },
                                            live});
    begin(cluster_entity, stored, peers_.journal, who().resume());
    expect_open_runs();
    for (const auto& [agent, user] : std::exchange(setup_.drained_before, {}))
      tell_members(agent_ordered{agent, -1, true, user, true});
    if (rows)
      for (const auto& row : *rows) {
        if (row.unmanaged)
          unmanaged_->recover(row);
        else if (!terminal(row.state))
          recover(row);
      }
    tasks_->recover();
    members_->recovered();
    webhooks_->watch_triggers();
    deletions_->begin();
    webhooks_->send_due();
  }

  open_tasks tasks_in_journal() const {
    open_tasks by_agent;
    auto rows = peers_.reads->experiments();
    for (const auto& row : rows ? *rows : std::vector<experiment_row>()) {
      auto trials = terminal(row.state) ? result<std::vector<trial_row>>(std::vector<trial_row>())
                                        : peers_.reads->trials(row.id);
      if (!trials)
        continue;
      for (const auto& trial : *trials)
        if (!trial.runs.empty() && trial.runs.back().ended == time_point{})
          for (const auto& part : trial.runs.back().on)
            by_agent[part.agent].tasks.push_back({{trial.id, trial.runs.back().run}, part.slots});
    }
    tasks_->add_open(by_agent);
    return by_agent;
  }

  void expect_open_runs() {
    for (auto& [agent, tasks] : tasks_in_journal())
      if (auto twin = members_->twin_of(agent))
        self_->send(twin, std::move(tasks));
  }

  std::vector<experiment_actor> all_experiments() const {
    std::vector<experiment_actor> out;
    for (const auto& [id, experiment] : experiments_)
      out.push_back(experiment);
    return out;
  }

  void recover(const experiment_row& row) {
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
    start(std::move(*settings), *past, false, row.resources.empty() ? "" : row.resources.front().pool);
  }

  /// It alone ends as error, and its tasks with it; the rest serve.
  void set_aside(experiment_id id, const std::string& why, int tries = 5) {
    auto next = peers_.reads->next_of(entity(id));
    append_facts last{
      entity(id), next ? *next : 0, {encode(experiment_changed{self_->now(), experiment_state::error, why})}};
    self_->request(peers_.journal, journal_timeout, std::move(last))
      .then(
        [this, id](const committed&) {
          abandon_tasks(id);
          webhooks_->tell_receivers(id, [] {});
        },
        [this, id, why, tries](const caf::error& fault) {
          if (from_caf(fault).code == errc::gap &&
              tries > 0)                   // what it had sent before it died came in between
            set_aside(id, why, tries - 1); // else the next start does it
        });
  }
  void abandon_tasks(experiment_id id) {
    auto trials = peers_.reads->trials(id);
    if (!trials)
      return;
    for (const auto& trial : *trials) {
      if (trial.runs.empty() || trial.runs.back().ended != time_point{})
        continue;
      let_go({trial.id, trial.runs.back().run}, trial.runs.back().on);
    }
  }
  /// Of a run that nobody looks after any more: its processes end, and its slots are free.
  void let_go(const allocation_id& run, const std::vector<placement>& on) {
    members_->release(run);
    for (const auto& part : on)
      if (auto twin = members_->twin_of(part.agent))
        self_->send(twin, forget_ordered{run});
  }

  result<experiment_settings> settings_of(experiment_id id, const value& config, const std::string& context,
                                          const std::string& owner, time_point submitted) const {
    return experiment_settings_of({id, config, context, owner, setup_.checkpoint_dir, submitted});
  }

  /// `pool`: that an operator chose; empty: the one that its settings name.
  void start(experiment_settings settings, const experiment_past& past, bool paused = false,
             const std::string& pool = {}) {
    const auto id = settings.id;
    settings.job.workspace = machine_->where.workspace_of(id); // not only what its text names
    add_defaults(settings.launch.sandbox, sandbox_defaults_of(settings, pool));
    const auto log_policies = settings.launch.config.get().value("log_policies", value());
    tell_members(experiment_entered{id, settings.launch.config, pool});
    auto experiment = spawn_experiment(self_->system(), {std::move(settings), paused},
                                       {cluster_actor{self_},
                                        peers_.journal,
                                        {members_->pools(), who().pool_of(id)},
                                        peers_.reads,
                                        setup_.tokens},
                                       past);
    experiments_[id] = experiment;
    if (setup_.lines)
      setup_.lines->watch(id, log_policies);
    by_address_[experiment.address()] = id;
    self_->monitor(experiment);
  }

  sandbox_defaults sandbox_defaults_of(const experiment_settings& settings, const std::string& pool) const {
    const auto& configuration = machine_->records.configuration().configuration;
    const auto named = config::pool_of_experiment(configuration, settings.launch.config);
    return task_defaults(machine_->records, machine_->where,
                         !pool.empty() ? pool
                         : named       ? *named
                                       : config::default_pool(configuration),
                         machine_->where.workspace_id_of(settings.id), settings.launch.owner);
  }

  void forget(experiment_id id) {
    if (auto it = experiments_.find(id); it != experiments_.end()) {
      by_address_.erase(it->second.address());
      experiments_.erase(it);
      if (setup_.lines)
        setup_.lines->forget(id);
      tell_members(experiment_gone{id});
    }
  }

  void child_down(const caf::down_msg& down) {
    if (auto it = by_address_.find(down.source); it != by_address_.end()) {
      auto id = it->second;
      forget(id);
      if (closing_ || !down.reason)
        return;
      auto row = peers_.reads->experiment(id);
      if (!row || terminal(row->state))
        return;
      if (!restarts_.again(entity(id), self_->now()))
        return set_aside(id, "its actor died again and again: " + from_caf(down.reason).what);
      return recover(*row); // made again from what is durable
    }
    if (tasks_->child_down(down))
      return;
    if (!closing_ && deletions_->erased_by(down.source))
      return restarts_.again("retention", self_->now())
               ? deletions_->begin()
               : leave(
                   to_caf({errc::internal, "retention died again and again: " + from_caf(down.reason).what}));
    if (closing_)
      return;
    if (auto news = members_->child_down(down))
      tell_members(*news);
  }

  void end_children(const caf::error& why) {
    closing_ = true;
    for (auto& [id, experiment] : experiments_)
      self_->send_exit(experiment, why);
    if (tasks_)
      tasks_->end_all(why);
    members_->end_all(why);
    if (webhooks_)
      webhooks_->close();
    if (deletions_)
      deletions_->end_all(why);
  }

  // ---- agents

  caf::result<registered> admit(register_agent x, agent_actor who) {
    if (x.protocol != link_protocol)
      return to_caf({errc::unsupported, "this agent speaks link protocol " + std::to_string(x.protocol) +
                                          ", the master " + std::to_string(link_protocol) +
                                          ": install the same version on both"});
    if (!same_secret(x.token, setup_.join_token))
      return to_caf(
        {errc::denied, "the join token is not this cluster's: copy the one that `troupe tls init` wrote"});
    const std::uint16_t http_port = setup_.http_port ? setup_.http_port() : 0;
    if (setup_.http_port && !http_port)
      return to_caf({errc::busy, "the master still starts"});
    const agent_asked asked{{self_->now(), x.name, x.id, x.slots, x.host, x.pool}};
    if (auto labels = config::labels_of_agent(machine_->who.configuration(), x.name))
      x.traits.labels = std::move(*labels);
    if (auto no = machine_->who.refuses(asked, self_->now()))
      return to_caf(*no);
    auto promise = self_->make_response_promise<registered>();
    tell_members(asked, [this, promise, x = std::move(x), who, http_port](const caf::error& why) mutable {
      if (why) {
        promise.deliver(why);
        return;
      }
      members_->welcome(x.name, who, x.traits);
      auto twin = members_->twin_of(x.name);
      auto epoch = ++epoch_;
      self_->send(twin, agent_registered{epoch, x.slots, std::move(x.inventory), std::move(x.traits)}, who);
      promise.deliver(registered{epoch, twin, peers_.journal, setup_.lease.freeze.count(), http_port,
                                 setup_.fence_token ? setup_.fence_token(x.name) : std::string(),
                                 setup_.lease.heartbeat.count(),
                                 std::max<std::int64_t>(1, setup_.lease.adopt.count())});
    });
    return promise;
  }

  // ---- commands

  using commands_here = commands::join<commands::cluster_commands, commands::task_calls>;

  caf::result<command_result> on(const caller&, const commands::experiment_validate& x) {
    auto checked = accepted(x);
    return checked ? answered() : refused(checked.error());
  }
  caf::result<command_result> on(const caller&, const commands::experiment_activate& x) {
    return tell_experiment(x.id, experiment_activate{});
  }
  caf::result<command_result> on(const caller&, const commands::experiment_pause& x) {
    return tell_experiment(x.id, experiment_pause{});
  }
  caf::result<command_result> on(const caller& by, const commands::experiment_continue& x) {
    auto row = peers_.reads->experiment(x.id);
    if (!row)
      return refused({errc::not_found, "experiment '" + to_string(x.id) + "' not found"});
    if (!terminal(row->state) || experiments_.contains(x.id))
      return refused({errc::conflict, "experiment in non terminal state '" +
                                        std::string(troupe::name(row->state)) + "', try again later"});
    const auto trials = peers_.reads->trials(x.id);
    if (!trials)
      return refused(trials.error());
    const auto workspace = machine_->where.workspace_id_of(row->project);
    auto wanted = to_continue(*row, *trials, x.config,
                              {setup_.checkpoint_dir, machine_->who.configuration(),
                               machine_->rules.constraints_of(workspace),
                               [&](const std::string& pool) { return pool_takes(pool, workspace); },
                               [this](const std::string& pool) { return machine_->who.slots_in(pool); }},
                              self_->now());
    if (!wanted)
      return refused(wanted.error());
    wanted->by = by.user;
    auto facts = machine_->ids.go_on(std::move(*wanted), row->continued);
    if (facts.empty())
      return refused({errc::conflict, "experiment " + to_string(x.id) + " is being continued or deleted"});
    auto promise = self_->make_response_promise<command_result>();
    take(std::move(facts), {}, [this, promise, id = x.id](const caf::error& why) mutable {
      if (why) {
        promise.deliver(refused(from_caf(why)));
        return;
      }
      if (auto now = peers_.reads->experiment(id)) // as after a restart, which would go on here, too
        recover(*now);
      deletions_->delete_doomed(); // its project may have been deleted meanwhile
      promise.deliver(answered());
    });
    return promise;
  }
  caf::result<command_result> on(const caller& by, const commands::experiment_cancel& x) {
    return tell_experiment(x.id, experiment_stop{false, "canceled by " + by.user});
  }
  caf::result<command_result> on(const caller& by, const commands::experiment_kill& x) {
    return tell_experiment(x.id, experiment_stop{true, "killed by " + by.user});
  }
  template <class Question>
  requires(commands::contains<cluster_members::questions, Question>) caf::result<command_result> on(
    const caller&, const Question&) {
    return members_->describe(Question{}, experiments_.size());
  }
  caf::result<command_result> on(const caller& by, const commands::agent_drain& x) {
    return change_members(
      agent_ordered{x.agent, x.slot ? static_cast<int>(*x.slot) : -1, x.on, by.user, false, x.ends});
  }
  caf::result<command_result> on(const caller& by, const commands::experiment_set& x) {
    if (!x.priority && !x.weight && !x.max_slots && !x.pool)
      return refused({errc::invalid, "nothing is set: name priority, weight, max_slots or pool"});
    const experiment_placed placed{x.id, x.pool.value_or("")};
    if (x.pool)
      if (auto no = who().refuses(placed, self_->now()))
        return refused(*no);
    const auto it = experiments_.find(x.id);
    if (it == experiments_.end())
      return has_ended(x.id);
    if (auto fine = machine_->rules.check_change(machine_->where.workspace_id_of(x.id), x); !fine)
      return refused(fine.error());
    experiment_set order{by.user, static_cast<int>(x.priority.value_or(0)), x.weight.value_or(-1),
                         static_cast<int>(x.max_slots.value_or(-2)), placed.pool};
    auto promise = self_->make_response_promise<command_result>();
    self_->request(it->second, journal_timeout, std::move(order))
      .then(
        [this, promise, placed](const committed&) mutable {
          if (auto to = experiments_.find(placed.id); !placed.pool.empty() && to != experiments_.end()) {
            tell_members(placed);
            if (auto pool = members_->pools().find(placed.pool); pool != members_->pools().end())
              self_->send(to->second, pool_chosen{placed.pool, pool->second});
          }
          promise.deliver(answered());
        },
        [this, promise, placed](const caf::error& why) mutable {
          promise.deliver(of_gone(placed.id, why, [&] { return has_ended(placed.id); }));
        });
    return promise;
  }
  caf::result<command_result> on(const caller&, commands::pool_details x) {
    if (x.name.empty())
      x.name = config::default_pool(who().configuration());
    if (!members_->pools().contains(x.name))
      return refused({errc::not_found, "pool '" + x.name + "' not found"});
    return members_->describe(x);
  }

  // ---- explanations

  caf::result<command_result> on(const caller&, const commands::trial_explain& x) {
    auto row = peers_.reads->trial(x.id);
    if (!row)
      return refused({errc::not_found, "trial " + to_string(x.id) + " not found"});
    const auto run = row->runs.empty() ? run_id{} : row->runs.back().run;
    return explain(std::move(*row), run);
  }
  caf::result<command_result> on(const caller&, const commands::allocation_explain& x) {
    const auto id = parse_allocation(x.id);
    if (!id)
      return refused({errc::invalid, "'" + x.id + "' is not an allocation\nhint: trial and run, as 12.3"});
    auto row = id.task.kind() == task_kind::trial ? peers_.reads->trial(id.trial())
                                                  : result<trial_row>(error{errc::not_found, ""});
    if (!row || std::none_of(row->runs.begin(), row->runs.end(),
                             [&](const run_row& one) { return one.run == id.run; }))
      return refused({errc::not_found, "allocation " + x.id + " not found"});
    return explain(std::move(*row), id.run);
  }
  caf::result<command_result> on(const caller&, const commands::experiment_explain& x) {
    auto row = peers_.reads->experiment(x.id);
    auto trials = row ? peers_.reads->trials(x.id) : result<std::vector<trial_row>>(row.error());
    if (!trials)
      return refused(trials.error());
    constexpr std::size_t most = 20;
    std::map<trial_place, std::size_t> counts;
    std::vector<explained_run> waiting;
    for (const auto& trial : *trials) {
      const auto place = place_of(trial, *row);
      ++counts[place];
      if (place == trial_place::waiting && waiting.size() < most)
        waiting.push_back(explained(trial, *row, trial.runs.back().run));
    }
    value frame{{"experiment", x.id.value},
                {"pool", pool_name_of(*row)},
                {"state", troupe::name(row->state)},
                {"trials",
                 {{"running", counts[trial_place::running]},
                  {"waiting", counts[trial_place::waiting]},
                  {"paused", counts[trial_place::paused]}}}};
    auto promise = self_->make_response_promise<command_result>();
    explain_->explain_all(std::move(waiting), std::move(frame), [promise](result<value> got) mutable {
      promise.deliver(command_result{std::move(got)});
    });
    return promise;
  }

  caf::result<command_result> explain(trial_row row, run_id run) {
    auto of = peers_.reads->experiment(row.experiment);
    if (!of)
      return refused(of.error());
    auto promise = self_->make_response_promise<command_result>();
    explain_->explain(explained(row, *of, run), [promise](result<value> got) mutable {
      promise.deliver(command_result{std::move(got)});
    });
    return promise;
  }
  explained_run explained(const trial_row& trial, const experiment_row& of, run_id run) const {
    explained_run out{trial, of, run, pool_name_of(of), 42};
    for (const auto& one : trial.runs)
      if (one.run == run && !one.pool.empty())
        out.pool = one.pool;
    const auto settings = config::pool_settings(machine_->who.configuration(), out.pool);
    if (const auto given = settings.value("default_priority", value()); given.is_number_integer())
      out.default_priority = given.get<int>();
    return out;
  }
  bool pool_takes(const std::string& pool, workspace_id to) const {
    return may_use(machine_->rules, machine_->where, machine_->who.configuration(), pool, to);
  }

  /// Where its next run asks, or, of one that has ended, would ask.
  std::string pool_name_of(const experiment_row& row) const {
    if (auto pool = machine_->who.pool_of(row.id); !pool.empty())
      return pool;
    const auto& configuration = machine_->who.configuration();
    if (!row.resources.empty() && config::has_pool(configuration, row.resources.front().pool))
      return row.resources.front().pool;
    auto named = config::pool_of_experiment(configuration, row.config);
    return named ? *named : config::default_pool(configuration);
  }

  caf::result<command_result> on(const caller& by, const commands::agent_remove& x) {
    return change_members(agent_removed{x.agent, by.user});
  }
  caf::result<command_result> on(const caller&, const commands::fence& x) { return members_->fence(x); }
  caf::result<command_result> on(const caller&, commands::agent_slots x) {
    return members_->hear_slots(std::move(x));
  }
  template <class Change>
  requires(commands::contains<commands::catalogue_commands, Change>) caf::result<command_result> on(
    const caller& by, const Change& x) {
    constexpr bool configures = std::is_same_v<Change, commands::configuration_record>;
    if constexpr (configures)
      if (auto no = who().refuses(configured{x.configuration}, self_->now()))
        return refused(*no);
    auto decided = change(machine_->records, x, by.user, self_->now());
    if (!decided)
      return refused(decided.error());
    if constexpr (configures)
      decided->answer["warnings"] = unknown_workspaces(x.configuration, machine_->where);
    std::vector<cluster_fact> facts;
    for (const auto& one : decided->facts)
      std::visit([&](const auto& f) { facts.emplace_back(f); }, one);
    auto promise = self_->make_response_promise<command_result>();
    take(std::move(facts), {}, [this, promise, decided = *decided](const caf::error& why) mutable {
      if (why) {
        promise.deliver(refused(from_caf(why)));
        return;
      }
      for (const auto& one : decided.facts)
        if (setup_.recorded)
          setup_.recorded(one);
      if (configures)
        tell_members(configured{machine_->records.configuration().configuration});
      promise.deliver(answered(std::move(decided.answer)));
    });
    return promise;
  }
  template <class Change>
  requires(commands::contains<commands::place_commands, Change> ||
           commands::contains<commands::registry_commands, Change>)
    caf::result<command_result> on(const caller& by, const Change& x) {
    bool ended = false;
    if constexpr (requires { x.compute_pool; })
      for (const auto& pool : {x.compute_pool, x.aux_pool})
        if (pool && !pool->empty() && !members_->pools().contains(*pool))
          return refused({errc::invalid, "resource pool '" + *pool + "' not found"});
    if constexpr (std::is_same_v<Change, commands::experiment_describe>)
      ended = has_stopped(x.id);
    auto decided = decide(machine_->where, machine_->books, x, ended, by.user, self_->now());
    if (!decided)
      return refused(decided.error());
    auto promise = self_->make_response_promise<command_result>();
    workspace_id removed;
    experiment_id to_sweep; // the number of its checkpoints that are kept has changed
    if constexpr (std::is_same_v<Change, commands::workspace_remove>)
      removed = x.id;
    if constexpr (std::is_same_v<Change, commands::experiment_describe>)
      if (ended && (x.save_experiment_best || x.save_trial_best || x.save_trial_latest))
        to_sweep = x.id;
    take(
      std::move(decided->facts), {},
      [this, promise, removed, to_sweep, answer = std::move(decided->answer)](const caf::error& why) mutable {
        promise.deliver(why ? refused(from_caf(why)) : answered(std::move(answer)));
        if (to_sweep && !why)
          deletions_->sweep(to_sweep, true);
        if constexpr (std::is_same_v<Change, commands::workspace_remove>)
          tasks_->kill_in(removed, "killed: its workspace is deleted");
        if constexpr (std::is_same_v<Change, commands::workspace_remove> ||
                      std::is_same_v<Change, commands::project_remove>)
          deletions_->delete_doomed();
      });
    return promise;
  }
  template <class Change>
  requires(commands::contains<commands::people_commands, Change> ||
           commands::contains<commands::rule_commands, Change>)
    caf::result<command_result> on(const caller& by, const Change& x) {
    const people::world known{[this](user_id id) { return machine_->records.users().contains(id); },
                              [this](workspace_id id) { return machine_->where.knows(id); },
                              [this](workspace_id id) { return machine_->where.takes(id); }};
    auto decided = decide(machine_->folk, machine_->rules, known, x, by.user, self_->now());
    if (!decided)
      return refused(decided.error());
    auto promise = self_->make_response_promise<command_result>();
    take(std::move(decided->facts), {},
         [this, promise, answer = std::move(decided->answer)](const caf::error& why) mutable {
           if constexpr (std::is_same_v<Change, commands::webhook_create> ||
                         std::is_same_v<Change, commands::webhook_remove>)
             webhooks_->watch_triggers();
           promise.deliver(why ? refused(from_caf(why)) : answered(std::move(answer)));
         });
    return promise;
  }
  template <class Removal>
  requires(commands::contains<cluster_deletions::commands_here, Removal>) caf::result<command_result> on(
    const caller& by, const Removal& x) {
    return deletions_->on(by.user, x);
  }
  template <class OfWebhooks>
  requires(commands::contains<commands::webhook_calls, OfWebhooks>) caf::result<command_result> on(
    const caller&, const OfWebhooks& x) {
    return webhooks_->on(x);
  }
  caf::result<command_result> on(const caller& by, const commands::checkpoint_describe& x) {
    auto saved = peers_.reads->checkpoint(x.uuid);
    auto row = saved ? peers_.reads->trial(saved->trial) : result<trial_row>(saved.error());
    if (!row)
      return refused(row.error());
    auto promise = self_->make_response_promise<command_result>();
    auto call = x;
    call.by = by.user;
    change_trial(*row, task_call_of({row->id, {}}, call),
                 checkpoint_described{self_->now(), by.user, x.uuid, x.metadata},
                 [promise](command_result& done) mutable { promise.deliver(std::move(done)); });
    return promise;
  }
  caf::result<command_result> on(const caller&, const commands::node_shutdown&) {
    if (setup_.shut_down)
      setup_.shut_down();
    return answered();
  }

  /// Answered once it is durable.
  caf::result<command_result> change_members(const members_event& ev) {
    if (auto no = who().refuses(ev, self_->now()))
      return refused(*no);
    auto promise = self_->make_response_promise<command_result>();
    tell_members(ev, [promise](const caf::error& why) mutable {
      promise.deliver(why ? refused(from_caf(why)) : answered());
    });
    return promise;
  }

  // ---- from tasks, and about trials

  /// What trials and allocations take is handed to the experiment, which hands it on.
  template <class OfTask>
  requires(commands::contains<commands::task_calls, OfTask>) caf::result<command_result> on(const caller& by,
                                                                                            OfTask x) {
    const auto id = parse_allocation(by.allocation);
    if constexpr (std::is_same_v<OfTask, commands::allocation_rendezvous>) {
      auto& hosts = x.hosts.emplace();
      for (const auto& [agent, known] : who().agents())
        hosts[agent] = known.host;
    }
    if (id.task && !id.task.is_trial())
      return tasks_->hand_on(id, task_call_of(id, std::move(x)));
    auto it = experiments_.find(x.experiment);
    if constexpr (commands::contains<commands::trial_calls, OfTask>)
      if (it == experiments_.end())
        if (auto row = peers_.reads->experiment(x.experiment); row && row->unmanaged)
          return unmanaged_->on(id, std::move(x));
    if (it == experiments_.end())
      return refused({errc::conflict, "allocation " + to_string(id) + " is over"});
    return self_->delegate(it->second, task_call_of(id, std::move(x)));
  }

  template <class OfUnmanaged>
  requires(commands::contains<commands::unmanaged_commands, OfUnmanaged>) caf::result<command_result> on(
    const caller&, const OfUnmanaged& x) {
    return unmanaged_->on(x);
  }

  template <class OfWork>
  requires(commands::contains<commands::work_commands, OfWork>) caf::result<command_result> on(
    const caller& by, OfWork x) {
    return tasks_->on(by.user, std::move(x));
  }

  caf::result<command_result> on(const caller&, const commands::trial_metadata& x) {
    auto row = peers_.reads->trial(x.id);
    if (!row)
      return refused(row.error());
    return answered({{"metadata", row->metadata.is_object() ? row->metadata : value::object()}});
  }

  caf::result<command_result> on(const caller&, const commands::trial_set_metadata& x) {
    auto row = peers_.reads->trial(x.id);
    if (!row)
      return refused(row.error());
    auto promise = self_->make_response_promise<command_result>();
    change_trial(*row, task_call_of({x.id, {}}, x), trial_metadata_set{self_->now(), x.metadata},
                 [promise, given = x.metadata](command_result& done) mutable {
                   promise.deliver(done.got ? answered({{"metadata", given}}) : std::move(done));
                 });
    return promise;
  }

  caf::result<command_result> on(const caller&, const commands::checkpoint_patch& x) {
    struct pending {
      std::size_t left = 1;
      command_result worst = answered();
    };
    auto all = std::make_shared<pending>();
    auto promise = self_->make_response_promise<command_result>();
    auto done = [all, promise](command_result& one) mutable {
      if (!one.got && all->worst.got)
        all->worst = one;
      if (--all->left == 0)
        promise.deliver(all->worst);
    };
    for (const auto& one : x.checkpoints) {
      auto saved = peers_.reads->checkpoint(one.uuid);
      auto row = saved ? peers_.reads->trial(saved->trial) : result<trial_row>(saved.error());
      if (!row)
        return refused(row.error());
      if (!one.files)
        continue;
      ++all->left;
      change_trial(*row, task_call_of({row->id, {}}, commands::checkpoint_files{one.uuid, *one.files}),
                   checkpoint_changed{self_->now(), one.uuid, *one.files, {}}, done);
    }
    auto last = answered();
    done(last);
    return promise;
  }

  using change_done = cluster_deletions::change_done;

  /// A trial that lives notes `fact` itself, asked by `call`; the stream of one that has ended is the
  /// cluster's.
  void change_trial(const trial_row& row, task_call call, trial_fact fact, change_done done) {
    auto it = experiments_.find(row.experiment);
    if (it == experiments_.end() || terminal(row.state))
      return append_to(row.id, std::move(fact), std::move(done), 5);
    self_->request(it->second, journal_timeout, std::move(call))
      .then(
        [this, id = row.id, fact, done](command_result& answer) {
          if (answer.got || answer.got.error().code != errc::not_found)
            return done(answer);
          append_to(id, fact, done, 5);
        },
        [this, id = row.id, fact, done](const caf::error& why) {
          if (auto now = peers_.reads->trial(id); now && terminal(now->state))
            return append_to(id, fact, done, 5); // it ended while the message travelled
          auto no = refused(from_caf(why));
          done(no);
        });
  }

  void append_to(trial_id id, trial_fact fact, change_done done, int tries) {
    auto next = peers_.reads->next_of(entity(id));
    self_
      ->request(peers_.journal, journal_timeout,
                append_facts{entity(id), next ? *next : 0, {encode_as(fact)}})
      .then(
        [done](const committed&) {
          auto yes = answered();
          done(yes);
        },
        [this, id, fact, done, tries](const caf::error& why) {
          auto fault = from_caf(why);
          if (fault.code == errc::gap && tries > 0) // another change took the number
            return append_to(id, fact, done, tries - 1);
          auto no = refused(fault);
          done(no);
        });
  }

  // ---- creation

  struct placed_config {
    accepted_config config;
    project_id project;
  };
  /// Of a creation, or what only checks one.
  template <class Submission>
  result<placed_config> accepted(const Submission& x) const {
    config_layers below;
    if constexpr (requires { x.unmanaged; })
      below.unmanaged = x.unmanaged;
    if (!x.template_name.empty()) {
      const auto* known = machine_->books.find_template(x.template_name);
      if (!known)
        return error{errc::not_found, "template '" + x.template_name + "' not found"};
      below.template_config = known->config;
    }
    const auto accept = [&] {
      return accept_config(x.config, x.config_name, setup_.checkpoint_dir, machine_->who.configuration(),
                           below);
    };
    auto checked = accept();
    if (!checked)
      return checked.error();
    const auto slots_in = [this](const std::string& pool) { return machine_->who.slots_in(pool); };
    if (auto no = too_large(checked->settings, machine_->who.configuration(), slots_in);
        no && !below.unmanaged)
      return *no;
    auto project = machine_->where.place_of(x.project, checked->settings);
    if (!project)
      return project.error();
    below.workspace_checkpoint_storage = machine_->where.storage_of(*project);
    const auto workspace = machine_->where.workspace_id_of(*project);
    below.invariant = machine_->rules.invariant_of(workspace);
    const auto& place = machine_->where.workspaces().at(workspace);
    below.compute_pool = place.compute_pool;
    below.aux_pool = place.aux_pool;
    if (!below.workspace_checkpoint_storage.is_null() || !below.invariant.is_null() ||
        !(below.compute_pool + below.aux_pool).empty())
      checked = accept();
    if (!checked)
      return checked.error();
    auto& settings = checked->settings;
    if constexpr (requires { x.parent.value; })
      if (auto parent = x.parent ? peers_.reads->experiment(x.parent) : result<experiment_row>(error{});
          parent)
        config::restore_secrets(settings, parent->config);
    if (auto fine = check_constraints(settings, machine_->rules.constraints_of(workspace)); !fine)
      return fine.error();
    if (auto pool = config::pool_of_experiment(machine_->who.configuration(), settings);
        pool && !pool_takes(*pool, workspace))
      return error{errc::invalid,
                   "resource pool '" + *pool + "' is not available in workspace '" + place.name + "'"};
    if (auto fine = resolve_source(settings); !fine)
      return fine.error();
    return placed_config{std::move(*checked), *project};
  }

  /// The checkpoint that a warm start names becomes certain: that of a trial is the newest it has now.
  result<void> resolve_source(value& settings) const {
    auto searcher = settings.find("searcher");
    if (searcher == settings.end() || !searcher->is_object())
      return {};
    auto trial = searcher->value("source_trial_id", value()),
         uuid = searcher->value("source_checkpoint_uuid", value());
    if (trial.is_number_integer()) {
      const trial_id id{static_cast<std::uint64_t>(trial.get<std::int64_t>())};
      auto row = peers_.reads->trial(id);
      if (!row)
        return error{errc::invalid, "searcher.source_trial_id: trial " + to_string(id) + " not found"};
      auto saved = peers_.reads->checkpoints(id);
      if (!saved)
        return saved.error();
      std::erase_if(*saved, [](const auto& one) { return one.state != checkpoint_state::completed; });
      if (saved->empty())
        return error{errc::invalid,
                     "searcher.source_trial_id: trial " + to_string(id) + " has no checkpoint"};
      const auto newest = std::max_element(saved->begin(), saved->end(), [](const auto& a, const auto& b) {
        return a.saved.steps < b.saved.steps;
      });
      (*searcher)["source_checkpoint_uuid"] = newest->saved.uuid;
      (*searcher)["source_trial_id"] = nullptr; // the two exclude each other
    } else if (uuid.is_string()) {
      auto row = peers_.reads->checkpoint(uuid.get<std::string>());
      if (!row || row->state != checkpoint_state::completed)
        return error{errc::invalid, "searcher.source_checkpoint_uuid: checkpoint '" +
                                      uuid.get<std::string>() + "' " + (row ? "is deleted" : "not found")};
    }
    return {};
  }

  caf::result<command_result> on(const caller& by, commands::experiment_create x) {
    if (auto no = unmanaged_->refuses(x))
      return refused(*no);
    auto checked = accepted(x);
    if (!checked)
      return refused(checked.error());
    auto& [settings, source] = checked->config;
    if (!settings.contains("reproducibility") || !settings["reproducibility"].is_object())
      settings["reproducibility"] = value::object();
    auto& seed = settings["reproducibility"]["experiment_seed"];
    if (!seed.is_number())
      seed = self_->now().time_since_epoch().count() / 1'000'000 & 0x7fffffff;
    experiment_created wanted{self_->now(), {},    settings, x.name,           by.user,     x.context_blob,
                              source,       x.key, x.parent, checked->project, x.unmanaged, x.external_id};
    if (!x.external_id.empty())
      wanted.key = external_key(x.external_id);
    if (wanted.name.empty())
      wanted.name =
        settings.value("name", value()).is_string() ? settings["name"].get<std::string>() : "experiment";
    auto promise = self_->make_response_promise<command_result>();
    if (x.context.held.empty()) {
      record(std::move(wanted), x.activate, promise);
      return promise;
    }
    self_->request(peers_.journal, journal_timeout, store_blob{std::move(x.context.held)})
      .then(
        [this, wanted, activate = x.activate, promise](const blob_stored& blob) mutable {
          wanted.context = blob.name;
          record(std::move(wanted), activate, promise);
        },
        [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }

  void record(experiment_created wanted, bool activate, command_promise promise) {
    auto made = machine_->create(wanted);
    if (made.facts.empty()) { // the same key again: the same answer
      promise.deliver(answered({{"id", made.id.value}}));
      return;
    }
    const auto submitted = std::get<experiment_created>(made.facts.front()).at;
    take(std::move(made.facts), {},
         [this, promise, id = made.id, activate, submitted,
          wanted = std::move(wanted)](const caf::error& why) mutable {
           if (why) {
             promise.deliver(refused(from_caf(why)));
             return;
           }
           if (wanted.unmanaged) { // nothing of it runs here
             promise.deliver(answered({{"id", id.value}}));
             return;
           }
           auto settings = settings_of(id, wanted.config, wanted.context, wanted.owner, submitted);
           if (!settings) { // accept_config has tried it
             set_aside(id, settings.error().what);
             promise.deliver(refused(settings.error()));
             return;
           }
           start(std::move(*settings), {}, !activate);
           if (activate) {
             promise.deliver(answered({{"id", id.value}}));
             return;
           }
           self_
             ->request(experiments_[id], journal_timeout,
                       experiment_pause{}) // answers once the pause is durable
             .then(
               [promise, id](const committed&) mutable {
                 promise.deliver(answered({{"id", id.value}}));
               },
               [promise](const caf::error& fault) mutable { promise.deliver(refused(from_caf(fault))); });
         });
  }

  template <class Event>
  caf::result<command_result> tell_experiment(experiment_id id, Event ev) {
    auto of_ended = [this, id] {
      // Where it was to stop, what was asked for holds.
      return std::is_same_v<Event, experiment_stop> && peers_.reads->experiment(id) ? answered()
                                                                                    : has_ended(id);
    };
    if (auto it = experiments_.find(id); it != experiments_.end())
      return forward(id, it->second, std::move(ev), of_ended);
    if (auto row = peers_.reads->experiment(id); row && row->unmanaged && !terminal(row->state)) {
      if constexpr (std::is_same_v<Event, experiment_stop>)
        return unmanaged_->stop(*row, ev.why);
      return refused({errc::conflict, "experiment " + to_string(id) +
                                        " is unmanaged: only its own processes begin, pause and end"});
    }
    return of_ended();
  }

  /// Whether nothing of it runs any more.
  bool has_stopped(experiment_id id) const {
    if (experiments_.contains(id))
      return false;
    const auto row = peers_.reads->experiment(id);
    return !row || !row->unmanaged || row->state != experiment_state::active;
  }

  command_result has_ended(experiment_id id) const {
    auto row = peers_.reads->experiment(id);
    if (!row)
      return refused({errc::not_found, "experiment " + to_string(id) + " not found"});
    return refused(
      {errc::conflict, "experiment " + to_string(id) + " is " + std::string(troupe::name(row->state))});
  }

  caf::result<command_result> on(const caller&, const commands::trial_kill& x) {
    auto row = peers_.reads->trial(x.id);
    if (!row)
      return refused({errc::not_found, "trial " + to_string(x.id) + " not found"});
    auto it = experiments_.find(row->experiment);
    if (terminal(row->state))
      return answered();
    if (auto of = peers_.reads->experiment(row->experiment); of && of->unmanaged)
      return unmanaged_->stop(*row, "killed");
    if (it == experiments_.end())
      return answered();
    return forward(row->experiment, it->second, kill_trial{x.id}, [] { return answered(); });
  }

  // ---- searches that a process outside drives

  caf::result<command_result> on(const caller&, commands::search_order x) {
    const auto id = x.id;
    auto it = experiments_.find(id);
    if (it == experiments_.end())
      return has_ended(id);
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

  caf::result<command_result> on(const caller&, const commands::search_wait& x) {
    const auto id = x.id;
    auto it = experiments_.find(id);
    if (it == experiments_.end())
      return answered(); // it hears no more
    await_events wish{x.after, x.timeout_ms};
    auto promise = self_->make_response_promise<command_result>();
    self_->request(it->second, std::chrono::milliseconds(wish.timeout_ms) + journal_timeout, wish)
      .then([promise](const events_heard&) mutable { promise.deliver(answered()); },
            [this, id, promise](const caf::error& why) mutable {
              promise.deliver(of_gone(id, why, [] { return answered(); }));
            });
    return promise;
  }

  /// `of_ended` answers where the experiment ended while the message travelled.
  template <class Message, class OfEnded>
  caf::result<command_result> forward(experiment_id id, const experiment_actor& to, Message message,
                                      OfEnded of_ended) {
    auto promise = self_->make_response_promise<command_result>();
    self_->request(to, journal_timeout, std::move(message))
      .then([promise](const committed&) mutable { promise.deliver(answered()); },
            [this, id, promise, of_ended](const caf::error& why) mutable {
              promise.deliver(of_gone(id, why, of_ended));
            });
    return promise;
  }

  /// What an experiment's actor does not answer.
  template <class OfEnded>
  command_result of_gone(experiment_id id, const caf::error& why, const OfEnded& of_ended) const {
    if (why != caf::sec::request_receiver_down)
      return refused(from_caf(why));
    if (auto row = peers_.reads->experiment(id); row && !terminal(row->state))
      return refused(
        {errc::timeout, "experiment " + to_string(id) + " is being started again\nhint: ask once more"});
    return of_ended();
  }

  cluster_setup setup_;
  cluster_peers peers_;
  std::optional<cluster_machines> machine_;
  std::optional<cluster_members> members_;
  std::optional<cluster_explain> explain_;
  std::optional<cluster_tasks> tasks_;
  std::optional<cluster_unmanaged> unmanaged_;
  std::optional<cluster_webhooks> webhooks_;
  std::optional<cluster_deletions> deletions_;
  std::uint64_t epoch_ = 0; ///< grows over restarts: it begins at the wall time of the start
  std::map<experiment_id, experiment_actor> experiments_;
  std::map<caf::actor_addr, experiment_id> by_address_;
  child_restarts<std::string> restarts_;
  bool closing_ = false;
};

} // namespace

cluster_actor spawn_cluster(caf::actor_system& sys, cluster_setup setup, cluster_peers peers) {
  return spawn_with_own_thread<shell<cluster_shell_state, cluster_actor, cluster_setup, cluster_peers>>(
    sys, std::move(setup), std::move(peers));
}

} // namespace troupe
