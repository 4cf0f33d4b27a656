// Tests when retention sweeps, and what it tries again.

#include "actors/retention/sweeps.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
constexpr experiment_id first{1}, second{2};
constexpr trial_id a{7}, b{8};

std::string show(const plan_sweep& x) { return "plan(" + to_string(x.id) + ")"; }
std::string show(const begin_collection& x) { return "begin(" + to_string(x.id) + ")"; }
std::string show(const end_collection& x) { return "end(" + to_string(x.id) + ")"; }
std::string show(const note_deletion& x) { return "note(" + to_string(x.trial) + ")"; }
std::string show(const remove_files& x) { return "remove(" + to_string(x.trial) + ")"; }
std::string show(const report_swept& x) { return "swept(" + to_string(x.id) + ")"; }
std::string show(const look_at_logs&) { return "logs"; }

struct row {
  sweeps_event event;
  duration at;
  std::string actions;
  duration deadline; ///< the deadline after the event, since t0
};

void play(const std::vector<row>& rows, duration look_every = 3600s) {
  sweeps machine(t0, look_every);
  for (const auto& r : rows) {
    std::string got;
    for (const auto& action : machine.apply(r.event, t0 + r.at))
      got += (got.empty() ? "" : " ") + std::visit([](const auto& x) { return show(x); }, action);
    EXPECT_EQ(got, r.actions) << "at " << r.at / 1s << " s";
    EXPECT_EQ((machine.deadline() - t0) / 1s, r.deadline / 1s) << "after " << r.at / 1s << " s";
  }
}

TEST(Sweeps, NoteOneTrialAfterTheOtherAndRemoveFilesAfterThat) {
  play({
    {sweep_asked{first, t0}, 0s, "plan(1)", 60s},
    {sweep_asked{first, t0}, 0s, "", 60s},  // the sweep is already at work
    {collection_begun{first}, 0s, "", 60s}, // nobody waits for this answer
    {sweep_planned{first, {a, b}, true}, 1s, "begin(1)", 60s},
    {sweep_planned{first, {a, b}, true}, 1s, "", 60s}, // the answer is repeated
    {deletion_noted{first, b}, 1s, "", 60s},
    {collection_begun{first}, 1s, "note(8)", 60s},
    {deletion_noted{first, a}, 2s, "", 60s}, // nobody waits for this answer
    {deletion_noted{first, b}, 2s, "remove(8) note(7)", 60s},
    {deletion_noted{first, b}, 3s, "", 60s}, // the answer is repeated
    {deletion_noted{first, a}, 3s, "remove(7) end(1)", 60s},
    {deletion_noted{first, a}, 4s, "", 60s},
    {sweep_asked{first, t0}, 4s, "", 60s}, // the sweep is still at work
    {collection_ended{first}, 4s, "swept(1)", 60s},
    {collection_ended{first}, 4s, "", 60s},
    {sweep_asked{first, t0}, 5s, "plan(1)", 60s}, // asked again, the sweep finds nothing to do
    {sweep_planned{first, {}}, 5s, "swept(1)", 60s},
  });
}

TEST(Sweeps, EndACollectionOfAnEarlierLifeThatHasNothingLeftToRemove) {
  play({
    {sweep_asked{first, t0}, 0s, "plan(1)", 60s},
    {sweep_planned{first, {}, true}, 1s, "begin(1)", 60s},
    {collection_begun{first}, 1s, "end(1)", 60s},
    {collection_ended{first}, 2s, "swept(1)", 60s},
  });
}

TEST(Sweeps, TryAgainAMinuteLaterWhereACollectionIsNotNoted) {
  play({
    {sweep_asked{first, t0}, 0s, "plan(1)", 60s},
    {sweep_planned{first, {a}, true}, 1s, "begin(1)", 60s},
    {collection_refused{first}, 2s, "", 60s},
    {collection_begun{first}, 3s, "", 60s}, // the answer came too late
    {time_passed{}, 62s, "plan(1) logs", 3662s},
    {sweep_planned{first, {a}, true}, 62s, "begin(1)", 3662s},
    {collection_begun{first}, 62s, "note(7)", 3662s},
    {collection_refused{first}, 62s, "", 3662s}, // no question about the beginning is open now
    {deletion_noted{first, a}, 62s, "remove(7) end(1)", 3662s},
    {collection_refused{first}, 63s, "", 123s}, // the end of the collection is refused
    {time_passed{}, 123s, "plan(1)", 3662s},
    {sweep_planned{first, {}, true}, 123s, "begin(1)", 3662s},
    {collection_begun{first}, 123s, "end(1)", 3662s},
    {collection_ended{first}, 124s, "swept(1)", 3662s},
  });
}

TEST(Sweeps, WaitUntilTheyAreDue) {
  play({
    {sweep_asked{first, t0 + 30s}, 0s, "", 30s},
    {sweep_asked{second, t0 + 20s}, 0s, "", 20s},
    {time_passed{}, 19s, "", 20s},
    {time_passed{}, 20s, "plan(2)", 30s},
    {sweep_asked{first, t0 + 40s}, 21s, "", 30s}, // the earlier time holds
    {time_passed{}, 30s, "plan(1)", 60s},
  });
}

TEST(Sweeps, TryAgainAMinuteLaterWhatCouldNotBeRead) {
  play({
    {sweep_asked{first, t0}, 0s, "plan(1)", 60s},
    {sweep_unplanned{first}, 1s, "", 60s},
    {time_passed{}, 60s, "logs", 61s},
    {time_passed{}, 61s, "plan(1)", 3660s},
    {sweep_planned{first, {}}, 61s, "swept(1)", 3660s},
  });
}

TEST(Sweeps, TryAnAppendFiveTimesAtOnceWhereAnotherTookTheNumber) {
  const deletion_refused taken{first, a, true};
  play({
    {sweep_asked{first, t0}, 0s, "plan(1)", 60s},
    {sweep_planned{first, {a}, true}, 1s, "begin(1)", 60s},
    {collection_begun{first}, 1s, "note(7)", 60s},
    {taken, 2s, "note(7)", 60s},
    {taken, 3s, "note(7)", 60s},
    {taken, 4s, "note(7)", 60s},
    {taken, 5s, "note(7)", 60s},
    {taken, 6s, "", 60s}, // after five attempts the deletion is put off
    {taken, 7s, "", 60s},
    {time_passed{}, 66s, "plan(1) logs", 3666s},
    {sweep_planned{first, {a}, true}, 66s, "begin(1)", 3666s},
    {collection_begun{first}, 66s, "note(7)", 3666s},
    {deletion_refused{first, a, false}, 67s, "", 127s}, // for example, the disk is full
    {time_passed{}, 127s, "plan(1)", 3666s},
  });
}

TEST(Sweeps, LookAtLogsSoonAfterTheStartAndThenAsOftenAsSaid) {
  play({{time_passed{}, 9s, "", 10s}, {time_passed{}, 10s, "logs", 20s}, {time_passed{}, 25s, "logs", 35s}},
       10s);
}

} // namespace
} // namespace troupe
