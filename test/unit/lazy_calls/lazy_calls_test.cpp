// Tests a library that is loaded with the first call: every argument, every returned value and every
// exception has to arrive.

#include "late_caller.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>
#include <vector>

namespace {

bool is_mapped() {
  std::ifstream in("/proc/self/maps");
  return std::string(std::istreambuf_iterator<char>(in), {}).find("liblate_library.so") != std::string::npos;
}

TEST(LazyCalls, LoadTheLibraryWithTheFirstOfThem) {
#ifndef __x86_64__
  GTEST_SKIP() << "it is linked";
#endif
  ASSERT_FALSE(is_mapped());
  EXPECT_EQ(call_print(7, 2.25), "7 2.25 and 1.1");
  EXPECT_TRUE(is_mapped());
  EXPECT_EQ(call_print(8, 3.5), "8 3.50 and 1.8");
}

TEST(LazyCalls, KeepEveryArgument) {
  double expected = 1, place = 2;
  for (double x : {2.5, 3., 4.5, 5., 6.5, 7., 8.5, 9., 10.5, 9., 12.5, 13.5, 14.5, 15., 16.5})
    expected += place++ * x;
  for (int first : {1, 1, 100}) // the second call does not pass the resolver
    EXPECT_EQ(call_mix(first), expected + first - 1);
}

TEST(LazyCalls, ReturnWhatDoesNotFitIntoRegisters) {
  const auto got = call_make_large(3, "text of more than fits into the string itself");
  EXPECT_EQ(got.numbers[0], 3);
  EXPECT_EQ(got.numbers[8], 11);
  EXPECT_EQ(got.text, "text of more than fits into the string itself!");
}

TEST(LazyCalls, LetExceptionsThrough) {
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW(call_refuse("not today"), std::runtime_error);
}

TEST(LazyCalls, MayBeTheFirstOnSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<double> sums(8);
  for (auto& sum : sums)
    threads.emplace_back([&sum] { sum = call_mix(1); });
  for (auto& one : threads)
    one.join();
  for (double sum : sums)
    EXPECT_EQ(sum, sums[0]);
}

} // namespace
