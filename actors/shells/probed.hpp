#pragma once
// The base of all our actors. It counts mail, measures waits and run times (probe.hpp), knows the actor's
// place in the node's register of live actors (probe_register.hpp), and lets the actor be traced, inspected
// and disturbed from there.

#include "actors/messages.hpp"
#include "actors/probe.hpp"
#include "actors/shells/actor_clocks.hpp"
#include "actors/shells/probe_register.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/invoke_message_result.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/type_nr.hpp>

#include <atomic>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

namespace troupe {

class probe_side;

/// Order to one actor: `run` is called on the actor's own thread between two messages. Never leaves the
/// process, and is not counted.
struct probe_order {
  std::shared_ptr<std::function<void(probe_side&)>> run;
};

inline type_key key_of(const caf::type_erased_tuple& content) {
  if (content.empty())
    return 2;
  const auto type = content.type(0);
  return type.first ? type.first + 16u : reinterpret_cast<type_key>(type.second);
}
/// The name of a message's type, without our namespace: "run_started", "@down".
std::string type_name(const caf::actor_system& sys, type_key key);
/// The node of an actor as a number: 0 for the node of `home`.
std::uint32_t node_code(const caf::node_id& of, const caf::node_id& home);

/// Functions that read a message of one of our types.
struct message_reader {
  correlation_reader about = nullptr;
  std::string (*text)(const void*) = nullptr; ///< text of limited length, whatever the message's size
  brief_writer brief = nullptr;               ///< beginning of the message for the probe's ring
};
/// The text for people of what a brief_writer wrote; "..." where it was cut off.
std::string text_of_brief(std::string_view bytes);
/// The readers for the types of `id_block::troupe`; made once, and constant from then on.
const std::unordered_map<type_key, message_reader>& message_readers();

/// The rarely needed part of what stands between one actor and its mail. Only that actor uses it.
class probe_side {
public:
  struct open_request {
    std::uint64_t id = 0; ///< id of the answer
    caf::actor_addr to;
    type_key what = 0;
    std::uint64_t since = 0; ///< in ticks
  };

  explicit probe_side(caf::local_actor* self);
  void enter(std::string name, std::string owner);
  void leave(const caf::error& why);

  bool stale() const noexcept { return register_ && register_->version() != seen_version_; }
  void refresh();
  bool watched() const noexcept { return watched_; }
  probe::type_slot* slot(type_key type) {
    auto* known = probe_->slot_of(type);
    return known ? known : new_slot(type);
  }
  /// Rarely called: a fault may take the message, and a watch may want its text. False: the message is not
  /// handled now.
  bool let_in(caf::mailbox_element& x, type_key type, correlation about);
  /// Rarely called: completes the rows of watches for the message that has been handled.
  void watched_end(const probe::begun& b);
  /// Rarely called: for messages whose type is one of CAF's own.
  void of_caf(const caf::mailbox_element& x, type_key type);
  void obey(caf::mailbox_element& x);
  /// The next held message that is due now, or nullptr.
  caf::mailbox_element_ptr next_due();
  void releasing(bool on) { releasing_ = on; }

  void asked(caf::message_id answer, caf::actor_addr to, type_key what);
  void answered(caf::message_id answer);
  void monitors(caf::actor_addr x) { monitored_.push_back(std::move(x)); }
  void monitors_not(const caf::actor_addr& x);

  probe& mine() { return *probe_; }
  probe_register* reg() const { return register_.get(); }
  caf::local_actor* self() const { return self_; }
  std::function<value()> describe; ///< the machine's state, for people
  /// Rows, as in `msgs`, of what an actor in another process took lately, if this actor stands for it.
  std::function<value()> heard;
  const std::deque<open_request>& open() const { return open_; }
  const std::vector<caf::actor_addr>& monitored() const { return monitored_; }

private:
  struct held {
    caf::mailbox_element_ptr mail;
    std::uint64_t due = 0;
  };
  probe::type_slot* new_slot(type_key type);
  void hold(caf::mailbox_element& x, std::uint64_t due);
  void wake(std::uint64_t in_ticks);
  std::string sender_name(const caf::mailbox_element& x) const;

  caf::local_actor* self_;
  std::shared_ptr<probe> probe_;
  std::shared_ptr<probe_register> register_;
  std::uint64_t seen_version_ = 0;
  bool watched_ = false, to_file_ = false, releasing_ = false;
  std::vector<std::shared_ptr<message_watch>> watches_;
  std::vector<std::shared_ptr<message_fault>> faults_;
  /// Rows of watches for the current message.
  std::vector<std::pair<std::shared_ptr<message_watch>, message_watch::row>> shown_;
  std::uint64_t hand_at_ = 0;
  std::deque<held> held_;
  std::deque<open_request> open_;
  std::vector<caf::actor_addr> monitored_;
};

template <class Base>
class probed : public Base {
public:
  explicit probed(caf::actor_config& cfg) : Base(cfg), side_(this) {}
  ~probed() override { side_.leave(caf::none); }

