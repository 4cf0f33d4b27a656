#include "actors/agent/agent_actor.hpp"

#include "actors/agent/agent.hpp"
#include "actors/agent/slot_reports_part.hpp"
#include "actors/allocation/task_launch.hpp"
#include "actors/host/log_pump_actor.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/obey.hpp"
#include "actors/shells/probed.hpp"
#include "actors/worker/stand_in_actor.hpp"
#include "model/back_off.hpp"
#include "system/random.hpp"
#include "system/whole_file.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <charconv>
#include <climits>
#include <fstream>
#include <mutex>

namespace troupe {
namespace {

using base = actor_base<agent_actor>;
namespace fs = std::filesystem;

/// Pauses between two tries to reach the master.
constexpr std::chrono::milliseconds first_wait{200}, longest_wait{5000};

/// All slots count as the weakest of them, as a rank may be on any slot.
void take_devices(agent_traits& traits, const std::vector<workers::slot_look>& devices) {
  if (devices.empty())
    return;
  traits.device = devices.front().name.empty() ? devices.front().kind : devices.front().name;
  traits.memory_bytes = devices.front().memory_bytes.value_or(0);
  for (const auto& one : devices) {
    if (one.name != traits.device)
      traits.device = one.kind;
    traits.memory_bytes = std::min(traits.memory_bytes, one.memory_bytes.value_or(0));
  }
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
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
    driven_ = driven_by_test(self_->system());
    clock_ahead_ = duration{set_by_test(self_->system(), "clock-ahead-of-" + setup_.name, 0)};
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
        obey(x.worker);
        obey(x.services);
      },
      [this](const heartbeat_ack& x) {
        step(heartbeat_acked{x.epoch, x.sent});
      },
      [this](validation_answer& x) { self_->send(harness_, std::move(x)); },
      [this](checkpoint_answer& x) { self_->send(harness_, std::move(x)); },
      [this](task_checkpoint& x) {
        if (twin_)
          self_->send(twin_, std::move(x)); // without a twin it is dropped, and the gateway repeats it
      },
      [this](const progress_heard& x) {
        if (twin_)
          self_->send(twin_, x);
      },
      [this](const dial_master&) { call_master(); },
      [this](const time_passed&) {
        armed_.reset();
        step(time_passed{});
      },
      [this](task_news& x) { hear(std::move(x)); },
      [this](const harness_drained& x) {
        if (auto it = endings_.find(x.allocation); it != endings_.end())
          it->second.task.silent = x.silent;
        settle(x.allocation, &ending::drained);
      },
      [this](worker_frame& x) { to_stand_in(x); },
      [this](const worker_said& x) { step(x); },
      [this](const member_failed& x) { step(x); },
      [this](node_joined& x) { // the inspector was made again
        setup_.inspector = x.inspector;
        if (master_)
          self_->send(master_, std::move(x));
      },
      [this](const pumped& x) { settle(x.allocation, &ending::logged); },
      [this](const master_found& x) {
        if (x.final)
          return setup_.on_fatal({errc::unsupported, x.why});
        register_at(x.cluster ? caf::actor_cast<cluster_actor>(x.cluster) : cluster_actor{});
      },
    };
  }

