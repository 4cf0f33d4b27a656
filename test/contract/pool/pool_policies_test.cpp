// Tests what holds in every pool, whichever scheduler it has: small random pools and events are checked from
// outside against a simple record of the slots that each run holds.

#include "actors/pool/pool.hpp"
#include "actors/pool/shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <sstream>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

struct asked_run {
  slots_requested request;
  enum { waits, holds, stops } state = waits;
  std::vector<placement> on;
  time_point since;
};

std::string text(const std::vector<placement>& on) {
  std::string out;
  for (const auto& part : on) {
    out += " " + part.agent + ":";
    for (int slot : part.slots)
      out += std::to_string(slot) + ",";
  }
  return out;
}

/// A pool, and a record of what it was told and what it did.
class watched_pool {
public:
  watched_pool(pool_settings settings, pool::phase begin = pool::phase::placing)
      : settings_(settings), machine_(begin, settings) {}

  std::vector<pool_action> tell(const pool_event& ev) {
    note(ev);
    const bool quiet = std::none_of(runs.begin(), runs.end(),
                                    [](const auto& x) { return x.second.state == asked_run::stops; }) &&
                       !reserved;
    const auto free_before = free_slots();
    auto actions = machine_.apply(ev, now);
    const bool failed = ::testing::Test::HasFailure();
    if (std::getenv("TROUPE_POOL_TRACE"))
      trace(ev, actions);
    std::map<allocation_id, std::vector<allocation_id>> victims;
    std::size_t grants = 0;
    for (const auto& action : actions) {
      if (const auto* grant = std::get_if<grant_slots>(&action)) {
        ++grants;
        granted(*grant);
      } else if (const auto* order = std::get_if<preempt_allocation>(&action)) {
        preempted(*order);
        victims[order->wanted_by].push_back(order->allocation);
        ++preemptions;
      } else if (const auto* kept = std::get_if<reserve_slots>(&action)) {
        EXPECT_FALSE(reserved) << "two reservations";
        reserved = kept->allocation;
        reserved_on = kept->on;
        EXPECT_EQ(slots_in(kept->on), need(runs.at(kept->allocation)));
      } else if (const auto* dropped = std::get_if<drop_reservation>(&action)) {
        EXPECT_EQ(reserved, dropped->allocation);
        reserved = {};
      }
    }
    if (quiet && !reserved && grants == 0 && victims.size() == 1 && victims.begin()->first)
      no_victim_too_many(victims.begin()->first, victims.begin()->second, free_before);
    nobody_waits_without_cause();
    nobody_waits_below_a_limit_for_whom_it_precedes();
    if (settings_.scheduler == scheduler_kind::fair)
      shares_are_of_now();
    if (++events_ % 10 == 0)
      list_is_that_of_each();
    if (!failed && ::testing::Test::HasFailure())
      ADD_FAILURE() << "in " << to_json(machine_.describe(), 1) << to_json(machine_.details(), 1)
                    << machine_.waiting_runs().size() << " wait";
    return actions;
  }

  void up(const std::string& name, int slots, const std::string& label = "") {
    agent_up ev{name, slots, {}, {}};
    if (!label.empty())
      ev.traits.labels["rack"] = label;
    tell(ev);
  }

  int held_by(experiment_id job) const {
    int n = 0;
    for (const auto& [id, run] : runs)
      if (run.request.run.job.job == job && run.state != asked_run::waits)
        n += slots_in(run.on);
    return n;
  }
  static int need(const asked_run& run) {
    return run.request.least > 0 ? run.request.least : run.request.slots;
  }
  const pool& machine() const { return machine_; }
  std::optional<time_point> deadline() const { return machine_.deadline(); }

  std::map<allocation_id, asked_run> runs;
  std::map<experiment_id, job_terms> jobs;
  std::map<std::string, agent_up> agents;
  std::map<std::string, bool> closed;
  time_point now = t0;
  int preemptions = 0;
  allocation_id reserved;
  std::vector<placement> reserved_on;

private:
  using slot = std::pair<std::string, int>;

  void trace(const pool_event& ev, const std::vector<pool_action>& actions) const {
    std::ostringstream line;
    line << (now - t0).count() / 1'000'000 << " s: ";
    std::visit(
      [&]<class T>(const T& x) {
        const auto bytes = pack(x);
        line << "event " << ev.index() << " " << msgpack::unpack(bytes.data(), bytes.size()).get() << " ->";
      },
      ev);
    for (const auto& action : actions)
      std::visit(
        overloaded{
          [&](const grant_slots& x) { line << " grant " << to_string(x.allocation) << text(x.on); },
          [&](const reserve_slots& x) { line << " reserve " << to_string(x.allocation) << text(x.on); },
          [&](const preempt_allocation& x) {
            line << " preempt " << to_string(x.allocation) << " for " << to_string(x.wanted_by) << " "
                 << x.reason;
          },
          [&](const auto& x) { line << " (" << typeid(x).name() << ")"; },
        },
        action);
    std::cerr << line.str() << '\n';
  }

