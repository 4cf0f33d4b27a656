// Tests what an order to one task of a tree means for the tasks below it.

#include "actors/cluster/task_tree.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

task_id generic(std::uint64_t n) { return task_id::of(task_kind::generic, n, n); }
const task_id a = generic(1), b = generic(2), c = generic(3), d = generic(4), other = generic(5);
/// Task a is the parent of b and d, and b is the parent of c. In some cases b has ended.
const task_parents parents{{b, a}, {c, b}, {d, a}};

using ids = std::vector<task_id>;

TEST(TaskTree, FindsTheRootAndWhatStandsBelow) {
  EXPECT_EQ(root_of(parents, c), a);
  EXPECT_EQ(root_of(parents, a), a);
  EXPECT_EQ(root_of(parents, other), other);
  EXPECT_EQ(below(parents, {a, b, c, d, other}, a), (ids{a, b, c, d}));
  EXPECT_EQ(below(parents, {a, c, d, other}, a), (ids{a, c, d})) << "also below one that has ended";
  EXPECT_EQ(below(parents, {a, b, c, d, other}, b), (ids{b, c}));
  EXPECT_EQ(below(parents, {a, b, c, d, other}, other), (ids{other}));
  EXPECT_EQ(below(parents, {a, c}, generic(9)), ids{}) << "it does not live";
  const task_parents circle{{a, b}, {b, a}};
  EXPECT_EQ(below(circle, {a, b}, other), ids{}) << "it ends";
  root_of(circle, a);
}

TEST(TaskTree, OnlyThoseThatSaidSoArePausedWithTheirParent) {
  struct {
    const char* what;
    std::vector<tree_member> members;
    ids paused, unpaused;
  } cases[] = {
    {"the root alone", {{a, -1, task_state::active}}, {a}, {a}},
    {"those that follow", {{a}, {b, 0, task_state::active}, {c, 0, task_state::active}}, {a, b, c}, {a}},
    {"those that said nothing", {{a}, {b, -1, task_state::active}}, {a}, {a}},
    {"those that are never paused", {{a}, {b, 1, task_state::active}}, {a}, {a}},
    {"paused ones", {{a}, {b, 0, task_state::paused}, {c, 0, task_state::stopping_paused}}, {a}, {a, b, c}},
    {"ones that end", {{a}, {b, 0, task_state::stopping_canceled}, {c, 0, task_state::error}}, {a}, {a}},
  };
  for (const auto& x : cases) {
    EXPECT_EQ(paused_with(x.members, a), x.paused) << x.what;
    EXPECT_EQ(unpaused_with(x.members, a), x.unpaused) << x.what;
  }
}

TEST(TaskTree, RefusesWhatMakesNoSenseInDeterminedsWords) {
  const auto command = task_id::of(task_kind::command, 1, 1);
  struct {
    tree_member x;
    std::string pause, unpause; ///< the refusals; empty: the order is carried out
  } cases[] = {
    {{a, -1, task_state::active}, "", "cannot unpause task X as it is in state ACTIVE"},
    {{a, 1, task_state::active},
     "cannot pause task X: it was made with noPause",
     "cannot unpause task X as it is in state ACTIVE"},
    {{command, -1, task_state::active},
     "cannot pause task X: only generic tasks are paused",
     "cannot unpause task X as it is in state ACTIVE"},
    {{a, -1, task_state::paused}, "cannot pause task X as it is in state PAUSED", ""},
    {{a, -1, task_state::stopping_paused}, "cannot pause task X as it is in state STOPPING_PAUSED", ""},
    {{a, -1, task_state::completed},
     "cannot pause task X as it is in state COMPLETED",
     "cannot unpause task X as it is in state COMPLETED"},
  };
  const auto text = [](const std::optional<error>& no) {
    EXPECT_TRUE(!no || no->code == errc::conflict);
    return no ? no->what : std::string();
  };
  for (const auto& one : cases) {
    EXPECT_EQ(text(refuses_pause(one.x, "X")), one.pause);
    EXPECT_EQ(text(refuses_unpause(one.x, "X")), one.unpause);
  }
}

} // namespace
} // namespace troupe
