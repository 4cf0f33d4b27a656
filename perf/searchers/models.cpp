// Claim: ask and tell in memory is faster than Optuna on eight dimensions: random 100x, TPE 40x at 1,000 and
// 10,000 trials, GP 25x at 300. Prints the median of the CPU ms for one ask + tell at each history; peers.py
// does the same. Usage: perf_search_models NAME HISTORY...

#include "model/rng.hpp"
#include "searchers/searcher.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace troupe;
using namespace troupe::searchers;

namespace {

double cpu_milliseconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

} // namespace

int main(int argc, char** argv) {
  std::string name = argc > 1 ? argv[1] : "tpe";
  value domain = value::object();
  for (int j = 0; j < 8; ++j)
    domain["x" + std::to_string(j)] = {{"type", "double"}, {"minval", 0}, {"maxval", 1}};
  for (int a = 2; a < argc; ++a) {
    int history = std::atoi(argv[a]);
    constexpr int measured = 21;
    value config{{"name", name},
                 {"metric", "loss"},
                 {"max_trials", history + measured + 1},
                 {"max_concurrent_trials", 1}};
    // Random trials fill the history cheaply.
    if (name != "random")
      config["startup_trials"] = history;
    auto s = std::move(make_searcher(config, domain, 1)).value();
    auto actions = s->apply(search_started{}).value();
    std::vector<double> times;
    for (int i = 0; i < history + measured; ++i) {
      auto trial = std::get<create_trial>(actions.back());
      double y = 0;
      for (const auto& x : trial.hparams)
        y += (x.get<double>() - 0.3) * (x.get<double>() - 0.3);
      double before = cpu_milliseconds();
      (void)s->apply(trial_validated{trial.trial, {{"loss", y}}});
      actions = s->apply(trial_exited{trial.trial}).value();
      if (i >= history)
        times.push_back(cpu_milliseconds() - before);
    }
    std::sort(times.begin(), times.end());
    double mean = 0;
    for (double t : times)
      mean += t / measured;
    std::printf("%s %d median %.4f mean %.4f ms\n", name.c_str(), history, times[measured / 2], mean);
    std::fflush(stdout);
  }
}
