// Tests what the rows of a trial say about its state, and which parts of the answer of its pool are passed
// on.

#include "actors/cluster/explanations.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};

explained_run example() {
  explained_run x;
  x.experiment.id = {7};
  x.experiment.owner = "ada";
  x.experiment.config = value{{"resources", {{"slots_per_trial", 2}, {"priority", 10}}}};
  x.trial.id = {31};
  x.trial.experiment = {7};
  x.trial.created = t0;
  x.pool = "gpu";
  x.default_priority = 42;
  return x;
}
run_row run(std::uint64_t number, std::chrono::seconds started) {
  run_row r;
  r.run = {number};
  r.started = t0 + started;
  return r;
}
run_row placed(std::uint64_t number, std::chrono::seconds started, std::chrono::seconds at) {
  auto r = run(number, started);
  r.placed = t0 + at;
  r.on = {{"a1", {0, 1}}};
  return r;
}

/// Returns "STATE code" of the newest run of the trial.
std::string place(explained_run x, const value& said = {}, const std::string& doing = {}) {
  x.run = x.trial.runs.empty() ? run_id{} : x.trial.runs.back().run;
  const auto got = explanation_of(x, said, doing, t0 + 100s);
  for (const char* key : {"allocation", "trial", "experiment", "pool", "state", "slots", "priority", "weight",
                          "user", "since", "waitedSeconds", "position", "reason", "also", "agents",
                          "wouldFree", "reservation", "estimate", "advice"})
    EXPECT_TRUE(got.contains(key)) << key;
  return got["state"].get<std::string>() + " " + got["reason"]["code"].get<std::string>();
}

value said_by_pool(const char* code) {
  return {{"reason", {{"code", code}, {"text", "so it is"}}},
          {"also", value::array()},
          {"agents", value::array()},
          {"wouldFree", value::array()},
          {"position", 2},
          {"reservation", nullptr},
          {"estimate", nullptr},
          {"advice", "wait"},
          {"behind", "30.1"},
          {"slots", 2},
          {"priority", 5},
          {"weight", 1.0}};
}

TEST(Explanation, NamesTheStateOfATrialByItsRows) {
  auto x = example();
  EXPECT_EQ(place(x), "STARTING starting") << "its first run is about to ask";
  x.trial.runs = {run(1, 0s)};
  EXPECT_EQ(place(x, said_by_pool("busy")), "QUEUED busy");
  EXPECT_EQ(place(x), "STARTING starting") << "the pool does not know it yet";
  x.experiment.unmanaged = true;
  EXPECT_EQ(place(x), "RUNNING running") << "its own process runs it";
  x.experiment.unmanaged = false;
  x.trial.runs = {placed(1, 0s, 5s)};
  EXPECT_EQ(place(x, said_by_pool("running"), "RUNNING"), "RUNNING running");
  EXPECT_EQ(place(x, said_by_pool("running"), "STARTING"), "STARTING starting");
  EXPECT_EQ(place(x, said_by_pool("running"), "STOPPING"), "STOPPING stopping");
  EXPECT_EQ(place(x, said_by_pool("stopping")), "STOPPING stopping");
  x.trial.runs[0].ended = t0 + 50s;
  x.trial.runs[0].why = end::failed;
  EXPECT_EQ(place(x), "BACK_OFF back_off");
  x.trial.state = trial_state::paused;
  EXPECT_EQ(place(x), "PAUSED paused");
  x.trial.why = "paused by the search";
  EXPECT_EQ(place(x), "PAUSED search");
  x.experiment.state = experiment_state::paused;
  EXPECT_EQ(place(x), "PAUSED paused") << "the first that holds";
  x.experiment.state = experiment_state::active;
  x.trial.state = trial_state::stopping;
  EXPECT_EQ(place(x), "STOPPING stopping");
  x.trial.state = trial_state::completed;
  EXPECT_EQ(place(x), "ENDED ended");
}

TEST(Explanation, WhoBacksOffSaysUntilWhen) {
  auto x = example();
  x.trial.runs = {placed(1, 0s, 1s)};
  x.trial.runs[0].ended = t0 + 9s;
  x.trial.runs[0].why = end::failed;
  x.trial.runs[0].detail = "exit code 1";
  x.run = {1};
  const auto news = news_of({encode(run_ended{t0 + 9s, {1}, end::failed, 1, 0, t0 + 14s, "exit code 1"}),
                             encode(trial_progressed{t0 + 8s, 0.5})});
  EXPECT_EQ(news.progressed, t0 + 8s);
  x.retry_at = news.retry_at;
  EXPECT_EQ(explanation_of(x, {}, {}, t0 + 10s)["reason"]["text"],
            "run 1 ended (exit code 1), and the next one waits until 22:13:34 UTC");
  x.retry_at = t0 + 9s; // a run that was preempted
  EXPECT_EQ(explanation_of(x, {}, {}, t0 + 10s)["reason"]["text"],
            "run 1 ended (exit code 1), and the next one is about to ask for slots");
}

