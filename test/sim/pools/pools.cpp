#include "test/sim/pools/pools.hpp"

#include "actors/agent_twin/agent_twin.hpp"
#include "actors/cluster/members.hpp"
#include "actors/pool/pool.hpp"
#include "actors/provider/provisioner.hpp"
#include "model/assert.hpp"
#include "model/config/cluster_config.hpp"
#include "test/sim/pools/planted.hpp"
#include "test/sim/pools/timeline.hpp"
#include "test/sim/pools/watched.hpp"

#include <cstdio>
#include <memory>
#include <unordered_map>

namespace troupe::sim {
namespace {

constexpr duration fault_window = 320s; ///< no fault begins after this time
constexpr duration longest = 4 * 3600s; ///< a history that has not ended by then is taken to have no end
constexpr duration sandbox_lease = 40s; ///< time after which the sandboxes of a host that hears nothing end
constexpr duration call_limit = 60s;    ///< time limit of a provider's call

using alive_flag = std::shared_ptr<bool>;
alive_flag alive() { return std::make_shared<bool>(true); }

/// The state that outlives the master: facts, and what trials and users know.
struct trial_record {
  trial_id id;
  std::size_t job = 0;
  pools_plan::trial is;
  std::uint64_t run = 0;
  time_point started; ///< start of the run
  bool open = false, over = false, kill = false;
  double left = 0; ///< seconds of work after the newest checkpoint
};
struct job_record {
  job_terms terms;
  std::string pool;
  bool submitted = false;
  std::vector<std::size_t> trials;
};

struct task {
  allocation_id id;
  std::vector<int> slots;
  std::uint64_t life = 0; ///< number of the start, counted over all tasks
  bool alive = true, stopping = false, ordered = false, certain = true;
  int exit_code = 0, signal = 0;
  time_point begun;
};

struct host_record {
  pools_plan::host is;
  bool up = true, agent = true, gone = false; ///< gone: the host is an instance that has ended
  std::uint64_t link = 0;                     ///< epoch of its registration; 0: it is not registered
  bool asking = false;
  time_point cut_until, leased_until;
  std::map<allocation_id, task> tasks;
};

struct instance_record {
  bool live = true, comes = true;
  time_point launched;
};
struct cloud {
  std::map<std::string, instance_record> instances;
  int numbered = 0;
  time_point fails_until, hangs_until, errs_until, starts_none_until;
  std::vector<time_point> launches;
};

class history;

/// Keeps the order of a shell: actions of a step run once the facts of the step are durable. `mirror` sees
/// only facts.
template <class Machine, class Fact, class Action>
class durable_queue {
public:
  Machine machine, mirror;
  alive_flag here = alive();

  durable_queue(history& h, std::string entity, Machine fresh);
  ~durable_queue() { *here = false; }
  durable_queue(const durable_queue&) = delete;
  void take(std::vector<Fact> facts, std::vector<Action> actions);
  std::function<void(const Action&)> run;
  std::function<void(const Fact&)> committed;

private:
  struct held {
    bool durable = false;
    std::vector<Fact> facts;
    std::vector<Action> actions;
  };
  void drain();
  history& h_;
  std::string entity_;
  std::deque<held> queue_;
  bool draining_ = false;
};

using members_shell = durable_queue<members, cluster_fact, members_action>;
using provision_queue = durable_queue<provisioner, provider_fact, provisioner_action>;
using allocation_queue = durable_queue<allocation, allocation_fact, allocation_action>;

struct pool_shell {
  pool machine;
  watched_pool watched;
  std::uint64_t life = 0;
  std::optional<time_point> armed;
  std::map<allocation_id, std::uint64_t> asked; ///< incarnation of each allocation that asked for slots
  bool dead = false;
};
struct provision_shell {
  provision_queue queue;
  std::optional<time_point> armed;
  std::uint64_t life = 0;
  value settings;
};
struct twin_shell {
  agent_twin machine;
  std::string pool;
  std::map<allocation_id, std::uint64_t> known;
  std::optional<time_point> armed;
};
struct allocation_shell {
  allocation_queue queue;
  std::uint64_t incarnation = 0;
  std::size_t trial = 0;
  std::string pool_name;
  std::optional<time_point> armed;
  std::function<void()> met;
};

struct master {
  explicit master(history& h, members fresh) : who(h, "cluster", std::move(fresh)) {}
  members_shell who;
  std::map<std::string, std::unique_ptr<pool_shell>> pools;
  std::map<std::string, std::unique_ptr<provision_shell>> provisioners;
  std::map<std::string, std::unique_ptr<twin_shell>> twins;
  std::map<allocation_id, std::unique_ptr<allocation_shell>> allocations;
  bool recovering = true;
};

class history {
public:
  history(const pools_plan& plan, bool trace) : plan_(plan), random_(plan.seed ^ 0xbeef), tracing_(trace) {
    for (const auto& h : plan.hosts)
      hosts_[h.name].is = h;
    for (const auto& pool : config::pool_names(plan.configuration))
      clouds_[pool];
    for (std::size_t j = 0; j < plan.jobs.size(); ++j) {
      const auto& from = plan.jobs[j];
      job_record job;
      job.pool = from.pool;
      job.terms.job = {j + 1};
      job.terms.submitted = begin_ + from.submitted;
      job.terms.user = from.user;
      job.terms.workspace = "w";
      job.terms.priority = from.priority;
      job.terms.max_slots = from.max_slots;
      job.terms.weight = from.weight;
      for (const auto& t : from.trials) {
        job.trials.push_back(trials_.size());
        trials_.push_back({{trials_.size() + 1}, j, t, 0, {}, false, false, false, t.seconds});
      }
      jobs_.push_back(std::move(job));
    }
  }

  void play() {
    configuration_ = plan_.configuration;
    start_master();
    for (auto& [name, host] : hosts_)
      agent_lives(name);
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      clock.at(begin_ + plan_.jobs[j].submitted, [this, j] { submit(j); });
    for (const auto& f : plan_.faults)
      clock.at(begin_ + f.after, [this, &f] { happen(f); });
    clock.at(begin_ + fault_window, [this] { calm(); });
    clock.at(begin_ + fault_window + 1s, [this] { look(); });
    while (!finished_) {
      if (clock.now() > begin_ + longest)
        fail(what_is_left());
      if (!clock.step())
        fail("nothing happens any more; " + what_is_left());
      ++events;
      bury();
    }
  }

  [[noreturn]] static void fail(std::string what) { throw violation{std::move(what)}; }
  template <class Text>
  void trace(Text text) const {
    if (tracing_)
      std::fprintf(stderr, "%9.4f %s\n", double((clock.now() - begin_) / 1us) / 1e6,
                   std::string(text()).c_str());
  }

  // ---- the journal

  std::map<std::string, std::vector<std::string>> journal;

  /// Commits facts. `done` runs once they are durable. The facts may become durable also where the master
  /// dies before that.
  void commit(const std::string& entity, std::vector<std::string> facts, std::function<void()> done) {
    committed_at_ = std::max(committed_at_, clock.now()) + between(50us, random_.chance(0.05) ? 200ms : 2ms);
    pending_.push_back({entity, std::move(facts)});
    clock.at(committed_at_, [this, life = life_, done = std::move(done)] {
      if (life != life_ || !up_)
        return;
      store_first();
      done();
    });
  }

  timeline clock;
  std::uint64_t events = 0, runs = 0, preemptions = 0, reservations = 0, elsewhere = 0, launches = 0;

private:
  struct pending {
    std::string entity;
    std::vector<std::string> facts;
  };
  void store_first() {
    auto first = std::move(pending_.front());
    pending_.pop_front();
    auto& to = journal[first.entity];
    to.insert(to.end(), first.facts.begin(), first.facts.end());
  }
  template <class Fact>
  std::vector<Fact> facts_of(const std::string& entity) const {
    std::vector<Fact> out;
    if (const auto it = journal.find(entity); it != journal.end())
      for (const auto& bytes : it->second)
        out.push_back(*decode_as<Fact>(bytes));
    return out;
  }

  duration between(duration least, duration most) {
    return least + duration{std::int64_t(random_.below(std::uint64_t((most - least).count()) + 1))};
  }

  // ---- messages within the master, and of the wire

