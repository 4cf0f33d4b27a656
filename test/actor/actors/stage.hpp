#pragma once
// Actors on a scheduler that runs only when told, with a clock that stands still until it is moved, and with
// listeners in place of peers.

#include "actors/messages.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>

namespace troupe {

/// Stands for a peer of any interface. It keeps the messages that it gets, and answers requests with
/// `answers`, or without that with an empty message.
class listener {
public:
  using answers = std::function<caf::result<caf::message>(const caf::message& asked)>;

  listener() = default;
  explicit listener(caf::actor_system& sys, answers answer = {}) {
    self_ =
      sys.spawn([heard = heard_, answer = std::move(answer)](caf::event_based_actor* self) -> caf::behavior {
        self->set_default_handler(
          [heard, answer](caf::scheduled_actor*, caf::message_view& x) -> caf::result<caf::message> {
            heard->push_back(x.move_content_to_message());
            if (answer)
              return answer(heard->back());
            return caf::message{};
          });
        return {[](bool) {}}; // an actor without a behavior would end
      });
  }

  template <class Handle>
  Handle as() const {
    return caf::actor_cast<Handle>(self_);
  }
  /// The messages of one type that the listener has got, oldest first.
  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const auto& x : *heard_)
      if (!x.empty() && x.template match_element<T>(0))
        found.push_back(x.template get_as<T>(0));
    return found;
  }
  template <class Handle, class Message>
  void send(const Handle& to, Message x) const {
    caf::send_as(self_, to, std::move(x));
  }
  void die() {
    caf::anon_send_exit(self_, caf::exit_reason::kill);
    self_ = nullptr;
  }

private:
  std::shared_ptr<std::vector<caf::message>> heard_ = std::make_shared<std::vector<caf::message>>();
  caf::actor self_;
};

/// Ends an actor as if a fault of its own had ended it.
template <class Handle>
void end_with_fault(const Handle& who, const std::string& what) {
  const auto to = caf::actor_cast<caf::strong_actor_ptr>(who);
  to->enqueue(nullptr, caf::make_message_id(),
              caf::make_message(caf::exit_msg{who.address(), to_caf({errc::internal, what})}), nullptr);
}

class Stage : public testing::Test {
protected:
  Stage() {
    config_.set("scheduler.policy", caf::atom("testing"));
    system_ = std::make_unique<caf::actor_system>(config_);
  }
  // Ends actors before the members of the test's class, which hold their handles, are destroyed.
  void TearDown() override {
    for (auto& end : ends_)
      end();
    ends_.clear();
    run();
  }

  listener make_listener(listener::answers answer = {}) {
    listener x(*system_, std::move(answer));
    ends_.push_back([x]() mutable { x.die(); });
    return x;
  }
  /// Ends the actor when the test ends.
  template <class Handle>
  Handle on_stage(Handle x) {
    ends_.push_back([x] { caf::anon_send_exit(x, caf::exit_reason::user_shutdown); });
    return x;
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  }
  void run() { scheduler().run(); }
  /// Moves the clock by one second at a time, so that a timer that is set anew runs as well.
  void pass(std::chrono::seconds time) {
    for (; time.count() > 0; --time) {
      scheduler().advance_time(std::chrono::seconds(1));
      run();
    }
  }

  node_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::vector<std::function<void()>> ends_;
};

} // namespace troupe
