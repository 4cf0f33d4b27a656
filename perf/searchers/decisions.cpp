// Claim: a decision of adaptive_asha takes at most 2 us at 10^6 trials, a trial at most 200 bytes, a snapshot
// of 10^6 trials at most 0.5 s. Prints CPU time; random metrics, 512 slots, four hyperparameters.

#include "model/rng.hpp"
#include "searchers/searcher.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

using namespace troupe;
using namespace troupe::searchers;

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Resident memory in bytes.
double resident() {
  std::ifstream in("/proc/self/statm");
  double total = 0, mine = 0;
  in >> total >> mine;
  return mine * 4096;
}

struct live_trial {
  std::string key;
  int next = 0;
};

void measure(int trials) {
  value config{{"name", "adaptive_asha"}, {"metric", "loss"},     {"time_metric", "batches"},
               {"max_time", 256},         {"max_trials", trials}, {"max_concurrent_trials", 512}};
  value domain =
    parse_json(R"({"lr":{"type":"log","base":10,"minval":-5,"maxval":0},"dropout":{"type":"double","minval":0,
    "maxval":0.7},"layers":{"type":"int","minval":1,"maxval":8},"opt":{"type":"categorical","vals":["sgd","adam","lion"]}})")
      .value();
  double before = resident();
  auto s = std::move(make_searcher(config, domain, 1)).value();
  rng random(7);
  std::vector<live_trial> live;
  std::vector<double> decisions;
  constexpr int units[] = {1, 4, 16, 64, 256};
  std::uint64_t events = 0;
  auto take = [&](std::vector<search_action>& actions) {
    for (auto& a : actions)
      if (auto* x = std::get_if<create_trial>(&a))
        live.push_back({std::move(x->trial), 0});
  };
  double start = cpu_seconds();
  auto first = s->apply(search_started{}).value();
  take(first);
  while (!live.empty()) {
    auto i = random.below(live.size());
    search_event report =
      trial_validated{live[i].key, {{"loss", random.unit()}, {"batches", units[live[i].next++]}}};
    auto a = std::chrono::steady_clock::now();
    auto actions = s->apply(report).value();
    auto b = std::chrono::steady_clock::now();
    ++events;
    if (events > static_cast<std::uint64_t>(trials)) // second half: the rungs are full
      decisions.push_back(std::chrono::duration<double, std::micro>(b - a).count());
    bool stopped = !actions.empty() && std::holds_alternative<stop_trial>(actions[0]);
    auto key = live[i].key;
    if (stopped) {
      live[i] = std::move(live.back());
      live.pop_back();
    }
    take(actions);
    if (stopped) {
      auto more = s->apply(trial_exited{key}).value();
      take(more);
      ++events;
    }
  }
  double all = cpu_seconds() - start, after = resident() - 8.0 * static_cast<double>(decisions.capacity());
  std::sort(decisions.begin(), decisions.end());
  auto part = [&](double q) {
    return decisions.empty()
             ? 0.0
             : decisions[static_cast<std::size_t>(q * static_cast<double>(decisions.size() - 1))];
  };
  double t0 = cpu_seconds();
  auto bytes = s->snapshot();
  double t1 = cpu_seconds();
  auto back = load_searcher(config, domain, 1, search_mode::native, bytes);
  double t2 = cpu_seconds();
  std::printf("%9d %10llu %8.2f %8.2f %10.0f %9.0f %9.3f %9.3f %8.1f %s\n", trials,
              static_cast<unsigned long long>(events), part(0.5), part(0.99),
              static_cast<double>(events) / all, std::max(0.0, after - before) / trials, t1 - t0, t2 - t1,
              static_cast<double>(bytes.size()) / 1e6, back ? "" : "RESTORE FAILED");
}

} // namespace

int main() {
  std::printf("   trials     events   p50 us   p99 us   events/s  B/trial    snap s  restore s  snap MB\n");
  for (int trials : {1000, 100'000, 1'000'000})
    measure(trials);
}
