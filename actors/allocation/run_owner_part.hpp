#pragma once
// What the shells of a trial and of a task of another kind share: the allocation of the run that is open,
// which is made again when it dies, and what stands between it and the pools.

#include "actors/allocation/allocation_actor.hpp"
#include "actors/journal/fact_reader_actor.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/names.hpp"

namespace troupe {

/// `Derived` is a durable shell (actors/shells/durable.hpp), whose machine tells `ended` and `open_run`, and
/// gives `resumed()`, the actions of the machine's resume. `Peers` has `journal`, `pools`, `reads` and
/// `tokens`.
template <class Derived, class Handle, class Fact, class Action, class Peers>
class run_owner : protected durable<Derived, Handle, Fact, Action> {
  using shell = durable<Derived, Handle, Fact, Action>;

protected:
  using shell::self_;

  explicit run_owner(actor_base<Handle>* self) : shell(self) {}

  /// `of_open_run`: the facts of the run that is open when it begins.
  void own(task_id id, Peers peers, std::vector<allocation_fact> of_open_run) {
    id_ = id;
    peers_ = std::move(peers);
    past_of_run_ = std::move(of_open_run);
    self_->set_down_handler([this](const caf::down_msg& down) {
      // An allocation that died without a word is made again from its facts; its run goes on.
      if (!allocation_ || down.source != allocation_.address() || !down.reason || !is_open(run_))
        return;
      if (!restarts_.again(run_, self_->now()))
        return this->leave(
          to_caf({errc::internal, entity(allocation_id{id_, run_}) +
                                    " died again and again: " + from_caf(down.reason).what}));
      make_again(run_);
    });
  }

  void end_children(const caf::error& why) {
    if (allocation_)
      self_->send_exit(allocation_, why);
  }

  bool is_open(run_id run) { return allocation_ && run == derived().machine().open_run(); }

  /// A command for the allocation of that run.
  template <class OfAllocation>
  caf::result<command_result> hand_on(const allocation_id& run, OfAllocation x) {
    if (!is_open(run.run))
      return over(run);
    return self_->delegate(allocation_, task_call_of(run, std::move(x)));
  }
  static command_result over(const allocation_id& run) {
    return refused({errc::conflict, "allocation " + to_string(run) + " is over"});
  }

  template <class Event>
  caf::result<command_result> durably(const Event& ev) {
    auto promise = self_->template make_response_promise<command_result>();
    this->step(ev, [promise](const caf::error& why) mutable {
      promise.deliver(why ? refused(from_caf(why)) : answered());
    });
    return promise;
  }

  // ---- pools

  caf::result<pool_joined> meet(pool_renewed& x) {
    peers_.pools.all[x.name] = x.pool;
    if (!allocation_)
      return pool_joined{};
    return self_->delegate(allocation_, std::move(x));
  }
  void move_to(const pool_chosen& x) {
    peers_.pools.all[x.name] = x.pool;
    peers_.pools.own = x.name;
    tell_run(x);
  }

  // ---- its run

  template <class Message>
  void tell_run(Message x) {
    if (allocation_)
      self_->send(allocation_, std::move(x));
  }

  /// Whether it is another run than the one before, and not an order that is repeated.
  bool begins(run_id run) { return std::exchange(run_, run) != run; }

  /// `title`: name of what runs, for its log; empty: the log does not tell of its start.
  void start_run(allocation_spec spec, task_launch& launch, const std::vector<std::string>& not_agents,
                 std::string title) {
    const auto past = std::exchange(past_of_run_, {}); // a new run has none
    launch.allocation_name = allocation_name(launch.experiment, spec.id);
    launch.session_token = peers_.tokens.session ? peers_.tokens.session(spec.id) : std::string();
    auto& kept_away = spec.run.rules.not_agents;
    kept_away.insert(kept_away.end(), not_agents.begin(), not_agents.end());
    spec.run.excluded = not_agents;
    const auto& own = peers_.pools.own;
    const auto placed = placement_in(past);
    const auto pool = placed ? placed->pool : own;
    spec.home = placed && !placed->home.empty() ? placed->home : pool;
    allocation_ = spawn_allocation(self_->system(), spec, launch,
                                   {allocation_owner{Handle{self_}}, peers_.journal, peers_.pools.find(pool),
                                    pool, peers_.pools, std::move(title)},
                                   past);
    self_->monitor(allocation_);
    if (spec.home != own) // the master died before the run heard that it has to move
      self_->send(allocation_, pool_chosen{own, peers_.pools.find(own)});
  }

  /// Into the log of the task, once for each source.
  void say(const std::string& source, std::string text, const char* level) {
    log_line line;
    line.at = self_->now();
    line.allocation = {id_, run_};
    line.stream = "troupe";
    line.level = level;
    line.text = std::move(text);
    self_
      ->request(peers_.journal, journal_timeout,
                append_log{id_, {std::move(line)}, this->entity_ + "/" + source, 1})
      .then([](const committed&) {}, [](const caf::error&) {});
  }

  task_id id_;
  Peers peers_;
  run_id run_; ///< the newest

private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  /// What the run has in the journal is read on another thread than this one, which many share. By then
  /// another run may be open, which has nothing to do with it.
  void make_again(run_id run) {
    self_
      ->request(spawn_fact_reader(self_->system(), peers_.reads), journal_timeout,
                read_facts{entity(allocation_id{id_, run})})
      .then(
        [this, run](const facts_read& stored) {
          if (run != run_ || !is_open(run))
            return;
          past_of_run_.clear();
          for (const auto& bytes : stored.facts)
            if (auto fact = decode_as<allocation_fact>(bytes))
              past_of_run_.push_back(std::move(*fact));
          run_ = {};
          for (auto& action : derived().resumed()) // the stop it may have carried is ordered again
            std::visit([this](auto& x) { derived().run(x); }, action);
        },
        [this](const caf::error& why) { this->leave(why); });
  }

  /// A run that was placed is known to the pool that placed it.
  std::optional<allocation_placed> placement_in(const std::vector<allocation_fact>& past) const {
    for (const auto& fact : past)
      if (const auto* placed = std::get_if<allocation_placed>(&fact);
          placed && peers_.pools.all.contains(placed->pool))
        return *placed;
    return std::nullopt;
  }

  allocation_actor allocation_;
  child_restarts<run_id> restarts_;
  std::vector<allocation_fact> past_of_run_; ///< of the open run, until it has its allocation
};

} // namespace troupe
