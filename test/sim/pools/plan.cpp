#include "test/sim/pools/pools.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

constexpr const char* fault_names[] = {"master dies", "pool dies",  "allocation dies",   "provisioner dies",
                                       "host dies",   "agent dies", "link is cut",       "cloud fails",
                                       "cloud hangs", "cloud errs", "cloud starts none", "spot goes",
                                       "job changes", "job moves",  "pool changes",      "drain",
                                       "trial killed"};

duration seconds(rng& random, int least, int most) {
  return std::chrono::milliseconds(1000 * least +
                                   std::int64_t(random.below(std::uint64_t(1000 * (most - least) + 1))));
}
int from(rng& random, int least, int most) {
  return least + int(random.below(std::uint64_t(most - least + 1)));
}

} // namespace

pools_plan draw_pools_plan(std::uint64_t seed) {
  rng random(mix64(seed) ^ 0x9007);
  pools_plan plan;
  plan.seed = seed;
  plan.slow = random.chance(0.5) ? 0.002 : 0.03;
  constexpr const char* schedulers[] = {"priority", "fair", "round_robin", "fifo"};
  const int pools = from(random, 1, 3);
  value all = value::object();
  std::vector<int> largest; ///< largest need that each pool can hold
  std::vector<int> largest_agent;
  std::vector<std::map<std::string, int>> racks;
  for (int p = 0; p < pools; ++p) {
    const auto name = "p" + std::to_string(p);
    value pool{{"scheduler", schedulers[random.below(4)]}};
    if (p == 0)
      pool["default"] = true;
    if (pool["scheduler"] == "priority" || pool["scheduler"] == "fair")
      pool["preemption"] = random.chance(0.7);
    pool["reserve_after"] = random.chance(0.5) ? "20s" : "60s";
    pool["min_run"] = random.chance(0.5) ? "5s" : "30s";
    pool["aux_per_agent"] = 2;
    int slots = 0, one = 0;
    std::map<std::string, int> by_rack;
    const bool elastic = random.chance(0.4);
    const int hosts = elastic ? from(random, 0, 1) : from(random, 1, 3);
    for (int h = 0; h < hosts; ++h) {
      pools_plan::host host{name + "h" + std::to_string(h), name, random.chance(0.5) ? "x" : "y",
                            from(random, 1, 4)};
      slots += host.slots;
      one = std::max(one, host.slots);
      by_rack[host.rack] += host.slots;
      plan.hosts.push_back(std::move(host));
    }
    if (elastic) {
      const int each = from(random, 1, 3), most = from(random, 1, 3);
      pool["provider"] = {{"type", "local"},
                          {"instance_slots", each},
                          {"max_instances", most},
                          {"max_idle_agent_period", random.chance(0.5) ? "30s" : "5m"},
                          {"max_agent_starting_period", "60s"}};
      if (random.chance(0.3))
        pool["provider"]["min_instances"] = 1;
      // The slots of whole instances, because only the number of instances is counted.
      slots = hosts > 0 ? std::max(each, slots) : each * most;
      one = std::max(one, each);
    }
    largest.push_back(slots);
    largest_agent.push_back(one);
    racks.push_back(by_rack);
    all[name] = std::move(pool);
  }
  for (int p = 0; p + 1 < pools; ++p)
    if (random.chance(0.5)) {
      auto& pool = all["p" + std::to_string(p)];
      pool["fallback"] = value::array({"p" + std::to_string(p + 1)});
      if (p + 2 < pools && random.chance(0.5))
        pool["fallback"].push_back("p" + std::to_string(p + 2));
      pool["fallback_after"] = random.chance(0.5) ? "5s" : "20s";
    }
  const int jobs = from(random, 2, 5);
  // Need of each user, by pool.
  std::vector<std::map<std::string, int>> needs(static_cast<std::size_t>(pools));
  for (int j = 0; j < jobs; ++j) {
    pools_plan::job job;
    const auto p = random.below(std::uint64_t(pools));
    job.pool = "p" + std::to_string(p);
    job.user = random.chance(0.5) ? "ada" : "bob";
    job.submitted = seconds(random, 0, random.chance(0.5) ? 5 : 120);
    constexpr int priorities[] = {0, 10, 42, 50};
    job.priority = priorities[random.below(4)];
    job.weight = double(from(random, 0, 3));
    int need = 1;
    const int trials = from(random, 1, 6);
    for (int t = 0; t < trials; ++t) {
      pools_plan::trial trial;
      trial.slots =
        random.chance(0.1) ? 0 : from(random, 1, std::min(largest[p], random.chance(0.6) ? 2 : 6));
      if (const auto& provider = all[job.pool]; provider.contains("provider")) {
        const int each = provider["provider"]["instance_slots"].get<int>();
        if (trial.slots > each) // instances are asked for only where whole ones hold the run
          trial.slots = std::max(each, trial.slots / each * each);
        if (trial.slots > largest[p])
          trial.slots = each;
      }
      trial.seconds = random.chance(0.7) ? 1 + double(random.below(30)) : 20 + double(random.below(150));
      trial.single_node = trial.slots <= largest_agent[p] && random.chance(0.2);
      if (!all[job.pool].contains("provider")) {
        const auto rack = random.chance(0.5) ? "x" : "y";
        const auto there = racks[p].find(rack);
        if (there != racks[p].end() && there->second >= trial.slots && !trial.single_node) {
          if (random.chance(0.3))
            trial.rack = rack;
          else
            trial.same_rack = random.chance(0.3);
        }
      }
      need = std::max(need, trial.slots);
      job.trials.push_back(std::move(trial));
    }
    if (random.chance(0.4))
      job.max_slots = need + from(random, 0, 2);
    needs[p][job.user] = std::max(needs[p][job.user], need);
    plan.jobs.push_back(std::move(job));
  }
  for (int p = 0; p < pools; ++p) {
    auto& pool = all["p" + std::to_string(p)];
    int need = 1;
    for (const auto& [user, n] : needs[std::size_t(p)])
      need = std::max(need, n);
    if (random.chance(0.25))
      pool["max_slots"] = need + from(random, 0, 3);
    if (random.chance(0.4))
      pool["quotas"] = value::array(
        {{{"user", "ada"}, {"max_slots", std::max(1, needs[std::size_t(p)]["ada"]) + from(random, 0, 2)}}});
  }
  plan.configuration = {{"troupe", 1}, {"pools", all}};
  const auto faults = random.below(13);
  for (std::uint64_t n = 0; n < faults; ++n) {
    const bool long_one = random.chance(0.2);
    plan.faults.push_back({pools_fault_kind(random.below(pools_fault_kinds)), seconds(random, 1, 300),
                           long_one ? seconds(random, 30, 150) : seconds(random, 0, 20), random()});
  }
  std::sort(plan.faults.begin(), plan.faults.end(),
            [](const auto& a, const auto& b) { return a.after < b.after; });
  return plan;
}

std::string describe(const pools_plan& plan) {
  auto text = "seed " + std::to_string(plan.seed) + ": " + to_json(plan.configuration["pools"]);
  for (const auto& h : plan.hosts)
    text += "\n  host " + h.name + ": " + std::to_string(h.slots) + " slots, rack " + h.rack;
  std::size_t number = 0;
  for (const auto& j : plan.jobs) {
    text += "\n  job " + std::to_string(++number) + " of " + j.user + " in " + j.pool + " after " +
            std::to_string(j.submitted / 1s) + " s, priority " + std::to_string(j.priority) + ", at most " +
            std::to_string(j.max_slots) + ":";
    for (const auto& t : j.trials)
      text += " " + std::to_string(t.slots) + (t.single_node ? "s" : "") + t.rack + (t.same_rack ? "=" : "") +
              "(" + std::to_string(int(t.seconds)) + " s)";
  }
  for (const auto& f : plan.faults)
    text += "\n  after " + std::to_string(f.after / 1ms) + " ms: " + fault_names[int(f.kind)] + ", pick " +
            std::to_string(f.pick % 1000) + ", away " + std::to_string(f.away / 1ms) + " ms";
  return text;
}

} // namespace troupe::sim
