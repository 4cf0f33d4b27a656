#include "test/sim/platform/platform.hpp"

#include "model/rng.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

constexpr const char* kind_names[] = {
  "an actor dies",   "the master dies", "an agent dies",  "a sandbox dies",      "a host dies",
  "a user pauses",   "a user kills",    "a link breaks",  "a link stalls",       "an agent is disabled",
  "a pool changes",  "an agent moves",  "a host is lost", "a task is abandoned", "a link is cut",
  "the power fails", "a start is lost"};
constexpr const char* task_wishes[] = {"kill", "kill with its tree", "pause", "unpause",
                                       "use",  "set priority"};
constexpr const char* search_wishes[] = {"kill", "cancel", "continue",     "archive",       "unarchive",
                                         "move", "delete", "set priority", "set max_slots", "set pool"};

/// Draws a time away. Most are short; one in ten is so long that leases end.
duration draw_away(rng& random) {
  const auto most = random.chance(0.1) ? 70'000 : random.chance(0.5) ? 500 : 20'000;
  return std::chrono::milliseconds(5 + random.below(static_cast<std::uint64_t>(most)));
}

/// Draws the length of a cut: longer than a silent link lives, and often so long that runs are given away.
duration draw_cut(rng& random) {
  const bool runs_are_given_away = random.chance(0.7);
  return std::chrono::milliseconds(runs_are_given_away ? 45'000 + random.below(20'000)
                                                       : 11'000 + random.below(30'000));
}

/// Draws the time before the next wish. It is often very short, so that an order meets the effects of the one
/// before.
duration draw_wait(rng& random) {
  const auto most = random.chance(0.4) ? 20 : random.chance(0.5) ? 2'000 : 20'000;
  return std::chrono::milliseconds(random.below(static_cast<std::uint64_t>(most)));
}

task_plan draw_task(rng& random, const platform_plan& plan) {
  task_plan one;
  one.kind = task_kind(1 + random.below(5));
  const bool generic = one.kind == task_kind::generic;
  const bool program = generic || one.kind == task_kind::command;
  if (one.kind != task_kind::tensorboard && random.chance(0.6))
    one.slots = 1 + int(random.below(std::uint64_t(generic ? plan.most_slots(0)
                                                           : std::min(plan.slots, plan.most_slots(0)))));
  if (program && random.chance(0.8))
    one.steps = 1 + int(random.below(6));
  one.exit_code = program && random.chance(0.3) ? 3 : 0;
  if (one.kind == task_kind::tensorboard || (one.kind == task_kind::notebook && random.chance(0.7)))
    one.idle = 10 + int(random.below(60));
  if (generic) {
    std::vector<int> above;
    for (std::size_t n = 0; n < plan.tasks.size(); ++n)
      if (plan.tasks[n].kind == task_kind::generic)
        above.push_back(int(n));
    if (!above.empty() && random.chance(0.6))
      one.parent = above[random.below(above.size())];
    one.no_pause = random.chance(0.3) ? -1 : random.chance(0.8) ? 0 : 1;
  }
  one.after = draw_wait(random);
  one.repeated = random.chance(0.3);
  constexpr task_wish of_generic[] = {task_wish::kill,  task_wish::kill_tree, task_wish::pause,
                                      task_wish::pause, task_wish::unpause,   task_wish::set_priority};
  constexpr task_wish of_others[] = {task_wish::kill, task_wish::use, task_wish::set_priority};
  const auto wishes = random.below(4);
  for (std::uint64_t n = 0; n < wishes; ++n)
    one.wishes.push_back({draw_wait(random),
                          generic ? of_generic[random.below(std::size(of_generic))]
                                  : of_others[random.below(std::size(of_others))],
                          1 + int(random.below(99))});
  return one;
}

/// Draws a wish. Wishes that end a search are drawn more often than those that wait for an end; otherwise
/// most would come only after the search has ended on its own.
wish<search_wish> draw_search_wish(rng& random, const platform_plan& plan, const platform_plan::search& of) {
  constexpr search_wish often[] = {
    search_wish::kill,    search_wish::cancel,       search_wish::go_on,         search_wish::go_on,
    search_wish::archive, search_wish::unarchive,    search_wish::move,          search_wish::move,
    search_wish::remove,  search_wish::set_priority, search_wish::set_max_slots, search_wish::set_pool,
    search_wish::set_pool};
  wish<search_wish> out{draw_wait(random), often[random.below(std::size(often))], int(random.below(2))};
  if (out.what == search_wish::set_priority)
    out.number = 1 + int(random.below(99));
  if (out.what == search_wish::set_max_slots)
    out.number = random.chance(0.3) ? -1 : of.slots_per_trial + int(random.below(2));
  if (out.what == search_wish::set_pool) {
    out.number = int(random.below(plan.pools.size()));
    if (plan.most_slots(out.number) < of.slots_per_trial)
      out.number = of.pool;
  }
  return out;
}