  void send(const std::string& from, const std::string& to, std::function<void()> what) {
    const auto key = mix64(std::hash<std::string>()(from)) ^ std::hash<std::string>()(to);
    auto& last = last_[key];
    const auto delay = random_.chance(plan_.slow) ? between(20ms, 2s) : between(20us, 300us);
    last = std::max(last, clock.now() + delay);
    clock.at(last, std::move(what));
  }
  /// Sends a message that arrives only within the same life of the master.
  void tell(const std::string& from, const std::string& to, std::function<void()> what) {
    send(from, to, [this, life = life_, what = std::move(what)] {
      if (up_ && life == life_)
        what();
    });
  }
  bool passes(const host_record& h) const { return h.up && clock.now() >= h.cut_until; }
  void to_host(const std::string& name, std::uint64_t epoch, std::function<void(host_record&)> what) {
    if (!passes(hosts_.at(name)))
      return;
    send("master", "host " + name, [this, name, epoch, what = std::move(what)] {
      auto& h = hosts_.at(name);
      if (passes(h) && h.agent && (epoch == 0 || h.link == epoch))
        what(h);
    });
  }
  void to_twin(const std::string& name, twin_event ev) {
    const auto epoch = hosts_.at(name).link;
    if (!epoch || !passes(hosts_.at(name)))
      return;
    tell("host " + name, "twin " + name, [this, name, ev = std::move(ev), epoch] {
      if (hosts_.at(name).link == epoch && m_->twins.contains(name))
        twin_step(name, ev);
    });
  }

  // ---- the master's lives

  void start_master() {
    up_ = true;
    ++life_;
    committed_at_ = clock.now();
    trace([&] { return "the master starts, life " + std::to_string(life_); });
    members fresh({45s, clock.now(), configuration_});
    m_ = std::make_unique<master>(*this, fresh);
    for (const auto& fact : facts_of<cluster_fact>("cluster")) {
      m_->who.machine.replay(fact);
      m_->who.mirror.replay(fact);
    }
    m_->who.run = [this](const members_action& x) { std::visit([this](const auto& one) { run(one); }, x); };
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      if (jobs_[j].submitted)
        enter(j);
    m_->who.take({}, m_->who.machine.resume());
    for (auto& t : trials_)
      if (t.open) {
        allocation probe({{t.id, {t.run}}});
        for (const auto& fact : facts_of<allocation_fact>(entity(allocation_id{t.id, {t.run}})))
          probe.replay(fact);
        if (!probe.closed())
          for (const auto& part : probe.placed())
            if (m_->twins.contains(part.agent))
              twin_step(part.agent, watch_ordered{{t.id, {t.run}}, part.slots});
      }
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (trials_[i].open)
        spawn_allocation(i);
      else if (jobs_[trials_[i].job].submitted)
        next_run(i);
    m_->recovering = false;
    for (const auto& [name, pool] : m_->pools)
      introduce(name);
  }
  void master_dies(duration away) {
    if (!up_)
      return;
    trace([] { return "the master dies"; });
    up_ = false;
    for (auto n = random_.below(pending_.size() + 1); n > 0; --n)
      store_first(); // a random part of the pending commits has reached the disk
    pending_.clear();
    graveyard_.clear();
    after_members_.clear();
    m_.reset();
    for (auto& [name, h] : hosts_)
      h.link = 0;
    clock.at(clock.now() + std::max(away, duration{1s}), [this] { start_master(); });
  }
  void enter(std::size_t j) {
    m_->who.take({}, m_->who.machine
                       .apply(experiment_entered{jobs_[j].terms.job,
                                                 {{"resources", {{"resource_pool", jobs_[j].pool}}}},
                                                 jobs_[j].pool},
                              clock.now())
                       .actions);
  }
  void tell_members(const members_event& ev) {
    if (m_->who.machine.refuses(ev, clock.now()))
      return;
    auto s = m_->who.machine.apply(ev, clock.now());
    m_->who.take(std::move(s.facts), std::move(s.actions));
  }

  // The actions of members follow.
  void run(const make_pool& x) {
    auto& p = m_->pools[x.pool];
    const bool again = x.again || x.after_restart;
    p = std::make_unique<pool_shell>(
      pool_shell{pool(again ? pool::phase::recovering : pool::phase::placing, pool_settings{}),
                 {},
                 ++pool_lives_,
                 {},
                 {}});
    p->watched.placing = !again;
    if (!x.after_restart)
      introduce(x.pool);
  }
  void run(const configure_pool& x) { tell_pool("cluster", x.pool, pool_configured{x.settings}); }
  void run(const end_pool&) { fail("a pool ended that is still configured"); }
  void run(const supply_pool& x) {
    auto& p = m_->provisioners[x.pool];
    if (p)
      return provision_step(x.pool, provider_configured{x.settings});
    make_provisioner(x.pool, x.settings);
  }
  void run(const make_twin& x) {
    if (x.again)
      fail("a twin was made again");
    m_->twins[x.agent] = std::make_unique<twin_shell>(
      twin_shell{agent_twin(x.agent, {30s, 45s, 10s, 200ms, 45s}, clock.now()), x.pool, {}, {}});
    arm_twin(x.agent);
  }
  void run(const end_twin&) { fail("an agent changed its pool"); }
  void run(const watch_agent&) { fail("an agent is to change its pool"); }
  void run(const order_agent& x) {
    for (const auto& [name, p] : m_->pools)
      tell_pool("cluster", name,
                agent_drain{x.agent, x.draining, x.disabled, x.ends, x.ended, x.leaves_for, x.by});
  }
  void run(const forget_agent&) { fail("an agent was forgotten"); }
  void run(const end_run&) { fail("a run lost its owner"); }
  void run(const release_run&) { fail("a run lost its owner"); }
  void run(const give_up& x) { fail("the cluster gave up: " + x.why.what); }

  // ---- pools

  void tell_pool(const std::string& from, const std::string& name, pool_event ev,
                 std::uint64_t incarnation = 0, std::function<void()> heard = {}) {
    const auto it = m_->pools.find(name);
    const auto life = it == m_->pools.end() ? 0 : it->second->life;
    tell(from, "pool " + name, [this, name, ev = std::move(ev), incarnation, life, heard = std::move(heard)] {
      const auto there = m_->pools.find(name);
      if (there != m_->pools.end() && there->second->life == life && !there->second->dead) {
        auto& asked = there->second->asked;
        if (const auto* x = std::get_if<slots_requested>(&ev))
          asked[x->allocation] = std::max(asked[x->allocation], incarnation);
        if (const auto* x = std::get_if<slots_held>(&ev))
          asked[x->allocation] = std::max(asked[x->allocation], incarnation);
        if (const auto* x = std::get_if<slots_released>(&ev); x && x->agent.empty())
          asked.erase(x->allocation);
        pool_step(name, ev);
      }
      if (heard)
        heard();
    });
  }

