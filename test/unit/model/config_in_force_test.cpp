// Tests the configuration with what users have set since.

#include "model/config_in_force.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

const value submitted = {{"entrypoint", "x"}, {"resources", {{"priority", 60}, {"slots_per_trial", 2}}}};

TEST(ConfigInForce, OfAnExperimentHasWhatWasSetLast) {
  experiment_row row;
  row.config = submitted;
  EXPECT_EQ(config_in_force(row), submitted) << "nobody set anything";
  row.resources = {{{}, "ann", 22, 3, 1, "other"}};
  EXPECT_EQ(config_in_force(row)["resources"], (value{{"priority", 22},
                                                      {"weight", 3.0},
                                                      {"max_slots", 1},
                                                      {"resource_pool", "other"},
                                                      {"slots_per_trial", 2}}));
  row.resources = {{{}, "ann", 0, 1, -1, ""}};
  EXPECT_EQ(config_in_force(row)["resources"],
            (value{{"priority", nullptr}, {"weight", 1.0}, {"max_slots", nullptr}, {"slots_per_trial", 2}}))
    << "no limit, and the pool's own";
  row.config = value{{"entrypoint", "x"}};
  EXPECT_EQ(config_in_force(row)["resources"]["weight"], 1.0);
  row.config = value();
  EXPECT_TRUE(config_in_force(row).is_null()) << "of an unmanaged one that sent none";
}

TEST(ConfigInForce, OfATaskHasThePriorityThatWasSetLast) {
  task_detail row;
  row.made.config = submitted;
  EXPECT_EQ(config_in_force(row), submitted);
  row.priority = 7;
  EXPECT_EQ(config_in_force(row)["resources"], (value{{"priority", 7}, {"slots_per_trial", 2}}));
}

} // namespace
} // namespace troupe
