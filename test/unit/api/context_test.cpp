#include "runtime/api/context.hpp"
#include "runtime/api/context_files.hpp"
#include "runtime/api/folder_archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fstream>
#include <gtest/gtest.h>
#include <locale.h>

namespace troupe::api {
namespace {

struct member {
  std::string path;
  unsigned type = AE_IFREG;
  std::string link, content;
};

std::string tar_of(const std::vector<member>& members) {
  std::string out;
  auto* a = archive_write_new();
  archive_write_set_format_pax_restricted(a);
  archive_write_open(
    a, &out, nullptr,
    [](archive*, void* to, const void* bytes, std::size_t count) -> la_ssize_t {
      static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), count);
      return static_cast<la_ssize_t>(count);
    },
    nullptr);
  for (const auto& m : members) {
    auto* e = archive_entry_new();
    archive_entry_set_pathname(e, m.path.c_str());
    archive_entry_set_filetype(e, m.type);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, static_cast<la_int64_t>(m.content.size()));
    if (m.type == AE_IFLNK)
      archive_entry_set_symlink(e, m.link.c_str());
    else if (!m.link.empty())
      archive_entry_set_hardlink(e, m.link.c_str());
    archive_write_header(a, e);
    archive_write_data(a, m.content.data(), m.content.size());
    archive_entry_free(e);
  }
  archive_write_close(a);
  archive_write_free(a);
  return out;
}

std::vector<std::string> names_in(const std::string& bytes) {
  std::vector<std::string> names;
  auto* a = archive_read_new();
  archive_read_support_filter_gzip(a);
  archive_read_support_format_tar(a);
  archive_read_support_format_zip(a);
  archive_read_open_memory(a, bytes.data(), bytes.size());
  for (archive_entry* e = nullptr; archive_read_next_header(a, &e) == ARCHIVE_OK;)
    names.emplace_back(archive_entry_pathname(e));
  archive_read_free(a);
  return names;
}

TEST(Context, IsRefusedWithTheEntrysNameWhereItIsUnsafe) {
  struct {
    std::vector<member> members;
    std::string refused; // a part of the refusal; empty: the context is accepted
  } cases[] = {
    {{{"train.py", AE_IFREG, "", "x"}, {"./a/b.py", AE_IFREG, "", "y"}}, ""},
    {{{"../evil.py"}}, "'../evil.py' leaves"},
    {{{"/etc/passwd"}}, "leaves"},
    {{{"a/../../b"}}, "leaves"},
    {{{"a/../b"}}, "'a/../b' has '..' in its path"},
    {{{"dir", AE_IFDIR}, {"dir/.."}}, "has '..' in its path"},
    {{{"a..b/..c"}}, ""},
    {{{"dir", AE_IFDIR}, {"dir/link", AE_IFLNK, "../train.py"}, {"train.py"}}, ""},
    {{{"link", AE_IFLNK, "../train.py"}}, "'link' is a link that leaves"},
    {{{"link", AE_IFLNK, "/etc/passwd"}}, "leaves"},
    {{{"a", AE_IFLNK, "b"}, {"b", AE_IFLNK, "a"}}, "circle"},
    {{{"a", AE_IFLNK, "a"}}, "circle"},
    {{{"out", AE_IFLNK, "."}, {"x", AE_IFLNK, "out/../../y"}}, "leaves"},
    {{{"pipe", AE_IFIFO}}, "'pipe' is a pipe"},
    {{{".", AE_IFDIR}, {"x"}}, ""},
    {{{".", AE_IFREG, "", "x"}}, "'.' is not the name of a file"},
    {{{"disk", AE_IFBLK}}, "device"},
    {{{"a", AE_IFREG, "", "x"}, {"b", AE_IFREG, "a"}}, ""},
    {{{"b", AE_IFREG, "../a"}}, "hard link"},
    {{{"a", AE_IFREG, "", "x"}, {"./a", AE_IFREG, "", "y"}}, "'./a' is there twice"},
    {{{"a", AE_IFDIR}, {"a", AE_IFREG, "", "y"}}, "'a' is there twice"},
    {{{"a", AE_IFDIR}, {"a/", AE_IFDIR}, {"a/b", AE_IFREG, "", "x"}}, ""},
    {{{std::string(11000, 'n')}}, "over 10 KB"},
    {{{"huge", AE_IFREG, "", std::string((95u << 20) + 1, 'h')}}, "over 95 MiB"},
  };
  for (const auto& one : cases) {
    auto got = checked_context(tar_of(one.members));
    EXPECT_EQ(static_cast<bool>(got), one.refused.empty()) << one.refused << (got ? "" : got.error().what);
    if (!got) {
      EXPECT_NE(got.error().what.find(one.refused), std::string::npos) << got.error().what.substr(0, 300);
      EXPECT_EQ(got.error().code, errc::invalid);
    } else {
      EXPECT_TRUE(got->starts_with("\x1f\x8b"));
      EXPECT_EQ(names_in(*got).size(), one.members.size());
    }
  }
  for (const auto* garbage : {"garbage", "\x1f\x8bgarbage"})
    EXPECT_FALSE(checked_context(std::string(garbage) + std::string(2000, 'g'))) << garbage;
}

