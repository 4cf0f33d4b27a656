#include "actors/worker/stand_in_actor.hpp"

#include "actors/shells/driven.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<stand_in_actor>;

class stand_in_state {
public:
  std::string name = "worker";
  explicit stand_in_state(base* self) : self_(self) {}

  stand_in_actor::behavior_type make_behavior(stand_in_spec spec, agent_actor agent, harness_actor harness) {
    name = "worker/" + to_string(spec.allocation) + (spec.member ? "/" + std::to_string(spec.member) : "");
    self_->enter(name);
    spec_ = spec;
    agent_ = std::move(agent);
    harness_ = std::move(harness);
    machine_.emplace(std::move(spec));
    self_->describe_by([this] { return described(); });
    self_->tell_heard_by([this] { return heard(); });
    return {
      [this](worker_frame& x) {
        step(word_heard{x.allocation, x.member, std::move(x.process), x.protocol, std::move(x.word)});
      },
      [this](worker_ordered& x) {
        step(order_heard{x.allocation, x.member, x.protocol, std::move(x.order)});
      },
      [this](const renew_order&) { step(lease_renewed{}); },
    };
  }

private:
  value described() const {
    value out{{"messages_taken", machine_->heard().taken}};
    // The task reports these itself, so that any number may stand there.
    if (const auto& s = machine_->status())
      out.update({{"phase", workers::name(s->phase)},
                  {"generation", s->generation},
                  {"step", s->step},
                  {"batches", s->batches},
                  {"until", s->until}});
    return out;
  }
  /// Rows for `msgs`: the messages that the worker itself took, in the task's process.
  value heard() const {
    const auto us = [](std::int64_t ns) { return ns < 0 ? value() : value(static_cast<double>(ns) / 1000); };
    value rows = value::array();
    for (const auto& one : machine_->heard().recent)
      rows.push_back(
        {{"at", to_rfc3339(one.at)},
         {"from", one.type == "order_arrived" ? "allocation/" + to_string(spec_.allocation) : std::string()},
         {"type", one.type},
         {"correlation", entity(spec_.allocation.task)},
         {"wait_us", us(one.wait_ns)},
         {"run_us", us(one.run_ns)},
         {"text", text_of_brief({one.brief.data(), one.brief.size()})}});
    return rows;
  }
  void step(const stand_in_event& ev) {
    auto actions = machine_->apply(ev, lease_time(self_->system()));
    self_->trace_decision([&] { return "actions: " + std::to_string(actions.size()); });
    for (auto& action : actions)
      std::visit([this](auto& x) { run(x); }, action);
  }
  void run(pass_word& x) {
    self_->send(agent_, worker_said{spec_.allocation, spec_.agent, spec_.member, std::move(x.word)});
  }
  void run(pass_order& x) { self_->send(harness_, reply(std::move(x.process), std::move(x.order), "")); }
  void run(refuse_worker& x) { self_->send(harness_, reply(std::move(x.process), "", std::move(x.why))); }
  void run(report_silence& x) {
    self_->send(agent_,
                member_failed{spec_.allocation, spec_.agent, spec_.member, std::move(x.detail), true});
  }
  worker_reply reply(std::string process, std::string order, std::string refused) const {
    return {spec_.allocation, spec_.member, std::move(process), std::move(order), std::move(refused)};
  }

  base* self_;
  stand_in_spec spec_;
  agent_actor agent_;
  harness_actor harness_;
  std::optional<stand_in> machine_;
};

} // namespace

stand_in_actor spawn_stand_in(caf::actor_system& sys, stand_in_spec spec, agent_actor agent,
                              harness_actor harness) {
  using impl = shell<stand_in_state, stand_in_actor, stand_in_spec, agent_actor, harness_actor>;
  return sys.spawn<impl>(std::move(spec), std::move(agent), std::move(harness));
}

} // namespace troupe
