// Tests what the log line and the last fact of a collection of checkpoints say, and what a task on an agent
// is ordered to remove from a bucket.

#include "actors/retention/bucket_order.hpp"
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

TEST(BucketOrder, IsCarriedOutInPartsOfWhichTheLastRemovesTheTensorBoards) {
  bucket_order all{{7}, {}, collected_by::deletion, "ann", {}, all_files(), true};
  for (std::size_t i = 0; i < most_of_one_task + 1; ++i)
    all.checkpoints.push_back("u" + std::to_string(i));
  const auto first = first_part(all);
  EXPECT_EQ(first.checkpoints.size(), most_of_one_task);
  EXPECT_FALSE(first.tensorboards);
  all.checkpoints.resize(most_of_one_task);
  EXPECT_EQ(first_part(all).checkpoints.size(), most_of_one_task);
  EXPECT_TRUE(first_part(all).tensorboards);
  EXPECT_LT(to_json(details_of(first)).size(), 60'000u) << "an environment variable has to hold it";
}

TEST(BucketOrder, IsATaskWithTheNameThatClientsKnow) {
  const bucket_order one{{7}, {9}, collected_by::trial, "ann", {"u1"}, all_files(), true};
  const value details{{"by", "ann"},
                      {"cause", "trial"},
                      {"checkpoints", value::array({"u1"})},
                      {"experiment", 7},
                      {"globs", value::array({"**/*"})},
                      {"tensorboards", true},
                      {"trial", 9}};
  EXPECT_EQ(
    creation_of(one, {3}),
    (value{{"kind", "checkpoint_gc"},
           {"workspace", 3},
           {"config", {{"description", "Checkpoint GC (Experiment 7)"}, {"resources", {{"slots", 0}}}}},
           {"details", details}}));
}

TEST(BucketOrder, IsNotCarriedOutTwiceAtTheSameTime) {
  bucket_order first{{7}, {}, collected_by::deletion, "ann", {"u1", "u2"}, all_files(), true};
  const auto open = details_of(first);
  EXPECT_TRUE(covers(open, first));
  auto rest = first;
  rest.checkpoints = {"u2"};
  rest.by = "eve";
  EXPECT_TRUE(covers(open, rest)) << "u1 is gone by now";
  auto more = first, other = first, some = first, sweep = first, earlier = first;
  more.checkpoints.push_back("u3");
  other.experiment = {8};
  some.globs = {"w*"};
  sweep.cause = collected_by::policy;
  earlier.storage = 0;
  for (const auto& one : {more, other, some, sweep, earlier})
    EXPECT_FALSE(covers(open, one));
  EXPECT_FALSE(covers(value(), first));
}

TEST(BucketOrder, RefusesPatternsThatNoEnvironmentVariableHolds) {
  bucket_order one{{7}, {}, collected_by::request, "ann", {"u1"}, {std::string(32'768, 'a')}, false};
  EXPECT_TRUE(check(one));
  one.globs.push_back("b");
  ASSERT_FALSE(check(one));
  EXPECT_EQ(check(one).error().code, errc::invalid);
}

TEST(BucketOrder, FailsForTheReasonThatItsProgramSaid) {
  const auto line = [](std::string text) {
    log_line out;
    out.text = std::move(text);
    return out;
  };
  const struct {
    task_state state;
    std::string why;
    std::vector<log_line> newest_first;
    std::string says;
  } cases[] = {
    {task_state::completed, "", {line("troupe: said before")}, ""},
    {task_state::error,
     "exit code 1",
     {line("ended"), line("troupe: 1 of 2 done: denied\n")},
     "1 of 2 done: denied"},
    {task_state::error, "exit code 1", {line("Traceback")}, "exit code 1"},
    {task_state::canceled, "", {}, "it ended without a reason"},
  };
  for (const auto& c : cases) {
    task_detail ended;
    ended.made.id = task_id::of(task_kind::checkpoint_gc, 1, 2);
    ended.state = c.state;
    ended.why = c.why;
    const auto why = failure_of(ended, c.newest_first);
    EXPECT_EQ(why, c.says.empty() ? ""
                                  : "task " + to_string(ended.made.id) +
                                      ", which removes files from the bucket: " + c.says);
  }
}

} // namespace
} // namespace troupe
