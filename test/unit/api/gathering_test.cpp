#include "runtime/api/answer_cache.hpp"
#include "runtime/api/gathering.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

TEST(Gathering, AnswersAllPeersOnceTheLastHasCome) {
  std::map<std::string, std::vector<response>> got; // outlives the peers that still wait at the end
  gathering g;
  const auto back = [&](const std::string& who) {
    return reply{[&got, who](response x) { got[who].push_back(std::move(x)); }};
  };
  const allocation_id a{{1}, {1}}, b{{2}, {1}};
  g.add(a, "x", 2, {{"n", 1}}, {}, back("x"));
  g.add(b, "y", 2, {{"n", 9}}, {}, back("y")); // this peer belongs to another allocation
  EXPECT_TRUE(got.empty());
  g.add(a, "z", 3, {}, {}, back("z")); // this peer expects another number of peers
  EXPECT_EQ(got["z"].at(0).status, 400u);
  g.add(a, "x", 2, {{"n", 2}}, {}, back("x again")); // the second call of a peer replaces the first
  EXPECT_EQ(got["x"].at(0).status, 409u);
  g.add(a, "w", 2, {{"n", 3}}, {}, back("w"));
  for (const char* who : {"x again", "w"})
    EXPECT_EQ(*parse_json(got[who].at(0).body), (value{{"data", value::array({{{"n", 2}}, {{"n", 3}}})}}));
  EXPECT_FALSE(got.contains("y"));
  g.add(a, "v", 0, {}, {}, back("v"));
  EXPECT_EQ(got["v"].at(0).status, 400u);
  // this call comes two hours later and ends calls that have waited in vain
  g.add(a, "u", 2, {}, time_point{std::chrono::hours{2}}, back("u"));
  EXPECT_EQ(got["y"].at(0).status, 504u);
}

TEST(AnswerCache, GivesWhatWasKeptUntilTheNextFactOrUser) {
  answer_cache c;
  c.keep("/a", {5, 1}, "old");
  EXPECT_EQ(*c.find("/a", {5, 1}), "old");
  EXPECT_FALSE(c.find("/b", {5, 1}));
  EXPECT_FALSE(c.find("/a", {6, 1}));
  EXPECT_FALSE(c.find("/a", {5, 2}));
  c.keep("/b", {6, 1}, "new");
  EXPECT_FALSE(c.find("/a", {5, 1})) << "forgotten with its moment";
  c.keep("/a", {5, 1}, "late");
  EXPECT_FALSE(c.find("/a", {5, 1})) << "an older moment is not kept";
  EXPECT_EQ(*c.find("/b", {6, 1}), "new");
  c.keep("/large", {6, 1}, std::string(answer_cache::most_bytes, 'x'));
  EXPECT_FALSE(c.find("/large", {6, 1}));
}

} // namespace
} // namespace troupe::api