  void note(const pool_event& ev) {
    if (const auto* x = std::get_if<agent_up>(&ev))
      agents[x->agent] = *x;
    if (const auto* x = std::get_if<agent_down>(&ev))
      agents.erase(x->agent);
    if (const auto* x = std::get_if<agent_drain>(&ev))
      closed[x->agent] = x->on;
    if (const auto* x = std::get_if<job_changed>(&ev))
      jobs[x->job.job] = x->job;
    if (const auto* x = std::get_if<slots_requested>(&ev)) {
      runs[x->allocation] = {*x, asked_run::waits, {}, now};
      jobs[x->run.job.job] = x->run.job;
    }
    if (const auto* x = std::get_if<slots_released>(&ev)) {
      runs.erase(x->allocation);
    }
  }

  std::set<slot> free_slots() const {
    std::set<slot> out;
    for (const auto& [name, agent] : agents)
      if (const auto it = closed.find(name); it == closed.end() || !it->second)
        for (int i = 0; i < agent.slots; ++i)
          out.emplace(name, i);
    for (const auto& [id, run] : runs)
      for (const auto& part : run.on)
        for (int i : part.slots)
          out.erase({part.agent, i});
    return out;
  }

  /// The number of slots that the limits leave for one more run of this job when the runs of `ended` have
  /// ended.
  int room(const job_terms& of, const std::vector<allocation_id>& ended = {}) const {
    const auto& job = jobs.at(of.job);
    int left = 1'000'000, used = 0, by_user = 0, by_workspace = 0, by_job = 0;
    for (const auto& [id, run] : runs) {
      if (std::find(ended.begin(), ended.end(), id) != ended.end())
        continue;
      const int n = slots_in(run.on);
      const auto& its = jobs.at(run.request.run.job.job);
      used += n;
      by_job += its.job == of.job ? n : 0;
      by_user += its.user == job.user ? n : 0;
      by_workspace += its.workspace == job.workspace ? n : 0;
    }
    if (job.max_slots >= 0)
      left = std::min(left, job.max_slots - by_job);
    if (settings_.max_slots >= 0)
      left = std::min(left, settings_.max_slots - used);
    for (const auto* q : quotas_of(job))
      left = std::min(left, q->max_slots - (q->user.empty() ? by_workspace : by_user));
    return left;
  }
  std::vector<const slot_quota*> quotas_of(const job_terms& job) const {
    std::vector<const slot_quota*> found;
    const bool own = std::any_of(settings_.quotas.begin(), settings_.quotas.end(),
                                 [&](const auto& q) { return q.user == job.user; });
    for (const auto& q : settings_.quotas)
      if (q.user.empty() ? q.workspace == job.workspace : q.user == job.user || (q.user == "*" && !own))
        found.push_back(&q);
    return found;
  }

  bool allowed(const asked_run& run, const std::string& agent) const {
    return refusal(run.request.run.rules, agent, agents.at(agent).traits).empty();
  }

  void granted(const grant_slots& grant) {
    auto& run = runs.at(grant.allocation);
    ASSERT_EQ(run.state, asked_run::waits) << "granted twice";
    auto free = free_slots();
    const int count = slots_in(grant.on);
    EXPECT_GE(count, need(run)) << "a gang starts whole";
    EXPECT_LE(count, run.request.slots);
    EXPECT_LE(count, room(run.request.run.job)) << "above a limit";
    EXPECT_TRUE(!run.request.run.rules.single_node || grant.on.size() == 1);
    std::set<std::string> racks;
    for (const auto& part : grant.on) {
      for (int i : part.slots)
        EXPECT_EQ(free.erase({part.agent, i}), 1u) << part.agent << ":" << i << " is not free";
      if (agents.contains(part.agent)) {
        EXPECT_TRUE(allowed(run, part.agent)) << part.agent;
        const auto& labels = agents.at(part.agent).traits.labels;
        racks.insert(labels.contains("rack") ? labels.at("rack") : "");
      }
    }
    if (!run.request.run.rules.same_label.empty()) {
      EXPECT_EQ(racks.size(), 1u);
    }
    if (reserved && reserved != grant.allocation && settings_.scheduler != scheduler_kind::priority) {
      for (const auto& part : reserved_on)
        for (const auto& other : grant.on)
          for (int i : part.slots)
            EXPECT_FALSE(part.agent == other.agent &&
                         std::find(other.slots.begin(), other.slots.end(), i) != other.slots.end())
              << "a reserved slot went to another";
    }
    if (reserved == grant.allocation)
      reserved = {};
    run.state = asked_run::holds;
    run.on = grant.on;
    run.since = now;
  }

