#include "test/sim/platform/platform.hpp"

#include "actors/allocation/task_launch.hpp"
#include "actors/cluster/cluster_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "model/rng.hpp"
#include "searchers/searcher.hpp"
#include "storage/stored_journal.hpp"
#include "test/sim/platform/lying_journal.hpp"
#include "test/sim/platform/master_mail.hpp"
#include "test/sim/platform/replayed_machines.hpp"
#include "test/sim/platform/search_users.hpp"
#include "test/sim/platform/task_users.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>

namespace troupe::sim {
namespace {

namespace fs = std::filesystem;

struct violation {
  std::string what;
};
/// Ends the history. Must not be called within a handler, because its actor would die of the exception.
[[noreturn]] void fail(std::string what) { throw violation{std::move(what)}; }

constexpr std::int64_t script_length = 4; ///< number of steps of a script
constexpr auto freeze = std::chrono::seconds(30);
constexpr auto longest_history = std::chrono::minutes(60);
constexpr const char* weights = "weights"; ///< the file of each checkpoint

/// Ends an actor as if a fault of its own had ended it.
template <class Handle>
void end_with_fault(const Handle& who) {
  const auto to = caf::actor_cast<caf::strong_actor_ptr>(who);
  caf::exit_msg end{who.address(), to_caf({errc::internal, "the history ends it"})};
  to->enqueue(nullptr, caf::make_message_id(), caf::make_message(std::move(end)), nullptr);
}

/// The configuration of the actor systems of all histories, which come one after another: its table of
/// messages takes long to make. Each history gets a register of its own.
node_config& configuration_of_next() {
  static node_config made;
  made.probes = std::make_shared<probe_register>();
  return made;
}

/// Writes the files of a checkpoint, in few calls of the system: a link to a file that is there is made
/// faster than a file.
void write_checkpoint(const fs::path& folder, const fs::path& file) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno == ENOENT)
    fs::create_directories(folder);
  static_cast<void>(::link(file.c_str(), (folder / weights).c_str())); // fails where it is there already
}

/// One rank of a task on one host. It outlives its agent. The script of rank 0 trains, reports, saves every
/// second step, and ends when asked. The script of a task that is not a trial does what its plan says.
struct sandbox {
  allocation_id id;
  std::uint64_t serial = 0; ///< also its process id
  int host = 0, node_rank = 0, nodes = 1;
  std::vector<int> slots;
  std::string token, checkpoint_dir;
  value hparams;
  std::int64_t step = 0, saved = 0;
  bool dead = false, asked_to_stop = false, ordered = false, in_flight = false;
  bool seen = true;         ///< whether anybody has seen its end
  bool drain_asked = false; ///< whether its gateway has asked for the drain
  /// Plan of a task that is not a trial; null: the task waits for others of its kind.
  const task_plan* plan = nullptr;
  bool answers = false; ///< whether the master knows that its service answers
  /// Where the run was placed, and its search, which no fact changes. Empty: not looked up yet.
  std::string pool;
  experiment_id search;
  int code = 0, signal = 0;
  enum class waits { nothing, report, checkpoint } waiting = waits::nothing;
  std::uint64_t sequence = 0;
  std::string process() const { return "p" + std::to_string(serial); }
  std::string uuid() const {
    char text[40];
    std::snprintf(text, sizeof text, "%08llx-%04llx-4000-8000-%012llx", (unsigned long long)id.trial().value,
                  (unsigned long long)step, (unsigned long long)serial);
    return text;
  }
};

/// The link between an agent and its master, for one registration.
struct link {
  bool stalled = false;
  bool broken = false; ///< messages that are sent later are lost
  std::vector<caf::actor> wires;
};

struct host {
  std::string name;
  int pool = 0;
  fs::path folder;
  bool lost = false;       ///< whether the host is lost for good
  bool is_cleared = false; ///< an operator has disabled the host once, and ended what ran there
  duration clock_ahead{0}; ///< how far its own clock, by which leases end, is ahead
  time_point cut_until{};  ///< until then its agent does not reach the master
  agent_actor agent;
  bool agent_lives = false;
  int runtime_life = 0;
  bool runtime_lives = false;
  journal_actor journal;                     ///< the journal that its gateway knows
  time_point lease_until{};                  ///< on the clock of the host
  std::map<allocation_id, sandbox*> records; ///< the sandboxes with a record in its folder of tasks
  worker_runtime_actor runtime;
  harness_actor gateway;
  log_pump_actor pump;
  std::shared_ptr<link> line = std::make_shared<link>();
};

/// The values that a searcher on its own draws for its trials, in the order of their creation.
std::vector<double> drawn_alone(const value& config, std::uint64_t seed) {
  auto searcher = searchers::make_searcher(config.at("searcher"), config.at("hyperparameters"), seed);
  std::vector<double> drawn;
  std::deque<searchers::trial_key> open;
  const auto tell = [&](const searchers::search_event& event) {
    const auto actions = searcher.value()->apply(event).value();
    for (const auto& action : actions)
      if (const auto* made = std::get_if<searchers::create_trial>(&action)) {
        drawn.push_back(made->hparams.at("x").get<double>());
        open.push_back(made->trial);
      }
  };
  for (tell(searchers::search_started{}); !open.empty(); open.pop_front())
    tell(searchers::trial_exited{open.front()});
  return drawn;
}

class platform {
public:
  platform(const platform_plan& plan, planted_fault planted)
      : plan_(plan), planted_(planted), random_(mix64(plan.seed) ^ 0x1234), ids_(mix64(plan.seed) ^ 0x4321),
        repeats_(mix64(plan.seed) ^ 0x2143), rests_(mix64(plan.seed) ^ 0x3412),
        mail_(
          mix64(plan.seed) ^ 0x4132, plan.repeated_within, plan.continues(), *config_.probes,
          [this](duration wait, std::function<void()> what) { later(wait, std::move(what)); },
          planted == planted_fault::late_grant_kept),
        replayed_(config_, planted == planted_fault::replay_skips),
        tasks_(scene_of_users(), plan_, planted == planted_fault::created_twice) {
    // The folder is in memory where that is possible: otherwise a disk's search for inodes takes half of a
    // history's time.
    std::string pattern = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    folder_ = ::mkdtemp((pattern += "/troupe-platform-XXXXXX").data());
    std::ofstream(folder_ / weights) << 'w';
    config_.set("scheduler.policy", caf::atom("testing"));
    caf::put(config_.content, "driven.snapshot-every", std::int64_t{5});
    if (const char* file = std::getenv("TROUPE_PLATFORM_TRACE"))
      if (auto ok = config_.probes->trace_to(file); !ok)
        note(ok.error().what);
    system_ = std::make_unique<caf::actor_system>(config_);
    scheduler_ = &dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
    ticker_ = system_->spawn([this](caf::event_based_actor* self) -> caf::behavior {
      ticker_self_ = self;
      return {[this](std::uint64_t serial) { act(*sandboxes_.at(serial)); },
              [this](int host) { start_agent(host); }, [this](bool) { start_master(); }};
    });
    settle();
    began_ = now();
    start_master();
    for (std::size_t pool = 0; pool < plan.pools.size(); ++pool)
      for (int n = 0; n < plan.pools[pool].hosts && !plan.pools[pool].elastic; ++n)
        start_agent(add_host("h" + std::to_string(hosts_.size()), int(pool)));
  }

  ~platform() {
    over_ = true;
    wake_all();
    stop_master();
    mail_.forget(); // no handle outlives the system
    for (auto& x : hosts_)
      if (x.agent)
        caf::anon_send_exit(x.agent, caf::exit_reason::user_shutdown);
    scheduler_->run();
    hosts_.clear();
    for (const auto& one : others_)
      caf::anon_send_exit(one, caf::exit_reason::kill);
    others_.clear();
    caf::anon_send_exit(ticker_, caf::exit_reason::kill);
    scheduler_->run();
    ticker_ = nullptr;
    while (scheduler_->trigger_timeout()) // an allocation that no twin forgets tries for about a minute
      scheduler_->run();
    system_.reset();
    for (const auto& one : checkpoints_) { // fewer calls than to look into each
      ::unlink((one / weights).c_str());
      ::rmdir(one.c_str());
    }
    fs::remove_all(folder_);
  }

