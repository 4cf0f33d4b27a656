// What a pool's machine costs: one pass over a full queue, one event in steady state, a preemption for a
// large gang, an explanation; each beside its floor in the same process. Measures CPU time of the thread.
//
//   perf_schedulers [WAITING AGENTS]

#include "actors/pool/pool.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>

namespace {

using namespace troupe;

constexpr time_point t0{std::chrono::hours(1)};
constexpr int slots_each = 8;

double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

std::string agent_name(int i) {
  char text[16];
  std::snprintf(text, sizeof text, "a%05d", i);
  return text;
}

allocation_id run_of(std::uint64_t trial) { return {trial_id{trial}, {1}}; }

constexpr int gang_sizes[] = {1, 1, 1, 2, 2, 4, 8, 8, 16, 64};

slots_requested request(std::uint64_t trial, std::mt19937_64& random, int jobs) {
  slots_requested ev{run_of(trial), gang_sizes[random() % std::size(gang_sizes)]};
  ev.run.job.job = {1 + random() % static_cast<std::uint64_t>(jobs)};
  ev.run.job.submitted = t0 + std::chrono::seconds(ev.run.job.job.value);
  ev.run.job.priority = 1 + static_cast<int>(ev.run.job.job.value % 99);
  ev.run.started = t0 + std::chrono::hours(2) + std::chrono::microseconds(trial); // they wait since now
  return ev;
}

pool_settings settings_of(scheduler_kind kind, bool preemption) {
  pool_settings settings;
  settings.scheduler = kind;
  settings.preemption = preemption;
  return settings;
}

/// Best fit of ranked requests into free slots by buckets: no pass can do with less.
double floor_us(const std::vector<slots_requested>& asked, int agents) {
  const auto begin = cpu_us();
  std::vector<const slots_requested*> order;
  for (const auto& x : asked)
    order.push_back(&x);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    const auto &x = a->run, &y = b->run;
    return std::tie(x.job.priority, x.job.submitted, x.started, a->allocation) <
           std::tie(y.job.priority, y.job.submitted, y.started, b->allocation);
  });
  std::vector<std::vector<int>> buckets(slots_each + 1);
  for (int i = agents; i-- > 0;)
    buckets[slots_each].push_back(i);
  std::vector<std::pair<const slots_requested*, std::vector<std::pair<int, int>>>> placed;
  std::int64_t free = std::int64_t{agents} * slots_each;
  for (const auto* one : order) {
    int left = one->slots;
    if (left > free)
      continue;
    std::vector<std::pair<int, int>> on;
    while (left > 0) {
      int size = std::min(left, slots_each);
      while (size < slots_each && buckets[static_cast<std::size_t>(size)].empty())
        ++size;
      while (size > 0 && buckets[static_cast<std::size_t>(size)].empty())
        --size;
      if (size == 0)
        break;
      auto& bucket = buckets[static_cast<std::size_t>(size)];
      const int agent = bucket.back();
      bucket.pop_back();
      const int taken = std::min(size, left);
      if (size > taken)
        buckets[static_cast<std::size_t>(size - taken)].push_back(agent);
      on.emplace_back(agent, taken);
      left -= taken;
      free -= taken;
    }
    placed.emplace_back(one, std::move(on));
  }
  const auto end = cpu_us();
  if (placed.empty())
    std::puts("nothing was placed");
  return end - begin;
}

double percentile(std::vector<double>& all, double part) {
  if (all.empty())
    return 0;
  std::sort(all.begin(), all.end());
  return all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
}

std::string both(std::vector<double>& all) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f %.1f us", percentile(all, 0.5), percentile(all, 0.99));
  return text;
}

struct filled_pool {
  pool machine;
  std::vector<slots_requested> asked;
  std::mt19937_64 random{7};
  std::uint64_t next = 1;
  std::vector<allocation_id> running;
  time_point now = t0 + std::chrono::hours(2);

