#include "actors/cluster/cluster_actor.hpp"

#include "actors/agent/agent_twin_actor.hpp"
#include "actors/cluster/accepted_config.hpp"
#include "actors/durable_actor.hpp"
#include "actors/experiment/experiment_actor.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/retention/retention_actor.hpp"
#include "model/config/cluster_config.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<cluster_actor>;
using command_promise = caf::typed_response_promise<command_result>;

struct no_action {};
using cluster_action = std::variant<no_action>;

/// Takes as long wherever they differ.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return !different;
}

class cluster_shell_state : durable<cluster_shell_state, cluster_actor, cluster_fact, cluster_action> {
  friend class durable<cluster_shell_state, cluster_actor, cluster_fact, cluster_action>;

public:
  static inline const char* name = "cluster";
  explicit cluster_shell_state(base* self) : durable(self) {}

  cluster_actor::behavior_type make_behavior(cluster_setup setup, cluster_peers peers) {
    self_->enter("cluster");
    setup_ = std::move(setup);
    configuration_ = setup_.configuration;
    peers_ = std::move(peers);
    self_->set_down_handler([this](const caf::down_msg& down) { child_down(down); });
    recover();
    return {
      [this](register_agent& x, agent_actor& who) { return admit(std::move(x), std::move(who)); },
      [this](client_command& x) { return obey(std::move(x)); },
      [this](const reserve_trials& x) { return trials_reserved{machine_->reserve_trials(x.count)}; },
      [this](const experiment_finished& x) {
        forget(x.id);
        self_->send(retention_, sweep_experiment{x.id});
      },
      [this](route_validation& x) {
        if (auto it = experiments_.find(x.experiment); it != experiments_.end())
          self_->send(it->second, std::move(x.what));
      },
      [this](const time_passed&) { timer_fired(); },
      [this](const sweep_finished& x) { take(machine_->swept(x.id, self_->now()), {}); },
      [this](node_joined& x) {
        if (setup_.on_node)
          setup_.on_node(std::move(x));
      },
    };
  }

private:
  cluster& machine() { return *machine_; }
  std::optional<time_point> deadline() const { return std::nullopt; }
  void run(const no_action&) {}

  // ---- recovery

  void recover() {
    id_counters ids;
    auto rows = peers_.reads->experiments();
    if (rows)
      for (const auto& row : *rows)
        ids.newest_experiment = std::max(ids.newest_experiment, row.id);
    ids.newest_trial = peers_.reads->newest_trial();
    machine_.emplace(ids);
    std::size_t stored = 0;
    if (auto facts = peers_.reads->facts_of(cluster_entity))
      for (const auto& bytes : *facts) {
        ++stored;
        if (auto fact = decode_as<cluster_fact>(bytes))
          machine_->replay(*fact);
      }
    epoch_ = static_cast<std::uint64_t>(self_->now().time_since_epoch().count());
    make_pools();
    for (const auto& [agent, known] : machine_->agents())
      make_twin(agent);
    if (rows)
      expect_open_runs(*rows);
    begin(cluster_entity, stored, peers_.journal, {});
    if (rows)
      for (const auto& row : *rows)
        if (!terminal(row.state))
          recover(row);
    make_retention();
  }

  // ---- pools

  void make_pools() {
    for (const auto& pool : config::pool_names(configuration_))
      if (auto& actor = pools_[pool]; !actor) {
        actor = spawn_pool(self_->system(), pool);
        self_->monitor(actor);
      }
  }

  /// A pool that the configuration no longer names lives as long as an agent is in it.
  void drop_unused_pools() {
    for (auto it = pools_.begin(); it != pools_.end();) {
      const auto used = config::has_pool(configuration_, it->first) ||
                        std::any_of(links_.begin(), links_.end(), [&](const auto& l) { return l.second.pool == it->first; }) ||
                        experiments_in(it->first) > 0;
      if (used) {
        ++it;
        continue;
      }
      self_->demonitor(it->second.address());
      self_->send_exit(it->second, caf::exit_reason::user_shutdown);
      it = pools_.erase(it);
    }
  }

