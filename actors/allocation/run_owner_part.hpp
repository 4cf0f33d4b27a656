#pragma once
// The part that the shells of a trial and of a task of another kind share. It owns the allocation of the open
// run, makes the allocation again when it dies, and passes on to it what concerns its pool.

#include "actors/allocation/allocation_actor.hpp"
#include "actors/journal/fact_reader_actor.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/names.hpp"

namespace troupe {

/// `Derived` is a durable shell (actors/shells/durable.hpp) whose machine has `ended` and `open_run`. Its
/// `resumed()` gives the actions of the machine's resume. `Peers` has `journal`, `pools`, `reads` and
/// `tokens`.
template <class Derived, class Handle, class Fact, class Action, class Peers>
class run_owner : protected durable<Derived, Handle, Fact, Action> {
  using shell = durable<Derived, Handle, Fact, Action>;

protected:
  using shell::self_;

  explicit run_owner(actor_base<Handle>* self) : shell(self) {}

  /// `of_open_run`: the facts of the run that is open when this shell begins.
  void own(task_id id, Peers peers, std::vector<allocation_fact> of_open_run) {
    id_ = id;
    peers_ = std::move(peers);
    past_of_run_ = std::move(of_open_run);
    self_->set_down_handler([this](const caf::down_msg& down) {
      // An allocation that died without reporting its end is made again from its facts; its run continues.
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

  /// Hands a command to the allocation of that run.
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

  // ---- the run

  template <class Message>
  void tell_run(Message x) {
    if (allocation_)
      self_->send(allocation_, std::move(x));
  }

  /// Whether `run` is a new run; false where the order to start it is a repeat.
  bool begins(run_id run) { return std::exchange(run_, run) != run; }

  /// `title`: name of the task for its log; empty: the log does not tell of its start.
  void start_run(allocation_spec spec, task_launch& launch, const std::vector<std::string>& not_agents,
                 std::string title) {
    const auto past = std::exchange(past_of_run_, {}); // empty for a new run
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
    if (spec.home != own) // the master died before the run heard of its new pool
      self_->send(allocation_, pool_chosen{own, peers_.pools.find(own)});
  }

  /// Writes a line into the log of the task, once for each source.
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
  run_id run_; ///< the newest run

private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  /// Makes the allocation of the run again. An actor with a thread of its own reads the run's facts, as other
  /// actors share this thread. Where another run is open by then, nothing is made.
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
          for (auto& action : derived().resumed()) // also orders a stop again that the run had been given
            std::visit([this](auto& x) { derived().run(x); }, action);
        },
        [this](const caf::error& why) { this->leave(why); });
  }

  /// The newest placement of the run, whose pool knows it; none: the run is not placed, or the pool is gone.
  std::optional<allocation_placed> placement_in(const std::vector<allocation_fact>& past) const {
    for (auto fact = past.rbegin(); fact != past.rend(); ++fact)
      if (const auto* placed = std::get_if<allocation_placed>(&*fact)) {
        if (placed->on.empty() || !peers_.pools.all.contains(placed->pool))
          break;
        return *placed;
      }
    return std::nullopt;
  }

  allocation_actor allocation_;
  child_restarts<run_id> restarts_;
  std::vector<allocation_fact> past_of_run_; ///< facts of the open run, until its allocation is made
};

} // namespace troupe
