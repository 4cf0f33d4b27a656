#include "actors/allocation/allocation_actor.hpp"

#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/back_off.hpp"
#include "model/names.hpp"
#include "system/random.hpp"
#include "workers/worker_messages.hpp"

#include <caf/all.hpp>

#include <list>

namespace troupe {
namespace {

using base = actor_base<allocation_actor>;
using call_promise = caf::typed_response_promise<command_result>;
using host_names = std::map<std::string, std::string>; ///< addresses of agents, by name

/// Limit of the waiting calls of one allocation, which is more than its processes can have in use.
constexpr std::size_t most_held_calls = 1024;

class allocation_state : durable<allocation_state, allocation_actor, allocation_fact, allocation_action> {
  friend class durable<allocation_state, allocation_actor, allocation_fact, allocation_action>;

public:
  std::string name = "allocation";
  explicit allocation_state(base* self) : durable(self) {}

  allocation_actor::behavior_type make_behavior(const allocation_spec& spec, task_launch launch,
                                                allocation_peers peers,
                                                const std::vector<allocation_fact>& past) {
    name = entity(spec.id);
    self_->enter(name);
    id_ = spec.id;
    launch_ = std::move(launch);
    peers_ = std::move(peers);
    launch_.token = random_hex(16); // opens the harness gateway to the processes of this allocation
    machine_.emplace(spec);
    for (const auto& fact : past)
      machine_->replay(fact);
    if (past.empty()) // an earlier actor of this run may have died with grants of other pools
      for (const auto& [pool, actor] : peers_.pools.all)
        if (actor && actor != peers_.pool)
          self_->send(actor, slots_released{id_, {}});
    begin(name, past.size(), peers_.journal, machine_->resume());
    return {
      [this](const slots_granted& ev) { locate(ev); },
      [this](const report_unplaceable& x) {
        if (caf::actor_cast<pool_actor>(self_->current_sender()) != peers_.pool)
          return; // the message comes from a pool that this run has left
        if (x.excluded.empty())
          say_it_waits(x);
        else
          step(x);
      },
      [this](const allocation_stop& ev) { step(ev); },
      [this](const task_started& ev) {
        from_twin(ev);
        say_it_started(ev.agent);
      },
      [this](const task_exited& ev) { from_twin(ev); },
      [this](const task_unknown& ev) { from_twin(ev); },
      [this](const agent_lost& ev) { step(ev); },
      [this](const time_passed& ev) {
        answer_polls(false);
        if (send_at_ && self_->now() >= *send_at_)
          send_held_back();
        timer_fired();
        step(ev);
      },
      [this](task_checkpoint& up) { self_->send(peers_.owner, std::move(up)); },
      [this](const progress_heard& up) { self_->send(peers_.owner, up); },
      [this](checkpoint_answer& down) { to_all(down); },
      [this](validation_answer& down) { to_all(down); },
      [this](task_call& x) {
        return obey<commands::allocation_commands>(x.name, std::move(x.fields),
                                                   [this](auto order) { return on(std::move(order)); });
      },
      [this](const member_failed& ev) { from_twin(ev); },
      [this](const worker_said& ev) { from_twin(ev); },
      [this](const slots_spare& ev) { step(ev); },
      [this](const preempt_allocation& ev) { step(ev); },
      [this](const job_changed& ev) {
        step(ev);
        auto pools = machine_->asked();
        if (!machine_->pool().empty() && machine_->pool() != machine_->home())
          pools.insert(machine_->pool());
        for (const auto& pool : pools) // the own pool has heard of it already
          if (const auto actor = pool_named(pool))
            self_->send(actor, ev);
      },
      [this](const fall_back& ev) {
        if (caf::actor_cast<pool_actor>(self_->current_sender()) == peers_.pool) // not a pool it has left
          step(ev);
      },
      [this](const guest_waits& ev) { step(ev); },
      [this](pool_renewed& x) -> caf::result<pool_joined> {
        peers_.pools.all[x.name] = x.pool;
        if (machine_->asked().contains(x.name))
          for (const auto& action : machine_->meet_guest_pool(x.name))
            std::visit([this](const auto& one) { run(one); }, action);
        if (!peers_.pool_name.empty() && x.name != peers_.pool_name)
          return pool_joined{};
        return meet(std::move(x.pool));
      },
      [this](pool_chosen& x) { move_to(std::move(x)); },
      [this](twin_renewed& x) {
        auto actions = machine_->meet_twin(x.agent);
        if (actions.empty() && !twins_.contains(x.agent))
          return;
        twins_[x.agent] = std::move(x.twin);
        take({}, std::move(actions));
      },
    };
  }

private:
  allocation& machine() { return *machine_; }
  void end_children(const caf::error& why) {
    if (meeting_.pending()) // without an answer the caller would wait for its timeout
      meeting_.deliver(why);
  }
  std::optional<time_point> deadline() const {
    auto next = machine_->deadline();
    if (send_at_)
      next = next ? std::min(*next, *send_at_) : *send_at_;
    for (const auto& poll : polls_)
      next = next ? std::min(*next, poll.until) : poll.until;
    return next;
  }

