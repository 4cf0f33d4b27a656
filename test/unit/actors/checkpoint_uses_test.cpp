#include "actors/cluster/checkpoint_uses.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

const time_point t0{};

/// Orders the deletions of the experiments and trials; experiment 2 and trial 30 of experiment 3.
cluster deletions() {
  cluster ids{{{9}, {90}}};
  EXPECT_EQ(ids.order_deletion({2}, "ada", t0).size(), 1u);
  EXPECT_EQ(ids.order_deletion({3}, {30}, "ada", t0).size(), 1u);
  return ids;
}

TEST(CheckpointUses, WhatIsBeingRemovedComesIntoNoUse) {
  checkpoint_uses uses;
  uses.begin_removal("a", {"u", "v"});
  uses.begin_removal("b", {"v"});
  uses.begin_removal("b", {"w"}); // a repeat
  const struct {
    const char* uuid;
    checkpoint_state state;
    std::uint64_t experiment, trial;
    const char* before; ///< while both orders are open
    const char* after;  ///< when the first has ended
  } cases[] = {
    {"x", checkpoint_state::completed, 1, 10, "", ""},
    {"u", checkpoint_state::completed, 1, 10, "has files that are being deleted", ""},
    {"v", checkpoint_state::completed, 1, 10, "has files that are being deleted",
     "has files that are being deleted"},
    {"w", checkpoint_state::completed, 1, 10, "", ""},
    {"u", checkpoint_state::deleted, 1, 10, "is deleted", "is deleted"},
    {"u", checkpoint_state::partially_deleted, 1, 10, "is partially deleted", "is partially deleted"},
    {"x", checkpoint_state::completed, 2, 20, "is being deleted", "is being deleted"},
    {"x", checkpoint_state::completed, 3, 30, "is being deleted", "is being deleted"},
    {"x", checkpoint_state::completed, 3, 31, "", ""},
  };
  const auto check = [&](const char* (*wanted)(const decltype(cases[0])&)) {
    const auto ids = deletions();
    for (const auto& c : cases) {
      checkpoint_row row;
      row.saved.uuid = c.uuid;
      row.state = c.state;
      row.experiment = {c.experiment};
      row.trial = {c.trial};
      EXPECT_EQ(uses.unusable(row, ids), wanted(c)) << c.uuid << " of trial " << c.trial;
    }
  };
  check([](const auto& c) { return c.before; });
  uses.end_removal("a");
  uses.end_removal("a");
  check([](const auto& c) { return c.after; });
}

TEST(CheckpointUses, WhatIsInUseStays) {
  checkpoint_uses uses;
  registry books;
  model_version_changed version;
  version.model = {1};
  version.version = 1;
  version.checkpoint = "registered";
  books.replay(registry_fact{version});
  uses.begin_with({4}, {"u", "v"});
  uses.begin_with({4}, {"w"});
  uses.begin_with({5}, {"v"});
  uses.begin_with({6}, {});
  EXPECT_EQ(uses.sources().size(), 2u);
  const struct {
    const char* uuid;
    std::uint64_t before, after; ///< the beginner, and the one when experiment 4 is forgotten
    bool in_use, in_use_after;
  } cases[] = {
    {"u", 4, 0, true, false},         {"v", 4, 5, true, true},   {"w", 4, 0, true, false},
    {"registered", 0, 0, true, true}, {"x", 0, 0, false, false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(uses.beginner_with(c.uuid), experiment_id{c.before}) << c.uuid;
    EXPECT_EQ(uses.in_use(c.uuid, books), c.in_use) << c.uuid;
  }
  uses.forget({4});
  for (const auto& c : cases) {
    EXPECT_EQ(uses.beginner_with(c.uuid), experiment_id{c.after}) << c.uuid;
    EXPECT_EQ(uses.in_use(c.uuid, books), c.in_use_after) << c.uuid;
  }
}

} // namespace
} // namespace troupe
