// Tests what the log line and the last fact of a collection of checkpoints say.

#include "actors/retention/collection.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

const time_point asked_at{std::chrono::seconds(100)};

checkpoint_files_removed an_order(const char* cause, const std::string& by = "ann") {
  checkpoint_files_removed order;
  order.at = asked_at;
  order.by = by;
  order.id = collection_id("0123456789abcdef");
  order.experiment = {7};
  order.cause = cause;
  order.owner = "eve";
  return order;
}

TEST(Collection, HasAnIdThatSaysItsKind) {
  const auto id = collection_id("0123456789abcdef");
  EXPECT_EQ(id.kind(), task_kind::checkpoint_gc);
  EXPECT_EQ(parse_task(to_string(id)), id);
  EXPECT_NE(collection_id("another 16 bytes"), id);
  EXPECT_EQ(collection_id("").kind(), task_kind::checkpoint_gc) << "too few bytes are no fault";
}

TEST(Collection, SaysWhatItRemovesAndWhoAskedForIt) {
  auto named = an_order(collected_by::request);
  named.checkpoints = {"u1", "u2"};
  auto some = named;
  some.globs = {"*.pt", "logs/**"};
  auto alone = an_order(collected_by::trial);
  alone.trial = {12};
  const struct {
    collection what;
    std::string text;
  } cases[] = {
    {collection(an_order(collected_by::policy, "")),
     "Removes the checkpoints of experiment 7 that it does not keep"},
    {collection(an_order(collected_by::deletion)),
     "Removes all checkpoints of experiment 7, which is deleted, as ann asked"},
    {collection(alone),
     "Removes all checkpoints of trial 12 of experiment 7, which is deleted alone, as ann asked"},
    {collection(an_order(collected_by::tensorboards)),
     "Removes the TensorBoard files of experiment 7, as ann asked"},
    {collection(named), "Removes all files of 2 checkpoints of experiment 7, as ann asked"},
    {collection(some),
     "Removes files that match *.pt, logs/** of 2 checkpoints of experiment 7, as ann asked"},
    {collection(an_order(collected_by::deletion), true),
     "The master was restarted; continues to remove all checkpoints of experiment 7, which is deleted, as "
     "ann "
     "asked"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(c.what.first_line(), (collection_line{"INFO", c.text}));
}

TEST(Collection, CountsWhatWasRemovedAndNamesWhatWasNot) {
  collection what(an_order(collected_by::deletion));
  const struct {
    removal one;
    collection_line line;
  } steps[] = {
    {{"u1", 5, ""}, {"INFO", "Checkpoint u1: 5 files removed"}},
    {{"u2", 1, ""}, {"INFO", "Checkpoint u2: 1 file removed"}},
    {{"u3", 0, ""}, {"INFO", "Checkpoint u3: no file was left"}},
    {{"", 2, ""}, {"INFO", "TensorBoard files: 2 files removed"}},
  };
  for (const auto& s : steps)
    EXPECT_EQ(what.note(s.one), s.line);
  EXPECT_EQ(what.last_line(), (collection_line{"INFO", "Files of 3 checkpoints removed"}));
  const auto done = what.end(asked_at + 5s);
  EXPECT_EQ(done.step, deletion_step::done);
  EXPECT_EQ(done.at, asked_at + 5s);
  EXPECT_EQ(done.by, "ann");
  EXPECT_EQ(done.id, what.order().id);
  EXPECT_EQ(done.removed, 3u);
  EXPECT_EQ(done.failed, 0u);
  EXPECT_EQ(what.note({"u4", 2, "read-only"}),
            (collection_line{"ERROR", "Checkpoint u4: not all files could be removed: read-only"}));
  EXPECT_EQ(what.note({"u5", 0, "busy"}).level, std::string("ERROR"));
  EXPECT_EQ(
    what.last_line(),
    (collection_line{"ERROR", "Files of 4 checkpoints removed; of 2 checkpoints some or all are left"}));
  const auto failed = what.end(asked_at + 9s);
  EXPECT_EQ(failed.step, deletion_step::failed);
  EXPECT_EQ(failed.removed, 4u);
  EXPECT_EQ(failed.failed, 2u);
  EXPECT_EQ(failed.why, "read-only") << "the first reason";
}

TEST(Collection, FailsAlsoWhereNoCheckpointIsNamed) {
  collection what(an_order(collected_by::request));
  what.note({"", 0, "no such store"});
  EXPECT_EQ(what.end(asked_at).step, deletion_step::failed);
  EXPECT_EQ(what.end(asked_at).failed, 0u);
}

TEST(Collection, WaitsForOthersOnlyWhereManyAreAtWork) {
  struct {
    std::size_t waiting, open, removers;
    bool goes;
  } const rows[] = {{1, 1, 0, true},    {1, 1, 1, true},   {1, 16, 2, true}, {1, 17, 2, false},
                    {15, 64, 1, false}, {16, 64, 1, true}, {1, 64, 0, true}, {0, 64, 2, false}};
  for (const auto& row : rows)
    EXPECT_EQ(goes_to_journal(row.waiting, row.open, row.removers), row.goes)
      << row.waiting << " " << row.open << " " << row.removers;
}

TEST(Collection, GoesOnAsAnOpenOneForTheSameWork) {
  const auto policy = an_order(collected_by::policy), deletion = an_order(collected_by::deletion);
  auto other = policy;
  other.experiment = {8};
  EXPECT_TRUE(same_collection(policy, policy));
  EXPECT_FALSE(same_collection(policy, deletion));
  EXPECT_FALSE(same_collection(policy, other));
  const auto request = an_order(collected_by::request);
  EXPECT_FALSE(same_collection(request, request)) << "each request is its own task";
}

} // namespace
} // namespace troupe