  void preempted(const preempt_allocation& order) {
    EXPECT_TRUE(settings_.preempts() || order.reason == "disabled") << order.reason;
    auto& run = runs.at(order.allocation);
    EXPECT_EQ(run.state, asked_run::holds) << "preempted twice, or what waits";
    EXPECT_TRUE(run.request.run.preemptible);
    if (order.reason == "priority") {
      const auto& who = runs.at(order.wanted_by).request.run.job;
      const auto mine = jobs.at(who.job).priority, its = jobs.at(run.request.run.job.job).priority;
      EXPECT_TRUE(mine < its ||
                  (mine == its && jobs.at(who.job).submitted < jobs.at(run.request.run.job.job).submitted));
    }
    run.state = asked_run::stops;
  }

  bool fits(const asked_run& run, const std::set<slot>& free) const {
    std::map<std::string, std::map<std::string, int>> by_rack; // free slots of each agent, by rack
    int most = 0;
    for (const auto& [agent, i] : free) {
      if (!agents.contains(agent) || !allowed(run, agent))
        continue;
      const auto& labels = agents.at(agent).traits.labels;
      const auto rack =
        run.request.run.rules.same_label.empty() || !labels.contains("rack") ? "" : labels.at("rack");
      most = std::max(most, ++by_rack[rack][agent]);
    }
    if (run.request.run.rules.single_node)
      return most >= need(run);
    for (const auto& [rack, on] : by_rack) {
      int n = 0;
      for (const auto& [agent, count] : on)
        n += count;
      if (n >= need(run))
        return true;
    }
    return false;
  }

  /// Checks that a run fits with all its victims, and does not fit with one victim fewer.
  void no_victim_too_many(allocation_id who, const std::vector<allocation_id>& victims,
                          std::set<slot> free) const {
    const auto add = [&](std::set<slot>& to, allocation_id id) {
      for (const auto& part : runs.at(id).on)
        for (int i : part.slots)
          if (const auto it = closed.find(part.agent);
              agents.contains(part.agent) && (it == closed.end() || !it->second))
            to.emplace(part.agent, i);
    };
    const auto& run = runs.at(who);
    const auto serves = [&](const std::vector<allocation_id>& ended) {
      auto slots = free;
      for (const auto id : ended)
        add(slots, id);
      return fits(run, slots) && room(run.request.run.job, ended) >= need(run);
    };
    EXPECT_TRUE(serves(victims)) << "preempted in vain";
    for (const auto spared : victims) {
      auto fewer = victims;
      std::erase(fewer, spared);
      EXPECT_FALSE(serves(fewer)) << "a victim too many";
    }
  }

  /// Checks, where nothing is reserved and no run stops, that no run waits for a full limit which less urgent
  /// runs fill that it may preempt.
  void nobody_waits_below_a_limit_for_whom_it_precedes() const {
    if (settings_.scheduler != scheduler_kind::priority || !settings_.preempts() || reserved ||
        std::any_of(runs.begin(), runs.end(),
                    [](const auto& x) { return x.second.state == asked_run::stops; }))
      return;
    for (const auto& [id, run] : runs) {
      const auto& mine = jobs.at(run.request.run.job.job);
      if (run.state != asked_run::waits || !run.request.run.preemptible || room(mine) >= need(run))
        continue;
      auto free = free_slots();
      std::vector<allocation_id> victims;
      for (const auto& [other, holder] : runs) {
        const auto& its = jobs.at(holder.request.run.job.job);
        const bool same = mine.priority == its.priority;
        if (holder.state != asked_run::holds || !holder.request.run.preemptible ||
            (same ? mine.submitted >= its.submitted : mine.priority > its.priority) ||
            (same && holder.since + settings_.min_run > now))
          continue;
        victims.push_back(other);
        for (const auto& part : holder.on)
          for (int i : part.slots)
            if (const auto it = closed.find(part.agent);
                agents.contains(part.agent) && (it == closed.end() || !it->second))
              free.emplace(part.agent, i);
      }
      EXPECT_FALSE(fits(run, free) && room(mine, victims) >= need(run))
        << to_string(id) << " could preempt those that fill its limit";
    }
  }