TEST(Explanation, WhoMakesRoomHearsForWhom) {
  auto x = example();
  x.trial.runs = {placed(1, 0s, 1s)};
  x.trial.runs[0].preempted = "priority";
  x.run = {1};
  auto said = said_by_pool("stopping");
  auto got = explanation_of(x, said, {}, t0 + 100s);
  EXPECT_EQ(got["reason"]["text"], "it was preempted (priority), and saves; its slots go to trial 30");
  EXPECT_EQ(got["behind"], "30.1");
  said["behind"] = nullptr;
  got = explanation_of(x, said, {}, t0 + 100s);
  EXPECT_EQ(got["reason"]["text"], "it was preempted (priority), and saves");
  EXPECT_TRUE(got["behind"].is_null());
}

TEST(Explanation, WhoIsOnADisabledSlotIsKilled) {
  auto x = example();
  x.trial.runs = {placed(1, 0s, 1s)};
  x.trial.runs[0].preempted = "disabled";
  x.run = {1};
  const auto said = said_by_pool("running"); // the pool that was made again does not know it yet
  const auto got = explanation_of(x, said, "KILLING", t0 + 9s);
  EXPECT_EQ(got["reason"]["text"], "its agent or its slots were disabled, so it is killed");
  EXPECT_EQ(explanation_of(x, said_by_pool("stopping"), "KILLING", t0 + 9s)["reason"]["text"], "so it is")
    << "the pool knows who disabled what";
}

TEST(Explanation, WhoWasKilledSaysByWhom) {
  auto x = example();
  x.trial.runs = {placed(1, 0s, 1s)};
  x.trial.runs[0].ended = t0 + 9s;
  x.trial.runs[0].detail = "signal 9";
  x.trial.state = trial_state::canceled;
  x.trial.why = "killed by ada";
  x.run = {1};
  EXPECT_EQ(explanation_of(x, {}, {}, t0 + 9s)["reason"]["text"], "was ended: killed by ada");
}

TEST(Explanation, ARunThatWasPreemptedSaysSo) {
  auto x = example();
  x.trial.runs = {placed(1, 0s, 1s), placed(2, 50s, 51s)};
  x.trial.runs[0].ended = t0 + 40s;
  x.trial.runs[0].preempted = "max_slots";
  x.run = {1};
  EXPECT_NE(explanation_of(x, {}, {}, t0 + 100s)["reason"]["text"].get<std::string>().find(
              "it was preempted (max_slots)"),
            std::string::npos);
}

TEST(Explanation, AnEarlierRunHasEnded) {
  auto x = example();
  x.trial.runs = {placed(1, 0s, 1s), placed(2, 50s, 51s)};
  x.trial.runs[0].ended = t0 + 40s;
  x.trial.runs[0].detail = "preempted: priority";
  x.run = {1};
  EXPECT_FALSE(x.open());
  const auto got = explanation_of(x, {}, {}, t0 + 100s);
  EXPECT_EQ(got["allocation"], "31.1");
  EXPECT_EQ(got["state"], "ENDED");
  EXPECT_EQ(got["reason"]["text"], "preempted: priority");
}

TEST(Explanation, WhoWaitsHasWhatItsPoolSays) {
  auto x = example();
  x.trial.runs = {run(1, 10s)};
  x.run = {1};
  const auto got = explanation_of(x, said_by_pool("behind"), {}, t0 + 100s);
  EXPECT_EQ(got["position"], 2);
  EXPECT_EQ(got["priority"], 5) << "as the pool has it, whatever the configuration says";
  EXPECT_EQ(got["waitedSeconds"], 90);
  EXPECT_EQ(got["advice"], "wait");
  EXPECT_EQ(explanation_of(x, said_by_pool("no_agents"), {}, t0 + 100s)["advice"],
            "start an agent of this pool: troupe agent --pool gpu");
  auto waits = said_by_pool("no_agents");
  waits["advice"] = ""; // its agents are expected back
  EXPECT_EQ(explanation_of(x, waits, {}, t0 + 100s)["advice"], "");
}

