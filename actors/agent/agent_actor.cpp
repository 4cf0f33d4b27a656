#include "actors/agent/agent_actor.hpp"

#include "actors/agent/agent.hpp"
#include "actors/harness/harness_actor.hpp"
#include "actors/probed_actor.hpp"
#include "actors/worker/log_pump_actor.hpp"
#include "actors/worker/worker_runtime_actor.hpp"

#include <caf/all.hpp>

#include <fstream>
#include <random>

namespace troupe {
namespace {

using base = actor_base<agent_actor>;
namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

bool replace_file(const fs::path& file, const std::string& line) {
  auto fresh = file;
  fresh += ".tmp";
  {
    std::ofstream out(fresh, std::ios::trunc);
    out << line << '\n';
    if (!out.flush())
      return false;
  }
  std::error_code fault;
  fs::rename(fresh, file, fault);
  return !fault;
}

class agent_state {
public:
  std::string name = "agent";
  explicit agent_state(base* self) : self_(self) {}

  agent_actor::behavior_type make_behavior(agent_setup setup, std::function<void(const agent_actor&)> dial) {
    name = "agent_node/" + setup.name;
    self_->enter(name);
    setup_ = std::move(setup);
    dial_ = std::move(dial);
    machine_.emplace(setup_.name);
    self_->describe_by([this] { return machine_->describe(); });
    self_->set_down_handler([this](const caf::down_msg& down) { peer_down(down); });
    self_->set_exit_handler([this](caf::exit_msg& x) { close(x.reason); });
    if (auto ok = open(); !ok) {
      setup_.on_fatal(ok.error());
      self_->quit();
    }
    return {
      [this](link_order& x) {
        auto obey = [&](auto& orders) {
          for (auto& order : orders)
            step(order_received{x.epoch, std::move(order)});
        };
        obey(x.start);
        obey(x.preempt);
        obey(x.kill);
        obey(x.forget);
      },
      [this](const heartbeat_ack& x) { step(heartbeat_acked{x.epoch, x.sent}); },
      [this](validation_answer& x) { self_->send(harness_, std::move(x)); },
      [this](checkpoint_answer& x) { self_->send(harness_, std::move(x)); },
      [this](task_checkpoint& x) {
        if (twin_)
          self_->send(twin_, std::move(x)); // else the gateway repeats it
      },
      [this](const dial_master&) { call_master(); },
      [this](const time_passed&) {
        armed_.reset();
        step(time_passed{});
      },
      [this](task_news& x) { hear(std::move(x)); },
      [this](const harness_drained& x) { settle(x.allocation, &ending::drained); },
      [this](const pumped& x) { settle(x.allocation, &ending::logged); },
      [this](const master_found& x) {
        if (x.final)
          return setup_.on_fatal({errc::unsupported, x.why});
        register_at(x.cluster ? caf::actor_cast<cluster_actor>(x.cluster) : cluster_actor{});
      },
    };
  }

private:
  result<void> open() {
    std::error_code fault;
    fs::create_directories(setup_.dir / "tasks", fault);
    if (fault)
      return error{errc::io, "cannot make the agent's folder '" + setup_.dir.string() + "': " + fault.message()};
    id_ = first_line(setup_.dir / "id");
    if (id_.empty()) {
      std::random_device device;
      char text[33];
      std::snprintf(text, sizeof text, "%08x%08x%08x%08x", device(), device(), device(), device());
      id_ = text;
      if (!replace_file(setup_.dir / "id", id_))
        return error{errc::io, "cannot write to the agent's folder '" + setup_.dir.string() + "'"};
    }
    agent_actor me{self_};
    auto harness_file = setup_.dir / "harness";
    harness_setup gateway;
    if (auto last = first_line(harness_file); !last.empty())
      gateway.endpoint = last; // the tasks of the last life look for it there
    auto opened = spawn_harness(self_->system(), gateway, me);
    if (!opened)
      opened = spawn_harness(self_->system(), {}, me);
    if (!opened)
      return opened.error();
    harness_ = opened->actor;
    if (!replace_file(harness_file, opened->endpoint))
      return error{errc::io, "cannot write to the agent's folder '" + setup_.dir.string() + "'"};
    pump_ = spawn_log_pump(self_->system(), me);
    worker_runtime_setup runtime{setup_.name,   id_,
                                 setup_.dir / "tasks", setup_.program,
                                 setup_.python, setup_.python_bin, setup_.master_url,
                                 [endpoint = opened->endpoint] { return endpoint; }, harness_file,
                                 setup_.freeze, setup_.slots,
                                 setup_.kill_on_stop, setup_.fetch, setup_.fence, setup_.programs};
    runtime_ = spawn_worker_runtime(self_->system(), std::move(runtime), me);
    for (auto part : {caf::actor_cast<caf::strong_actor_ptr>(harness_), caf::actor_cast<caf::strong_actor_ptr>(pump_),
                      caf::actor_cast<caf::strong_actor_ptr>(runtime_)})
      self_->monitor(caf::actor_cast<caf::actor>(part));
    self_->send(runtime_, adopt_order{});
    return {};
  }

  // ---- the master

  void call_master() {
    if (!closing_)
      dial_(agent_actor{self_});
  }
  void dial_later() {
    self_->delayed_send(agent_actor{self_}, wait_, dial_master{});
    wait_ = std::min<std::chrono::milliseconds>(wait_ * 2, std::chrono::seconds(5));
  }

