// Tests what the configurations of an experiment and its users say about it.

#include "model/described.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ConfigWords, AreWhatAConfigurationSaysInText) {
  const auto words = words_of({{"name", "n"}, {"description", "d"}, {"labels", {"a", 3, "b"}}});
  EXPECT_EQ(words.name, "n");
  EXPECT_EQ(words.description, "d");
  EXPECT_EQ(words.labels, (std::vector<std::string>{"a", "b"}));
  for (const auto& odd : {value(), value{{"name", 3}, {"description", nullptr}, {"labels", "a"}}}) {
    const auto none = words_of(odd);
    EXPECT_EQ(none.name + none.description, "");
    EXPECT_TRUE(none.labels.empty());
  }
}

TEST(TakeContinued, WhatANewConfigurationSaysOtherwiseCounts) {
  struct {
    config_words before, now;
    std::string name, description;
    std::vector<std::string> labels;
  } cases[] = {
    {{"n", "d", {"l"}}, {"n", "d", {"l"}}, "mine", "my words", {"my label"}},
    {{"n", "d", {"l"}}, {"n1", "d", {"l"}}, "n1", "my words", {"my label"}},
    {{"n", "d", {"l"}}, {"n", "", {"l"}}, "mine", "", {"my label"}},
    {{"n", "d", {"l"}}, {"n", "d", {"l1", "l"}}, "mine", "my words", {"l1", "l"}},
    {{"n", "d", {"l"}}, {"", "d1", {}}, "mine", "d1", {}},
  };
  for (const auto& x : cases) {
    experiment_described said{{}, "ada", {7}, "mine", "my words", "my notes", {"my label"}, true, 1, 2, 3};
    take_continued(said, x.before, x.now);
    EXPECT_EQ(said.name, x.name);
    EXPECT_EQ(said.description, x.description);
    EXPECT_EQ(said.labels, x.labels);
    EXPECT_EQ(said.notes, "my notes") << "no configuration says them";
    EXPECT_TRUE(said.archived);
    EXPECT_EQ(said.save_experiment_best, -1);
    EXPECT_EQ(said.save_trial_best, -1);
    EXPECT_EQ(said.save_trial_latest, -1);
  }
}

} // namespace
} // namespace troupe