TEST(Explanation, ASearchsStopSaysByWhichValueAgainstWhich) {
  auto x = example();
  x.trial.state = trial_state::completed;
  x.trial.stopped = {{{31}, "worse than the best quarter", 1, 4, 0.52, 0.71}};
  const auto text = explanation_of(x, {}, {}, t0)["reason"]["text"].get<std::string>();
  EXPECT_EQ(
    text, "stopped at rung 1 (after 4): 0.52 against 0.71 that it had to beat. worse than the best quarter");
  const auto said = [&](trial_stop_decided stop) {
    x.trial.stopped = {std::move(stop)};
    return explanation_of(x, {}, {}, t0)["reason"]["text"].get<std::string>();
  };
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(said({{31}, "rung 0 (4 epochs): 0.344703, needed 0.250111", 0, 4, 0.34470275, 0.2501113644}),
            "stopped at rung 0 (4 epochs): 0.344703 against 0.250111 that it had to beat");
  EXPECT_EQ(said({{31}, "rung 1 (16 epochs): full length reached", 1, 16, 0.5123456789, nan}),
            "it reached its full length, rung 1 (16 epochs), with 0.512346");
  EXPECT_EQ(said({{31},
                  "rung 0 (4 epochs): no usable metric (NaN, infinite or missing), so it ranks last",
                  0,
                  4,
                  nan,
                  0.3}),
            "stopped at rung 0 (4 epochs): no usable metric (NaN, infinite or missing), so it ranks last");
}

TEST(Explanation, APriorityThatAUserSetCounts) {
  auto x = example();
  EXPECT_EQ(explanation_of(x, {}, {}, t0)["priority"], 10);
  x.experiment.resources = {{t0, "ada", 3, 2, -1, ""}};
  EXPECT_EQ(explanation_of(x, {}, {}, t0)["priority"], 3);
  EXPECT_EQ(explanation_of(x, {}, {}, t0)["weight"], 2.0);
  x.experiment.resources.clear();
  x.experiment.config = value::object();
  EXPECT_EQ(explanation_of(x, {}, {}, t0)["priority"], 42);
}

/// Returns "CODE: TEXT" of an experiment.
std::string told(const experiment_row& row, const std::vector<trial_row>& trials,
                 value waiting = value::array()) {
  const auto got = explanation_of(row, trials, "gpu", std::move(waiting));
  for (const char* key :
       {"experiment", "pool", "state", "trials", "since", "reason", "wouldFree", "advice", "waiting"})
    EXPECT_TRUE(got.contains(key)) << key;
  return got["reason"]["code"].get<std::string>() + ": " + got["reason"]["text"].get<std::string>();
}

TEST(ExperimentExplanation, SaysWhyInEachState) {
  auto row = example().experiment;
  row.created = t0;
  auto runs = example().trial, waits = runs;
  runs.state = trial_state::running;
  runs.runs = {placed(1, 1s, 2s)};
  waits.runs = {run(1, 3s)};
  EXPECT_EQ(told(row, {}), "starting: its next trial is about to be created");
  row.config = value{{"searcher", {{"name", "custom"}}}};
  EXPECT_EQ(told(row, {}), "search: its driver has not ordered the next trial yet");
  row.config = value();
  EXPECT_EQ(told(row, {runs, waits}), "running: 1 running, 1 waiting");
  auto fails = runs;
  fails.runs[0].ended = t0 + 9s;
  fails.runs[0].why = end::failed;
  EXPECT_TRUE(told(row, {fails}).starts_with("back_off: trial 31: run 1 ended")) << told(row, {fails});
  EXPECT_EQ(told(row, {runs, fails}), "running: 1 running, 1 waiting") << "one waits for its next run";
  EXPECT_EQ(place_of(fails, row), trial_place::waiting);
  fails.state = trial_state::stopping;
  EXPECT_EQ(place_of(fails, row), trial_place::elsewhere);
  auto of = example();
  of.trial = waits;
  of.run = {1};
  const auto said = explanation_of(of, said_by_pool("behind"), {}, t0 + 100s);
  EXPECT_EQ(told(row, {waits}, value::array({said})), "behind: trial 31: so it is");
  EXPECT_EQ(explanation_of(row, {waits}, "gpu", value::array({said}))["advice"], "wait");
  row.unmanaged = true;
  EXPECT_EQ(told(row, {waits}), "running: 1 running") << "no pool has its slots";
  EXPECT_EQ(explanation_of(row, {waits}, "gpu", value::array())["since"], to_rfc3339(t0 + 3s));
  row.unmanaged = false;
  row.state = experiment_state::paused;
  EXPECT_EQ(told(row, {}), "paused: it is paused");
  EXPECT_EQ(explanation_of(row, {}, "gpu", value::array())["advice"], "troupe experiment activate 7");
  row.state = experiment_state::stopping_killed;
  row.why = "killed by ada";
  EXPECT_EQ(told(row, {}), "stopping: it is being ended: killed by ada");
  row.state = experiment_state::canceled;
  row.ended = t0 + 9s;
  EXPECT_EQ(told(row, {}), "ended: was ended: killed by ada");
  EXPECT_EQ(explanation_of(row, {}, "gpu", value::array())["since"], to_rfc3339(t0 + 9s));
  row.why.clear();
  EXPECT_EQ(told(row, {waits}), "ended: was ended: no reason was given");
  auto killed = waits;
  killed.state = trial_state::canceled;
  killed.why = "killed by ada";
  EXPECT_EQ(told(row, {waits, killed}), "ended: was ended: trial 31 was ended: killed by ada");
  row.state = experiment_state::error;
  row.why = "every trial failed";
  EXPECT_EQ(told(row, {}), "ended: failed: every trial failed");
  row.state = experiment_state::completed;
  row.why.clear();
  EXPECT_EQ(told(row, {runs}), "ended: its search came to its end, with 1 trial");
  EXPECT_EQ(told(row, {runs, waits}), "ended: its search came to its end, with 2 trials");
}