  /// Checks, where nothing is reserved and no run stops, that the first run in the order that may have slots
  /// does not fit. In a pool that gives turns no waiting run may fit.
  void nobody_waits_without_cause() const {
    if (reserved || std::any_of(runs.begin(), runs.end(),
                                [](const auto& x) { return x.second.state == asked_run::stops; }))
      return;
    const auto free = free_slots();
    std::set<slot> whole;
    for (const auto& [name, agent] : agents)
      if (const auto it = closed.find(name); it == closed.end() || !it->second)
        for (int i = 0; i < agent.slots; ++i)
          whole.emplace(name, i);
    const asked_run* first = nullptr;
    for (const auto& [id, run] : runs) {
      if (run.state != asked_run::waits || room(run.request.run.job) < need(run) || !fits(run, whole))
        continue;
      if (settings_.scheduler == scheduler_kind::fair || settings_.scheduler == scheduler_kind::round_robin) {
        EXPECT_FALSE(fits(run, free)) << to_string(id) << " could run";
      }
      const auto rank = [&](const asked_run& x) {
        const auto& job = jobs.at(x.request.run.job.job);
        return std::tuple{settings_.scheduler == scheduler_kind::fifo ? 0 : job.priority, job.submitted,
                          x.request.run.started, x.request.allocation};
      };
      if (!first || rank(run) < rank(*first))
        first = &run;
    }
    if (first) {
      EXPECT_FALSE(fits(*first, free)) << "the first could run: " << to_string(first->request.allocation);
    }
  }

  /// Checks that shares are those of the present state, whatever the pool remembers of its last pass.
  void shares_are_of_now() {
    std::map<std::uint64_t, int> stopping;
    for (const auto& [id, run] : runs)
      if (run.state == asked_run::stops)
        stopping[run.request.run.job.job.value] += slots_in(run.on);
    int slots = 0;
    for (const auto& [name, agent] : agents)
      if (const auto it = closed.find(name); it == closed.end() || !it->second)
        slots += agent.slots;
    if (settings_.max_slots >= 0)
      slots = std::min(slots, settings_.max_slots);
    const auto details = machine_.details();
    std::vector<value> listed(details["jobs"].begin(), details["jobs"].end());
    std::sort(listed.begin(), listed.end(), [this](const value& a, const value& b) { // older jobs come first
      const auto age = [this](const value& x) {
        const experiment_id id{x["experiment"].get<std::uint64_t>()};
        return std::pair{jobs.at(id).submitted, id};
      };
      return age(a) < age(b);
    });
    const auto wanted = machine_.describe()["wanted"];
    std::vector<share_demand> demands;
    std::vector<int> caps;
    std::map<std::string, int> cap_of; // index in `caps` of each user and each workspace
    for (const auto& job : listed) {
      const int held = job["used"].get<int>();
      int more = wanted[std::to_string(job["experiment"].get<std::uint64_t>())].get<int>();
      if (job["maxSlots"].is_number())
        more = std::min(more, std::max(0, job["maxSlots"].get<int>() - held));
      demands.push_back(
        {job["weight"].get<double>(), held + more, held - stopping[job["experiment"].get<std::uint64_t>()]});
      const auto& terms = jobs.at({job["experiment"].get<std::uint64_t>()});
      for (const auto* q : quotas_of(terms)) {
        const bool by_user = !q->user.empty();
        const auto [cap, fresh] = cap_of.try_emplace(
          by_user ? "user " + terms.user : "workspace " + terms.workspace, static_cast<int>(caps.size()));
        if (fresh)
          caps.push_back(q->max_slots);
        demands.back().groups[by_user ? 0 : 1] = cap->second;
      }
    }
    const auto shares = fair_shares(demands, slots, caps).shares;
    for (std::size_t i = 0; i < shares.size(); ++i)
      EXPECT_EQ(listed[i]["share"], shares[i]) << "of experiment " << listed[i]["experiment"];
  }

  /// Checks that the list of all waiting runs gives the same reason and position for each run as the
  /// explanation of that run.
  void list_is_that_of_each() {
    std::size_t place = 0;
    bool next = true; // whether no run before this one waits for slots that others hold
    for (const auto& listed : machine_.waiting_runs()) {
      const auto said = machine_.explain(listed.allocation, now);
      EXPECT_EQ(listed.reason, said["reason"]["code"]) << to_string(listed.allocation);
      EXPECT_EQ(said["position"], ++place) << to_string(listed.allocation);
      EXPECT_TRUE(next || listed.reason != "busy") << to_string(listed.allocation);
      next = next && listed.reason != "busy" && listed.reason != "behind";
    }
  }

  pool_settings settings_;
  pool machine_;
  int events_ = 0;
};

