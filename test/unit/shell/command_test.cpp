#include "runtime/shell/command.hpp"
#include "runtime/shell/completion.hpp"
#include "runtime/shell/history.hpp"
#include "runtime/shell/session.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/stat.h>

namespace troupe::shell {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const command& named(const std::vector<std::string>& words) {
  std::size_t used = 0;
  const auto* c = find_command(words, used);
  EXPECT_TRUE(c);
  return *c;
}

TEST(Commands, ReadOptionsAnywhereAndCheckThem) {
  auto g = read_typed_words(named({"trace"}), {"--max", "20", "trial/7", "--for=1m"});
  ASSERT_TRUE(g);
  EXPECT_THAT(g->words, ElementsAre("trial/7"));
  EXPECT_EQ(g->number("--max", 0), 20);
  EXPECT_EQ(g->span("--for", {}), std::chrono::minutes(1));

  struct {
    std::vector<std::string> words;
    std::string fault;
  } cases[] = {
    {{"x", "--mx", "3"}, "'trace' has no option '--mx'\nhint: did you mean '--max'?"},
    {{"x", "--max"}, "--max needs a value"},
    {{"x", "--max", "many"}, "--max takes a whole number, not 'many'"},
    {{"x", "--for", "soon"}, "--for 'soon' is not a span of time"},
    {{"x", "y"}, "unexpected word 'y' after 'trace'"},
    {{"x", "-o", "jason"}, "-o"},
  };
  for (const auto& c : cases) {
    auto bad = read_typed_words(named({"trace"}), c.words);
    ASSERT_FALSE(bad) << c.fault;
    EXPECT_THAT(bad.error().what, HasSubstr(c.fault));
    EXPECT_EQ(bad.error().code, errc::invalid);
  }
  auto missing = read_typed_words(named({"send"}), {"trial/7"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, HasSubstr("'send' needs ACTOR MESSAGE"));
  auto plain = read_typed_words(named({"send"}), {"a", "m", "x=1", "--", "--odd"});
  ASSERT_TRUE(plain);
  EXPECT_THAT(plain->words, ElementsAre("a", "m", "x=1", "--odd"));
  auto quoted = read_typed_words(named({"send"}), {"a", "m", "--odd"}, {false, false, true});
  ASSERT_TRUE(quoted);
  EXPECT_EQ(quoted->words.back(), "--odd");
}

TEST(Commands, ReadSpans) {
  struct {
    const char* text;
    int ms;
  } cases[] = {{"2", 2000},   {"2s", 2000},       {"500ms", 500}, {"1.5s", 1500},
               {"1m", 60000}, {"1h30m", 5400000}, {"0", 0}};
  for (const auto& c : cases) {
    auto got = parse_span(c.text);
    ASSERT_TRUE(got) << c.text;
    EXPECT_EQ(got->count(), c.ms) << c.text;
    EXPECT_EQ(parse_span(span_arg(*got))->count(), c.ms) << c.text;
  }
  for (const char* bad : {"", "s", "-1s", "2x", "1s2", "inf", "nan", "9999999d", "1e300s"})
    EXPECT_FALSE(parse_span(bad)) << bad;
}

TEST(Commands, HaveHelpThatTellsAll) {
  for (const auto& c : all_commands()) {
    auto help = command_help(c);
    EXPECT_THAT(help, HasSubstr("Usage: " + std::string(c.name)));
    EXPECT_THAT(overview_help(), HasSubstr("  " + std::string(c.name)));
    for (auto rest = c.examples; !rest.empty();) { // every example has to be a valid command
      auto one = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      auto line = parse_line(one);
      ASSERT_TRUE(line) << one;
      auto words = expanded(line->statements[0].words,
                            [](const std::string&) { return result<std::string>(std::string("trial/7")); });
      std::size_t used = 0;
      const auto* found = find_command(*words, used);
      ASSERT_TRUE(found) << one;
      if (found->name != "let" && found->name != "watch" && found->name != "repeat") {
        auto g = read_typed_words(*found, {words->begin() + static_cast<std::ptrdiff_t>(used), words->end()});
        EXPECT_TRUE(g) << one << ": " << g.error().what;
      }
    }
  }
}

TEST(Commands, KnowWhichVerbsChangeSomething) {
  for (const char* path : {"experiment list", "trial logs", "status", "config", "version", "experiment wait",
                           "experiment events", "model versions"})
    EXPECT_FALSE(verb_acts(path)) << path;
  for (const char* path : {"experiment kill", "trial kill", "down", "experiment create", "run", "apply",
                           "tls init", "workspace set", "model set-version"})
    EXPECT_TRUE(verb_acts(path)) << path;
}

std::vector<std::string> offered(std::string_view before) {
  live_names names{{"agent/gpu01", "journal", "trial/7", "trial/8"},
                   {"gpu01", "master"},
                   {{"preempt", {"trial", "allocation"}, {"reason", "grace_s"}},
                    {"flush", {"journal"}, {}},
                    {"ping", {"*"}, {}}}};
  std::vector<std::string> out;
  for (const auto& c : complete(before, names, {"best", "x"}).all)
    out.push_back(c.text);
  return out;
}

TEST(Completion, OffersWhatFits) {
  EXPECT_THAT(offered("who"), ElementsAre("who-waits"));
  EXPECT_THAT(offered(":js"), ElementsAre(":json"));
  EXPECT_THAT(offered("info tr"), ElementsAre("trial/7", "trial/8"));
  EXPECT_THAT(offered("nodes; info j"), ElementsAre("journal"));
  EXPECT_THAT(offered("watch -n 2s info j"), ElementsAre("journal"));
  EXPECT_THAT(offered("let y = info j"), ElementsAre("journal"));
  EXPECT_THAT(offered("send trial/7 "), ElementsAre("preempt", "ping"));
  EXPECT_THAT(offered("send trial/7 preempt "), ElementsAre("reason=", "grace_s="));
  EXPECT_THAT(offered("send trial/7 preempt reason=x g"), ElementsAre("grace_s="));
  EXPECT_THAT(offered("send journal "), ElementsAre("flush", "ping"));
  EXPECT_THAT(offered("drain g"), ElementsAre("gpu01"));
  EXPECT_THAT(offered("ps kind=a"), ElementsAre("kind=agent"));
  EXPECT_THAT(offered("ps --w"), ElementsAre("--window"));
  EXPECT_THAT(offered("trace journal --msg p"), ElementsAre("preempt", "ping"));
  EXPECT_THAT(offered("info $b"), ElementsAre("$best"));
  EXPECT_THAT(offered("ps | wh"), ElementsAre("where"));
  EXPECT_THAT(offered("experiment pa"), ElementsAre("pause", "pareto"));
  EXPECT_THAT(offered("experiment create --pa"), ElementsAre("--paused"));
  EXPECT_THAT(offered("help tra"), ElementsAre("trace"));
  EXPECT_THAT(offered("info zzz"), ElementsAre());
  EXPECT_THAT(offered("config s"), ElementsAre("show", "set"));
}

TEST(Completion, ReplacesFromTheWordsFirstByte) {
  EXPECT_EQ(complete("info tr", {{"trial/7"}, {}, {}}, {}).from, 5u);
  EXPECT_EQ(complete("nodes;in", {}, {}).from, 6u);
  EXPECT_EQ(complete("nodes; in", {}, {}).from, 7u);
  EXPECT_EQ(complete("info trial/$b", {}, {"best"}).from, 11u);
  EXPECT_EQ(common_start({{"trial/7", ""}, {"trial/8", ""}}), "trial/");
  // the letters share their first byte, but are different
  EXPECT_EQ(common_start({{"é", ""}, {"è", ""}}), "");
}

TEST(History, KeepsNoSecrets) {
  for (const char* line : {"config set admin.password x", "let TOKEN = 3", "send a login secret=1",
                           ":attach http://ada:pw@head:8080", "x Authorization: Bearer y"})
    EXPECT_TRUE(is_secret(line)) << line;
  for (const char* line : {"ps", "info trial/7", ":attach http://head:8080", "send user@host note"})
    EXPECT_FALSE(is_secret(line)) << line;
}

TEST(History, IsAFileOfItsOwnerWithTheNewestLines) {
  auto folder = std::filesystem::path(testing::TempDir()) / ("shell_history_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  auto file = history_file([&](const char* name) {
    return std::string(name) == "XDG_STATE_HOME" ? folder.string() : std::string();
  });
  EXPECT_EQ(file, folder / "troupe" / "shell_history");
  {
    history h(file);
    EXPECT_TRUE(h.load().empty());
    EXPECT_TRUE(*h.add("ps"));
    EXPECT_FALSE(*h.add("ps"));
    EXPECT_FALSE(*h.add("  "));
    EXPECT_FALSE(*h.add("config set password x"));
    EXPECT_TRUE(*h.add("info 'two\nlines' \\ é"));
  }
  struct stat facts {};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_THAT(history(file).load(), ElementsAre("ps", "info 'two\nlines' \\ é"));
  {
    std::ofstream many(file);
    for (int i = 0; i < 2500; ++i)
      many << "ps --top " << i << "\n";
  }
  auto kept = history(file).load();
  ASSERT_EQ(kept.size(), history::most_lines);
  EXPECT_EQ(kept.back(), "ps --top 2499");
  EXPECT_EQ(history(file).load().size(), history::most_lines); // the file was shortened too
  auto nowhere = history("/proc/nowhere/shell_history").add("ps");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, errc::io);
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace troupe::shell
