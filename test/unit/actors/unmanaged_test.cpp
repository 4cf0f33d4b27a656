#include "actors/experiment/unmanaged.hpp"

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};

std::string shown(const std::vector<trial_fact>& facts) {
  std::string out;
  for (const auto& one : facts)
    std::visit([&](const auto& x) { out += (out.empty() ? "" : " ") + show(x); }, one);
  if (!facts.empty())
    if (const auto* last = std::get_if<trial_ended>(&facts.back()); last && !last->why.empty())
      out += " " + last->why;
  return out;
}

trial_row trial_in(trial_state state, std::vector<std::uint64_t> ended_runs = {}, bool open = false,
                   std::string why = {}) {
  trial_row row;
  row.id = {12};
  row.state = state;
  row.why = std::move(why);
  row.heard = t0;
  for (const auto run : ended_runs)
    row.runs.push_back({{run}, t0, t0 + 1s});
  if (open)
    row.runs.push_back({{ended_runs.size() + 1}, t0, {}});
  return row;
}

constexpr const char* by_silence = "no sign of life for 5 minutes";

TEST(Unmanaged, ASignInTheFutureDoesNotCount) {
  EXPECT_EQ(unmanaged::latest_sign(t0, {}, t0 + 9s), t0);
  EXPECT_EQ(unmanaged::latest_sign(t0, {t0 + 3s, t0 + 9s, t0 - 1s, t0 + 10s}, t0 + 9s), t0 + 9s);
}

TEST(Unmanaged, APatternThatHasMatchedMatchesNoMore) {
  line_matched line;
  line.pattern = "oom";
  EXPECT_EQ(unmanaged::matched({"other"}, line, t0).size(), 1u);
  EXPECT_TRUE(unmanaged::matched({"other", "oom"}, line, t0).empty());
}

TEST(Unmanaged, ARunBeginsFromTheNewestCheckpointAndEndsTheOneBefore) {
  checkpoint saved;
  saved.uuid = "c1";
  saved.steps = 40;
  struct {
    trial_row trial;
    bool resume;
    std::optional<checkpoint> newest;
    std::string answer, facts;
  } const rows[] = {
    {trial_in(trial_state::queued), false, {}, "1  0", "started(1@0) heard"},
    {trial_in(trial_state::queued), true, {}, "1  0", "started(1@0) heard"},
    {trial_in(trial_state::completed, {1}), true, saved, "2 c1 40", "started(2@40) heard"},
    {trial_in(trial_state::running, {1}, true), true, saved, "3 c1 40", "ended(2 lost) started(3@40) heard"},
  };
  for (const auto& row : rows) {
    const auto got = unmanaged::start(row.trial, row.resume, row.newest, t0);
    ASSERT_TRUE(got);
    EXPECT_EQ(text(got->run) + " " + got->checkpoint + " " + text(got->steps), row.answer);
    EXPECT_EQ(shown(got->facts), row.facts);
  }
  const auto again = unmanaged::start(trial_in(trial_state::completed, {1}), false, {}, t0);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what, "trial has already been started");
}

TEST(Unmanaged, AnArchivedExperimentTakesNoRuns) {
  experiment_row row;
  row.id = {7};
  EXPECT_TRUE(unmanaged::takes_runs(row));
  row.archived = true;
  const auto no = unmanaged::takes_runs(row);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, errc::invalid);
  EXPECT_EQ(no.error().what, "experiment 7 is archived: unarchive it first");
}

TEST(Unmanaged, ASignOfLifeIsAFactTwiceAMinuteAndWakesWhatWasSilent) {
  struct {
    trial_row trial;
    std::chrono::seconds after;
    std::string facts;
  } const rows[] = {
    {trial_in(trial_state::queued), 0s, "heard"},
    {trial_in(trial_state::running), 29s, ""},
    {trial_in(trial_state::running), 30s, "heard"},
    {trial_in(trial_state::error, {}, true, by_silence), 600s, "heard"},
    {trial_in(trial_state::error, {1}, false, "its process says that it failed"), 600s, ""},
    {trial_in(trial_state::canceled, {1}, false, "killed by eve"), 600s, ""},
    {trial_in(trial_state::completed, {1}), 600s, ""},
  };
  for (const auto& row : rows)
    EXPECT_EQ(shown(unmanaged::alive(row.trial, t0 + row.after)), row.facts) << name(row.trial.state);
}

