#pragma once
// How a shell makes its machine's steps durable: facts go to the journal in the order of the steps, one
// append at a time, and the actions of a step run only after its facts are committed.

#include "actors/shells/driven.hpp"
#include "actors/shells/probed.hpp"

#include <caf/mixin/requester.hpp>

#include <deque>
#include <functional>

namespace troupe {

inline constexpr auto journal_timeout = std::chrono::seconds(30);
/// Set by a test (driven.hpp) that reads many snapshots: what people see of a machine is left out.
inline constexpr auto snapshots_alone = "snapshots-alone";

/// `Derived` has `machine()`, one `run(action)` for each type of action, and `end_children(reason)`: an actor
/// that has to end also ends the actors that it owns. `Fact` and `Action` are the machine's variants.
template <class Derived, class Handle, class Fact, class Action>
class durable {
public:
  using done_callback = std::function<void(const caf::error&)>; ///< gets none() once the facts are durable

protected:
  explicit durable(actor_base<Handle>* self) : self_(self) {}

  /// `stored`: number of facts of `entity` in the journal; `resumed`: the actions of the machine's resume.
  void begin(std::string entity, std::uint64_t stored, journal_actor journal, std::vector<Action> resumed) {
    entity_ = std::move(entity);
    next_ = stored;
    journal_ = std::move(journal);
    self_->describe_by([this] {
      const bool snapshot_alone = set_by_test(self_->system(), snapshots_alone, 0) != 0;
      auto shown = snapshot_alone ? value::object() : derived().machine().describe();
      shown["facts"] = next_;
      shown["steps_not_durable"] = queue_.size();
      // A test compares it with what a replay of the stored facts gives.
      if constexpr (requires { derived().machine().snapshot(); })
        if (queue_.empty() && !gathered_ && driven_by_test(self_->system())) {
          const auto bytes = derived().machine().snapshot();
          shown["snapshot"] = value::binary({bytes.begin(), bytes.end()});
        }
      return shown;
    });
    show();
    self_->set_exit_handler([this](caf::exit_msg& x) { leave(x.reason); });
    queue_.push_back({{}, std::move(resumed), {}, true});
    pump();
  }

  template <class Event>
  void step(const Event& ev, done_callback done = {}) {
    auto s = derived().machine().apply(ev, self_->now());
    take(std::move(s.facts), std::move(s.actions), std::move(done));
  }

  void take(std::vector<Fact> facts, std::vector<Action> actions, done_callback done = {}) {
    self_->trace_decision([&] {
      std::string text;
      for (const auto& f : facts)
        std::visit([&](const auto& x) { text += std::string(x.tag) + " "; }, f);
      return text + "actions: " + std::to_string(actions.size());
    });
    held h{{}, std::move(actions), std::move(done), facts.empty()};
    for (const auto& f : facts)
      h.facts.push_back(encode_as(f));
    if (gathering_ > 0)
      return gather(std::move(h));
    queue_.push_back(std::move(h));
    show();
    pump();
  }

  /// Until `end_together` was called as often: all steps from here on count as one, whose facts are committed
  /// together.
  void begin_together() { ++gathering_; }
  void end_together() {
    if (gathering_ == 0 || --gathering_ > 0 || !gathered_)
      return;
    gathered_->done = [all = std::exchange(gathered_done_, {})](const caf::error& why) {
      for (const auto& done : all)
        done(why);
    };
    queue_.push_back(std::move(*gathered_));
    gathered_.reset();
    show();
    pump();
  }

  /// To be called by the handler of time_passed: facts that were refused for lack of space are sent again.
  void timer_fired() {
    armed_ = {};
    pump();
  }

  void leave(const caf::error& why) {
    derived().end_children(why);
    self_->quit(why);
  }

  void arm(std::optional<time_point> deadline) {
    if (!deadline || (armed_ && *armed_ <= *deadline))
      return;
    armed_ = *deadline;
    auto wait = std::max<duration>(*deadline - self_->now(), duration{0});
    self_->delayed_send(Handle{self_}, wait, time_passed{});
  }

  actor_base<Handle>* self_;
  journal_actor journal_;
  std::string entity_;

private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  void show() {
    if constexpr (requires { derived().machine().shown(); })
      self_->show(derived().machine().shown());
  }

  struct held {
    std::vector<std::string> facts;
    std::vector<Action> actions;
    done_callback done;
    bool durable = false;
  };
  void gather(held h) {
    if (h.done)
      gathered_done_.push_back(std::move(h.done));
    if (!gathered_) {
      gathered_ = std::move(h);
      return;
    }
    auto& all = *gathered_;
    std::move(h.facts.begin(), h.facts.end(), std::back_inserter(all.facts));
    std::move(h.actions.begin(), h.actions.end(), std::back_inserter(all.actions));
    all.durable = all.durable && h.durable;
  }

  void pump() {
    if (pumping_)
      return;
    pumping_ = true;
    while (!queue_.empty() && queue_.front().durable) {
      auto h = std::move(queue_.front());
      queue_.pop_front();
      for (auto& action : h.actions)
        std::visit([this](auto& x) { derived().run(x); }, action);
      if (h.done)
        h.done(caf::none);
    }
    pumping_ = false;
    if (!in_flight_ && !queue_.empty())
      append();
    arm(derived().deadline());
  }

  void append() {
    constexpr std::size_t most_bytes = 512 << 10; // a message stays below 1 MiB
    append_facts message{entity_, next_, {}};
    std::size_t covered = 0, bytes = 0;
    for (const auto& h : queue_) {
      if (covered > 0 && bytes > most_bytes)
        break;
      for (const auto& f : h.facts) {
        message.facts.push_back(f);
        bytes += f.size();
      }
      ++covered;
    }
    in_flight_ = true;
    auto count = message.facts.size();
    self_->request(journal_, journal_timeout, std::move(message))
      .then(
        [this, covered, count](const committed&) {
          in_flight_ = false;
          next_ += count;
          for (std::size_t i = 0; i < covered; ++i)
            queue_[i].durable = true;
          pump();
        },
        [this](const caf::error& why) {
          in_flight_ = false;
          if (from_caf(why).code == errc::no_space) {
            // Nothing is lost: the steps wait here until the disk has room again.
            armed_ = {};
            self_->delayed_send(Handle{self_}, std::chrono::milliseconds(500), time_passed{});
            return;
          }
          for (auto& h : queue_)
            if (h.done)
              h.done(why);
          leave(why); // the actor is made again from the journal, which knows what is true
        });
  }

  std::deque<held> queue_;
  int gathering_ = 0;            ///< number of `begin_together` without an `end_together`
  std::optional<held> gathered_; ///< the steps since the first `begin_together`
  std::vector<done_callback> gathered_done_;
  std::uint64_t next_ = 0;
  bool in_flight_ = false, pumping_ = false;
  std::optional<time_point> armed_;
};

} // namespace troupe
