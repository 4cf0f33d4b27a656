#include "runtime/cli/progress_view.hpp"

#include <fstream>
#include <gtest/gtest.h>

using namespace troupe;
using namespace troupe::cli;

namespace {

const time_point start{std::chrono::seconds(1'700'000'000)};

const value experiment = value::parse(R"({"experiment": {"id": 7, "name": "digits", "state": "STATE_ACTIVE",
  "startTime": "2023-11-14T22:13:20.000000Z", "progress": 0,
  "config": {"searcher": {"name": "adaptive_asha", "metric": "accuracy", "smaller_is_better": false, "max_trials": 24,
                          "time_metric": "epochs", "max_time": 16}}}})");
const value no_trials = value::parse(R"({"trials": []})");

value event(const char* text) { return value::parse(text); }

value created(int trial) {
  return {{"type", "search_stepped"},
          {"entity", "experiment/7"},
          {"input", "started"},
          {"created", {{{"trial", trial}, {"hparams", {{"lr", 0.01}}}}}},
          {"stopped", value::array()}};
}
value started(int trial, int run = 1, const char* at = "2023-11-14T22:13:21.000000Z") {
  return {{"type", "run_started"},
          {"entity", "trial/" + std::to_string(trial)},
          {"at", at},
          {"run", run},
          {"fromCheckpoint", run > 1 ? "abc" : ""},
          {"fromSteps", 40}};
}
value placed(int trial) {
  return {{"type", "allocation_placed"},
          {"entity", "allocation/" + std::to_string(trial) + ".1"},
          {"on", {{{"agent", "a1"}, {"slots", {0}}}}}};
}
value validated(int trial, double epochs, double accuracy, double progress = 0) {
  return {{"type", "search_stepped"}, {"entity", "experiment/7"},
          {"input", "validated"},     {"trial", trial},
          {"steps", epochs * 10},     {"metrics", {{"accuracy", accuracy}, {"epochs", epochs}}},
          {"progress", progress},     {"created", value::array()},
          {"stopped", value::array()}};
}
value with_stop(value step, int trial, double epochs, double accuracy, int rung, double needed) {
  step["stopped"].push_back({{"trial", trial},
                             {"why", "rung"},
                             {"rung", rung},
                             {"units", epochs},
                             {"metric", accuracy},
                             {"needed", needed}});
  return step;
}
value ended(int trial, const char* state = "COMPLETED", const char* why = "") {
  return {
    {"type", "trial_ended"}, {"entity", "trial/" + std::to_string(trial)}, {"state", state}, {"why", why}};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    text += line + "\n";
  return text;
}

terminal wide() {
  terminal t;
  t.interactive = true;
  t.width = 120;
  return t;
}

progress_view view_of(bool redraws) {
  progress_view view(setup_of(experiment), redraws);
  view.take_snapshot(experiment, no_trials);
  return view;
}

} // namespace

TEST(Progress, KnowsTheExperimentFromItsConfiguration) {
  auto s = setup_of(experiment);
  EXPECT_EQ(s.id.value, 7);
  EXPECT_EQ(s.metric, "accuracy");
  EXPECT_FALSE(s.smaller_is_better);
  EXPECT_EQ(s.unit, "epochs");
  EXPECT_EQ(s.max_units, 16);
  EXPECT_EQ(s.max_trials, 24);
  EXPECT_EQ(s.started, start);
  auto old = setup_of(
    value::parse(R"({"experiment": {"id": 1}, "config": {"searcher": {"name": "single", "metric": "loss",
    "max_length": {"batches": 900}}}})"));
  EXPECT_EQ(old.unit, "batches");
  EXPECT_EQ(old.max_units, 900);
  EXPECT_EQ(old.max_trials, 1);
  EXPECT_TRUE(old.smaller_is_better);
}

