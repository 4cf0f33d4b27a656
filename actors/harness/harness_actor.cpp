#include "actors/harness/harness_actor.hpp"

#include "actors/harness/event_writer_part.hpp"
#include "actors/harness/harness.hpp"
#include "actors/shells/probed.hpp"
#include "workers/worker_messages.hpp"

#include <caf/all.hpp>
#include <iostream>

namespace troupe {
namespace {

using base = actor_base<harness_actor>;
/// The socket is opened before the actor is spawned, so that a taken port is reported at once. The socket's
/// mail waits for the actor.
struct open_link {
  std::unique_ptr<workers::harness_link> link;
  std::mutex mutex;
  harness_actor to;
  std::vector<std::shared_ptr<std::vector<workers::task_message>>> early;
};
using shared_link = std::shared_ptr<open_link>;

class harness_state {
public:
  static inline const char* name = "harness";
  explicit harness_state(base* self) : self_(self) {}

  harness_actor::behavior_type make_behavior(shared_link link, agent_actor agent,
                                             const std::filesystem::path& tasks) {
    self_->enter("harness");
    self_->describe_by([this] { return machine_.describe(); });
    link_ = std::move(link);
    agent_ = std::move(agent);
    if (!tasks.empty())
      events_to_.emplace(tasks, [](const std::string& why) { std::cerr << "troupe: " << why << std::endl; });
    self_->set_exit_handler([this](caf::exit_msg& x) {
      {
        std::lock_guard lock(link_->mutex);
        link_->to = nullptr; // otherwise the link and the actor would keep each other alive
      }
      link_->link.reset();
      self_->quit(x.reason);
    });
    return {
      [this](harness_frames& x) { step(frames_received{std::move(*x.messages)}); },
      [this](const harness_task& x) {
        step(task_expected{x.allocation, x.token, x.checkpoint_dir, x.begins});
      },
      [this](const harness_gone& x) { step(task_gone{x.allocation}); },
      [this](const validation_answer& x) {
        step(validation_decided{
          {x.origin.allocation, x.origin.rank, x.origin.process}, x.origin.sequence, x.stop, x.reason});
      },
      [this](const checkpoint_answer& x) {
        step(checkpoint_answered{x.allocation, x.uuid, x.refused});
      },
      [this](const preempt_ordered& x) {
        step(task_stop_asked{x.allocation, x.reason});
      },
      [this](journal_actor& journal) {
        journal_ = std::move(journal);
        step(master_reachable{});
      },
      [this](const time_passed& x) {
        armed_.reset();
        step(x);
      },
      [this](const worker_reply& x) {
        step(
          worker_answered{{x.allocation, x.member, x.process}, workers::worker_protocol, x.order, x.refused});
      },
    };
  }

private:
  /// Applies an event. The answer to an action may arrive at once; it waits for its turn, because the machine
  /// must not be entered again during an action.
  void step(harness_event ev) {
    events_.push_back(std::move(ev));
    if (events_.size() > 1)
      return;
    for (; !events_.empty(); events_.pop_front()) {
      auto actions = machine_.apply(events_.front(), self_->now());
      self_->trace_decision([&] { return "actions: " + std::to_string(actions.size()); });
      for (auto& action : actions)
        std::visit([this](auto& x) { run(x); }, action);
    }
    auto deadline = machine_.deadline();
    if (deadline && !(armed_ && *armed_ <= *deadline)) {
      armed_ = *deadline;
      self_->delayed_send(harness_actor{self_}, std::max<duration>(*deadline - self_->now(), duration{0}),
                          time_passed{});
    }
  }

  void run(send_frame& x) { link_->link->send(std::move(x.peer), x.frame); }
  void run(append_task_reports& x) {
    auto number = x.number;
    if (!journal_)
      return step(reports_answered{number, 0, error{errc::unreachable, "the master is away"}});
    // Kept to be written into event files once the reports are durable.
    auto copy = events_to_ ? x.batch.reports : std::vector<storage::report_batch::report>();
    append_reports mail{x.batch.allocation, x.batch.rank, x.batch.process, x.batch.first_sequence,
                        std::move(x.batch.reports)};
    self_->request(journal_, std::chrono::seconds(30), std::move(mail))
      .then(
        [this, number, of = x.batch.allocation, first = x.batch.first_sequence,
         copy = std::move(copy)](const reports_committed& answer) mutable {
          if (!answer.refused)
            write_events(of, first, answer.up_to, std::move(copy));
          step(reports_answered{number, answer.refused ? 0 : answer.up_to, answer.refused});
        },
        [this, number](const caf::error& why) {
          step(reports_answered{number, 0, from_caf(why)});
        });
  }
  void write_events(allocation_id of, std::uint64_t first, std::uint64_t up_to,
                    std::vector<storage::report_batch::report> reports) {
    if (!events_to_)
      return;
    reports.resize(std::min<std::size_t>(reports.size(), up_to < first ? 0 : up_to - first + 1));
    std::erase_if(reports, [](const auto& x) { return x.group.empty(); });
    events_to_->add(of, std::move(reports));
  }
  void run(forward_checkpoint& x) {
    self_->send(
      agent_, task_checkpoint{{x.stream.allocation, x.stream.rank, x.stream.process, 0}, std::move(x.saved)});
  }
  void run(const forward_progress& x) { self_->send(agent_, progress_heard{x.allocation, x.done}); }
  void run(forward_worker& x) {
    self_->send(agent_, worker_frame{x.worker.allocation, x.worker.rank, x.worker.process, x.protocol,
                                     std::move(x.word)});
  }
  void run(const release_credit& x) { link_->link->release(x.bytes); }
  void run(const reports_drained& x) {
    if (events_to_)
      events_to_->end(x.allocation);
    self_->send(agent_, harness_drained{x.allocation, x.silent});
  }

  base* self_;
  shared_link link_;
  agent_actor agent_;
  journal_actor journal_;
  harness machine_;
  std::deque<harness_event> events_;
  std::optional<time_point> armed_;
  std::optional<event_writer> events_to_;
};

} // namespace

result<harness_gateway> spawn_harness(caf::actor_system& sys, const harness_setup& setup, agent_actor agent) {
  auto shared = std::make_shared<open_link>();
  workers::harness_link_options options;
  options.endpoint = setup.endpoint;
  auto opened =
    workers::open_harness_link(options, [weak = std::weak_ptr(shared)](std::vector<workers::task_message> x) {
      auto link = weak.lock();
      if (!link)
        return;
      auto messages = std::make_shared<std::vector<workers::task_message>>(std::move(x));
      std::lock_guard lock(link->mutex);
      if (link->to)
        caf::anon_send(link->to, harness_frames{std::move(messages)});
      else
        link->early.push_back(std::move(messages));
    });
  if (!opened)
    return opened.error();
  auto endpoint = (*opened)->endpoint();
  shared->link = std::move(*opened);
  auto actor =
    sys.spawn<shell<harness_state, harness_actor, shared_link, agent_actor, std::filesystem::path>>(
      shared, std::move(agent), setup.tasks);
  std::lock_guard lock(shared->mutex);
  shared->to = actor;
  for (auto& messages : std::exchange(shared->early, {}))
    caf::anon_send(actor, harness_frames{std::move(messages)});
  return harness_gateway{actor, endpoint};
}

} // namespace troupe
