#include "system/random.hpp"
#include "system/whole_file.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct folder {
  fs::path path = fs::temp_directory_path() / ("whole-" + random_hex(8));
  folder() { fs::create_directories(path); }
  ~folder() { fs::remove_all(path); }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(path))
      out.insert(entry.path().filename().string());
    return out;
  }
};

std::string text_of(const fs::path& file) {
  auto got = read_whole(file);
  return !got ? "error: " + got.error().what : got->value_or("none");
}

unsigned mode_of(const fs::path& file) {
  struct stat now {};
  ::stat(file.c_str(), &now);
  return now.st_mode & 0777;
}

TEST(WholeFile, IsTheNewTextWithItsModeAndNothingElse) {
  folder at;
  const auto file = at.path / "a";
  EXPECT_EQ(text_of(file), "none");
  ASSERT_TRUE(replace_file(file, "one"));
  EXPECT_EQ(text_of(file), "one");
  EXPECT_EQ(mode_of(file), 0600u);
  const auto before = ::umask(077);
  ASSERT_TRUE(replace_file(file, std::string(100'000, 'x'), 0644, durability::written));
  ::umask(before);
  EXPECT_EQ(text_of(file).size(), 100'000u);
  EXPECT_EQ(mode_of(file), 0644u) << "whatever the umask";
  EXPECT_EQ(at.names(), std::set<std::string>{"a"});
}

TEST(WholeFile, AReaderOfTheOldOneKeepsIt) {
  folder at;
  ASSERT_TRUE(replace_file(at.path / "a", "old"));
  std::ifstream reader(at.path / "a");
  ASSERT_TRUE(replace_file(at.path / "a", "new"));
  std::string line;
  std::getline(reader, line);
  EXPECT_EQ(line, "old");
  EXPECT_EQ(text_of(at.path / "a"), "new");
}

TEST(WholeFile, AFaultChangesNothingAndNamesTheFile) {
  folder at;
  auto nowhere = replace_file(at.path / "missing" / "a", "x");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, errc::io);
  EXPECT_NE(nowhere.error().what.find("missing/a"), std::string::npos) << nowhere.error().what;
  fs::create_directories(at.path / "taken" / "x"); // a folder that is not empty cannot be replaced
  EXPECT_FALSE(replace_file(at.path / "taken", "x"));
  EXPECT_EQ(at.names(), std::set<std::string>{"taken"}) << "nothing is left beside it";
  EXPECT_EQ(text_of(at.path / "taken").substr(0, 6), "error:");
}

TEST(WholeFile, SeveralAreReplacedOnlyWhenAllAreWritten) {
  folder at;
  ASSERT_TRUE(replace_files(at.path, {{"a", "1", 0644}, {"b", "2"}}));
  EXPECT_EQ(mode_of(at.path / "a"), 0644u);
  EXPECT_EQ(mode_of(at.path / "b"), 0600u);
  EXPECT_FALSE(replace_files(at.path, {{"a", "new"}, {"missing/c", "new"}}));
  EXPECT_EQ(text_of(at.path / "a"), "1");
  EXPECT_EQ(at.names(), (std::set<std::string>{"a", "b"}));
}

TEST(Random, TokensAndUuidsDiffer) {
  std::set<std::string> seen;
  for (int n = 0; n < 100; ++n) {
    EXPECT_TRUE(seen.insert(random_hex(16)).second);
    const auto uuid = random_uuid();
    EXPECT_TRUE(seen.insert(uuid).second);
    ASSERT_EQ(uuid.size(), 36u);
    EXPECT_EQ(uuid[14], '4');
    EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos) << uuid;
  }
  EXPECT_EQ(random_hex(3).size(), 6u);
  EXPECT_EQ(random_bytes(0), "");
}

} // namespace
} // namespace troupe