  void play() {
    searches_.emplace(scene_of_users(), plan_, other_project());
    tasks_.begin();
    for (std::size_t n = 0; n < plan_.searches.size(); ++n) {
      const auto& one = plan_.searches[n];
      submitted_.push_back(submit(one));
      searches_->begin(n, submitted_.back());
    }
    until([this] { return searches_->done() && tasks_.want_nothing(); });
    until_stored([this] { return tasks_.done() && ended(submitted_); });
    // Checks that nothing leaked: hosts keep nothing, a trial that needs every slot that a pool may give it
    // runs, and so do as many tasks without slots as fit.
    until([this] { return nothing_is_left(); });
    for (std::size_t n = 0; n < plan_.pools.size(); ++n) {
      platform_plan::search all{"random", 1, plan_.most_slots(int(n)), int(n)};
      submitted_.push_back(submit(all));
      until_stored([&] { return ended({submitted_.back()}); });
    }
    fill_aux_units();
    until([this] {
      return std::all_of(instances_.begin(), instances_.end(), [](const auto& x) { return x.gone; });
    });
    check();
  }
  platform_outcome outcome() {
    outcome_.tasks = plan_.tasks.size();
    outcome_.compared = replayed_.compared();
    return std::move(outcome_);
  }

private:
  time_point now() const { return wall_time(scheduler_->clock()); }
  std::shared_ptr<storage::reader> reads() const { return journal_ ? journal_->reads() : nullptr; }
  scene scene_of_users() {
    return {[this] { return reads(); },
            [this](duration wait, std::function<void()> what) { later(wait, std::move(what)); },
            [this](std::string order, value fields, std::function<void(const result<value>&)> then) {
              insist(std::move(order), std::move(fields), std::move(then));
            },
            [this](std::string what) { note(std::move(what)); }};
  }

  // ---- the drive

  /// Notes a fault from within a handler; the history ends after the handler.
  void note(std::string what) {
    if (wrong_.empty())
      wrong_ = std::move(what);
  }

  /// Handles one message, of an actor that is drawn at random; without messages, moves the time to what is
  /// due next.
  void step() {
    auto& jobs = scheduler_->jobs;
    if (jobs.empty()) {
      if (!scheduler_->trigger_timeout())
        fail("nothing is left to happen, and the searches go on");
      if (now() - began_ > longest_history)
        fail("an hour has passed, and the searches go on\n" + what_waits());
      return;
    }
    std::swap(jobs.front(), jobs[random_.below(jobs.size())]);
    if (rests_.chance(plan_.resting))
      return rest(jobs.front());
    auto* const next = jobs.front()->subtype() == caf::resumable::scheduled_actor
                         ? static_cast<caf::scheduled_actor*>(jobs.front())
                         : nullptr;
    auto* const mail = next && !next->mailbox().closed() ? next->mailbox().peek() : nullptr;
    const bool is_answer = mail && mail->mid.is_response(); // of the journal, perhaps
    if (mail && !is_answer)
      mail_.before(*next, *mail);
    scheduler_->run_once();
    ++outcome_.messages;
    if (auto wrong = is_answer ? replayed_.differs_after(next) : std::string(); !wrong.empty())
      fail(std::move(wrong));
    mail_.after();
    if (!wrong_.empty())
      fail(wrong_);
    while (!afterwards_.empty()) {
      auto next = std::move(afterwards_.front());
      afterwards_.pop_front();
      next();
    }
    while (next_fault_ < plan_.faults.size() &&
           outcome_.messages >= std::uint64_t(plan_.faults[next_fault_].after))
      strike(plan_.faults[next_fault_++]);
  }
  /// Handles messages until `done` holds.
  void until(const std::function<bool()>& done) {
    while (!done())
      step();
  }
  /// The same for a `done` that reads facts. It is asked where facts came, and seldom else.
  void until_stored(const std::function<bool()>& done) {
    stored_ = true;
    for (int n = 0;; ++n) {
      if ((std::exchange(stored_, false) || n % 64 == 0) && done())
        return;
      step();
    }
  }
  /// Lets an actor rest for a while. Messages for it wait meanwhile, in their order.
  void rest(caf::resumable* who) {
    scheduler_->jobs.pop_front();
    resting_.push_back(who);
    const auto most = rests_.chance(0.2) ? 2'000 : 20;
    later(std::chrono::milliseconds(rests_.below(static_cast<std::uint64_t>(most))), [this, who] {
      if (const auto it = std::find(resting_.begin(), resting_.end(), who); it != resting_.end()) {
        resting_.erase(it);
        scheduler_->jobs.push_back(who);
      }
    });
  }
  void wake_all() {
    for (auto* who : std::exchange(resting_, {}))
      scheduler_->jobs.push_back(who);
  }
  /// Handles everything that can happen now, in order.
  void settle() {
    wake_all();
    scheduler_->run();
  }

  // ---- the master

  void start_master() {
    if (over_ || cluster_)
      return;
    auto made = storage::make_journal(store_, {});
    if (!made)
      return note("the journal does not open again: " + made.error().what);
    journal_ = std::shared_ptr<storage::journal>(std::move(*made));
    journal_peers peers;
    peers.on_validation = [this](storage::recorded_validation v) {
      caf::anon_send(cluster_, route_validation{v.experiment,
                                                {v.allocation.trial(),
                                                 {v.allocation, v.rank, v.process, v.sequence},
                                                 v.row,
                                                 v.steps,
                                                 std::move(v.metrics),
                                                 v.allocation.run}});
    };
    peers.on_commit = [this, reads = journal_->reads()](const storage::commit_summary& what) {
      replayed_.stored(what, *reads);
      stored_ = true;
    };
    journal_actor_ = spawn_journal(*system_, journal_, std::move(peers));
    cluster_setup setup;
    setup.checkpoint_dir = folder_ / "checkpoints";
    setup.fence_token = [](const std::string& agent) { return "fence of " + agent; };
    setup.id_bytes = [this](std::size_t count) {
      std::string bytes;
      while (bytes.size() < count)
        bytes += char(ids_());
      return bytes;
    };
    setup.configuration = configuration();
    // Most of what an idle platform does is heartbeats.
    setup.lease.heartbeat = std::chrono::seconds(plan_.seed % 4 == 0 ? 1 : 4);
    ++masters_;
    if (planted_ == planted_fault::limits_forgotten && masters_ > 1)
      for (auto& pool : setup.configuration["pools"])
        pool.erase("max_slots"), pool.erase("quotas");
    setup.make_provider = [this](const std::string& pool, const value&) {
      return std::make_unique<cloud>(*this, pool == name_of_pool(1) ? 1 : 0);
    };
    tasks_.check_acknowledged();
    if (searches_)
      searches_->check_acknowledged();
    auto journal = journal_actor_;
    if (lies(planted_))
      others_.push_back(caf::actor_cast<caf::actor>(journal = lying_journal(*system_, journal, planted_)));
    cluster_ = spawn_cluster(*system_, std::move(setup), {journal, journal_->reads()});
  }
  void stop_master() {
    if (!cluster_)
      return;
    // Comes first, so that nothing more is stored.
    caf::anon_send_exit(journal_actor_, caf::exit_reason::kill);
    end_with_fault(cluster_);
    cluster_ = nullptr;
    journal_actor_ = nullptr;
    settle();
    mail_.forget();
    journal_.reset();
  }

  // ---- the cluster file

  value settings_of(const pool_plan& of) const {
    value out = {{"scheduler", of.scheduler},
                 {"preemption", of.preemption},
                 {"aux_per_agent", plan_.aux},
                 {"reserve_after", "10s"},
                 {"min_run", "1s"},
                 {"fallback_after", "5s"}};
    if (of.max_slots >= 0)
      out["max_slots"] = of.max_slots;
    if (of.quota >= 0)
      out["quotas"] = {{{"user", "*"}, {"max_slots", of.quota}}};
    if (of.fallback >= 0)
      out["fallback"] = {name_of_pool(of.fallback)};
    if (of.elastic)
      out["provider"] = {{"type", "local"},
                         {"instance_slots", plan_.slots},
                         {"max_instances", of.hosts},
                         {"max_idle_agent_period", "20s"},
                         {"max_agent_starting_period", "60s"}};
    return out;
  }
  /// The configuration in the journal, or else the first one.
  value configuration() const {
    if (journal_)
      if (const auto known = journal_->reads()->configuration(); known && *known)
        return (*known)->configuration;
    value pools = value::object();
    for (std::size_t n = 0; n < plan_.pools.size(); ++n)
      pools[name_of_pool(int(n))] = settings_of(plan_.pools[n]);
    pools[name_of_pool(0)]["default"] = true;
    return {{"pools", std::move(pools)}};
  }
  /// Makes `change` to the configuration in force, and repeats that where another change came first.
  void configure(std::function<void(value&)> change, std::function<void()> then = {}) {
    if (!journal_)
      return later(std::chrono::seconds(1), [this, change, then] { configure(change, then); });
    const auto now = journal_->reads()->configuration();
    auto wanted = configuration();
    change(wanted);
    insist("configuration.record",
           {{"configuration", std::move(wanted)}, {"revision", now && *now ? (*now)->revision : 0}},
           [this, change, then](const result<value>& got) {
             if (!got && got.error().code == errc::conflict)
               return later(std::chrono::milliseconds(100),
                            [this, change, then] { configure(change, then); });
             if (then)
               then();
           });
  }
  void change_pool(std::uint64_t pick) {
    configure([this, pick](value& all) {
      constexpr const char* schedulers[] = {"priority", "fair", "fifo", "round_robin"};
      auto& pool = all["pools"][name_of_pool(int(pick % plan_.pools.size()))];
      pool["scheduler"] = schedulers[pick / 8 % std::size(schedulers)];
      pool["preemption"] = pick / 64 % 2 == 0;
    });
  }
  /// Moves an agent into another pool, and back. What runs on it ends where it is.
  void move_agent(std::uint64_t pick, duration away) {
    const auto name = hosts_.at(pick % hosts_.size()).name;
    const auto pool = name_of_pool(int(pick / 64 % plan_.pools.size()));
    const auto put = [name](value& all, const std::string& into) {
      auto& nodes = all["nodes"];
      nodes = nodes.is_array() ? nodes : value::array();
      std::erase_if(nodes.get_ref<value::array_t&>(), [&](const value& x) { return x.at("name") == name; });
      if (!into.empty())
        nodes.push_back({{"name", name}, {"pool", into}});
    };
    configure(
      [put, pool](value& all) { put(all, pool); },
      [this, put, away] { later(away, [this, put] { configure([put](value& all) { put(all, ""); }); }); });
  }

