#include "system/random.hpp"
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
  const fs::path root = fs::path(testing::TempDir()) / ("names-" + random_hex(4));
  std::vector<std::string> names;
  const auto now = [] {
    return std::uint64_t(std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count());
  };
  for (int i = 0; i < 3; ++i) {
    const auto before = now();
    const auto written = write_checkpoint(root, {}, [](const fs::path& folder) -> result<void> {
      std::ofstream(folder / "weights") << "w";
      return {};
    });
    ASSERT_TRUE(written) << written.error().what;
    EXPECT_THAT(written->uuid,
                testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
    const auto milliseconds =
      std::stoull(written->uuid.substr(0, 8) + written->uuid.substr(9, 4), nullptr, 16);
    EXPECT_LE(before, milliseconds);
    EXPECT_LE(milliseconds, now());
    names.push_back(written->uuid);
    while (now() == milliseconds) // two names of the same millisecond have no order
      std::this_thread::yield();
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  fs::remove_all(root);
}

} // namespace
} // namespace troupe::trial