struct kind {
  scheduler_kind scheduler;
  bool preemption;
};
void PrintTo(const kind& x, std::ostream* out) {
  *out << name(x.scheduler) << (x.preemption ? "+preemption" : "");
}

class PoolPolicies : public ::testing::TestWithParam<kind> {
protected:
  pool_settings settings() const {
    pool_settings s;
    s.scheduler = GetParam().scheduler;
    s.preemption = GetParam().preemption;
    return s;
  }
};

using dice = std::mt19937_64;
int roll(dice& d, int least, int most) {
  return least + static_cast<int>(d() % static_cast<std::uint64_t>(most - least + 1));
}

job_terms job_of(std::uint64_t id, dice& d) {
  constexpr int priorities[] = {10, 42, 42, 50};
  job_terms job;
  job.job = {id};
  job.submitted = t0 + std::chrono::seconds(id / 2);
  job.priority = priorities[roll(d, 0, 3)];
  job.weight = roll(d, 0, 3);
  job.max_slots = roll(d, 0, 2) == 0 ? roll(d, 1, 4) : -1;
  job.user = id % 2 ? "ada" : "bob";
  job.workspace = id % 3 ? "Uncategorized" : "vision";
  return job;
}

TEST_P(PoolPolicies, HoldWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice d(seed);
    auto s = settings();
    if (roll(d, 0, 2) == 0)
      s.max_slots = roll(d, 2, 6);
    if (roll(d, 0, 2) == 0)
      s.quotas.push_back({"ada", "", roll(d, 1, 5)});
    if (seed % 3 == 0) // the quota of each user without a quota of their own
      s.quotas.push_back({"*", "", 1 + static_cast<int>(seed % 4)});
    if (seed % 4 == 0)
      s.quotas.push_back({"", seed % 8 ? "vision" : "Uncategorized", 1 + static_cast<int>(seed % 5)});
    s.min_run = std::chrono::seconds(roll(d, 0, 1) * 30);
    watched_pool p(s);
    std::vector<job_terms> jobs;
    for (std::uint64_t id = 1; id <= 4; ++id)
      jobs.push_back(job_of(id, d));
    const int agents = roll(d, 1, 4);
    const auto come = [&](int i) { p.up("a" + std::to_string(i), roll(d, 1, 4), roll(d, 0, 1) ? "x" : "y"); };
    for (int i = 0; i < agents; ++i)
      come(i);
    std::uint64_t next = 1;
    for (int step = 0; step < 80 && !HasFailure(); ++step) {
      p.now += std::chrono::seconds(roll(d, 0, 20));
      const int what = roll(d, 0, 19);
      if (what < 9) {
        slots_requested ev{{trial_id{next++}, {1}}, roll(d, 1, 5)};
        ev.least = ev.slots > 1 && roll(d, 0, 4) == 0 ? roll(d, 1, ev.slots - 1) : 0;
        ev.run.job = p.jobs.contains({1}) && roll(d, 0, 1) ? p.jobs.begin()->second
                                                           : jobs[static_cast<std::size_t>(roll(d, 0, 3))];
        if (p.jobs.contains(ev.run.job.job))
          ev.run.job = p.jobs.at(ev.run.job.job);
        ev.run.started = p.now;
        ev.run.preemptible = roll(d, 0, 3) > 0;
        ev.run.rules.single_node = roll(d, 0, 3) == 0;
        if (roll(d, 0, 3) == 0)
          ev.run.rules.labels["rack"] = {"x"};
        if (roll(d, 0, 5) == 0)
          ev.run.rules.same_label = "rack";
        if (roll(d, 0, 3) == 0)
          ev.run.rules.prefer_labels["rack"] = {roll(d, 0, 1) ? "x" : "y"};
        p.tell(ev);
      } else if (what < 15 && !p.runs.empty()) {
        auto it = std::next(p.runs.begin(), roll(d, 0, static_cast<int>(p.runs.size()) - 1));
        p.tell(slots_released{it->first});
      } else if (what == 15) {
        const auto i = roll(d, 0, agents - 1);
        const auto name = "a" + std::to_string(i);
        if (p.agents.contains(name)) {
          p.tell(agent_down{name});
          std::vector<allocation_id> lost;
          for (const auto& [id, run] : p.runs)
            for (const auto& part : run.on)
              if (part.agent == name)
                lost.push_back(id);
          for (const auto id : lost)
            p.tell(slots_released{id});
        } else {
          come(i);
        }
      } else if (what == 16) {
        agent_drain ev{"a" + std::to_string(roll(d, 0, agents - 1))};
        ev.on = roll(d, 0, 1);
        p.tell(ev);
      } else if (what == 17 && !p.jobs.empty()) {
        auto job = std::next(p.jobs.begin(), roll(d, 0, static_cast<int>(p.jobs.size()) - 1))->second;
        job.priority = roll(d, 0, 1) ? 10 : 50;
        job.weight = roll(d, 0, 4);
        job.max_slots = roll(d, 0, 1) ? roll(d, 1, 5) : -1;
        p.tell(job_changed{job});
      } else {
        p.now += std::chrono::seconds(roll(d, 0, 90));
        p.tell(time_passed{});
      }
    }
  }
}

