#include "actors/inspector/operator_table.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

namespace troupe {
namespace {

const commands::row& message(const char* kind, const char* name) {
  auto found = find_operator_message(kind, name);
  EXPECT_TRUE(found) << kind << " " << name;
  return **found;
}

TEST(OperatorTable, NoActorTakesAWordTwice) {
  std::set<std::string> words;
  for (const auto& m : commands::table())
    for (const char* kind : m.is.operators.kinds)
      if (kind) {
        EXPECT_TRUE(words.insert(kind + std::string(" ") + m.is.operators.word).second) << m.is.name;
        EXPECT_STRNE(m.is.operators.word, "") << m.is.name;
      }
  EXPECT_GT(words.size(), 20u);
}

TEST(OperatorTable, WhatTheActorsNameSaysIsNotAskedFor) {
  for (const auto& row : operator_message_rows())
    for (const auto& field : row["fields"])
      EXPECT_TRUE(field["name"] != "id" && field["name"] != "agent" && field["name"] != "allocation") << row;
  EXPECT_EQ(*checked_fields(message("trial", "kill"), value::object(), "7"), value({{"id", 7}}));
}

TEST(OperatorTable, PreemptIsOfAllocationsAndOfTrials) {
  EXPECT_TRUE(find_operator_message("allocation", "preempt"));
  EXPECT_TRUE(find_operator_message("trial", "preempt"));
  const auto refused = find_operator_message("pool", "preempt");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("describe"), std::string::npos) << refused.error().what;
}

TEST(OperatorTable, RanksAreToldByTheirWorkerAllocationOrTrial) {
  for (const char* kind : {"worker", "allocation", "trial"})
    for (const char* order : {"validate", "checkpoint"})
      EXPECT_TRUE(find_operator_message(kind, order)) << kind << " " << order;
}

TEST(OperatorTable, FieldsAreCheckedByName) {
  const auto& drain = message("agent", "drain");
  EXPECT_EQ(*checked_fields(drain, {{"on", "off"}}, "a1"),
            value({{"agent", "a1"}, {"ends", false}, {"on", false}}));
  EXPECT_EQ(*checked_fields(drain, nullptr, "a1"), value({{"agent", "a1"}, {"ends", false}, {"on", true}}));
  EXPECT_EQ(*checked_fields(drain, {{"slot", "2"}}, "a1"),
            value({{"agent", "a1"}, {"ends", false}, {"on", true}, {"slot", 2}}));
  struct {
    const commands::row& of;
    value given;
    const char* says;
  } const wrong[] = {{drain, {{"on", 3}}, "'on'"},
                     {drain, {{"of", true}}, "no field 'of'"},
                     {drain, {{"agent", "a2"}}, "no field 'agent'"},
                     {drain, "on", "'fields'"},
                     {message("trial", "set_metadata"), value::object(), "'metadata' is missing"},
                     {message("trial", "set_metadata"), {{"metadata", "[1"}}, "'metadata'"},
                     {message("trial", "kill"), {{"now", true}}, "it has none"}};
  for (const auto& c : wrong) {
    const auto got = checked_fields(c.of, c.given, "7");
    ASSERT_FALSE(got) << to_json(c.given);
    EXPECT_EQ(got.error().code, errc::invalid);
    EXPECT_NE(got.error().what.find(c.says), std::string::npos) << got.error().what;
  }
}

// The section of docs/messages.md is generated from the table. If they differ, the test writes the right text
// into the build folder.
TEST(OperatorTable, ThePageOfMessagesHoldsIt) {
  std::ifstream in(TROUPE_SOURCE_DIR "/docs/messages.md");
  std::stringstream page;
  page << in.rdbuf();
  const auto section = commands::command_page();
  if (page.str().find(section) == std::string::npos) {
    std::ofstream(TROUPE_BINARY_DIR "/commands.md") << section;
    FAIL() << "docs/messages.md has not the section in " TROUPE_BINARY_DIR "/commands.md";
  }
}

} // namespace
} // namespace troupe
