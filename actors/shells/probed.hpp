#pragma once
// The base of every actor of ours: it counts its mail, measures waits and run times (probe.hpp), knows its
// place in the node's register of live actors, and can be traced, inspected and disturbed from there. The
// shell stands on it.

#include "actors/messages.hpp"
#include "actors/probe.hpp"

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

/// To one actor, for `run` on its own thread between two messages. Never leaves the process, is not counted.
struct probe_order {
  std::shared_ptr<std::function<void(probe_side&)>> run;
};

/// What a trace of messages shows, and where to. Thread-safe; each of the node's actors that it concerns
/// offers its mail.
class message_watch {
public:
  struct wanted {
    std::string actor, kind;                  ///< empty: any
    std::vector<correlation> about;           ///< empty: any
    std::uint64_t requester = 0, request = 0; ///< of one request and its answer; request 0: any
    std::vector<type_key> types;              ///< empty: any
    std::uint64_t most = 100;                 ///< rows; then it is over
    std::uint64_t per_second = 50;
    std::uint64_t until = not_timed; ///< ticks
  };
  struct row {
    std::uint64_t at = 0;
    std::string actor, from, type, about, text;
    std::uint64_t wait = not_timed, run = not_timed;
  };
  struct tally {
    std::uint64_t seen = 0, shown = 0, dropped = 0;
    bool over = false; ///< it has shown all that it may
  };
  message_watch(wanted what, const tick_scale& scale);

  bool concerns(const probe& who) const;
  /// Counts a message that comes `now`, in ticks; is it to be shown? Then `add` follows.
  bool admit(std::uint64_t now, type_key type, correlation about, std::uint64_t requester,
             std::uint64_t request);
  void add(row x);
  std::vector<row> take(tally& so_far);
  bool over() const { return over_.load(std::memory_order_relaxed); }
  void about(std::vector<correlation> x); ///< from now on

  static constexpr std::size_t queue =
    512; ///< rows that nobody has taken; further ones are dropped and counted

private:
  wanted what_;
  std::uint64_t second_;
  std::atomic<std::uint64_t> seen_{0}, dropped_{0}, shown_{0}, window_{0}, in_window_{0};
  std::atomic<bool> over_{false}, any_about_;
  mutable std::mutex mutex_; ///< of rows_ and what_.about
  std::deque<row> rows_;
};

/// A planted disturbance of an actor's mail; only where the node allows faults.
struct message_fault {
  enum class kind { drop, delay, hold };
  std::string actor; ///< empty: every one
  kind what = kind::drop;
  std::atomic<std::int64_t> left{0}; ///< messages still to be dropped or delayed
  std::uint64_t delay = 0;           ///< ticks
  std::uint64_t until = 0;           ///< ticks; the fault is over then, in any case
  std::uint32_t from_node = 0;       ///< hold: of senders there, 0: any
  std::uint64_t from_actor = 0;      ///< hold: of this sender, 0: any
};

/// Something worth knowing that is no fact: an actor died, came again, was disturbed.
struct supervision_event {
  std::uint64_t number = 0;
  time_point at;
  std::string kind, actor, what, user;
};

/// The live actors of one node, and what watches them. Thread-safe.
class probe_register {
public:
  struct entry {
    std::shared_ptr<probe> what;
    caf::weak_actor_ptr who;
  };
  ~probe_register();
  void add(std::shared_ptr<probe> p, caf::weak_actor_ptr who);
  /// `why`: the reason of an end that nobody wanted, or empty.
  void remove(const std::shared_ptr<probe>& p, const std::string& why);
  std::vector<std::shared_ptr<probe>> all() const;
  std::optional<entry> find(const std::string& name) const;
  /// Also of the last thousand that have ended; empty where it is not known.
  std::string name_of(std::uint64_t actor_id) const;
  int restarts(const std::string& name) const;

  void watch(std::shared_ptr<message_watch> x);
  void unwatch(const std::shared_ptr<message_watch>& x);
  void disturb(std::shared_ptr<message_fault> x);
  void forget_faults();
  /// Changes whenever watches or faults do.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  std::vector<std::shared_ptr<message_watch>> watches() const;
  std::vector<std::shared_ptr<message_fault>> faults() const;

  void note(std::string kind, std::string actor, std::string what, std::string user = {});
  /// The newest few with numbers above `after`, oldest first.
  std::vector<supervision_event> events(std::uint64_t after, std::size_t most) const;

  /// One line a message from now on, into this file. Fails when it cannot be opened.
  result<void> trace_to(const std::string& file);
  bool tracing() const { return trace_on_.load(std::memory_order_relaxed); }
  void write(const std::string& actor, const std::string& what, const std::string& text);

