// One suite for every store of checkpoints. A new kind of store is a new parameter.

#include "model/checkpoint_place.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "test/contract/storage/worlds.hpp"

#include <fstream>

namespace troupe::storage {
namespace {

namespace fs = std::filesystem;

constexpr const char* key = "0f0e0d0c-0b0a-4908-8706-050403020100";

/// A store over an empty place of its own.
struct store_world {
  explicit store_world(const std::string& kind) : kind(kind) {
    fs::create_directory(at.path() / "place");
    auto opened = open_checkpoint_store(name());
    EXPECT_TRUE(opened) << opened.error().what;
    store = *opened;
  }
  std::string name() const { return kind + ":" + (at.path() / "place").string(); }
  fs::path folder(const std::string& name, const std::map<std::string, std::string>& files) const {
    const auto root = at.path() / name;
    fs::create_directories(root);
    for (const auto& [path, bytes] : files) {
      fs::create_directories((root / path).parent_path());
      std::ofstream(root / path) << bytes;
    }
    return root;
  }

  scratch at;
  std::string kind;
  std::shared_ptr<checkpoint_store> store;
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

using files = std::map<std::string, std::int64_t>;

class CheckpointStore : public testing::TestWithParam<const char*> {
protected:
  store_world w{GetParam()};
  checkpoint_store& s() { return *w.store; }
};

TEST_P(CheckpointStore, GivesBackTheFilesThatWerePut) {
  const auto from = w.folder("from", {{"weights", "www"}, {"code/a/b.py", "b"}, {"empty", ""}});
  fs::create_symlink("/etc/hostname", from / "link");
  ASSERT_TRUE(s().put(key, from));
  EXPECT_EQ(*s().list(key),
            (files{{"code/", 0}, {"code/a/", 0}, {"code/a/b.py", 1}, {"empty", 0}, {"weights", 3}}));
  const auto to = w.at.path() / "to";
  ASSERT_TRUE(s().get(key, to));
  EXPECT_EQ(text_of(to / "weights"), "www");
  EXPECT_EQ(text_of(to / "code/a/b.py"), "b");
  EXPECT_TRUE(fs::exists(to / "empty"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(to / "link"))) << "what lies elsewhere is no part of it";
  EXPECT_EQ((*open_checkpoint_store(w.name()))->list(key)->size(), 5u) << "another one over the same place";
}

TEST_P(CheckpointStore, ReplacesAWholeCheckpoint) {
  ASSERT_TRUE(s().put(key, w.folder("one", {{"a", "1"}, {"b", "2"}})));
  ASSERT_TRUE(s().put(key, w.folder("two", {{"b", "three"}})));
  EXPECT_EQ(*s().list(key), (files{{"b", 5}}));
}

TEST_P(CheckpointStore, LeavesWhatWasThereWhereAPutFails) {
  ASSERT_TRUE(s().put(key, w.folder("one", {{"a", "1"}})));
  EXPECT_EQ(s().put(key, w.at.path() / "missing").error().code, errc::not_found);
  EXPECT_EQ(*s().list(key), (files{{"a", 1}}));
}

TEST_P(CheckpointStore, ErasesOnceAndAgain) {
  const std::string other = "1f0e0d0c-0b0a-4908-8706-050403020100";
  ASSERT_TRUE(s().put(key, w.folder("one", {{"a", "1"}, {"code/a/b.py", "b"}, {"code/c", ""}})));
  ASSERT_TRUE(s().put(other, w.folder("two", {{"a", "1"}})));
  const auto victim = w.folder("victim", {{"a", "1"}});
  // A script may have made this link.
  fs::create_directory_symlink(victim, w.at.path() / "place" / key / "code" / "link");
  EXPECT_TRUE(*s().has(key));
  std::size_t files = 0;
  EXPECT_TRUE(s().erase(key, files));
  EXPECT_EQ(files, 3u);
  EXPECT_FALSE(*s().has(key));
  EXPECT_TRUE(s().erase(key, files)) << "what is not there is no fault";
  EXPECT_EQ(files, 3u);
  EXPECT_EQ(s().list(key).error().code, errc::not_found);
  EXPECT_EQ(s().get(key, w.at.path() / "to").error().code, errc::not_found);
  EXPECT_EQ(s().list(other)->size(), 1u);
  EXPECT_TRUE(fs::exists(victim / "a")) << "what lies elsewhere is no part of it";
}

TEST_P(CheckpointStore, ErasesSomeFilesAndFolders) {
  const auto from = w.folder("from", {{"a", "1"}, {"code/a/b.py", "b"}, {"code/c", ""}, {"more/d/e", "e"}});
  fs::create_directory(from / "empty");
  ASSERT_TRUE(s().put(key, from));
  EXPECT_TRUE(
    s().erase_files(key, {"more/", "more/d/", "more/d/e", "code/", "code/a/b.py", "missing", "no/"}));
  const files left{{"a", 1}, {"code/", 0}, {"code/a/", 0}, {"code/c", 0}, {"empty/", 0}};
  EXPECT_EQ(*s().list(key), left) << "a folder goes where it is named and empty";
  EXPECT_TRUE(s().erase_files(key, {"../from/a", "/etc/hostname"}));
  EXPECT_EQ(*s().list(key), left);
  std::size_t erased = 0;
  ASSERT_TRUE(s().erase(key, erased));
  const auto gone = s().erase_files(key, {"a"});
  EXPECT_TRUE(gone) << gone.error().what;
}

TEST_P(CheckpointStore, FollowsNoLink) {
  const auto victim = w.folder("victim", {{"a", "1"}, {"in/b", "2"}});
  const auto place = w.at.path() / "place" / key;
  fs::create_symlink(victim, place);
  EXPECT_EQ(s().list(key).error().code, errc::not_found);
  EXPECT_TRUE(s().erase_files(key, {"a", "in/b", "in/"}));
  EXPECT_EQ(s().get(key, w.at.path() / "to").error().code, errc::not_found);
  std::size_t erased = 0;
  EXPECT_TRUE(s().erase(key, erased));
  EXPECT_FALSE(fs::is_symlink(place)) << "the link itself goes";
  ASSERT_TRUE(s().put(key, victim));
  fs::remove_all(place / "in");
  fs::create_symlink(victim / "in", place / "in");
  EXPECT_EQ(*s().list(key), (files{{"a", 1}}));
  EXPECT_TRUE(s().erase_files(key, {"in/b", "in/", "in"}));
  EXPECT_EQ(text_of(victim / "a") + text_of(victim / "in/b"), "12");
  std::ofstream(w.at.path() / "place" / "0f0e0d0c-0b0a-4908-8706-050403020101") << "a file";
  EXPECT_EQ(s().list("0f0e0d0c-0b0a-4908-8706-050403020101").error().code, errc::not_found);
}

TEST_P(CheckpointStore, RefusesKeysThatLeadElsewhere) {
  const auto from = w.folder("from", {{"a", "1"}});
  w.folder("place/../victim", {{"a", "1"}});
  for (const char* bad : {"", ".", "..", "../victim", "a/b", "a.tmp", "a b", "/etc"}) {
    EXPECT_EQ(s().put(bad, from).error().code, errc::invalid) << bad;
    std::size_t files = 0;
    EXPECT_EQ(s().erase(bad, files).error().code, errc::invalid) << bad;
    EXPECT_EQ(s().has(bad).error().code, errc::invalid) << bad;
    EXPECT_EQ(s().list(bad).error().code, errc::invalid) << bad;
    EXPECT_EQ(s().get(bad, w.at.path() / "to").error().code, errc::invalid) << bad;
  }
  EXPECT_TRUE(fs::exists(w.at.path() / "victim" / "a"));
}

TEST_P(CheckpointStore, SaysWhetherFilesCanBeKept) {
  ASSERT_TRUE(s().probe());
  ASSERT_TRUE(s().put(key, w.folder("one", {{"a", "1"}})));
  ASSERT_TRUE(s().probe());
  EXPECT_EQ(s().list(key)->size(), 1u) << "a probe leaves nothing";
}

INSTANTIATE_TEST_SUITE_P(Members, CheckpointStore, testing::Values("directory", "shared_fs"),
                         [](const auto& info) { return std::string(info.param); });

TEST(CheckpointFolders, AreNamedByTheirStoreAndByThePathOfOlderBuilds) {
  EXPECT_EQ(open_checkpoint_store("s3:models").error().code, errc::unsupported);
  for (const char* bad : {"", "directory", "directory:", ":/a", "directory:relative"})
    EXPECT_FALSE(open_checkpoint_store(bad)) << bad;
  checkpoint saved;
  saved.uuid = key;
  EXPECT_EQ(place_of(saved), checkpoint_place{}) << "neither is known";
  EXPECT_EQ(folder_of(saved), "");
  saved.path = std::string("/mnt/ck/") + key;
  EXPECT_EQ(place_of(saved), (checkpoint_place{"directory:/mnt/ck", key}));
  EXPECT_EQ(folder_of(saved), saved.path);
  saved.path = "/mnt/ck/other";
  EXPECT_EQ(place_of(saved), checkpoint_place{}) << "a folder of another name is not removed";
  saved.place = {"shared_fs:/new", key};
  EXPECT_EQ(folder_of(saved), std::string("/new/") + key) << "what the fact says, not the path";
  saved.place = {"s3:models", key};
  EXPECT_EQ(folder_of(saved), "") << "no folder of the hosts";
  saved.place = {"directory:/new", "../old"};
  EXPECT_EQ(folder_of(saved), "");
}

} // namespace
} // namespace troupe::storage
