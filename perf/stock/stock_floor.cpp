// The floor of a search: one pass over the rows of all experiments in a data directory, each decoded, and
// another one over the rows with their best trials and newest reports.
//   perf_stock_floor DIRECTORY     the folder `master/db` of a data directory that nobody has open
// Each line of standard input asks for one pass. The answer is a line: experiments, milliseconds and CPU
// milliseconds of the rows, milliseconds and CPU milliseconds of the rows with their trials.

#include "storage/journal.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <time.h>

namespace {

using namespace troupe;

double now_ms(clockid_t clock) {
  timespec at{};
  ::clock_gettime(clock, &at);
  return 1e3 * double(at.tv_sec) + 1e-6 * double(at.tv_nsec);
}

/// Wall and CPU milliseconds of one call.
template <class Work>
std::pair<double, double> cost(Work work) {
  const auto wall = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_THREAD_CPUTIME_ID);
  work();
  return {now_ms(CLOCK_MONOTONIC) - wall, now_ms(CLOCK_THREAD_CPUTIME_ID) - cpu};
}

int failed(const error& why) {
  std::fprintf(stderr, "perf_stock_floor: %s\n", why.what.c_str());
  return 1;
}

} // namespace

int main(int count, char** words) {
  if (count != 2)
    return std::fprintf(stderr, "usage: perf_stock_floor DIRECTORY\n"), 2;
  auto opened = storage::open_journal({.directory = words[1]});
  if (!opened)
    return failed(opened.error());
  const auto reads = (*opened)->reads();
  for (std::string line; std::getline(std::cin, line);) {
    std::optional<error> fault;
    std::size_t rows = 0, trials = 0;
    const auto [rows_ms, rows_cpu] = cost([&] {
      auto all = reads->experiments();
      if (!all)
        fault = all.error();
      else // a row parses its configuration when somebody looks at it
        rows = std::count_if(all->begin(), all->end(),
                             [](const auto& row) { return row.config.get().is_object(); });
    });
    const auto [all_ms, all_cpu] = cost([&] {
      auto all = reads->experiments();
      for (const auto& row : all ? *all : std::vector<experiment_row>{}) {
        if (!row.best_trial)
          continue;
        auto trial = reads->trial(row.best_trial);
        auto reported =
          trial ? reads->metrics(trial->id, 0, 1000) : result<std::vector<metric_row>>(trial.error());
        if (reported)
          trials += !reported->empty();
        else
          fault = reported.error();
      }
    });
    if (fault)
      return failed(*fault);
    std::printf("%zu %.3f %.3f %.3f %.3f %zu\n", rows, rows_ms, rows_cpu, all_ms, all_cpu, trials);
    std::fflush(stdout);
  }
}
