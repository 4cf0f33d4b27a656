#include "runtime/shell/line.hpp"

#include <gtest/gtest.h>

namespace troupe::shell {
namespace {

/// Returns the parts of a line as "[ps] [--top] [4] | first [1] > file ; ...", with "$x" for a variable and
/// "open" where the line is not complete.
std::string show(const parsed_line& line) {
  auto of = [](const std::vector<word>& words) {
    std::string out;
    for (const auto& w : words) {
      out += out.empty() ? "[" : " [";
      for (const auto& p : w.parts)
        out += p.variable ? "$" + p.text : p.text;
      out += w.quoted ? "]q" : "]";
    }
    return out;
  };
  std::string out;
  for (const auto& s : line.statements) {
    out += (out.empty() ? "" : " ; ") + of(s.words);
    for (const auto& p : s.pipes)
      out += " | " + (p.host.empty() ? of(p.words) : "sh(" + p.host + ")");
    if (s.to)
      out += (s.to->append ? " >> " : " > ") + of({s.to->file});
  }
  return out + (line.open ? " open" : "");
}

TEST(Line, MeansWhatWasTyped) {
  struct {
    std::string_view text, meaning;
  } cases[] = {
    {"", ""},
    {"   \t ", ""},
    {"# nothing", ""},
    {"ps --top 4", "[ps] [--top] [4]"},
    {"ps;nodes ; ;tree", "[ps] ; [nodes] ; [tree]"},
    {"ps # who is busy", "[ps]"},
    {"info trial#7", "[info] [trial#7]"},
    {"send trial/7 preempt reason='a b' x=\"c d\"", "[send] [trial/7] [preempt] [reason=a b]q [x=c d]q"},
    {"info $x", "[info] [$x]"},
    {"info trial/${x.id}0", "[info] [trial/$x.id0]"},
    {"info '$x' \"$x\"", "[info] [$x]q [$x]q"},
    {"info _", "[info] [$_]"},
    {"info a_ \\_", "[info] [a_] [_]q"},
    {"cost 5$", "[cost] [5$]"},
    {"ps | grep trial", "[ps] | sh(grep trial)"},
    {"ps | awk '{print $1; x}' | head -2 ; nodes", "[ps] | sh(awk '{print $1; x}' | head -2) ; [nodes]"},
    {"ps | where state=RUNNING | first 2 | wc -l",
     "[ps] | [where] [state=RUNNING] | [first] [2] | sh(wc -l)"},
    {"ps | where 'backlog>5'", "[ps] | [where] [backlog>5]q"},
    {"ps > a.txt", "[ps] > [a.txt]"},
    {"ps>>'a b'", "[ps] >> [a b]q"},
    {"ps | count > n", "[ps] | [count] > [n]"},
    {"ps | sort > n", "[ps] | sh(sort > n)"},
    {"let x = ps --top 1", "[let] [x] [=] [ps] [--top] [1]"},
    {"echo \"a\\\"b\\n\\$x\"", "[echo] [a\"b\n$x]q"},
    {"send x 'open", " open"},
    {"send x \"open", " open"},
    {"ps --top \\", " open"},
    {"ps --top \\\n 4", "[ps] [--top] [4]"},
    {"info 'one\ntwo'", "[info] [one\ntwo]q"},
    {"ps # a comment\nnodes", "[ps] [nodes]"},
    {"info überraschung", "[info] [überraschung]"},
  };
  for (const auto& c : cases) {
    auto line = parse_line(c.text);
    ASSERT_TRUE(line) << c.text << ": " << line.error().what;
    EXPECT_EQ(show(*line), c.meaning) << c.text;
  }
}

TEST(Line, TellsTheColumnOfAFault) {
  struct {
    std::string_view text, fault;
  } cases[] = {
    {"| grep x", "column 1: nothing stands before '|'"},
    {"ps |", "column 4: '|' needs a command"},
    {"ps ; > x", "column 6: nothing stands before '>'"},
    {"ps >", "column 4: '>' needs a file"},
    {"ps > a b", "column 8: unexpected word after the file of '>'"},
    {"ps > a > b", "column 8: a second '>'"},
    {"ps > a | first", "column 8: the output goes to a file already"},
    {"é ${x", "column 3: '${' without '}'"},
    {"info ${}", "column 6: '${}' names no variable"},
  };
  for (const auto& c : cases) {
    auto line = parse_line(c.text);
    ASSERT_FALSE(line) << c.text;
    EXPECT_EQ(line.error().what.substr(0, line.error().what.find('\n')), c.fault) << c.text;
    EXPECT_EQ(line.error().code, errc::invalid);
  }
}

TEST(Line, RefusesWhatIsTooLongOrNoText) {
  EXPECT_TRUE(parse_line(std::string(most_line_bytes, 'a')));
  auto big = parse_line(std::string(1 << 20, 'a'));
  ASSERT_FALSE(big);
  EXPECT_NE(big.error().what.find("1048576 bytes"), std::string::npos);
  for (std::string_view bad : {std::string_view("ps\0x", 4), std::string_view("\x1b[A"),
                               std::string_view("\xff\xfe"), std::string_view("a\xc3")})
    EXPECT_FALSE(parse_line(bad));
}

TEST(Line, ExpandsVariables) {
  lookup variables = [](const std::string& name) -> result<std::string> {
    if (name == "x")
      return std::string("7 8");
    return error{errc::invalid, "no $" + name};
  };
  auto line = parse_line("info trial/$x '$x'");
  ASSERT_TRUE(line);
  auto words = expanded(line->statements[0].words, variables);
  ASSERT_TRUE(words);
  // a value with a space stays one word
  EXPECT_EQ(*words, (std::vector<std::string>{"info", "trial/7 8", "$x"}));
  auto unknown = expanded(parse_line("info $y")->statements[0].words, variables);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, "no $y");
}

TEST(Line, QuotesSoThatItReadsBack) {
  for (std::string text : {"a", "", "a b", "it's", "$x", "_", "a;b|c>d", "\"", "\\", "#", "é"}) {
    auto line = parse_line("x " + shell::quoted(text));
    ASSERT_TRUE(line) << text;
    ASSERT_EQ(line->statements.size(), 1u) << text;
    ASSERT_EQ(line->statements[0].words.size(), 2u) << text;
    auto back = expanded(line->statements[0].words[1],
                         [](const std::string&) { return result<std::string>(std::string("?")); });
    EXPECT_EQ(*back, text);
  }
}

} // namespace
} // namespace troupe::shell
