// Checks and completes a typical configuration of 60 lines. Claim: 10,000 a second on one core, each under 1
// ms. Prints one line of JSON, for compare.py. Usage: perf_config [FILE [TIMES]]

#include "model/config/experiment_config.hpp"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec) + 1e-6 * static_cast<double>(use.ru_utime.tv_usec);
}

/// CPU time of this thread, so that other work on the machine does not count.
double thread_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

} // namespace

int main(int argc, char** argv) {
  std::string path = argc > 1 ? argv[1] : TROUPE_SOURCE_DIR "/perf/config/typical.yaml";
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  auto first = troupe::config::load_experiment(text, path);
  for (const auto& fault : first.faults)
    std::fputs(render(fault, text).c_str(), stderr);
  if (!first.ok())
    return 2;
  int times = argc > 2 ? std::max(1, std::atoi(argv[2])) : 20'000;
  std::vector<double> each;
  each.reserve(static_cast<std::size_t>(times));
  auto begin_cpu = cpu_seconds();
  for (int i = 0; i < times; ++i) {
    auto begin = thread_microseconds();
    auto got = troupe::config::load_experiment(text, path);
    each.push_back(thread_microseconds() - begin);
    if (got.config.empty())
      return 1;
  }
  auto cpu = (cpu_seconds() - begin_cpu) / times;
  std::sort(each.begin(), each.end());
  std::printf("{\"cpu_us\": %.1f, \"per_second_of_cpu\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
              cpu * 1e6, 1 / cpu, each[each.size() / 2], each[each.size() * 99 / 100]);
}
