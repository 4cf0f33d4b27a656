#pragma once
// What the tests of the embedded node share: a folder of their own, a job, and what of the process they
// watch.

#include "troupe/embed.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace host {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct folder {
  folder() {
    std::string name = (fs::temp_directory_path() / "troupe-embed-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string operator/(const char* name) const { return (path / name).string(); }
  fs::path path;
};

inline std::size_t entries(const char* of) {
  std::size_t n = 0;
  for (const auto& one : fs::directory_iterator(of)) {
    (void)one;
    ++n;
  }
  return n;
}
inline std::size_t threads() { return entries("/proc/self/task"); }
inline std::size_t descriptors() { return entries("/proc/self/fd"); }

/// Threads that the kernel has not taken away yet are waited for: a joined one may still stand in /proc.
inline bool come_back_to(std::size_t (*count)(), std::size_t wanted) {
  for (int i = 0; i < 500 && count() > wanted; ++i)
    std::this_thread::sleep_for(10ms);
  return count() <= wanted;
}

inline std::string names_of_threads() {
  std::string out;
  for (const auto& one : fs::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(one.path() / "comm") >> std::ws, name);
    out += name + " ";
  }
  return out;
}

inline double resident_mb() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

/// Three validations, then `after` (Python).
inline std::string job(const folder& in, const std::string& after = "") {
  const auto at = in.path / "job";
  fs::create_directories(at);
  std::ofstream(at / "train.py") << "import time, troupe\n"
                                    "p = troupe.params(x=0.5)\n"
                                    "for step in range(1, 4):\n"
                                    "    troupe.validate({'loss': p.x / step}, step=step)\n"
                                    "with troupe.checkpoint(3) as path:\n"
                                    "    (path / 'weights').write_text(str(p.x))\n"
                                 << after << "\n";
  return at.string();
}

inline troupe::node_options options(const folder& in, const char* name = "data") {
  troupe::node_options o;
  o.data_dir = in / name;
  o.cpu_slots = 2;
  return o;
}

inline std::string text(const troupe::error& why) { return why.message + " | " + why.hint; }

} // namespace host

#define ASSERT_OK(x)                                                                                         \
  do {                                                                                                       \
    const auto& outcome_of_it = (x);                                                                         \
    ASSERT_TRUE(outcome_of_it) << host::text(outcome_of_it.error());                                         \
  } while (false)