  // ---- users

  /// Repeats an order until the master has answered.
  value order(const std::string& name, value fields) {
    for (int tries = 0; tries < 200; ++tries) {
      auto got = std::make_shared<std::optional<command_result>>();
      if (cluster_)
        system_->spawn([to = cluster_, got, name, fields](caf::event_based_actor* self) {
          self->request(to, std::chrono::seconds(10), client_command{"ada", true, "", name, fields})
            .then([got](const command_result& x) { *got = x; },
                  [got](const caf::error& why) { *got = refused(from_caf(why)); });
        });
      else
        *got = refused({errc::unreachable, "the master is away"});
      while (!*got)
        step();
      if ((*got)->got)
        return *(*got)->got;
      last_refusal_ = (*got)->got.error().what;
      for (int n = 0; n < 50; ++n)
        step();
    }
    fail(name + " is never answered: " + last_refusal_);
  }

  /// Makes a project before the searches, in a new workspace because the first one takes no projects. The
  /// name is taken where the answer to an earlier creation was lost.
  project_id other_project() {
    const auto named = [this](auto rows_of) -> std::uint64_t {
      if (journal_)
        if (const auto rows = rows_of(*journal_->reads()))
          for (const auto& row : *rows)
            if (row.name == "other")
              return row.id.value;
      return 0;
    };
    const auto workspace = [&] { return named([](const auto& reads) { return reads.workspaces(); }); };
    const auto project = [&] { return named([](const auto& reads) { return reads.projects(); }); };
    insist("workspace.create", {{"name", "other"}}, [](const auto&) {});
    until_stored([&] { return workspace() > 0; });
    insist("project.create", {{"workspace", workspace()}, {"name", "other"}}, [](const auto&) {});
    until_stored([&] { return project() > 0; });
    return project_id{project()};
  }

  experiment_id submit(const platform_plan::search& of) {
    const auto& searcher = of.searcher;
    const auto trials = of.trials;
    value resources = {{"slots_per_trial", of.slots_per_trial},
                       {"resource_pool", name_of_pool(of.pool)},
                       {"weight", of.weight}};
    if (of.priority > 0)
      resources["priority"] = of.priority;
    if (of.max_slots >= 0)
      resources["max_slots"] = of.max_slots;
    value config = {{"name", "search"},
                    {"entrypoint", "train"},
                    {"max_restarts", of.max_restarts},
                    {"resources", std::move(resources)},
                    {"reproducibility", {{"experiment_seed", plan_.seed % 1000}}},
                    {"searcher", {{"name", searcher}, {"metric", "loss"}}},
                    {"hyperparameters", {{"x", {{"type", "double"}, {"minval", 0.0}, {"maxval", 1.0}}}}}};
    if (of.failures > 0)
      config["hyperparameters"]["failures"] = of.failures;
    if (searcher == "grid")
      config["hyperparameters"]["x"]["count"] = trials;
    else if (searcher != "single" && searcher != "pbt")
      config["searcher"]["max_trials"] = trials;
    if (searcher != "single" && searcher != "pbt")
      config["searcher"]["max_concurrent_trials"] = 2;
    if (searcher == "pbt")
      config["searcher"].update({{"population_size", trials},
                                 {"interval", script_length / 2},
                                 {"truncate_fraction", 0.5},
                                 {"time_metric", "steps"},
                                 {"max_time", script_length}});
    if (searcher == "async_halving" || searcher == "asha_promotion")
      config["searcher"].update(
        {{"num_rungs", 2}, {"max_time", script_length}, {"time_metric", "steps"}, {"divisor", 2}});
    value wish = {{"config", std::move(config)}, {"key", "k" + std::to_string(++keys_)}};
    const experiment_id id{order("experiment.create", std::move(wish)).at("id").get<std::uint64_t>()};
    if (searcher == "single" || searcher == "random" || searcher == "grid")
      hears_nothing_.insert(id);
    max_restarts_[id] = of.max_restarts;
    auto most = of.max_slots;
    for (const auto& one : of.wishes)
      if (one.what == search_wish::set_max_slots && most >= 0)
        most = one.number < 0 ? -1 : std::max(most, one.number);
    if (most >= 0)
      most_slots_[id] = most;
    return id;
  }

  bool ended(const std::vector<experiment_id>& all) const {
    const auto reads = this->reads();
    for (const auto id : all) {
      const auto state = reads ? state_of(*reads, id) : experiment_state::active;
      if (state ? !terminal(*state) : !searches_->is_deleted(id))
        return false;
    }
    return true;
  }

  // ---- after the end of all

  /// Number of hosts of the first pool, without one that will be lost later.
  int hosts_that_stay() const { return plan_.pools[0].hosts - (plan_.loses_host() ? 1 : 0); }
  bool nothing_is_left() const {
    for (const auto& on : hosts_)
      if (!on.lost && !on.records.empty())
        return false;
    return std::all_of(sandboxes_.begin(), sandboxes_.end(), [](const auto& x) { return x.second->dead; });
  }
  /// Starts as many tasks without slots as fit. No fault comes any more, because a task that is hit would end
  /// too early.
  void fill_aux_units() {
    next_fault_ = plan_.faults.size();
    until([&] { return now() > calm_at_ && cluster_; });
    aux_wanted_ = hosts_that_stay() * plan_.aux;
    std::vector<std::string> ids;
    for (int n = 0; n < aux_wanted_; ++n)
      ids.push_back(
        order("task.create", {{"kind", "command"},
                              {"config", {{"entrypoint", {"work"}}, {"resources", {{"slots", 0}}}}},
                              {"key", "aux" + std::to_string(n)}})
          .at("id")
          .get<std::string>());
    until_stored([&] {
      const auto is_over = [this](const std::string& id) {
        return has_ended(*journal_->reads(), parse_task(id));
      };
      while (journal_ && !ids.empty() && is_over(ids.back()))
        ids.pop_back();
      return ids.empty();
    });
    until([this] { return nothing_is_left(); });
  }

  // ---- instances

  struct instance {
    std::string id; ///< also the name of its agent
    int pool = 0;
    int host = -1; ///< number of its host; -1: the instance has not come yet
    time_point launched;
    bool known = false;              ///< the provider's answer named the instance
    bool ends = false, gone = false; ///< the instance has to end; the instance does not exist any more
  };
  /// The cloud that a pool's provider calls. A call sometimes fails, even where it has done what was asked.
  class cloud final : public instance_provider {
  public:
    cloud(platform& of, int pool) : of_(of), pool_(pool) {}
    result<std::vector<cloud_instance>> list() override {
      if (of_.random_.chance(0.1))
        return error{errc::unreachable, "list: no answer"};
      std::vector<cloud_instance> all;
      for (const auto& x : of_.instances_)
        if (x.pool == pool_ && !x.gone)
          all.push_back({x.id,
                         x.ends       ? cloud_instance::phase::stopping
                         : x.host < 0 ? cloud_instance::phase::starting
                                      : cloud_instance::phase::running,
                         "", x.launched});
      return all;
    }
    result<std::vector<std::string>> launch(int count) override {
      if (of_.random_.chance(0.15))
        return error{errc::unreachable, "launch: no answer"};
      of_.check_launch(pool_, count);
      const bool told = !of_.random_.chance(0.1);
      std::vector<std::string> ids;
      for (int n = 0; n < count; ++n)
        ids.push_back(of_.launch_instance(pool_, told));
      return told ? result<std::vector<std::string>>(std::move(ids))
                  : error{errc::unreachable, "launch: the answer is lost"};
    }
    result<void> terminate(const std::vector<std::string>& ids) override {
      if (of_.random_.chance(0.1))
        return error{errc::unreachable, "terminate: no answer"};
      for (const auto& id : ids)
        if (of_.planted_ != planted_fault::instances_stay)
          of_.end_instance(id);
      return {};
    }

  private:
    platform& of_;
    int pool_;
  };

