#include "actors/task/task_actor.hpp"

#include "actors/journal/fact_reader_actor.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/names.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<task_actor>;

class task_shell_state : durable<task_shell_state, task_actor, task_fact, task_action> {
  friend class durable<task_shell_state, task_actor, task_fact, task_action>;

public:
  std::string name = "task";
  explicit task_shell_state(base* self) : durable(self) {}

  task_actor::behavior_type make_behavior(task_settings settings, task_peers peers,
                                          const std::vector<task_fact>& past,
                                          std::vector<allocation_fact> of_open_run) {
    id_ = settings.spec.id;
    name = entity(id_);
    self_->enter(name);
    settings_ = std::move(settings);
    peers_ = std::move(peers);
    machine_.emplace(settings_.spec);
    for (const auto& fact : past)
      machine_->replay(fact);
    past_of_run_ = std::move(of_open_run);
    self_->set_down_handler([this](const caf::down_msg& down) {
      // An allocation that died without a word is made again from its facts; its run goes on.
      if (!allocation_ || down.source != allocation_.address() || !down.reason || machine_->ended())
        return;
      if (!restarts_.again(run_, self_->now()))
        return leave(to_caf({errc::internal, entity(allocation_id{id_, run_}) +
                                               " died again and again: " + from_caf(down.reason).what}));
      make_again({id_, run_});
    });
    begin(name, past.size(), peers_.journal, machine_->resume(self_->now()));
    return {
      [this](const task_checkpoint& x) {
        if (allocation_)
          self_->send(allocation_,
                      checkpoint_answer{x.origin.allocation, x.saved.uuid, "only trials have checkpoints"});
      },
      [this](const allocation_ended& ev) { step(ev); },
      [this](const time_passed& ev) {
        timer_fired();
        step(ev);
      },
      [this](task_call& x) {
        return obey<commands_here>(x.name, std::move(x.fields),
                                   [this, &x](auto order) { return on(x.allocation, std::move(order)); });
      },
      [this](pool_renewed& x) -> caf::result<pool_joined> {
        peers_.pools.all[x.name] = x.pool;
        if (!allocation_)
          return pool_joined{};
        return self_->delegate(allocation_, std::move(x));
      },
      [this](const pool_chosen& x) {
        peers_.pools.all[x.name] = x.pool;
        peers_.pools.own = x.name;
        if (allocation_)
          self_->send(allocation_, x);
      },
    };
  }

private:
  task& machine() { return *machine_; }
  void end_children(const caf::error& why) {
    if (allocation_)
      self_->send_exit(allocation_, why);
  }
  std::optional<time_point> deadline() const { return machine_->deadline(); }

  // ---- commands; those of its allocation are handed on. `by`: who asks stands in the call's allocation

  using commands_here =
    commands::join<commands::work_calls,
                   commands::list<commands::task_stop, commands::task_hold, commands::task_set,
                                  commands::task_use, commands::log_match>,
                   commands::allocation_commands>;

  caf::result<command_result> on(const allocation_id&, commands::task_stop x) {
    return durably(task_kill_wanted{std::move(x.why)});
  }
  caf::result<command_result> on(const allocation_id&, commands::task_hold x) {
    if (x.on)
      return durably(task_pause_wanted{std::move(x.by)});
    return durably(task_unpause_wanted{std::move(x.by)});
  }
  caf::result<command_result> on(const allocation_id&, const commands::task_set& x) {
    return durably(task_priority_wanted{x.by, static_cast<int>(x.priority)});
  }
  caf::result<command_result> on(const allocation_id&, const commands::task_use&) {
    step(task_used{}); // a use that is lost costs a minute
    return answered();
  }
  caf::result<command_result> on(const allocation_id&, commands::log_match x) {
    return durably(log_matched{x.run, std::move(x.agent), std::move(x.policy), std::move(x.pattern),
                               std::move(x.line), x.exclude_agent, x.cancel_retries});
  }
  caf::result<command_result> on(const allocation_id& run, const commands::task_answers&) {
    return is_open(run) ? durably(task_service_answers{run.run}) : over(run);
  }
  template <class OfAllocation>
  caf::result<command_result> on(const allocation_id& run, OfAllocation x) {
    if (!is_open(run))
      return over(run);
    return self_->delegate(allocation_, task_call_of(run, std::move(x)));
  }

  bool is_open(const allocation_id& run) const { return allocation_ && run.run == machine_->open_run(); }
  static command_result over(const allocation_id& run) {
    return refused({errc::conflict, "allocation " + to_string(run) + " is over"});
  }

  template <class Event>
  caf::result<command_result> durably(const Event& ev) {
    if (auto no = machine_->refuses(ev))
      return refused(*no);
    auto promise = self_->make_response_promise<command_result>();
    step(ev, [promise](const caf::error& why) mutable {
      promise.deliver(why ? refused(from_caf(why)) : answered());
    });
    return promise;
  }