TEST(Unmanaged, AnEndCountsOnceAndSilenceLeavesTheRunOpen) {
  using enum trial_state;
  EXPECT_EQ(shown(unmanaged::ended(trial_in(running, {}, true), completed, "", t0)),
            "ended(1 completed) done(COMPLETED)");
  EXPECT_EQ(shown(unmanaged::ended(trial_in(running, {}, true), error, "x", t0)),
            "ended(1 failed) done(ERROR) x");
  EXPECT_EQ(shown(unmanaged::ended(trial_in(running, {}, true), canceled, "killed by eve", t0)),
            "ended(1 stopped) done(CANCELED) killed by eve");
  EXPECT_EQ(shown(unmanaged::ended(trial_in(queued), canceled, "k", t0)), "done(CANCELED) k");
  EXPECT_EQ(shown(unmanaged::ended(trial_in(completed, {1}), error, "x", t0)), "");
  EXPECT_EQ(shown(unmanaged::ended(trial_in(error, {}, true, by_silence), completed, "", t0)),
            "ended(1 completed) done(COMPLETED)");

  const auto heard = t0 + 10s;
  EXPECT_EQ(shown(unmanaged::silent(trial_in(running, {}, true), heard, heard + 299s)), "");
  const auto late = unmanaged::silent(trial_in(running, {}, true), heard, heard + 300s);
  EXPECT_EQ(shown(late), std::string("done(ERROR) ") + by_silence);
  EXPECT_EQ(std::get<trial_ended>(late.front()).at, heard);
  EXPECT_EQ(shown(unmanaged::silent(trial_in(completed, {1}), heard, heard + 400s)), "");
  // a second process continued the trial, and has not reported since
  auto again = trial_in(running, {}, true);
  again.heard = heard + 200s;
  EXPECT_EQ(shown(unmanaged::silent(again, heard, heard + 499s)), "");
  EXPECT_EQ(std::get<trial_ended>(unmanaged::silent(again, heard, heard + 500s).front()).at, again.heard);
}

TEST(Unmanaged, ItsEndIsToldAtAStartUnlessItIsOld) {
  using enum experiment_state;
  struct {
    experiment_state state;
    bool unmanaged, untold;
    std::chrono::hours age;
    bool told;
  } rows[] = {
    {completed, true, true, 1h, true},    {error, true, false, 23h, true},
    {completed, true, false, 25h, false}, {completed, true, true, 25h, true},
    {completed, true, true, 721h, false}, {active, true, true, 1h, false},
    {deleting, true, true, 1h, false},    {completed, false, true, 1h, false},
  };
  for (const auto& one : rows) {
    experiment_row x;
    x.state = one.state;
    x.unmanaged = one.unmanaged;
    x.ended = t0;
    EXPECT_EQ(unmanaged::told_at_start(x, one.untold, t0 + one.age), one.told) << one.age.count();
  }
}

TEST(Unmanaged, OneThatIsSilentIsLookedAtAgainAfterAWhileAndNotAtOnce) {
  EXPECT_EQ(unmanaged::next_look(t0, {}), t0 + 300s);
  EXPECT_EQ(unmanaged::next_look(t0, t0 + 300s), t0 + 310s) << "its end is not durable yet, or cannot be";
  EXPECT_EQ(unmanaged::next_look(t0 + 200s, t0 + 300s), t0 + 500s) << "it was heard of meanwhile";
}

TEST(Unmanaged, TheExperimentIsWhatTheFurthestOfItsTrialsIs) {
  using enum trial_state;
  struct {
    experiment_state before;
    std::vector<trial_state> trials;
    std::string now; ///< the state that the experiment gets; empty: no fact
  } const rows[] = {
    {experiment_state::paused, {}, ""},
    {experiment_state::paused, {queued}, ""},
    {experiment_state::paused, {queued, running}, "ACTIVE"},
    {experiment_state::active, {running, error}, ""},
    {experiment_state::active, {completed, error}, "COMPLETED"},
    {experiment_state::active, {queued, error}, "ERROR"},
    {experiment_state::active, {canceled, error}, "ERROR"},
    {experiment_state::active, {canceled}, "CANCELED"},
    {experiment_state::completed, {completed, running}, "ACTIVE"},
    {experiment_state::deleting, {completed, running}, ""},
  };
  for (const auto& row : rows) {
    experiment_row of;
    of.id = {7};
    of.state = row.before;
    std::vector<trial_row> trials;
    for (const auto state : row.trials) {
      trials.push_back(trial_in(state));
      trials.back().id = {trials.size()};
    }
    const auto facts = unmanaged::settle(of, trials, t0);
    EXPECT_EQ(facts.empty() ? "" : std::string(name(std::get<experiment_changed>(facts.front()).state)),
              row.now);
  }
}

