#include "actors/host/worker_runtime_actor.hpp"

#include "actors/host/direct_start.hpp"
#include "actors/host/disk_watch.hpp"
#include "actors/host/task_environment.hpp"
#include "actors/host/task_files_part.hpp"
#include "actors/shells/probed.hpp"
#include "workers/collectives/shm.hpp"
#include "workers/port_claims.hpp"
#include "workers/process_runtime.hpp"
#include "workers/zygote_keeper.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace troupe {
namespace {

using base = actor_base<worker_runtime_actor>;
namespace fs = std::filesystem;

/// What a task has written there, which may be anything: a part of a plain file, or nothing.
std::string learned_modules(const fs::path& file) {
  workers::owned_fd fd{::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat about {};
  if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return {};
  std::string text(16'384, 0);
  const auto n = ::read(fd.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

std::string read_whole(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class runtime_state {
public:
  static inline const char* name = "worker_runtime";
  explicit runtime_state(base* self) : self_(self) {}

  worker_runtime_actor::behavior_type make_behavior(worker_runtime_setup setup, agent_actor agent) {
    self_->enter("worker_runtime");
    setup_ = std::move(setup);
    agent_ = std::move(agent);
    workers::process_runtime_options options{setup_.tasks, setup_.program};
    options.sandbox.lease = std::chrono::duration_cast<std::chrono::milliseconds>(setup_.freeze);
    options.sandbox.linger = std::chrono::seconds(3); // its record and its output are on disk
    options.spares = setup_.spares;
    options.reuse = reused_in_task_folder();
    // The runtime's thread may outlive a handler but not this state: it gets a handle, never `this`.
    auto started = workers::process_runtime::start(
      options, [me = worker_runtime_actor{self_}](const workers::task_event& ev) { tell(me, ev); });
    if (started)
      runtime_ = std::move(*started);
    else
      self_->quit(to_caf(started.error())); // no handler below runs after it
    if (auto keeper =
          workers::zygote_keeper::start({setup_.program.parent_path() / "libtroupe-zygote.so",
                                         setup_.python / "troupe" / "_zygote", setup_.tasks.string()}))
      zygotes_ = std::move(*keeper);
    self_->set_exit_handler([this](caf::exit_msg& x) {
      // Whoever else ends this actor wants it made again, which adopts the tasks.
      if (x.source == agent_.address() && setup_.kill_on_stop && setup_.kill_on_stop())
        end_all();
      runtime_.reset();
      zygotes_.reset();
      self_->quit(x.reason);
    });
    return {
      [this](const launch_order& x) { launch(x); },
      [this](const destroy_order& x) { static_cast<void>(runtime_->kill(to_string(x.allocation))); },
      [this](const drop_order& x) { static_cast<void>(runtime_->drop(to_string(x.allocation))); },
      [this](const renew_order& x) {
        look_at_disks();
        for (const auto& t : runtime_->list())
          if (t.phase == workers::task_phase::starting || t.phase == workers::task_phase::running)
            static_cast<void>(runtime_->renew(t.id, lease_left(x.lease_from)));
        for (const auto& id : std::exchange(frozen_, {}))
          static_cast<void>(runtime_->thaw(id, lease_left(x.lease_from))); // the master has spoken
      },
      [this](const adopt_order&) { static_cast<void>(runtime_->adopt_all()); },
      [this](task_news& x) { pass_on(std::move(x)); },
    };
  }

private:
  /// From the runtime's thread: everything becomes mail.
  static void tell(const worker_runtime_actor& me, const workers::task_event& ev) {
    task_news news;
    std::visit(overloaded{
                 [&](const workers::task_started& x) {
                   news.change = x.adopted ? task_change::adopted : task_change::launched;
                   news.task.allocation = parse_allocation(x.id);
                   news.task.pid = x.pid;
                 },
                 [&](const workers::task_exited& x) {
                   news.change = task_change::ended;
                   news.task = ended_task(x.id, x.why == workers::end_reason::failed, x.detail);
                   // The first that failed says why; the others may have been killed because of it.
                   auto ranks = x.ranks;
                   std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
                     return std::pair(a.killed, a.at) < std::pair(b.killed, b.at);
                   });
                   const bool failed = std::any_of(ranks.begin(), ranks.end(), failed_by_itself);
                   // Killed, but not by its allocation, which would not ask why: lost, and run again.
                   news.task.certain =
                     failed || (x.why != workers::end_reason::killed && x.why != workers::end_reason::lease);
                   for (const auto& rank : ranks)
                     add_rank(news.task, rank.rank, rank.signalled, rank.value, rank.out_of_memory);
                 },
                 [&](const workers::rank_ended& x) {
                   news.change = failed_by_itself(x.end) ? task_change::rank_failed : task_change::nothing;
                   news.task.allocation = parse_allocation(x.id);
                   news.rank = x.end.rank; // of this host so far
                   add_rank(news.task, x.end.rank, x.end.signalled, x.end.value, x.end.out_of_memory);
                 },
                 [&](const workers::task_lost& x) {
                   news.change = task_change::ended;
                   news.task = ended_task(x.id, false, x.why);
                   news.task.certain = false;
                 },
                 [&](const workers::task_frozen& x) {
                   news.change = task_change::frozen;
                   news.task.allocation = parse_allocation(x.id);
                 },
                 [&](const workers::inventory_taken&) { news.change = task_change::all_adopted; },
                 [&](const auto&) { news.change = task_change::nothing; },
               },
               ev);
    if (news.change != task_change::nothing)
      caf::anon_send(me, std::move(news));
  }

  static bool failed_by_itself(const workers::rank_end& x) { return x.value != 0 && !x.killed; }

  static task_report ended_task(const std::string& id, bool failed, const std::string& detail) {
    task_report t;
    t.allocation = parse_allocation(id);
    t.exited = true;
    t.detail = detail;
    t.exit_code = failed ? 127 : 0;
    return t;
  }
  static void add_rank(task_report& t, int rank, bool signalled, int number, bool out_of_memory) {
    if (t.exit_code != 0 || t.signal != 0 || number == 0)
      return; // the first that failed says why
    (signalled ? t.signal : t.exit_code) = number;
    t.detail = (signalled ? "signal " : "exit code ") + std::to_string(number) +
               (rank ? " (rank " + std::to_string(rank) + ")" : "") +
               (out_of_memory ? ", out of memory" : "");
  }

  /// Waits, at most 5 s, until nothing runs: only in the actor's last handler, on its own thread.
  void end_all() {
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

  /// At least 1 ms: 0 would be no lease at all.
  std::chrono::milliseconds lease_left(time_point from) const {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(from + setup_.freeze - boot_time());
    return std::max(left, std::chrono::milliseconds(1));
  }

  /// The same on all agents of a gang, which meet at the chief's; on one agent those that nobody has.
  result<std::vector<int>> ports_of(const launch_order& x, const task_launch& launch) {
    if (launch.nodes == 1)
      return ports_.claim(to_string(x.allocation), {12350, 12360, 12365, 29400});
    const auto first = static_cast<int>(20'000 + x.allocation.task.low() % 2000 * 4);
    return std::vector<int>{first, first + 1, first + 2, first + 3};
  }

  void launch(const launch_order& x) {
    auto id = to_string(x.allocation);
    auto launch = decode_launch(x.spec);
    if (!launch)
      return fail(x, "its launch order cannot be read: " + launch.error().what);
    if (auto made = make_checkpoint_folder(launch->checkpoint_dir); !made)
      return fail(x, made.error().what);
    auto ports = ports_of(x, *launch);
    if (!ports)
      return fail(x, ports.error().what);
    launch->slots = x.slots;
    launch->ports = *ports;
    if (!setup_.gpu_uuids.empty()) {
      auto& uuids = launch->gpu_uuids.emplace();
      for (const int slot : x.slots)
        if (slot >= 0 && static_cast<std::size_t>(slot) < setup_.gpu_uuids.size())
          uuids.push_back(setup_.gpu_uuids[static_cast<std::size_t>(slot)]);
    }
    task_surroundings around{setup_.agent,
                             setup_.agent_id,
                             setup_.harness_endpoint(),
                             setup_.harness_file.string(),
                             setup_.python.string(),
                             setup_.python_bin,
                             setup_.programs,
                             setup_.master_url,
                             shell_,
                             {ports->at(0), ports->at(1), ports->at(2), ports->at(3)}};
    auto folder = runtime_->prepare(id);
    auto ready = folder ? write_task_files(*folder, x.allocation, *launch, around, setup_.fetch)
                        : result<void>{folder.error()};
    if (!ready)
      return undo(x, ready.error().what);
    auto spec = task_spec_of(x.allocation, *launch, around);
    auto zygote = zygote_for(spec, *launch, *folder);
    start_without_shell(spec, *launch, *folder); // what the zygote forks has its variables already
    launches_[x.allocation] = std::move(*launch);
    if (setup_.fence && !x.fence_token.empty())
      spec.fence = fence_of(x, setup_.fence());
    if (auto ok = runtime_->launch(spec, std::move(zygote)); !ok)
      return undo(x, ok.error().what);
    static_cast<void>(runtime_->renew(id, lease_left(x.lease_from)));
  }

  /// Where the command is one program and nothing else is to be done before it, `spec` then runs that.
  void start_without_shell(workers::task_spec& spec, const task_launch& launch, const fs::path& folder) {
    std::error_code fault;
    const auto work = folder / "run" / "workdir";
    if (launch.nodes != 1 || fs::exists(work / "startup-hook.sh", fault))
      return;
    const auto env = direct_variables(spec.ranks.at(0).env);
    auto words = program_start_of(launch.entrypoint, path_in(env), work.string());
    if (!words)
      return;
    for (auto& rank : spec.ranks) {
      rank.argv = *words;
      rank.env = direct_variables(rank.env);
    }
  }

  static std::string path_in(const std::vector<std::string>& env) {
    for (const auto& pair : env)
      if (pair.starts_with("PATH="))
        return pair.substr(5);
    return {};
  }

  /// Where the command is one Python script: a connection to a warmed parent, and in `spec` what that one is
  /// asked to fork.
  workers::owned_fd zygote_for(workers::task_spec& spec, const task_launch& launch, const fs::path& folder) {
    std::error_code ignored;
    const auto work = folder / "run" / "workdir";
    auto env = direct_variables(spec.ranks.at(0).env);
    auto direct = direct_start_of(launch.entrypoint, path_in(env));
    if (!direct)
      return {};
    for (auto& one : spec.ranks)
      one.argv = stock_command(direct->argv, shell_); // no shell below: the same tree of processes either way
    if (!zygotes_ || !zygote_wanted(launch) || fs::exists(work / "startup-hook.sh", ignored) ||
        !fs::is_regular_file(work / direct->script, ignored))
      return {};
    workers::owned_fd files{::open(work.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    workers::zygote_order order{direct->program, direct->argv[0], env,
                                launch.context,  direct->script,  std::move(files)};
    auto key = workers::zygote_key(order);
    auto connection = zygotes_->attach(std::move(order));
    if (!connection)
      return {};
    zygote_keys_[spec.id] = std::move(key);
    for (auto& one : spec.ranks) {
      one.direct_argv = direct->argv;
      one.direct_env = direct_variables(one.env);
    }
    return std::move(*connection);
  }

  /// `runtime: {zygote: false}` in the configuration turns it off.
  static bool zygote_wanted(const task_launch& launch) {
    const auto& config = launch.config;
    const auto runtime = config.is_object() ? config.value("runtime", value::object()) : value::object();
    const auto said = runtime.is_object() ? runtime.value("zygote", value()) : value();
    return said != value(false) && said != value("off");
  }

  workers::fence_spec fence_of(const launch_order& x, workers::fence_spec at) const {
    value claim{{"agent", setup_.agent}, {"allocation", to_string(x.allocation)}, {"token", x.fence_token}};
    claim["dead"] = false;
    at.ask = to_json(claim);
    claim["dead"] = true;
    at.dead = to_json(claim);
    return at;
  }

  void undo(const launch_order& x, const std::string& why) {
    auto id = to_string(x.allocation);
    ports_.release(id);
    launches_.erase(x.allocation);
    zygote_keys_.erase(id);
    runtime_->discard(id);
    fail(x, why);
  }

  /// A full disk is nobody's failure: such a run is lost, and run again.
  void fail(const launch_order& x, const std::string& why) {
    look_at_disks();
    task_news news;
    news.change = task_change::ended;
    news.task = ended_task(to_string(x.allocation), true, why);
    news.task.certain = !disk_was_full();
    news.task.slots = x.slots;
    self_->send(agent_, std::move(news));
  }

  /// Sampled with the heartbeats and whenever something fails.
  void look_at_disks() {
    std::set<std::string> folders{setup_.tasks.string()};
    for (const auto& [id, launch] : launches_)
      if (!launch.checkpoint_dir.empty())
        folders.insert(launch.checkpoint_dir);
    for (const auto& folder : folders) {
      std::error_code fault;
      auto space = fs::space(folder, fault);
      if (!fault)
        disks_.saw(space.available, boot_time());
    }
  }
  bool disk_was_full() const { return disks_.full_lately(boot_time()); }

  void pass_on(task_news x) {
    auto id = to_string(x.task.allocation);
    if (x.change == task_change::ended && x.task.exit_code != 0 && x.task.certain) {
      look_at_disks();
      if (disk_was_full()) {
        x.task.certain = false;
        x.task.detail += ", and its disk was full";
      }
    }
    if (x.change == task_change::frozen) {
      frozen_.push_back(id);
      return;
    }
    if (x.change != task_change::all_adopted) {
      if (const auto* launch = launch_of(x.task.allocation)) {
        x.task.slots = launch->slots;
        x.token = launch->token;
        if (x.change == task_change::rank_failed) {
          if (launch->mode != launch_mode::per_slot || launch->ranks < 2)
            return; // alone: the end of the task says it
          x.rank += launch->first_rank;
          return self_->send(agent_, std::move(x));
        }
        x.checkpoint_dir = launch->checkpoint_dir;
        if (x.change == task_change::adopted && launch->nodes == 1)
          ports_.restore(id, launch->ports);
      }
      x.spool = runtime_->spool(id).string();
      if (x.change == task_change::ended) {
        launches_.erase(x.task.allocation);
        ports_.release(id);
        if (auto key = zygote_keys_.extract(id); key && zygotes_)
          zygotes_->learn(key.mapped(), learned_modules(setup_.tasks / id / "run" / "modules"));
        remove_left_memory(group_of_task(id, x.token));
      }
    }
    self_->send(agent_, std::move(x));
  }

  static result<void> make_checkpoint_folder(const std::string& dir) {
    if (dir.empty())
      return {};
    std::error_code fault;
    fs::create_directories(dir, fault);
    if (fault)
      return error{errc::io, "cannot make the checkpoint folder '" + dir + "': " + fault.message()};
    if (::access(dir.c_str(), W_OK | X_OK) != 0)
      return error{errc::io, "cannot write to the checkpoint folder '" + dir + "': " + std::strerror(errno)};
    return {};
  }

  /// As it was ordered in this life or, of an adopted task, in an earlier one; null where that cannot be
  /// read.
  const task_launch* launch_of(const allocation_id& id) {
    if (auto known = launches_.find(id); known != launches_.end())
      return &known->second;
    auto stored = decode_launch(read_whole(setup_.tasks / to_string(id) / launch_file));
    return stored ? &launches_.emplace(id, std::move(*stored)).first->second : nullptr;
  }

  base* self_;
  worker_runtime_setup setup_;
  agent_actor agent_;
  std::unique_ptr<workers::process_runtime> runtime_;
  std::unique_ptr<workers::zygote_keeper> zygotes_; ///< none where its files are missing
  std::map<std::string, std::string> zygote_keys_;  ///< key of each task's zygote, until the task ends
  std::map<allocation_id, task_launch> launches_;
  workers::port_claims ports_;
  /// Hooks are written for bash, where there is one.
  const std::string shell_ = ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
  std::vector<std::string> frozen_;
  disk_watch disks_;
};

} // namespace

worker_runtime_actor spawn_worker_runtime(caf::actor_system& sys, worker_runtime_setup setup,
                                          agent_actor agent) {
  using impl = shell<runtime_state, worker_runtime_actor, worker_runtime_setup, agent_actor>;
  return sys.spawn<impl, caf::detached>(std::move(setup), std::move(agent));
}

} // namespace troupe