/// A run that is preempted asks again at once, and demand stays the same: after some time no run is preempted
/// any more.
TEST_P(PoolPolicies, ComeToRestWhereDemandStays) {
  for (std::uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice d(seed);
    watched_pool p(settings());
    for (int i = 0; i < 3; ++i)
      p.up("a" + std::to_string(i), roll(d, 1, 4));
    std::uint64_t next = 1;
    for (std::uint64_t id = 1; id <= 4; ++id) {
      const auto job = job_of(id, d);
      for (int i = roll(d, 1, 5); i > 0; --i) {
        slots_requested ev{{trial_id{next++}, {1}}, roll(d, 1, 3)};
        ev.run.job = job;
        ev.run.started = p.now;
        p.tell(ev);
        p.now += std::chrono::seconds(roll(d, 0, 40));
      }
    }
    int rounds = 0;
    for (int quiet = 0; quiet < 3 && rounds < 100; ++rounds) {
      const int before = p.preemptions;
      std::vector<slots_requested> again;
      for (const auto& [id, run] : p.runs)
        if (run.state == asked_run::stops)
          again.push_back(run.request);
      for (auto ev : again) {
        p.tell(slots_released{ev.allocation});
        ev.allocation.run.value += 1;
        p.tell(ev);
      }
      p.now += std::chrono::seconds(60);
      p.tell(time_passed{});
      quiet = p.preemptions == before && again.empty() ? quiet + 1 : 0;
    }
    EXPECT_LT(rounds, 100) << "it never rests";
  }
}

TEST_P(PoolPolicies, ARecoveredPoolGrantsTheSameInWhateverOrderItHears) {
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice d(seed);
    std::vector<pool_event> heard;
    std::uint64_t next = 1;
    std::vector<job_terms> jobs;
    for (std::uint64_t id = 1; id <= 3; ++id)
      jobs.push_back(job_of(id, d));
    for (int a = 0; a < 3; ++a) {
      const auto name = "a" + std::to_string(a);
      heard.push_back(agent_up{name, 4, {}, {}});
      if (roll(d, 0, 1)) {
        slots_held held{{trial_id{next++}, {1}}, {{name, {0, 1}}}, {}, 2, 0, t0 - 5min};
        held.run.job = jobs[static_cast<std::size_t>(roll(d, 0, 2))];
        held.run.started = t0 - 6min;
        heard.push_back(held);
      }
    }
    for (int i = roll(d, 2, 8); i > 0; --i) {
      slots_requested ev{{trial_id{next++}, {1}}, roll(d, 1, 4)};
      ev.run.job = jobs[static_cast<std::size_t>(roll(d, 0, 2))];
      ev.run.started = t0 - std::chrono::seconds(roll(d, 0, 2));
      heard.push_back(ev);
    }
    std::string first;
    for (int order = 0; order < 4; ++order) {
      pool p(pool::phase::recovering, settings());
      for (const auto& ev : heard)
        EXPECT_TRUE(p.apply(ev, t0).empty()) << "it places nothing by guess";
      std::string said;
      for (const auto& action : p.apply(holders_heard{}, t0))
        if (const auto* grant = std::get_if<grant_slots>(&action))
          said += to_string(grant->allocation) + text(grant->on) + "; ";
        else if (const auto* victim = std::get_if<preempt_allocation>(&action))
          said += "-" + to_string(victim->allocation) + "; ";
      if (order == 0)
        first = said;
      EXPECT_EQ(said, first);
      std::shuffle(heard.begin(), heard.end(), d);
    }
  }
}

