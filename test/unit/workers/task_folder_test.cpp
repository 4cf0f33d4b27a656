// Tests what is left of a task, and how it is removed whatever the task did to it.

#include "workers/task_folder.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>

namespace troupe::workers {
namespace {

class TaskFolder : public ::testing::Test {
protected:
  TaskFolder() {
    char pattern[] = "/tmp/troupe-folder-XXXXXX";
    path_ = ::mkdtemp(pattern);
    folder_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~TaskFolder() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
  owned_fd folder_;
};

TEST_F(TaskFolder, RemovesTreesDeeperThanThereAreDescriptors) {
  auto deep = path_ / "tmp";
  for (int level = 0; level < 200; ++level) {
    deep /= "d";
    if (level % 50 == 0)
      std::filesystem::create_directories(deep);
  }
  std::filesystem::create_directories(deep);
  std::ofstream(deep / "file") << "x";
  EXPECT_TRUE(remove_tree(folder_.get(), "tmp"));
  EXPECT_FALSE(std::filesystem::exists(path_ / "tmp"));
}

TEST_F(TaskFolder, RemovesWhatIsClosedAndFollowsNoLink) {
  std::filesystem::create_directories(path_ / "outside");
  std::ofstream(path_ / "outside" / "kept") << "x";
  std::filesystem::create_directories(path_ / "tmp" / "closed" / "inner");
  std::filesystem::create_directory_symlink(path_ / "outside", path_ / "tmp" / "link");
  ::chmod((path_ / "tmp" / "closed").c_str(), 0);
  EXPECT_TRUE(remove_tree(folder_.get(), "tmp"));
  EXPECT_TRUE(std::filesystem::exists(path_ / "outside" / "kept"));
}

TEST_F(TaskFolder, KeepsTheSpoolAndLosesTheRest) {
  for (const char* name : {"tmp", "run", "log"})
    std::filesystem::create_directories(path_ / name / "x");
  for (const char* name : {"spec", "exit", "lock", "helper", "helper.err"})
    std::ofstream(path_ / name) << "x";
  EXPECT_TRUE(remove_remains(folder_.get()));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    left.push_back(entry.path().filename());
  EXPECT_EQ(left, std::vector<std::string>{"log"});
}

TEST_F(TaskFolder, LeavesForTheNextTaskOnlyWhatIsAsItWasMade) {
  namespace fs = std::filesystem;
  auto put = [&](const char* name) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << std::string(20'000, 'x');
  };
  for (const char* name : {"spec", "exit", "lock", "helper", "sock", "log/00000001", "tmp/left",
                           "run/info/trial.json", "run/workdir/model.pt", "run/info/own"})
    put(name);
  const fs::path outside = path_.string() + "-outside";
  fs::create_directories(outside);
  std::ofstream(outside / "kept") << "x";
  fs::create_directories(path_ / "tmp" / "board");
  fs::create_symlink("board", path_ / "tmp" / "board-1");
  // the link has the name of a folder, but leads outside
  fs::create_symlink(outside, path_ / "run" / "train");
  fs::create_hard_link(outside / "kept", path_ / "launch");
  EXPECT_TRUE(make_reusable(folder_.get(), {"launch", "tmp/board/", "tmp/board-*@", "run/info/",
                                            "run/info/trial.json", "run/workdir/", "run/train/"}));
  std::set<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(path_))
    left.insert(entry.path().lexically_relative(path_).string());
  const std::set<std::string> expected = {"spec",
                                          "exit.tmp",
                                          "lock",
                                          "helper",
                                          "log",
                                          "tmp",
                                          "tmp/board",
                                          "tmp/board-1",
                                          "run",
                                          "run/info",
                                          "run/info/trial.json",
                                          "run/workdir"};
  EXPECT_EQ(left, expected);
  for (const char* name : {"spec", "run/info/trial.json"}) {
    std::ifstream file(path_ / name);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), std::string(20'000, '\0')) << name;
  }
  EXPECT_TRUE(fs::exists(outside / "kept"));
  EXPECT_FALSE(make_reusable(folder_.get(), {})) << "nobody said what may stay";
  fs::remove_all(outside);
}

TEST_F(TaskFolder, WritesFilesAnew) {
  ASSERT_TRUE(write_file(folder_.get(), "spec", "one, and longer"));
  ASSERT_TRUE(write_file(folder_.get(), "spec", "two"));
  EXPECT_EQ(*read_file(folder_.get(), "spec"), "two");
  ASSERT_TRUE(write_durable(folder_.get(), "spec", "three"));
  EXPECT_EQ(*read_file(folder_.get(), "spec"), "three");
  EXPECT_EQ(read_file(folder_.get(), "none").error().code, errc::not_found);
}

TEST_F(TaskFolder, FindsNoHelperWhereItsNumberBelongsToAnotherProcess) {
  std::ofstream(path_ / "helper") << ::getpid() << " 1\n";
  EXPECT_FALSE(open_helper(folder_.get()));
}

} // namespace
} // namespace troupe::workers
