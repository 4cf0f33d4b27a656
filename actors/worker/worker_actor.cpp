#include "actors/worker/worker_actor.hpp"

#include "actors/probe.hpp"
#include "workers/trial/report_sink.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <tuple>

namespace troupe {
namespace {

using base = worker_actor::base;
using namespace std::chrono_literals;

class worker_state {
public:
  static inline const char* name = "worker";
  explicit worker_state(base* self) : self_(self) {}

  worker_actor::behavior_type make_behavior(trial::handover* orders, std::function<void(std::string)> say) {
    orders_ = orders;
    say_ = std::move(say);
    step(phase_entered{}); // the version is checked before anything is built
    tick();
    return {
      [this](const order_arrived& ev) { step(ev); },
      [this](const phase_entered& ev) { step(ev); },
      [this](const training_failed& ev) {
        step(ev);
        return true;
      },
      [this](const link_refused& ev) { step(ev); },
      [this](const second_passed&) {
        step(second_passed{orders_->step()});
        tick();
      },
    };
  }

private:
  void tick() { self_->delayed_send(worker_actor{self_}, 1s, second_passed{}); }
  void step(const worker_event& ev) {
    for (auto& action : machine_.apply(ev))
      std::visit([this](auto& x) { run(x); }, action);
  }
  void run(hand_over& x) { orders_->give(std::move(x.mandate)); }
  void run(say_word& x) { say_(std::move(x.word)); }

  base* self_;
  trial::handover* orders_ = nullptr;
  std::function<void(std::string)> say_;
  worker machine_;
};

/// How messages of the worker are shown to people.
struct shown_message {
  const std::type_info& type;
  const char* name;
  brief_writer writes;
};
template <class Text>
std::size_t text_brief(const void* content, char* to, std::size_t most) {
  return pack_beginning(static_cast<const Text*>(content)->why, to, most);
}
const shown_message shown_messages[] = {
  {typeid(order_arrived), "order_arrived",
   [](const void* content, char* to, std::size_t most) { // the order is packed already
     return static_cast<const order_arrived*>(content)->order.copy(to, most);
   }},
  {typeid(phase_entered), "phase_entered",
   [](const void* content, char* to, std::size_t most) {
     const auto& x = *static_cast<const phase_entered*>(content);
     return pack_beginning(
       std::make_tuple(std::string_view(workers::name(x.phase)), x.generation, x.step, x.batches), to, most);
   }},
  {typeid(training_failed), "training_failed", text_brief<training_failed>},
  {typeid(link_refused), "link_refused", text_brief<link_refused>},
};

/// Notes the worker's messages except the tick of each second, and reports them with the next tick.
class worker_shell final : public caf::stateful_actor<worker_state, base> {
public:
  using super = caf::stateful_actor<worker_state, base>;
  worker_shell(caf::actor_config& cfg, trial::handover* orders, std::function<void(std::string)> say)
      : super(cfg), orders_(orders), say_(std::move(say)) {}
  worker_actor::behavior_type make_behavior() override { return state.make_behavior(orders_, say_); }

  using super::enqueue;
  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* unit) override {
    mail_->arrived();
    super::enqueue(std::move(x), unit);
  }
  using super::consume;
  caf::invoke_message_result consume(caf::mailbox_element& x) override {
    const auto& content = static_cast<const caf::mailbox_element&>(x).content();
    const auto* type = content.empty() ? nullptr : content.type(0).second;
    const auto* known = std::find_if(std::begin(shown_messages), std::end(shown_messages),
                                     [&](const auto& one) { return type && *type == one.type; });
    if (known == std::end(shown_messages)) {
      mail_->not_counted();
      const auto outcome = super::consume(x);
      tell();
      return outcome;
    }
    const auto key = reinterpret_cast<type_key>(known);
    auto* slot = mail_->slot_of(key);
    if (!slot)
      slot = mail_->add_slot(key, nullptr, known->writes);
    const auto begun = mail_->begin(slot, mail_->calm() ? mail_->keep(slot->writes, content.get(0)) : 0);
    const auto outcome = super::consume(x);
    if (outcome == caf::invoke_message_result::skipped)
      mail_->passed();
    else
      mail_->end(begun, 0, 0, 0, 0);
    return outcome;
  }

private:
  void tell() {
    if (std::exchange(told_, mail_->done()) == mail_->done())
      return;
    const auto now = scale_.now();
    const auto ns = [&](std::uint64_t ticks) {
      return ticks == not_timed ? -1 : static_cast<std::int64_t>(now.microseconds(ticks) * 1000);
    };
    workers::worker_heard word{mail_->done(), {}};
    for (auto& note : mail_->recent())
      word.recent.push_back({now.wall_at(note.at),
                             reinterpret_cast<const shown_message*>(note.type)->name,
                             {note.brief.begin(), note.brief.end()},
                             ns(note.wait),
                             ns(note.run)});
    say_(workers::encode_worker(workers::worker_word{std::move(word)}));
  }

  trial::handover* orders_;
  std::function<void(std::string)> say_;
  const std::unique_ptr<probe> mail_ = std::make_unique<probe>();
  tick_scale scale_;
  std::uint64_t told_ = 0;
};

/// The actor system has one thread and no middleman: nobody outside of this process can send messages to its
/// actor.
struct settings_of_process : caf::actor_system_config {
  settings_of_process() {
    add_message_types<caf::id_block::troupe_worker>();
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", 1);
  }
};

class worker_process final : public trial::conductor {
public:
  explicit worker_process(trial::report_sink& sink) : sink_(sink), system_(settings_) {
    worker_ = spawn_worker(
      system_, orders_, [&sink](std::string word) { sink.say(workers::worker_protocol, std::move(word)); });
    sink_.listen(
      [to = worker_](std::uint64_t protocol, std::string order) {
        caf::anon_send(to, order_arrived{protocol, std::move(order)});
      },
      [to = worker_](std::string why) { caf::anon_send(to, link_refused{std::move(why)}); });
  }
  ~worker_process() override {
    sink_.listen({}, {});
    caf::anon_send_exit(worker_, caf::exit_reason::user_shutdown);
    worker_ = nullptr;
  }
  void enter(workers::worker_phase phase, std::uint32_t generation, std::int64_t step,
             std::int64_t batches) override {
    orders_.stepped(step);
    caf::anon_send(worker_, phase_entered{phase, generation, step, batches});
  }
  void fail(const std::string& why) override {
    caf::scoped_actor self{system_};
    self->request(worker_, 1s, training_failed{why}).receive([](bool) {}, [](const caf::error&) {});
  }

private:
  trial::report_sink& sink_;
  settings_of_process settings_;
  caf::actor_system system_;
  worker_actor worker_;
};

} // namespace

worker_actor spawn_worker(caf::actor_system& sys, trial::handover& orders,
                          std::function<void(std::string)> say) {
  return sys.spawn<worker_shell>(&orders, std::move(say));
}

namespace trial {

std::unique_ptr<conductor> start_worker(report_sink& sink) { return std::make_unique<worker_process>(sink); }

} // namespace trial
} // namespace troupe
