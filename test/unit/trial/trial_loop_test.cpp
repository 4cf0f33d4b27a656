// Tests the loop of one rank with a sink that records and a trial that counts.

#include "workers/trial/trial_loop.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>
#include <unistd.h>

namespace troupe::trial {
namespace {

namespace fs = std::filesystem;

struct recording_sink final : report_sink {
  result<void> training(std::int64_t steps, const metrics& m) override { return note("train", steps, m); }
  result<void> validation(std::int64_t steps, const metrics& m) override {
    if (steps == stop_after)
      stop = "pruned";
    return note("validate", steps, m);
  }
  result<void> checkpoint(const std::string& uuid, std::int64_t steps, const file_list& files) override {
    newest = root / uuid;
    log << "checkpoint(" << steps << ", " << files.size() << " files) ";
    return {};
  }
  result<fs::path> checkpoint_root() override { return root; }
  result<fs::path> resume_from() override { return from; }
  void progress(double) override {}
  std::string stop_reason() override { return stop; }
  result<void> finish() override { return {}; }
  std::string place() const override { return {}; }
  result<void> note(const char* what, std::int64_t steps, const metrics& m) {
    log << what << "(" << steps;
    for (const auto& [name, x] : m.all())
      log << ", " << name << " " << x;
    log << ") ";
    return {};
  }

  fs::path root, from, newest;
  std::string stop;
  std::int64_t stop_after = -1;
  std::ostringstream log;
};

struct counting_trial final : trial_program {
  result<schedule> build(trial_context&) override { return plan; }
  result<metrics> train_batch(std::int64_t step) override {
    if (step == fails_at)
      return error{errc::internal, "out of luck"};
    sum += step;
    return {{"x", double(step)}};
  }
  result<metrics> validate() override { return {{"sum", double(sum)}}; }
  result<void> save(const fs::path& folder) override {
    std::ofstream(folder / "sum") << sum;
    return {};
  }
  result<void> load(const fs::path& folder) override {
    std::ifstream(folder / "sum") >> sum;
    return {};
  }
  schedule plan{.batches = 10, .report_every = 4, .validate_every = 5, .checkpoint_every = 6};
  std::int64_t sum = 0, fails_at = -1;
};

struct bare_context final : trial_context {
  explicit bare_context(troupe::collective& group) : group_(group) {}
  troupe::collective& collective() override { return group_; }
  std::uint64_t seed() const override { return 0; }
  result<std::string> find_text(std::string_view) override { return error{}; }
  result<double> find_double(std::string_view) override { return error{}; }
  result<std::int64_t> find_integer(std::string_view) override { return error{}; }
  result<bool> find_bool(std::string_view) override { return error{}; }
  bool given(std::string_view) const override { return false; }
  troupe::collective& group_;
};

class TrialLoop : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-trial-XXXXXX";
    sink.root = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(sink.root); }
  result<void> run() {
    const auto alone = make_alone_collective();
    bare_context context(*alone);
    progress_line line(true, false);
    run_memory memory;
    return trial_loop(trial, *alone, sink, line, leader, memory).run(context, [] { return result<void>{}; });
  }

  recording_sink sink;
  counting_trial trial;
  by_hand leader;
};

TEST_F(TrialLoop, ReportsMeansValidatesAndSavesWhenTheScheduleSaysAndAtTheEnd) {
  ASSERT_TRUE(run());
  EXPECT_EQ(sink.log.str(),
            "train(4, x 2.5) validate(5, sum 15) checkpoint(6, 2 files) train(8, x 6.5) train(10, x 9.5) "
            "validate(10, sum 55) checkpoint(10, 2 files) ");
}

TEST_F(TrialLoop, AStopIsHeardBeforeTheNextBatchAndLeavesACheckpointThatGoesOnWithTheMeansUnderWay) {
  sink.stop_after = 5;
  ASSERT_TRUE(run());
  EXPECT_EQ(sink.log.str(), "train(4, x 2.5) validate(5, sum 15) checkpoint(5, 2 files) ");
  sink.log.str("");
  sink.from = sink.newest;
  sink.stop.clear();
  sink.stop_after = -1;
  trial.sum = 0;
  ASSERT_TRUE(run());
  EXPECT_EQ(
    sink.log.str(),
    "checkpoint(6, 2 files) train(8, x 6.5) train(10, x 9.5) validate(10, sum 55) checkpoint(10, 2 files) ");
}

TEST_F(TrialLoop, ARunThatResumesAtItsEndDoesNothing) {
  ASSERT_TRUE(run());
  sink.from = sink.newest;
  sink.log.str("");
  ASSERT_TRUE(run());
  EXPECT_EQ(sink.log.str(), "");
}

TEST_F(TrialLoop, AnErrorOfTheTrialNamesWhereAndWhen) {
  trial.fails_at = 7;
  EXPECT_EQ(run().error().what, "train_batch at step 7: out of luck");
  trial.plan.batches = 0;
  EXPECT_EQ(run().error().what, "build: the schedule has 0 batches; at least 1 is needed");
  sink.from = sink.root;
  trial.plan.batches = 1;
  EXPECT_THAT(run().error().what, testing::HasSubstr("troupe-trial.json is missing or damaged"));
}

} // namespace
} // namespace troupe::trial