  void register_at(cluster_actor master) {
    if (!master)
      return dial_later();
    register_agent mail{link_protocol, setup_.name, id_, setup_.join_token, setup_.host, setup_.slots,
                        machine_->inventory()};
    auto sent = boot_time();
    self_->request(master, std::chrono::seconds(20), std::move(mail), agent_actor{self_})
      .then(
        [this, sent, master](registered& x) {
          wait_ = std::chrono::milliseconds(200);
          was_registered_ = true;
          twin_ = std::move(x.twin);
          fence_token_ = std::move(x.fence_token);
          self_->monitor(twin_);
          self_->send(harness_, x.journal);
          self_->send(pump_, x.journal);
          step(link_up{x.epoch, sent});
          if (setup_.inspector)
            self_->send(master, node_joined{setup_.name, setup_.inspector});
          if (setup_.on_registered)
            setup_.on_registered(x.http_port);
        },
        [this](const caf::error& why) {
          auto fault = from_caf(why);
          bool final = fault.code == errc::unsupported || fault.code == errc::denied ||
                       (fault.code == errc::conflict && !was_registered_);
          if (final)
            setup_.on_fatal(fault);
          else
            dial_later();
        });
  }

  void peer_down(const caf::down_msg& down) {
    if (twin_ && down.source == twin_.address()) {
      twin_ = nullptr;
      self_->send(harness_, journal_actor{});
      self_->send(pump_, journal_actor{});
      step(link_down{});
      return dial_later();
    }
    if (!closing_ && down.reason)
      setup_.on_fatal(from_caf(down.reason));
  }

  // ---- tasks

  struct ending { ///< a task's processes are dead; its exit is told once all it said is durable
    task_report task;
    bool drained = false, logged = false;
  };

  void hear(task_news x) {
    auto id = x.task.allocation;
    switch (x.change) {
    case task_change::adopted:
      step(task_adopted{x.task});
      [[fallthrough]];
    case task_change::launched:
      self_->send(harness_, harness_task{id, x.token, x.checkpoint_dir});
      self_->send(pump_, pump_spool{id, setup_.name, x.spool});
      return step(task_launched{id, x.task.pid});
    case task_change::ended:
      if (!machine_->runs(id)) { // found dead at start-up: what it said died with it, but for its output
        self_->send(pump_, pump_spool{id, setup_.name, x.spool});
        self_->send(pump_, pump_end{id});
        return step(task_adopted{x.task});
      }
      endings_[id] = {std::move(x.task)};
      self_->send(pump_, pump_spool{id, setup_.name, x.spool});
      self_->send(pump_, pump_end{id});
      return self_->send(harness_, harness_gone{id});
    case task_change::all_adopted:
      return call_master();
    case task_change::frozen:
    case task_change::nothing:
      return;
    }
  }

  void settle(allocation_id id, bool ending::*part) {
    auto it = endings_.find(id);
    if (it == endings_.end())
      return;
    it->second.*part = true;
    if (!it->second.drained || !it->second.logged)
      return;
    auto task = std::move(it->second.task);
    endings_.erase(it);
    step(task_ended{std::move(task)});
  }

  void step(const agent_event& ev) {
    auto actions = machine_->apply(ev, boot_time());
    self_->trace_decision([&] { return "actions: " + std::to_string(actions.size()); });
    for (auto& action : actions)
      std::visit([this](auto& x) { run(x); }, action);
    self_->show(machine_->shown());
    auto deadline = machine_->deadline();
    if (deadline && !(armed_ && *armed_ <= *deadline)) {
      armed_ = *deadline;
      self_->delayed_send(agent_actor{self_}, std::max<duration>(*deadline - boot_time(), duration{0}),
                          time_passed{});
    }
  }
  void run(launch_task& x) {
    self_->send(runtime_, launch_order{x.allocation, std::move(x.slots), std::move(x.spec), x.lease_from, fence_token_});
  }
  void run(const stop_task& x) { self_->send(harness_, preempt_ordered{x.allocation, x.reason}); }
  void run(const destroy_task& x) { self_->send(runtime_, destroy_order{x.allocation}); }
  void run(const drop_task& x) { self_->send(runtime_, drop_order{x.allocation}); }
  void run(const renew_leases& x) { self_->send(runtime_, renew_order{x.lease_from}); }
  void run(const send_heartbeat& x) {
    if (twin_)
      self_->send(twin_, agent_heartbeat{x.epoch, x.sent});
  }
  void run(const report_to_twin& x) {
    if (!twin_)
      return;
    link_report mail{machine_->epoch()};
    std::visit(overloaded{
                 [&](const task_started& r) { mail.started = {r}; },
                 [&](const task_exited& r) { mail.exited = {r}; },
               },
               x.report);
    self_->send(twin_, std::move(mail));
  }

  void close(const caf::error& reason) {
    closing_ = true;
    if (harness_)
      self_->send_exit(harness_, reason);
    if (pump_)
      self_->send_exit(pump_, reason);
    if (runtime_)
      self_->send_exit(runtime_, reason);
    self_->quit(reason);
  }

  base* self_;
  agent_setup setup_;
  std::function<void(const agent_actor&)> dial_;
  std::string id_;
  std::optional<agent> machine_;
  worker_runtime_actor runtime_;
  harness_actor harness_;
  log_pump_actor pump_;
  twin_actor twin_;
  std::string fence_token_;
  std::map<allocation_id, ending> endings_;
  std::chrono::milliseconds wait_{200};
  bool was_registered_ = false, closing_ = false;
  std::optional<time_point> armed_;
};

} // namespace

agent_actor spawn_agent(caf::actor_system& sys, agent_setup setup, std::function<void(const agent_actor&)> dial) {
  using impl = shell<agent_state, agent_actor, agent_setup, std::function<void(const agent_actor&)>>;
  return sys.spawn<impl>(std::move(setup), std::move(dial));
}

} // namespace troupe