TEST(Unmanaged, AnEndedExperimentEndedWithItsLastTrial) {
  experiment_row of;
  of.state = experiment_state::active;
  auto first = trial_in(trial_state::completed), last = trial_in(trial_state::error, {}, false, "x");
  last.id = {13};
  first.ended = t0 + 5s;
  last.ended = t0 + 9s;
  const auto facts = unmanaged::settle(of, {first, last}, t0 + 60s);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(std::get<experiment_changed>(facts.front()).at, t0 + 9s);
}

TEST(Unmanaged, ItsTrialsAreFoundByTheirKeys) {
  unmanaged::known_trials known;
  auto trial = trial_in(trial_state::queued);
  trial.key = "a";
  known.note(trial);
  trial.state = trial_state::running;
  known.note(trial);
  trial.id = {13};
  trial.key = "b";
  known.note(trial);
  EXPECT_EQ(known.size(), 2u);
  EXPECT_EQ(known.with_key("a"), trial_id{12});
  EXPECT_EQ(known.with_key("b"), trial_id{13});
  EXPECT_EQ(known.with_key("c"), trial_id{});
}

/// The rule, by a look at every trial.
std::string settled(experiment_state before, const std::vector<trial_row>& trials) {
  using enum trial_state;
  const std::vector<trial_state> order{canceled, error, completed, running};
  const auto rank = [&](const trial_row& x) {
    return std::find(order.begin(), order.end(), x.state) - order.begin() + 1;
  };
  const trial_row* last = nullptr;
  for (const auto& one : trials)
    if (one.state != queued && (!last || rank(one) > rank(*last)))
      last = &one;
  const auto furthest = last ? last->state : queued;
  for (const auto& one : trials)
    if (last && one.ended > last->ended)
      last = &one;
  const auto now = furthest == queued      ? experiment_state::paused
                   : furthest == running   ? experiment_state::active
                   : furthest == completed ? experiment_state::completed
                   : furthest == error     ? experiment_state::error
                                           : experiment_state::canceled;
  if (now == before)
    return "";
  return std::string(name(now)) + (terminal(now) ? " " + std::to_string((last->ended - t0) / 1s) : "") +
         (now == experiment_state::error ? " trial " + to_string(last->id) + ": " + last->why : "");
}

TEST(Unmanaged, ItsStateFollowsFromChangesOfSingleTrialsAsFromAllTrials) {
  using enum trial_state;
  std::mt19937 random{7};
  const auto any = [&](std::size_t of) { return random() % of; };
  for (int round = 0; round < 50; ++round) {
    std::vector<trial_row> trials;
    unmanaged::known_trials known;
    for (int step = 0; step < 60; ++step) {
      auto at = any(6);
      if (at >= trials.size()) {
        at = trials.size();
        trials.push_back(trial_in(queued));
        trials.back().id = {10 + at};
        trials.back().key = std::to_string(at);
      } else {
        auto& one = trials[at];
        one.state =
          std::array{running, completed, error, canceled}[any(round % 2 ? 4 : 3) + (round % 2 ? 0 : 1)];
        one.ended = terminal(one.state) ? t0 + std::chrono::seconds(any(5)) : time_point{};
        one.why = std::to_string(step);
      }
      known.note(trials[at]);
      experiment_row of;
      of.state =
        std::array{experiment_state::active, experiment_state::completed, experiment_state::error}[any(3)];
      const auto facts = known.settle(of, t0 + 99s);
      std::string got;
      if (!facts.empty()) {
        const auto& x = std::get<experiment_changed>(facts.front());
        got = std::string(name(x.state)) + (terminal(x.state) ? " " + std::to_string((x.at - t0) / 1s) : "") +
              (x.why.empty() ? "" : " " + x.why);
      }
      ASSERT_EQ(got, settled(of.state, trials)) << "round " << round << ", step " << step;
    }
  }
}

TEST(Unmanaged, OfAValidationOnlyTheSearchersMetricsAreKept) {
  experiment_spec of;
  of.metric = "loss";
  validation_recorded x;
  x.trial = {12};
  x.row = 3;
  x.steps = 40;
  x.metrics = to_msgpack({{"loss", 0.5}, {"other", 1}});
  const auto got = unmanaged::heard_validation(of, x, t0);
  EXPECT_EQ(got.metrics, value({{"loss", 0.5}}));
  EXPECT_EQ(got.row, 3u);
  EXPECT_EQ(got.input, search_input::validated);
}

} // namespace
} // namespace troupe
