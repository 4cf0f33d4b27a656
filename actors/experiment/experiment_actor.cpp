#include "actors/experiment/experiment_actor.hpp"

#include "actors/journal/fact_reader_actor.hpp"
#include "actors/searcher/searcher_actor.hpp"
#include "actors/shells/durable.hpp"
#include "actors/trial/trial_actor.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<experiment_actor>;

template <class Fact>
result<std::vector<Fact>> decoded(const std::vector<std::string>& stored, const std::string& entity,
                                  std::uint64_t first = 0) {
  std::vector<Fact> out;
  for (const auto& bytes : stored) {
    auto fact = decode_as<Fact>(bytes);
    if (!fact)
      return error{errc::corrupt, "fact " + std::to_string(first + out.size()) + " of " + entity +
                                    " cannot be read: " + fact.error().what};
    out.push_back(std::move(*fact));
  }
  return out;
}

template <class Fact>
result<std::vector<Fact>> facts_of(const storage::reader& reads, const std::string& entity,
                                   std::uint64_t first = 0) {
  auto stored = reads.facts_of(entity, first);
  return stored ? decoded<Fact>(*stored, entity, first) : stored.error();
}

/// The allocation of the run that is open; empty if no run is open, or if the facts cannot be replayed.
/// Whoever takes the facts reports the latter.
allocation_id open_run(trial_id id, const std::vector<trial_fact>& past) {
  if (!replayable(past))
    return {};
  trial machine({});
  for (const auto& fact : past)
    machine.replay(fact);
  return machine.open_run() ? allocation_id{id, machine.open_run()} : allocation_id{};
}

std::vector<allocation_fact> decoded_run(const std::vector<std::string>& stored) {
  std::vector<allocation_fact> out;
  for (const auto& bytes : stored)
    if (auto fact = decode_as<allocation_fact>(bytes))
      out.push_back(std::move(*fact));
  return out;
}