  // ---- what the task says of itself

  caf::result<command_result> on(const commands::allocation_preemption& x) {
    return poll(std::chrono::milliseconds(x.timeout_ms));
  }
  caf::result<command_result> on(const commands::allocation_ack_preemption&) {
    return durably(stop_agreed{});
  }
  caf::result<command_result> on(const commands::allocation_pending_preemption&) {
    return durably(stop_agreed{true});
  }
  caf::result<command_result> on(const commands::trial_early_exit&) {
    return durably(hyperparameters_refused{});
  }
  caf::result<command_result> on(const commands::allocation_look&) {
    return answered({{"state", machine_->shown()}});
  }
  caf::result<command_result> on(const commands::worker_validate&) {
    return order_work({work_wanted::work::validate});
  }
  caf::result<command_result> on(const commands::worker_checkpoint&) {
    return order_work({work_wanted::work::checkpoint});
  }
  caf::result<command_result> on(const commands::allocation_daemon& x) {
    const auto rank = rank_of(x.resources);
    return rank ? durably(part_left_alone{*rank}) : refused(rank.error());
  }
  caf::result<command_result> on(commands::allocation_rendezvous x) {
    const auto rank = rank_of(x.resources);
    return rank ? rendezvous(*rank, x.hosts ? std::move(*x.hosts) : host_names{}) : refused(rank.error());
  }

