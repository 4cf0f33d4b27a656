// Tests reading a spool from every position, across rotation, files that were cut off, and damage.

#include "workers/log_spool.hpp"
#include "workers/task_init/task_format.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

namespace format = task_format;

class LogSpool : public ::testing::Test {
protected:
  LogSpool() {
    char pattern[] = "/tmp/troupe-spool-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  ~LogSpool() override { std::filesystem::remove_all(folder_); }

  static std::string bytes(std::uint64_t first, const std::vector<std::string>& lines) {
    format::spool_header header{};
    std::memcpy(header.magic, format::spool_magic, sizeof header.magic);
    header.first_line = first;
    std::string all(reinterpret_cast<const char*>(&header), sizeof header);
    for (const auto& line : lines) {
      format::spool_record record{.bytes = static_cast<std::uint32_t>(line.size()),
                                  .rank = static_cast<std::uint16_t>(first % 3),
                                  .stream = 1,
                                  .flags = 0,
                                  .at_us = static_cast<std::int64_t>(first),
                                  .line = first};
      all.append(reinterpret_cast<const char*>(&record), sizeof record).append(line);
      ++first;
    }
    return all;
  }
  void put(int file, const std::string& content) {
    char name[16];
    std::snprintf(name, sizeof name, "%08d", file);
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string shown(const log_batch& batch) {
    std::string all;
    for (const auto& line : batch.lines)
      all += std::to_string(line.number) + ":" + line.text + " ";
    return all + (batch.lost ? "lost " + std::to_string(batch.lost) + " " : "") +
           (batch.at_end ? "end" : "more");
  }

  std::filesystem::path folder_;
};

TEST_F(LogSpool, ReadsAcrossFilesInAnyPortion) {
  put(1, bytes(1, {"a", "b"}));
  put(2, bytes(3, {"c"}));
  put(3, bytes(4, {}));
  put(4, bytes(4, {"d", "e"}));
  for (std::size_t portion = 1; portion <= 6; ++portion) {
    std::string all;
    log_position at;
    for (int reads = 0; reads < 10; ++reads) {
      auto batch = read_log(folder_, at, portion, 1 << 20);
      ASSERT_TRUE(batch) << batch.error().what;
      ASSERT_LE(batch->lines.size(), portion);
      for (const auto& line : batch->lines) {
        all += line.text;
        EXPECT_EQ(line.rank, static_cast<int>(line.number % 3));
        EXPECT_EQ(line.at.time_since_epoch().count(), static_cast<std::int64_t>(line.number));
      }
      at = batch->next;
      if (batch->at_end)
        break;
    }
    EXPECT_EQ(all, "abcde") << "in portions of " << portion;
  }
}

TEST_F(LogSpool, GivesAtLeastOneLineHoweverFewBytesAreWanted) {
  put(1, bytes(1, {"a long line", "b"}));
  EXPECT_EQ(shown(*read_log(folder_, {}, 10, 1)), "1:a long line more");
}

TEST_F(LogSpool, GoesOnWhereTheFileHasGrown) {
  auto whole = bytes(1, {"first", "second"});
  put(1, whole.substr(0, whole.size() - 3)); // the second record is still being written
  auto batch = *read_log(folder_, {}, 10, 1 << 20);
  EXPECT_EQ(shown(batch), "1:first end");
  put(1, whole);
  EXPECT_EQ(shown(*read_log(folder_, batch.next, 10, 1 << 20)), "2:second end");
}

TEST_F(LogSpool, CountsWhatRotationTookAway) {
  put(1, bytes(1, {"a"}));
  auto batch = *read_log(folder_, {}, 10, 1 << 20);
  std::filesystem::remove(folder_ / "00000001");
  put(5, bytes(40, {"b"}));
  batch = *read_log(folder_, batch.next, 10, 1 << 20);
  EXPECT_EQ(shown(batch), "40:b lost 38 end");
  EXPECT_EQ(batch.next.file, 5u);
}

TEST_F(LogSpool, LeavesACutOffFileForTheNext) {
  auto cut = bytes(1, {"a", "b"});
  put(1, cut.substr(0, cut.size() - 1));
  put(2, bytes(3, {"c"}));
  EXPECT_EQ(shown(*read_log(folder_, {}, 10, 1 << 20)), "1:a 3:c lost 1 end");
}

TEST_F(LogSpool, NamesDamageAndReadsOnBehindIt) {
  put(1, bytes(1, {"a"}) + std::string(100, '\xee'));
  put(2, bytes(9, {"z"}));
  auto batch = *read_log(folder_, {}, 10, 1 << 20);
  EXPECT_EQ(shown(batch), "1:a more");
  auto damaged = read_log(folder_, batch.next, 10, 1 << 20);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, errc::corrupt);
  EXPECT_NE(damaged.error().what.find("offset 41"), std::string::npos) << damaged.error().what;
  EXPECT_EQ(shown(*read_log(folder_, *skip_damage(folder_, batch.next), 10, 1 << 20)), "9:z lost 7 end");
}

TEST_F(LogSpool, SaysWhereThereIsNone) {
  EXPECT_EQ(shown(*read_log(folder_, {}, 10, 1 << 20)), "end");
  EXPECT_EQ(read_log(folder_ / "none", {}, 10, 1 << 20).error().code, errc::not_found);
}

TEST_F(LogSpool, WatchesGrowthOfSeveralSpools) {
  std::filesystem::create_directories(folder_ / "one");
  std::filesystem::create_directories(folder_ / "two");
  auto watch = *log_watch::open();
  auto one = *watch.add(folder_ / "one");
  auto two = *watch.add(folder_ / "two");
  EXPECT_EQ(watch.changed(), std::vector<int>{});
  std::ofstream(folder_ / "two" / "00000001") << "x";
  EXPECT_EQ(watch.changed(), std::vector<int>{two});
  std::ofstream(folder_ / "one" / "00000001") << "x";
  std::ofstream(folder_ / "two" / "00000001", std::ios::app) << "y";
  EXPECT_EQ(watch.changed(), (std::vector<int>{one, two}));
  EXPECT_EQ(watch.add(folder_ / "none").error().code, errc::not_found);
}

} // namespace
} // namespace troupe::workers
