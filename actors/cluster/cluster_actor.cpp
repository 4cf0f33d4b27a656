#include "actors/cluster/cluster_actor.hpp"

#include "actors/cluster/cluster_creation_part.hpp"
#include "actors/cluster/cluster_deletions_part.hpp"
#include "actors/cluster/cluster_experiments_part.hpp"
#include "actors/cluster/cluster_explain_part.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/cluster/cluster_members_part.hpp"
#include "actors/cluster/cluster_records_part.hpp"
#include "actors/cluster/cluster_tasks_part.hpp"
#include "actors/cluster/cluster_trials_part.hpp"
#include "actors/cluster/cluster_unmanaged_part.hpp"
#include "actors/cluster/cluster_webhooks_part.hpp"
#include "actors/provider/provisioner_actor.hpp"
#include "actors/same_secret.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/config/cluster_config.hpp"

#include <algorithm>

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<cluster_actor>;
using open_tasks = std::map<std::string, expect_tasks>; ///< open tasks by agent

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
        return hand_on(x, *experiments_, *creation_, *trials_, *explain_, *records_, *tasks_, *deletions_,
                       *members_);
      },
      [this](const reserve_trials& x) { return trials_reserved{machine_->ids.reserve_trials(x.count)}; },
      [this](const experiment_finished& x) {
        experiments_->forget(x.id);
        webhooks_->tell_receivers(x.id, [this, id = x.id] { deletions_->sweep(id, false); });
        deletions_->delete_doomed();
      },
      [this](route_validation& x) {
        if (const auto live = experiments_->actor_of(x.experiment))
          self_->send(live, std::move(x.what));
        else if (auto row = peers_.reads->experiment(x.experiment); row && row->unmanaged)
          unmanaged_->take(x);
      },
      [this](const time_passed&) {
        timer_fired();
        webhooks_->send_due();
        unmanaged_->time_passed();
        tasks_->time_passed();
        members_->time_passed();
      },
      [this](const task_finished& x) { tasks_->finished(x.id); },
      [this](const sweep_finished& x) { take(machine_->ids.swept(x.id, self_->now()), {}); },
      [this](const lines_matched& x) { return webhooks_->take_matches(x); },
      [this](const webhooks_told& x) {
        webhooks_->heard_of_deliveries(x);
        arm(deadline()); // a failed delivery is tried again
      },
      [this](node_joined& x) {
        if (setup_.on_node)
          setup_.on_node(std::move(x));
      },
    };
  }

