#pragma once
// Groups of ranks as threads of the test, one table row per member.

#include "workers/collective.hpp"
#include "workers/collectives/shm.hpp"

#include <atomic>
#include <functional>
#include <gmock/gmock.h>
#include <thread>
#include <unistd.h>

namespace troupe {

struct member_case {
  const char* name;
  int size;
  std::function<result<std::unique_ptr<collective>>(const std::string& group, int rank, int size)> join;
};

inline std::string fresh_group_name() {
  static std::atomic<int> count{0};
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

inline result<std::unique_ptr<collective>> join_test_shm(const std::string& name, int rank, int size) {
  shm_group group{.name = name, .rank = rank, .size = size};
  group.join_within = std::chrono::seconds(20);
  group.chunk_bytes = 4096; // many chunks in short data
  return join_shm(group);
}

/// Runs `body` on every rank of a fresh group, each on a thread of its own.
inline void on_all_ranks(const member_case& of, const std::function<void(collective&)>& body) {
  const std::string name = fresh_group_name();
  std::vector<std::thread> ranks;
  for (int r = 0; r < of.size; ++r)
    ranks.emplace_back([&, r] {
      auto joined = of.join(name, r, of.size);
      ASSERT_TRUE(joined) << joined.error().what;
      body(**joined);
    });
  for (auto& r : ranks)
    r.join();
}

inline const member_case member_cases[] = {
    {"alone", 1, [](const std::string&, int, int) { return result<std::unique_ptr<collective>>(make_alone_collective()); }},
    {"shm", 1, join_test_shm},
    {"shm", 2, join_test_shm},
    {"shm", 3, join_test_shm},
    {"shm", 5, join_test_shm},
};

inline std::string case_name(const testing::TestParamInfo<member_case>& info) {
  return std::string(info.param.name) + "_" + std::to_string(info.param.size);
}

} // namespace troupe
