#include "runtime/shell/top_view.hpp"

#include <gtest/gtest.h>

namespace troupe::shell {
namespace {

value row(const char* actor, double rate, double backlog) {
  return {{"actor", actor},
          {"kind", std::string(actor).substr(0, std::string(actor).find('/'))},
          {"msg_per_s", rate},
          {"backlog", backlog}};
}
const value rows = {row("journal", 100, 1), row("trial/7", 2, 0), row("trial/8", 5, 9),
                    row("pool/main", 1, 0)};

std::string seen(top_view& v) {
  std::string out;
  std::size_t i = 0;
  for (const auto& one : v.visible(rows)) {
    out += (out.empty() ? "" : " ") + std::string(i == v.at() ? "*" : "") + one["actor"].get<std::string>();
    ++i;
  }
  return out;
}
void press(top_view& v, std::string_view keys) {
  for (char key : keys)
    v.take(key);
}

TEST(TopView, KeysSortReverseFilterChooseAndOpen) {
  top_view v;
  struct {
    std::string_view keys;
    std::string seen, filter, opened;
  } const steps[] = {
    {"", "*journal trial/8 trial/7 pool/main", "", ""},
    {"\x1b[B", "journal *trial/8 trial/7 pool/main", "", ""},
    {"r", "pool/main trial/7 *trial/8 journal", "", ""}, // the choice follows its actor
    {"rs", "*trial/8 journal trial/7 pool/main", "", ""},
    {"\x1bOA", "*trial/8 journal trial/7 pool/main", "", ""}, // no actor is above
    {"jjjjj", "trial/8 journal trial/7 *pool/main", "", ""},
    {"/trial", "*trial/8 trial/7", "trial", ""}, // the chosen actor does not match the filter
    {"\x7f\x7f", "*trial/8 trial/7", "tri", ""},
    {"\x15q", "*trial/8 journal trial/7 pool/main", "q", ""},
    {"\x15journal\n", "*journal", "journal", ""},
    {"\n", "*journal", "journal", "journal"},
    {"q", "*journal", "journal", ""}, // any key returns to the list
    {"/x", "", "journalx", ""},
    {"\n\n", "", "journalx", ""}, // there is nothing to open
  };
  for (const auto& s : steps) {
    press(v, s.keys);
    EXPECT_EQ(v.filter(), s.filter) << s.keys;
    EXPECT_EQ(v.opened(), s.opened) << s.keys;
    if (s.keys != "\x15q") { // this filter matches no row
      EXPECT_EQ(seen(v), s.seen) << s.keys;
    }
  }
  EXPECT_FALSE(v.leaves());
  press(v, "q");
  EXPECT_TRUE(v.leaves());
}

TEST(TopView, EscapeAloneDropsWhatIsTypedThenTheFilter) {
  top_view v;
  seen(v);
  press(v, "/pool\n/x");
  EXPECT_EQ(v.filter(), "poolx");
  v.take('\x1b');
  EXPECT_EQ(v.filter(), "poolx") << "an arrow may come yet";
  v.take(0);
  EXPECT_EQ(v.filter(), "pool");
  EXPECT_FALSE(v.typing());
  press(v, "\x1b");
  v.take(0);
  EXPECT_EQ(v.filter(), "");
}

TEST(TopView, TracesTheChosenActorOnceAndShowsItsKeys) {
  top_view v;
  press(v, "t");
  EXPECT_EQ(v.traced(), "") << "there is nothing to be chosen yet";
  seen(v);
  press(v, "jt");
  EXPECT_TRUE(v.wants_trace());
  EXPECT_EQ(v.traced(), "trial/8");
  EXPECT_EQ(v.traced(), "");
  press(v, "?");
  EXPECT_TRUE(v.helps());
  press(v, "j"); // any key leaves the help, and does nothing else
  EXPECT_FALSE(v.helps());
  EXPECT_EQ(seen(v), "journal *trial/8 trial/7 pool/main");
  press(v, "/t?");
  EXPECT_EQ(v.filter(), "t?") << "letters of a filter";
  EXPECT_FALSE(v.helps() || v.wants_trace());
}

TEST(TopView, SaysWhetherSomethingChanged) {
  top_view v;
  v.take(0);
  EXPECT_FALSE(v.changed());
  v.take('s');
  EXPECT_TRUE(v.changed());
  EXPECT_FALSE(v.changed());
  EXPECT_FALSE(v.sort_by("shoesize"));
  EXPECT_TRUE(v.sort_by("actor"));
  press(v, "/\xc3\xa4");
  press(v, "\x7f"); // deletes a whole letter
  EXPECT_EQ(v.filter(), "");
  press(v, "\x04");
  EXPECT_TRUE(v.leaves());
}

} // namespace
} // namespace troupe::shell