pool_plan draw_pool(rng& random, int hosts) {
  constexpr const char* schedulers[] = {"priority", "priority", "fair", "fifo", "round_robin"};
  pool_plan one;
  one.hosts = hosts;
  one.scheduler = schedulers[random.below(std::size(schedulers))];
  one.preemption = random.chance(0.5);
  return one;
}

template <class What, std::size_t N>
void describe_wishes(std::string& text, const std::vector<wish<What>>& wishes,
                     const char* const (&names)[N]) {
  for (const auto& x : wishes)
    text += "\n    " + std::to_string(x.after.count() / 1000) + " ms later " + names[int(x.what)] + " " +
            std::to_string(x.number);
}

} // namespace

std::string name_of_pool(int pool) { return pool == 0 ? "default" : "pool" + std::to_string(pool); }

bool platform_plan::loses_host() const {
  return std::any_of(faults.begin(), faults.end(),
                     [](const auto& x) { return x.kind == platform_fault_kind::host_is_lost; });
}
bool platform_plan::continues() const {
  const auto goes_on = [](const auto& x) { return x.what == search_wish::go_on; };
  return std::any_of(searches.begin(), searches.end(),
                     [&](const auto& x) { return std::any_of(x.wishes.begin(), x.wishes.end(), goes_on); });
}
int platform_plan::most_slots(int pool) const {
  const auto& of = pools[std::size_t(pool)];
  int most = (of.hosts - (pool == 0 && loses_host() ? 1 : 0)) * slots;
  for (const int limit : {of.max_slots, of.quota})
    if (limit >= 0)
      most = std::min(most, limit);
  return most;
}

platform_plan draw_platform_plan(std::uint64_t seed) {
  rng random(mix64(seed) ^ 0x77);
  platform_plan plan;
  plan.seed = seed;
  const int hosts = 1 + int(random.below(3)), pools = hosts > 1 && random.chance(0.5) ? 2 : 1;
  plan.slots = 1 + int(random.below(2));
  plan.aux = seed % 4 == 0 ? 2 : 1;
  for (int n = 0; n < pools; ++n)
    plan.pools.push_back(draw_pool(random, n == 0 ? hosts - (pools - 1) : 1));
  if (pools > 1) {
    plan.pools[1].elastic = random.chance(0.5);
    plan.pools[0].fallback = random.chance(0.4) ? 1 : -1;
  }

  const auto faults = random.below(6);
  for (std::uint64_t n = 0; n < faults; ++n)
    plan.faults.push_back({platform_fault_kind(random.below(platform_fault_kinds)),
                           20 + int(random.below(900)), draw_away(random), random()});
  if (plan.pools[0].hosts > 1 && random.chance(0.15))
    plan.faults.push_back(
      {platform_fault_kind::host_is_lost, 20 + int(random.below(900)), duration{0}, random()});
  for (std::size_t n = 0; n < plan.pools.size(); ++n) {
    const auto all = std::uint64_t(plan.most_slots(int(n)));
    auto& pool = plan.pools[n];
    if (random.chance(0.3))
      pool.max_slots = 1 + int(random.below(all));
    if (random.chance(0.3))
      pool.quota = 1 + int(random.below(all));
  }

  const auto searches = 1 + random.below(2);
  for (std::uint64_t n = 0; n < searches; ++n) {
    platform_plan::search one{random.chance(0.5)   ? "random"
                              : random.chance(0.5) ? "grid"
                                                   : "async_halving",
                              2 + int(random.below(4))};
    one.pool = int(random.below(plan.pools.size()));
    if (random.chance(0.3))
      one.slots_per_trial = std::min(2, plan.most_slots(one.pool));
    if (one.searcher == "grid" && random.chance(0.3))
      one.searcher = "single", one.trials = 1;
    one.priority = random.chance(0.5) ? 0 : 1 + int(random.below(99));
    one.weight = random.chance(0.7) ? 1 : 0.5 + double(random.below(4));
    if (random.chance(0.3))
      one.max_slots = one.slots_per_trial + int(random.below(2));
    const auto wishes = random.chance(0.5) ? random.below(5) : 0;
    for (std::uint64_t m = 0; m < wishes; ++m)
      one.wishes.push_back(draw_search_wish(random, plan, one));
    plan.searches.push_back(one);
  }
  const auto tasks = random.chance(0.7) ? 1 + random.below(5) : 0;
  for (std::uint64_t n = 0; n < tasks; ++n)
    plan.tasks.push_back(draw_task(random, plan));

  if (tasks > 0 && random.chance(0.15))
    plan.faults.push_back(
      {platform_fault_kind::task_is_abandoned, 20 + int(random.below(600)), duration{0}, random()});
  const auto cuts = random.chance(0.3) ? 1 + random.below(2) : 0;
  for (std::uint64_t n = 0; n < cuts; ++n)
    plan.faults.push_back(
      {platform_fault_kind::link_is_cut, 20 + int(random.below(900)), draw_cut(random), random()});
  if (random.chance(0.1))
    plan.faults.push_back(
      {platform_fault_kind::power_fails, 20 + int(random.below(900)), draw_away(random), random()});
  while (random.chance(0.2))
    plan.faults.push_back(
      {platform_fault_kind::start_is_lost, 20 + int(random.below(400)), duration{0}, random()});
  for (auto& search : plan.searches)
    if (random.chance(0.3)) {
      search.max_restarts = int(random.below(3));
      search.failures = 1 + int(random.below(2));
    }
  for (auto& search : plan.searches)
    if (search.searcher == "async_halving" && random.chance(0.6))
      search.searcher = random.chance(0.5) ? "asha_promotion" : "pbt";
  plan.sandboxes_ask = random.chance(0.5);
  plan.repeated_within = random.chance(0.5) ? 0.2 : 0;
  plan.resting = random.chance(0.5) ? 0.002 : 0;
  std::sort(plan.faults.begin(), plan.faults.end(),
            [](const auto& a, const auto& b) { return a.after < b.after; });
  return plan;
}

