#include "runtime/api/feed.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

const time_point t0{std::chrono::seconds{1'700'000'000}};

TEST(Feed, GivesRowsInOrderThenTheEnd) {
  auto rows = std::make_shared<feed>();
  auto body = feed_stream(rows);
  rows->push({{"n", 1}});
  rows->push({{"n", 2}});
  rows->end({{"why", "max"}});
  rows->push({{"n", 3}}); // the row comes after the end
  const auto piece = body->next(t0);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->bytes, "data: {\"n\":1}\n\ndata: {\"n\":2}\n\nevent: end\ndata: {\"why\":\"max\"}\n\n");
  EXPECT_TRUE(piece->last);
}

TEST(Feed, ASlowReaderLosesTheOldestAndIsToldHowMany) {
  auto rows = std::make_shared<feed>(3);
  auto body = feed_stream(rows);
  for (int n = 1; n <= 10; ++n)
    rows->push({{"n", n}});
  rows->end({{"why", "time"}});
  const auto piece = body->next(t0);
  ASSERT_TRUE(piece);
  EXPECT_TRUE(piece->bytes.starts_with("event: lost\ndata: {\"count\":7}\n\ndata: {\"n\":8}\n\n"))
    << piece->bytes;
}

TEST(Feed, SaysThatItLivesWhileNothingHappens) {
  auto body = feed_stream(std::make_shared<feed>());
  EXPECT_EQ(body->next(t0)->bytes, ": troupe\n\n");
  const auto quiet = body->next(t0 + 1s);
  EXPECT_TRUE(quiet->bytes.empty());
  EXPECT_TRUE(quiet->pause.has_value());
  EXPECT_EQ(body->next(t0 + 20s)->bytes, ": alive\n\n");
}

TEST(Feed, IsClosedWhenItsReaderGoes) {
  auto rows = std::make_shared<feed>();
  auto body = feed_stream(rows);
  EXPECT_FALSE(rows->closed());
  body.reset();
  EXPECT_TRUE(rows->closed());
}

} // namespace
} // namespace troupe::api
