// Tests what happens to the other ranks when a rank dies, leaves, stops or calls something else. Ranks are
// processes in this test.

#include "ranks.hpp"

#include "workers/collectives/tcp_door.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A kind of group whose ranks are processes, and may break.
struct breaking_case {
  const char* name;
  std::function<result<std::unique_ptr<collective>>(const std::string& group, int rank, int size,
                                                    milliseconds silence)>
    join;
};

const breaking_case breaking_cases[] = {
  {"shm",
   [](const std::string& name, int rank, int size, milliseconds silence) {
     shm_group group{.name = name, .rank = rank, .size = size};
     group.chunk_bytes = 4096;
     group.join_within = 20s;
     group.silence = silence;
     return join_shm(group);
   }},
  {"tcp",
   [](const std::string& name, int rank, int size, milliseconds silence) {
     auto group = test_tcp(name, rank, size);
     group.silence = silence;
     return join_tcp(group);
   }},
};

class BrokenGroup : public testing::TestWithParam<breaking_case> {
protected:
  result<std::unique_ptr<collective>> join(const std::string& name, int rank, int size,
                                           milliseconds silence = 60s) {
    return GetParam().join(name, rank, size, silence);
  }
  // Starts a rank as a process that exits with the value of `body`.
  pid_t fork_rank(const std::string& group, int rank, int size, const std::function<int(collective&)>& body) {
    const pid_t child = fork();
    if (child != 0)
      return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto joined = join(group, rank, size);
    const int code = joined ? body(**joined) : 99;
    joined = error{}; // leaves the group in an orderly way
    _exit(code);
  }
};
INSTANTIATE_TEST_SUITE_P(Members, BrokenGroup, testing::ValuesIn(breaking_cases),
                         [](const auto& info) { return std::string(info.param.name); });

// A rank of `shm` as a process that ends with the value of `body`.
pid_t fork_rank(const std::string& group, int rank, int size, const std::function<int(collective&)>& body) {
  const pid_t child = fork();
  if (child != 0)
    return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto joined = join_test_shm(group, rank, size);
  const int code = joined ? body(**joined) : 99;
  joined = error{}; // leaves the group in an orderly way
  _exit(code);
}