  filled_pool(scheduler_kind kind, bool preemption, int waiting, int agents, int jobs)
      : machine(pool::phase::recovering, settings_of(kind, preemption)) {
    for (int i = 0; i < agents; ++i)
      static_cast<void>(machine.apply(agent_up{agent_name(i), slots_each}, now));
    for (int i = 0; i < waiting; ++i) {
      asked.push_back(request(next++, random, jobs));
      static_cast<void>(machine.apply(asked.back(), now));
    }
  }
  void take(const std::vector<pool_action>& actions) {
    for (const auto& action : actions)
      if (const auto* grant = std::get_if<grant_slots>(&action))
        running.push_back(grant->allocation);
  }
  double pass() {
    const auto begin = cpu_us();
    const auto actions = machine.apply(holders_heard{}, now);
    const auto end = cpu_us();
    take(actions);
    return end - begin;
  }
  double timed(const pool_event& ev) {
    now += std::chrono::milliseconds(10);
    const auto begin = cpu_us();
    const auto actions = machine.apply(ev, now);
    const auto end = cpu_us();
    take(actions);
    return end - begin;
  }
};

void passes(int waiting, int agents) {
  for (const auto kind :
       {scheduler_kind::fifo, scheduler_kind::round_robin, scheduler_kind::priority, scheduler_kind::fair}) {
    std::vector<double> ours, floors;
    std::size_t placed = 0;
    for (int round = 0; round < 3; ++round) {
      filled_pool p(kind, false, waiting, agents, 1000);
      floors.push_back(floor_us(p.asked, agents));
      ours.push_back(p.pass());
      placed = p.running.size();
    }
    std::printf("one pass, %d waiting x %d agents, %s: %.1f ms, floor %.1f ms, %.1f times; %zu granted\n",
                waiting, agents, name(kind), percentile(ours, 0.5) / 1e3, percentile(floors, 0.5) / 1e3,
                percentile(ours, 0.5) / percentile(floors, 0.5), placed);
  }
}

void events(int waiting, int agents) {
  for (const auto kind :
       {scheduler_kind::fifo, scheduler_kind::round_robin, scheduler_kind::priority, scheduler_kind::fair}) {
    filled_pool p(kind, false, waiting, agents, std::max(10, waiting / 100));
    p.pass();
    std::set<std::uint64_t> peer;
    for (int i = 0; i < waiting; ++i)
      peer.insert(p.random());
    std::vector<double> request_us, release_us, agent_us, job_us, peer_us, grants;
    for (int i = 0; i < 2000; ++i) {
      request_us.push_back(p.timed(request(p.next++, p.random, std::max(10, waiting / 100))));
      const auto at = p.random() % p.running.size();
      const auto id = p.running[at];
      p.running.erase(p.running.begin() + static_cast<std::ptrdiff_t>(at));
      const auto before = p.running.size();
      release_us.push_back(p.timed(slots_released{id, {}}));
      grants.push_back(static_cast<double>(p.running.size() - before));
      if (i % 10 == 0) {
        const auto name = agent_name(static_cast<int>(p.random() % static_cast<std::uint64_t>(agents)));
        agent_us.push_back(p.timed(agent_down{name}));
        agent_us.push_back(p.timed(agent_up{name, slots_each}));
        job_terms job;
        job.job = {1 + p.random() % 10};
        job.submitted = t0 + std::chrono::seconds(job.job.value);
        job.priority = 1 + static_cast<int>(p.random() % 99);
        job_us.push_back(p.timed(job_changed{job}));
      }
      const auto begin = cpu_us();
      const auto key = p.random();
      peer.insert(key);
      peer.erase(key);
      peer_us.push_back(cpu_us() - begin);
    }
    std::printf(
      "one event, %d x %d, %s: p50 and p99 request %s, release %s (one of a hundred grants %.0f or more), "
      "agent %s, job %s; insert and erase in a set %s\n",
      waiting, agents, name(kind), both(request_us).c_str(), both(release_us).c_str(),
      percentile(grants, 0.99), both(agent_us).c_str(), both(job_us).c_str(), both(peer_us).c_str());
  }
}