  void pool_step(const std::string& name, const pool_event& ev) {
    auto& p = *m_->pools.at(name);
    if (std::holds_alternative<holders_heard>(ev))
      check_all_heard(name, p);
    p.watched.hear(ev, clock.now());
    const auto before = p.machine.agents();
    auto actions = p.machine.apply(ev, clock.now());
    trace([&] { return "pool " + name + ": " + text(ev) + " ->" + text(actions); });
    p.watched.truth = [this](const std::string& agent, int slot) { return drained_long(agent, slot); };
    p.watched.saw(ev, actions, before, clock.now());
    for (const auto& action : actions)
      std::visit([&](const auto& x) { did(name, x); }, action);
    arm_pool(name);
    tell_demand(name);
  }
  void arm_pool(const std::string& name) {
    auto& p = *m_->pools.at(name);
    const auto at = p.machine.deadline();
    if (!at || (p.armed && *p.armed <= *at))
      return;
    p.armed = *at;
    clock.at(*at, [this, name, at = *at, life = life_, pool_life = p.life] {
      if (!up_ || life != life_ || m_->pools.at(name)->life != pool_life)
        return;
      auto& one = *m_->pools.at(name);
      if (one.armed != at)
        return;
      one.armed.reset();
      if (++one.watched.timers > 5'000)
        fail("the timer of pool " + name + " never rests");
      pool_step(name, time_passed{});
    });
  }
  /// Sends to the allocation that asked for slots. Where it has died, nobody holds the slots.
  void to_asker(const std::string& name, allocation_id id, std::function<void(allocation_shell&)> what,
                bool grant) {
    auto& p = *m_->pools.at(name);
    const auto asked = p.asked.find(id);
    if (asked == p.asked.end()) {
      if (grant)
        tell_pool("pool " + name, name, slots_released{id, {}});
      return;
    }
    tell("pool " + name, "allocation " + to_string(id),
         [this, name, id, incarnation = asked->second, pool_life = p.life, what = std::move(what), grant] {
           const auto it = m_->allocations.find(id);
           if (it != m_->allocations.end() && it->second->incarnation == incarnation)
             return what(*it->second);
           auto& now = *m_->pools.at(name);
           if (grant && now.life == pool_life && now.asked.contains(id) && now.asked[id] == incarnation)
             tell_pool("pool " + name, name, slots_released{id, {}});
         });
  }
  void did(const std::string& name, const grant_slots& x) {
    const auto pool_life = m_->pools.at(name)->life;
    to_asker(
      name, x.allocation,
      [this, name, x, pool_life](allocation_shell& a) {
        const auto has_left = name != a.pool_name && !a.queue.machine.asked().contains(name);
        if (has_left || m_->pools.at(name)->life != pool_life)
          return;
        if (a.queue.machine.placed().empty() && !a.queue.machine.closed())
          a.pool_name = name;
        allocation_step(a, slots_granted{x.allocation, x.on, name, x.backfilled});
      },
      true);
  }
  void did(const std::string& name, const preempt_allocation& x) {
    ++preemptions;
    to_asker(
      name, x.allocation, [this, x](allocation_shell& a) { allocation_step(a, x); }, false);
  }
  void did(const std::string& name, const fall_back& x) {
    to_asker(
      name, x.allocation,
      [this, x](allocation_shell& a) {
        if (a.pool_name == a.queue.machine.home())
          allocation_step(a, x);
      },
      false);
  }
  void did(const std::string& name, const guest_waits& x) {
    to_asker(
      name, x.allocation,
      [this, x, name](allocation_shell& a) {
        allocation_step(a, guest_waits{x.allocation, name});
      },
      false);
  }
  void did(const std::string&, const reserve_slots&) { ++reservations; }
  void did(const std::string&, const drop_reservation&) {}
  void did(const std::string&, const report_unplaceable&) {}
  void did(const std::string&, const report_spare&) {}

  /// Checks that a pool which was made again knows everything that is placed in it before it places anything.
  void check_all_heard(const std::string& name, pool_shell& p) {
    for (const auto& [id, a] : m_->allocations)
      if (!a->queue.machine.closed() && !a->queue.machine.placed().empty() &&
          a->queue.machine.pool() == name && !p.watched.knows(id))
        fail("pool " + name + " places before it heard of " + to_string(id));
  }
  /// Introduces a pool in the same way as cluster_members::introduce.
  void introduce(const std::string& name) {
    const auto life = m_->pools.at(name)->life;
    auto left = std::make_shared<int>(1);
    const auto one_less = [this, left, name, life] {
      if (--*left == 0 && m_->pools.at(name)->life == life)
        tell_pool("cluster", name, holders_heard{});
    };
    for (const auto& [agent, t] : m_->twins)
      if (t->pool == name) {
        ++*left;
        tell("cluster", "twin " + agent, [this, agent = agent, one_less] {
          twin_acts(agent, m_->twins.at(agent)->machine.meet_pool());
          tell("twin " + agent, "cluster", one_less);
        });
      }
    if (const auto p = m_->provisioners.find(name); p != m_->provisioners.end() && p->second)
      tell("cluster", "provider " + name, [this, name] {
        if (!m_->provisioners.at(name))
          return; // the provisioner has died, and its successor tells its supply
        tell_pool("provider " + name, name, m_->provisioners.at(name)->queue.machine.supply());
        tell_demand(name, true);
      });
    for (const auto& [id, a] : m_->allocations) {
      ++*left;
      tell("cluster", "allocation " + to_string(id), [this, id = id, name, one_less, life] {
        const auto it = m_->allocations.find(id);
        const auto answer = [this, id, one_less] {
          tell("allocation " + to_string(id), "cluster", one_less);
        };
        if (it == m_->allocations.end() || m_->pools.at(name)->life != life)
          return answer();
        auto& one = *it->second;
        if (one.queue.machine.asked().contains(name))
          act(one, one.queue.machine.meet_guest_pool(name));
        if (name != one.pool_name)
          return answer();
        const auto actions = one.queue.machine.meet_pool();
        const auto questions = one.queue.machine.ask_agents();
        const bool holds = !actions.empty() && std::holds_alternative<hold_slots>(actions.front());
        if (holds) {
          one.met = answer;
          act(one, actions);
        } else {
          one.queue.take({}, actions);
        }
        one.queue.take({}, questions);
        if (!holds)
          answer();
      });
    }
    one_less();
  }

  // ---- elastic pools

  void make_provisioner(const std::string& name, const value& settings) {
    auto& p = m_->provisioners[name];
    p.reset(
      new provision_shell{{*this, "provider/" + name, provisioner(name, provisioner_settings_of(settings))},
                          {},
                          ++pool_lives_,
                          settings});
    for (const auto& fact : facts_of<provider_fact>("provider/" + name)) {
      p->queue.machine.replay(fact);
      p->queue.mirror.replay(fact);
    }
    p->queue.run = [this, name](const provisioner_action& x) {
      std::visit([&](const auto& one) { call(name, one); }, x);
    };
    p->queue.take({}, p->queue.machine.resume(clock.now()));
    tell_demand(name, true);
    arm_provisioner(name);
  }
  void tell_demand(const std::string& name, bool anew = false) {
    const auto p = m_->provisioners.find(name);
    if (p == m_->provisioners.end() || !p->second || !m_->pools.contains(name) || m_->pools.at(name)->dead)
      return;
    auto demand = m_->pools.at(name)->machine.demand();
    auto bytes = pack(demand);
    auto& told = told_demand_[name];
    if (!anew && told == bytes)
      return;
    told = std::move(bytes);
    tell("pool " + name, "provider " + name,
         [this, name, demand = std::move(demand)] { provision_step(name, demand); });
  }
  void provision_step(const std::string& name, const provisioner_event& ev) {
    const auto it = m_->provisioners.find(name);
    if (it == m_->provisioners.end() || !it->second)
      return;
    auto s = it->second->queue.machine.apply(ev, clock.now());
    it->second->queue.take(std::move(s.facts), std::move(s.actions));
    arm_provisioner(name);
  }
  void arm_provisioner(const std::string& name) {
    auto& p = *m_->provisioners.at(name);
    const auto at = p.queue.machine.deadline();
    if (!at || (p.armed && *p.armed <= *at))
      return;
    p.armed = *at;
    clock.at(*at, [this, name, at = *at, life = life_, own = p.life] {
      if (!up_ || life != life_)
        return;
      const auto& now = m_->provisioners.at(name);
      if (!now || now->life != own || now->armed != at)
        return;
      now->armed.reset();
      provision_step(name, time_passed{});
    });
  }
  bool bad(time_point until) const { return clock.now() < until; }
  void answer(const std::string& name, duration after, provisioner_event ev) {
    clock.at(clock.now() + after, [this, name, ev = std::move(ev), life = life_,
                                   own = m_->provisioners.at(name)->life] {
      if (up_ && life == life_ && m_->provisioners.at(name) && m_->provisioners.at(name)->life == own)
        provision_step(name, ev);
    });
  }
  void call(const std::string& name, const list_instances&) {
    auto& c = clouds_.at(name);
    if (bad(c.hangs_until))
      return answer(name, call_limit, instances_listed{{}, "list: no answer in 60 s"});
    if (bad(c.fails_until))
      return answer(name, 500ms, instances_listed{{}, "list: the cloud is down"});
    instances_listed all;
    bool forgets = bad(c.errs_until) && random_.chance(0.3);
    for (const auto& [id, x] : c.instances)
      if (x.live) {
        if (std::exchange(forgets, false))
          continue;
        all.all.push_back({id, cloud_instance::phase::running, id, x.launched});
      }
    answer(name, between(50ms, 1s), std::move(all));
  }
  void call(const std::string& name, const launch_instances& x) {
    ++launches;
    auto& c = clouds_.at(name);
    c.launches.push_back(clock.now());
    if (std::count_if(c.launches.begin(), c.launches.end(), [&](auto at) { return at > clock.now() - 60s; }) >
        15)
      fail("a storm of launches in pool " + name);
    check_instances(name);
    if (bad(c.fails_until))
      return answer(name, 500ms, instances_launched{x.order, {}, "launch: out of capacity"});
    const bool hangs = bad(c.hangs_until), none = bad(c.starts_none_until);
    int count = x.count;
    if (bad(c.errs_until))
      count = std::max(0, count + (random_.chance(0.5) ? 1 : -1));
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) {
      const auto id = name + "-" + std::to_string(++c.numbered);
      c.instances[id] = {true, !none, clock.now()};
      ids.push_back(id);
      auto& h = hosts_[id];
      h.is = {id, name, "z", plan_.configuration["pools"][name]["provider"]["instance_slots"].get<int>()};
      h.agent = false;
      if (!none)
        clock.at(clock.now() + between(500ms, 20s), [this, id] {
          auto& there = hosts_.at(id);
          if (there.gone)
            return;
          there.agent = true;
          agent_lives(id);
        });
    }
    if (hangs)
      return answer(name, call_limit, instances_launched{x.order, {}, "launch: no answer in 60 s"});
    answer(name, between(100ms, 3s), instances_launched{x.order, std::move(ids), {}});
  }
  void call(const std::string& name, const terminate_instances& x) {
    auto& c = clouds_.at(name);
    for (const auto& id : x.ids)
      if (x.why == "idle" && hosts_.contains(id))
        for (const auto& [run, one] : hosts_.at(id).tasks)
          if (one.alive && clock.now() - one.begun > 30s)
            fail("instance " + id + " was ended as idle while " + to_string(run) + " ran there");
    if (bad(c.fails_until))
      return answer(name, 500ms, instances_ended{x.ids, "terminate: the cloud is down"});
    for (const auto& id : x.ids)
      end_instance(name, id);
    answer(name, between(50ms, 1s), instances_ended{x.ids, {}});
  }
  void call(const std::string& name, const tell_supply& x) { tell_pool("provider " + name, name, x.supply); }
  /// No agent is forgotten in this simulation.
  void call(const std::string& name, const forget_instance& x) {
    m_->provisioners.at(name)->queue.machine.forgotten(x.agent);
  }
  void call(const std::string&, const drain_instance&) {}
  void call(const std::string&, const provider_done&) {} // no pool loses its provider in this simulation
  void end_instance(const std::string& pool, const std::string& id) {
    if (auto it = clouds_.at(pool).instances.find(id); it != clouds_.at(pool).instances.end())
      it->second.live = false;
    if (auto h = hosts_.find(id); h != hosts_.end()) {
      h->second.gone = true;
      host_dies(id, {});
    }
  }
  /// Checks the number of instances against the limit, by facts alone.
  void check_instances(const std::string& name) {
    std::set<std::string> known;
    std::map<std::uint64_t, int> ordered;
    int most = 0;
    for (const auto& fact : facts_of<provider_fact>("provider/" + name)) {
      const auto& f = std::get<instance_changed>(fact);
      if (f.what == "ordered") {
        ordered[f.order] = f.count;
        int count = int(known.size());
        for (const auto& [order, n] : ordered)
          count += n;
        most = count;
      } else if (f.what == "launched" || f.what == "adopted" || f.what == "failed") {
        ordered.erase(f.order);
        known.insert(f.ids.begin(), f.ids.end());
      } else {
        for (const auto& id : f.ids)
          known.erase(id);
      }
    }
    const int limit = plan_.configuration["pools"][name]["provider"]["max_instances"].get<int>();
    if (most > limit)
      fail("pool " + name + " ordered " + std::to_string(most) + " instances of at most " +
           std::to_string(limit));
  }

