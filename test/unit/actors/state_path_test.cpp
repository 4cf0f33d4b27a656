#include "actors/inspector/state_path.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

const value state{{"queue", {{{"slots", 8}, {"allocation", "7.1"}}, {{"slots", 1}}}},
                  {"agents", {{"a1", {{"away", false}}}}},
                  {"tasks", {{"12.3", "running"}}},
                  {"total", 4}};

TEST(StatePath, SelectsAPart) {
  struct {
    const char* path;
    value part;
  } const cases[] = {{"", state},
                     {"total", 4},
                     {"queue[0].slots", 8},
                     {"queue[1]", {{"slots", 1}}},
                     {"agents.a1.away", false},
                     {"tasks.12.3", "running"}};
  for (const auto& c : cases) {
    const auto got = at_path(state, c.path);
    ASSERT_TRUE(got) << c.path << ": " << got.error().what;
    EXPECT_EQ(*got, c.part) << c.path;
  }
}

TEST(StatePath, SaysWhatIsThereWhereAPartIsNot) {
  struct {
    const char* path;
    errc code;
    const char* says;
  } const cases[] = {{"quee", errc::not_found, "agents, queue, tasks, total"},
                     {"queue[2]", errc::not_found, "list of 2"},
                     {"queue[x]", errc::invalid, "broken index"},
                     {"queue[0", errc::invalid, "broken index"},
                     {"total.x", errc::not_found, "no parts"},
                     {"agents.a2", errc::not_found, "it has a1"}};
  for (const auto& c : cases) {
    const auto got = at_path(state, c.path);
    ASSERT_FALSE(got) << c.path;
    EXPECT_EQ(got.error().code, c.code) << c.path;
    EXPECT_NE(got.error().what.find(c.says), std::string::npos) << got.error().what;
  }
}

TEST(StatePath, ChangesAreToldLeafByLeaf) {
  auto after = state;
  after["queue"].erase(0);
  after["agents"]["a2"] = {{"away", true}};
  after["total"] = 5;
  std::vector<std::string> told;
  for (const auto& c : changes_between(state, after))
    told.push_back(c.path + " " + to_json(c.before) + " " + to_json(c.after));
  const std::vector<std::string> wanted{"agents.a2 null {\"away\":true}", "queue[0].allocation \"7.1\" null",
                                        "queue[0].slots 8 1", "queue[1] {\"slots\":1} null", "total 4 5"};
  EXPECT_EQ(told, wanted);
  EXPECT_TRUE(changes_between(state, state).empty());
  EXPECT_EQ(changes_between(state, after, 2).size(), 2u);
}

} // namespace
} // namespace troupe
