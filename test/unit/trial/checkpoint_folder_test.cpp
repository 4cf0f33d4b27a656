#include "workers/trial/checkpoint_folder.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace troupe::trial {
namespace {

namespace fs = std::filesystem;

TEST(WrittenCheckpoint, HasANameThatComesAfterEarlierOnes) {
  const fs::path root = fs::path(testing::TempDir()) / ("names-" + random_hex(8));
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const auto written = write_checkpoint(root, {}, [](const fs::path& folder) -> result<void> {
      std::ofstream(folder / "weights") << "w";
      return {};
    });
    ASSERT_TRUE(written) << written.error().what;
    EXPECT_THAT(written->uuid,
                testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
    const auto milliseconds =
      std::stoull(written->uuid.substr(0, 8) + written->uuid.substr(9, 4), nullptr, 16);
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
    EXPECT_NEAR(double(milliseconds), double(now), 10'000);
    names.push_back(written->uuid);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  fs::remove_all(root);
}

} // namespace
} // namespace troupe::trial