  // ---- twins

  void twin_step(const std::string& name, const twin_event& ev) {
    auto& t = *m_->twins.at(name);
    twin_acts(name, t.machine.apply(ev, clock.now()));
    arm_twin(name);
  }
  void twin_acts(const std::string& name, const std::vector<twin_action>& actions) {
    auto& t = *m_->twins.at(name);
    for (const auto& action : actions)
      std::visit(overloaded{
                   [&](const agent_order& x) {
                     to_host(name, t.machine.epoch(), [this, name, x](host_record& h) {
                       std::visit([&](const auto& one) { order(h, name, one); }, x);
                     });
                   },
                   [&](const tell_allocation& x) {
                     const auto known = t.known.find(x.allocation);
                     if (known == t.known.end())
                       return;
                     tell("twin " + name, "allocation " + to_string(x.allocation),
                          [this, x, incarnation = known->second] {
                            const auto it = m_->allocations.find(x.allocation);
                            if (it != m_->allocations.end() && it->second->incarnation == incarnation)
                              allocation_step(*it->second, x.event);
                          });
                   },
                   [&](const tell_pool_of_twin& x) { tell_pool("twin " + name, t.pool, x.event); },
                   [&](const acknowledge_heartbeat& x) {
                     to_host(name, x.epoch, [x](host_record& h) {
                       h.leased_until = std::max(h.leased_until, x.sent + sandbox_lease);
                     });
                   },
                 },
                 action);
  }
  using tell_pool_of_twin = troupe::tell_pool;
  void arm_twin(const std::string& name) {
    auto& t = *m_->twins.at(name);
    const auto at = t.machine.deadline();
    if (!at || (t.armed && *t.armed <= *at))
      return;
    t.armed = *at;
    clock.at(*at, [this, name, life = life_] {
      if (!up_ || life != life_)
        return;
      m_->twins.at(name)->armed.reset();
      twin_step(name, time_passed{});
    });
  }

  // ---- hosts

  void agent_lives(const std::string& name) {
    auto& h = hosts_.at(name);
    if (h.gone || !h.up || !h.agent)
      return;
    if (!h.link && up_ && passes(h))
      ask_in(name);
    else if (h.link && clock.now() >= h.leased_until - sandbox_lease + 9s)
      to_twin(name, agent_heartbeat{h.link, clock.now()});
    clock.at(clock.now() + (h.link ? 10s : 1s), [this, name, beat = ++beats_[name]] {
      if (beats_[name] == beat)
        agent_lives(name);
    });
  }
  void ask_in(const std::string& name) {
    auto& h = hosts_.at(name);
    std::vector<task_report> inventory;
    for (const auto& [id, t] : h.tasks)
      inventory.push_back({id, t.slots, !t.alive, 1, t.exit_code, t.signal, "", t.certain, t.ordered});
    tell("host " + name, "cluster", [this, name, inventory = std::move(inventory), sent = clock.now()] {
      auto& host = hosts_.at(name);
      if (!passes(host) || !host.agent || host.link || host.gone)
        return;
      const agent_asked ev{{clock.now(), name, "id " + name, host.is.slots, "h", host.is.pool}};
      if (const auto no = m_->who.machine.refuses(ev, clock.now()))
        fail("agent " + name + " was refused: " + no->what);
      auto s = m_->who.machine.apply(ev, clock.now());
      m_->who.take(std::move(s.facts), std::move(s.actions));
      // The epoch counts once the fact is durable. An empty step of the same queue shows that.
      after_members_.push_back([this, name, inventory, sent] {
        auto& there = hosts_.at(name);
        if (!passes(there) || !there.agent || there.link || there.gone || !m_->twins.contains(name))
          return;
        const auto epoch = ++epochs_;
        there.link = epoch;
        there.leased_until = std::max(there.leased_until, sent + sandbox_lease);
        agent_traits traits;
        traits.labels["rack"] = there.is.rack;
        twin_step(name, agent_registered{epoch, there.is.slots, inventory, traits});
        send("master", "host " + name, [this, name, epoch] { // reports the tasks that ended meanwhile
          auto& one = hosts_.at(name);
          if (one.link == epoch)
            for (const auto& [id, t] : one.tasks)
              if (!t.alive)
                report_exit(name, t);
        });
      });
      m_->who.take({}, {order_agent{}});
    });
  }
  void lose_link(const std::string& name, bool noticed) {
    auto& h = hosts_.at(name);
    const auto epoch = std::exchange(h.link, 0);
    if (!epoch || !up_ || !noticed)
      return;
    clock.at(clock.now() + between(0us, 2s), [this, name, epoch, life = life_] {
      if (!up_ || life != life_ || !m_->twins.contains(name))
        return;
      if (hosts_.at(name).link == 0)
        tell_members(agent_went_away{name});
      twin_step(name, link_lost{epoch, "the connection closed"});
    });
  }
  void report_exit(const std::string& name, const task& t) {
    to_twin(name, task_exited{t.id, name, t.exit_code, t.signal, "", t.certain, t.ordered});
  }
  void task_ends(const std::string& name, task& t, int code, int signal, bool certain) {
    if (!t.alive)
      return;
    t.alive = false;
    t.exit_code = code;
    t.signal = signal;
    t.certain = certain;
    trace([&] {
      return "task " + to_string(t.id) + " ends on " + name + " with " + std::to_string(code) + "/" +
             std::to_string(signal);
    });
    report_exit(name, t);
  }
  void host_dies(const std::string& name, std::optional<duration> away) {
    auto& h = hosts_.at(name);
    if (!h.up)
      return;
    trace([&] { return "host " + name + " dies"; });
    h.up = false;
    h.tasks.clear();
    lose_link(name, random_.chance(0.5));
    if (away)
      clock.at(clock.now() + *away, [this, name] {
        hosts_.at(name).up = true;
        agent_lives(name);
      });
  }
  /// Ends the sandboxes of a host that has heard nothing for the time of the lease.
  void watch_lease(const std::string& name) {
    auto& h = hosts_.at(name);
    if (clock.now() >= h.leased_until)
      for (auto& [id, t] : h.tasks)
        if (t.alive)
          task_ends(name, t, 0, 9, false);
  }