int keep_reducing(collective& c) {
  std::vector<float> data(100'000, 1.0f);
  while (c.all_reduce(data, reduce::max)) {
  }
  return 3;
}

// Returns memory that outlives the call, and belongs to the thread.
std::span<float> floats(std::size_t n) {
  thread_local std::vector<float> memory;
  memory.resize(n);
  return memory;
}
std::span<std::int32_t> ints() {
  thread_local std::vector<std::int32_t> memory(3);
  return memory;
}

int exit_code(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_P(BrokenGroup, TheDeathOfARankInAnOperationEndsThatOfAllOthersBeforeTheSilence) {
  for (int trial = 0; trial < 5; ++trial) {
    const auto name = fresh_group_name();
    const pid_t other = fork_rank(name, 1, 3, keep_reducing);
    const pid_t victim = fork_rank(name, 2, 3, keep_reducing);
    auto c = join(name, 0, 3);
    ASSERT_TRUE(c) << c.error().what;
    std::vector<float> data(100'000, 1.0f);
    for (int i = 0; i < 1 + 20 * trial; ++i) // at least once, so that all ranks have joined
      ASSERT_TRUE((*c)->all_reduce(data, reduce::max));
    kill(victim, SIGKILL);
    auto outcome = (*c)->all_reduce(data, reduce::max);
    while (outcome)
      outcome = (*c)->all_reduce(data, reduce::max);
    EXPECT_EQ(outcome.error().code, errc::unreachable);
    EXPECT_THAT(outcome.error().what, testing::HasSubstr("rank 2 of 3 died"));
    EXPECT_EQ(exit_code(other), 3);
    EXPECT_EQ(exit_code(victim), 128 + SIGKILL);
    EXPECT_THAT((*c)->barrier().error().what, testing::HasSubstr("rank 2 of 3 died"))
      << "a broken group stays broken";
    EXPECT_FALSE((*c)->all_reduce_async(data, reduce::sum).wait());
  }
}

TEST_P(BrokenGroup, ARankThatLeavesIsMissedByAnOperationThatNeedsIt) {
  const auto name = fresh_group_name();
  const pid_t leaver = fork_rank(name, 1, 2, [](collective& c) { return c.barrier() ? 0 : 1; });
  auto c = join(name, 0, 2);
  ASSERT_TRUE(c);
  ASSERT_TRUE((*c)->barrier()) << "the last operation that it took part in is whole";
  EXPECT_THAT((*c)->barrier().error().what, testing::HasSubstr("rank 1 of 2 left the group"));
  EXPECT_EQ(exit_code(leaver), 0);
}

TEST_P(BrokenGroup, AnAbortEndsWhatIsPendingEverywhere) {
  const auto name = fresh_group_name();
  const pid_t other = fork_rank(name, 1, 2, keep_reducing);
  auto c = join(name, 0, 2);
  ASSERT_TRUE(c);
  (*c)->abort("the allocation says that rank 7 is dead");
  EXPECT_EQ(exit_code(other), 3);
  EXPECT_THAT((*c)->barrier().error().what, testing::HasSubstr("the allocation says that rank 7 is dead"));
}

TEST_P(BrokenGroup, ARankThatIsStoppedIsGoneAfterTheSilence) {
  const auto name = fresh_group_name();
  const pid_t stopped = fork_rank(name, 1, 2, keep_reducing);
  auto c = join(name, 0, 2, 500ms);
  ASSERT_TRUE(c);
  kill(stopped, SIGSTOP);
  auto outcome = (*c)->barrier();
  std::vector<float> data(100'000);
  while (outcome)
    outcome = (*c)->all_reduce(data, reduce::max);
  EXPECT_THAT(outcome.error().what, testing::AnyOf(testing::HasSubstr("has not run for 500 ms"),
                                                   testing::HasSubstr("has not answered for 500 ms"),
                                                   testing::HasSubstr("called")));
  kill(stopped, SIGKILL);
  kill(stopped, SIGCONT);
  EXPECT_EQ(exit_code(stopped), 128 + SIGKILL);
}

TEST_P(BrokenGroup, ARankThatIsLateButRunsIsWaitedFor) {
  const auto name = fresh_group_name();
  const pid_t late = fork_rank(name, 1, 2, [](collective& c) {
    for (const auto until = clock::now() + 2500ms; clock::now() < until;) // computes without any call
      ;
    return c.barrier() ? 0 : 1;
  });
  auto c = join(name, 0, 2, 1000ms);
  ASSERT_TRUE(c);
  EXPECT_TRUE((*c)->barrier());
  EXPECT_EQ(exit_code(late), 0);
}

TEST_P(BrokenGroup, RanksThatDoDifferentThingsAreToldSo) {
  struct {
    std::function<result<void>(collective&)> zero, one;
    const char* text;
  } const cases[] = {
    {[](collective& c) { return c.barrier(); },
     [](collective& c) { return c.all_reduce(floats(3), reduce::sum); },
     "all_reduce of 12 bytes of f32, sum"},
    {[](collective& c) { return c.all_reduce(floats(3), reduce::sum); },
     [](collective& c) { return c.all_reduce(floats(4000), reduce::sum); }, "16000 bytes"},
    {[](collective& c) { return c.all_reduce(floats(3), reduce::sum); },
     [](collective& c) { return c.all_reduce(ints(), reduce::sum); }, "i32"},
    {[](collective& c) { return c.all_reduce(floats(3), reduce::sum); },
     [](collective& c) { return c.all_reduce(floats(3), reduce::max); }, "max"},
    {[](collective& c) { return c.broadcast(floats(3), 0); },
     [](collective& c) { return c.broadcast(floats(3), 1); }, "from rank 1"},
  };
  for (const auto& x : cases) {
    const auto name = fresh_group_name();
    result<void> outcomes[2];
    std::thread ranks[2];
    for (int r = 0; r < 2; ++r)
      ranks[r] = std::thread([&, r] {
        auto c = join(name, r, 2);
        ASSERT_TRUE(c);
        outcomes[r] = r == 0 ? x.zero(**c) : x.one(**c);
      });
    for (auto& r : ranks)
      r.join();
    for (const auto& outcome : outcomes) {
      ASSERT_FALSE(outcome) << x.text;
      EXPECT_EQ(outcome.error().code, errc::conflict);
      EXPECT_THAT(outcome.error().what, testing::HasSubstr(x.text));
    }
  }
}

TEST(ShmMemory, TheDeathOfARankWhileOthersReduceInItsMemoryEndsTheirOperation) {
  const auto keep_reducing_there = [](collective& c) {
    const auto memory = c.allocate<float>(100'000);
    while (memory && c.all_reduce(*memory, reduce::max)) {
    }
    return memory ? 3 : 4;
  };
  for (int trial = 0; trial < 5; ++trial) {
    const auto name = fresh_group_name();
    const pid_t other = fork_rank(name, 1, 3, keep_reducing_there);
    const pid_t victim = fork_rank(name, 2, 3, keep_reducing_there);
    auto c = join_test_shm(name, 0, 3);
    ASSERT_TRUE(c) << c.error().what;
    auto memory = (*c)->allocate<float>(100'000);
    ASSERT_TRUE(memory) << memory.error().what;
    for (int i = 0; i < 20 * trial; ++i)
      ASSERT_TRUE((*c)->all_reduce(*memory, reduce::max));
    kill(victim, SIGKILL);
    auto outcome = (*c)->all_reduce(*memory, reduce::max);
    while (outcome)
      outcome = (*c)->all_reduce(*memory, reduce::max);
    EXPECT_EQ(outcome.error().code, errc::unreachable);
    EXPECT_THAT(outcome.error().what, testing::HasSubstr("rank 2 of 3 died"));
    EXPECT_FALSE((*c)->allocate<float>(10)) << "a broken group has no more of it";
    std::ranges::fill(*memory, 1.0f); // the memory is still there
    EXPECT_EQ(exit_code(other), 3);
    EXPECT_EQ(exit_code(victim), 128 + SIGKILL);
  }
}

TEST(ShmMemory, RanksThatAllocateDifferentlyAreToldSoAndGoOn) {
  const auto name = fresh_group_name();
  std::thread other([&] {
    auto c = join_test_shm(name, 1, 2);
    ASSERT_TRUE(c);
    EXPECT_EQ((*c)->allocate<float>(2000).error().code, errc::conflict);
    EXPECT_TRUE((*c)->allocate<float>(1000));
  });
  auto c = join_test_shm(name, 0, 2);
  ASSERT_TRUE(c);
  EXPECT_THAT((*c)->allocate<float>(1000).error().what, testing::HasSubstr("between 4000 and 8000 bytes"));
  EXPECT_TRUE((*c)->allocate<float>(1000));
  other.join();
}

TEST(ShmMemory, IsOrdinaryMemoryWhereItCannotBeMadeAndLeavesNothingBehind) {
  namespace fs = std::filesystem;
  const auto name = fresh_group_name();
  const fs::path in_the_way = "/dev/shm/troupe-" + name + ".memory-0";
  ASSERT_TRUE(fs::create_directory(in_the_way));
  const auto left = [&] {
    return std::ranges::count_if(fs::directory_iterator("/dev/shm"), [&](const auto& x) {
      return x.path().filename().string().find(name) != std::string::npos;
    });
  };
  const auto body = [&](int rank) {
    auto c = join_test_shm(name, rank, 2);
    ASSERT_TRUE(c);
    for (int i = 0; i < 3; ++i) { // the first round uses ordinary memory
      auto memory = (*c)->allocate<float>(5000);
      ASSERT_TRUE(memory) << memory.error().what;
      ASSERT_TRUE((*c)->barrier());
      EXPECT_EQ(left(), 1) << "the name goes when all have it";
      ASSERT_THAT(*memory, testing::Each(0.0f));
      std::ranges::fill(*memory, float(rank + 1));
      ASSERT_TRUE((*c)->all_reduce(*memory, reduce::sum));
      EXPECT_THAT(*memory, testing::Each(3.0f));
    }
  };
  std::thread other([&] { body(1); });
  body(0);
  other.join();
  EXPECT_TRUE(fs::remove(in_the_way));
}

TEST(JoinShm, SaysWhatIsWrongWithASetting) {
  struct {
    shm_group group;
    const char* text;
  } const cases[] = {
    {{.name = "", .rank = 0, .size = 1}, "the name ''"},
    {{.name = "a/b", .rank = 0, .size = 1}, "the name 'a/b'"},
    {{.name = "x", .rank = 2, .size = 2}, "rank 2 of 2"},
    {{.name = "x", .rank = -1, .size = 2}, "rank -1 of 2"},
    {{.name = "x", .rank = 0, .size = 0}, "rank 0 of 0"},
    {{.name = "x", .rank = 0, .size = 1, .chunk_bytes = 1000}, "chunks of 1000 bytes"},
  };
  for (const auto& x : cases) {
    auto c = join_shm(x.group);
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().code, errc::invalid);
    EXPECT_THAT(c.error().what, testing::HasSubstr(x.text));
  }
}

TEST(JoinShm, NamesTheRanksThatDidNotComeAndLeavesNothingBehind) {
  shm_group group{.name = fresh_group_name(), .rank = 1, .size = 3};
  group.join_within = 200ms;
  auto c = join_shm(group);
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, errc::timeout);
  EXPECT_THAT(c.error().what, testing::HasSubstr("rank 0, 2 of 3 did not join within 200 ms"));
  EXPECT_NE(access(("/dev/shm/troupe-" + group.name).c_str(), F_OK), 0);
}

TEST(JoinShm, RefusesASecondProcessOfTheSameRankAndOtherSettings) {
  const auto name = fresh_group_name();
  std::thread first([&] {
    auto c = join_test_shm(name, 0, 2);
    // the join of rank 0 below may be in the group first, until it has waited in vain
    while (!c && c.error().code == errc::conflict)
      c = join_test_shm(name, 0, 2);
    ASSERT_TRUE(c) << c.error().what;
    EXPECT_TRUE((*c)->barrier());
  });
  while (access(("/dev/shm/troupe-" + name).c_str(), F_OK) != 0)
    std::this_thread::yield();
  shm_group other{.name = name, .rank = 1, .size = 2}; // this group has another chunk size than the first one
  EXPECT_EQ(join_shm(other).error().code, errc::invalid);
  auto again = join_test_shm(name, 0, 2);
  while (!again && again.error().code == errc::timeout)
    again = join_test_shm(name, 0, 2);
  EXPECT_EQ(again.error().code, errc::conflict);
  auto c = join_test_shm(name, 1, 2);
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_NE(access(("/dev/shm/troupe-" + name).c_str(), F_OK), 0) << "the name goes when all have joined";
  EXPECT_TRUE((*c)->barrier());
  first.join();
}

TEST(JoinShm, TheNameHasGoneWhenAnyRankHasJoined) {
  for (int i = 0; i < 500; ++i) {
    const auto name = fresh_group_name();
    const auto join_and_look = [&](int rank) {
      auto c = join_test_shm(name, rank, 2);
      ASSERT_TRUE(c) << c.error().what;
      ASSERT_NE(access(("/dev/shm/troupe-" + name).c_str(), F_OK), 0) << "group " << i << ", rank " << rank;
      EXPECT_TRUE((*c)->barrier()); // neither leaves before both have looked
    };
    std::thread first(join_and_look, 0);
    join_and_look(1);
    first.join();
    if (HasFailure())
      return;
  }
}

// Ranks in sandboxes on one host share /dev/shm, but each is the first process of its own namespace.
TEST(JoinShm, RanksThatHaveTheSameProcessIdMeet) {
  const auto rank_of_a_sandbox = [](const std::string& name, int rank, const int(&gate)[2], int there) {
    const pid_t outside = fork();
    if (outside != 0)
      return outside;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(gate[1]);
    if (unshare(CLONE_NEWPID) != 0)
      _exit(77);
    char open = 0;
    const pid_t inside = fork();
    if (inside != 0)
      _exit(exit_code(inside));
    static_cast<void>(!write(there, "x", 1));
    static_cast<void>(!read(gate[0], &open, 1)); // the gate opens for all ranks at once
    auto joined = join_test_shm(name, rank, 2);
    _exit(joined && (*joined)->barrier() ? 0 : 1);
  };
  for (int round = 0; round < 60; ++round) {
    const auto name = fresh_group_name();
    int gate[2], there[2];
    ASSERT_EQ(pipe2(gate, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(there, O_CLOEXEC), 0);
    const pid_t first = rank_of_a_sandbox(name, 0, gate, there[1]);
    const pid_t second = rank_of_a_sandbox(name, 1, gate, there[1]);
    close(gate[0]);
    close(there[1]);
    char one = 0;
    // Waits until both ranks stand before the gate or have ended.
    for (int ranks = 0; ranks < 2 && read(there[0], &one, 1) == 1; ++ranks)
      ;
    close(there[0]);
    close(gate[1]);
    const int ends[] = {exit_code(first), exit_code(second)};
    if (ends[0] == 77)
      GTEST_SKIP() << "this user may not make a namespace of process ids";
    ASSERT_THAT(ends, testing::Each(0)) << "in round " << round;
  }
}

TEST(JoinShm, WhatAGroupLeftThatNeverMetIsRemovedAndNoOthers) {
  const auto name = fresh_group_name();
  const pid_t early = fork_rank(name, 0, 2, [](collective&) { return 0; });
  const pid_t other = fork_rank(name + "0", 0, 2, [](collective&) { return 0; });
  const auto exists = [](const std::string& group) {
    return access(("/dev/shm/troupe-" + group).c_str(), F_OK) == 0;
  };
  while (!exists(name) || !exists(name + "0"))
    std::this_thread::yield();
  for (const pid_t child : {early, other}) {
    kill(child, SIGKILL);
    exit_code(child);
  }
  remove_left_memory(name);
  EXPECT_FALSE(exists(name));
  EXPECT_TRUE(exists(name + "0"));
  remove_left_memory(name + "0");
  EXPECT_FALSE(exists(name + "0"));
}

TEST(JoinTcp, SaysWhatIsWrongWithASetting) {
  struct {
    tcp_group group;
    const char* text;
  } const cases[] = {
    {{.name = "", .secret = "s", .host = "127.0.0.1", .port = 1, .rank = 0, .size = 1},
     "a name and a secret"},
    {{.name = "x", .secret = "", .host = "127.0.0.1", .port = 1, .rank = 0, .size = 1},
     "a name and a secret"},
    {{.name = "x", .secret = "s", .host = "127.0.0.1", .port = 1, .rank = 2, .size = 2}, "rank 2 of 2"},
    {{.name = "x", .secret = "s", .host = "", .port = 1, .rank = 0, .size = 1}, "a host and a port"},
    {{.name = "x", .secret = "s", .host = "h", .port = 70000, .rank = 0, .size = 1}, "port 70000"},
  };
  for (const auto& x : cases) {
    auto c = join_tcp(x.group);
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().code, errc::invalid);
    EXPECT_THAT(c.error().what, testing::HasSubstr(x.text));
  }
}

TEST(JoinTcp, NamesTheRanksThatDidNotCome) {
  const auto name = fresh_group_name();
  auto zero = test_tcp(name, 0, 4), one = test_tcp(name, 1, 4);
  zero.join_within = one.join_within = 500ms;
  result<void> outcomes[2];
  std::thread first([&] {
    if (auto c = join_tcp(zero); !c)
      outcomes[0] = c.error();
  });
  std::thread second([&] {
    if (auto c = join_tcp(one); !c)
      outcomes[1] = c.error();
  });
  first.join();
  second.join();
  for (const auto& outcome : outcomes) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, errc::timeout);
    EXPECT_THAT(outcome.error().what, testing::HasSubstr("rank 2, 3 of 4 did not join within 500 ms"));
  }
  auto alone = test_tcp(fresh_group_name(), 1, 2);
  alone.join_within = 200ms;
  auto c = join_tcp(alone);
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, errc::timeout);
  EXPECT_THAT(c.error().what, testing::HasSubstr("rank 0 of 2 was not met at 127.0.0.1:"));
}

TEST(JoinTcp, WhoDoesNotKnowTheSecretOrSpeaksSomethingElseIsNotLetIn) {
  const auto name = fresh_group_name();
  std::atomic<bool> over{false};
  std::vector<std::thread> strangers;
  for (int n = 0; n < 3; ++n)
    strangers.emplace_back([&, n] {
      std::string noise(200, char('A' + n));
      while (!over) {
        auto fd = dial_tcp("127.0.0.1", test_tcp(name, 0, 2).port, clock::now() + 1s);
        if (fd && n != 2) // the third thread sends nothing
          (void)!send(fd->get(), noise.data(), noise.size(), MSG_NOSIGNAL);
        std::this_thread::sleep_for(5ms);
      }
    });
  std::thread thief([&] {
    auto other = test_tcp(name, 1, 2);
    other.secret = "another";
    other.join_within = 300ms;
    auto c = join_tcp(other);
    ASSERT_FALSE(c);
    EXPECT_THAT(c.error().what, testing::HasSubstr("rank 0 of 2 was not met"));
  });
  std::thread one([&] {
    thief.join();
    auto c = join_test_tcp(name, 1, 2);
    ASSERT_TRUE(c) << c.error().what;
    EXPECT_TRUE((*c)->barrier());
  });
  auto c = join_test_tcp(name, 0, 2);
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_TRUE((*c)->barrier());
  one.join();
  over = true;
  for (auto& s : strangers)
    s.join();
}

} // namespace
} // namespace troupe
