#include "workers/collectives/operation_queue.hpp"

#include <future>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace troupe {
namespace {

operation numbered(int n) {
  operation x;
  x.root = n;
  return x;
}

TEST(OperationQueue, OneAtATimeFromManyCallersAndNoneIsLost) {
  constexpr int callers = 4, rounds = 3000;
  int inside = 0; // The counter is not atomic, so that a sanitizer would also notice two operations at once.
  std::vector<int> order;
  {
    operation_queue queue({.execute = [&](const operation& x) {
      EXPECT_EQ(++inside, 1);
      order.push_back(x.root);
      --inside;
      return result<void>{};
    }});
    std::vector<std::thread> threads;
    for (int c = 0; c < callers; ++c)
      threads.emplace_back([&, c] {
        for (int i = 0; i < rounds; ++i) {
          const int n = (c * rounds + i) * 2;
          auto first = queue.start(numbered(n));
          if ((i + c) % 3 == 0) {
            EXPECT_TRUE(first.wait());
          }
          EXPECT_TRUE(queue.perform(numbered(n + 1)));
        }
      });
    for (auto& one : threads)
      one.join();
  }
  ASSERT_EQ(order.size(), std::size_t(2 * callers * rounds));
  EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), order.size());
  std::vector<int> last(callers, -1);
  for (const int n : order) { // the operations of one caller are executed in the order of its calls
    auto& before = last[std::size_t(n / 2 / rounds)];
    EXPECT_LT(before, n);
    before = n;
  }
}

TEST(OperationQueue, OneThatIsStartedWhileACallerExecutesBeginsAsSoonAsThatEnds) {
  std::promise<void> began, go, looked;
  std::vector<int> order;
  operation_queue queue({.execute =
                           [&](const operation& x) {
                             order.push_back(x.root);
                             if (x.root == 1) {
                               began.set_value();
                               go.get_future().wait();
                             }
                             return result<void>{};
                           },
                         .tick =
                           [&, ticks = 0]() mutable {
                             if (++ticks == 1)
                               looked.set_value();
                           },
                         .pause = std::chrono::hours(1)}); // only the caller can wake the thread
  std::thread caller([&] { EXPECT_TRUE(queue.perform(numbered(1))); });
  began.get_future().wait();
  auto second = queue.start(numbered(2));
  looked.get_future().wait(); // the start has woken the thread, which may not execute yet
  EXPECT_FALSE(second.done());
  go.set_value();
  caller.join();
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       !second.done() && std::chrono::steady_clock::now() < until;)
    std::this_thread::yield();
  ASSERT_TRUE(second.done()) << "nobody has woken the thread";
  EXPECT_TRUE(second.wait());
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(OperationQueue, WhatFailsIsToldToItsCallerAlone) {
  operation_queue queue({.execute = [](const operation& x) {
    return x.root == 1 ? result<void>{error{errc::io, "no"}} : result<void>{};
  }});
  EXPECT_FALSE(queue.perform(numbered(1)));
  auto bad = queue.start(numbered(1)), good = queue.start(numbered(2));
  EXPECT_EQ(bad.wait().error().what, "no");
  EXPECT_TRUE(good.wait());
}

} // namespace
} // namespace troupe