  // The orders to agents follow.
  void order(host_record& h, const std::string& name, const start_ordered& x) {
    if (h.tasks.contains(x.allocation))
      return;
    auto& t = h.tasks[x.allocation];
    t.id = x.allocation;
    t.slots = x.slots;
    t.begun = clock.now();
    t.life = ++lives_;
    begin_task(name, x.allocation, t.life, clock.now());
  }
  void begin_task(const std::string& name, allocation_id id, std::uint64_t life, time_point since) {
    auto& h = hosts_.at(name);
    const auto it = h.tasks.find(id);
    if (!h.up || it == h.tasks.end() || it->second.life != life || !it->second.alive)
      return;
    auto& t = it->second;
    for (const auto& [other, one] : h.tasks) // a task waits until the last task in its slots is dead
      if (other != id && one.alive && one.life < life &&
          std::any_of(one.slots.begin(), one.slots.end(), [&](int slot) {
            return std::find(t.slots.begin(), t.slots.end(), slot) != t.slots.end();
          })) {
        if (clock.now() - since > 150s)
          fail("a slot of " + name + " was given to " + to_string(id) + " while " + to_string(other) +
               " runs there");
        clock.at(clock.now() + 500ms, [=, this] { begin_task(name, id, life, since); });
        return;
      }
    for (const auto& [other, host] : hosts_)
      for (const auto& [run, one] : host.tasks)
        if (run.task == id.task && run != id && one.alive)
          fail("two runs of trial " + to_string(id.trial()) + " at once");
    ++runs;
    t.begun = clock.now();
    to_twin(name, task_started{id, name, 1});
    watch_task_lease(name, id, life);
    const auto index = id.trial().value - 1;
    const auto needs = std::chrono::milliseconds(std::int64_t(trials_[index].left * 1000) + 1);
    clock.at(clock.now() + needs, [this, name, id, life, index] {
      if (auto* one = live(name, id, life); one && !one->stopping) {
        trials_[index].left = 0;
        task_ends(name, *one, 0, 0, true);
      }
    });
  }
  void watch_task_lease(const std::string& name, allocation_id id, std::uint64_t life) {
    clock.at(std::max(hosts_.at(name).leased_until, clock.now() + 1s), [this, name, id, life] {
      if (!live(name, id, life))
        return;
      watch_lease(name);
      if (live(name, id, life))
        watch_task_lease(name, id, life);
    });
  }
  task* live(const std::string& name, allocation_id id, std::uint64_t life) {
    auto& h = hosts_.at(name);
    const auto it = h.tasks.find(id);
    return h.up && it != h.tasks.end() && it->second.life == life && it->second.alive ? &it->second : nullptr;
  }
  void order(host_record& h, const std::string& name, const preempt_ordered& x) {
    const auto it = h.tasks.find(x.allocation);
    if (it == h.tasks.end() || !it->second.alive || std::exchange(it->second.stopping, true))
      return;
    clock.at(clock.now() + between(50ms, 4s), [this, name, id = x.allocation, life = it->second.life] {
      if (auto* one = live(name, id, life)) { // the work until now is saved
        auto& left = trials_[id.trial().value - 1].left;
        if (left > 0) // otherwise another part of the task has completed
          left = std::max(0.5, left - double((clock.now() - one->begun) / 1ms) / 1000);
        task_ends(name, *one, 0, 0, true);
      }
    });
  }
  void order(host_record& h, const std::string& name, const kill_ordered& x) {
    const auto it = h.tasks.find(x.allocation);
    if (it == h.tasks.end() || !it->second.alive)
      return;
    it->second.ordered = true;
    clock.at(clock.now() + between(1ms, 200ms), [this, name, id = x.allocation, life = it->second.life] {
      if (auto* one = live(name, id, life))
        task_ends(name, *one, 0, 9, true);
    });
  }
  void order(host_record& h, const std::string&, const forget_ordered& x) {
    const auto it = h.tasks.find(x.allocation);
    if (it != h.tasks.end() && !it->second.alive)
      h.tasks.erase(it);
  }
  void order(host_record&, const std::string&, const worker_ordered&) {}
  void order(host_record&, const std::string&, const service_ordered&) {}

  // ---- allocations

  static std::string entity(allocation_id id) { return "allocation/" + to_string(id); }

  void spawn_allocation(std::size_t i) {
    auto& t = trials_[i];
    const auto& job = jobs_[t.job];
    const allocation_id id{t.id, {t.run}};
    allocation_spec spec;
    spec.id = id;
    spec.slots = t.is.slots;
    spec.stop_limit = 30s;
    spec.home = job.pool;
    spec.run.job = job.terms;
    spec.run.started = t.started;
    spec.run.rules.single_node = t.is.single_node;
    if (!t.is.rack.empty())
      spec.run.rules.labels["rack"] = {t.is.rack};
    if (t.is.same_rack)
      spec.run.rules.same_label = "rack";
    auto& a = m_->allocations[id];
    a.reset(
      new allocation_shell{{*this, entity(id), allocation(spec)}, ++incarnations_, i, job.pool, {}, {}});
    const auto past = facts_of<allocation_fact>(entity(id));
    for (const auto& fact : past) {
      a->queue.machine.replay(fact);
      a->queue.mirror.replay(fact);
    }
    if (!a->queue.machine.pool().empty())
      a->pool_name = a->queue.machine.pool();
    auto* shell = a.get();
    a->queue.run = [this, shell](const allocation_action& x) {
      std::visit([&](const auto& one) { run(*shell, one); }, x);
    };
    a->queue.committed = [this, id](const allocation_fact& x) {
      std::visit([&](const auto& one) { stored(id, one); }, x);
    };
    if (past.empty())
      for (const auto& [name, pool] : m_->pools)
        if (name != a->pool_name)
          tell_pool("allocation " + to_string(id), name, slots_released{id, {}});
    a->queue.take({}, a->queue.machine.resume());
    if (t.kill)
      allocation_step(*a, allocation_stop{true, "killed"});
    arm_allocation(*a);
  }
  void allocation_step(allocation_shell& a, const allocation_event& ev) {
    auto s = a.queue.machine.apply(ev, clock.now());
    a.queue.take(std::move(s.facts), std::move(s.actions));
    arm_allocation(a);
  }
  void act(allocation_shell& a,
           const std::vector<allocation_action>& actions) { // these actions do not wait for the journal
    for (const auto& x : actions)
      std::visit([&](const auto& one) { run(a, one); }, x);
  }
  void arm_allocation(allocation_shell& a) {
    const auto at = a.queue.machine.deadline();
    if (!at || (a.armed && *a.armed <= *at))
      return;
    a.armed = *at;
    const allocation_id id{trials_[a.trial].id, {trials_[a.trial].run}};
    clock.at(*at, [this, &a, here = a.queue.here, at = *at] {
      if (!*here || a.armed != at)
        return;
      a.armed.reset();
      allocation_step(a, time_passed{});
    });
  }
  allocation_id id_of(const allocation_shell& a) const { return a.queue.machine.request({}).allocation; }
  std::string name_of(const allocation_shell& a) const { return "allocation " + to_string(id_of(a)); }