void preemption(int running) {
  pool_settings settings = settings_of(scheduler_kind::priority, true);
  settings.min_run = duration{0};
  pool machine(pool::phase::recovering, settings);
  const auto now = t0 + std::chrono::hours(2);
  const int agents = running / slots_each;
  for (int i = 0; i < agents; ++i)
    static_cast<void>(machine.apply(agent_up{agent_name(i), slots_each}, now));
  std::mt19937_64 random(3);
  for (int i = 0; i < running; ++i) {
    auto ev = request(static_cast<std::uint64_t>(i + 1), random, 1000);
    ev.slots = 1;
    ev.run.job.priority = 50;
    static_cast<void>(machine.apply(ev, now));
  }
  static_cast<void>(machine.apply(holders_heard{}, now));
  std::vector<double> all;
  std::size_t victims = 0;
  for (int i = 0; i < 20; ++i) {
    auto ev = request(static_cast<std::uint64_t>(running + 1 + i), random, 1);
    ev.run.job.job = {100'000u + static_cast<unsigned>(i)};
    ev.slots = 64;
    ev.run.job.priority = 1;
    const auto begin = cpu_us();
    const auto actions = machine.apply(ev, now);
    all.push_back(cpu_us() - begin);
    victims = actions.size();
  }
  std::printf("preempting for a gang of 64 among %d that run: p50 %.0f us, most %.0f us; %zu orders\n",
              running, percentile(all, 0.5), percentile(all, 1), victims);
}

void explanations(int waiting, int agents) {
  for (const auto kind : {scheduler_kind::priority, scheduler_kind::fair}) {
    filled_pool p(kind, true, waiting, agents, 1000);
    p.pass();
    const auto queue = p.machine.waiting();
    std::vector<double> all;
    for (int i = 0; i < 1000 && !queue.empty(); ++i) {
      const auto id = queue[p.random() % queue.size()].allocation;
      const auto begin = cpu_us();
      const auto said = p.machine.explain(id, std::vector<run_outlook>{}, p.now);
      all.push_back(cpu_us() - begin);
    }
    std::printf("explain at %zu waiting x %d agents, %s: p50 %.2f ms, p99 %.2f ms, most %.2f ms\n",
                queue.size(), agents, name(kind), percentile(all, 0.5) / 1e3, percentile(all, 0.99) / 1e3,
                percentile(all, 1) / 1e3);
    all.clear();
    for (int i = 0; i < 10; ++i) {
      const auto begin = cpu_us();
      const auto listed = p.machine.waiting_runs();
      all.push_back(cpu_us() - begin);
      if (listed.size() > queue.size())
        std::abort();
    }
    std::printf("a list of all that wait, %s: p50 %.1f ms, most %.1f ms\n", name(kind),
                percentile(all, 0.5) / 1e3, percentile(all, 1) / 1e3);
  }
}

/// The run with the reservation withdraws, and the next one gets it.
void reservations(int waiting, int agents) {
  for (const auto kind : {scheduler_kind::priority, scheduler_kind::fair}) {
    filled_pool p(kind, false, waiting, agents, 1000);
    p.pass();
    p.now += std::chrono::seconds(61);
    std::vector<double> all;
    auto actions = p.machine.apply(time_passed{}, p.now);
    for (int i = 0; i < 20; ++i) {
      const auto kept = std::find_if(actions.begin(), actions.end(), [](const auto& action) {
        return std::holds_alternative<reserve_slots>(action);
      });
      if (kept == actions.end())
        break;
      const auto begin = cpu_us();
      actions = p.machine.apply(slots_released{std::get<reserve_slots>(*kept).allocation, {}}, p.now);
      all.push_back(cpu_us() - begin);
    }
    std::printf("another reservation at %d waiting x %d agents, %s: p50 %.1f ms, most %.1f ms of %zu\n",
                waiting, agents, name(kind), percentile(all, 0.5) / 1e3, percentile(all, 1) / 1e3,
                all.size());
  }
}

} // namespace

int main(int argc, char** argv) {
  const int waiting = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const int agents = argc > 2 ? std::atoi(argv[2]) : 10'000;
  passes(waiting, agents);
  for (int part : {100, 10, 1})
    events(std::max(1, waiting / part), std::max(1, agents / part));
  preemption(agents * slots_each);
  explanations(waiting, agents);
  reservations(waiting, agents);
}
