#include "storage/log_rows.hpp"

#include "model/pack.hpp"
#include "storage/keys.hpp"
#include "storage/stored_reader.hpp"

#include <gtest/gtest.h>

namespace troupe::storage {
namespace {

log_line line(std::uint64_t number, std::string text) {
  log_line out;
  out.number = number;
  out.text = std::move(text);
  return out;
}

TEST(LogRows, RowsOfOneLineAreRead) {
  std::shared_ptr<store> disk = make_memory_store();
  auto changes = disk->make_batch();
  for (std::uint64_t n = 1; n <= 3; ++n)
    changes->put(family::logs, keys::of_task(trial_id{1}, n), pack(line(n, "old " + std::to_string(n))));
  const std::vector<log_line> fresh{line(0, "new 4"), line(0, "new 5")};
  write_log_rows(*changes, trial_id{1}, 4, fresh);
  ASSERT_TRUE(disk->write(*changes, false));
  const stored_reader reader(disk, 0);
  std::string all;
  for (const auto& some : {reader.logs(trial_id{1}, 1, 9), reader.logs_before(trial_id{1}, 5, 3)})
    for (const auto& x : *some)
      all += std::to_string(x.number) + ":" + x.text + " ";
  EXPECT_EQ(all, "2:old 2 3:old 3 4:new 4 5:new 5 4:new 4 3:old 3 2:old 2 ");
}

TEST(LogRows, ARowThatIsDamagedSaysSo) {
  std::shared_ptr<store> memory = make_memory_store();
  auto changes = memory->make_batch();
  const std::vector<log_line> lines{line(1, "one"), line(2, "two")};
  write_log_rows(*changes, trial_id{1}, 1, lines);
  ASSERT_TRUE(memory->write(*changes, false));
  const auto key = keys::of_task(trial_id{1}, 2);
  const auto whole = **memory->get(family::logs, key);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    auto row = log_row::open(key, std::string_view(whole).substr(0, length));
    auto some = row ? row->lines(0, 9) : result<std::vector<log_line>>(row.error());
    ASSERT_FALSE(some) << length;
    EXPECT_EQ(some.error().code, errc::corrupt) << length;
  }
  EXPECT_FALSE(log_row::open(keys::of_task(trial_id{1}, 1), whole)) << "more lines than numbers";
}

} // namespace
} // namespace troupe::storage