  void run(allocation_shell& a, const request_slots& x) {
    tell_pool(name_of(a), a.pool_name, a.queue.machine.request(x), a.incarnation);
  }
  void run(allocation_shell& a, const release_slots& x) {
    tell_pool(name_of(a), a.pool_name, slots_released{id_of(a), x.agent});
  }
  void run(allocation_shell& a, const hold_slots& x) {
    tell_pool(name_of(a), a.pool_name, a.queue.machine.holding(x.on), a.incarnation,
              std::exchange(a.met, {}));
  }
  void run(allocation_shell& a, const ask_pool& x) {
    auto request = a.queue.machine.request({a.queue.machine.wanted(), a.queue.machine.least()});
    request.home = a.queue.machine.home();
    tell_pool(name_of(a), x.pool, std::move(request), a.incarnation);
  }
  void run(allocation_shell& a, const leave_pool& x) {
    tell_pool(name_of(a), x.pool, slots_released{id_of(a), {}});
  }
  void run(allocation_shell& a, const start_task& x) {
    to_twin_of(a, x.on.agent, start_ordered{id_of(a), x.on.slots, "", x.placed});
  }
  void run(allocation_shell& a, const preempt_task& x) {
    to_twin_of(a, x.agent, preempt_ordered{id_of(a), x.reason});
  }
  void run(allocation_shell& a, const kill_task& x) { to_twin_of(a, x.agent, kill_ordered{id_of(a)}); }
  void run(allocation_shell& a, const watch_task& x) {
    to_twin_of(a, x.agent, watch_ordered{id_of(a), x.slots, x.placed});
  }
  void run(allocation_shell& a, const forget_task& x) { to_twin_of(a, x.agent, forget_ordered{id_of(a)}); }
  void run(allocation_shell&, const answer_signals&) {}
  void run(allocation_shell&, const answer_gang&) {}
  void run(allocation_shell&, const order_worker&) {}
  void run(allocation_shell& a, const report_allocation_end& x) {
    tell(name_of(a), "trial " + to_string(id_of(a).trial()), [this, id = id_of(a), x] { run_ended(id, x); });
    graveyard_.push_back(id_of(a));
  }
  template <class Event>
  void to_twin_of(allocation_shell& a, const std::string& agent, Event ev) {
    tell(name_of(a), "twin " + agent,
         [this, agent, ev = std::move(ev), id = id_of(a), incarnation = a.incarnation] {
           const auto t = m_->twins.find(agent);
           if (t == m_->twins.end())
             fail("no twin of " + agent);
           t->second->known[id] = std::max(t->second->known[id], incarnation);
           twin_step(agent, ev);
         });
  }

  // The effects of an allocation's facts follow.
  void stored(allocation_id id, const allocation_placed& f) {
    if (!f.home.empty())
      ++elsewhere;
    for (const auto& [other, a] : m_->allocations) {
      if (other == id || a->queue.machine.closed())
        continue;
      for (const auto& part : a->queue.mirror.placed())
        for (const auto& mine : f.on)
          if (part.agent == mine.agent)
            for (const int slot : mine.slots)
              if (std::find(part.slots.begin(), part.slots.end(), slot) != part.slots.end())
                fail("slot " + std::to_string(slot) + " of " + part.agent + " is held by " +
                     to_string(other) + " and " + to_string(id));
    }
  }
  void stored(allocation_id, const allocation_preempted&) {}
  template <class Other>
  void stored(allocation_id, const Other&) {}

  void bury() {
    // An allocation stays for a while, as its last messages do.
    for (const auto id : std::exchange(graveyard_, {}))
      clock.at(clock.now() + 30s, [this, id, life = life_] {
        if (up_ && life == life_)
          if (const auto it = m_->allocations.find(id);
              it != m_->allocations.end() && it->second->queue.machine.closed())
            m_->allocations.erase(it);
      });
  }

  // ---- trials

  void submit(std::size_t j) {
    if (!up_)
      return clock.at(clock.now() + 1s, [this, j] { submit(j); });
    jobs_[j].submitted = true;
    enter(j);
    for (const auto i : jobs_[j].trials)
      next_run(i);
  }
  void next_run(std::size_t i) {
    auto& t = trials_[i];
    if (t.over || t.open)
      return;
    if (t.kill) {
      t.over = true;
      return;
    }
    const auto run = t.run + 1;
    commit("trials", {}, [this, i, run, at = clock.now()] {
      auto& one = trials_[i];
      if (one.open || one.over || one.run + 1 != run)
        return;
      one.run = run;
      one.started = at;
      one.open = true;
      spawn_allocation(i);
    });
  }
  void run_ended(allocation_id id, const report_allocation_end& x) {
    auto& t = trials_[id.trial().value - 1];
    if (!t.open || t.run != id.run.value)
      return;
    if (x.why == end::failed || x.why == end::invalid_hp)
      fail("run " + to_string(id) + " failed: " + x.detail);
    if (x.why == end::completed && t.left > 0)
      fail("run " + to_string(id) + " completed with " + std::to_string(t.left) + " s of work left");
    commit("trials", {}, [this, id, over = x.why == end::completed] {
      auto& one = trials_[id.trial().value - 1];
      if (!one.open || one.run != id.run.value)
        return;
      one.open = false;
      one.over = over || one.kill;
      if (!one.over)
        next_run(id.trial().value - 1);
    });
  }

  // ---- faults and users

