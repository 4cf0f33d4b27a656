#include "runtime/api/fields.hpp"
#include "runtime/api/http.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

TEST(Queries, HaveFlagsThatAreTrueOrFalseAndIdsThatAreNumbers) {
  for (const char* fine :
       {"", "archived=true", "archived=0", "follow=FALSE&archived=t", "other=maybe", "userIds=1&userIds=20",
        "workspaceIds=", "id=7", "id=", "trialIds=1&trialIds=2", "pinned=true"})
    EXPECT_TRUE(check_values(parse_target("/x?" + std::string(fine))->query)) << fine;
  for (const char* wrong :
       {"archived=maybe", "archived=true&archived=2", "regex=%20true", "unbound=maybe", "userIds=me",
        "userIds=1&userIds=x", "tokenIds=-1", "workspaceIds=1.5", "id=abc", "projectId=9223372036854775808",
        "ids=1,2", "trialIds=x", "workspaceId=x", "pinned=maybe", "showTrialData=2"})
    EXPECT_EQ(check_values(parse_target("/x?" + std::string(wrong))->query).error().code, errc::invalid)
      << wrong;
}

TEST(Queries, HaveLimitsAndOffsetsOf32Bits) {
  const auto number = [](const char* name, const std::string& text) {
    return parse_target("/x?" + std::string(name) + "=" + text)->query.number(name, 0);
  };
  for (const char* name : {"limit", "offset"}) {
    EXPECT_EQ(*number(name, "2147483647"), 2147483647);
    EXPECT_EQ(*number(name, "-2147483648"), -2147483648LL);
    for (const char* wrong : {"2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "x"})
      EXPECT_EQ(number(name, wrong).error().code, errc::invalid) << name << "=" << wrong;
  }
  EXPECT_EQ(*number("after", "2147483648"), 2147483648LL);
}

TEST(Targets, AreDecodedAndQueriesAreInCamelCase) {
  auto t =
    *parse_target("//api/v1/models/a%2Fb%20c/?timeout_seconds=60&states=A&states=B&flag=True&empty&x=a+b%2B");
  EXPECT_EQ(t.segments, (std::vector<std::string>{"api", "v1", "models", "a/b c"}));
  EXPECT_EQ(*t.query.number("timeoutSeconds", 0), 60);
  EXPECT_EQ(t.query.every("states").size(), 2u);
  EXPECT_TRUE(t.query.flag("flag"));
  EXPECT_TRUE(t.query.has("empty"));
  EXPECT_EQ(t.query.first("x"), "a b+");
  for (const char* bad : {"", "x", "*", "/%", "/%4", "/%zz", "/x?a=%", "/%00", "/x?a%00=1", "/x?name=a%00"})
    EXPECT_FALSE(parse_target(bad)) << bad;
  // Names of metrics come from the user's code.
  for (const char* name : {"metric", "metrics", "metric_name", "x", "topics"})
    EXPECT_EQ(parse_target("/x?" + std::string(name) + "=a%00b")->query.all.at(0).second,
              std::string("a\0b", 3))
      << name;
}

TEST(Fields, AreReadLeniently) {
  const auto x = *parse_json(
    R"({"isRaw":true,"template_name":"t","n":"7","f":3.0,"null":null,"big":18446744073709551615,"nan":"Nan"})");
  fields f{x};
  EXPECT_TRUE(f.flag("isRaw"));
  EXPECT_EQ(f.text("templateName"), "t");
  EXPECT_EQ(f.number("n"), 7);
  EXPECT_EQ(f.number("f"), 3);
  EXPECT_FALSE(f.has("null"));
  EXPECT_EQ(f.text("null", "unset"), "unset");
  EXPECT_TRUE(f.real("nan").has_value());
  EXPECT_FALSE(f.bad());
  f.number("big");
  ASSERT_TRUE(f.bad());
  EXPECT_EQ(f.bad()->what, "big: is too large");
  EXPECT_TRUE(*parse_object("") == value::object());
  EXPECT_FALSE(parse_object("[]"));
}

} // namespace
} // namespace troupe::api
