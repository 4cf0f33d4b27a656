// Tests the member `nccl` over fake libraries that have the names and calls of CUDA's and NCCL's: what it
// decides, waits for and ends. perf/collective/gpu.sh checks what the real libraries compute.

#include "workers/collectives/nccl.hpp"
#include "workers/collectives/shm.hpp"

#include <atomic>
#include <dlfcn.h>
#include <functional>
#include <gmock/gmock.h>
#include <latch>
#include <thread>
#include <unistd.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

std::span<float> on_device(std::size_t n) {
  static auto* give = reinterpret_cast<void* (*)(std::size_t)>(
    dlsym(dlopen(FAKE_CUDART, RTLD_NOW | RTLD_GLOBAL), "fake_cuda_malloc"));
  return {static_cast<float*>(give(n * sizeof(float))), n};
}

result<std::unique_ptr<collective>> host_group(const std::string& name, int rank, int size) {
  return join_shm({.name = name, .rank = rank, .size = size, .join_within = 20s});
}

void on_all_ranks(int size, const std::function<void(collective&)>& body, nccl_group with = {}) {
  on_device(1); // loads the libraries before the ranks ask for them
  static std::atomic<int> count{0};
  const std::string name = "nccl-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  std::vector<std::thread> ranks;
  for (int r = 0; r < size; ++r)
    ranks.emplace_back([&, r] {
      auto host = host_group(name, r, size);
      ASSERT_TRUE(host) << host.error().what;
      auto c = join_nccl(std::move(*host), with);
      ASSERT_TRUE(c) << c.error().what;
      ASSERT_STREQ((*c)->member(), "nccl");
      body(**c);
    });
  for (auto& r : ranks)
    r.join();
}

TEST(Nccl, ReducesWhatLiesOnTheDeviceByNcclAndWhatLiesOnTheHostByTheOtherGroup) {
  for (const int size : {1, 2, 3})
    on_all_ranks(size, [&](collective& c) {
      auto data = on_device(1000);
      std::fill(data.begin(), data.end(), float(c.rank() + 1));
      ASSERT_TRUE(c.all_reduce(data, reduce::sum));
      ASSERT_THAT(data, testing::Each(float(size * (size + 1) / 2)));
      std::vector<float> host(100, float(c.rank()));
      ASSERT_TRUE(c.all_reduce(host, reduce::max));
      ASSERT_THAT(host, testing::Each(float(size - 1)));
      auto all = on_device(4 * std::size_t(size)), mine = on_device(4);
      std::fill(mine.begin(), mine.end(), float(c.rank()));
      ASSERT_TRUE(c.all_gather(std::span<const float>(mine), all));
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], float(i / 4));
      ASSERT_TRUE(c.reduce_scatter(std::span<const float>(all), mine, reduce::sum));
      ASSERT_THAT(mine, testing::Each(float(c.rank() * size)));
      ASSERT_TRUE(c.broadcast(mine, size - 1));
      ASSERT_THAT(mine, testing::Each(float((size - 1) * size)));
      ASSERT_TRUE(c.barrier());
    });
}

TEST(Nccl, StartedOperationsRunInOrderAndAreWaitedForInAny) {
  on_all_ranks(2, [](collective& c) {
    auto data = on_device(10);
    std::fill(data.begin(), data.end(), 1.0f);
    auto first = c.all_reduce_async(data, reduce::sum), second = c.all_reduce_async(data, reduce::sum);
    ASSERT_TRUE(second.wait());
    ASSERT_TRUE(first.done());
    ASSERT_TRUE(first.wait());
    ASSERT_TRUE(first.wait());
    ASSERT_THAT(data, testing::Each(4.0f));
    auto other = on_device(7);
    std::fill(other.begin(), other.end(), 2.0f);
    const std::span<float> both[] = {data, other};
    ASSERT_TRUE(c.all_reduce_grouped(both, reduce::sum));
    ASSERT_THAT(data, testing::Each(8.0f));
    ASSERT_THAT(other, testing::Each(4.0f));
    auto thrown_away = c.all_reduce_async(data, reduce::sum);
  });
}

TEST(Nccl, ARankThatLeavesEndsTheOthersPendingOperation) {
  on_all_ranks(3, [](collective& c) {
    ASSERT_TRUE(c.barrier());
    if (c.rank() == 2)
      return;
    auto data = on_device(10);
    const auto outcome = c.all_reduce(data, reduce::sum);
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().what, testing::HasSubstr("rank 2 of 3 left the group"));
    EXPECT_FALSE(c.all_reduce(data, reduce::sum)) << "a broken group stays broken";
    EXPECT_FALSE(c.barrier());
  });
}

