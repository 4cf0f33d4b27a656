#include "actors/host/worker_runtime_actor.hpp"

#include "actors/host/job_threads.hpp"
#include "actors/host/task_files_part.hpp"
#include "actors/host/task_start_part.hpp"
#include "actors/host/worker_runtime.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/probed.hpp"
#include "workers/collectives/shm.hpp"
#include "workers/process_runtime.hpp"
#include "workers/zygote_keeper.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <thread>

namespace troupe {
namespace {

using base = actor_base<worker_runtime_actor>;
namespace fs = std::filesystem;

/// One thread more than may start tasks, so that the end of a task never waits for the files of other tasks.
constexpr int threads = 4, most_starts = threads - 1;

/// What the threads tell the actor. The mail that is sent is a task_news without content; it means that the
/// actor has to look into the inbox.
class inbox {
public:
  explicit inbox(worker_runtime_actor owner) : owner_(std::move(owner)) {}
  void put(worker_runtime_event ev) {
    std::lock_guard lock(mutex_);
    if (!owner_)
      return;
    events_.push_back(std::move(ev));
    if (std::exchange(told_, true))
      return; // the mail sent before leads to this event as well
    task_news look;
    look.change = task_change::nothing;
    caf::anon_send(owner_, std::move(look));
  }
  /// Puts an event that matters only to later ones of its task: it wakes nobody.
  void put_before_others(worker_runtime_event ev) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(ev));
  }
  std::vector<worker_runtime_event> take() {
    std::lock_guard lock(mutex_);
    told_ = false;
    return std::exchange(events_, {});
  }
  void close() {
    std::lock_guard lock(mutex_);
    owner_ = nullptr;
  }

private:
  std::mutex mutex_;
  worker_runtime_actor owner_;
  std::vector<worker_runtime_event> events_;
  bool told_ = false; ///< whether the owner was sent mail since it last took the events
};

/// Free space of the fullest disk; none if no folder can be looked at.
std::optional<std::uint64_t> least_space(std::vector<std::string> folders, const fs::path& tasks) {
  folders.push_back(tasks.string());
  std::optional<std::uint64_t> least;
  for (const auto& folder : folders) {
    std::error_code fault;
    const auto space = fs::space(folder, fault);
    if (!fault)
      least = std::min<std::uint64_t>(least.value_or(space.available), space.available);
  }
  return least;
}

class runtime_state {
public:
  static inline const char* name = "worker_runtime";
  explicit runtime_state(base* self) : self_(self) {}

  worker_runtime_actor::behavior_type make_behavior(worker_runtime_setup setup, agent_actor agent) {
    self_->enter("worker_runtime");
    setup_ = std::move(setup);
    agent_ = std::move(agent);
    machine_.emplace(setup_.freeze, most_starts);
    self_->describe_by([this] { return machine_->describe(); });
    inbox_ = std::make_shared<inbox>(worker_runtime_actor{self_});
    if (auto ok = open(); !ok)
      self_->quit(to_caf(ok.error())); // no handler below runs after this
    self_->set_exit_handler([this](caf::exit_msg& x) {
      // Only an exit from the agent ends the tasks. If another actor ends this one, it is made again and
      // adopts the tasks.
      if (x.source == agent_.address() && setup_.kill_on_stop && setup_.kill_on_stop())
        end_all();
      close();
      self_->quit(x.reason);
    });
    return {
      [this](launch_order& x) {
        step(launch_ordered{{x.allocation, std::move(x.slots), std::move(x.spec), std::move(x.fence_token)},
                            x.lease_from});
      },
      [this](const destroy_order& x) { step(kill_sandbox_ordered{x.allocation}); },
      [this](const drop_order& x) { step(drop_sandbox_ordered{x.allocation}); },
      [this](const renew_order& x) {
        step(leases_renewed{x.lease_from, duration{x.freeze_us}, duration{x.adopt_us}});
      },
      [this](const adopt_order&) { step(adoption_ordered{}); },
      [this](const task_news&) {
        for (auto& ev : inbox_->take())
          step(std::move(ev));
      },
    };
  }

  ~runtime_state() { close(); }

private:
  result<void> open() {
    workers::process_runtime_options options{setup_.tasks, setup_.program};
    options.sandbox.lease = std::chrono::duration_cast<std::chrono::milliseconds>(setup_.freeze);
    options.sandbox.linger = std::chrono::seconds(3); // the record and the output of a task are on disk
    options.spares = setup_.spares;
    options.reuse = reused_in_task_folder();
    // The runtime's thread runs beside the handlers, until this state ends: it gets the inbox, never `this`.
    auto started = workers::process_runtime::start(
      options, [in = inbox_](const workers::task_event& ev) { in->put(sandbox_said{ev}); });
    if (!started)
      return started.error();
    runtime_ = std::move(*started);
    if (auto keeper =
          workers::zygote_keeper::start({setup_.program.parent_path() / "libtroupe-zygote.so",
                                         setup_.python / "troupe" / "_zygote", setup_.tasks.string()}))
      zygotes_ = std::move(*keeper);
    starter_.emplace(setup_, *runtime_, zygotes_.get());
    jobs_.emplace(threads);
    return {};
  }