  void check_launch(int pool, int count) {
    for (const auto& x : instances_)
      count += x.pool == pool && x.known && !x.ends && !x.gone;
    if (const int most = plan_.pools[std::size_t(pool)].hosts; count > most)
      note("the provider of " + name_of_pool(pool) + " is asked for an instance above " +
           std::to_string(most));
  }
  std::string launch_instance(int pool, bool told) {
    const auto n = instances_.size();
    instances_.push_back({"i" + std::to_string(n), pool, -1, now(), told});
    const bool comes = !random_.chance(0.1);
    if (comes)
      later(std::chrono::milliseconds(10 + random_.below(15'000)), [this, n] {
        auto& x = instances_[n];
        if (x.ends || x.gone || over_)
          return;
        x.host = add_host(x.id, x.pool);
        start_agent(x.host);
      });
    return instances_[n].id;
  }
  void end_instance(const std::string& id) {
    const auto x =
      std::find_if(instances_.begin(), instances_.end(), [&](const auto& one) { return one.id == id; });
    if (x == instances_.end() || std::exchange(x->ends, true))
      return;
    afterwards_.push_back([this, n = std::size_t(x - instances_.begin())] {
      auto& one = instances_[n];
      one.gone = true;
      if (one.host < 0)
        return;
      hosts_.at(std::size_t(one.host)).lost = true;
      kill_host(one.host, duration{0});
    });
  }

  // ---- hosts

  int add_host(const std::string& name, int pool) {
    auto& on = hosts_.emplace_back();
    on.name = name;
    on.pool = pool;
    on.folder = folder_ / name;
    on.clock_ahead = std::chrono::seconds(rests_.below(3'600'000));
    caf::put(config_.content, "driven.clock-ahead-of-" + name, std::int64_t{on.clock_ahead.count()});
    return int(hosts_.size()) - 1;
  }
  void start_agent(int n) {
    auto& on = hosts_.at(std::size_t(n));
    if (over_ || on.agent_lives || on.lost)
      return;
    ::mkdir(on.folder.c_str(), 0777); // it may be there
    agent_setup setup;
    setup.name = on.name;
    setup.slots = plan_.slots;
    setup.pool = name_of_pool(on.pool);
    setup.dir = on.folder;
    setup.freeze = freeze;
    setup.look_every = std::chrono::milliseconds(0); // 0: the history looks itself, not a thread
    setup.on_fatal = [this, n](const error& why) {
      ended_agents_.push_back(hosts_[std::size_t(n)].name + ": " + why.what);
    };
    setup.children = {
      [this, n](auto&, const auto&, agent_actor agent) { return make_gateway(n, std::move(agent)); },
      [this, n](auto&, agent_actor agent) { return make_pump(n, std::move(agent)); },
      [this, n](auto&, auto, agent_actor agent) { return make_runtime(n, std::move(agent)); }};
    on.agent_lives = true;
    on.agent = spawn_agent(*system_, std::move(setup), [this, n](const agent_actor& self) {
      caf::anon_send(self,
                     master_found{cluster_ && !is_cut(n) ? far_end(n, cluster_) : caf::actor{}, "", false});
    });
  }
  void kill_agent(int n, duration away) {
    auto& on = hosts_.at(std::size_t(n));
    if (!on.agent_lives)
      return;
    caf::anon_send_exit(on.agent, caf::exit_reason::user_shutdown);
    settle();
    on.agent = nullptr;
    on.runtime = nullptr;
    on.gateway = nullptr;
    on.pump = nullptr;
    on.journal = nullptr;
    on.agent_lives = on.runtime_lives = false;
    caf::delayed_anon_send(ticker_, away, n);
  }

  // ---- links

  /// An actor that stands for `to` and passes messages on to it; answers to requests go directly. It ends
  /// with `to`. While its link stalls it holds messages and later sends them itself, because a promise works
  /// only in its own actor. Some messages arrive twice; where repeats may come `late`, also much later.
  caf::actor wire(const std::shared_ptr<link>& line, const caf::actor& to, bool late = false) {
    auto made = system_->spawn([this, line, to, late](caf::event_based_actor* self) -> caf::behavior {
      auto held = std::make_shared<std::vector<std::function<void()>>>();
      self->monitor(to);
      self->set_down_handler([self](const caf::down_msg& x) { self->quit(x.reason); });
      self->set_default_handler(
        [=, this](caf::scheduled_actor*, caf::message_view& x) -> caf::result<caf::message> {
          auto what = x.move_content_to_message();
          if (is_lost(what))
            return caf::delegated<caf::message>{};
          auto promise = self->make_response_promise();
          auto again = draw_repeat(line, to, what, late);
          auto send = [promise, to, what, again]() mutable {
            promise.delegate(to, std::move(what));
            if (again)
              again();
          };
          if (line->stalled || !held->empty())
            held->emplace_back(std::move(send));
          else
            send();
          return caf::delegated<caf::message>{};
        });
      return {[held](bool) {
        for (auto& send : std::exchange(*held, {}))
          send();
      }};
    });
    line->wires.push_back(made);
    others_.push_back(made);
    if (line->broken)
      end(*line);
    return made;
  }
  /// Whether this is an order to start that has to be lost.
  bool is_lost(const caf::message& what) {
    if (starts_to_lose_ == 0 || !what.match_elements<link_order>() ||
        what.get_as<link_order>(0).start.empty())
      return false;
    --starts_to_lose_;
    for (const auto& start : what.get_as<link_order>(0).start)
      is_not_heard(start);
    return true;
  }
  /// For a gang this may count as a loss (docs/NEXT.md).
  void is_not_heard(const start_ordered& start) {
    if (!start.allocation.task.is_trial())
      tasks_.hit(start.allocation.task);
  }
  /// A function that sends the message once more, from nobody, so that nobody hears two answers. Null: the
  /// message comes only once.
  std::function<void()> draw_repeat(const std::shared_ptr<link>& line, const caf::actor& to,
                                    const caf::message& what, bool late) {
    if (!repeats_.chance(plan_.repeated))
      return {};
    const auto send = [this, to, what] {
      caf::actor_cast<caf::strong_actor_ptr>(to)->enqueue(nullptr, caf::make_message_id(), what, nullptr);
      if (planted_ == planted_fault::repeated_start_runs && what.match_elements<link_order>())
        start_again(to, what.get_as<link_order>(0));
    };
    if (!late || repeats_.chance(0.5))
      return send;
    return [this, line, send, wait = std::chrono::milliseconds(repeats_.below(20'000))] {
      later(wait, [line, send] {
        if (!line->broken && !line->stalled)
          send();
      });
    };
  }
  void start_again(const caf::actor& agent, const link_order& x) {
    for (std::size_t n = 0; n < hosts_.size(); ++n)
      if (hosts_[n].agent_lives && hosts_[n].runtime && caf::actor_cast<caf::actor>(hosts_[n].agent) == agent)
        for (const auto& start : x.start)
          caf::anon_send(hosts_[n].runtime,
                         launch_order{start.allocation, start.slots, start.spec, clock(int(n)), ""});
  }
  /// The master as an agent sees it; each registration gets a link of its own.
  caf::actor far_end(int n, const cluster_actor& master) {
    auto made = system_->spawn([this, n, master](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self, n, master](register_agent& x, agent_actor& who) -> caf::result<registered> {
                if (is_cut(n))
                  return to_caf({errc::unreachable, "the link is cut"});
                auto line = hosts_.at(std::size_t(n)).line = std::make_shared<link>();
                auto promise = self->make_response_promise<registered>();
                auto seen = caf::actor_cast<agent_actor>(wire(line, caf::actor_cast<caf::actor>(who), true));
                self->request(master, std::chrono::seconds(20), std::move(x), seen)
                  .then(
                    [this, line, promise](registered& got) mutable {
                      got.twin =
                        caf::actor_cast<twin_actor>(wire(line, caf::actor_cast<caf::actor>(got.twin)));
                      got.journal =
                        caf::actor_cast<journal_actor>(wire(line, caf::actor_cast<caf::actor>(got.journal)));
                      promise.deliver(std::move(got));
                    },
                    [promise](const caf::error& why) mutable { promise.deliver(why); });
                return promise;
              },
              [](const client_command&) { return answered(); }, [](const node_joined&) {}};
    });
    others_.push_back(made);
    return made;
  }
  static void end(link& line) {
    line.broken = true;
    for (const auto& one : std::exchange(line.wires, {}))
      end_with_fault(one);
  }
  void break_link(int n) { end(*hosts_.at(std::size_t(n)).line); }
  /// Stalls a link. Its own heartbeats end a link that is silent for ten seconds.
  void stall_link(int n, duration time) {
    auto line = hosts_.at(std::size_t(n)).line;
    if (std::exchange(line->stalled, true))
      return;
    const bool ends = time > std::chrono::seconds(10);
    later(ends ? duration(std::chrono::seconds(10)) : time, [line, ends] {
      line->stalled = false;
      if (ends)
        return end(*line);
      for (const auto& one : line->wires)
        caf::anon_send(one, true);
    });
  }
  /// Cuts a link: it is silent in both directions until both sides notice, and they cannot connect until it
  /// heals.
  void cut_link(int n, duration time) {
    auto& until = hosts_.at(std::size_t(n)).cut_until;
    until = std::max(until, now() + time);
    stall_link(n, time);
  }
  time_point clock(int n) const { return now() + hosts_.at(std::size_t(n)).clock_ahead; }
  bool is_cut(int n) const { return now() < hosts_.at(std::size_t(n)).cut_until; }
  void later(duration wait, std::function<void()> what) {
    if (over_)
      return;
    others_.push_back(
      system_->spawn([wait, what = std::move(what)](caf::event_based_actor* self) -> caf::behavior {
        self->delayed_send(self, wait, true);
        return {[self, what](bool) {
          what();
          self->quit();
        }};
      }));
  }

  result<harness_gateway> make_gateway(int n, agent_actor agent) {
    auto& on = hosts_.at(std::size_t(n));
    on.journal = nullptr;
    on.gateway = system_->spawn([this, n, agent](harness_actor::pointer) -> harness_actor::behavior_type {
      return {[](harness_frames&) {},
              [](const harness_task&) {},
              [this, n, agent](const harness_gone& x) {
                if (auto* box = find(n, x.allocation); box && box->in_flight)
                  box->drain_asked = true;
                else
                  caf::anon_send(agent, harness_drained{x.allocation});
              },
              [this, n](const validation_answer& x) {
                if (auto* box = find(n, x.origin.allocation); box && x.stop)
                  box->asked_to_stop = true;
              },
              [this, n](const checkpoint_answer& x) {
                if (auto* box = find(n, x.allocation))
                  saved(*box, x);
              },
              [this, n](const preempt_ordered& x) {
                if (auto* box = find(n, x.allocation))
                  box->asked_to_stop = true;
              },
              [this, n](journal_actor& x) { hosts_.at(std::size_t(n)).journal = std::move(x); },
              [](const time_passed&) {},
              [](const worker_reply&) {}};
    });
    return harness_gateway{on.gateway, "tcp://127.0.0.1:1"};
  }
  log_pump_actor make_pump(int n, agent_actor agent) {
    return hosts_.at(std::size_t(n)).pump =
             system_->spawn([agent](log_pump_actor::pointer) -> log_pump_actor::behavior_type {
               return {[](const pump_spool&) {},
                       [agent](const pump_end& x) { caf::anon_send(agent, pumped{x.allocation}); },
                       [](const journal_actor&) {}, [](const time_passed&) {}};
             });
  }
  worker_runtime_actor make_runtime(int n, agent_actor agent) {
    auto& on = hosts_.at(std::size_t(n));
    const int life = ++on.runtime_life;
    on.runtime_lives = true;
    return on.runtime =
             system_->spawn([this, n, agent, life](
                              worker_runtime_actor::pointer self) -> worker_runtime_actor::behavior_type {
               self->attach_functor([this, n, life](const caf::error&) {
                 if (!over_ && hosts_.at(std::size_t(n)).runtime_life == life)
                   hosts_[std::size_t(n)].runtime_lives = false;
               });
               return {[this, n, agent](const launch_order& x) { launch(n, agent, x); },
                       [this, n](const destroy_order& x) {
                         if (auto* box = find(n, x.allocation); box && !box->dead) {
                           box->ordered = true;
                           if (hosts_.at(std::size_t(n)).is_cleared)
                             tasks_.hit(x.allocation.task);
                           kill(*box);
                         }
                       },
                       [this, n](const drop_order& x) { drop(n, x.allocation); },
                       [this, n](const renew_order& x) { renew(n, x.lease_from); },
                       [this, n, agent](const adopt_order&) { adopt(n, agent); },
                       [](const task_news&) {}};
             });
  }

  void renew(int n, time_point from) {
    auto& until = hosts_.at(std::size_t(n)).lease_until;
    until = std::max(until, from + freeze);
    if (planted_ == planted_fault::leases_too_long)
      until = std::max(until, from + freeze + std::chrono::minutes(1));
  }
  void adopt(int n, const agent_actor& agent) {
    auto& on = hosts_.at(std::size_t(n));
    if (planted_ == planted_fault::adoption_forgets)
      std::erase_if(on.records, [](const auto& x) { return !x.second->dead; });
    for (const auto& [id, box] : on.records)
      caf::anon_send(agent, news_of(*box, box->dead ? task_change::ended : task_change::adopted));
    task_news all;
    all.change = task_change::all_adopted;
    caf::anon_send(agent, std::move(all));
  }
  void drop(int n, allocation_id id) {
    const auto* box = find(n, id);
    if (!id.task.is_trial() && planted_ == planted_fault::records_stay)
      return;
    if (box && !id.task.is_trial() && planted_ == planted_fault::held_after_its_end)
      if (const auto entry = config_.probes->find("pool/default"))
        if (const auto pool = caf::actor_cast<caf::actor>(entry->who.lock())) {
          slots_held again;
          again.allocation = id;
          again.on = {{hosts_[std::size_t(n)].name, box->slots}};
          again.slots = int(box->slots.size());
          again.run.job.job = job_of(id.task);
          caf::anon_send(pool, std::move(again));
        }
    hosts_.at(std::size_t(n)).records.erase(id);
  }
  static task_news news_of(const sandbox& x, task_change change) {
    task_news news;
    news.change = change;
    news.task = {x.id, x.slots, x.dead, std::int64_t(x.serial), x.code, x.signal};
    news.task.ordered = x.ordered;
    news.task.certain = x.seen;
    news.token = x.token;
    news.checkpoint_dir = x.checkpoint_dir;
    news.spool = "spool";
    return news;
  }
  sandbox* find(int n, allocation_id id) {
    auto& records = hosts_.at(std::size_t(n)).records;
    auto it = records.find(id);
    return it == records.end() ? nullptr : it->second;
  }

  // ---- sandboxes and their scripts

  void launch(int n, const agent_actor& agent, const launch_order& x) {
    auto& on = hosts_.at(std::size_t(n));
    auto launch = x.spec.read();
    if (!launch)
      return note("a launch order does not read: " + launch.error().what);
    if (!started_.insert({n, x.allocation}).second)
      return note("run " + to_string(x.allocation) + " is started twice on " + on.name);
    for (const auto& [id, other] : on.records)
      for (const int slot : other->slots)
        if (!other->dead && std::count(x.slots.begin(), x.slots.end(), slot))
          return note("slot " + std::to_string(slot) + " of " + on.name + " is given to " +
                      to_string(x.allocation) + " while " + to_string(id) + " holds it");
    auto box = std::make_unique<sandbox>();
    box->id = x.allocation;
    box->serial = ++serials_;
    box->host = n;
    box->node_rank = launch->node_rank;
    box->nodes = launch->nodes;
    box->slots = x.slots;
    box->token = launch->token;
    box->checkpoint_dir = launch->checkpoint_dir;
    box->hparams = launch->hparams;
    if (!x.allocation.task.is_trial())
      box->plan = task_users::plan_of(plan_, launch->env);
    if (!launch->resume.empty()) {
      box->step = box->saved = launch->resume_steps;
      if (!fs::exists(fs::path(launch->checkpoint_dir) / launch->resume / weights))
        return note("run " + to_string(x.allocation) + " is to go on from checkpoint " + launch->resume +
                    ", whose files are gone");
    }
    on.records[x.allocation] = box.get();
    renew(n, x.lease_from);
    ++outcome_.runs;
    caf::anon_send(agent, news_of(*box, task_change::launched));
    wake(*box, std::chrono::milliseconds(10));
    check_limits(*(sandboxes_[box->serial] = std::move(box)));
  }
  /// Looks up where the run was placed, and its search, unless the master is away. It takes the pool from the
  /// placement, because the host may have moved since.
  void find_place(sandbox& x) const {
    const auto reads = this->reads();
    if (!x.pool.empty() || !reads)
      return;
    const auto task = reads->task(x.id.task);
    const auto runs = task ? reads->runs(x.id.task) : task.error();
    if (!runs)
      return;
    x.search = task->experiment;
    for (const auto& run : *runs)
      if (run.run == x.id.run)
        x.pool = run.pool;
  }
  /// Checks that the sandbox that has just begun is within the limits of its pool and of its search. Frozen
  /// sandboxes do not count, because their slots may be given away.
  void check_limits(sandbox& x) {
    find_place(x);
    int pool = 0;
    while (pool < int(plan_.pools.size()) && name_of_pool(pool) != x.pool)
      ++pool;
    if (pool == int(plan_.pools.size()))
      return; // the master is away
    const auto& of = plan_.pools[std::size_t(pool)];
    const auto search = x.search;
    int in_pool = 0, of_search = 0;
    for (const auto& [serial, one] : sandboxes_) {
      if (one->dead || frozen(*one))
        continue;
      // A master that has started again does not know who was given up with its actor.
      if (const auto at = abandoned_.find(one->id.task); at != abandoned_.end() && at->second != masters_)
        continue;
      find_place(*one);
      if (one->pool != x.pool)
        continue;
      in_pool += int(one->slots.size());
      if (search && one->search == search)
        of_search += int(one->slots.size());
    }
    for (const int most : {of.max_slots, of.quota})
      if (most >= 0 && in_pool > most)
        note("run " + to_string(x.id) + " makes " + std::to_string(in_pool) + " slots in pool " +
             name_of_pool(pool) + ", which may give " + std::to_string(most));
    if (const auto most = most_slots_.find(search); most != most_slots_.end() && of_search > most->second)
      note("run " + to_string(x.id) + " makes " + std::to_string(of_search) + " slots of search " +
           to_string(search) + ", which may have " + std::to_string(most->second));
  }
  void wake(const sandbox& x, duration after) { caf::delayed_anon_send(ticker_, after, x.serial); }

  bool frozen(const sandbox& x) const {
    const auto at = planted_ == planted_fault::leases_by_one_clock ? now() : clock(x.host);
    return at > hosts_.at(std::size_t(x.host)).lease_until;
  }

  /// Checks that the trial has no other process that goes on, as the two would write over each other.
  void check_alone(const sandbox& x) {
    for (const auto& [serial, other] : sandboxes_)
      if (!other->dead && other->id.task == x.id.task && other->id.run != x.id.run && !frozen(*other))
        note("runs " + to_string(x.id) + " and " + to_string(other->id) + " of one trial go on at once");
  }

  void act(sandbox& x) {
    if (x.dead)
      return;
    if (frozen(x))
      return wake(x, std::chrono::seconds(1));
    check_alone(x);
    if (x.node_rank != 0)
      return;
    if (!x.id.task.is_trial())
      return work(x);
    const auto met = std::count_if(sandboxes_.begin(), sandboxes_.end(),
                                   [&](const auto& other) { return other.second->id == x.id; });
    if (met < x.nodes) // the script trains together with all of its gang
      return wake(x, std::chrono::milliseconds(100));
    if (x.waiting == sandbox::waits::report)
      return report(x);
    if (x.waiting == sandbox::waits::checkpoint)
      return save(x);
    if (x.asked_to_stop || x.step == script_length)
      return x.saved == x.step ? finish(x) : save(x);
    if (fails_now(x)) {
      ++failures_[x.id.trial()];
      return finish(x, 1);
    }
    ++x.step;
    ++x.sequence;
    x.waiting = sandbox::waits::report;
    report(x);
  }

  bool fails_now(const sandbox& x) const {
    const auto so_far = failures_.find(x.id.trial());
    return x.step == script_length / 2 && x.hparams.at("x").get<double>() > 0.5 &&
           (so_far == failures_.end() ? 0 : so_far->second) < x.hparams.value("failures", 0);
  }

  // Does the work of a task that is not a trial.
  void work(sandbox& x) {
    wake(x, std::chrono::seconds(2));
    if (!x.plan) {
      const auto there = std::count_if(sandboxes_.begin(), sandboxes_.end(), [](const auto& one) {
        return !one.second->dead && !one.second->plan && !one.second->id.task.is_trial();
      });
      return there == aux_wanted_ ? finish_waiting() : void();
    }
    if (x.asked_to_stop)
      return finish(x);
    if (!x.answers && x.plan->kind != task_kind::command && x.plan->kind != task_kind::generic)
      say_it_answers(x);
    if (++x.step == x.plan->steps)
      return finish(x, x.plan->exit_code);
  }
  void finish_waiting() {
    for (auto& [serial, one] : sandboxes_)
      if (!one->dead && !one->plan && !one->id.task.is_trial())
        end(*one, 0, 0);
  }
  void say_it_answers(sandbox& x) {
    if (!cluster_)
      return;
    value fields{{"allocation", to_string(x.id)}, {"experiment", 0}};
    ticker_self_
      ->request(cluster_, std::chrono::seconds(1),
                client_command{"ada", false, to_string(x.id), "task.answers", std::move(fields)})
      .then([&x](const command_result& got) { x.answers = bool(got.got); }, [](const caf::error&) {});
  }

  void report(sandbox& x) {
    wake(x, std::chrono::seconds(2)); // checks later whether the report has arrived, and repeats it if not
    const auto& to = hosts_.at(std::size_t(x.host)).journal;
    if (!to || x.in_flight)
      return;
    storage::report_batch::report row;
    row.group = "validation";
    row.steps = x.step;
    row.at = now();
    const double at = x.hparams.at("x").get<double>();
    row.metrics =
      to_msgpack(value{{"loss", (at - 0.3) * (at - 0.3) + 1.0 / double(x.step)}, {"steps", x.step}});
    append_reports mail{x.id, 0, x.process(), x.sequence, {std::move(row)}};
    x.in_flight = true;
    log_line line;
    line.at = now();
    line.allocation = x.id;
    line.text = "step " + std::to_string(x.step);
    caf::anon_send(to, append_log{x.id.task, {std::move(line)}, "spool of " + x.process(), x.sequence});
    if (planted_ == planted_fault::told_before_stored)
      go_on(x);
    ticker_self_->request(to, std::chrono::seconds(5), std::move(mail))
      .then([this, &x](const reports_committed& got) { reported(x, got); },
            [this, &x](const caf::error&) { tried(x); });
  }
  void tried(sandbox& x) {
    x.in_flight = false;
    if (x.drain_asked && hosts_.at(std::size_t(x.host)).agent)
      caf::anon_send(hosts_[std::size_t(x.host)].agent, harness_drained{x.id});
  }
  void reported(sandbox& x, const reports_committed& got) {
    tried(x);
    if (got.refused || got.up_to < x.sequence || x.dead || x.waiting != sandbox::waits::report)
      return; // the journal knows that the run is over, so the run will be killed
    go_on(x);
  }
  void go_on(sandbox& x) {
    promised_[x.id.trial()].insert(x.step);
    x.waiting = sandbox::waits::nothing;
    if (x.step == script_length || x.step % 2 == 0)
      save(x);
  }

  void save(sandbox& x) {
    x.waiting = sandbox::waits::checkpoint;
    wake(x, std::chrono::seconds(2));
    const auto& on = hosts_.at(std::size_t(x.host));
    if (!on.agent_lives || !on.gateway)
      return;
    checkpoint saved;
    saved.uuid = x.uuid();
    saved.steps = x.step;
    saved.files = {{weights, 1}};
    saved.metadata = value::object();
    write_checkpoint(checkpoints_.emplace_back(fs::path(x.checkpoint_dir) / saved.uuid), folder_ / weights);
    caf::anon_send(on.agent, task_checkpoint{{x.id, 0, x.process(), 0}, std::move(saved)});
  }
  void saved(sandbox& x, const checkpoint_answer& answer) {
    if (x.dead || x.waiting != sandbox::waits::checkpoint || answer.uuid != x.uuid() ||
        !answer.refused.empty())
      return;
    x.saved = x.step;
    x.waiting = sandbox::waits::nothing;
  }
  /// Acts as a sandbox whose agent has closed its socket: it ends where the master says so, and reports when
  /// none of its processes lives any more.
  void ask_to_go_on(std::uint64_t serial) {
    const auto& x = *sandboxes_.at(serial);
    const auto& on = hosts_.at(std::size_t(x.host));
    const auto again = [this, serial] {
      later(std::chrono::seconds(1), [this, serial] { ask_to_go_on(serial); });
    };
    if (x.dead || on.agent_lives)
      return;
    if (is_cut(x.host))
      return again();
    value fields{{"agent", on.name}, {"allocation", to_string(x.id)}, {"token", "fence of " + on.name}};
    insist("fence", fields, [this, serial, fields, again](const result<value>& got) {
      auto& asked = *sandboxes_.at(serial);
      if (asked.dead || hosts_.at(std::size_t(asked.host)).agent_lives)
        return;
      if (!got || !got->at("kill").get<bool>())
        return again();
      asked.dead = true;
      asked.seen = false;
      asked.signal = 9;
      tasks_.hit(asked.id.task);
      auto dead = fields;
      dead["dead"] = true;
      insist("fence", std::move(dead), [](const auto&) {});
    });
  }
  void finish(sandbox& x, int code = 0) {
    for (auto& [serial, other] : sandboxes_)
      if (!other->dead && other->id == x.id)
        end(*other, code, 0);
  }
  void kill(sandbox& x) {
    if (planted_ == planted_fault::kill_ignored && !x.id.task.is_trial()) {
      auto told = news_of(x, task_change::ended);
      told.task.exited = true;
      told.task.ordered = true;
      told.task.signal = 9;
      caf::anon_send(hosts_.at(std::size_t(x.host)).agent, std::move(told));
      return;
    }
    end(x, 0, 9);
  }
  void end(sandbox& x, int code, int signal) {
    x.dead = true;
    x.code = code;
    x.signal = signal;
    const auto& on = hosts_.at(std::size_t(x.host));
    if (on.agent_lives && on.runtime_lives)
      caf::anon_send(on.agent, news_of(x, task_change::ended));
  }

  // ---- faults

  void trace(const char* what, const std::string& text) {
    if (config_.probes->tracing())
      config_.probes->write("history", what, text);
  }

  void strike(const platform_fault& x) {
    calm_at_ = std::max(calm_at_, now() + x.away + std::chrono::seconds(50));
    trace("fault", std::to_string(int(x.kind)));
    switch (x.kind) {
    case platform_fault_kind::actor_dies:
      return kill_some_actor(x.pick);
    case platform_fault_kind::master_dies:
      if (!cluster_)
        return;
      stop_master();
      return caf::delayed_anon_send(ticker_, x.away, true);
    case platform_fault_kind::agent_dies:
      kill_agent(int(x.pick % hosts_.size()), x.away);
      if (plan_.sandboxes_ask)
        for (const auto& [id, box] : hosts_.at(x.pick % hosts_.size()).records)
          later(std::chrono::milliseconds(200), [this, serial = box->serial] { ask_to_go_on(serial); });
      return;
    case platform_fault_kind::sandbox_dies:
      return kill_some_sandbox(x.pick);
    case platform_fault_kind::host_dies:
      return kill_host_or_instance(int(x.pick % hosts_.size()), x.away, x.pick / 64 % 2 == 0);
    case platform_fault_kind::user_pauses:
      return pause(x.pick, x.away);
    case platform_fault_kind::user_kills:
      return kill_some_trial(x.pick);
    case platform_fault_kind::link_breaks:
      return break_link(int(x.pick % hosts_.size()));
    case platform_fault_kind::link_stalls:
      return stall_link(int(x.pick % hosts_.size()), x.away);
    case platform_fault_kind::power_fails:
      for (std::size_t n = 0; n < hosts_.size(); ++n)
        kill_host(int(n), x.away);
      if (!cluster_)
        return;
      stop_master();
      return caf::delayed_anon_send(ticker_, x.away, true);
    case platform_fault_kind::start_is_lost:
      if (x.pick % 2 == 0)
        return mail_.lose_start([this](const start_ordered& start) { is_not_heard(start); });
      ++starts_to_lose_;
      return;
    case platform_fault_kind::link_is_cut:
      return cut_link(int(x.pick % hosts_.size()), x.away);
    case platform_fault_kind::task_is_abandoned:
      return abandon_some_task(x.pick);
    case platform_fault_kind::host_is_lost:
      return lose_host(int(x.pick % std::uint64_t(plan_.pools[0].hosts)));
    case platform_fault_kind::agent_is_disabled:
      return disable(int(x.pick % hosts_.size()), x.pick / 64, x.away);
    case platform_fault_kind::pool_changes:
      return change_pool(x.pick);
    case platform_fault_kind::agent_moves:
      return move_agent(x.pick, x.away);
    }
  }
  void kill_some_actor(std::uint64_t pick) {
    std::vector<std::pair<std::string, caf::actor>> some;
    for (const auto& one : config_.probes->all()) {
      const std::string& name = one->name;
      if (name == "journal" || name == "cluster" || name.starts_with("agent_node/"))
        continue; // the end of these would end their node
      if (auto entry = config_.probes->find(name))
        if (auto who = caf::actor_cast<caf::actor>(entry->who.lock()))
          some.emplace_back(name, std::move(who));
    }
    for (const auto& on : hosts_)
      if (on.agent_lives) {
        some.emplace_back("gateway of " + on.name, caf::actor_cast<caf::actor>(on.gateway));
        some.emplace_back("log pump of " + on.name, caf::actor_cast<caf::actor>(on.pump));
        some.emplace_back("runtime of " + on.name, caf::actor_cast<caf::actor>(on.runtime));
      }
    if (some.empty())
      return;
    const auto& [name, who] = some[pick % some.size()];
    struck_ += " " + name;
    if (constexpr std::string_view of_host = "runtime of "; name.starts_with(of_host))
      deaths_.push_back({name.substr(of_host.size()), now(), now()});
    trace("ends", name);
    if (who)
      end_with_fault(who);
  }
  /// Kills a host. An instance may be lost for good, as on a spot market.
  void kill_host_or_instance(int n, duration away, bool for_good) {
    for (auto& x : instances_)
      if (x.host == n && for_good) {
        x.gone = true;
        hosts_.at(std::size_t(n)).lost = true;
      }
    kill_host(n, away);
  }
  void kill_host(int n, duration away) {
    auto& on = hosts_.at(std::size_t(n));
    deaths_.push_back({on.name, now(), now() + away});
    if (on.agent_lives)
      kill_agent(n, away); // comes first, so that a sandbox that it has just started dies with the host
    for (const auto& [id, box] : on.records)
      if (!box->dead) {
        box->dead = true;
        box->seen = false;
        tasks_.hit(id.task);
      }
  }
  void abandon_some_task(std::uint64_t pick) {
    std::vector<std::string> some;
    for (const auto& one : config_.probes->all())
      if (one->name.starts_with("task/"))
        some.push_back(one->name);
    if (some.empty())
      return;
    std::sort(some.begin(), some.end());
    const auto& name = some[pick % some.size()];
    tasks_.hit(parse_task(name.substr(5)));
    abandoned_[parse_task(name.substr(5))] = masters_;
    kill_again(name, int(child_restarts<int>::most) + 1);
  }
  void kill_again(const std::string& name, int times) {
    if (const auto entry = config_.probes->find(name))
      if (const auto who = caf::actor_cast<caf::actor>(entry->who.lock())) {
        trace("ends", name);
        end_with_fault(who);
        --times;
      }
    if (times > 0 && journal_ && !terminal_task(name))
      later(std::chrono::milliseconds(50), [this, name, times] { kill_again(name, times); });
  }
  bool terminal_task(const std::string& name) const {
    return has_ended(*journal_->reads(), parse_task(name.substr(5)));
  }
  /// Loses a host for good. An operator removes it later, and what ran there is given away in any case.
  void lose_host(int n) {
    hosts_.at(std::size_t(n)).lost = true;
    kill_host(n, duration{0});
    later(std::chrono::seconds(20), [this, n] { remove_host(n); });
  }
  /// Orders the removal of a host, which is refused until what ran there is given away.
  void remove_host(int n) {
    insist("agent.remove", {{"agent", hosts_.at(std::size_t(n)).name}}, [this, n](const result<value>& got) {
      if (!got && got.error().code == errc::conflict)
        later(std::chrono::seconds(5), [this, n] { remove_host(n); });
    });
  }
  void disable(int n, std::uint64_t how, duration away) {
    auto& on = hosts_.at(std::size_t(n));
    const bool ends = how % 2 == 0;
    value which{{"agent", on.name}, {"on", true}, {"ends", ends}};
    if (how % 3 == 0)
      which["slot"] = how / 8 % std::uint64_t(plan_.slots);
    on.is_cleared |= ends;
    insist("agent.drain", which, [this, which, away](const auto&) {
      auto back = which;
      back["on"] = false;
      later(away, [this, back] { insist("agent.drain", back, [](const auto&) {}); });
    });
  }
  void pause(std::uint64_t pick, duration away) {
    if (submitted_.empty())
      return;
    const value which{{"id", submitted_[pick % submitted_.size()].value}};
    insist("experiment.pause", which, [this, which, away](const auto&) {
      later(away, [this, which] { insist("experiment.activate", which, [](const auto&) {}); });
    });
  }
  void kill_some_trial(std::uint64_t pick) {
    const auto newest = journal_ ? journal_->reads()->newest_trial() : trial_id{};
    if (!newest)
      return;
    const trial_id id{1 + pick % newest.value};
    killed_.insert(id);
    insist("trial.kill", {{"id", id.value}}, [](const auto&) {});
  }
  /// Repeats an order until the master has answered. `then` is called also where the master refuses.
  void insist(std::string order, value fields, std::function<void(const result<value>&)> then) {
    others_.push_back(
      system_->spawn([this, order, fields, then](caf::event_based_actor* self) -> caf::behavior {
        self->send(self, true);
        return {[this, self, order, fields, then](bool) {
          if (over_)
            return self->quit();
          if (!cluster_)
            return self->delayed_send(self, std::chrono::milliseconds(200), true);
          self->request(cluster_, std::chrono::seconds(10), client_command{"ada", true, "", order, fields})
            .then(
              [self, then](const command_result& x) {
                if (!x.got && (x.got.error().code == errc::timeout || x.got.error().code == errc::internal ||
                               x.got.error().code == errc::busy))
                  return self->delayed_send(self, std::chrono::milliseconds(200), true);
                then(x.got);
                self->quit();
              },
              [self](const caf::error&) { self->delayed_send(self, std::chrono::milliseconds(200), true); });
        }};
      }));
  }
  void kill_some_sandbox(std::uint64_t pick) {
    std::vector<sandbox*> some;
    for (const auto& [serial, x] : sandboxes_)
      if (!x->dead)
        some.push_back(x.get());
    if (some.empty())
      return;
    auto& hit = *some[pick % some.size()];
    if (hit.id.task.is_trial())
      hit_.insert(hit.id.trial());
    tasks_.hit(hit.id.task);
    end(hit, 0, pick / 64 % 4 == 0 ? 9 : 11); // signal 9 is that of a host that is out of memory
  }

  // ---- the verdict

  void check() {
    if (!ended_agents_.empty())
      fail("an agent has ended: " + ended_agents_.front());
    const auto reads = journal_->reads();
    for (const auto id : submitted_) {
      if (searches_->is_deleted(id))
        continue;
      const auto row = reads->experiment(id);
      const auto trials = reads->trials(id);
      if (!row || !trials)
        fail("experiment " + to_string(id) + " is not stored");
      const bool stopped = searches_->is_stopped(id);
      bool hit = stopped;
      for (const auto& trial : *trials) {
        check_runs(*reads, trial.id);
        const bool of_signal = hit_.contains(trial.id);
        const auto known = failures_.find(trial.id);
        const int failures = known == failures_.end() ? 0 : known->second;
        const bool failed = failures > max_restarts_.at(id);
        hit |= of_signal || failed;
        hit |= killed_.contains(trial.id); // the kill of a search's last trial ends the search
        const bool of_user = (stopped || killed_.contains(trial.id)) && trial.state == trial_state::canceled;
        if (trial.state != trial_state::completed && !of_user &&
            !((of_signal || failed) && trial.state == trial_state::error))
          fail("trial " + to_string(trial.id) + " is " + std::string(name(trial.state)) + ": " + trial.why);
        if (trial.restarts > failures && !of_signal)
          fail("trial " + to_string(trial.id) + " has " + std::to_string(trial.restarts) +
               " restarts, and its script failed " + std::to_string(failures) + " times");
      }
      if (row->state != experiment_state::completed && !hit)
        fail("experiment " + to_string(id) + " is " + std::string(name(row->state)) + ": " + row->why);
      check_draws(*row, *trials);
    }
    for (const auto& [trial, promised] : promised_) {
      if (searches_->is_deleted(trial))
        continue;
      std::set<std::int64_t> stored;
      if (const auto rows = reads->metrics(trial, 0, 1000, "validation"))
        for (const auto& row : *rows)
          stored.insert(row.steps);
      for (const auto steps : promised)
        if (!stored.contains(steps))
          fail("the validation of trial " + to_string(trial) + " after " + std::to_string(steps) +
               " steps was acknowledged and is not there");
    }
    for (const auto& [serial, x] : sandboxes_)
      if (!x->dead)
        fail("run " + to_string(x->id) + " still runs");
    searches_->check_ends();
    const auto all = all_tasks(*reads);
    hit_what_was_placed_on_the_dead(all);
    tasks_.check_ends(all, may_have_lost());
    if (!wrong_.empty())
      fail(wrong_);
  }
  /// Checks that a search which hears no metrics has created exactly what its searcher creates on its own,
  /// whatever happened to it. One that a user has ended is left out.
  void check_draws(const experiment_row& row, const std::vector<trial_row>& trials) const {
    if (!hears_nothing_.contains(row.id) ||
        (searches_->is_stopped(row.id) && row.state != experiment_state::completed))
      return;
    std::vector<double> drawn;
    for (const auto& x : trials)
      drawn.push_back(x.hparams.at("x").get<double>());
    if (drawn != drawn_alone(row.config, plan_.seed % 1000))
      fail("search " + to_string(row.id) + " drew other trials than its searcher draws alone");
  }
  /// Checks that the trial's runs came one after another, and that none is open at the end.
  void check_runs(const storage::reader& reads, trial_id id) const {
    const auto it = "trial " + to_string(id);
    int open = 0;
    const auto facts = reads.facts_of(entity(id));
    for (const auto& bytes : facts ? *facts : std::vector<std::string>()) {
      const auto fact = decode_as<trial_fact>(bytes);
      if (!fact)
        fail("a fact of " + it + " does not read");
      const auto* ended = std::get_if<run_ended>(&*fact);
      open += ended ? -1 : std::holds_alternative<run_started>(*fact) ? 1 : 0;
      if (open < 0 || open > 1)
        fail(it + " has " + std::to_string(open) + " open runs");
      if (ended && ended->why == end::lost && only_the_master_dies())
        fail("run " + to_string(ended->run) + " of " + it +
             " was lost with its master alone: " + ended->detail);
    }
    if (open > 0)
      fail(it + " has ended with an open run");
  }
  /// Whether only the master dies. Agents and their tasks outlive it, so what they run goes on, except for a
  /// gang of which one rank may not have begun.
  bool only_the_master_dies() const {
    const auto harmless = [](const platform_fault& x) {
      return x.kind == platform_fault_kind::master_dies || x.kind == platform_fault_kind::user_pauses ||
             x.kind == platform_fault_kind::user_kills || x.kind == platform_fault_kind::pool_changes;
    };
    return instances_.empty() && std::all_of(plan_.faults.begin(), plan_.faults.end(), harmless) &&
           std::all_of(plan_.searches.begin(), plan_.searches.end(),
                       [](const auto& x) { return x.slots_per_trial == 1; });
  }
  /// Marks tasks that were placed on a host while it, or its runtime, was dying: these may be lost though
  /// they never began there (docs/failures.md).
  void hit_what_was_placed_on_the_dead(const std::vector<task_detail>& all) {
    for (const auto& row : all)
      for (const auto& run : row.runs)
        for (const auto& part : run.on)
          for (const auto& [name, from, until] : deaths_)
            if (part.agent == name && run.placed >= from - std::chrono::seconds(1) &&
                run.placed <= until + std::chrono::seconds(1))
              tasks_.hit(row.made.id);
  }
  /// Whether leases may have ended, which takes times away that add up. Before that no task is given away,
  /// unless a host is lost for good.
  bool may_have_lost() const {
    if (plan_.loses_host() || !instances_.empty())
      return true;
    duration all{0};
    for (const auto& x : plan_.faults)
      all += x.away;
    return all > freeze;
  }
  std::string what_waits() const {
    std::string text = "killed:" + struck_;
    for (const auto& [serial, x] : sandboxes_)
      if (!x->dead)
        text += "\n  run " + to_string(x->id) + " on " + hosts_[std::size_t(x->host)].name + " at step " +
                std::to_string(x->step) + (frozen(*x) ? ", frozen" : "");
    for (const auto& one : config_.probes->all())
      text += "\n  " + one->name;
    return text + tasks_.describe();
  }

  const platform_plan plan_;
  const planted_fault planted_;
  rng random_, ids_, repeats_, rests_;
  fs::path folder_;
  node_config& config_ = configuration_of_next();
  master_mail mail_;
  replayed_machines replayed_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  time_point began_ = {};
  caf::actor ticker_;
  std::vector<caf::resumable*> resting_; ///< jobs that are put back later
  std::vector<caf::actor> others_;       ///< actors of links, and of users who wait
  caf::event_based_actor* ticker_self_ = nullptr;
  std::shared_ptr<storage::store> store_ = storage::make_memory_store();
  std::shared_ptr<storage::journal> journal_;
  journal_actor journal_actor_;
  cluster_actor cluster_;  ///< null while the master is away
  std::deque<host> hosts_; ///< hosts of instances come later; a deque keeps its elements in place
  std::deque<instance> instances_;
  struct death {
    std::string name;
    time_point from, until;
  };
  std::vector<death> deaths_; ///< deaths of hosts and of runtimes
  /// Functions to run between two messages, outside of any actor.
  std::deque<std::function<void()>> afterwards_;
  std::map<std::uint64_t, std::unique_ptr<sandbox>> sandboxes_;
  std::set<std::pair<int, allocation_id>> started_;
  /// Validations that scripts were told are stored, by their steps.
  std::map<trial_id, std::set<std::int64_t>> promised_;
  std::set<trial_id> hit_;            ///< trials with a sandbox that died by a signal
  std::map<trial_id, int> failures_;  ///< number of failures that each trial's script made on its own
  std::vector<fs::path> checkpoints_; ///< folders that scripts have written
  std::map<experiment_id, int> max_restarts_;
  std::set<trial_id> killed_; ///< trials that a user killed
  std::vector<experiment_id> submitted_;
  std::vector<std::string> ended_agents_;
  std::string struck_, last_refusal_, wrong_; ///< wrong_: the fault that was found; empty: none
  std::uint64_t serials_ = 0;
  task_users tasks_;
  std::optional<search_users> searches_; ///< nullopt until the project to which they move exists
  int keys_ = 0;
  int masters_ = 0;    ///< number of masters that were started
  int aux_wanted_ = 0; ///< number of tasks without slots that wait until as many of them run
  std::size_t next_fault_ = 0;
  int starts_to_lose_ = 0; ///< number of orders to start that still have to be lost
  bool over_ = false;
  std::map<experiment_id, int> most_slots_; ///< most slots that a search was ever allowed; missing: no limit
  /// Tasks whose actors have died more often than they are made again, with the value of `masters_` then.
  std::map<task_id, int> abandoned_;
  std::set<experiment_id> hears_nothing_; ///< searches whose draws do not depend on time
  platform_outcome outcome_;
  /// By then every host that was away has come back, and the leases of what lost hosts ran are over.
  time_point calm_at_{};
  bool stored_ = false; ///< whether facts came since it was looked at
};

} // namespace

platform_outcome play(const platform_plan& plan, planted_fault planted) {
  platform all(plan, planted);
  std::optional<std::string> wrong;
  try {
    all.play();
  } catch (const violation& x) {
    wrong = x.what;
  }
  auto outcome = all.outcome();
  outcome.wrong = std::move(wrong);
  return outcome;
}

} // namespace troupe::sim
