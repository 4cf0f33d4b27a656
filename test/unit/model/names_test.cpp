#include "model/names.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Names, OfTasksAndAllocationsAreReadBack) {
  EXPECT_EQ(task_name({7}, trial_id{12}), "7.00000000-0000-4000-8000-00000000000c");
  EXPECT_EQ(named_task(task_name({7}, trial_id{12})), task_id{trial_id{12}});
  EXPECT_EQ(people_name({7}, trial_id{12}), "Trial 12 (Experiment 7)");
  EXPECT_EQ(people_name({}, task_id::of(task_kind::shell, 1, 2)),
            "shell 30000000-0000-4001-8000-000000000002");
  EXPECT_EQ(named_task("12"), task_id{trial_id{12}});
  EXPECT_EQ(named_allocation(allocation_name({7}, {{12}, {3}})), (allocation_id{{12}, {3}}));
  EXPECT_EQ(named_allocation("12.3"), (allocation_id{{12}, {3}}));
  EXPECT_EQ(job_experiment(job_name({7})), experiment_id{7});
  const auto part = named_part(part_name({{12}, {3}}, 2));
  EXPECT_EQ(part.allocation, (allocation_id{{12}, {3}}));
  EXPECT_EQ(part.node_rank, 2);
  EXPECT_EQ(part_name({{12}, {3}}, 2), "0000000c-0002-4000-a000-000000000003");
  for (const char* bad : {"", "0000000c-0002-4000-a000-00000000000", "0000000g-0002-4000-a000-000000000003",
                          "0000000c-0002-4000-b000-000000000003"})
    EXPECT_FALSE(named_part(bad).allocation) << bad;
  for (const char* bad : {"", "x", "7.", ".c", "7.00000000-0000-4000-8000-00000000000g",
                          "7.00000000-0000-4000-9000-00000000000c"})
    EXPECT_FALSE(named_task(bad)) << bad;
  for (const char* bad : {"", "12", "12.", ".3", "0.1", "7.00000000-0000-4000-8000-00000000000c.x"})
    EXPECT_FALSE(named_allocation(bad)) << bad;
}

} // namespace
} // namespace troupe