  std::ptrdiff_t experiments_in(const std::string& pool) const {
    return std::count_if(pool_of_.begin(), pool_of_.end(), [&](const auto& one) { return one.second == pool; });
  }

  /// Of a running experiment; one whose pool is gone goes on in the default one.
  std::string choose_pool(const value& settings) const {
    auto pool = config::pool_of_experiment(configuration_, settings);
    return pool ? *pool : config::default_pool(configuration_);
  }

  /// Whether `wanted` could be in force now. It is the node that keeps it; see runtime/node/configuration_store.hpp.
  result<void> may_configure(const value& wanted) const {
    for (const auto& [pool, actor] : pools_)
      if (!config::has_pool(wanted, pool) && config::has_pool(configuration_, pool) && !configuration_.is_null() &&
          experiments_in(pool) > 0)
        return error{errc::conflict, "pools." + pool + ": " + std::to_string(experiments_in(pool)) +
                                       " experiments run in it; end them before the pool goes"};
    return {};
  }

  command_result configure(const client_command& x) {
    const auto wanted = x.fields.value("configuration", value());
    if (auto ok = may_configure(wanted); !ok && x.name == "configuration.may")
      return refused(ok.error());
    if (x.name == "configuration.may")
      return answered();
    configuration_ = wanted; // an experiment that came in between keeps its pool's actor alive
    make_pools();
    settle_agents();
    return answered();
  }

  void make_retention() {
    retention_ = spawn_retention(self_->system(), {cluster_actor{self_}, peers_.journal, peers_.reads});
    self_->monitor(retention_);
    if (auto rows = peers_.reads->experiments())
      for (const auto& row : *rows)
        if (terminal(row.state) && machine_->unswept(row.id))
          self_->send(retention_, sweep_experiment{row.id});
  }

  void expect_open_runs(const std::vector<experiment_row>& rows) {
    std::map<std::string, expect_tasks> by_agent;
    for (const auto& row : rows) {
      auto trials = terminal(row.state) ? result<std::vector<trial_row>>(std::vector<trial_row>()) : peers_.reads->trials(row.id);
      if (!trials)
        continue;
      for (const auto& trial : *trials)
        if (!trial.runs.empty() && trial.runs.back().ended == time_point{})
          for (const auto& part : trial.runs.back().on)
            by_agent[part.agent].tasks.push_back({{trial.id, trial.runs.back().run}, part.slots});
    }
    for (auto& [agent, tasks] : by_agent)
      if (auto it = links_.find(agent); it != links_.end())
        self_->send(it->second.twin, std::move(tasks));
  }

  void recover(const experiment_row& row) {
    auto past = past_of(*peers_.reads, row.id, row.config);
    auto ok = past ? replayable(*past) : result<void>(past.error());
    if (!ok)
      return set_aside(row.id, ok.error().what);
    start(row.id, row.config, row.context, row.owner, *past);
  }