  template <class Map>
  static auto pick_of(Map& map, std::uint64_t pick) {
    return std::next(map.begin(), std::ptrdiff_t(pick % map.size()));
  }
  void happen(const pools_fault& f) {
    using kind = pools_fault_kind;
    const auto in = clock.now() + f.away;
    if (f.kind == kind::host_dies || f.kind == kind::agent_dies || f.kind == kind::link_is_cut) {
      if (hosts_.empty())
        return;
      const auto name = pick_of(hosts_, f.pick)->first;
      auto& h = hosts_.at(name);
      if (h.gone || !h.up || !h.agent)
        return;
      if (f.kind == kind::host_dies)
        return host_dies(name, f.away);
      if (f.kind == kind::agent_dies) {
        trace([&] { return "agent " + name + " dies"; });
        h.agent = false;
        lose_link(name, true);
        clock.at(in, [this, name] {
          hosts_.at(name).agent = true;
          agent_lives(name);
        });
        return;
      }
      trace([&] { return "the link of " + name + " is cut"; });
      h.cut_until = in;
      lose_link(name, random_.chance(0.5));
      clock.at(in, [this, name] { agent_lives(name); });
      return;
    }
    if (!up_) // these faults need a master, so they are tried again
      return clock.at(clock.now() + 1s, [this, &f] { happen(f); });
    if (f.kind == kind::master_dies)
      return master_dies(f.away);
    if (f.kind == kind::pool_dies) {
      const auto name = pick_of(m_->pools, f.pick)->first;
      trace([&] { return "pool " + name + " dies"; });
      auto& p = *m_->pools.at(name);
      p.life = ++pool_lives_; // messages to the dead pool are lost
      p.dead = true;
      return tell("pool", "cluster", [this, name] { tell_members(pool_died{name, "a fault"}); });
    }
    if (f.kind == kind::provisioner_dies) {
      if (m_->provisioners.empty())
        return;
      const auto name = pick_of(m_->provisioners, f.pick)->first;
      if (!m_->provisioners.at(name))
        return;
      trace([&] { return "provisioner " + name + " dies"; });
      buried_.push_back(std::move(m_->provisioners.at(name)));
      *buried_.back()->queue.here = false;
      return tell("provider", "cluster", [this, name] { tell_members(provisioner_died{name, "a fault"}); });
    }
    if (f.kind == kind::allocation_dies) {
      if (m_->allocations.empty())
        return;
      const auto id = pick_of(m_->allocations, f.pick)->first;
      const auto i = m_->allocations.at(id)->trial;
      if (!trials_[i].open || trials_[i].run != id.run.value)
        return;
      trace([&] { return "allocation " + to_string(id) + " dies"; });
      // The journal is asked in order, so earlier writes of the dead allocation are durable before the new
      // one starts.
      m_->allocations.erase(id);
      commit("trials", {}, [this, i, id] {
        if (trials_[i].open && trials_[i].run == id.run.value && !m_->allocations.contains(id))
          spawn_allocation(i);
      });
      return;
    }
    if (f.kind >= kind::cloud_fails && f.kind <= kind::spot_goes) {
      auto& [name, c] = *pick_of(clouds_, f.pick);
      (f.kind == kind::cloud_fails         ? c.fails_until
       : f.kind == kind::cloud_hangs       ? c.hangs_until
       : f.kind == kind::cloud_errs        ? c.errs_until
       : f.kind == kind::cloud_starts_none ? c.starts_none_until
                                           : c.fails_until) =
        f.kind == kind::spot_goes ? c.fails_until : in + 20s;
      if (f.kind == kind::spot_goes)
        for (auto& [id, x] : c.instances)
          if (x.live) {
            end_instance(name, id);
            break;
          }
      return;
    }
    rng random(f.pick);
    if (f.kind == kind::user_changes_job || f.kind == kind::user_moves_job) {
      const auto j = f.pick % jobs_.size();
      auto job = jobs_[j];
      if (f.kind == kind::user_moves_job) {
        const auto pools = config::pool_names(plan_.configuration);
        const auto to = pools[random.below(pools.size())];
        clock.at(in, [this, j] { move(j, plan_.jobs[j].pool); });
        return move(j, to);
      }
      job.terms.priority = random.chance(0.5) ? 10 : 50;
      job.terms.weight = double(random.below(4));
      job.terms.max_slots = random.chance(0.5) ? int(1 + random.below(4)) : -1;
      change(j, job.terms);
      clock.at(in, [this, j] {
        auto terms = jobs_[j].terms;
        terms.max_slots = plan_.jobs[j].max_slots;
        change(j, terms);
      });
      return;
    }
    if (f.kind == kind::user_changes_pool) {
      auto next = configuration_;
      auto& pool = next["pools"][pick_of(clouds_, f.pick)->first];
      constexpr const char* schedulers[] = {"priority", "fair", "round_robin", "fifo"};
      pool["scheduler"] = schedulers[random.below(4)];
      pool["preemption"] = random.chance(0.5);
      if (random.chance(0.5))
        pool["max_slots"] = 1 + int(random.below(4));
      configure(next);
      clock.at(in, [this] { configure(plan_.configuration); });
      return;
    }
    if (f.kind == kind::user_drains) {
      if (m_->who.machine.agents().empty())
        return;
      const auto& [name, known] = *pick_of(m_->who.machine.agents(), f.pick);
      const int slot = random.chance(0.3) ? int(random.below(std::uint64_t(known.slots))) : -1;
      drain(name, slot, true, random.chance(0.5));
      clock.at(in, [this, name = name, slot] { drain(name, slot, false, false); });
      return;
    }
    if (f.kind == kind::user_kills) {
      auto& t = trials_[f.pick % trials_.size()];
      t.kill = true;
      trace([&] { return "trial " + to_string(t.id) + " is killed"; });
      if (t.open)
        if (const auto it = m_->allocations.find({t.id, {t.run}}); it != m_->allocations.end())
          allocation_step(*it->second, allocation_stop{true, "killed"});
    }
  }
  void drain(const std::string& name, int slot, bool off, bool ends) {
    if (!up_)
      return clock.at(clock.now() + 1s, [=, this] { drain(name, slot, off, ends); });
    if (!m_->who.machine.agents().contains(name))
      return;
    trace([&] { return std::string(off ? "drain " : "enable ") + name + " " + std::to_string(slot); });
    tell_members(agent_ordered{name, slot, off, "op", false, ends});
    after_members_.push_back([this, name, slot, off] {
      if (off)
        drained_.emplace(std::pair{name, slot}, clock.now());
      else
        drained_.erase({name, slot});
    });
    m_->who.take({}, {order_agent{}});
  }
  /// Whether a slot has been drained, by the facts, for so long that every pool has heard of it.
  bool drained_long(const std::string& agent, int slot) const {
    const auto since = [&](int which) {
      const auto it = drained_.find({agent, which});
      return it != drained_.end() && clock.now() > it->second + 15s;
    };
    if (!since(-1) && !since(slot))
      return false;
    std::optional<agent_changed> last;
    for (const auto& fact : facts_of<cluster_fact>("cluster"))
      if (const auto* x = std::get_if<agent_changed>(&fact); x && x->agent == agent)
        last = *x;
    return last && ((since(-1) && last->draining) ||
                    (since(slot) &&
                     std::find(last->disabled.begin(), last->disabled.end(), slot) != last->disabled.end()));
  }
  void configure(const value& next) {
    configuration_ = next; // the configuration is durable before members are told of it
    if (up_)
      tell_members(configured{next});
  }
  void change(std::size_t j, const job_terms& terms) {
    if (!up_)
      return clock.at(clock.now() + 1s, [this, j, terms] { change(j, terms); });
    commit("jobs", {}, [this, j, terms] {
      jobs_[j].terms = terms;
      trace([&] { return "job " + std::to_string(j + 1) + ": at most " + std::to_string(terms.max_slots); });
      tell_pool("job " + std::to_string(j), jobs_[j].pool, job_changed{terms});
      for (const auto& [id, a] : m_->allocations)
        if (trials_[a->trial].job == j)
          tell("job " + std::to_string(j), "allocation " + to_string(id), [this, id = id, terms] {
            const auto it = m_->allocations.find(id);
            if (it == m_->allocations.end())
              return;
            auto& one = *it->second;
            allocation_step(one, job_changed{terms});
            auto pools = one.queue.machine.asked();
            if (!one.queue.machine.pool().empty() && one.queue.machine.pool() != one.queue.machine.home())
              pools.insert(one.queue.machine.pool());
            for (const auto& pool : pools)
              tell_pool(name_of(one), pool, job_changed{terms});
          });
    });
  }
  void move(std::size_t j, const std::string& pool) {
    if (!up_)
      return clock.at(clock.now() + 1s, [this, j, pool] { move(j, pool); });
    commit("jobs", {}, [this, j, pool] {
      jobs_[j].pool = pool;
      tell_members(experiment_placed{jobs_[j].terms.job, pool});
      for (const auto& [id, a] : m_->allocations)
        if (trials_[a->trial].job == j)
          tell("job " + std::to_string(j), "allocation " + to_string(id), [this, id = id, pool] {
            const auto it = m_->allocations.find(id);
            if (it == m_->allocations.end())
              return;
            auto& one = *it->second;
            if (pool == one.pool_name || one.queue.machine.closed())
              return;
            if (!one.queue.machine.placed().empty())
              return allocation_step(one, preempt_allocation{id, {}, "pool"});
            tell_pool(name_of(one), one.pool_name, slots_released{id, {}});
            act(one, one.queue.machine.move_home(pool));
            one.pool_name = pool;
            one.queue.take({}, one.queue.machine.meet_pool());
          });
    });
  }

  // ---- the end

