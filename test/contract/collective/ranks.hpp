#pragma once
// Groups whose ranks are threads of the test, with one row of a table for each kind of group.

#include "workers/collective.hpp"
#include "workers/collectives/shm.hpp"
#include "workers/collectives/tcp.hpp"

#include <atomic>
#include <functional>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace troupe {

struct member_case {
  const char* name;
  int size;
  std::function<result<std::unique_ptr<collective>>(const std::string& group, int rank, int size)> join;
};

/// Returns a port of 127.0.0.1 on which nobody listens now.
inline int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), length) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length) != 0)
    abort();
  close(fd);
  return ntohs(at.sin_port);
}

/// Returns a name for a group, which ends with the port on which the ranks may meet.
inline std::string fresh_group_name() {
  static std::atomic<int> count{0};
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(count++) + "-" +
         std::to_string(free_port());
}

inline result<std::unique_ptr<collective>> join_test_shm(const std::string& name, int rank, int size) {
  shm_group group{.name = name, .rank = rank, .size = size};
  group.join_within = std::chrono::seconds(20);
  group.chunk_bytes = 4096; // small, so that short data has many chunks
  return join_shm(group);
}

inline tcp_group test_tcp(const std::string& name, int rank, int size) {
  tcp_group group{
    .name = name, .secret = "secret of " + name, .host = "127.0.0.1", .port = 0, .rank = rank, .size = size};
  group.port = std::stoi(name.substr(name.rfind('-') + 1));
  group.join_within = std::chrono::seconds(20);
  return group;
}
inline result<std::unique_ptr<collective>> join_test_tcp(const std::string& name, int rank, int size) {
  return join_tcp(test_tcp(name, rank, size));
}

/// Runs `body` on every rank of a new group, each on its own thread.
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
  {"alone", 1,
   [](const std::string&, int, int) { return result<std::unique_ptr<collective>>(make_alone_collective()); }},
  {"shm", 1, join_test_shm},
  {"shm", 2, join_test_shm},
  {"shm", 3, join_test_shm},
  {"shm", 5, join_test_shm},
  {"tcp", 1, join_test_tcp},
  {"tcp", 2, join_test_tcp},
  {"tcp", 3, join_test_tcp},
  {"tcp", 5, join_test_tcp},
};

inline std::string case_name(const testing::TestParamInfo<member_case>& info) {
  return std::string(info.param.name) + "_" + std::to_string(info.param.size);
}

} // namespace troupe