TEST(Nccl, AnAbortEndsWhatIsPendingEverywhere) {
  std::latch begun{1};
  on_all_ranks(2, [&begun](collective& c) {
    auto data = on_device(10);
    if (c.rank() == 0)
      begun.count_down();
    if (c.rank() == 1) {
      begun.wait();
      c.abort("the allocation says so");
    }
    const auto outcome = c.all_reduce(data, reduce::sum);
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().what, testing::HasSubstr("the allocation says so"));
  });
}

TEST(Nccl, AnOperationThatTheOthersDoNotMakeEndsByTheTimeLimit) {
  on_all_ranks(2,
               [](collective& c) {
                 auto data = on_device(10);
                 if (c.rank() == 0) {
                   const auto outcome = c.all_reduce(data, reduce::sum);
                   ASSERT_FALSE(outcome);
                   EXPECT_EQ(outcome.error().code, errc::timeout);
                   EXPECT_THAT(
                     outcome.error().what,
                     testing::HasSubstr("all_reduce of 40 bytes of f32, sum took longer than 700 ms"));
                 } else {
                   EXPECT_FALSE(c.barrier()) << "on the host: another sequence";
                 }
               },
               {.limit = 700ms});
}

/// Sets an environment variable to 1 as long as this object exists.
struct fault {
  explicit fault(const char* name) : name(name) { setenv(name, "1", 1); }
  ~fault() { unsetenv(name); }
  const char* name;
};

TEST(Nccl, AGroupThatIsNeverMadeEndsByTheTimeLimitAndByAnError) {
  const auto join = [](std::chrono::milliseconds within) {
    on_device(1);
    auto host = host_group("nccl-never-" + std::to_string(getpid()) + std::to_string(within.count()), 0, 1);
    return join_nccl(std::move(*host), {.join_within = within});
  };
  {
    fault hangs("FAKE_NCCL_INIT_HANGS");
    const auto outcome = join(300ms);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, errc::timeout);
    EXPECT_THAT(outcome.error().what, testing::HasSubstr("NCCL made no group within 300 ms"));
  }
  fault fails("FAKE_NCCL_FAILS");
  const auto outcome = join(5s);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what, testing::HasSubstr("cannot make the group: a fake error of NCCL"));
}

TEST(Nccl, ACallThatDoesNotComeBackIsEndedByTheTimeLimitOrAnAbort) {
  fault hangs("FAKE_NCCL_CALL_HANGS");
  for (const bool aborted : {false, true})
    on_all_ranks(2,
                 [=](collective& c) {
                   ASSERT_TRUE(c.barrier());
                   auto data = on_device(10);
                   if (c.rank() == 1) { // this rank waits until rank 0 says why it ends
                     if (aborted) {
                       std::this_thread::sleep_for(100ms); // rank 0 is probably in the call by then
                       c.abort("somebody says so");
                     }
                     EXPECT_FALSE(c.barrier());
                     return;
                   }
                   const auto outcome = c.all_reduce(data, reduce::sum);
                   ASSERT_FALSE(outcome);
                   EXPECT_THAT(
                     outcome.error().what,
                     testing::HasSubstr(aborted ? "somebody says so" : "took no operation for 700 ms"));
                   EXPECT_FALSE(c.all_reduce(data, reduce::sum)) << "a broken group stays broken";
                 },
                 {.limit = aborted ? 60'000ms : 700ms});
}

TEST(Nccl, MoreRanksThanDevicesReduceOnTheHostOrShareADeviceWhereThatIsAskedFor) {
  const auto join = [](const std::string& name, const nccl_group& with) {
    auto host = host_group(name + std::to_string(getpid()), 0, 1);
    return host ? join_nccl(std::move(*host), with) : std::move(host);
  };
  on_device(1);
  auto c = join("nccl-more-a-", {.device = 1, .needed = false});
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_STREQ((*c)->member(), "shm");
  c = join("nccl-more-b-", {.device = 1});
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, errc::unsupported);
  EXPECT_THAT(c.error().what, testing::HasSubstr("it would be device 1 of 1"));
  fault shared("NCCL_MULTI_RANK_GPU_ENABLE");
  c = join("nccl-more-c-", {.device = 1});
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_STREQ((*c)->member(), "nccl");
}

TEST(Nccl, AGroupOfSomeRanksIsOneOfItsOwn) {
  on_all_ranks(3, [](collective& c) {
    if (c.rank() != 1) {
      auto inner = c.group(std::vector<int>{2, 0});
      ASSERT_TRUE(inner) << inner.error().what;
      auto data = on_device(3);
      std::fill(data.begin(), data.end(), float((*inner)->rank() + 1));
      ASSERT_TRUE((*inner)->all_reduce(data, reduce::sum));
      EXPECT_THAT(data, testing::Each(3.0f));
    }
    ASSERT_TRUE(c.barrier());
  });
}

} // namespace
} // namespace troupe