  /// Ends all faults and gives everybody the room that they need.
  void calm() {
    if (!up_)
      return clock.at(clock.now() + 1s, [this] { calm(); });
    for (auto& [name, c] : clouds_)
      c.fails_until = c.hangs_until = c.errs_until = c.starts_none_until = {};
    for (const auto& [what, since] : std::map(drained_))
      drain(what.first, what.second, false, false);
    configure(plan_.configuration);
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      auto terms = jobs_[j].terms;
      terms.max_slots = plan_.jobs[j].max_slots;
      change(j, terms);
      move(j, plan_.jobs[j].pool);
    }
  }
  std::string what_is_left() const {
    std::string text = "not over:";
    for (const auto& t : trials_)
      if (!t.over)
        text += " trial " + to_string(t.id) + " (run " + std::to_string(t.run) + (t.open ? ", open)" : ")");
    if (m_)
      for (const auto& [name, p] : m_->pools)
        text += "\npool " + name + ": " + to_json(p->machine.describe());
    return text;
  }
  void look() {
    const bool over = std::all_of(trials_.begin(), trials_.end(), [](const auto& t) { return t.over; });
    if (!over || !up_)
      over_since_.reset();
    else if (!over_since_)
      over_since_ = clock.now();
    // Time for late messages, leases and idle instances.
    if (over_since_ && clock.now() > *over_since_ + 700s) {
      check_end();
      finished_ = true;
      return;
    }
    clock.at(clock.now() + 10s, [this] { look(); });
  }
  void check_end() {
    for (const auto& [name, p] : m_->pools) {
      if (p->machine.used_slots() != 0)
        fail("slots of pool " + name + " are still held: " + to_json(p->machine.describe()));
      if (!p->machine.waiting().empty())
        fail("somebody still waits in pool " + name);
      if (p->machine.reserved_slots() != 0)
        fail("slots of pool " + name + " are still reserved");
      const auto at = p->machine.deadline();
      if (at)
        fail("pool " + name + ", in which nothing waits, has a timer");
    }
    for (const auto& [name, p] : m_->provisioners) {
      int live = 0;
      for (const auto& [id, x] : clouds_.at(name).instances)
        live += x.live;
      const int least = p->settings.value("min_instances", 0);
      if (live != p->queue.machine.instances() || live != least)
        fail("the cloud of pool " + name + " has " + std::to_string(live) +
             " instances, its provisioner knows " + std::to_string(p->queue.machine.instances()) +
             ", at least " + std::to_string(least) + " are wanted");
    }
    for (const auto& [name, h] : hosts_)
      for (const auto& [id, t] : h.tasks)
        if (t.alive)
          fail("task " + to_string(id) + " still runs on " + name);
  }

  // Texts for traces follow.
  static std::string text(const std::vector<placement>& on) {
    std::string out;
    for (const auto& part : on) {
      out += " " + part.agent + ":";
      for (const int slot : part.slots)
        out += std::to_string(slot) + ",";
    }
    return out;
  }
  static std::string text(const pool_event& ev) {
    return std::visit(
      overloaded{
        [](const agent_up& x) { return "up " + x.agent; },
        [](const agent_down& x) { return "down " + x.agent; },
        [](const slots_requested& x) {
          return "request " + to_string(x.allocation) + " of " + std::to_string(x.slots) +
                 (x.home.empty() ? "" : ", guest");
        },
        [](const slots_released& x) { return "release " + to_string(x.allocation) + " " + x.agent; },
        [](const slots_held& x) { return "held " + to_string(x.allocation) + text(x.on); },
        [](const agent_drain& x) { return "drain " + x.agent + (x.on ? " on" : " off"); },
        [](const holders_heard&) { return std::string("heard"); },
        [](const time_passed&) { return std::string("time"); },
        [](const job_changed& x) {
          return "job " + std::to_string(x.job.job.value) + " at most " + std::to_string(x.job.max_slots);
        },
        [](const pool_configured& x) { return "configured " + to_json(x.settings); },
        [](const auto& x) { return std::string(typeid(x).name()); },
      },
      ev);
  }
  static std::string text(const std::vector<pool_action>& actions) {
    std::string out;
    for (const auto& action : actions)
      out += std::visit(
        overloaded{
          [](const grant_slots& x) { return " grant " + to_string(x.allocation) + text(x.on); },
          [](const preempt_allocation& x) {
            return " preempt " + to_string(x.allocation) + " for " + to_string(x.wanted_by) + " " + x.reason;
          },
          [](const reserve_slots& x) { return " reserve " + to_string(x.allocation) + text(x.on); },
          [](const drop_reservation& x) { return " unreserve " + to_string(x.allocation); },
          [](const fall_back& x) { return " fall back " + to_string(x.allocation); },
          [](const guest_waits& x) { return " guest waits " + to_string(x.allocation); },
          [](const auto&) { return std::string(" other"); },
        },
        action);
    return out;
  }

public:
  std::deque<std::function<void()>> after_members_; ///< functions to run at the marks in the queue of members

private:
  const pools_plan& plan_;
  rng random_;
  bool tracing_;
  const time_point begin_ = clock.now();
  value configuration_;
  std::unique_ptr<master> m_;
  bool up_ = false, finished_ = false;
  std::uint64_t life_ = 0, pool_lives_ = 0, incarnations_ = 0, epochs_ = 0, lives_ = 0;
  std::deque<pending> pending_;
  time_point committed_at_;
  std::unordered_map<std::uint64_t, time_point> last_;
  std::map<std::string, host_record> hosts_;
  std::map<std::string, std::uint64_t> beats_;
  std::map<std::string, cloud> clouds_;
  std::vector<job_record> jobs_;
  std::vector<trial_record> trials_;
  std::vector<allocation_id> graveyard_;
  std::vector<std::unique_ptr<provision_shell>> buried_;
  std::map<std::string, std::string> told_demand_;
  std::map<std::pair<std::string, int>, time_point> drained_;
  std::optional<time_point> over_since_;
};

template <class Machine, class Fact, class Action>
durable_queue<Machine, Fact, Action>::durable_queue(history& h, std::string entity, Machine fresh)
    : machine(fresh), mirror(std::move(fresh)), h_(h), entity_(std::move(entity)) {}

template <class Machine, class Fact, class Action>
void durable_queue<Machine, Fact, Action>::take(std::vector<Fact> facts, std::vector<Action> actions) {
  queue_.push_back({facts.empty(), std::move(facts), std::move(actions)});
  auto& last = queue_.back();
  for (const auto& fact : last.facts) {
    auto back = decode_as<Fact>(encode_as(fact));
    if (!back)
      history::fail(entity_ + ": " + back.error().what);
    mirror.replay(*back);
  }
  if (!last.facts.empty()) {
    if (mirror.snapshot() != machine.snapshot())
      history::fail(entity_ + ": the replayed state differs from the live one");
    std::vector<std::string> bytes;
    for (const auto& fact : last.facts)
      bytes.push_back(encode_as(fact));
    h_.commit(entity_, std::move(bytes), [this, here = here, &last] {
      if (!*here)
        return;
      last.durable = true;
      drain();
    });
  }
  drain();
}

template <class Machine, class Fact, class Action>
void durable_queue<Machine, Fact, Action>::drain() {
  if (std::exchange(draining_, true))
    return;
  const auto still = here;
  while (*still && !queue_.empty() && queue_.front().durable) {
    const auto first = std::move(queue_.front());
    queue_.pop_front();
    if (committed)
      for (const auto& fact : first.facts)
        committed(fact);
    for (const auto& action : first.actions) {
      if constexpr (std::is_same_v<Action, members_action>)
        if (const auto* x = std::get_if<order_agent>(&action);
            x && x->agent.empty()) { // an order without an agent is a mark of this history
          auto what = std::move(h_.after_members_.front());
          h_.after_members_.pop_front();
          what();
          continue;
        }
      if (*still)
        run(action);
    }
  }
  draining_ = false;
}

struct asserted {
  std::string what;
};

} // namespace

pools_outcome play_pools(const pools_plan& plan, bool trace) {
  auto previous = set_assertion_handler([](const assertion_failed& x) {
    throw asserted{std::string(x.expression) + " at " + x.file + ":" + std::to_string(x.line)};
  });
  pools_outcome out;
  history h(plan, trace);
  try {
    h.play();
  } catch (const violation& x) {
    out.wrong = x.what;
  } catch (const asserted& x) {
    out.wrong = "assertion " + x.what;
  } catch (const std::out_of_range& x) {
    out.wrong = std::string("out of range: ") + x.what();
  }
  set_assertion_handler(previous);
  out.events = h.events;
  out.runs = h.runs;
  out.preemptions = h.preemptions;
  out.reservations = h.reservations;
  out.elsewhere = h.elsewhere;
  out.launches = h.launches;
  return out;
}

} // namespace troupe::sim