private:
  /// Gives this process a number that is higher than those of all earlier ones, even where the file was lost.
  result<void> count_life() {
    const auto file = setup_.dir / "life";
    const auto last = first_line(file);
    std::uint64_t before = 0;
    std::from_chars(last.data(), last.data() + last.size(), before);
    const auto since_epoch = self_->now().time_since_epoch();
    const auto clock = std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count();
    life_ = std::max<std::uint64_t>(before + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(clock, 1)));
    return replace_file(file, std::to_string(life_) + "\n", 0644);
  }

  result<void> open() {
    std::error_code fault;
    fs::create_directories(setup_.dir / "tasks", fault);
    if (fault)
      return error{errc::io,
                   "cannot make the agent's folder '" + setup_.dir.string() + "': " + fault.message()};
    id_ = first_line(setup_.dir / "id");
    if (id_.empty()) {
      id_ = random_hex(16);
      if (auto ok = replace_file(setup_.dir / "id", id_ + "\n", 0644); !ok)
        return ok;
    }
    if (auto ok = count_life(); !ok)
      return ok;
    if (auto ok = make_harness(); !ok)
      return ok;
    if (auto ok = make_pump(); !ok)
      return ok;
    runtime_setup_ = {setup_.name,
                      id_,
                      setup_.dir / "tasks",
                      setup_.program,
                      setup_.python,
                      setup_.python_bin,
                      setup_.master_url,
                      [at = endpoint_] {
                        std::lock_guard lock(at->mutex);
                        return at->text;
                      },
                      setup_.dir / "harness",
                      setup_.freeze,
                      setup_.slots,
                      setup_.kill_on_stop,
                      setup_.fetch,
                      setup_.fence,
                      setup_.programs};
    runtime_setup_.data = setup_.data;
    traits_.labels = setup_.labels;
    if (setup_.devices) {
      const auto all = setup_.devices->look();
      for (const auto& one : all)
        runtime_setup_.gpu_uuids.push_back(one.uuid);
      take_devices(traits_, all);
    } else if (const auto name = workers::processor_name(); !name.empty()) {
      traits_.device = "cpu " + name;
    }
    if (setup_.look_every.count() > 0)
      slots_.emplace(self_, setup_.name,
                     "slots-" + std::to_string(boot_time().time_since_epoch().count()) + "-" + id_,
                     std::make_unique<workers::slot_watch>(setup_.devices, setup_.slots, setup_.look_every));
    return make_runtime();
  }

  // ---- the children, which take over what dead ones left

  result<void> make_harness() {
    const auto file = setup_.dir / "harness";
    harness_setup gateway;
    gateway.tasks = setup_.dir / "tasks";
    if (auto last = first_line(file); !last.empty())
      gateway.endpoint = last; // tasks of the last life look for the gateway there
    auto opened = setup_.children.harness(self_->system(), gateway, agent_actor{self_});
    if (!opened) {
      gateway.endpoint = harness_setup().endpoint;
      opened = setup_.children.harness(self_->system(), gateway, agent_actor{self_});
    }
    if (!opened)
      return opened.error();
    harness_ = opened->actor;
    self_->monitor(harness_);
    {
      std::lock_guard lock(endpoint_->mutex);
      endpoint_->text = opened->endpoint;
    }
    if (auto ok = replace_file(file, opened->endpoint + "\n", 0644, durability::written); !ok)
      return ok;
    for (const auto& [id, one] : stand_ins_) // these stand-ins would answer through the dead gateway
      self_->send_exit(one, caf::exit_reason::user_shutdown);
    stand_ins_.clear();
    if (journal_)
      self_->send(harness_, journal_);
    for (const auto& [id, told] : at_host_)
      if (auto over = endings_.find(id); over == endings_.end()) {
        self_->send(harness_, harness_task{id, told.token, told.checkpoint_dir});
        if (!told.stop.empty())
          self_->send(harness_, preempt_ordered{id, told.stop});
      } else if (!over->second.drained)
        self_->send(harness_, harness_gone{id});
    return {};
  }

  result<void> make_pump() {
    pump_ = setup_.children.pump(self_->system(), agent_actor{self_});
    self_->monitor(pump_);
    if (journal_)
      self_->send(pump_, journal_);
    for (const auto& [id, told] : at_host_) {
      const auto over = endings_.find(id);
      if (told.spool.empty() || (over != endings_.end() && over->second.logged))
        continue;
      self_->send(pump_, pump_spool{id, setup_.name, told.spool});
      if (over != endings_.end())
        self_->send(pump_, pump_end{id});
    }
    return {};
  }

  result<void> make_runtime() {
    runtime_ended_ = false;
    ++runtime_life_;
    runtime_ = setup_.children.runtime(self_->system(), runtime_setup_, agent_actor{self_});
    self_->monitor(runtime_);
    self_->send(runtime_, adopt_order{});
    return {};
  }

  void make_again(const char* child, const caf::error& why, result<void> (agent_state::*make)()) {
    if (!restarts_.again(child, lease_now()))
      return setup_.on_fatal({errc::internal, std::string("the ") + child + " of agent " + setup_.name +
                                                " died again and again, at last: " + from_caf(why).what});
    if (auto ok = (this->*make)(); !ok)
      setup_.on_fatal(ok.error());
  }

  /// Ends tasks that a worker runtime which was made again has not found: they were ordered of the dead
  /// runtime, which never started them.
  void lose_what_was_not_found() {
    const auto known = machine_->inventory();
    for (const auto& task : known) {
      auto it = at_host_.find(task.allocation);
      if (task.exited || it == at_host_.end() || endings_.contains(task.allocation))
        continue;
      if (it->second.life == runtime_life_) {
        if (it->second.destroyed)
          self_->send(runtime_, destroy_order{task.allocation});
        continue;
      }
      auto lost = task;
      lost.exited = true;
      lost.certain = false;
      lost.detail = "the worker runtime died before it was started";
      end(task.allocation, std::move(lost));
    }
  }

  // ---- the master

  void call_master() {
    if (!closing_)
      dial_(agent_actor{self_});
  }
  void dial_later() {
    self_->delayed_send(agent_actor{self_}, back_off(++dials_, first_wait, longest_wait), dial_master{});
  }

  void register_at(cluster_actor master) {
    if (!master)
      return dial_later();
    master_ = master;
    self_->monitor(master); // tells when the connection is lost, and with it the answer
    const auto number = ++registrations_;
    register_agent mail{link_protocol, setup_.name,           id_,     setup_.join_token, setup_.host,
                        setup_.slots,  machine_->inventory(), traits_, setup_.pool,       life_};
    auto sent = lease_now();
    self_->request(master, std::chrono::seconds(20), std::move(mail), agent_actor{self_})
      .then(
        [this, sent, master, number](registered& x) {
          if (number != registrations_)
            return;
          dials_ = 0;
          was_registered_ = true;
          refused_.clear();
          twin_ = std::move(x.twin);
          fence_token_ = std::move(x.fence_token);
          self_->monitor(twin_);
          self_->send(harness_, x.journal);
          self_->send(pump_, x.journal);
          journal_ = x.journal;
          if (slots_)
            slots_->tell_again();
          leases_ = {{}, x.freeze_us, x.adopt_us};
          self_->send(runtime_, leases_); // the runtime needs these before it launches a task
          step(link_up{x.epoch, sent, duration{x.heartbeat_us}});
          if (setup_.inspector)
            self_->send(master, node_joined{setup_.name, setup_.inspector});
          if (setup_.on_registered)
            setup_.on_registered(x.http_port);
        },
        [this, number](const caf::error& why) {
          if (number != registrations_)
            return;
          self_->demonitor(master_.address());
          master_ = nullptr;
          auto fault = from_caf(why);
          bool final = fault.code == errc::unsupported || fault.code == errc::denied ||
                       ((fault.code == errc::conflict || fault.code == errc::invalid) && !was_registered_);
          if (final)
            return setup_.on_fatal(fault);
          tell_refusal(fault);
          dial_later();
        });
  }

  /// An agent that was registered before may be taken again, so it goes on asking: its pool may come back, or
  /// its name may become free. Each refusal is told once.
  void tell_refusal(const error& why) {
    const bool refused = why.code == errc::conflict || why.code == errc::invalid;
    if (refused && setup_.say && std::exchange(refused_, why.what) != why.what)
      setup_.say("the master refuses this agent, which goes on asking: " + why.what);
  }

  void forget_master() {
    ++registrations_; // an answer to an earlier registration is ignored
    for (const auto& one : {caf::actor_cast<caf::actor>(twin_), caf::actor_cast<caf::actor>(master_)})
      if (one)
        self_->demonitor(one.address());
    twin_ = nullptr;
    journal_ = nullptr;
    master_ = nullptr;
    self_->send(harness_, journal_actor{});
    self_->send(pump_, journal_actor{});
    step(link_down{});
  }

  void peer_down(const caf::down_msg& down) {
    if ((twin_ && down.source == twin_.address()) || (master_ && down.source == master_.address())) {
      forget_master();
      return dial_later();
    }
    const bool runtime = runtime_ && down.source == runtime_.address();
    if (runtime) {
      runtime_ended_ = true;
      if (closing_)
        return self_->quit(end_reason_);
    }
    if (closing_ || !down.reason)
      return;
    if (runtime)
      make_again("worker runtime", down.reason, &agent_state::make_runtime);
    else if (harness_ && down.source == harness_.address())
      make_again("harness gateway", down.reason, &agent_state::make_harness);
    else if (pump_ && down.source == pump_.address())
      make_again("log pump", down.reason, &agent_state::make_pump);
    else
      stand_in_down(down);
  }

  // ---- tasks

  struct told { ///< what the children were told of a task
    std::string token, checkpoint_dir;
    std::string spool;      ///< folder of the task's log spool; empty until the task has started
    std::string stop;       ///< why the script was asked to end; empty: it was not asked
    int life = 0;           ///< number of the worker runtime that has the task
    bool destroyed = false; ///< whether the kill of the task was ordered
  };

  /// A task whose processes are dead. Its exit is reported once all its reports and log lines are durable.
  struct ending {
    task_report task;
    bool drained = false, logged = false;
  };

  void hear(task_news x) {
    if (closing_)
      return; // tasks that end together with the agent are not reported
    auto id = x.task.allocation;
    switch (x.change) {
    case task_change::adopted:
      at_host_[id].token = x.token;
      at_host_[id].checkpoint_dir = x.checkpoint_dir;
      at_host_[id].life = runtime_life_;
      if (!machine_->runs(id)) // a known task is found again by a new runtime
        step(task_adopted{x.task});
      self_->send(harness_, harness_task{id, x.token, x.checkpoint_dir});
      [[fallthrough]];
    case task_change::launched:
      at_host_[id].spool = x.spool;
      self_->send(pump_, pump_spool{id, setup_.name, x.spool});
      return step(task_launched{id, x.task.pid});
    case task_change::ended:
      if (!machine_->runs(id)) { // found dead at the start: only its output is left
        self_->send(pump_, pump_spool{id, setup_.name, x.spool});
        self_->send(pump_, pump_end{id});
        return step(task_adopted{x.task});
      }
      at_host_[id].spool = x.spool;
      self_->send(pump_, pump_spool{id, setup_.name, x.spool});
      return end(id, std::move(x.task));
    case task_change::all_adopted:
      if (runtime_life_ > 1)
        lose_what_was_not_found();
      if (!std::exchange(called_, true))
        call_master();
      return;
    case task_change::rank_failed:
      return step(member_failed{id, setup_.name, x.rank, x.task.detail});
    case task_change::frozen:
    case task_change::nothing:
      return;
    }
  }

  /// To be called when all processes of the task are dead.
  void end(allocation_id id, task_report report) {
    end_stand_ins(id);
    endings_[id] = {std::move(report)};
    self_->send(pump_, pump_end{id});
    self_->send(harness_, harness_gone{id});
  }

  /// The first message of a worker makes its stand-in; the end of the task ends the stand-in.
  void to_stand_in(worker_frame& x) {
    if (!machine_->runs(x.allocation))
      return;
    const auto id = std::pair(x.allocation, x.member);
    auto it = stand_ins_.find(id);
    if (it == stand_ins_.end()) {
      auto made =
        spawn_stand_in(self_->system(), {x.allocation, setup_.name, x.member}, agent_actor{self_}, harness_);
      self_->monitor(made);
      it = stand_ins_.emplace(id, std::move(made)).first;
    }
    self_->send(it->second, std::move(x));
  }
  /// The next message of the worker, which comes within a second, makes a new stand-in.
  void stand_in_down(const caf::down_msg& down) {
    const auto it = std::find_if(stand_ins_.begin(), stand_ins_.end(),
                                 [&](const auto& one) { return one.second.address() == down.source; });
    if (it == stand_ins_.end())
      return;
    const auto [id, member] = it->first;
    stand_ins_.erase(it);
    if (!restarts_.again("worker/" + to_string(id) + "/" + std::to_string(member), self_->now()))
      step(member_failed{id, setup_.name, member,
                         "the stand-in of its worker died again and again: " + from_caf(down.reason).what,
                         true});
  }
  void end_stand_ins(allocation_id id) {
    for (auto it = stand_ins_.lower_bound({id, INT_MIN}); it != stand_ins_.end() && it->first.first == id;) {
      self_->send_exit(it->second, caf::exit_reason::user_shutdown);
      it = stand_ins_.erase(it);
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
    step(task_is_over{std::move(task)});
  }

  /// No two hosts count from the same moment.
  time_point lease_now() { return (driven_ ? self_->now() : boot_time()) + clock_ahead_; }

  void step(const agent_event& ev) {
    if (closing_)
      return;
    auto actions = machine_->apply(ev, lease_now());
    self_->trace_decision([&] { return "actions: " + std::to_string(actions.size()); });
    for (auto& action : actions)
      std::visit([this](auto& x) { run(x); }, action);
    self_->show(machine_->shown());
    auto deadline = machine_->deadline();
    if (deadline && !(armed_ && *armed_ <= *deadline)) {
      armed_ = *deadline;
      self_->delayed_send(agent_actor{self_}, std::max<duration>(*deadline - lease_now(), duration{0}),
                          time_passed{});
    }
  }
  /// The gateway has to know a task before it starts, as a forked task connects to the gateway within a few
  /// milliseconds, perhaps before the news of its start arrives.
  void run(launch_task& x) {
    auto& told = at_host_[x.allocation];
    told.life = runtime_life_;
    if (auto doors = x.spec.doors()) { // otherwise the runtime reports what is wrong with the order
      told.token = std::move(doors->token);
      told.checkpoint_dir = std::move(doors->checkpoint_dir);
      self_->send(harness_, harness_task{x.allocation, told.token, told.checkpoint_dir, true});
    }
    self_->send(runtime_, launch_order{x.allocation, std::move(x.slots), std::move(x.spec), x.lease_from,
                                       fence_token_});
  }
  void run(const stop_task& x) {
    if (auto it = at_host_.find(x.allocation); it != at_host_.end())
      it->second.stop = x.reason;
    self_->send(harness_, preempt_ordered{x.allocation, x.reason});
  }
  void run(const destroy_task& x) {
    if (auto it = at_host_.find(x.allocation); it != at_host_.end())
      it->second.destroyed = true;
    self_->send(runtime_, destroy_order{x.allocation});
  }
  void run(tell_worker& x) {
    if (auto it = stand_ins_.find({x.order.allocation, x.order.member}); it != stand_ins_.end())
      self_->send(it->second, std::move(x.order)); // a worker without a stand-in has sent nothing yet
  }
  void run(open_service& x) {
    if (setup_.open_service)
      setup_.open_service(std::move(x.order), x.runs);
  }
  void run(const drop_task& x) {
    at_host_.erase(x.allocation);
    self_->send(runtime_, drop_order{x.allocation});
  }
  void run(const renew_leases& x) {
    leases_.lease_from = x.lease_from;
    self_->send(runtime_, leases_);
    for (const auto& [id, one] : stand_ins_)
      self_->send(one, leases_);
  }
  void run(const send_heartbeat& x) {
    if (twin_)
      self_->send(twin_, agent_heartbeat{x.epoch, x.sent});
    if (!slots_)
      return;
    std::set<allocation_id> ending;
    for (const auto& [id, one] : endings_)
      ending.insert(id);
    const slot_reports::master to{master_, journal_, fence_token_};
    slots_->tell(machine_->inventory(), ending, twin_ && master_ && journal_ ? &to : nullptr);
  }
  void run(const register_again&) {
    if (!twin_ || !master_)
      return;
    auto master = master_;
    forget_master();
    // The same connection is used, as CAF drops both connections where a node dials a second time.
    register_at(std::move(master));
  }
  void run(const report_to_twin& x) {
    if (!twin_)
      return;
    link_report mail{machine_->epoch()};
    std::visit(overloaded{
                 [&](const task_started& r) { mail.started = {r}; },
                 [&](const task_exited& r) { mail.exited = {r}; },
                 [&](const member_failed& r) { mail.failed = {r}; },
                 [&](const worker_said& r) { mail.said = {r}; },
               },
               x.report);
    self_->send(twin_, std::move(mail));
  }

  void close(const caf::error& reason) {
    closing_ = true;
    for (const auto& [id, one] : stand_ins_)
      self_->send_exit(one, reason);
    stand_ins_.clear();
    if (harness_)
      self_->send_exit(harness_, reason);
    if (pump_)
      self_->send_exit(pump_, reason);
    end_reason_ = reason;
    if (!runtime_ || runtime_ended_)
      return self_->quit(reason);
    // The agent ends when its runtime has ended, so that no process is left when the agent is gone.
    self_->send_exit(runtime_, reason);
  }

  base* self_;
  agent_setup setup_;
  std::function<void(const agent_actor&)> dial_;
  std::string id_;
  std::uint64_t life_ = 0; ///< number of this process, which is higher than those of all earlier ones
  agent_traits traits_;    ///< devices, memory and labels of this host, for the pool
  std::optional<agent> machine_;
  worker_runtime_actor runtime_;
  harness_actor harness_;
  log_pump_actor pump_;
  twin_actor twin_;
  std::string fence_token_;
  cluster_actor master_;
  journal_actor journal_;
  std::optional<slot_reports> slots_;
  std::map<allocation_id, ending> endings_;
  std::map<std::pair<allocation_id, int>, stand_in_actor> stand_ins_;
  struct shared_text {
    std::mutex mutex;
    std::string text;
  };
  const std::shared_ptr<shared_text> endpoint_ = std::make_shared<shared_text>(); ///< the gateway's address
  worker_runtime_setup runtime_setup_;
  std::map<allocation_id, told> at_host_; ///< tasks that were launched or adopted, until they are dropped
  int runtime_life_ = 0;
  bool called_ = false; ///< whether the master was called for the first time
  child_restarts<std::string> restarts_;
  bool driven_ = false; ///< whether a test drives the scheduler (driven.hpp)
  duration clock_ahead_{
    0};                ///< how far the host's clock is ahead, where a test gives each host a clock of its own
  int dials_ = 0;      ///< number of failed tries since the last registration
  renew_order leases_; ///< newest order, with the lease times of the cluster
  std::uint64_t registrations_ = 0; ///< number of registrations sent; only the answer to the newest counts
  bool was_registered_ = false, closing_ = false, runtime_ended_ = false;
  std::string refused_; ///< the refusal that people were told last; empty: none since the last registration
  caf::error end_reason_;
  std::optional<time_point> armed_;
};

} // namespace

agent_children agent_children::real() {
  return {spawn_harness,
          [](caf::actor_system& sys, agent_actor agent) { return spawn_log_pump(sys, std::move(agent)); },
          spawn_worker_runtime};
}

agent_actor spawn_agent(caf::actor_system& sys, agent_setup setup,
                        std::function<void(const agent_actor&)> dial) {
  using impl = shell<agent_state, agent_actor, agent_setup, std::function<void(const agent_actor&)>>;
  return sys.spawn<impl>(std::move(setup), std::move(dial));
}

} // namespace troupe