private:
  cluster_machines& machine() { return *machine_; }
  members& who() { return machine_->who; }
  std::optional<time_point> deadline() const {
    std::optional<time_point> next;
    for (const auto& at :
         {machine_->post.deadline(), unmanaged_->deadline(), tasks_->deadline(), members_->deadline()})
      if (at)
        next = next ? std::min(*next, *at) : at;
    return next;
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
    const auto read = peers_.reads->experiments();
    const std::vector<experiment_row> none;
    const auto& rows = read ? *read : none;
    const auto stored = replay_facts(rows);
    epoch_ = static_cast<std::uint64_t>(self_->now().time_since_epoch().count());
    make_parts();
    std::map<std::string, std::string> pools;
    auto open = tasks_in_journal(&pools);
    machine_->who.stay_in(std::move(pools));
    begin(cluster_entity, stored, peers_.journal, who().resume());
    for (auto& [agent, tasks] : open)
      if (auto twin = members_->twin_of(agent))
        self_->send(twin, std::move(tasks));
    for (const auto& [agent, user] : std::exchange(setup_.drained_before, {}))
      tell_members(agent_ordered{agent, -1, true, user, true});
    for (const auto& row : rows)
      if (row.unmanaged)
        unmanaged_->recover(row);
      else if (!terminal(row.state))
        experiments_->recover(row);
    tasks_->recover();
    members_->recovered();
    webhooks_->watch_triggers();
    deletions_->begin();
    webhooks_->send_due();
  }

  /// Makes the machines from their facts; returns the number of these facts.
  std::size_t replay_facts(const std::vector<experiment_row>& rows) {
    id_counters ids;
    for (const auto& row : rows)
      ids.newest_experiment = std::max(ids.newest_experiment, row.id);
    ids.newest_trial = peers_.reads->newest_trial();
    const auto facts = peers_.reads->facts_of(cluster_entity);
    const auto stored = facts ? facts->size() : 0;
    auto& lease = setup_.lease;
    if (stored == 0) // the cluster is new, so no agent holds a lease of an earlier life
      lease.first_give_away = lease.give_away;
    machine_.emplace(cluster_machines{
      cluster(ids),
      members({lease.give_away, self_->now(), std::move(setup_.configuration), lease.first_give_away})});
    machine_->post = deliveries{setup_.base_url};
    for (std::size_t n = 0; n < stored; ++n)
      if (auto fact = decode_as<cluster_fact>((*facts)[n]))
        machine_->replay(*fact);
    lease.first_give_away = machine_->who.first_give_away();
    return stored;
  }

  /// Makes the parts of this actor and gives each what it needs of the others. They do nothing yet.
  void make_parts() {
    members_.emplace(
      self_, setup_, machine_->who,
      cluster_members::needs{
        [this](const std::string& agent) { return tasks_that_live_on(agent); },
        [this] { return experiments_->all(); }, [this] { return tasks_->all(); },
        [this](const std::string& pool) { return instances_of(pool); }, peers_.journal,
        [this](const caf::error& why) { leave(why); },
        [this](const members_event& ev, done_callback done) { tell_members(ev, std::move(done)); },
        [this] { return experiments_->size(); }, [this] { arm(deadline()); }});
    const auto tell = [this](const members_event& ev) { tell_members(ev); };
    tasks_.emplace(self_, setup_, peers_, *machine_,
                   cluster_tasks::needs{[this] { return members_->pools(); }, tell,
                                        [this] { arm(deadline()); }, *members_});
    const auto live = [this](experiment_id id) { return experiments_->actor_of(id); };
    const auto take_facts = [this](std::vector<cluster_fact> facts, done_callback done) {
      take(std::move(facts), {}, std::move(done));
    };
    webhooks_.emplace(
      self_, setup_, peers_, *machine_,
      cluster_webhooks::needs{
        take_facts, live, [this](task_id id) { return tasks_->actor_of(id); },
        [this](const line_matched& x, experiment_id of, cluster_webhooks::done_callback done) {
          unmanaged_->take(x, of, std::move(done));
        },
        [this](const experiment_row& row) { return pool_name_of(who(), row); }});
    deletions_.emplace(
      self_, setup_, peers_, *machine_,
      cluster_deletions::needs{take_facts, live,
                               [this](const std::string& uuid, cluster_trials::files_left files) {
                                 trials_->change_files(uuid, std::move(files));
                               },
                               [this](experiment_id id, std::function<void()> then) {
                                 webhooks_->tell_receivers(id, std::move(then));
                               }});
    unmanaged_.emplace(
      self_, peers_, *machine_,
      cluster_unmanaged::needs{[this](experiment_id id) { deletions_->tell_of_unmanaged(id); },
                               [this](const experiment_row& row) {
                                 return experiments_->settings_of(row.id, row.config, row.context, row.owner,
                                                                  row.created);
                               },
                               [this] { arm(deadline()); }, setup_.lines});
    explain_.emplace(self_, peers_.reads, machine_->who,
                     cluster_explain::needs{[this](const std::string& name) {
                                              const auto it = members_->pools().find(name);
                                              return it == members_->pools().end() ? pool_actor{}
                                                                                   : it->second;
                                            },
                                            live, [this](task_id id) { return tasks_->actor_of(id); }});
    trials_.emplace(self_, peers_, *machine_, cluster_trials::needs{live});
    experiments_.emplace(
      self_, setup_, peers_, *machine_,
      cluster_experiments::needs{take_facts, tell, *members_, *tasks_, *unmanaged_, *webhooks_, *deletions_});
    creation_.emplace(self_, setup_, peers_, *machine_,
                      cluster_creation::needs{take_facts, *experiments_, *members_, *unmanaged_});
    records_.emplace(self_, setup_, *machine_,
                     cluster_records::needs{
                       take_facts, tell, [this](experiment_id id) { return experiments_->has_stopped(id); },
                       *tasks_, *webhooks_, *deletions_});
  }

  /// The open tasks of the journal. `pools`, where it is not null, gets the pool of these tasks, by agent.
  open_tasks tasks_in_journal(std::map<std::string, std::string>* pools = nullptr) const {
    open_tasks by_agent;
    const auto add = [&](task_id id, const run_row& run) {
      for (const auto& part : run.on) {
        by_agent[part.agent].tasks.push_back({{id, run.run}, part.slots});
        if (pools && !run.pool.empty())
          (*pools)[part.agent] = run.pool;
      }
    };
    auto rows = peers_.reads->experiments();
    for (const auto& row : rows ? *rows : std::vector<experiment_row>()) {
      auto trials = terminal(row.state) ? result<std::vector<trial_row>>(std::vector<trial_row>())
                                        : peers_.reads->trials(row.id);
      if (!trials)
        continue;
      for (const auto& trial : *trials)
        if (!trial.runs.empty() && trial.runs.back().ended == time_point{})
          add(trial.id, trial.runs.back());
    }
    tasks_->each_open(add);
    return by_agent;
  }

  /// The open tasks that a new twin of this agent has to expect. Tasks of a closed allocation are left out:
  /// the allocation has told its agents to forget them, and will not tell the new twin, which would wait for
  /// ever.
  expect_tasks tasks_that_live_on(const std::string& agent) const {
    auto out = std::move(tasks_in_journal()[agent]);
    std::erase_if(out.tasks, [this](const auto& task) {
      const auto facts = peers_.reads->facts_of(entity(task.allocation));
      return facts && std::any_of(facts->begin(), facts->end(), [](const auto& bytes) {
               const auto fact = decode_as<allocation_fact>(bytes);
               return fact && std::holds_alternative<allocation_closed>(*fact);
             });
    });
    return out;
  }

  void child_down(const caf::down_msg& down) {
    if (experiments_->child_down(down) || tasks_->child_down(down))
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
    if (experiments_)
      experiments_->end_all(why);
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
    const agent_asked asked{{self_->now(), x.name, x.id, x.slots, x.host, x.pool}, x.life};
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

  /// The commands that this actor obeys itself, as no part does.
  using commands_here =
    commands::without<commands::join<commands::cluster_commands, commands::task_calls>,
                      commands::join<cluster_experiments::commands_here, cluster_creation::commands_here,
                                     cluster_trials::commands_here, cluster_explain::commands_here,
                                     cluster_records::commands_here, cluster_tasks::commands_here,
                                     cluster_deletions::commands_here, cluster_members::commands_here>>;

  template <class Part, class... Parts>
  caf::result<command_result> hand_on(client_command& x, Part& first, Parts&... others) {
    if (commands::names(typename Part::commands_here{}, x.name))
      return first.obey(x);
    if constexpr (sizeof...(others) > 0)
      return hand_on(x, others...);
    else
      return obey<commands_here>(x.name, std::move(x.fields), [this, &x](auto order) {
        if constexpr (std::is_same_v<decltype(order), commands::orders_together>)
          return together(x, std::move(order));
        else
          return on(order);
      });
  }

  /// Sends each of the orders to this actor, as if it had come alone. The facts of all of them are committed
  /// together after the last one.
  caf::result<command_result> together(const client_command& x, commands::orders_together with) {
    if (with.orders.empty()) { // marks the end of the orders before
      end_together();
      return answered();
    }
    struct answers {
      caf::typed_response_promise<command_result> to;
      value list = value::array();
      std::size_t left = 0;
      void take(std::size_t i, const result<value>& got) {
        list[i] = got ? value::object() : value{{"error", got.error().what}};
        if (--left == 0)
          to.deliver(answered({{"answers", std::move(list)}}));
      }
    };
    auto all = std::make_shared<answers>();
    all->to = self_->make_response_promise<command_result>();
    all->left = with.orders.size();
    all->list.get_ref<value::array_t&>().resize(with.orders.size());
    begin_together();
    const cluster_actor me{self_};
    for (std::size_t i = 0; i < with.orders.size(); ++i) {
      auto& one = with.orders[i];
      if (one.name == commands::orders_together::is.name) {
        all->take(i, error{errc::unsupported, "no orders within orders"});
        continue;
      }
      self_
        ->request(
          me, commands::orders_together::is.patience,
          client_command{x.user, x.admin, x.allocation, std::move(one.name), std::move(one.parameters)})
        .then([all, i](const command_result& said) { all->take(i, said.got); },
              [all, i](const caf::error& why) { all->take(i, from_caf(why)); });
    }
    caf::anon_send(me, client_command_of(commands::orders_together{})); // behind the orders in the mailbox
    return all->to;
  }

  template <class OfWebhooks>
  requires(commands::contains<commands::webhook_calls, OfWebhooks>) caf::result<command_result> on(
    const OfWebhooks& x) {
    return webhooks_->on(x);
  }
  caf::result<command_result> on(const commands::node_shutdown&) {
    if (setup_.shut_down)
      setup_.shut_down();
    return answered();
  }

  template <class OfUnmanaged>
  requires(commands::contains<commands::unmanaged_commands, OfUnmanaged>) caf::result<command_result> on(
    const OfUnmanaged& x) {
    return unmanaged_->on(x);
  }

  cluster_setup setup_;
  cluster_peers peers_;
  std::optional<cluster_machines> machine_;
  std::optional<cluster_members> members_;
  std::optional<cluster_tasks> tasks_;
  std::optional<cluster_experiments> experiments_;
  std::optional<cluster_creation> creation_;
  std::optional<cluster_trials> trials_;
  std::optional<cluster_explain> explain_;
  std::optional<cluster_records> records_;
  std::optional<cluster_unmanaged> unmanaged_;
  std::optional<cluster_webhooks> webhooks_;
  std::optional<cluster_deletions> deletions_;
  std::uint64_t epoch_ = 0; ///< begins at the wall time of the start, so that it grows over restarts
  child_restarts<std::string> restarts_;
  bool closing_ = false;
};

} // namespace

cluster_actor spawn_cluster(caf::actor_system& sys, cluster_setup setup, cluster_peers peers) {
  return spawn_with_own_thread<shell<cluster_shell_state, cluster_actor, cluster_setup, cluster_peers>>(
    sys, std::move(setup), std::move(peers));
}

} // namespace troupe