TEST(Progress, DrawsABarPerRunningTrialAndALineForEachThatStopped) {
  auto view = view_of(true);
  for (int trial : {1, 2, 3})
    view.take(created(trial));
  view.take(started(1));
  view.take(placed(1));
  view.take(started(2));
  view.take(placed(2));
  EXPECT_EQ(joined(view.lines(wide())),
            "experiment 7  digits: adaptive_asha, 24 trials of up to 16 epochs, maximizing accuracy\n");
  view.take(validated(1, 4, 0.9123, 0.1));
  view.take(validated(1, 5, 0.9, 0.11));
  view.take(with_stop(validated(2, 1, 0.5, 0.12), 2, 1, 0.5, 0, 0.875));
  EXPECT_EQ(
    joined(view.frame(wide(), start + std::chrono::seconds(66))),
    "trial 1    ██████▎············· 5/16 epochs   accuracy 0.9      best 0.9123   1 slot on a1  1 min 05 s\n"
    "trial 2    █▎·················· 1/16 epochs   accuracy 0.5      best 0.5      1 slot on a1  1 min 05 s\n"
    "experiment 7 ACTIVE █▍·········· 12 %  0/24 done, 2 running, 1 waiting  1 min 06 s  best accuracy "
    "0.9123 "
    "(trial 1)\n");
  EXPECT_EQ(joined(view.lines(wide())),
            "trial 2  stopped early at epoch 1: accuracy 0.5 at rung 0, had to beat 0.875\n");
  view.take(ended(2));
  EXPECT_EQ(
    joined(view.frame(wide(), start + std::chrono::seconds(66))),
    "trial 1    ██████▎············· 5/16 epochs   accuracy 0.9      best 0.9123   1 slot on a1  1 min 05 s\n"
    "experiment 7 ACTIVE █▍·········· 12 %  1/24 done, 1 running, 1 waiting  1 min 06 s  best accuracy "
    "0.9123 "
    "(trial 1)\n");
  view.take(
    event(R"({"type": "experiment_changed", "entity": "experiment/7", "state": "COMPLETED", "why": ""})"));
  EXPECT_TRUE(view.frame(wide(), start).empty()) << "nothing is left to redraw once it has ended";
}

TEST(Progress, FitsNarrowAndPlainTerminals) {
  auto view = view_of(true);
  for (int trial = 1; trial <= 9; ++trial) {
    view.take(created(trial));
    view.take(started(trial));
  }
  terminal narrow;
  narrow.interactive = true;
  narrow.utf8 = false;
  narrow.width = 44;
  narrow.height = 8;
  for (const auto& line : view.frame(narrow, start))
    EXPECT_LT(width_of(line), 44) << line;
  EXPECT_EQ(joined(view.frame(narrow, start)), "trial 1    ...... 0/16 epochs   -         ~\n"
                                               "trial 2    ...... 0/16 epochs   -         ~\n"
                                               "trial 3    ...... 0/16 epochs   -         ~\n"
                                               "trial 4    ...... 0/16 epochs   -         ~\n"
                                               "... and 5 more running\n"
                                               "experiment 7 ACTIVE ...... 0 %  0/24 done,~\n");
}

