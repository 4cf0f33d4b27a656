#pragma once
// The base of every actor of ours: it counts its mail, measures its run time, knows its place in the node's register
// of live actors, and can write a trace. The shell and the metrics page stand on it.

#include "actors/messages.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/invoke_message_result.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/stateful_actor.hpp>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>

namespace troupe {

/// What one actor counts. Read from any thread.
struct probe {
  std::atomic<std::uint64_t> in{0}, done{0}, run_ns{0};
  std::string name; ///< set once, before the first message is handled
};

/// The live actors of one node, and its trace file if there is one. Thread-safe.
class probe_register {
public:
  ~probe_register();
  void add(std::shared_ptr<probe> p);
  void remove(const std::shared_ptr<probe>& p);
  std::vector<std::shared_ptr<probe>> all() const;

  /// One line a message from now on, into this file. Fails when it cannot be opened.
  result<void> trace_to(const std::string& file);
  bool tracing() const { return trace_on_.load(std::memory_order_relaxed); }
  void write(const std::string& actor, const std::string& what, const std::string& text);

private:
  mutable std::mutex mutex_;
  std::set<std::shared_ptr<probe>> probes_;
  std::atomic<bool> trace_on_{false};
  std::FILE* trace_ = nullptr;
};

/// Ours: message types, and the register that the actors of this system enter.
class node_config : public caf::actor_system_config {
public:
  node_config();
  std::shared_ptr<probe_register> probes = std::make_shared<probe_register>();
};

/// Time by CLOCK_BOOTTIME, which never jumps and goes on while the host sleeps: leases hang on it, no fact does.
time_point boot_time();

/// Wall time by the actor's clock, so that tests can move it.
time_point wall_time(const caf::actor_clock& clock);

template <class Base>
class probed : public Base {
public:
  explicit probed(caf::actor_config& cfg) : Base(cfg), probe_(std::make_shared<probe>()) {
    if (auto* ours = dynamic_cast<const node_config*>(&this->system().config()))
      register_ = ours->probes;
  }
  ~probed() override { leave(); }

  /// To be called once by the state, in make_behavior.
  void enter(std::string name) {
    probe_->name = std::move(name);
    if (register_)
      register_->add(probe_);
  }

  using Base::enqueue;
  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* unit) override {
    probe_->in.fetch_add(1, std::memory_order_relaxed);
    Base::enqueue(std::move(x), unit);
  }
  using Base::consume;
  caf::invoke_message_result consume(caf::mailbox_element& x) override {
    if (register_ && register_->tracing())
      trace(x);
    auto begin = std::chrono::steady_clock::now();
    auto outcome = Base::consume(x);
    auto took = std::chrono::steady_clock::now() - begin;
    probe_->run_ns.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
    probe_->done.fetch_add(1, std::memory_order_relaxed);
    return outcome;
  }
  void on_cleanup(const caf::error& why) override {
    leave();
    Base::on_cleanup(why);
  }

  time_point now() { return wall_time(this->clock()); }

  /// Writes what was decided, where a trace is on.
  template <class Text>
  void trace_decision(Text text) {
    if (register_ && register_->tracing())
      register_->write(probe_->name, "decided", text());
  }

private:
  void trace(const caf::mailbox_element& x) {
    const auto& content = const_cast<caf::mailbox_element&>(x).content();
    std::string types;
    for (std::size_t i = 0; i < content.size(); ++i)
      types += (i ? "," : "") + this->system().types().portable_name(content.type(i));
    register_->write(probe_->name, types, to_string(content));
  }
  void leave() {
    if (register_)
      register_->remove(probe_);
    register_.reset();
  }

  std::shared_ptr<probe> probe_;
  std::shared_ptr<probe_register> register_;
};

/// The class of an actor whose state is `State`, with handle type `Handle`. The state is made from the base pointer,
/// then its make_behavior gets the arguments, once.
template <class State, class Handle, class... Args>
class shell final : public caf::stateful_actor<State, probed<typename Handle::base>> {
public:
  using super = caf::stateful_actor<State, probed<typename Handle::base>>;
  explicit shell(caf::actor_config& cfg, Args... args) : super(cfg), args_(std::in_place, std::move(args)...) {}
  typename Handle::behavior_type make_behavior() override {
    auto args = std::move(*args_);
    args_.reset(); // no handle outlives its use here
    auto behavior =
      std::apply([this](auto&... xs) { return this->state.make_behavior(std::move(xs)...); }, args);
    return behavior;
  }

private:
  std::optional<std::tuple<Args...>> args_;
};

template <class Handle>
using actor_base = probed<typename Handle::base>;

} // namespace troupe
