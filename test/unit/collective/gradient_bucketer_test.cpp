#include "workers/collectives/shm.hpp"
#include "workers/gradient_bucketer.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <numeric>
#include <thread>
#include <unistd.h>

namespace troupe {
namespace {

TEST(GradientBucketer, AveragesEveryGradientHoweverTheRanksAreReady) {
  const std::string name = "bucketer-" + std::to_string(getpid());
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      auto c = join_shm({.name = name, .rank = r, .size = 2});
      ASSERT_TRUE(c) << c.error().what;
      std::vector<std::vector<float>> gradients{std::vector<float>(10), std::vector<float>(3000),
                                                std::vector<float>(1), std::vector<float>(0),
                                                std::vector<float>(700)};
      gradient_bucketer<float> bucketer(**c, {gradients.begin(), gradients.end()}, 2048);
      EXPECT_EQ(bucketer.buckets(), 2u);
      for (int step = 0; step < 20; ++step) {
        for (std::size_t g = 0; g < gradients.size(); ++g)
          std::fill(gradients[g].begin(), gradients[g].end(), float(g + 1) * (r == 0 ? 1 : 3) + float(step));
        const bool forward = (step + r) % 2 == 0; // the ranks mark their gradients in different orders
        for (std::size_t i = 0; i < gradients.size(); ++i)
          if (step % 5 != 4 || i % 2 == 0) { // in every fifth step some gradients are never marked
            ASSERT_TRUE(bucketer.ready(forward ? i : gradients.size() - 1 - i));
          }
        const auto done = bucketer.finish();
        ASSERT_TRUE(done) << done.error().what;
        for (std::size_t g = 0; g < gradients.size(); ++g)
          ASSERT_THAT(gradients[g], testing::Each(float(g + 1) * 2 + float(step)));
      }
    });
  for (auto& r : ranks)
    r.join();
}

TEST(GradientBucketer, AveragesGradientsInTheMemoryThatItMakes) {
  const std::string name = "views-" + std::to_string(getpid());
  const std::vector<std::size_t> lengths{10, 3000, 1, 0, 700};
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      auto c = join_shm({.name = name, .rank = r, .size = 2});
      ASSERT_TRUE(c) << c.error().what;
      auto bucketer = gradient_bucketer<float>::make(**c, lengths, 2048);
      ASSERT_TRUE(bucketer) << bucketer.error().what;
      EXPECT_EQ(bucketer->buckets(), 2u);
      for (int step = 0; step < 5; ++step) {
        for (std::size_t g = 0; g < lengths.size(); ++g) {
          ASSERT_EQ(bucketer->gradient(g).size(), lengths[g]);
          ASSERT_EQ(reinterpret_cast<std::uintptr_t>(bucketer->gradient(g).data()) % 64, 0u);
          if (step == 0) {
            ASSERT_THAT(bucketer->gradient(g), testing::Each(0.0f));
          }
          std::ranges::fill(bucketer->gradient(g), float(g + 1) * (r == 0 ? 1 : 3) + float(step));
          ASSERT_TRUE(bucketer->ready(g));
        }
        const auto done = bucketer->finish();
        ASSERT_TRUE(done) << done.error().what;
        for (std::size_t g = 0; g < lengths.size(); ++g)
          ASSERT_THAT(bucketer->gradient(g), testing::Each(float(g + 1) * 2 + float(step)));
      }
    });
  for (auto& r : ranks)
    r.join();
}

TEST(GradientBucketer, RefusesAGradientThatIsReadyTwiceOrDoesNotExist) {
  const auto alone = make_alone_collective();
  std::vector<float> only(3);
  gradient_bucketer<float> bucketer(*alone, {only});
  ASSERT_TRUE(bucketer.ready(0));
  EXPECT_EQ(bucketer.ready(0).error().what, "gradient 0 is ready already in this step");
  EXPECT_EQ(bucketer.ready(1).error().what, "gradient 1: there are 1");
  ASSERT_TRUE(bucketer.finish());
  EXPECT_TRUE(bucketer.ready(0)) << "the next step";
}

} // namespace
} // namespace troupe