TEST(Progress, OfTheMainJobHasAtMostSixtyLinesInAPipe) {
  auto view = view_of(false);
  terminal pipe;
  std::vector<std::string> lines;
  double best = 0.3;
  auto take = [&](const value& x) {
    view.take(x);
    for (auto& line : view.lines(pipe))
      lines.push_back(line);
    EXPECT_TRUE(view.frame(pipe, start).empty());
  };
  for (int trial = 1; trial <= 24; ++trial) {
    take(created(trial));
    take(started(trial));
    for (int epoch = 1; epoch <= 16; ++epoch)
      take(validated(trial, epoch, best += 0.001)); // each value is the best so far
    if (trial % 2)
      take(with_stop(validated(trial, 16, 0.2), trial, 16, 0.2, 1, 0.4));
    take(ended(trial));
  }
  take(event(R"({"type": "experiment_changed", "entity": "experiment/7", "state": "COMPLETED", "why": ""})"));
  EXPECT_TRUE(view.ended());
  auto outcome =
    value::parse(R"({"id": 7, "state": "STATE_COMPLETED", "why": "", "numTrials": 24, "bestTrialId": 24,
    "bestMetric": 0.684, "bestTrial": {"id": 24, "hparams": {"lr": 0.01, "hidden": 64}, "bestValidation":
    {"totalBatches": 160, "metrics": {"avgMetrics": {"accuracy": 0.684, "loss": 0.5}}}},
    "bestCheckpoint": {"uuid": "u", "path": "/data/u"}})");
  for (auto& line : final_report(view, outcome, {{10, 0.1}, {80, 0.6}, {160, 0.684}}, {}, pipe,
                                 start + std::chrono::seconds(72)))
    lines.push_back(line);
  EXPECT_LE(lines.size(), 60u) << joined(lines);
  EXPECT_GE(lines.size(), 40u);
}

TEST(Progress, SaysWhatHappenedToTrials) {
  struct {
    value event;
    const char* line;
  } steps[] = {
    {validated(1, 4, 0.9), "trial 1  epoch 4: accuracy 0.9, best so far\n"},
    {validated(1, 5, 0.8), ""},
    {with_stop(validated(2, 1, 0.5), 2, 1, 0.5, 0, 0.875),
     "trial 2  stopped early at epoch 1: accuracy 0.5 at rung 0, had to beat 0.875\n"},
    {ended(2), ""},
    {event(
       R"({"type": "search_stepped", "entity": "experiment/7", "input": "validated", "stopped": [{"trial": 8, "rung": 2,
               "units": 16, "metric": 0.9, "needed": "NaN", "why": "rung 2 (16 epochs): full length reached"}]})"),
     ""},
    {ended(8), "trial 8  completed\n"},
    {event(
       R"({"type": "search_stepped", "entity": "experiment/7", "input": "validated", "stopped": [{"trial": 9, "rung": 0,
               "units": 1, "metric": "NaN", "needed": 0.5, "why": "rung 0 (1 epochs): no usable metric"}]})"),
     "trial 9  stopped early: rung 0 (1 epochs): no usable metric\n"},
    {event(
       R"({"type": "run_ended", "entity": "trial/3", "run": 1, "why": "failed", "restarts": 1, "detail": "exit code 1"})"),
     "trial 3  failed: exit code 1; restart 1\n"},
    {started(3, 2), "trial 3  resumes from its checkpoint at step 40\n"},
    {event(
       R"({"type": "run_ended", "entity": "trial/3", "run": 2, "why": "lost", "restarts": 1, "detail": "agent a1 lost"})"),
     "trial 3  lost its run (agent a1 lost); it runs again, no restart is counted\n"},
    {ended(3, "ERROR", "exit code 1"), "trial 3  ERROR: exit code 1   (troupe trial logs 3)\n"},
    {ended(1), "trial 1  completed at epoch 5: accuracy 0.8, best so far\n"},
    {event(
       R"({"type": "experiment_changed", "entity": "experiment/7", "state": "PAUSED", "why": "by determined"})"),
     "experiment 7 PAUSED: by determined\n"},
    {event(R"({"type": "from_the_future", "entity": "trial/1"})"), ""},
    {event(R"({"type": "search_stepped", "entity": "experiment/7", "input": "validated", "trial": "4",
               "metrics": {"accuracy": "NaN"}, "steps": 1})"),
     ""},
    {event(R"([1, 2])"), ""},
  };
  auto view = view_of(false);
  terminal pipe;
  static_cast<void>(view.lines(pipe));
  for (const auto& s : steps) {
    view.take(s.event);
    EXPECT_EQ(joined(view.lines(pipe)), s.line) << s.event.dump();
  }
  view.take_lost("connection refused");
  view.take_back();
  EXPECT_EQ(joined(view.lines(pipe)), "lost the cluster (connection refused); dialling it again\n"
                                      "the cluster is back; going on where the stream broke\n");
}

