#include "test/sim/platform/platform.hpp"

#include "model/rng.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

constexpr const char* kind_names[] = {"an actor dies",  "the master dies",    "an agent dies",
                                      "a sandbox dies", "a host dies",        "a user pauses",
                                      "a user kills",   "a link breaks",      "a link stalls",
                                      "a host is lost", "a task is abandoned"};
constexpr const char* task_wishes[] = {"kill", "kill with its tree", "pause", "unpause",
                                       "use",  "set priority"};
constexpr const char* search_wishes[] = {"kill",      "cancel", "continue", "archive",
                                         "unarchive", "move",   "delete"};

/// Short ones, and one in ten so long that leases end.
duration draw_away(rng& random) {
  const auto most = random.chance(0.1) ? 70'000 : random.chance(0.5) ? 500 : 20'000;
  return std::chrono::milliseconds(5 + random.below(static_cast<std::uint64_t>(most)));
}

/// Often at once, so that what is ordered meets what still goes on.
duration draw_wait(rng& random) {
  const auto most = random.chance(0.4) ? 20 : random.chance(0.5) ? 2'000 : 20'000;
  return std::chrono::milliseconds(random.below(static_cast<std::uint64_t>(most)));
}

task_plan draw_task(rng& random, const platform_plan& plan, int hosts) {
  task_plan one;
  one.kind = task_kind(1 + random.below(5));
  const bool generic = one.kind == task_kind::generic;
  const bool program = generic || one.kind == task_kind::command;
  if (one.kind != task_kind::tensorboard && random.chance(0.6))
    one.slots = 1 + int(random.below(std::uint64_t(generic ? hosts * plan.slots : plan.slots)));
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

/// An end comes more often than what waits for one, or all would be seen after the search alone.
wish<search_wish> draw_search_wish(rng& random) {
  constexpr search_wish often[] = {search_wish::kill,  search_wish::cancel,  search_wish::go_on,
                                   search_wish::go_on, search_wish::archive, search_wish::unarchive,
                                   search_wish::move,  search_wish::move,    search_wish::remove};
  return {draw_wait(random), often[random.below(std::size(often))], int(random.below(2))};
}

template <class What, std::size_t N>
void describe_wishes(std::string& text, const std::vector<wish<What>>& wishes,
                     const char* const (&names)[N]) {
  for (const auto& x : wishes)
    text += "\n    " + std::to_string(x.after.count() / 1000) + " ms later " + names[int(x.what)] + " " +
            std::to_string(x.number);
}

} // namespace

platform_plan draw_platform_plan(std::uint64_t seed) {
  rng random(mix64(seed) ^ 0x77);
  platform_plan plan;
  plan.seed = seed;
  plan.hosts = 1 + int(random.below(3));
  plan.slots = 1 + int(random.below(2));
  const auto searches = 1 + random.below(2);
  for (std::uint64_t n = 0; n < searches; ++n) {
    platform_plan::search one{random.chance(0.5)   ? "random"
                              : random.chance(0.5) ? "grid"
                                                   : "async_halving",
                              2 + int(random.below(4))};
    if (random.chance(0.3))
      one.slots_per_trial = std::min(2, plan.hosts * plan.slots);
    plan.searches.push_back(one);
  }
  const auto faults = random.below(6);
  for (std::uint64_t n = 0; n < faults; ++n)
    plan.faults.push_back({platform_fault_kind(random.below(platform_fault_kinds)),
                           20 + int(random.below(900)), draw_away(random), random()});

  const bool loses_host = plan.hosts > 1 && random.chance(0.15);
  const int hosts_left = plan.hosts - (loses_host ? 1 : 0);
  if (loses_host)
    plan.faults.push_back(
      {platform_fault_kind::host_is_lost, 20 + int(random.below(900)), duration{0}, random()});
  plan.preemption = random.chance(0.4);
  for (auto& one : plan.searches) {
    if (one.searcher == "grid" && random.chance(0.3))
      one = {"single", 1, one.slots_per_trial};
    one.slots_per_trial = std::min(one.slots_per_trial, hosts_left * plan.slots);
    const auto wishes = random.chance(0.5) ? random.below(5) : 0;
    for (std::uint64_t n = 0; n < wishes; ++n)
      one.wishes.push_back(draw_search_wish(random));
  }
  const auto tasks = random.chance(0.7) ? 1 + random.below(5) : 0;
  for (std::uint64_t n = 0; n < tasks; ++n)
    plan.tasks.push_back(draw_task(random, plan, hosts_left));

  if (tasks > 0 && random.chance(0.15))
    plan.faults.push_back(
      {platform_fault_kind::task_is_abandoned, 20 + int(random.below(600)), duration{0}, random()});
  std::sort(plan.faults.begin(), plan.faults.end(),
            [](const auto& a, const auto& b) { return a.after < b.after; });
  return plan;
}

std::string describe(const platform_plan& plan) {
  auto text = "seed " + std::to_string(plan.seed) + ": " + std::to_string(plan.hosts) + " hosts with " +
              std::to_string(plan.slots) + " slots" + (plan.preemption ? ", with preemption" : "");
  for (const auto& x : plan.searches) {
    text += "\n  " + x.searcher + ", " + std::to_string(x.trials) + " trials of " +
            std::to_string(x.slots_per_trial);
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
