#include "actors/worker/worker_actor.hpp"

#include "workers/trial/report_sink.hpp"

#include <caf/all.hpp>

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
    step(phase_entered{}); // its version is checked before anything is built
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

class worker_shell final : public caf::stateful_actor<worker_state, base> {
public:
  worker_shell(caf::actor_config& cfg, trial::handover* orders, std::function<void(std::string)> say)
      : stateful_actor(cfg), orders_(orders), say_(std::move(say)) {}
  worker_actor::behavior_type make_behavior() override { return state.make_behavior(orders_, std::move(say_)); }

private:
  trial::handover* orders_;
  std::function<void(std::string)> say_;
};

/// One thread, and no middleman: nobody outside of this process can mail an actor in it.
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
    worker_ = spawn_worker(system_, orders_, [&sink](std::string word) { sink.say(workers::worker_protocol, std::move(word)); });
    sink_.listen([to = worker_](std::uint64_t protocol, std::string order) { caf::anon_send(to, order_arrived{protocol, std::move(order)}); },
                 [to = worker_](std::string why) { caf::anon_send(to, link_refused{std::move(why)}); });
  }
  ~worker_process() override {
    sink_.listen({}, {});
    caf::anon_send_exit(worker_, caf::exit_reason::user_shutdown);
    worker_ = nullptr;
  }
  void enter(workers::worker_phase phase, std::uint32_t generation, std::int64_t step, std::int64_t batches) override {
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

worker_actor spawn_worker(caf::actor_system& sys, trial::handover& orders, std::function<void(std::string)> say) {
  return sys.spawn<worker_shell>(&orders, std::move(say));
}

namespace trial {

std::unique_ptr<conductor> start_worker(report_sink& sink) { return std::make_unique<worker_process>(sink); }

} // namespace trial
} // namespace troupe
