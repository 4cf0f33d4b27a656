// The member `nccl` over libraries that have the names and calls of CUDA's and NCCL's: what it decides, waits
// for and ends. What the real ones compute is checked by perf/collective/gpu.sh.

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
  on_device(1); // the libraries are loaded before the ranks ask
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
