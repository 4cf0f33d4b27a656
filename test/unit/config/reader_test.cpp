// Tests texts as people and machines write them, and texts that are meant to do harm.

#include "model/config/document.hpp"
#include "model/config/experiment_config.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

namespace troupe::config {
namespace {

std::string first_fault(std::string_view text, const limits& bound = {}) {
  auto read = read_document(text, "");
  if (bound.nodes != limits{}.nodes || bound.depth != limits{}.depth)
    read = read_document(text, "", bound);
  if (read.faults.empty())
    return "none: " + to_value(read.root).dump();
  const auto& f = read.faults.front();
  return std::to_string(f.line) + ":" + std::to_string(f.column) + ": " + f.message;
}

TEST(Reader, ResolvesScalarsAsDeterminedDoes) {
  struct {
    const char *yaml, *json;
  } cases[] = {
    {"1", "1"},
    {"-7", "-7"},
    {"+7", "7"},
    {"0x1F", "31"},
    {"0o17", "15"},
    {"017", "15"},
    {"0b101", "5"},
    {"1_000", "1000"},
    {"1e-4", "0.0001"},
    {"1.5e3", "1500.0"},
    {".5", "0.5"},
    {"5.", "5.0"},
    {"1e3", "1000.0"},
    {"9223372036854775807", "9223372036854775807"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"18446744073709551616", "1.8446744073709552e+19"},
    {"true", "true"},
    {"Yes", "true"},
    {"off", "false"},
    {"y", "\"y\""},
    {"n", "\"n\""},
    {"~", "null"},
    {"", "null"},
    {"null", "null"},
    {"nil", "\"nil\""},
    {"'1'", "\"1\""},
    {"\"true\"", "\"true\""},
    {"1.2.3", "\"1.2.3\""},
    {"1:30", "\"1:30\""},
    {"2001-01-01", "\"2001-01-01\""},
    {"0x", "\"0x\""},
    {"-", "[null]"},
    {"1e", "\"1e\""},
    {"e1", "\"e1\""},
    {"09", "9.0"},
    {"!!str 5", "\"5\""},
    {"!!float 5", "5.0"},
    {"!!int '5'", "5"},
    {"|\n  a\n  b\n", "\"a\\nb\\n\""},
    {">-\n  a\n  b\n", "\"a b\""},
    {"\"\\u00e9\"", "\"é\""},
    {"[1, [2, {a: b}]]", "[1,[2,{\"a\":\"b\"}]]"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(first_fault(c.yaml), "none: " + std::string(c.json)) << c.yaml;
  EXPECT_TRUE(std::isinf(read_document(".inf", "").root.real));
  EXPECT_TRUE(std::isnan(read_document(".NaN", "").root.real));
}

TEST(Reader, ReadsJsonWithWhatYamlReadersStumbleOver) {
  EXPECT_EQ(first_fault(R"({"a":"\ud83d\ude00","b":"a\/b",)"
                        "\n\t\"c\": [1, -2.5e3, true, null]}"),
            "none: {\"a\":\"😀\",\"b\":\"a/b\",\"c\":[1,-2500.0,true,null]}");
  EXPECT_EQ(first_fault("{\"" + std::string(2000, 'k') + "\": 1}").substr(0, 5), "none:");
  EXPECT_EQ(first_fault("{\"a\": 1,\n \"a\": 2}"), "2:2: the key 'a' is given twice; the first is at line 1");
  EXPECT_EQ(first_fault("{a: 1, b: [x, 'y']}"), "none: {\"a\":1,\"b\":[\"x\",\"y\"]}");
  EXPECT_EQ(first_fault("# a comment\n{\"a\": 01}"), "none: {\"a\":1}");
}

TEST(Reader, ExpandsAliasesAndMergeKeys) {
  EXPECT_EQ(first_fault("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nlist: [*b, {<<: [*b, {z: 9, x: 7}]}]\n"),
            "none: {\"base\":{\"x\":1,\"y\":2},\"list\":[{\"x\":1,\"y\":2},{\"x\":1,\"y\":2,\"z\":9}],"
            "\"use\":{\"x\":1,\"y\":3}}");
  EXPECT_EQ(first_fault("a: &x [1]\nb: &x [2]\nc: *x\n"), "none: {\"a\":[1],\"b\":[2],\"c\":[2]}");
}

TEST(Reader, PlacesEachFault) {
  struct {
    const char *text, *fault;
  } cases[] = {
    {"a: 1\nb: 2\na: 3\n", "3:1: the key 'a' is given twice; the first is at line 1"},
    {"a:\n\tb: 1\n", "2:1: cannot read this as YAML: a tab cannot indent YAML"},
    {"a: \"open\nb: 1\n", "1:4: cannot read this as YAML: the quote that opens here is never closed"},
    {"a: 'open", "1:4: cannot read this as YAML: the quote that opens here is never closed"},
    {"a: b: c\n", "1:5: cannot read this as YAML: a ': ' is not allowed here"},
    {"a: 1\n  b: 2\n", "2:4: cannot read this as YAML: a ': ' is not allowed here"},
    {"a: *nobody\n", "1:4: the alias '*nobody' has no anchor '&nobody' before it"},
    {"a: &x [1, *x]\n", "1:11: the alias '*x' stands inside its own anchor: it would never end"},
    {"a: 1\n---\nb: 2\n", "2:1: a second YAML document begins here; a configuration is one document"},
    {"? [a]\n: 1\n", "1:3: a list or map cannot be a key; a key is a string"},
    {"a: {b: [1,\n", "1:8: cannot read this as YAML: the '[' that opens here is never closed"},
    {"{\"a\": 1", "1:1: cannot read this as YAML: the '{' that opens here is never closed"},
    {"a: !!int x\n", "1:4: 'x' is no !!int"},
    {"a: !mine x\n", "1:4: the tag '!mine' has no meaning here"},
    {"{\"a\": \"x}", "1:7: cannot read this as YAML: the quote that opens here is never closed"},
    {"<<: 3\n", "1:1: a merge key ('<<') takes a map or a list of maps"},
    {"é: [1, *q]\n", "1:8: the alias '*q' has no anchor '&q' before it"},
    {"a: \xff\n",
     "1:4: cannot read this as YAML: this text is not UTF-8, or holds a control character (invalid leading "
     "UTF-8 octet)"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(first_fault(c.text), c.fault) << c.text;
}

TEST(Reader, StopsAtItsBounds) {
  EXPECT_EQ(first_fault(std::string(200, '[') + std::string(200, ']')),
            "1:101: nested deeper than 100 levels");
  std::string deep;
  for (int i = 0; i < 200; ++i)
    deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(first_fault(deep).find("nested deeper than 100 levels"), std::string::npos);
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'j'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i)
      bomb += std::string(i ? ", *" : "*") + static_cast<char>(c - 1);
    bomb += "]\n";
  }
  EXPECT_NE(first_fault(bomb).find("values after aliases are expanded"), std::string::npos);
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Each of these texts is refused or read within a second of processor time on an ordinary host. The limit is
/// ten seconds for slow hosts and for sanitizers.
TEST(Reader, TakesBoundedTimeWhateverTheTextIs) {
  auto repeated = [](std::string_view part, std::size_t bytes) {
    std::string out;
    while (out.size() < bytes)
      out += part;
    return out;
  };
  constexpr std::size_t most = 2u << 20;
  std::string many_keys;
  for (int i = 0; i < 100'000; ++i)
    many_keys += "k" + std::to_string(i) + ": 1\n";
  const std::pair<const char*, std::string> cases[] = {
    {"ten megabytes", std::string(10u << 20, 'a')},
    {"open brackets", std::string(most - 1, '[')},
    {"open braces", repeated("{a: ", most - 8)},
    {"flow keys", "{" + repeated("a,", most - 8)},
    {"one long word", std::string(most - 1, 'w')},
    {"one long quote", "\"" + std::string(most - 8, 'q')},
    {"dashes", repeated("- ", most - 8)},
    {"question marks", repeated("? ", most - 8)},
    {"anchors", repeated("- &a b\n", most - 8)},
    {"tags", repeated("- !!str b\n", most - 8)},
    {"many keys", many_keys},
    {"the same key", repeated("a: 1\n", most - 8)},
    {"a long list", "data: {x: [" + repeated("1,", 450'000) + "1]}"},
    {"a long key with many parts",
     "? " + std::string(500'000, 'k') + "\n: [" + repeated("{", 90) + repeated("a,", 500'000)},
    {"merge keys",
     "b: &b {" + repeated("x: 1, ", 100) + "y: 2}\nc: {<<: [" + repeated("*b, ", 400'000) + "*b]}"},
    {"comments", repeated("#\n", most - 8)},
    {"blank lines", repeated("\n", most - 8)},
    {"unknown keys of searchers", "searcher: {name: single," + repeated("a: 1, ", 10) + "}\n" + many_keys},
    {"hyperparameters",
     "hyperparameters:\n" + repeated(" ", 1) + "a: [" + repeated("{b: c}, ", 500'000) + "]"},
  };
#ifdef __SANITIZE_ADDRESS__ // such a build has no optimisation and checks each access
  constexpr double most_seconds = 60;
#else
  constexpr double most_seconds = 10;
#endif
  for (const auto& [says, text] : cases) {
    auto begin = cpu_seconds();
    auto got = load_experiment(text, "x");
    for (const auto& f : got.faults)
      EXPECT_LT(render(f, text).size(), 4000u) << says;
    EXPECT_FALSE(got.ok()) << says;
    EXPECT_LE(got.faults.size(), most_faults) << says;
    EXPECT_LT(cpu_seconds() - begin, most_seconds) << says;
  }
}

} // namespace
} // namespace troupe::config