TEST(Context, IsPackedFromTheClientsList) {
  auto got = packed_context(*parse_json(R"([
    {"path":"model","type":53,"content":"","mtime":1700000000,"mode":493,"uid":0,"gid":0},
    {"path":"model/train.py","type":48,"content":"aW1wb3J0IG9zCg==","mtime":"1700000000","mode":420,"uid":0,"gid":0}])"));
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(names_in(*got), (std::vector<std::string>{"model/", "model/train.py"}));
  for (const char* bad :
       {R"([{"path":"../x","type":48,"content":""}])", R"([{"path":"","type":48,"content":""}])",
        R"([{"path":"x","type":50,"content":""}])", R"([{"path":"x","type":48,"content":"%%"}])", R"(["x"])",
        R"([{"path":"x","type":48,"content":5.5}])",
        R"([{"path":"x","type":48,"content":""},{"path":"x","type":48,"content":""}])",
        R"([{"path":"x","type":48,"content":""},{"path":"x/y/z","type":48,"content":""}])",
        R"([{"path":"x/y/z","type":48,"content":""},{"path":"x/y","type":48,"content":""}])"})
    EXPECT_FALSE(packed_context(*parse_json(bad))) << bad;
}

/// Reads the names as UTF-8. A program of the C library does so only after it has set such a locale.
std::vector<std::string> names_in_utf8(const std::string& bytes) {
  const auto before = ::uselocale(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr));
  auto names = names_in(bytes);
  ::freelocale(::uselocale(before));
  return names;
}

TEST(Context, NamesMayHaveOtherLettersThanAscii) {
  const std::vector<std::string> names{"ü wéights.pt", "日本/モデル.py", "\xff.bin"};
  auto files = value::array();
  std::vector<member> members;
  for (const auto& name : names) {
    files.push_back({{"path", name}, {"type", 48}, {"content", "eA=="}});
    members.push_back({name, AE_IFREG, "", "x"});
  }
  const auto packed = packed_context(files, "files");
  ASSERT_TRUE(packed) << packed.error().what;
  const auto sent = checked_context(tar_of(members)); // The locale is "C" here, so the names stay as bytes.
  ASSERT_TRUE(sent) << sent.error().what;
  for (const auto& bytes : {*packed, *sent}) {
    EXPECT_EQ(names_in_utf8(bytes), names);
    const auto again = checked_context(bytes);
    EXPECT_TRUE(again) << again.error().what;
    const auto listed = context_files(bytes);
    ASSERT_TRUE(listed) << listed.error().what;
    ASSERT_EQ(listed->size(), 3u);
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ((*listed)[i].path, names[i]);
      const auto file = context_file_bytes(bytes, names[i]);
      ASSERT_TRUE(file) << file.error().what;
      EXPECT_EQ(*file, "x");
    }
  }
}

TEST(FolderArchive, SendsFilesAndNeverFollowsLinks) {
  char name[] = "/tmp/troupe_folder_XXXXXX";
  const std::filesystem::path at = ::mkdtemp(name);
  std::filesystem::create_directory(at / "sub");
  std::ofstream(at / "a.txt") << "hello";
  std::ofstream(at / "sub" / "big") << std::string(1 << 20, 'b');
  std::filesystem::create_symlink("/etc/passwd", at / "link");
  std::filesystem::create_directory_symlink("/etc", at / "etc");
  const auto all = [](result<std::unique_ptr<body_stream>> s) {
    std::string bytes;
    for (bool last = false; s && !last;) {
      auto piece = (*s)->next({});
      EXPECT_TRUE(piece);
      bytes += piece->bytes;
      last = piece->last;
    }
    return bytes;
  };
  for (auto form : {archive_form::tar, archive_form::tar_gz, archive_form::zip})
    EXPECT_EQ(names_in(all(folder_archive(at, form))), (std::vector<std::string>{"a.txt", "sub/big"}));
  std::ofstream(at / "ü 日本") << "other letters";
  for (auto form : {archive_form::tar, archive_form::tar_gz, archive_form::zip})
    EXPECT_EQ(names_in_utf8(all(folder_archive(at, form))),
              (std::vector<std::string>{"a.txt", "sub/big", "ü 日本"}));
  EXPECT_EQ(all(folder_file(at, "a.txt")), "hello");
  for (const char* bad : {"link", "etc/passwd", "../etc/passwd", "/etc/passwd", "sub", "missing", ""})
    EXPECT_EQ(folder_file(at, bad).error().code, errc::not_found) << bad;
  EXPECT_EQ(folder_archive(at / "missing", archive_form::tar).error().code, errc::not_found);
  EXPECT_EQ(folder_archive(at / "etc", archive_form::tar).error().code, errc::not_found) << "a link";
  EXPECT_EQ(folder_file(at / "etc", "hostname").error().code, errc::not_found) << "a link";
  std::filesystem::remove_all(at);
}

} // namespace
} // namespace troupe::api
