#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

/// Proportional share in MB: pages that this process shares with others count in part.
inline double memory_mb(const char* what) {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(what))
      return std::stod(line.substr(line.find(':') + 1)) / 1024;
  return 0;
}

inline double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// Writes the process's maps to the file that PERF_MAPS names, which shows the share of each library.
inline void print(double ms) {
  if (const char* path = std::getenv("PERF_MAPS"))
    std::ofstream(path) << std::ifstream("/proc/self/smaps").rdbuf();
  std::printf("{\"ready_ms\": %.2f, \"rss_mb\": %.2f, \"pss_mb\": %.2f, \"anonymous_mb\": %.2f}\n", ms,
              memory_mb("Rss"), memory_mb("Pss"), memory_mb("Anonymous"));
}
