// Tests that only the thread that asks gets a lower priority.

#include "system/background_thread.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>

namespace troupe {
namespace {

TEST(BackgroundThread, IsTheOneThatAsks) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  const int wanted = before < 19 ? before + 1 : 19;
  int found = -100;
  std::thread([&] {
    run_in_background(wanted);
    found = ::getpriority(PRIO_PROCESS, 0);
  }).join();
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
}

} // namespace
} // namespace troupe