  const tick_scale scale;
  std::atomic<int> log_level{2}; ///< 0 error, 1 warning, 2 info, 3 debug: how much goes to stderr
  bool allow_faults = false;     ///< set before any actor lives

private:
  void changed() { version_.fetch_add(1, std::memory_order_relaxed); }
  void note_locked(std::string kind, std::string actor, std::string what, std::string user);

  mutable std::mutex mutex_;
  std::map<std::string, entry> live_;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::deque<std::uint64_t> ended_;
  std::map<std::string, int> restarts_;
  std::set<std::string> dead_;
  std::vector<std::shared_ptr<message_watch>> watches_;
  std::vector<std::shared_ptr<message_fault>> faults_;
  std::deque<supervision_event> events_;
  std::uint64_t newest_event_ = 0;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<bool> trace_on_{false};
  std::FILE* trace_ = nullptr;
};

/// Ours: message types, and the register that the actors of this system enter.
class node_config : public caf::actor_system_config {
public:
  node_config();
  std::shared_ptr<probe_register> probes = std::make_shared<probe_register>();
};

/// Time by CLOCK_BOOTTIME, which never jumps and goes on while the host sleeps: leases hang on it, no fact
/// does.
time_point boot_time();

/// Wall time by the actor's clock, so that tests can move it.
time_point wall_time(const caf::actor_clock& clock);

inline type_key key_of(const caf::type_erased_tuple& content) {
  if (content.empty())
    return 2;
  const auto type = content.type(0);
  return type.first ? type.first + 16u : reinterpret_cast<type_key>(type.second);
}
/// "run_started", "@down": without our namespace.
std::string type_name(const caf::actor_system& sys, type_key key);
/// The node of an actor as a number: 0 for its own.
std::uint32_t node_code(const caf::node_id& of, const caf::node_id& home);

/// What can be read from a message of one of our types.
struct message_reader {
  correlation_reader about = nullptr;
  std::string (*text)(const void*) = nullptr; ///< short, whatever the message's size
  brief_writer brief = nullptr;               ///< the same, cut off early: for the ring
};
/// What a brief_writer wrote, for people; "..." where it was cut off.
std::string text_of_brief(std::string_view bytes);
/// Of the types of `id_block::troupe`; built once, constant from then on.
const std::unordered_map<type_key, message_reader>& message_readers();

/// What stands between an actor and its mail, but for the part on each message's way. One actor's own.
class probe_side {
public:
  struct open_request {
    std::uint64_t id = 0; ///< of the answer
    caf::actor_addr to;
    type_key what = 0;
    std::uint64_t since = 0; ///< ticks
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
  /// Cold: a fault may take the message, a watch may want its text. False: it is not to be handled now.
  bool let_in(caf::mailbox_element& x, type_key type, correlation about);
  /// Cold: what a watch wanted is complete.
  void watched_end(const probe::begun& b);
  /// Cold: of a type of CAF itself.
  void of_caf(const caf::mailbox_element& x, type_key type);
  void obey(caf::mailbox_element& x);
  /// What a fault has held back and is due now, or nullptr.
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
  std::function<value()> heard;    ///< rows of what the actor that it stands for took lately, as of `msgs`
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
  std::vector<std::pair<std::shared_ptr<message_watch>, message_watch::row>>
    shown_; ///< of the message in hand
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

  /// To be called once by the state, in make_behavior. `owner`: who makes it anew when it dies; empty: as its
  /// name says.
  void enter(std::string name, std::string owner = {}) { side_.enter(std::move(name), std::move(owner)); }
  /// How people see its state. `make` runs on this actor, while its state lives.
  void describe_by(std::function<value()> make) { side_.describe = std::move(make); }
  /// The same of one in another process, for which it stands: what that one took lately.
  void tell_heard_by(std::function<value()> make) { side_.heard = std::move(make); }
  /// One word for lists; a literal.
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

  // As CAF's, and noted for "who waits".
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

  /// Writes what was decided, where a trace is on.
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

/// The class of an actor whose state is `State`, with handle type `Handle`. The state is made from the base
/// pointer, then its make_behavior gets the arguments, once.
template <class State, class Handle, class... Args>
class shell final : public caf::stateful_actor<State, probed<typename Handle::base>> {
public:
  using super = caf::stateful_actor<State, probed<typename Handle::base>>;
  explicit shell(caf::actor_config& cfg, Args... args)
      : super(cfg), args_(std::in_place, std::move(args)...) {}
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

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::probe_order)