  /// It alone ends as error, and its tasks with it; the rest serve.
  void set_aside(experiment_id id, const std::string& why, int tries = 5) {
    auto stored = peers_.reads->facts_of(entity(id));
    append_facts last{entity(id), stored ? stored->size() : 0,
                      {encode(experiment_changed{self_->now(), experiment_state::error, why})}};
    self_->request(peers_.journal, journal_timeout, std::move(last))
      .then([this, id](const committed&) { abandon_tasks(id); },
            [this, id, why, tries](const caf::error& fault) {
              if (from_caf(fault).code == errc::gap && tries > 0) // what it had sent before it died came in between
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
      const allocation_id run{trial.id, trial.runs.back().run};
      for (const auto& [name, pool] : pools_)
        self_->send(pool, slots_released{run});
      for (const auto& part : trial.runs.back().on)
        if (auto it = links_.find(part.agent); it != links_.end())
          self_->send(it->second.twin, forget_ordered{run});
    }
  }

  void start(experiment_id id, const value& config, const std::string& context, const std::string& owner,
             const experiment_past& past, bool paused = false) {
    const auto pool = choose_pool(config);
    auto experiment = spawn_experiment(self_->system(), {id, config, context, paused, setup_.checkpoint_dir, owner},
                                       {cluster_actor{self_}, peers_.journal, pools_[pool], peers_.reads, setup_.tokens}, past);
    pool_of_[id] = pool;
    experiments_[id] = experiment;
    by_address_[experiment.address()] = id;
    self_->monitor(experiment);
  }

  void forget(experiment_id id) {
    if (auto it = experiments_.find(id); it != experiments_.end()) {
      by_address_.erase(it->second.address());
      experiments_.erase(it);
      pool_of_.erase(id);
      settle_agents();
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
      if (!restarts_.again(entity(id)))
        return set_aside(id, "its actor died again and again: " + from_caf(down.reason).what);
      return recover(*row); // made again from what is durable
    }
    if (!closing_ && down.source == retention_.address())
      return restarts_.again("retention") ? make_retention() : leave(down.reason);
    for (const auto& [pool, actor] : pools_)
      if (!closing_ && down.source == actor.address())
        return leave(to_caf({errc::internal, "the resource pool " + pool + " died: " + from_caf(down.reason).what}));
    for (const auto& [agent, link] : links_)
      if (!closing_ && link.twin && down.source == link.twin.address())
        return leave(to_caf({errc::internal, "the twin of agent " + agent + " died: " + from_caf(down.reason).what}));
    for (auto& [agent, link] : links_)
      if (link.actor && down.source == link.actor.address()) {
        link.actor = nullptr;
        link.since = self_->now();
      }
  }

  void end_children(const caf::error& why) {
    closing_ = true;
    for (auto& [id, experiment] : experiments_)
      self_->send_exit(experiment, why);
    for (auto& [agent, link] : links_)
      if (link.twin)
        self_->send_exit(link.twin, why);
    for (const auto& [name, pool] : pools_)
      self_->send_exit(pool, why);
    self_->send_exit(retention_, why);
  }

  // ---- agents

  struct agent_link {
    twin_actor twin;
    agent_actor actor; ///< null while it is away
    time_point since;  ///< it went away
    time_point up_since;
    value slots = value::array(); ///< what it said of them last: device, brand, uuid, usage
    std::string pool; ///< of the twin
  };

  agent_link& make_twin(const std::string& agent) {
    auto& link = links_[agent];
    if (!link.twin) {
      link.pool = wanted_pool(agent);
      auto& pool = pools_[link.pool];
      link.twin = spawn_twin(self_->system(), agent, setup_.lease, pool);
      self_->monitor(link.twin);
      self_->send(pool, link.twin, agent); // before anybody that this actor makes later asks the pool for it
    }
    return link;
  }

  std::string wanted_pool(const std::string& agent) const {
    return config::pool_of_agent(configuration_, agent);
  }

  /// An agent changes its pool when no experiment runs in the old one, so that nobody waits for the twin that ends. The
  /// agent notices its end, and registers anew.
  void settle_agents() {
    for (auto& [agent, link] : links_) {
      if (!link.twin || link.pool == wanted_pool(agent) || experiments_in(link.pool) > 0)
        continue;
      self_->send(pools_[link.pool], agent_down{agent});
      self_->demonitor(link.twin.address());
      self_->send_exit(link.twin, caf::exit_reason::user_shutdown);
      link.twin = nullptr;
      link.pool.clear();
    }
    drop_unused_pools();
  }

  caf::result<registered> admit(register_agent x, agent_actor who) {
    if (x.protocol != link_protocol)
      return to_caf({errc::unsupported, "this agent speaks link protocol " + std::to_string(x.protocol) +
                                          ", the master " + std::to_string(link_protocol) +
                                          ": install the same version on both"});
    if (x.token != setup_.join_token)
      return to_caf({errc::denied, "the join token is not this cluster's: copy the one that `troupe tls init` wrote"});
    const std::uint16_t http_port = setup_.http_port ? setup_.http_port() : 0;
    if (setup_.http_port && !http_port)
      return to_caf({errc::busy, "the master still starts"});
    auto known = links_.find(x.name);
    bool taken = known != links_.end() &&
                 (known->second.actor ? known->second.actor != who
                                      : self_->now() < known->second.since + setup_.lease.give_away);
    agent_joined fact{self_->now(), x.name, x.id, x.slots, x.host};
    auto facts = machine_->join(fact, taken);
    if (!facts)
      return to_caf(facts.error());
    auto promise = self_->make_response_promise<registered>();
    take(std::move(*facts), {}, [this, promise, x = std::move(x), who, http_port](const caf::error& why) mutable {
      if (why) {
        promise.deliver(why);
        return;
      }
      auto& link = make_twin(x.name);
      link.actor = who;
      self_->monitor(who);
      auto epoch = ++epoch_;
      self_->send(link.twin, agent_registered{epoch, x.slots, std::move(x.inventory)}, who);
      link.up_since = self_->now();
      promise.deliver(registered{epoch, link.twin, peers_.journal, setup_.lease.freeze.count(), http_port,
                                 setup_.fence_token ? setup_.fence_token(x.name) : std::string()});
    });
    return promise;
  }

  // ---- commands

  caf::result<command_result> obey(client_command x) {
    if (x.name == "experiment.create")
      return create(std::move(x));
    if (x.name == "experiment.validate") {
      auto checked = accept_config(x.fields, setup_.checkpoint_dir, configuration_);
      return checked ? answered() : refused(checked.error());
    }
    if (x.name == "experiment.activate")
      return tell_experiment(x, experiment_activate{});
    if (x.name == "experiment.pause")
      return tell_experiment(x, experiment_pause{});
    if (x.name == "experiment.cancel")
      return tell_experiment(x, experiment_stop{false, "canceled by " + x.user});
    if (x.name == "experiment.kill")
      return tell_experiment(x, experiment_stop{true, "killed by " + x.user});
    if (x.name == "trial.kill")
      return kill(x);
    if (x.name == "search.order")
      return order_search(x);
    if (x.name == "search.wait")
      return wait_for_search(x);
    if (x.name == "agent.list" || x.name == "status" || x.name == "queue.list" || x.name == "pool.list")
      return describe(x.name);
    if (x.name == "agent.drain")
      return drain(x.fields);
    if (x.name == "fence")
      return fence(x.fields);
    if (x.name.starts_with("allocation.") || x.name == "trial.progress" || x.name == "trial.early_exit" ||
        x.name == "checkpoint.report")
      return hand_down(std::move(x));
    if (x.name == "checkpoint.patch")
      return patch(x.fields);
    if (x.name == "trial.metadata" || x.name == "trial.set_metadata")
      return metadata(x);
    if (x.name == "configuration.may" || x.name == "configuration.enforce")
      return configure(x);
    if (x.name == "logs.cleanup")
      return clean_up_logs();
    if (x.name == "agent.slots")
      return hear_slots(x.fields);
    if (x.name == "node.shutdown") {
      if (setup_.shut_down)
        setup_.shut_down();
      return command_result{0, "", value::object()};
    }
    return refused({errc::unsupported, "no command '" + x.name + "'"});
  }

  /// Soft here and in the pool: whoever ordered it keeps it, and orders it again after a start.
  caf::result<command_result> drain(const value& fields) {
    const auto agent = fields.value("agent", std::string());
    const bool on = fields.value("on", true);
    if (!machine_->agents().contains(agent))
      return refused({errc::not_found, "no agent '" + agent + "'"});
    if (on)
      draining_.insert(agent);
    else
      draining_.erase(agent);
    for (const auto& [name, pool] : pools_) // it may change its pool meanwhile
      self_->send(pool, agent_drain{agent, on});
    return answered();
  }

  /// A sandbox whose agent closed its socket asks whether to go on, or says that nothing of it lives any more. While the
  /// agent is here, it speaks for its sandboxes.
  caf::result<command_result> fence(const value& claim) {
    const auto agent = claim.value("agent", std::string());
    const auto token = setup_.fence_token ? setup_.fence_token(agent) : std::string();
    if (token.empty() || !same_secret(claim.value("token", std::string()), token))
      return refused({errc::denied, "the fence token is not this agent's"});
    auto link = links_.find(agent);
    const bool away = link != links_.end() && !link->second.actor;
    if (claim.value("dead", false)) {
      if (away)
        self_->send(link->second.twin, death_confirmed{parse_allocation(claim.value("allocation", std::string()))});
      return command_result{0, "", value{{"kill", false}}};
    }
    return command_result{0, "", value{{"kill", away}}};
  }

  /// An agent says what its slots are and how busy; no route of the API leads here.
  caf::result<command_result> hear_slots(value& news) {
    const auto agent = news.value("agent", std::string());
    if (setup_.fence_token && !same_secret(news.value("token", std::string()), setup_.fence_token(agent)))
      return refused({errc::denied, "the token is not this agent's"});
    if (auto link = links_.find(agent); link != links_.end())
      link->second.slots = news.value("slots", value::array());
    return answered();
  }

  // ---- from tasks, and about trials

  caf::result<command_result> hand_down(client_command x) {
    const auto id = parse_allocation(x.allocation);
    auto it = experiments_.find(experiment_id{x.fields.value("experiment", std::uint64_t{0})});
    if (it == experiments_.end())
      return refused({errc::conflict, "allocation " + to_string(id) + " is over"});
    if (x.name == "allocation.rendezvous")
      for (const auto& [agent, known] : machine_->agents())
        x.fields["hosts"][agent] = known.host;
    return self_->delegate(it->second, task_call{id, std::move(x.name), std::move(x.fields)});
  }

  caf::result<command_result> metadata(const client_command& x) {
    trial_id id{x.fields.value("id", std::uint64_t{0})};
    auto row = peers_.reads->trial(id);
    if (!row)
      return refused(row.error());
    if (x.name == "trial.metadata")
      return answered({{"metadata", row->metadata.is_object() ? row->metadata : value::object()}});
    auto promise = self_->make_response_promise<command_result>();
    const auto given = x.fields.value("metadata", value::object());
    change_trial(*row, {{id, {}}, x.name, x.fields}, trial_metadata_set{self_->now(), given},
                 [promise, given](command_result& done) mutable {
                   promise.deliver(done.refused ? std::move(done) : answered({{"metadata", given}}));
                 });
    return promise;
  }

  caf::result<command_result> patch(const value& fields) {
    struct pending {
      std::size_t left = 1;
      command_result worst = answered();
    };
    auto all = std::make_shared<pending>();
    auto promise = self_->make_response_promise<command_result>();
    auto done = [all, promise](command_result& one) mutable {
      if (one.refused && !all->worst.refused)
        all->worst = one;
      if (--all->left == 0)
        promise.deliver(all->worst);
    };
    for (const auto& one : fields.value("checkpoints", value::array())) {
      const auto uuid = one.value("uuid", std::string());
      auto saved = peers_.reads->checkpoint(uuid);
      auto row = saved ? peers_.reads->trial(saved->trial) : result<trial_row>(saved.error());
      if (!row)
        return refused(row.error());
      if (one.value("files", value()).is_null())
        continue; // leaves them alone
      ++all->left;
      change_trial(*row, {{row->id, {}}, "checkpoint.patch", one},
                   checkpoint_changed{self_->now(), uuid, one["files"].get<std::map<std::string, std::int64_t>>()}, done);
    }
    auto last = answered();
    done(last);
    return promise;
  }

  using change_done = std::function<void(command_result&)>;

  /// A trial that lives notes `fact` itself, asked by `call`; the stream of one that has ended is the cluster's.
  void change_trial(const trial_row& row, task_call call, trial_fact fact, change_done done) {
    auto it = experiments_.find(row.experiment);
    if (it == experiments_.end() || terminal(row.state))
      return append_to(row.id, std::move(fact), std::move(done), 5);
    self_->request(it->second, journal_timeout, std::move(call))
      .then(
        [this, id = row.id, fact, done](command_result& answer) {
          if (answer.refused - 1 != static_cast<int>(errc::not_found))
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
    auto stored = peers_.reads->facts_of(entity(id));
    auto next = stored ? stored->size() : 0;
    self_->request(peers_.journal, journal_timeout, append_facts{entity(id), next, {encode_as(fact)}})
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

  caf::result<command_result> create(client_command x) {
    auto checked = accept_config(x.fields, setup_.checkpoint_dir, configuration_);
    if (!checked)
      return refused(checked.error());
    auto& [settings, source] = *checked;
    if (!settings.contains("reproducibility") || !settings["reproducibility"].is_object())
      settings["reproducibility"] = value::object();
    auto& seed = settings["reproducibility"]["experiment_seed"];
    if (!seed.is_number())
      seed = self_->now().time_since_epoch().count() / 1'000'000 & 0x7fffffff;
    experiment_created wanted{self_->now(), {}, settings,
                              x.fields.value("name", std::string()),
                              x.user, x.fields.value("context_blob", std::string()), source,
                              x.fields.value("key", std::string()),
                              experiment_id{x.fields.value("parent", std::uint64_t{0})}};
    if (wanted.name.empty())
      wanted.name = settings.value("name", value()).is_string() ? settings["name"].get<std::string>() : "experiment";
    bool activate = x.fields.value("activate", true);
    std::string context;
    if (auto it = x.fields.find("context"); it != x.fields.end() && it->is_binary())
      context.assign(it->get_binary().begin(), it->get_binary().end());
    auto promise = self_->make_response_promise<command_result>();
    if (context.empty()) {
      record(std::move(wanted), activate, promise);
      return promise;
    }
    self_->request(peers_.journal, journal_timeout, store_blob{std::move(context)})
      .then(
        [this, wanted, activate, promise](const blob_stored& blob) mutable {
          wanted.context = blob.name;
          record(std::move(wanted), activate, promise);
        },
        [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }

  void record(experiment_created wanted, bool activate, command_promise promise) {
    auto made = machine_->create(wanted);
    if (made.facts.empty()) { // the same key again: the same answer
      promise.deliver(command_result{0, "", value{{"id", made.id.value}}});
      return;
    }
    take(std::move(made.facts), {},
         [this, promise, id = made.id, activate, wanted = std::move(wanted)](const caf::error& why) mutable {
           if (why) {
             promise.deliver(refused(from_caf(why)));
             return;
           }
           start(id, wanted.config, wanted.context, wanted.owner, {}, !activate);
           if (activate) {
             promise.deliver(command_result{0, "", value{{"id", id.value}}});
             return;
           }
           self_->request(experiments_[id], journal_timeout, experiment_pause{}) // answers once the pause is durable
             .then([promise, id](const committed&) mutable { promise.deliver(command_result{0, "", value{{"id", id.value}}}); },
                   [promise](const caf::error& fault) mutable { promise.deliver(refused(from_caf(fault))); });
         });
  }

  template <class Event>
  caf::result<command_result> tell_experiment(const client_command& x, Event ev) {
    experiment_id id{x.fields.value("id", std::uint64_t{0})};
    auto it = experiments_.find(id);
    if (it == experiments_.end()) {
      auto row = peers_.reads->experiment(id);
      if (!row)
        return refused({errc::not_found, "experiment " + to_string(id) + " not found"});
      if (std::is_same_v<Event, experiment_stop>)
        return command_result{0, "", value::object()}; // it has ended: what was asked for holds
      return refused({errc::conflict, "experiment " + to_string(id) + " is " + std::string(troupe::name(row->state))});
    }
    return forward(it->second, std::move(ev));
  }

  caf::result<command_result> kill(const client_command& x) {
    trial_id id{x.fields.value("id", std::uint64_t{0})};
    auto row = peers_.reads->trial(id);
    if (!row)
      return refused({errc::not_found, "trial " + to_string(id) + " not found"});
    auto it = experiments_.find(row->experiment);
    if (it == experiments_.end() || terminal(row->state))
      return command_result{0, "", value::object()};
    return forward(it->second, kill_trial{id});
  }

  // ---- searches that a process outside drives

  caf::result<command_result> order_search(const client_command& x) {
    experiment_id id{x.fields.value("id", std::uint64_t{0})};
    auto it = experiments_.find(id);
    if (it == experiments_.end()) {
      auto row = peers_.reads->experiment(id);
      if (!row)
        return refused({errc::not_found, "experiment " + to_string(id) + " not found"});
      return refused({errc::conflict, "experiment " + to_string(id) + " is " + std::string(troupe::name(row->state))});
    }
    auto promise = self_->make_response_promise<command_result>();
    self_->request(it->second, journal_timeout, search_orders{x.fields.value("orders", value())})
      .then(
        [promise](const orders_answered& got) mutable {
          if (!got.refused.empty()) {
            promise.deliver(refused({errc::invalid, got.refused}));
            return;
          }
          value created = value::object();
          for (const auto& [key, trial] : got.created)
            created[key] = trial.value;
          promise.deliver(command_result{0, "", value{{"last", got.heard}, {"trials", std::move(created)}}});
        },
        [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }

  caf::result<command_result> wait_for_search(const client_command& x) {
    auto it = experiments_.find({x.fields.value("id", std::uint64_t{0})});
    if (it == experiments_.end())
      return command_result{0, "", value::object()}; // it hears no more
    await_events wish{x.fields.value("after", std::uint64_t{0}), x.fields.value("timeout_ms", std::int64_t{0})};
    auto promise = self_->make_response_promise<command_result>();
    self_->request(it->second, std::chrono::milliseconds(wish.timeout_ms) + journal_timeout, wish)
      .then([promise](const events_heard&) mutable { promise.deliver(command_result{0, "", value::object()}); },
            [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }

  caf::result<command_result> clean_up_logs() {
    auto promise = self_->make_response_promise<command_result>();
    self_->request(retention_, std::chrono::minutes(10), clean_logs{})
      .then([promise](const logs_cleaned& x) mutable { promise.deliver(answered({{"removedCount", x.trials}})); },
            [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }

  template <class Handle, class Message>
  caf::result<command_result> forward(const Handle& to, Message message) {
    auto promise = self_->make_response_promise<command_result>();
    self_->request(to, journal_timeout, std::move(message))
      .then([promise](const committed&) mutable { promise.deliver(command_result{0, "", value::object()}); },
            [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }

  caf::result<command_result> describe(const std::string& what) {
    struct gathering {
      std::size_t left = 0;
      std::map<std::string, pool_description> pools;
    };
    auto all = std::make_shared<gathering>();
    all->left = pools_.size();
    auto promise = self_->make_response_promise<command_result>();
    for (const auto& [name, pool] : pools_)
      self_->request(pool, std::chrono::seconds(10), describe_pool{})
        .then(
          [this, promise, what, all, name = name](pool_description& one) mutable {
            all->pools[name] = std::move(one);
            if (--all->left == 0)
              promise.deliver(command_result{0, "", description(what, all->pools)});
          },
          [promise, all](const caf::error& why) mutable {
            if (all->left != 0)
              promise.deliver(refused(from_caf(why)));
            all->left = 0;
          });
    return promise;
  }

  value description(const std::string& what, const std::map<std::string, pool_description>& pools) const {
    pool_description pool; // all of them together
    for (const auto& [name, one] : pools) {
      pool.total += one.total;
      pool.used += one.used;
      pool.agents.insert(one.agents.begin(), one.agents.end());
    }
    if (what == "status")
      return {{"slots", {{"total", pool.total}, {"used", pool.used}}},
              {"agents", pool.agents.size()},
              {"waiting", waiting_in(pools).size()},
              {"experiments_active", experiments_.size()}};
    if (what == "queue.list")
      return {{"waiting", waiting_in(pools)}};
    if (what == "pool.list")
      return {{"pools", pool_rows(pools)}};
    value agents = value::array();
    for (const auto& [agent, known] : machine_->agents()) {
      auto link = links_.find(agent);
      auto slots = value::array();
      auto held = pool.agents.find(agent);
      for (int i = 0; i < known.slots; ++i) {
        value slot{{"id", i}, {"device", "cpu"}, {"enabled", true}};
        if (link != links_.end() && static_cast<std::size_t>(i) < link->second.slots.size())
          slot.update(link->second.slots[static_cast<std::size_t>(i)]);
        if (held != pool.agents.end() && i < static_cast<int>(held->second.size()) &&
            held->second[static_cast<std::size_t>(i)].trial)
          slot["allocation"] = to_string(held->second[static_cast<std::size_t>(i)]);
        slots.push_back(slot);
      }
      agents.push_back({{"id", known.id},
                        {"name", agent},
                        {"host", known.host},
                        {"pool", link == links_.end() ? std::string() : link->second.pool},
                        {"slots", slots},
                        {"since", to_rfc3339(link == links_.end() ? time_point{} : link->second.up_since)},
                        {"state", link == links_.end() || !link->second.actor ? "away" : draining_.contains(agent) ? "draining" : "alive"}});
    }
    return {{"agents", agents}};
  }

  static value waiting_in(const std::map<std::string, pool_description>& pools) {
    value waiting = value::array();
    for (const auto& [name, pool] : pools)
      for (const auto& [id, slots] : pool.waiting)
        waiting.push_back({{"allocation", to_string(id)}, {"slots", slots}, {"pool", name}});
    return waiting;
  }

  value pool_rows(const std::map<std::string, pool_description>& pools) const {
    value rows = value::array();
    for (const auto& [name, pool] : pools)
      rows.push_back({{"name", name},
                      {"default", name == config::default_pool(configuration_)},
                      {"slots", {{"total", pool.total}, {"used", pool.used}}},
                      {"agents", pool.agents.size()},
                      {"waiting", pool.waiting.size()},
                      {"experiments", experiments_in(name)}});
    return rows;
  }

  cluster_setup setup_;
  cluster_peers peers_;
  std::optional<cluster> machine_;
  value configuration_; ///< in force
  std::map<std::string, pool_actor> pools_;
  std::map<experiment_id, std::string> pool_of_; ///< of those that run
  retention_actor retention_;
  std::uint64_t epoch_ = 0; ///< grows over restarts: it begins at the wall time of the start
  std::map<std::string, agent_link> links_;
  std::set<std::string> draining_;
  std::map<experiment_id, experiment_actor> experiments_;
  std::map<caf::actor_addr, experiment_id> by_address_;
  child_restarts<std::string> restarts_;
  bool closing_ = false;
};

} // namespace

cluster_actor spawn_cluster(caf::actor_system& sys, cluster_setup setup, cluster_peers peers) {
  return sys.spawn<shell<cluster_shell_state, cluster_actor, cluster_setup, cluster_peers>, caf::detached>(
    std::move(setup), std::move(peers));
}

} // namespace troupe
