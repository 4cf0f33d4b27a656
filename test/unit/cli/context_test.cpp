#include "workers/context_files.hpp"
#include "workers/ignore_rules.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::workers;
using testing::HasSubstr;

namespace {

class Context : public testing::Test {
protected:
  void SetUp() override {
    auto pattern = (fs::temp_directory_path() / "troupe-context-XXXXXX").string();
    top = ::mkdtemp(pattern.data());
    root = top / "ctx";
    fs::create_directories(root);
  }
  void TearDown() override { fs::remove_all(top); }

  void write(const fs::path& name, const std::string& text = "x") {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::binary) << text;
  }
  std::set<std::string> packed() {
    auto got = pack_context(root);
    EXPECT_TRUE(got) << got.error().what;
    EXPECT_TRUE(unpack_archive(got->tar, top / "out"));
    std::set<std::string> names;
    for (const auto& x : fs::recursive_directory_iterator(top / "out"))
      names.insert(x.path().lexically_relative(top / "out").string() + (x.is_directory() ? "/" : ""));
    return names;
  }
  std::string refusal(const context_limits& limits = {}) {
    auto got = pack_context(root, limits);
    return got ? "" : got.error().what;
  }

  fs::path top, root;
};

struct member {
  std::string path, text, link, hard;
  unsigned type = AE_IFREG;
};

std::string tar_of(const std::vector<member>& members) {
  std::string out(1 << 16, '\0');
  std::size_t used = 0;
  auto* a = archive_write_new();
  archive_write_set_format_gnutar(a);
  archive_write_open_memory(a, out.data(), out.size(), &used);
  for (const auto& m : members) {
    auto* e = archive_entry_new();
    archive_entry_set_pathname(e, m.path.c_str());
    archive_entry_set_filetype(e, m.type);
    archive_entry_set_perm(e, 04777);
    if (!m.link.empty())
      archive_entry_set_symlink(e, m.link.c_str());
    if (!m.hard.empty())
      archive_entry_set_hardlink(e, m.hard.c_str());
    archive_entry_set_size(e, static_cast<la_int64_t>(m.text.size()));
    archive_write_header(a, e);
    archive_write_data(a, m.text.data(), m.text.size());
    archive_entry_free(e);
  }
  archive_write_close(a);
  archive_write_free(a);
  out.resize(used);
  return out;
}

} // namespace