/// Small runs come without end, each of which ends within its time, while one large gang waits.
TEST_P(PoolPolicies, AGangWaitsNoLongerThanItsReservationAndWhatItsHoldersStillRun) {
  constexpr auto longest = 100s;
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice d(seed);
    auto s = settings();
    s.reserve_after = 60s;
    watched_pool p(s);
    for (int i = 0; i < 3; ++i)
      p.up("a" + std::to_string(i), 4);
    job_terms small, large;
    small.job = {1};
    large.job = {2};
    small.submitted = large.submitted = t0;
    small.priority = large.priority = 42;
    std::uint64_t next = 10;
    const auto ask = [&] {
      slots_requested ev{{trial_id{next++}, {1}}, roll(d, 1, 2)};
      ev.run.job = small;
      ev.run.started = p.now;
      ev.run.preemptible = false;
      p.tell(ev);
    };
    for (int i = 0; i < 20; ++i)
      ask();
    const allocation_id gang{trial_id{5}, {1}};
    slots_requested ev{gang, 9};
    ev.run.job = large;
    ev.run.started = p.now;
    const auto asked_at = p.now;
    time_point reserved_at;
    bool passed = false;
    p.tell(ev);
    while (p.runs.at(gang).state == asked_run::waits && p.now < asked_at + 1000s) {
      p.now += 1s;
      p.tell(time_passed{});
      if (p.reserved == gang && reserved_at == time_point{})
        reserved_at = p.now;
      EXPECT_TRUE(p.reserved || !passed || GetParam().scheduler == scheduler_kind::fifo ||
                  p.now < asked_at + s.reserve_after)
        << "passed, and nothing reserved";
      std::vector<allocation_id> over;
      for (const auto& [id, run] : p.runs)
        if (run.state == asked_run::holds && id != gang &&
            p.now >= run.since + longest - std::chrono::seconds(id.trial().value % 7))
          over.push_back(id);
      for (const auto id : over) {
        for (const auto& action : p.tell(slots_released{id}))
          passed = passed || std::holds_alternative<grant_slots>(action);
        ask();
      }
    }
    // After its reservation the gang waits only for the runs that held its slots then.
    EXPECT_LE(p.now - std::max(reserved_at, asked_at), longest + 1s);
  }
}

/// Slots are chosen by an index for runs that any agent may hold, and by a check of each slot for runs with
/// constraints. Where all agents meet the constraints, both ways give the same.
TEST_P(PoolPolicies, ReserveTheSameSlotsByTheirIndexAndByALookAtEach) {
  int reservations = 0;
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice d(seed);
    auto s = settings();
    s.reserve_after = 5s;
    s.min_run = 3s;
    pool indexed(pool::phase::placing, s), looking(pool::phase::placing, s);
    std::set<allocation_id> there;
    time_point now = t0;
    const auto tell = [&](const pool_event& of_indexed, const pool_event& of_looking) {
      std::string said[2];
      int of = 0;
      for (const auto& actions : {indexed.apply(of_indexed, now), looking.apply(of_looking, now)}) {
        auto& line = said[of++];
        for (const auto& action : actions)
          if (const auto* grant = std::get_if<grant_slots>(&action)) {
            line += to_string(grant->allocation) + text(grant->on) + "; ";
          } else if (const auto* victim = std::get_if<preempt_allocation>(&action)) {
            line += "-" + to_string(victim->allocation) + "; ";
          } else if (const auto* kept = std::get_if<reserve_slots>(&action)) {
            line += "for " + to_string(kept->allocation) + text(kept->on) + "; ";
            reservations += of == 1;
          }
      }
      EXPECT_EQ(said[0], said[1]);
    };
    const int agents = roll(d, 2, 5);
    const auto up = [&](int i) {
      agent_up ev{"a" + std::to_string(i), roll(d, 1, 6), {}, {}};
      ev.traits.labels["all"] = "yes";
      tell(ev, ev);
    };
    for (int i = 0; i < agents; ++i)
      up(i);
    std::vector<job_terms> jobs;
    for (std::uint64_t id = 1; id <= 4; ++id)
      jobs.push_back(job_of(id, d));
    for (std::uint64_t next = 1, step = 0; step < 150 && !HasFailure(); ++step) {
      now += std::chrono::seconds(roll(d, 0, 1) * roll(d, 0, 4)); // several events often have the same time
      const int what = roll(d, 0, 19);
      if (what < 10) {
        slots_requested ev{{trial_id{next++}, {1}}, roll(d, 0, 2) ? roll(d, 1, 3) : roll(d, 4, 12)};
        ev.run.job = jobs[static_cast<std::size_t>(roll(d, 0, 3))];
        ev.run.started = now;
        auto constrained = ev;
        constrained.run.rules.labels["all"] = {"yes"};
        there.insert(ev.allocation);
        tell(ev, constrained);
      } else if (what < 17 && !there.empty()) {
        const auto it = std::next(there.begin(), roll(d, 0, static_cast<int>(there.size()) - 1));
        const slots_released ev{*it, {}};
        there.erase(it);
        tell(ev, ev);
      } else if (what == 17) {
        agent_drain ev{"a" + std::to_string(roll(d, 0, agents - 1))};
        ev.on = roll(d, 0, 1);
        if (!ev.on && roll(d, 0, 1))
          ev.disabled = {0};
        tell(ev, ev);
      } else if (what == 18 && roll(d, 0, 2) == 0) {
        const int i = roll(d, 0, agents - 1);
        const agent_down ev{"a" + std::to_string(i)};
        tell(ev, ev);
        up(i);
      } else {
        now += std::chrono::seconds(roll(d, 0, 6));
        tell(time_passed{}, time_passed{});
      }
    }
  }
  EXPECT_TRUE(reservations > 300 || GetParam().scheduler == scheduler_kind::fifo) << reservations;
}

