#include "runtime/api/login_bound.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

constexpr time_point t0{1'700'000'000s};

TEST(LoginBound, OfAnAccountFromOneAddress) {
  login_bound b;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(b.check("ada", "10.0.0.1", t0)) << i;
    b.failed(i % 2 ? "ADA" : "ada", "10.0.0.1", t0);
  }
  EXPECT_EQ(b.check("Ada", "10.0.0.1", t0).error().what, "too many wrong passwords\nhint: try again in 5 s");
  EXPECT_EQ(b.check("Ada", "10.0.0.1", t0).error().code, errc::busy);
  EXPECT_TRUE(b.check("ada", "10.0.0.2", t0)) << "nobody is locked out from elsewhere";
  EXPECT_TRUE(b.check("bob", "10.0.0.1", t0));
  EXPECT_FALSE(b.check("ada", "10.0.0.1", t0 + 4s));
  EXPECT_TRUE(b.check("ada", "10.0.0.1", t0 + 5s));
  b.failed("ada", "10.0.0.1", t0 + 5s);
  EXPECT_FALSE(b.check("ada", "10.0.0.1", t0 + 5s));
  EXPECT_FALSE(b.check("ada", "10.0.0.1", t0 - 3600s)) << "a clock that is set back gives no tries";
  EXPECT_TRUE(b.check("ada", "10.0.0.1", t0 + 3600s));
}

TEST(LoginBound, OfAnAddressAndOfAnAccount) {
  login_bound b;
  for (int i = 0; i < 100; ++i)
    b.failed("user" + std::to_string(i), "10.0.0.1", t0);
  EXPECT_FALSE(b.check("another", "10.0.0.1", t0));
  EXPECT_TRUE(b.check("another", "10.0.0.1", t0 + 1s));
  for (int i = 0; i < 1000; ++i)
    b.failed("ada", "10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256), t0);
  EXPECT_FALSE(b.check("ada", "10.9.9.9", t0));
  EXPECT_TRUE(b.check("ada", "10.9.9.9", t0 + 1s));
}

TEST(LoginBound, ForgetsWhoIsFree) {
  login_bound b;
  for (int i = 0; i < 10; ++i)
    b.failed("ada", "10.0.0.1", t0);
  for (int i = 0; i < 40'000; ++i)
    b.failed(std::string(100, 'x') + std::to_string(i), std::to_string(i), t0);
  EXPECT_FALSE(b.check("ada", "10.0.0.1", t0)) << "who has no try left is forgotten last";
}

} // namespace
} // namespace troupe::api