  void run(const start_task_run& x) {
    if (std::exchange(run_, x.run) != x.run) // else a repeat
      start(x);
  }
  void run(const stop_task_run& x) {
    if (allocation_ && x.run == run_)
      self_->send(allocation_, allocation_stop{x.kill, x.reason});
  }
  void run(const tell_task_job& x) {
    settings_.spec.job = x.job;
    if (auto pool = peers_.pools.find(peers_.pools.own))
      self_->send(pool, job_changed{x.job});
    // The allocation asks its pool with what it was told last.
    if (allocation_)
      self_->send(allocation_, job_changed{x.job});
  }
  void run(const say_task_ready&) {
    say(to_string(run_) + "/ready", "Service of " + settings_.title + " is available");
  }
  void run(const say_in_log& x) { say(x.source, x.text, "WARNING"); }
  void run(const report_task_end&) {
    self_->send(peers_.cluster, task_finished{id_});
    self_->quit();
  }

  /// Into the log of the task, once for each source.
  void say(const std::string& source, std::string text, const char* level = "INFO") {
    log_line line;
    line.at = self_->now();
    line.allocation = {id_, run_};
    line.stream = "troupe";
    line.level = level;
    line.text = std::move(text);
    self_
      ->request(peers_.journal, journal_timeout, append_log{id_, {std::move(line)}, name + "/" + source, 1})
      .then([](const committed&) {}, [](const caf::error&) {});
  }

  /// What the run has in the journal is read on another thread than this one, which many share.
  void make_again(const allocation_id& id) {
    self_->request(spawn_fact_reader(self_->system(), peers_.reads), journal_timeout, read_facts{entity(id)})
      .then(
        [this](const facts_read& stored) {
          if (machine_->ended())
            return;
          past_of_run_.clear();
          for (const auto& bytes : stored.facts)
            if (auto fact = decode_as<allocation_fact>(bytes))
              past_of_run_.push_back(std::move(*fact));
          run_ = {};
          for (auto& action : machine_->resume(self_->now())) // the stop it may have carried is ordered again
            std::visit([this](auto& x) { run(x); }, action);
        },
        [this](const caf::error& why) { leave(why); });
  }

  void start(const start_task_run& x) {
    const allocation_id id{id_, x.run};
    const auto past = std::exchange(past_of_run_, {}); // a new run has none
    auto& launch = settings_.launch;
    launch.allocation_name = allocation_name({}, id);
    launch.session_token = peers_.tokens.session ? peers_.tokens.session(id) : std::string();
    allocation_spec allocation{id, settings_.spec.slots};
    allocation.run = {machine_->job(), x.started, "", settings_.spec.preemptible, settings_.spec.rules};
    auto& kept_away = allocation.run.rules.not_agents;
    kept_away.insert(kept_away.end(), x.not_agents.begin(), x.not_agents.end());
    allocation.run.excluded = x.not_agents;
    if (settings_.spec.stop_limit)
      allocation.stop_limit = *settings_.spec.stop_limit;
    const auto& own = peers_.pools.own;
    const auto pool = pool_of(past);
    allocation_ = spawn_allocation(self_->system(), allocation, launch,
                                   {allocation_owner{task_actor{self_}}, peers_.journal,
                                    peers_.pools.find(pool), pool, peers_.pools, settings_.title},
                                   past);
    self_->monitor(allocation_);
    if (pool != own) // the master died before the run heard that it has to move
      self_->send(allocation_, pool_chosen{own, peers_.pools.find(own)});
  }

  /// A run that was placed is known to the pool that placed it.
  std::string pool_of(const std::vector<allocation_fact>& past) const {
    for (const auto& fact : past)
      if (const auto* placed = std::get_if<allocation_placed>(&fact);
          placed && peers_.pools.all.contains(placed->pool))
        return placed->pool;
    return peers_.pools.own;
  }

  task_id id_;
  task_settings settings_;
  task_peers peers_;
  std::optional<task> machine_;
  run_id run_;
  allocation_actor allocation_;
  child_restarts<run_id> restarts_;
  std::vector<allocation_fact> past_of_run_; ///< of the open run, until it has its allocation
};

} // namespace

task_actor spawn_task_actor(caf::actor_system& sys, task_settings settings, task_peers peers,
                            const std::vector<task_fact>& past, std::vector<allocation_fact> of_open_run) {
  using impl = shell<task_shell_state, task_actor, task_settings, task_peers, std::vector<task_fact>,
                     std::vector<allocation_fact>>;
  return sys.spawn<impl>(std::move(settings), std::move(peers), past, std::move(of_open_run));
}

} // namespace troupe