std::string describe(const platform_plan& plan) {
  auto text = "seed " + std::to_string(plan.seed) + ": hosts with " + std::to_string(plan.slots) + " slots" +
              (plan.repeated_within > 0 ? ", repeats within the master" : "") +
              (plan.resting > 0 ? ", actors that rest" : "");
  for (std::size_t n = 0; n < plan.pools.size(); ++n) {
    const auto& x = plan.pools[n];
    text += "\n  pool " + name_of_pool(int(n)) + " of " + std::to_string(x.hosts) +
            (x.elastic ? " instances, " : " hosts, ") + x.scheduler +
            (x.preemption ? " with preemption" : "") + ", max_slots " + std::to_string(x.max_slots) +
            ", quota " + std::to_string(x.quota) +
            (x.fallback < 0 ? "" : ", falls back to " + name_of_pool(x.fallback));
  }
  for (const auto& x : plan.searches) {
    text += "\n  " + x.searcher + " in " + name_of_pool(x.pool) + ", " + std::to_string(x.trials) +
            " trials of " + std::to_string(x.slots_per_trial) + ", priority " + std::to_string(x.priority) +
            ", max_slots " + std::to_string(x.max_slots) + ", " + std::to_string(x.failures) +
            " failures of " + std::to_string(x.max_restarts) + " allowed";
    describe_wishes(text, x.wishes, search_wishes);
  }
  for (const auto& x : plan.tasks) {
    text += std::string("\n  ") + name(x.kind) + " with " + std::to_string(x.slots) + " slots, " +
            std::to_string(x.steps) + " steps, exit code " + std::to_string(x.exit_code) + ", idle " +
            std::to_string(x.idle) + " s, below " + std::to_string(x.parent) + ", no pause " +
            std::to_string(x.no_pause) + ", after " + std::to_string(x.after.count() / 1000) + " ms";
    describe_wishes(text, x.wishes, task_wishes);
  }
  for (const auto& x : plan.faults)
    text += "\n  after " + std::to_string(x.after) + ": " + kind_names[int(x.kind)] + ", pick " +
            std::to_string(x.pick % 1000) + ", away " + std::to_string(x.away.count() / 1000) + " ms";
  return text;
}

} // namespace troupe::sim