TEST_F(Context, KeepsFilesFoldersModesAndContents) {
  write("train.py", "print(1)\n");
  write("data/deep/a.txt", std::string(100'000, 'a'));
  fs::create_directories(root / "empty");
  ::chmod((root / "train.py").c_str(), 0755);
  EXPECT_EQ(packed(),
            (std::set<std::string>{"train.py", "data/", "data/deep/", "data/deep/a.txt", "empty/"}));
  EXPECT_EQ(fs::file_size(top / "out/data/deep/a.txt"), 100'000);
  EXPECT_EQ(fs::status(top / "out/train.py").permissions() & fs::perms::all, fs::perms(0755));
}

TEST_F(Context, HasTheSameBytesWhateverTheTimesAre) {
  write("b/two");
  write("a");
  auto first = pack_context(root);
  fs::last_write_time(root / "a", fs::file_time_type::clock::now() - std::chrono::hours(100));
  auto second = pack_context(root);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->tar, second->tar);
  EXPECT_EQ(first->digest, second->digest);
  EXPECT_EQ(first->digest, sha256(first->tar));
  EXPECT_EQ(first->files, 2);
  write("a", "changed");
  EXPECT_NE(pack_context(root)->digest, first->digest);
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Context, LeavesOutWhatNobodySubmits) {
  for (const char* name : {".git/HEAD", "__pycache__/x.pyc", "pkg/__pycache__/y.pyc", "z.pyc", "keep.py",
                           "out/big.bin", "logs/a.log", "logs/keep.log", "sub/out/x", ".hidden"})
    write(name);
  fs::create_symlink("someone@host.123", root / ".#keep.py");
  write(".detignore", "# comment\n/out\n*.log\n!keep.log\n\n");
  EXPECT_EQ(packed(), (std::set<std::string>{".detignore", "keep.py", "logs/", "logs/keep.log", "sub/",
                                             "sub/out/", "sub/out/x", "pkg/", ".hidden"}));
}

TEST_F(Context, MayBeOneFileOrEmpty) {
  EXPECT_EQ(packed(), std::set<std::string>{});
  write("train.py");
  root /= "train.py";
  EXPECT_EQ(packed(), std::set<std::string>{"train.py"});
}

TEST_F(Context, FollowsLinksThatStay) {
  write("data/a", "hello");
  fs::create_symlink("data/a", root / "b");
  fs::create_directory_symlink("data", root / "also");
  fs::create_symlink(root / "data/a", root / "absolute");
  EXPECT_EQ(packed(), (std::set<std::string>{"data/", "data/a", "b", "also/", "also/a", "absolute"}));
  EXPECT_EQ(fs::file_size(top / "out/b"), 5);
}

TEST_F(Context, RefusesEachUnfitThingWithItsPlaceAndReason) {
  fs::create_directories(top / "outside");
  fs::create_directory_symlink("../outside", root / "leaves");
  fs::create_symlink("/etc/hostname", root / "absolute");
  fs::create_symlink("gone", root / "dangling");
  fs::create_symlink("loop2", root / "loop1");
  fs::create_symlink("loop1", root / "loop2");
  fs::create_directories(root / "d");
  fs::create_directory_symlink("..", root / "d/up");
  ASSERT_EQ(::mkfifo((root / "pipe").c_str(), 0600), 0);
  auto text = refusal();
  auto at = [&](const char* name) { return (root / name).string(); };
  EXPECT_THAT(text, HasSubstr(at("leaves") + ": a link that leaves the context (-> ../outside)"));
  EXPECT_THAT(text, HasSubstr(at("absolute") + ": a link that leaves the context (-> /etc/hostname)"));
  EXPECT_THAT(text, HasSubstr(at("dangling") + ": a link that points to nothing (-> gone)"));
  EXPECT_THAT(text, HasSubstr(at("loop1") + ": a link that turns in a circle (-> loop2)"));
  EXPECT_THAT(text, HasSubstr(at("d/up") + ": a link that leads to a folder above itself"));
  EXPECT_THAT(text, HasSubstr(at("pipe") + ": a named pipe"));
}

TEST_F(Context, RefusesAMissingOne) {
  root = top / "nowhere";
  EXPECT_EQ(refusal(), root.string() + ": No such file or directory");
}

TEST_F(Context, RefusesMoreThanTheLimitNamingTheLargest) {
  write("small");
  std::ofstream(root / "sparse.bin");
  fs::resize_file(root / "sparse.bin", 200ull << 20);
  auto text = refusal();
  EXPECT_THAT(
    text, HasSubstr("the context is 200.0 MB, over the limit of 95.0 MB; largest: sparse.bin (200.0 MB)"));
  write(".detignore", "*.bin");
  EXPECT_EQ(refusal(), "");
}

TEST_F(Context, CountsTheTarNotOnlyTheContents) {
  for (int i = 0; i < 40; ++i)
    write("f" + std::to_string(i));
  EXPECT_THAT(refusal({.tar_bytes = 30'000}), HasSubstr("over the limit"));
  EXPECT_EQ(refusal({.tar_bytes = 50'000}), "");
  EXPECT_EQ(pack_context(root)->tar.size(), 40 * 1024 + 1024);
}

TEST_F(Context, RefusesANameOverItsLimitEvenBeyondWhatAPathMayBe) {
  auto before = fs::current_path();
  fs::current_path(root);
  std::string name(250, 'n');
  for (int i = 0; i < 45; ++i) { // 45 names of 251 bytes
    ASSERT_EQ(::mkdir(name.c_str(), 0755), 0);
    ASSERT_EQ(::chdir(name.c_str()), 0);
  }
  fs::current_path(before);
  EXPECT_THAT(refusal(), HasSubstr("a name of 10290 bytes, over the limit of 10240"));
  EXPECT_EQ(refusal({.name_bytes = 20'000}), "");
  auto got = pack_context(root, {.name_bytes = 20'000});
  ASSERT_TRUE(got);
  EXPECT_TRUE(unpack_archive(got->tar, top / "out"));
  std::system(("rm -rf " + top.string()).c_str()); // the path is longer than fs::remove_all can handle
}

TEST_F(Context, KeepsLongAndForeignNames) {
  std::string name = "d/" + std::string(200, 'n') + "\xc3\xa9\xff";
  write(name);
  EXPECT_EQ(packed(), (std::set<std::string>{"d/", name}));
}

TEST_F(Context, UnpackingRefusesWhatLeadsOut) {
  struct {
    std::vector<member> members;
    const char* why;
  } cases[] = {
    {{{"../evil", "x"}}, "a path that leads out of the folder"},
    {{{"/tmp/evil", "x"}}, "a path that leads out of the folder"},
    {{{"a/../../evil", "x"}}, "a path that leads out of the folder"},
    {{{"l", "", "/etc", "", AE_IFLNK}}, "a link that leaves the folder (-> /etc)"},
    {{{"l", "", "../x", "", AE_IFLNK}}, "a link that leaves the folder (-> ../x)"},
    {{{"d/l", "", "../../x", "", AE_IFLNK}}, "a link that leaves the folder (-> ../../x)"},
    {{{"d/s", "", "..", "", AE_IFLNK}, {"d/l", "", "s/../x", "", AE_IFLNK}},
     "a link that leaves the folder (-> s/../x)"},
    {{{"d/s", "", "..", "", AE_IFLNK}, {"d/s/x", "y"}}, "a path through 's', which is not a folder"},
    {{{"h", "", "", "../outside"}}, "a link that leaves the folder (-> ../outside)"},
    {{{"h", "", "", "missing"}}, "a link to what is not a file of the archive (-> missing)"},
    {{{"p", "", "", "", AE_IFIFO}}, "neither a file, a folder nor a link"},
    {{{"c", "", "", "", AE_IFCHR}}, "neither a file, a folder nor a link"},
  };
  int i = 0;
  for (const auto& c : cases) {
    auto target = top / "in" / std::to_string(i++);
    auto got = unpack_archive(tar_of(c.members), target);
    ASSERT_FALSE(got) << c.why;
    EXPECT_EQ(got.error().code, errc::invalid);
    EXPECT_THAT(got.error().what, HasSubstr(c.why));
  }
  EXPECT_FALSE(fs::exists(top / "evil") || fs::exists(top / "in/evil") || fs::exists("/tmp/evil"));
}

TEST_F(Context, UnpackingKeepsLinksThatStayAndDropsSpecialBits) {
  auto tar =
    tar_of({{"a/f", "text"}, {"a/l", "", "../a/f", "", AE_IFLNK}, {"h", "", "", "a/f"}, {"a/f", "newer"}});
  ASSERT_TRUE(unpack_archive(tar, top / "out"));
  EXPECT_EQ(fs::read_symlink(top / "out/a/l"), "../a/f");
  EXPECT_EQ(fs::file_size(top / "out/h"), 4);
  EXPECT_EQ(fs::file_size(top / "out/a/f"), 5);
  EXPECT_EQ(fs::status(top / "out/a/f").permissions(), fs::perms(0777));
}

TEST_F(Context, UnpackingRefusesGarbageAndBombs) {
  EXPECT_FALSE(unpack_archive("this is not a tar at all, not even close to one", top / "out"));
  auto tar = tar_of({{"a", std::string(5000, 'a')}});
  EXPECT_FALSE(unpack_archive(tar.substr(0, 2000), top / "out"));
  EXPECT_FALSE(unpack_archive(tar, top / "out", 4000));
  EXPECT_TRUE(unpack_archive(tar, top / "out", 5000));
}

TEST_F(Context, OfNoFilesIsToldWithoutUnpackingIt) {
  EXPECT_TRUE(archive_is_empty(""));
  EXPECT_TRUE(archive_is_empty(std::string(10'240, 0)));
  EXPECT_TRUE(archive_is_empty(tar_of({})));
  EXPECT_TRUE(archive_is_empty(tar_of({{"./", "", "", "", AE_IFDIR}})));
  EXPECT_FALSE(archive_is_empty(tar_of({{"a", ""}})));
  EXPECT_FALSE(archive_is_empty(tar_of({{"./", "", "", "", AE_IFDIR}, {"d/", "", "", "", AE_IFDIR}})));
  EXPECT_FALSE(archive_is_empty(tar_of({{".", "x"}}))) << "to unpack it tells what is wrong";
  EXPECT_FALSE(archive_is_empty("this is not a tar at all, not even close to one"));
}

TEST(IgnoreRules, MatchAsThoseOfGit) {
  struct {
    const char *pattern, *path;
    bool folder, ignored;
  } cases[] = {
    {"*.log", "a.log", false, true}, {"*.log", "d/a.log", false, true}, {"/a", "a", false, true},
    {"/a", "d/a", false, false},     {"d/a", "d/a", false, true},       {"d/a", "x/d/a", false, false},
    {"build/", "build", true, true}, {"build/", "build", false, false}, {"**/x", "x", false, true},
    {"**/x", "a/b/x", false, true},  {"a/**/x", "a/x", false, true},    {"a/**", "a/b/c", false, true},
    {"d/*", "d/a/b", false, false},  {"f?o", "foo", false, true},       {"[a-c]x", "bx", false, true},
    {"[!a-c]x", "bx", false, false}, {"\\#x", "#x", false, true},       {"# x", "# x", false, false},
    {"./a", "a", false, true},       {"[x", "[x", false, true},         {"*", "anything", false, true},
  };
  for (const auto& c : cases)
    EXPECT_EQ(ignore_rules(c.pattern).ignores(c.path, c.folder), c.ignored) << c.pattern << " on " << c.path;
}
