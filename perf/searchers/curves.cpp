// Claim: on the synthetic learning curves adaptive standard has no more regret than Determined's rules, also
// with 500 workers. Both get the same trials and noise by key. Usage: perf_search_curves [SEEDS]

#include "searchers/simulation.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace troupe;
using namespace troupe::searchers;

namespace {

struct row {
  const char* name;
  const char* searcher;
  search_mode mode;
};

void measure(const row& r, curve_family family, std::size_t workers, double lengths, int seeds) {
  value config{{"name", r.searcher}, {"metric", "loss"},        {"time_metric", "epochs"},
               {"max_time", 256},    {"max_trials", 1'000'000}, {"max_concurrent_trials", workers}};
  if (config["name"] == "async_halving")
    config["num_rungs"] = 5;
  auto unused = [](const value&, double(&)[4]) {};
  double sum = 0, square = 0, trials = 0;
  auto before = std::clock();
  for (int seed = 0; seed < seeds; ++seed) {
    auto s =
      std::move(make_searcher(config, value::object(), static_cast<std::uint64_t>(seed), r.mode)).value();
    simulation_options o;
    o.workers = workers;
    o.horizon = lengths * 256;
    o.seed = static_cast<std::uint64_t>(seed);
    o.family = family;
    o.keyed_trials = true;
    auto result = simulate(*s, o, "loss", "epochs", 1, unused);
    sum += result.regret;
    square += result.regret * result.regret;
    trials += static_cast<double>(result.trials) / seeds;
  }
  double mean = sum / seeds, deviation = std::sqrt(std::max(0.0, square / seeds - mean * mean));
  std::printf("%-28s %-8s W=%-4zu %gR  regret %.4f +- %.4f  trials %8.0f  %.2f CPU s a run\n", r.name,
              family == curve_family::benign ? "LC-1" : "LC-2", workers, lengths, mean,
              1.96 * deviation / std::sqrt(std::max(1, seeds - 1)), trials,
              static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC / seeds);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  int seeds = argc > 1 ? std::atoi(argv[1]) : 30;
  const row rows[] = {{"adaptive_asha, Determined", "adaptive_asha", search_mode::compat},
                      {"adaptive_asha", "adaptive_asha", search_mode::native},
                      {"async_halving, Determined", "async_halving", search_mode::compat},
                      {"async_halving", "async_halving", search_mode::native},
                      {"asha_promotion", "asha_promotion", search_mode::native}};
  struct {
    curve_family family;
    std::size_t workers;
    double lengths;
  } cases[] = {{curve_family::benign, 8, 2},    {curve_family::benign, 25, 2},
               {curve_family::benign, 500, 2},  {curve_family::crossing, 8, 8},
               {curve_family::crossing, 25, 4}, {curve_family::crossing, 500, 2}};
  for (const auto& c : cases)
    for (const auto& r : rows)
      measure(r, c.family, c.workers, c.lengths, c.workers == 500 ? std::max(2, seeds / 3) : seeds);
}