  /// Passes the order to the agent of node rank 0; nothing of it is stored here.
  caf::result<command_result> on(const commands::allocation_connect& x) {
    const auto known = std::any_of(launch_.services.begin(), launch_.services.end(),
                                   [&](const task_service& one) { return one.id == x.service; });
    if (!known)
      return refused({errc::not_found, "service not found: " + x.service});
    if (machine_->placed().empty() || machine_->closed())
      return refused({errc::busy, "the task of service " + x.service + " does not run"});
    const auto agent = machine_->placed().front().agent;
    service_ordered order{id_, x.service, x.connection, x.secret};
    if (auto it = twins_.find(agent); it != twins_.end() && it->second) {
      self_->send(it->second, std::move(order));
      return answered();
    }
    // After a recovery the twin is not known yet.
    auto promise = self_->make_response_promise<command_result>();
    self_->request(peers_.pool, std::chrono::seconds(10), locate_agents{{agent}})
      .then(
        [this, promise, order = std::move(order)](const std::vector<twin_actor>& twins) mutable {
          if (twins.empty() || !twins.front()) {
            promise.deliver(refused({errc::busy, "the agent of " + order.service + " is away"}));
            return;
          }
          self_->send(twins.front(), std::move(order));
          promise.deliver(answered());
        },
        [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }

  result<int> rank_of(const std::string& resources) const {
    const auto part = named_part(resources);
    if (part.allocation != id_ || part.node_rank >= static_cast<int>(machine_->placed().size()))
      return error{errc::invalid, "no such resources of allocation " + to_string(id_)};
    return part.node_rank;
  }

  template <class Event>
  caf::result<command_result> durably(const Event& ev) {
    auto promise = self_->make_response_promise<command_result>();
    step(ev, [promise](const caf::error& why) mutable {
      promise.deliver(why ? refused(from_caf(why)) : answered());
    });
    return promise;
  }

  caf::result<command_result> order_work(const work_wanted& ev) {
    const auto ranks = machine_->led().size();
    if (ranks == 0)
      return refused(
        {errc::conflict,
         name + " has no worker to tell: only ranks of a trial in C++ have one, while they train"});
    auto promise = self_->make_response_promise<command_result>();
    step(ev, [promise, ranks](const caf::error& why) mutable {
      promise.deliver(why ? refused(from_caf(why)) : answered({{"ranks", ranks}}));
    });
    return promise;
  }

  static command_result signal(bool stop) { return answered({{"preempt", stop}}); }

  caf::result<command_result> poll(duration patience) {
    step(signal_polled{});
    if (machine_->stopping() || patience <= duration{0})
      return signal(machine_->stopping());
    auto promise = self_->make_response_promise<command_result>();
    if (polls_.size() >= most_held_calls) { // so many callers cannot still wait
      polls_.front().caller.deliver(signal(false));
      polls_.pop_front();
    }
    polls_.push_back({self_->now() + patience, promise});
    arm(deadline());
    return promise;
  }

  /// Answers all waiting polls with `stop`, else only those whose time is over.
  void answer_polls(bool stop) {
    const auto now = self_->now();
    for (auto it = polls_.begin(); it != polls_.end();) {
      if (!stop && now < it->until) {
        ++it;
        continue;
      }
      it->caller.deliver(signal(stop || machine_->stopping()));
      it = polls_.erase(it);
    }
  }

  caf::result<command_result> rendezvous(int node_rank, host_names hosts) {
    auto promise = self_->make_response_promise<command_result>();
    if (gang_.size() >= most_held_calls) {
      gang_.front().caller.deliver(refused({errc::busy, "too many wait for the rendezvous"}));
      gang_.pop_front();
    }
    gang_.push_back({node_rank, promise});
    hosts_ = std::move(hosts);
    step(part_called{node_rank});
    return promise;
  }

  /// The addresses of all parts in the order of node ranks, the chief first. Parts on one host meet on its
  /// loopback address.
  command_result gang(int node_rank) const {
    value addresses = value::array(), slots = value::array();
    std::set<std::string> distinct;
    for (const auto& part : machine_->placed()) {
      const auto host = hosts_.find(part.agent);
      addresses.push_back(host == hosts_.end() ? part.agent : host->second);
      distinct.insert(addresses.back().get<std::string>());
      slots.push_back(part.slots.size());
    }
    if (distinct.size() == 1)
      std::fill(addresses.begin(), addresses.end(), value("127.0.0.1"));
    return answered({{"addresses", addresses}, {"slots", slots}, {"rank", node_rank}});
  }

  void run(const answer_signals&) { answer_polls(true); }
  void run(const answer_gang&) {
    for (auto& one : std::exchange(gang_, {}))
      one.caller.deliver(gang(one.node_rank));
  }

  /// Whether the run has left this pool. A grant of such a pool is void.
  bool has_left(const std::string& pool) const {
    return !pool.empty() && !peers_.pool_name.empty() && pool != peers_.pool_name &&
           !machine_->asked().contains(pool);
  }
  pool_actor pool_named(const std::string& pool) const {
    return pool.empty() || pool == peers_.pool_name ? peers_.pool : peers_.pools.find(pool);
  }
  void run(const ask_pool& x) {
    auto request = machine_->request({machine_->wanted(), machine_->least()});
    request.home = machine_->home();
    if (const auto pool = pool_named(x.pool))
      self_->send(pool, std::move(request));
    else // the cluster file has dropped the pool
      self_->send(allocation_actor{self_}, guest_waits{id_, x.pool});
  }
  void run(const leave_pool& x) {
    if (const auto pool = pool_named(x.pool))
      self_->send(pool, slots_released{id_, {}});
  }

  /// Learns the handles of the agents' twins before the machine, which knows agents only by name, hears of
  /// the grant.
  void locate(const slots_granted& ev) {
    const auto pool = pool_named(ev.pool);
    if (!pool)
      return;
    if (has_left(ev.pool) || machine_->closed()) // told so at once: it may have ended before it knows handles
      return self_->send(pool, slots_released{id_, {}});
    std::vector<std::string> names;
    for (const auto& part : ev.on)
      names.push_back(part.agent);
    self_->request(pool, journal_timeout, locate_agents{names})
      .then(
        [this, ev, names, pool](const std::vector<twin_actor>& twins) {
          if (has_left(ev.pool))
            return;
          for (std::size_t i = 0; i < names.size() && i < twins.size(); ++i)
            twins_[names[i]] = twins[i];
          if (machine_->placed().empty() && !machine_->closed() && pool != peers_.pool) {
            peers_.pools.all[peers_.pool_name] = std::exchange(peers_.pool, pool);
            peers_.pool_name = ev.pool; // the run stays in this pool until its end
          }
          step(ev);
        },
        [this](const caf::error& why) {
          if (why != caf::sec::request_receiver_down)
            leave(why); // where the pool died, its grant is void, and the next pool actor is asked again
        });
  }

  /// A run that holds slots is preempted, and the next run asks in the new pool. A run that waits asks there
  /// now.
  void move_to(pool_chosen x) {
    if (x.name == peers_.pool_name || !x.pool || machine_->closed())
      return;
    if (!machine_->placed().empty())
      return step(preempt_allocation{id_, {}, "pool"});
    self_->send(peers_.pool, slots_released{id_, {}});
    for (const auto& action : machine_->move_home(x.name))
      std::visit([this](const auto& one) { run(one); }, action);
    peers_.pool = std::move(x.pool);
    peers_.pool_name = std::move(x.name);
    take({}, machine_->meet_pool()); // asks the new pool for slots
  }

  /// Tells the new pool at once what this allocation holds, even while facts wait for the journal, as slots
  /// are soft state. It answers once the pool knows that. A request follows a release that waits for the
  /// journal, as the pool would take the release for one of its grant.
  caf::result<pool_joined> meet(pool_actor pool) {
    peers_.pool = std::move(pool);
    auto actions = machine_->meet_pool();
    const bool holds = !actions.empty() && std::holds_alternative<hold_slots>(actions.front());
    meeting_ = self_->make_response_promise<pool_joined>();
    if (holds)
      for (const auto& action : std::exchange(actions, {}))
        std::visit([this](const auto& x) { run(x); }, action);
    send_held_back();
    take({}, std::move(actions));
    take({}, machine_->ask_agents()); // they follow orders to start that wait for the journal
    if (!holds)
      meeting_.deliver(pool_joined{});
    return meeting_;
  }
  void run(const hold_slots& x) {
    self_->request(peers_.pool, std::chrono::seconds(30), machine_->holding(x.on))
      .then([promise = meeting_](const pool_joined& done) mutable { promise.deliver(done); },
            [promise = meeting_](const caf::error& why) mutable { promise.deliver(why); });
  }

  /// Writes into the task's log that the run waits. Repeats of the line are dropped by the journal.
  void say_it_waits(const report_unplaceable& x) {
    log_line line;
    line.at = self_->now();
    line.allocation = id_;
    line.stream = "troupe";
    line.level = "WARNING";
    line.text = "waits for " + std::to_string(x.slots) + " slots; all agents together have " +
                std::to_string(x.total) + " (troupe agent list). Start more agents, or lower " +
                (id_.task.is_trial() ? "resources.slots_per_trial" : "resources.slots");
    self_
      ->request(peers_.journal, journal_timeout,
                append_log{id_.task, {std::move(line)}, "pool/" + to_string(id_), 1})
      .then([](const committed&) {}, [](const caf::error&) {});
  }

  /// Writes into the task's log, once for the run, that all its parts have started.
  void say_it_started(const std::string& agent) {
    started_on_.insert(agent);
    if (peers_.title.empty() || started_on_.size() != machine_->placed().size())
      return;
    log_line line;
    line.at = self_->now();
    line.allocation = id_;
    line.stream = "troupe";
    line.level = "INFO";
    line.text = "Resources for " + peers_.title + " have started";
    self_
      ->request(peers_.journal, journal_timeout,
                append_log{id_.task, {std::move(line)}, name + "/started", 1})
      .then([](const committed&) {}, [](const caf::error&) {});
  }

  /// A recovered allocation learns the handles of its agents' twins from their first messages.
  template <class Event>
  void from_twin(const Event& ev) {
    twins_[ev.agent] = caf::actor_cast<twin_actor>(self_->current_sender());
    step(ev);
  }

  template <class Message>
  void to_all(const Message& x) {
    for (const auto& [agent, twin] : twins_)
      if (twin)
        self_->send(twin, x);
  }

  void run(const request_slots& x) { self_->send(peers_.pool, machine_->request(x)); }
  void run(const release_slots& x) { self_->send(peers_.pool, slots_released{id_, x.agent}); }
  void run(const start_task& x) {
    auto part = launch_;
    part.node_rank = x.node_rank;
    part.nodes = x.nodes;
    part.resources_id = part_name(id_, x.node_rank);
    part.slots = x.on.slots;
    part.first_rank = part.ranks = 0;
    for (std::size_t n = 0; n < machine_->placed().size(); ++n) {
      const auto slots = static_cast<int>(machine_->placed()[n].slots.size());
      part.first_rank += static_cast<int>(n) < x.node_rank ? slots : 0;
      part.ranks += slots;
    }
    part.ranks = std::max(part.ranks, 1); // a task without slots is one process
    if (x.node_rank != 0)
      part.services.clear();
    send_to(x.on.agent, start_ordered{id_, x.on.slots, launch_spec(std::move(part)), x.placed});
  }
  void run(const preempt_task& x) { send_to(x.agent, preempt_ordered{id_, x.reason}); }
  void run(const order_worker& x) {
    send_to(x.agent, worker_ordered{id_, x.member, workers::worker_protocol, x.order});
  }
  void run(const kill_task& x) { send_to(x.agent, kill_ordered{id_}); }
  void run(const forget_task& x) { forget(x.agent); }
  /// The pool passes this on to the twin, which has had the order to start before, as actors of one node hear
  /// messages in the order in which they were sent.
  void run(const watch_task& x) {
    self_->send(peers_.pool, watch_by_name{x.agent, {id_, x.slots, x.placed}});
  }
  void run(const report_allocation_end& x) {
    self_->send(peers_.owner, allocation_ended{id_.run, x.why, x.detail, x.finished, x.exit_code,
                                               x.unplaceable, x.unbegun});
    write_end(x);
    for (auto& poll : std::exchange(polls_, {}))
      poll.caller.deliver(signal(machine_->stopping()));
    for (auto& one : std::exchange(gang_, {}))
      one.caller.deliver(refused({errc::conflict, "allocation " + to_string(id_) + " is over"}));
    told_ = true;
    quit_if_done();
  }
  /// Writes at the end of the task's log what went wrong, with the sentences of Determined. The line may be
  /// lost with the master, as the facts hold the same. After a recovery it is written again, which is a
  /// repeat.
  void write_end(const report_allocation_end& x) {
    if (x.why != end::failed && x.why != end::lost && x.why != end::invalid_hp)
      return;
    log_line line;
    line.at = self_->now();
    line.allocation = id_;
    line.stream = "troupe";
    line.level = x.why == end::invalid_hp ? "WARNING" : "ERROR";
    line.text = (peers_.title.empty() ? people_name(launch_.experiment, id_.task) : peers_.title) + " " +
                (x.why == end::failed && !x.unplaceable
                   ? "crashed: resources failed with non-zero exit code:  (" + x.detail + ")"
                   : "was terminated: " + x.detail);
    self_->request(peers_.journal, journal_timeout, append_log{id_.task, {std::move(line)}, name + "/end", 1})
      .then([](const committed&) {}, [](const caf::error&) {});
  }

  void quit_if_done() {
    if (told_ && unsent_ == 0)
      self_->quit();
  }

  template <class Message>
  void send_to(const std::string& agent, Message message) {
    if (auto it = twins_.find(agent); it != twins_.end() && it->second)
      return self_->send(it->second, std::move(message));
    with_twin(agent,
              [this, message = std::move(message)](const twin_actor& twin) { self_->send(twin, message); });
  }

  /// Tells the twin to forget the task. A twin may die with this message in its mailbox, and the next twin
  /// may expect the task. So this actor lives until a twin has taken the message.
  void forget(const std::string& agent) {
    with_twin(agent, [this, agent](const twin_actor& twin) {
      ++unsent_;
      self_->request(twin, journal_timeout, forget_ordered{id_})
        .then([this] { one_sent(); },
              [this, agent, twin](const caf::error& why) {
                if (auto it = twins_.find(agent); it != twins_.end() && it->second == twin)
                  twins_.erase(it); // the pool will soon have the next twin
                if (why != caf::sec::request_receiver_down && why != caf::sec::request_timeout)
                  return one_sent();
                send_later([this, agent] {
                  forget(agent);
                  one_sent();
                });
              });
    });
  }
  /// Sends later, after a back-off. A message that no actor has taken after about a minute is dropped, as no
  /// actor needs it then.
  void send_later(std::function<void()> send) {
    constexpr int most = 15;
    if (++failures_ > most)
      return one_sent();
    held_back_.push_back(std::move(send));
    send_at_ =
      self_->now() + back_off<duration>(failures_, std::chrono::milliseconds(50), std::chrono::seconds(5));
    arm(deadline());
  }
  void send_held_back() {
    send_at_.reset();
    for (auto& send : std::exchange(held_back_, {}))
      send();
  }
  void one_sent() {
    --unsent_;
    quit_if_done();
  }

  /// Calls `use` with the handle of the twin. After a recovery the handle is not known yet: the pool is asked
  /// for it, and messages wait, in order. This actor lives until they are sent.
  template <class Use>
  void with_twin(const std::string& agent, Use use) {
    if (auto it = twins_.find(agent); it != twins_.end()) {
      if (it->second)
        use(it->second);
      return;
    }
    ++unsent_;
    self_->request(peers_.pool, journal_timeout, locate_agents{{agent}})
      .then(
        [this, agent, use](const std::vector<twin_actor>& twins) {
          twins_[agent] = twins.empty() ? twin_actor{} : twins.front();
          with_twin(agent, use);
          one_sent();
        },
        [this, agent, use, asked = peers_.pool](const caf::error& why) {
          if (why != caf::sec::request_receiver_down)
            return leave(why);
          auto again = [this, agent, use] {
            with_twin(agent, use);
            one_sent();
          };
          if (asked != peers_.pool)
            return again();
          if (told_) // the owner may be gone, so that this actor never hears of the next pool
            send_later(std::move(again));
          else
            held_back_.push_back(std::move(again)); // it waits until the pool is made again
        });
  }

  allocation_id id_;
  task_launch launch_;
  allocation_peers peers_;
  std::optional<allocation> machine_;
  std::map<std::string, twin_actor> twins_;
  bool told_ = false; ///< whether the owner has been told of the durable end
  int unsent_ = 0;    ///< number of messages that wait for the handle of a twin, or that no twin has taken
  int failures_ = 0;  ///< how often a message was not taken
  caf::typed_response_promise<pool_joined> meeting_; ///< answer to the newest pool_renewed
  std::vector<std::function<void()>> held_back_;     ///< sending that waits for a pool or twin
  std::optional<time_point> send_at_;                ///< when `held_back_` is sent in any case
  struct held_poll {
    time_point until;
    call_promise caller;
  };
  struct held_part {
    int node_rank = 0;
    call_promise caller;
  };
  std::list<held_poll> polls_; ///< calls that wait until the task has to stop
  std::list<held_part> gang_;  ///< calls that wait for the rest of the gang
  host_names hosts_;
  std::set<std::string> started_on_; ///< agents whose part runs
};

} // namespace

allocation_actor spawn_allocation(caf::actor_system& sys, const allocation_spec& spec, task_launch launch,
                                  allocation_peers peers, const std::vector<allocation_fact>& past) {
  using impl = shell<allocation_state, allocation_actor, allocation_spec, task_launch, allocation_peers,
                     std::vector<allocation_fact>>;
  return sys.spawn<impl>(spec, std::move(launch), std::move(peers), past);
}

} // namespace troupe