TEST(Outlook, IsTheMedianOfEndedRunsElseTheProgress) {
  trial_row now;
  now.id = {1};
  now.runs = {placed(1, 0s, 10s)};
  EXPECT_LT(outlook_of(now, {}, t0 + 40s).seconds, 0) << "nothing is known";
  now.progress = 0.25;
  const auto by_progress = outlook_of(now, {}, t0 + 40s);
  EXPECT_EQ(by_progress.from, "progress");
  EXPECT_DOUBLE_EQ(by_progress.seconds, 90);
  auto resumed = now; // The first run took a minute, and the progress is that of both runs.
  resumed.runs[0].ended = resumed.runs[0].saved = t0 + 70s;
  resumed.runs[0].why = end::stopped;
  resumed.runs.push_back(placed(2, 80s, 80s));
  resumed.progress = 0.8;
  EXPECT_DOUBLE_EQ(outlook_of(resumed, {}, t0 + 100s).seconds, 20);
  EXPECT_DOUBLE_EQ(outlook_of(resumed, {}, t0 + 110s, t0 + 100s).seconds, 10) << "reported 10 s ago";
  EXPECT_DOUBLE_EQ(outlook_of(resumed, {}, t0 + 300s, t0 + 100s).seconds, 0);
  resumed.progress = 0.4;
  EXPECT_DOUBLE_EQ(outlook_of(resumed, {}, t0 + 100s, t0 + 58s).seconds, 40)
    << "48 s of the first run for 40 %: the second has nothing to tell yet";
  resumed.progress = 0.8;
  std::vector<trial_row> others(3);
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i].runs = {placed(1, 0s, 0s)};
    others[i].runs[0].ended = t0 + 50s * static_cast<int>(i + 1);
  }
  others.emplace_back().runs = {placed(1, 0s, 0s)}; // A trial that failed does not count.
  others.back().runs[0].ended = t0 + 1s;
  others.back().runs[0].why = end::failed;
  EXPECT_DOUBLE_EQ(outlook_of(resumed, others, t0 + 100s).seconds, 20) << "60 and 20 of 100 s are over";
  resumed.runs[0].saved = t0 + 30s; // what its first run did after that is lost
  EXPECT_DOUBLE_EQ(outlook_of(resumed, others, t0 + 100s).seconds, 60);
  EXPECT_DOUBLE_EQ(outlook_of(resumed, {}, t0 + 100s).seconds, 10) << "40 s for 80 %";
  auto halves = others; // each of them was preempted after a while
  for (auto& one : halves)
    if (one.runs[0].why == end::completed) {
      one.runs.insert(one.runs.begin(), placed(0, 0s, 0s));
      one.runs[0].ended = one.runs[0].saved = t0 + 20s;
      one.runs[0].why = end::stopped;
    }
  EXPECT_DOUBLE_EQ(outlook_of(now, halves, t0 + 40s).seconds, 90) << "20 s more than those that ran at once";
  const auto by_history = outlook_of(now, others, t0 + 40s);
  EXPECT_EQ(by_history.from, "history");
  EXPECT_DOUBLE_EQ(by_history.seconds, 70) << "the median is 100 s, and 30 s are over";
  EXPECT_EQ(by_history.saved, t0 + 10s);
  now.runs[0].saved = t0 + 35s;
  EXPECT_EQ(outlook_of(now, others, t0 + 40s).saved, t0 + 35s);
  EXPECT_DOUBLE_EQ(outlook_of(now, others, t0 + 400s).seconds, 0) << "longer than the others";
}

