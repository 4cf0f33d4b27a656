// Tests the values of the process runtime: what is refused, and that what is written reads back.

#include "workers/task_folder.hpp"
#include "workers/task_link.hpp"

#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

task_spec good() { return {.id = "12.3", .ranks = {{{"true"}, {"A=b"}, "/"}}, .limits = {}, .keep = {}}; }

TEST(TaskSpec, RefusesWhatCannotRunAndNamesIt) {
  struct {
    const char* sentence;
    void (*spoil)(task_spec&);
    std::string names;
  } cases[] = {
    {"an empty id", [](task_spec& s) { s.id = ""; }, "id"},
    {"an id that climbs", [](task_spec& s) { s.id = "../x"; }, "../x"},
    {"the name of a spare", [](task_spec& s) { s.id = "spare-1"; }, "spare-1"},
    {"no rank", [](task_spec& s) { s.ranks.clear(); }, "0 ranks"},
    {"too many ranks", [](task_spec& s) { s.ranks.resize(257, s.ranks[0]); }, "257 ranks"},
    {"no command", [](task_spec& s) { s.ranks[0].argv.clear(); }, "rank 0"},
    {"a relative folder", [](task_spec& s) { s.ranks[0].cwd = "work"; }, "'work'"},
    {"a variable without a value", [](task_spec& s) { s.ranks[0].env.push_back("HOME"); }, "HOME"},
    {"a zero byte", [](task_spec& s) { s.ranks[0].argv.push_back(std::string("a\0b", 3)); }, "zero byte"},
    {"an argument the kernel refuses",
     [](task_spec& s) { s.ranks[0].argv.push_back(std::string(128 << 10, 'x')); }, "131072 bytes"},
    {"a relative path to keep", [](task_spec& s) { s.keep.push_back("data"); }, "'data'"},
    {"a limit of nothing", [](task_spec& s) { s.limits.open_files = 0; }, "open_files"},
  };
  EXPECT_TRUE(check(good()));
  for (const auto& c : cases) {
    auto spec = good();
    c.spoil(spec);
    auto ok = check(spec);
    ASSERT_FALSE(ok) << c.sentence;
    EXPECT_EQ(ok.error().code, errc::invalid) << c.sentence;
    EXPECT_NE(ok.error().what.find(c.names), std::string::npos) << c.sentence << ": " << ok.error().what;
  }
}

TEST(TaskSpec, EncodesToPairsThatEndInZero) {
  auto bytes = encode(good(), {.lease = std::chrono::seconds(30)});
  auto shown = bytes;
  for (auto& c : shown)
    if (c == '\0')
      c = '|';
  EXPECT_EQ(shown, "troupe-task-spec|1|id|12.3|lease-ms|30000|frozen-kill-ms|86400000|adopt-ms|200|linger-ms|"
                   "600000|spool-file-bytes|4194304|spool-files|16|keep-if-there|/|rank|/|arg|true|env|A=b|");
}

TEST(ExitRecord, ReadsBackAsItWasWritten) {
  const task_end ends[] = {
    task_exited{"1.2",
                end_reason::exited,
                "",
                {{0, false, 3, false, false, time_point{5us}}, {1, true, 9, true, true, time_point{6us}}},
                time_point{7us}},
    task_exited{"1.2", end_reason::failed, "no such thing", {}, time_point{7us}},
    task_exited{"1.2", end_reason::lease, "", {{0, true, 9, true, false, time_point{5us}}}, time_point{7us}},
    task_lost{"1.2", "it is gone"},
  };
  for (const auto& end : ends) {
    auto again = decode_end(encode(end));
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(encode(*again), encode(end));
    EXPECT_EQ(again->index(), end.index());
  }
  auto exited = std::get<task_exited>(*decode_end(encode(ends[0])));
  EXPECT_EQ(exited.ranks, std::get<task_exited>(ends[0]).ranks);
  EXPECT_EQ(exited.at, time_point{7us});
}

TEST(ExitRecord, IsRefusedWhereItIsCutOff) {
  auto whole = encode(task_end{task_exited{"1.2", end_reason::exited, "", {{}}, time_point{7us}}});
  for (std::size_t bytes = 0; bytes + 1 < whole.size(); ++bytes)
    EXPECT_FALSE(decode_end(whole.substr(0, bytes))) << bytes;
  EXPECT_FALSE(decode_end("something else\nend\n"));
}

TEST(SandboxNews, IsReadFromItsLine) {
  auto state =
    std::get<sandbox_state>(decode_news("state running 10 11 namespaces 29999 /proc is the host's: no"));
  EXPECT_EQ(state.phase, "running");
  EXPECT_EQ(state.rank0_pid, 11);
  EXPECT_EQ(state.how, isolation::namespaces);
  EXPECT_EQ(state.remark, "/proc is the host's: no");
  EXPECT_EQ(std::get<sandbox_state>(decode_news("state spare 10 0 process-group 0 ")).how,
            isolation::process_group);
  EXPECT_EQ(std::get<sandbox_started>(decode_news("started 12")).rank0_pid, 12);
  EXPECT_EQ(std::get<rank_end>(decode_news("rank 2 signal 9 77 ko")),
            (rank_end{2, true, 9, true, true, time_point{77us}}));
  EXPECT_EQ(std::get<rank_end>(decode_news("rank 0 code 1 77 -")),
            (rank_end{0, false, 1, false, false, time_point{77us}}));
  EXPECT_EQ(std::get<sandbox_frozen>(decode_news("frozen lease")).why, "lease");
  EXPECT_TRUE(std::holds_alternative<sandbox_thawed>(decode_news("thawed")));
  EXPECT_TRUE(std::holds_alternative<sandbox_ended>(decode_news("exited")));
  EXPECT_TRUE(std::holds_alternative<sandbox_complaint>(decode_news("news of a later version")));
}

} // namespace
} // namespace troupe::workers