  /// To be called once by the state, in make_behavior. `owner`: the actor that makes this one again when it
  /// dies; empty: derived from the name.
  void enter(std::string name, std::string owner = {}) { side_.enter(std::move(name), std::move(owner)); }
  /// Sets what people see of the state. `make` runs on this actor, while its state lives.
  void describe_by(std::function<value()> make) { side_.describe = std::move(make); }
  /// Sets the rows of what an actor in another process took lately, if this actor stands for it.
  void tell_heard_by(std::function<value()> make) { side_.heard = std::move(make); }
  /// Sets the word for the state in lists; the text must be a literal.
  void show(const char* state) { side_.mine().show(state); }

  using Base::enqueue;
  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* unit) override {
    side_.mine().arrived();
    Base::enqueue(std::move(x), unit);
  }
  using Base::consume;
  caf::invoke_message_result consume(caf::mailbox_element& x) override {
    if (side_.stale()) [[unlikely]]
      side_.refresh();
    const auto& content = static_cast<const caf::mailbox_element&>(x).content();
    const auto type = key_of(content);
    if (type == reinterpret_cast<type_key>(&typeid(probe_order))) [[unlikely]] {
      side_.obey(x);
      deliver_held();
      return caf::invoke_message_result::consumed;
    }
    auto& mine = side_.mine();
    auto* slot = side_.slot(type);
    correlation about = 0;
    if (slot->reads)
      about = slot->reads(content.get(0));
    if (type < 256) [[unlikely]]
      side_.of_caf(x, type);
    if (side_.watched() && !side_.let_in(x, type, about)) [[unlikely]]
      return caf::invoke_message_result::consumed;
    const auto request = x.mid.integer_value();
    if (x.mid.is_response())
      side_.answered(x.mid);
    const auto sender = x.sender ? x.sender->id() : 0;
    const auto node = x.sender ? node_code(x.sender->node(), this->node()) : 0;
    const auto brief = slot->writes && mine.calm() ? mine.keep(slot->writes, content.get(0)) : 0;
    const auto begun = mine.begin(slot, brief);
    const auto outcome = Base::consume(x);
    if (outcome == caf::invoke_message_result::skipped) {
      mine.passed();
      return outcome;
    }
    mine.end(begun, sender, node, request, about);
    if (side_.watched()) [[unlikely]]
      side_.watched_end(begun);
    return outcome;
  }
  void on_cleanup(const caf::error& why) override {
    side_.leave(why);
    Base::on_cleanup(why);
  }

  // Does what CAF's function does, and notes the request for "who waits".
  template <class Handle, class Timeout, class First, class... Ts>
  auto request(const Handle& to, const Timeout& timeout, First&& first, Ts&&... more) {
    auto handle = Base::request(to, timeout, std::forward<First>(first), std::forward<Ts>(more)...);
    if (to)
      side_.asked(handle.id(), caf::actor_cast<caf::actor_addr>(to),
                  reinterpret_cast<type_key>(&typeid(std::decay_t<First>)));
    return handle;
  }
  template <class Handle>
  void monitor(const Handle& who) {
    Base::monitor(who);
    if (who)
      side_.monitors(caf::actor_cast<caf::actor_addr>(who));
  }
  void demonitor(const caf::actor_addr& who) {
    Base::demonitor(who);
    side_.monitors_not(who);
  }

  time_point now() { return wall_time(this->clock()); }

  /// Writes what was decided if a trace is on.
  template <class Text>
  void trace_decision(Text text) {
    if (auto* reg = side_.reg(); reg && reg->tracing())
      reg->write(side_.mine().name, "decided", text());
  }

private:
  void deliver_held() {
    while (auto mail = side_.next_due()) {
      if (!this->alive())
        return;
      side_.releasing(true);
      consume(*mail);
      side_.releasing(false);
    }
  }

  probe_side side_;
};

/// The class of an actor whose state is `State`, with handle type `Handle`. The state is made from a pointer
/// to the base; then its make_behavior gets the arguments, once.
template <class State, class Handle, class... Args>
class shell final : public caf::stateful_actor<State, probed<typename Handle::base>> {
public:
  using super = caf::stateful_actor<State, probed<typename Handle::base>>;
  explicit shell(caf::actor_config& cfg, Args... args)
      : super(cfg), args_(std::in_place, std::move(args)...) {}
  typename Handle::behavior_type make_behavior() override {
    auto args = std::move(*args_);
    args_.reset(); // no handle lives longer than its use here
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

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::probe_order)