INSTANTIATE_TEST_SUITE_P(
  Schedulers, PoolPolicies,
  ::testing::Values(kind{scheduler_kind::fifo, false}, kind{scheduler_kind::round_robin, false},
                    kind{scheduler_kind::priority, false}, kind{scheduler_kind::priority, true},
                    kind{scheduler_kind::fair, false}, kind{scheduler_kind::fair, true}));

/// When the limit of a job has room again, as many of its runs compete as there is room for.
TEST_P(PoolPolicies, GiveTheRoomOfOneThatIsWithdrawnToTheNext) {
  pool p(pool::phase::placing, settings());
  static_cast<void>(p.apply(agent_up{"a", 2}, t0));
  const auto ask = [&](std::uint64_t trial, std::uint64_t job, int slots, int limit) {
    slots_requested ev{{trial_id{trial}, {1}}, slots};
    ev.run.job.job = {job};
    ev.run.job.submitted = t0 + std::chrono::seconds(job);
    ev.run.job.max_slots = limit;
    ev.run.started = t0 + std::chrono::seconds(trial);
    return p.apply(ev, t0);
  };
  const auto end = [&](std::uint64_t trial) {
    return p.apply(slots_released{{trial_id{trial}, {1}}, {}}, t0);
  };
  EXPECT_EQ(ask(1, 1, 1, 2).size(), 1u);
  EXPECT_EQ(ask(2, 1, 1, 2).size(), 1u);
  for (std::uint64_t trial = 3; trial <= 4; ++trial)
    EXPECT_TRUE(ask(trial, 1, 2, 2).empty());
  EXPECT_TRUE(ask(5, 2, 1, 1).empty());
  static_cast<void>(end(1));
  static_cast<void>(end(2)); // run 5 holds one of the free slots where it may pass
  static_cast<void>(end(3)); // run 3 competed, and is withdrawn
  static_cast<void>(end(5));
  EXPECT_EQ(p.agents().at("a"), std::vector<allocation_id>(2, {trial_id{4}, {1}}));
}

/// Jobs that could use every slot, or every slot of a quota, have the share of their weights, within one
/// slot.
void gives_shares_within_a_slot(bool by_quota) {
  for (std::uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice d(seed);
    pool_settings s;
    s.scheduler = scheduler_kind::fair;
    s.preemption = true;
    const int slots = roll(d, 4, 16), count = roll(d, 2, 5);
    if (by_quota)
      s.quotas.push_back({"ada", "", slots});
    watched_pool p(s);
    p.up("a", by_quota ? 2 * slots : slots);
    std::uint64_t next = 1;
    double weights = 0;
    std::vector<job_terms> jobs;
    for (int j = 1; j <= count; ++j) {
      job_terms job;
      job.job = {static_cast<std::uint64_t>(j)};
      job.user = "ada";
      job.submitted = p.now;
      job.weight = roll(d, 1, 4);
      weights += job.weight;
      jobs.push_back(job);
      for (int i = 0; i < slots; ++i) {
        slots_requested ev{{trial_id{next++}, {1}}, 1};
        ev.run.job = job;
        ev.run.started = p.now;
        p.tell(ev);
      }
      p.now += std::chrono::seconds(roll(d, 0, 60));
    }
    for (int round = 0; round < 30; ++round) {
      std::vector<slots_requested> again;
      for (const auto& [id, run] : p.runs)
        if (run.state == asked_run::stops)
          again.push_back(run.request);
      for (auto ev : again) {
        p.tell(slots_released{ev.allocation});
        ++ev.allocation.run.value;
        p.tell(ev);
      }
      p.now += 60s;
      p.tell(time_passed{});
    }
    for (const auto& job : jobs)
      EXPECT_LT(std::abs(p.held_by(job.job) - slots * job.weight / weights), 1) << "job " << job.job.value;
  }
}
TEST(FairPool, GivesSharesWithinASlot) { gives_shares_within_a_slot(false); }
TEST(FairPool, GivesSharesOfAQuotaWithinASlot) { gives_shares_within_a_slot(true); }

} // namespace
} // namespace troupe
