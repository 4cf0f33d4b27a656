#include "searchers/ranking.hpp"

#include "model/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::searchers {
namespace {

TEST(Ranking, AgreesWithASortedVectorAndComesBackFromItsBytes) {
  rng random(7);
  ranking fast;
  std::vector<std::pair<double, std::uint32_t>> slow;
  for (std::uint32_t t = 0; t < 6000; ++t) {
    double x = static_cast<double>(random.below(500)); // many values are equal
    bool ahead = random.chance(0.3);
    auto it =
      ahead ? std::lower_bound(slow.begin(), slow.end(), x, [](auto& e, double v) { return e.first < v; })
            : std::upper_bound(slow.begin(), slow.end(), x, [](double v, auto& e) { return v < e.first; });
    auto index = static_cast<std::size_t>(it - slow.begin());
    slow.insert(it, {x, t});
    ASSERT_EQ(fast.insert(x, t, ahead), index);
    if (t % 5 == 4) {
      auto gone = random.below(slow.size());
      ASSERT_TRUE(fast.erase(slow[gone].first, slow[gone].second));
      ASSERT_FALSE(fast.erase(slow[gone].first, slow[gone].second));
      slow.erase(slow.begin() + static_cast<std::ptrdiff_t>(gone));
    }
  }
  archive out;
  fast.persist(out);
  auto bytes = out.take();
  archive in(bytes);
  ranking back;
  back.persist(in);
  ASSERT_FALSE(in.failed());
  ASSERT_EQ(back.size(), slow.size());
  for (std::size_t i = 0; i < slow.size(); i += 7) {
    EXPECT_EQ(back.at(i).value, slow[i].first);
    EXPECT_EQ(back.at(i).trial, slow[i].second);
  }
}

} // namespace
} // namespace troupe::searchers
