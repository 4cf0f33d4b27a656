#pragma once
// Makes the steps of a shell's machine durable in the way of actors/shells/durable.hpp: one append is in
// flight, and actions run only after the facts of their step are committed. Beside the machine there is a
// twin that sees only decode(encode(fact)); both must always have the same bytes.

#include "test/sim/actors/fake_journal.hpp"
#include "test/sim/actors/planted.hpp"

namespace troupe::sim {

/// `Derived` provides `run(action)` for each action, `alive()`, `deadline()` and `quit()`.
template <class Derived, class Machine, class Fact, class Action>
class durable_shell {
public:
  using done_callback = std::function<void()>;

  Machine machine;

  template <class Event>
  void step(const Event& ev, done_callback done = {}) {
    auto s = machine.apply(ev, w_.now());
    w_.trace([&] { return entity_ + ": " + show(ev) + " -> " + show(s); });
    take(std::move(s.facts), std::move(s.actions), std::move(done));
  }

  void take(std::vector<Fact> facts, std::vector<Action> actions, done_callback done = {}) {
    held h{{}, std::move(actions), std::move(done), facts.empty()};
    for (const auto& f : facts) {
      h.facts.push_back(encode_as(f));
      auto back = decode_as<Fact>(h.facts.back());
      if (!back)
        fail(entity_ + ": " + back.error().what);
      replay_into(twin_, *back);
    }
    if (!facts.empty() && twin_.snapshot() != machine.snapshot())
      fail(entity_ + ": after " + show(facts) + " the replayed state differs from the live one");
    if (planted == planted_bug::act_before_commit)
      run_all(h);
    queue_.push_back(std::move(h));
    pump();
  }

protected:
  durable_shell(world& w, fake_journal& journal, address self, std::string entity, Machine fresh)
      : machine(fresh), w_(w), journal_(journal), self_(self), entity_(std::move(entity)),
        twin_(std::move(fresh)) {
    std::uint64_t before = 0;
    if constexpr (requires { machine.restore(std::string_view()); })
      if (auto kept = journal_.snapshots.find(entity_); kept != journal_.snapshots.end()) {
        before = kept->second.facts;
        if (auto restored = machine.restore(kept->second.machine); !restored)
          fail(entity_ + ": " + restored.error().what);
      }
    for (const auto& bytes : journal_.facts_of(entity_)) {
      auto fact = decode_as<Fact>(bytes);
      if (!fact)
        fail(entity_ + ": " + fact.error().what);
      if (next_ >= before)
        replay_into(machine, *fact);
      replay_into(twin_, *fact);
      ++next_;
    }
    if (next_ < before || twin_.snapshot() != machine.snapshot())
      fail(entity_ + ": restored from a snapshot it differs from the whole replay");
  }

  void begin(std::vector<Action> resumed) {
    w_.trace([&] { return entity_ + ": replayed " + std::to_string(next_) + " -> " + show(resumed); });
    queue_.push_back({{}, std::move(resumed), {}, true});
    pump();
  }

  world& w_;
  fake_journal& journal_;
  address self_;
  std::string entity_;

private:
  struct held {
    std::vector<std::string> facts;
    std::vector<Action> actions;
    done_callback done;
    bool durable = false;
  };
  Derived& derived() { return static_cast<Derived&>(*this); }

  void run_all(held& h) {
    for (auto& action : std::exchange(h.actions, {}))
      std::visit([this](auto& x) { derived().run(x); }, action);
    if (auto done = std::exchange(h.done, {}))
      done();
  }

  void pump() {
    if (pumping_)
      return;
    pumping_ = true;
    while (!queue_.empty() && queue_.front().durable) {
      auto h = std::move(queue_.front());
      queue_.pop_front();
      run_all(h);
    }
    pumping_ = false;
    if (!in_flight_ && !queue_.empty())
      append();
    arm();
  }

  void append() {
    std::vector<std::string> facts;
    for (const auto& h : queue_)
      facts.insert(facts.end(), h.facts.begin(), h.facts.end());
    in_flight_ = true;
    auto covered = queue_.size();
    auto count = facts.size();
    auto* journal = &journal_; // the journal outlives every shell
    auto* w = &w_;
    auto committed = [this, w, covered, count, life = derived().guard(), self = self_] {
      w->send(
        at(role::journal), self,
        [this, covered, count, life] {
          if (!life())
            return;
          in_flight_ = false;
          next_ += count;
          for (std::size_t i = 0; i < covered; ++i)
            queue_[i].durable = true;
          pump();
        },
        repeats::never);
    };
    w_.send(
      self_, at(role::journal),
      [this, journal, entity = entity_, first = next_, facts = std::move(facts),
       committed = std::move(committed), life = derived().guard(), on_master = derived().master_guard()] {
        if (!on_master())
          return;
        // The journal still takes the append of an actor that died; the actor's successor finds a gap and
        // starts again.
        if (!journal->append(entity, first, facts, committed) && life())
          derived().refused();
      },
      repeats::never);
  }

  void arm() {
    auto deadline = derived().deadline();
    if (!deadline || (armed_ && *armed_ <= *deadline))
      return;
    armed_ = *deadline;
    w_.clock.at(*deadline, [this, life = derived().guard()] {
      if (!life())
        return;
      armed_.reset();
      derived().timer();
    });
  }

  Machine twin_;
  std::deque<held> queue_;
  std::uint64_t next_ = 0;
  bool in_flight_ = false, pumping_ = false;
  std::optional<time_point> armed_;
};

} // namespace troupe::sim