  void close() {
    if (inbox_)
      inbox_->close();
    jobs_.reset(); // first, because its jobs use the members below
    starter_.reset();
    runtime_.reset();
    zygotes_.reset();
  }

  void step(worker_runtime_event ev) {
    for (auto& action : machine_->apply(std::move(ev), lease_time(self_->system())))
      std::visit([this](auto& x) { run(x); }, action);
  }

  void run(start_sandbox& x) {
    jobs_->run([this, in = inbox_, order = std::move(x.order)] {
      const auto done = starter_->start(order, [&](hosted_task task) {
        in->put_before_others(task_prepared{order.allocation, std::move(task)});
      });
      in->put(start_ended{order.allocation, done ? std::string() : done.error().what});
    });
  }
  void run(const recall_task& x) {
    jobs_->run([this, in = inbox_, id = x.allocation] { in->put(task_recalled{id, starter_->recall(id)}); });
  }
  void run(look_after_end& x) {
    jobs_->run([this, in = inbox_, look = std::move(x)] {
      end_looked seen{look.allocation, {}};
      if (look.disks_too)
        seen.free_bytes = least_space(look.disks, setup_.tasks);
      if (look.learn)
        starter_->learn(look.allocation);
      in->put(seen);
    });
  }
  void run(look_at_disks& x) {
    jobs_->run([in = inbox_, disks = std::move(x.disks), tasks = setup_.tasks] {
      in->put(disks_looked{least_space(disks, tasks)});
    });
  }
  void run(const kill_sandbox& x) { static_cast<void>(runtime_->kill(to_string(x.allocation))); }
  void run(const drop_sandbox& x) { static_cast<void>(runtime_->drop(to_string(x.allocation))); }
  void run(const renew_lease& x) {
    const auto id = to_string(x.allocation);
    static_cast<void>(x.thaw ? runtime_->thaw(id, x.left) : runtime_->renew(id, x.left));
  }
  void run(const set_leases& x) {
    using std::chrono::milliseconds;
    runtime_->set_leases(std::chrono::duration_cast<milliseconds>(x.freeze),
                         x.adopt > duration{0} ? std::chrono::duration_cast<milliseconds>(x.adopt)
                                               : milliseconds(-1));
  }
  void run(const adopt_sandboxes&) { static_cast<void>(runtime_->adopt_all()); }
  void run(const keep_ports& x) { starter_->keep_ports(x.allocation, x.ports); }
  void run(const release_task& x) {
    starter_->release(x.allocation);
    remove_left_memory(group_of_task(to_string(x.allocation), x.token));
  }

  void run(tell_started& x) {
    auto news = news_of(x.adopted ? task_change::adopted : task_change::launched, x.allocation);
    news.task.pid = x.pid;
    news.task.slots = std::move(x.task.slots);
    news.token = std::move(x.task.token);
    news.checkpoint_dir = std::move(x.task.checkpoint_dir);
    self_->send(agent_, std::move(news));
  }
  void run(tell_rank_failed& x) {
    auto news = news_of(task_change::rank_failed, x.allocation);
    news.rank = x.rank;
    news.task.detail = std::move(x.detail);
    self_->send(agent_, std::move(news));
  }
  void run(tell_ended& x) {
    auto news = news_of(task_change::ended, x.task.allocation);
    news.task = std::move(x.task);
    self_->send(agent_, std::move(news));
  }
  void run(const tell_all_adopted&) {
    task_news news;
    news.change = task_change::all_adopted;
    self_->send(agent_, std::move(news));
  }
  task_news news_of(task_change change, allocation_id id) const {
    task_news news;
    news.change = change;
    news.task.allocation = id;
    news.spool = runtime_->spool(to_string(id)).string();
    return news;
  }

  /// Waits at most 5 s until no task runs. Only the actor's last handler may call this, on the actor's own
  /// thread.
  void end_all() {
    jobs_.reset(); // a start that has begun is finished; one that has not begun is dropped
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    auto runs = [](const workers::task_summary& t) {
      return t.phase != workers::task_phase::exited && t.phase != workers::task_phase::lost;
    };
    auto tasks = runtime_->list();
    for (const auto& t : tasks)
      if (runs(t))
        static_cast<void>(runtime_->kill(t.id));
    while (std::any_of(tasks.begin(), tasks.end(), runs) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      tasks = runtime_->list();
    }
  }

  base* self_;
  worker_runtime_setup setup_;
  agent_actor agent_;
  std::optional<worker_runtime> machine_;
  std::shared_ptr<inbox> inbox_;
  std::unique_ptr<workers::process_runtime> runtime_;
  std::unique_ptr<workers::zygote_keeper> zygotes_; ///< null if the files of the zygotes are missing
  std::optional<task_starter> starter_;
  std::optional<job_threads> jobs_;
};

} // namespace

worker_runtime_actor spawn_worker_runtime(caf::actor_system& sys, worker_runtime_setup setup,
                                          agent_actor agent) {
  using impl = shell<runtime_state, worker_runtime_actor, worker_runtime_setup, agent_actor>;
  return spawn_with_own_thread<impl>(sys, std::move(setup), std::move(agent));
}

} // namespace troupe