class experiment_shell_state
    : durable<experiment_shell_state, experiment_actor, experiment_fact, experiment_action> {
  friend class durable<experiment_shell_state, experiment_actor, experiment_fact, experiment_action>;

public:
  std::string name = "experiment";
  explicit experiment_shell_state(base* self) : durable(self) {}

  experiment_actor::behavior_type make_behavior(experiment_setup setup, experiment_peers peers,
                                                const experiment_past& past) {
    name = entity(setup.settings.id);
    self_->enter(name);
    settings_ = std::move(setup.settings);
    peers_ = std::move(peers);
    settings_.launch.cluster_id = peers_.tokens.cluster_id;
    settings_.launch.master_id = peers_.tokens.master_id;
    if (peers_.tokens.user)
      settings_.launch.user_token = peers_.tokens.user(settings_.id, settings_.launch.owner);
    auto spec = experiment_spec_of(settings_);
    spec.snapshot_every = static_cast<std::uint64_t>(
      set_by_test(self_->system(), "snapshot-every", static_cast<std::int64_t>(spec.snapshot_every)));
    machine_.emplace(spec);
    if (!past.machine.empty())
      static_cast<void>(machine_->restore(past.machine)); // past_of has tried this restore before
    for (const auto& fact : past.facts)
      machine_->replay(fact);
    const bool goes_on = past.again.number > machine_->continued();
    if (machine_->resources() && !(goes_on && past.again.configured)) // then the settings have the newest
      take_resources(*machine_->resources());
    trials_past_ = past.trials;
    self_->set_down_handler([this](const caf::down_msg& down) { child_down(down); });
    if (!terminal(machine_->state()) || goes_on)
      start_searcher(past.searcher);
    if (goes_on) {
      begin(name, machine_->facts(), peers_.journal, {});
      step(past.again);
    } else if (setup.start_paused && !machine_->facts()) {
      begin(name, 0, peers_.journal, {});
      step(experiment_pause{}); // before the actions with which the machine resumes
      take({}, machine_->resume(self_->now()));
    } else {
      begin(name, machine_->facts(), peers_.journal, machine_->resume(self_->now()));
    }
    for (const auto& missed : past.missed)
      step(missed);
    return {
      [this](const experiment_activate& ev) { return obey(ev); },
      [this](const experiment_pause& ev) { return obey(ev); },
      [this](const experiment_stop& ev) { return obey(ev); },
      [this](const validation_recorded& ev) { step(ev); },
      [this](const trial_finished& ev) {
        if (auto it = trials_.find(ev.trial); it != trials_.end()) {
          by_address_.erase(it->second.address());
          trials_.erase(it);
        }
        step(ev);
      },
      [this](const checkpoint_reported& ev) { step(ev); },
      [this](const perturbation_taken& ev) { step(ev); },
      [this](search_orders& ev) { return ask_for_orders(std::move(ev)); },
      [this](const await_events& x) { return wait_for_events(x); },
      [this](const time_passed&) {
        timer_fired();
        answer_waiting(false);
      },
      [this](const kill_trial& x) -> caf::result<committed> {
        auto it = trials_.find(x.trial);
        if (it == trials_.end())
          return to_caf({errc::conflict, "trial " + to_string(x.trial) + " has ended"});
        self_->send(it->second, trial_stop{trial_state::canceled, true, "killed by " + x.by, x.by});
        return committed{};
      },
      [this](task_call& x) -> caf::result<command_result> {
        auto it = trials_.find(x.allocation.trial());
        if (it == trials_.end())
          return refused({errc::not_found, "trial " + to_string(x.allocation.task) + " has ended"});
        return self_->delegate(it->second, std::move(x));
      },
      [this](const pool_renewed& x) { return meet(x); },
      [this](const experiment_set& ev) { return obey(ev); },
      [this](const pool_chosen& x) {
        peers_.pools.all[x.name] = x.pool;
        peers_.pools.own = x.name;
        for (const auto& [id, trial] : trials_)
          self_->send(trial, x);
      },
    };
  }

private:
  experiment& machine() { return *machine_; }
  void end_children(const caf::error& why) {
    for (const auto& [id, trial] : trials_)
      self_->send_exit(trial, why);
    if (searcher_)
      self_->send_exit(searcher_, why);
    // Whoever asked would wait for its timeout if the promise were only dropped.
    for (auto& meeting : pool_meetings_)
      meeting.deliver(why);
  }
  std::optional<time_point> deadline() const { return std::nullopt; }

  template <class Event>
  caf::result<committed> obey(const Event& ev) {
    if (auto no = machine_->refuses(ev))
      return to_caf(*no);
    auto promise = self_->make_response_promise<committed>();
    step(ev, [promise](const caf::error& why) mutable {
      if (why)
        promise.deliver(why);
      else
        promise.deliver(committed{});
    });
    return promise;
  }

  void start_searcher(const std::string& snapshot) {
    searcher_ = spawn_searcher(self_->system(), {settings_.id, settings_.searcher, settings_.hyperparameters,
                                                 settings_.seed, snapshot, machine_->take_history()});
    self_->monitor(searcher_);
  }

  /// Spawns a searcher in place of one that died. Everything that this machine has decided is durable before
  /// the new searcher reads, so that both stand at the same event.
  void renew_searcher() {
    if (searcher_ || answer_in_hand_)
      return;
    take({}, {}, [this](const caf::error& why) {
      if (why || searcher_ || terminal(machine_->state()))
        return;
      searcher_setup setup{settings_.id, settings_.searcher, settings_.hyperparameters, settings_.seed};
      setup.recall = [reads = peers_.reads, of = settings_](searcher_setup& made) {
        return recall_search(*reads, of, made);
      };
      searcher_ = spawn_searcher(self_->system(), std::move(setup));
      self_->monitor(searcher_);
      if (open_question_)
        ask();
    });
  }

  static result<void> recall_search(const storage::reader& reads, const experiment_settings& of,
                                    searcher_setup& made) {
    auto past = past_of(reads, of);
    if (!past)
      return past.error();
    experiment before(experiment_spec_of(of));
    if (!past->machine.empty())
      if (auto ok = before.restore(past->machine); !ok)
        return ok;
    for (const auto& fact : past->facts)
      before.replay(fact);
    made.snapshot = std::move(past->searcher);
    made.history = before.take_history();
    return {};
  }

  caf::result<pool_joined> meet(const pool_renewed& x) {
    peers_.pools.all[x.name] = x.pool;
    auto promise = self_->make_response_promise<pool_joined>();
    pool_meetings_.push_back(promise);
    auto left = std::make_shared<std::size_t>(trials_.size() + 1);
    auto one_less = [this, left, promise]() mutable {
      if (--*left != 0)
        return;
      promise.deliver(pool_joined{});
      std::erase_if(pool_meetings_, [](const auto& x) { return !x.pending(); });
    };
    for (const auto& [id, trial] : trials_) // a trial that has died asks the pool when it is made again
      self_->request(trial, journal_timeout, x)
        .then([one_less](const pool_joined&) mutable { one_less(); },
              [one_less](const caf::error&) mutable { one_less(); });
    one_less();
    return promise;
  }

  void run(const ask_searcher& x) {
    open_question_ = to_ask(x.event);
    if (searcher_) // without a searcher, the question is asked once the next one exists
      ask();
  }
  void ask() {
    self_->request(searcher_, std::chrono::minutes(10), *open_question_)
      .then([this](search_decided& ev) { give_ids(std::move(ev)); },
            [this](const caf::error& why) {
              if (why == caf::sec::request_receiver_down)
                return; // the down message follows, and then the next searcher is asked
              search_decided failed;
              failed.fault = "the searcher did not answer: " + from_caf(why).what;
              decide(failed);
            });
  }
  void give_ids(search_decided ev) {
    if (ev.created.empty())
      return decide(ev);
    answer_in_hand_ = true;
    self_->request(peers_.cluster, journal_timeout, reserve_trials{ev.created.size()})
      .then(
        [this, ev](const trials_reserved& ids) mutable {
          answer_in_hand_ = false;
          for (std::size_t i = 0; i < ev.created.size(); ++i)
            ev.created[i].trial = {ids.first.value + i};
          decide(ev);
        },
        [this](const caf::error& why) { leave(why); });
  }
  void decide(const search_decided& ev) {
    open_question_.reset();
    step(ev, [this](const caf::error&) { answer_waiting(true); });
    renew_searcher(); // the searcher may have died while its answer was on the way
  }

  // ---- the driver of a custom search

  caf::result<orders_answered> ask_for_orders(search_orders ev) {
    auto promise = self_->make_response_promise<orders_answered>();
    ev.request = ++requests_;
    answers_.emplace(ev.request, promise);
    step(ev);
    return promise;
  }
  void run(const answer_orders& x) {
    if (auto it = answers_.find(x.request); it != answers_.end()) {
      it->second.deliver(orders_answered{x.refused, x.heard, x.created});
      answers_.erase(it);
    }
  }
  caf::result<events_heard> wait_for_events(const await_events& x) {
    auto heard = machine_->facts();
    if (heard > x.after || x.timeout_ms <= 0 || terminal(machine_->state()))
      return events_heard{heard};
    auto promise = self_->make_response_promise<events_heard>();
    auto wait = std::chrono::milliseconds(std::min<std::int64_t>(x.timeout_ms, 60'000));
    waiting_.push_back({promise, x.after, self_->now() + wait});
    self_->delayed_send(experiment_actor{self_}, wait, time_passed{});
    return promise;
  }
  /// Answers the drivers that wait, with what is durable. `news`: whether something new is durable.
  void answer_waiting(bool news) {
    auto heard = machine_->facts();
    std::erase_if(waiting_, [&](waiting_driver& x) {
      bool due = (news && heard > x.after) || self_->now() >= x.until;
      if (due)
        x.promise.deliver(events_heard{heard});
      return due;
    });
  }

  void run(const spawn_trial& x) {
    auto id = x.trial.trial;
    auto known = trials_past_.extract(id); // a new trial has no past
    const auto past = known.empty() ? result<trial_past>(trial_past{}) : std::move(known.mapped());
    auto ok = past ? replayable(past->facts) : result<void>(past.error());
    if (!ok) {
      step(experiment_stop{true, "trial " + to_string(id) + ": " + ok.error().what, true});
      return;
    }
    auto trial =
      spawn_trial_actor(self_->system(), trial_spec_of(settings_, x.trial, x.continued),
                        launch_of(settings_, x.trial, x.continued),
                        {experiment_actor{self_}, peers_.journal, peers_.pools, peers_.reads, peers_.tokens},
                        past->facts, past->of_run);
    trials_[id] = trial;
    by_address_[trial.address()] = id;
    self_->monitor(trial);
    if (x.perturb)
      tell_perturbed(trial, *x.perturb);
    if (x.active)
      self_->send(trial, trial_activate{});
    else
      self_->send(trial, trial_pause{});
  }
  void run(const order_trial& x) {
    auto it = trials_.find(x.trial);
    if (it == trials_.end())
      return;
    switch (x.what) {
    case order_trial::kind::activate:
      return self_->send(it->second, trial_activate{});
    case order_trial::kind::pause:
      return self_->send(it->second, trial_pause{});
    case order_trial::kind::stop:
      return self_->send(it->second, trial_stop{x.outcome, x.kill, x.why});
    case order_trial::kind::perturb:
      return tell_perturbed(it->second, x.perturb);
    }
  }
  void tell_perturbed(const trial_actor& trial, const trial_perturb_decided& x) {
    self_->send(trial, trial_perturb{x.number, x.checkpoint, x.steps, x.hparams});
  }
  void run(const answer_validation& x) {
    if (auto it = trials_.find(x.origin.allocation.trial()); it != trials_.end() && x.origin.sequence)
      self_->send(it->second, validation_answer{x.origin, x.stop, x.reason});
  }
  void run(const tell_resources& x) {
    take_resources(x.now);
    if (const auto pool = peers_.pools.find(peers_.pools.own))
      self_->send(pool, job_changed{settings_.job});
    for (const auto& [id, trial] : trials_)
      self_->send(trial, job_changed{settings_.job});
  }
  void take_resources(const experiment_resources_changed& now) {
    settings_.job.priority = now.priority;
    settings_.job.weight = now.weight;
    settings_.job.max_slots = now.max_slots;
  }
  /// Nobody waits for a snapshot: if keeping it fails, the next snapshot holds everything as well.
  void run(const keep_snapshot& x) {
    if (!searcher_)
      return;
    self_->request(searcher_, std::chrono::minutes(10), search_save{})
      .then(
        [this, x](const search_saved& search) {
          self_
            ->request(peers_.journal, journal_timeout,
                      store_snapshot{entity(settings_.id), x.facts, pack(std::pair{x.machine, search.bytes})})
            .then([](const committed&) {}, [](const caf::error&) {});
        },
        [](const caf::error&) {});
  }
  void run(const report_experiment_end&) {
    if (searcher_)
      self_->send_exit(searcher_, caf::exit_reason::user_shutdown);
    answer_waiting(true);
    for (auto& driver : waiting_)
      driver.promise.deliver(events_heard{machine_->facts()});
    self_->send(peers_.cluster, experiment_finished{settings_.id});
    self_->quit();
  }

  void child_down(const caf::down_msg& down) {
    if (!down.reason || down.reason == caf::exit_reason::user_shutdown ||
        down.reason == caf::exit_reason::kill)
      return;
    if (searcher_ && down.source == searcher_.address()) {
      searcher_ = nullptr;
      if (!searcher_restarts_.again(settings_.id, self_->now()))
        return step(
          experiment_stop{true, "the searcher died again and again: " + from_caf(down.reason).what, true});
      return renew_searcher();
    }
    auto it = by_address_.find(down.source);
    if (it == by_address_.end())
      return;
    auto id = it->second;
    by_address_.erase(it);
    // The trial could not run on (its journal was late, for example): it is made again from what is durable.
    if (!restarts_.again(id, self_->now()))
      return step(experiment_stop{
        true, "trial " + to_string(id) + " died again and again: " + from_caf(down.reason).what, true});
    read_again(id);
  }

  /// Reads the facts of a trial that died, on another thread than this one, which many actors share.
  void read_again(trial_id id) {
    from_journal(entity(id), [this, id](const std::vector<std::string>& stored) {
      auto facts = decoded<trial_fact>(stored, entity(id));
      if (!facts)
        return make_again(id, facts.error());
      const auto run = open_run(id, *facts);
      if (!run)
        return make_again(id, trial_past{std::move(*facts), {}});
      from_journal(entity(run), [this, id, facts = *facts](const std::vector<std::string>& of_run) {
        make_again(id, trial_past{facts, decoded_run(of_run)});
      });
    });
  }
  void make_again(trial_id id, result<trial_past> past) {
    trials_past_.insert_or_assign(id, std::move(past));
    for (auto& action : machine_->resume_trial(id))
      std::visit([this](auto& x) { run(x); }, action);
  }
  void from_journal(const std::string& stream, std::function<void(const std::vector<std::string>&)> then) {
    self_->request(spawn_fact_reader(self_->system(), peers_.reads), journal_timeout, read_facts{stream})
      .then([then](const facts_read& got) { then(got.facts); },
            [this](const caf::error& why) { leave(why); });
  }

  experiment_settings settings_;
  experiment_peers peers_;
  std::optional<experiment> machine_;
  searcher_actor searcher_;                 ///< null between the searcher's death and its next life
  std::optional<search_ask> open_question_; ///< the question whose answer the machine waits for
  bool answer_in_hand_ = false;             ///< whether the answer is here and waits for ids of trials
  std::map<trial_id, trial_actor> trials_;
  std::map<trial_id, result<trial_past>> trials_past_; ///< the stored past of trials that are to be made
  std::map<caf::actor_addr, trial_id> by_address_;
  child_restarts<trial_id> restarts_;
  child_restarts<experiment_id> searcher_restarts_;
  std::vector<caf::typed_response_promise<pool_joined>> pool_meetings_;
  struct waiting_driver {
    caf::typed_response_promise<events_heard> promise;
    std::uint64_t after = 0;
    time_point until;
  };
  std::vector<waiting_driver> waiting_;
  std::map<std::uint64_t, caf::typed_response_promise<orders_answered>> answers_;
  std::uint64_t requests_ = 0;
};

struct broken_replay {
  std::string what;
};

template <class Machine, class Fact>
result<void> replay_apart(Machine machine, const std::vector<Fact>& past, std::uint64_t before = 0) {
  auto previous = set_assertion_handler([](const assertion_failed& x) { throw broken_replay{x.expression}; });
  result<void> outcome;
  std::size_t number = 0;
  try {
    for (; number < past.size(); ++number)
      machine.replay(past[number]);
    static_cast<void>(machine.snapshot());
  } catch (const broken_replay& x) {
    outcome = error{errc::corrupt, "fact " + std::to_string(before + number) +
                                     " of its stream cannot be replayed: " + x.what};
  }
  set_assertion_handler(previous);
  return outcome;
}

} // namespace

result<experiment_past> past_of(const storage::reader& reads, const experiment_settings& of) {
  experiment_past past;
  const auto kept = reads.snapshot_of(entity(of.id));
  if (kept && *kept) {
    auto both = unpack<std::pair<std::string, std::string>>((*kept)->bytes);
    if (both && experiment({}).restore(both->first) &&
        searchers::load_searcher(of.searcher, of.hyperparameters, of.seed, searchers::search_mode::native,
                                 both->second))
      past = {(*kept)->facts, std::move(both->first), std::move(both->second), {}};
  }
  auto facts = facts_of<experiment_fact>(reads, entity(of.id), past.before);
  if (!facts)
    return facts.error();
  past.facts = std::move(*facts);
  return past;
}

result<void> replayable(const experiment_past& past) {
  experiment machine({});
  if (!past.machine.empty())
    if (auto restored = machine.restore(past.machine); !restored)
      return restored;
  return replay_apart(std::move(machine), past.facts, past.before);
}
result<void> replayable(const std::vector<trial_fact>& past) { return replay_apart(trial({}), past); }

void add_trials(experiment_past& past, const storage::reader& reads, const experiment_settings& of,
                time_point now) {
  experiment machine(experiment_spec_of(of));
  if (!past.machine.empty())
    static_cast<void>(machine.restore(past.machine));
  for (const auto& fact : past.facts)
    machine.replay(fact);
  const bool goes_on = past.again.number > machine.continued();
  auto actions = goes_on ? machine.apply(past.again, now).actions : std::vector<experiment_action>{};
  for (const auto& [trial, heard] : machine.heard_rows())
    if (auto rows = reads.metrics(trial, heard, 100'000, "validation"))
      for (const auto& row : *rows)
        past.missed.push_back({trial, {}, row.row, row.steps, row.metrics, row.run});
  if (!goes_on)
    actions = machine.resume(now);
  for (const auto& action : actions) {
    const auto* made = std::get_if<spawn_trial>(&action);
    if (!made)
      continue;
    const auto id = made->trial.trial;
    auto facts = facts_of<trial_fact>(reads, entity(id));
    if (!facts) {
      past.trials.insert_or_assign(id, facts.error());
      continue;
    }
    trial_past one{std::move(*facts), {}};
    if (const auto run = open_run(id, one.facts))
      if (auto stored = reads.facts_of(entity(run)))
        one.of_run = decoded_run(*stored);
    past.trials.insert_or_assign(id, std::move(one));
  }
}

experiment_actor spawn_experiment(caf::actor_system& sys, experiment_setup setup, experiment_peers peers,
                                  const experiment_past& past) {
  using impl =
    shell<experiment_shell_state, experiment_actor, experiment_setup, experiment_peers, experiment_past>;
  return sys.spawn<impl>(std::move(setup), std::move(peers), past);
}

} // namespace troupe