/// Returns a shell that was created at `t0`.
explained_task shell() {
  explained_task x;
  x.task.made.id = task_id::of(task_kind::shell, 1, 2);
  x.task.made.at = t0;
  x.task.made.owner = "ada";
  x.task.made.config = value{{"resources", {{"slots", 2}, {"priority", 10}}}};
  x.pool = "gpu";
  return x;
}

TEST(ExplainedTask, IsWhereItsRowsAndItsPoolSay) {
  const auto place = [](explained_task x, const value& said = {}, const std::string& doing = {}) {
    x.run = x.task.runs.empty() ? run_id{} : x.task.runs.back().run;
    const auto got = explanation_of(x, said, doing, t0 + 100s);
    EXPECT_EQ(got["task"], to_string(x.task.made.id));
    EXPECT_EQ(got["kind"], "shell");
    EXPECT_TRUE(got["trial"].is_null() && got["experiment"].is_null());
    EXPECT_EQ(got["user"], "ada");
    return got["state"].get<std::string>() + " " + got["reason"]["code"].get<std::string>() + " " +
           got["reason"]["text"].get<std::string>();
  };
  auto x = shell();
  EXPECT_EQ(place(x), "STARTING starting its run is about to ask for slots");
  x.task.runs = {run(1, 1s)};
  EXPECT_EQ(place(x, said_by_pool("behind")), "QUEUED behind so it is");
  x.run = {1};
  const auto waits = explanation_of(x, said_by_pool("behind"), {}, t0 + 31s);
  EXPECT_EQ(waits["behind"], "30.1");
  EXPECT_EQ(waits["waitedSeconds"], 30);
  EXPECT_EQ(waits["allocation"], to_string(x.task.made.id) + ".1");
  x.task.runs = {placed(1, 1s, 2s)};
  EXPECT_EQ(place(x, said_by_pool("running")), "RUNNING running it runs on a1");
  EXPECT_EQ(place(x, said_by_pool("running"), "STARTING"), "STARTING starting its task starts on a1");
  EXPECT_EQ(place(x, said_by_pool("stopping")),
            "STOPPING stopping it was asked to save and end; its slots go to trial 30");
  x.task.runs[0].ended = t0 + 9s;
  x.task.state = task_state::paused;
  EXPECT_EQ(place(x), "PAUSED paused it is paused; troupe task unpause " + to_string(x.task.made.id));
  x.task.state = task_state::canceled;
  x.task.why = "killed by eve";
  EXPECT_EQ(place(x), "ENDED ended was ended: killed by eve");
  x.task.state = task_state::error;
  x.task.why = "exit code 3";
  EXPECT_EQ(place(x), "ENDED ended failed: exit code 3");
}

TEST(ExplainedTask, HasWhatItAskedFor) {
  auto x = shell();
  auto got = explanation_of(x, {}, {}, t0);
  EXPECT_EQ(got["slots"], 2);
  EXPECT_EQ(got["priority"], 10);
  EXPECT_EQ(got["weight"], 1);
  x.task.priority = 7;
  EXPECT_EQ(explanation_of(x, {}, {}, t0)["priority"], 7) << "a user has set it";
  x.task.made.config = value::object();
  x.task.priority = 0;
  got = explanation_of(x, {}, {}, t0);
  EXPECT_EQ(got["slots"], 0);
  EXPECT_EQ(got["priority"], 42);
}

TEST(PreemptedSlotSeconds, CountFromTheLastCheckpointElseThePlacement) {
  auto r = placed(1, 0s, 10s);
  r.ended = t0 + 30s;
  EXPECT_EQ(preempted_slot_seconds(r, t0 + 99s), 0) << "it was not preempted";
  r.preempted = "priority";
  EXPECT_EQ(preempted_slot_seconds(r, t0 + 99s), 40);
  r.saved = t0 + 29s;
  EXPECT_EQ(preempted_slot_seconds(r, t0 + 99s), 2);
  r.ended = {};
  EXPECT_EQ(preempted_slot_seconds(r, t0 + 31s), 4) << "it still saves";
}

} // namespace
} // namespace troupe