TEST(Progress, BeginsInTheMiddle) {
  progress_view view(setup_of(experiment), false);
  view.take_snapshot(experiment, value::parse(R"({"trials": [
    {"id": 1, "state": "STATE_COMPLETED", "hparams": {}, "restarts": 0, "best": {"totalBatches": 160, "metric": 0.97},
     "latest": {"totalBatches": 160, "metric": 0.96}, "stop": null, "agents": [], "startTime": "2023-11-14T22:13:20Z"},
    {"id": 2, "state": "STATE_RUNNING", "hparams": {}, "restarts": 1, "best": null, "latest": null, "stop": null,
     "agents": ["a1"], "startTime": "2023-11-14T22:13:20Z"},
    {"id": 3, "state": "STATE_QUEUED", "hparams": {}, "restarts": 0, "best": null, "latest": null, "stop": null,
     "agents": []}]})"));
  terminal pipe;
  EXPECT_EQ(joined(view.lines(pipe)),
            "experiment 7  digits: adaptive_asha, 24 trials of up to 16 epochs, maximizing accuracy\n"
            "1 of its trials had ended before; best so far trial 1, accuracy 0.97\n");
  EXPECT_EQ(view.running(), std::vector<trial_id>{trial_id{2}});
  EXPECT_EQ(view.pause_text(std::chrono::seconds(29)),
            "pausing: waiting for the checkpoint of trial 2 (at most 29 s; Ctrl-C again ends it at once)");
}

TEST(Progress, EndsWithTheBestTrialAndTheCommandThatShowsItAgain) {
  auto view = view_of(false);
  view.take(with_stop(validated(2, 1, 0.5), 2, 1, 0.5, 0, 0.875));
  terminal plain;
  plain.utf8 = false;
  auto outcome =
    value::parse(R"({"id": 7, "state": "STATE_COMPLETED", "why": "", "numTrials": 24, "bestTrialId": 5,
    "bestMetric": 0.98333, "bestTrial": {"id": 5, "hparams": {"lr": 0.0123, "hidden": 128}, "bestValidation":
    {"totalBatches": 160, "metrics": {"avgMetrics": {"accuracy": 0.98333, "loss": 0.06}}}},
    "bestCheckpoint": {"uuid": "u", "path": "/data/ckpt/u"}})");
  EXPECT_EQ(joined(final_report(view, outcome, {{10, 0.5}, {160, 0.98}}, {}, plain,
                                start + std::chrono::seconds(72))),
            "experiment 7 COMPLETED in 1 min 12 s: 24 trials, 1 stopped early\n"
            "best trial 5: accuracy 0.98333\n"
            "  hyperparameters  hidden=128 lr=0.0123\n"
            "  metrics          accuracy=0.9833 loss=0.06  (step 160)\n"
            "  checkpoint       /data/ckpt/u\n"
            "   0.98|                                                  ********\n"
            "       |                                    **************\n"
            "       |                      **************\n"
            "       |        **************\n"
            "    0.5|********\n"
            "        10                                                     160\n"
            "show it again:  troupe trial describe 5   troupe trial metrics 5   troupe web experiments/7\n");
  auto failed =
    value::parse(R"({"id": 7, "state": "STATE_ERROR", "why": "trial 1: exit code 1", "numTrials": 1,
    "bestTrialId": null, "bestTrial": null})");
  EXPECT_EQ(joined(final_report(view, failed, {}, {{7}, {"Traceback\n", "ValueError: \x1b[2Jno"}}, plain,
                                start + std::chrono::seconds(3))),
            "experiment 7 ERROR in 3.0 s: 1 trial, 1 stopped early; trial 1: exit code 1\n"
            "no trial reported accuracy   (troupe experiment logs 7)\n"
            "trial 7 said last:\n"
            "  Traceback\n"
            "  ValueError:  [2Jno\n");
}
