// Tests what the log pump does after each event. Reading is only an action here, so no file exists.

#include "actors/host/log_pump.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using outcome = spool_read::outcome;

const time_point t0{1000s};
const allocation_id one{{1}, {1}}, two{{2}, {1}};

std::string text(const ask_position& x) { return "ask(" + x.key + " #" + std::to_string(x.question) + ")"; }
std::string text(const read_spool& x) {
  return "read(" + to_string(x.allocation) + " from " + std::to_string(x.from.offset) + " after " +
         std::to_string(x.line) + ")";
}
std::string text(const store_batch& x) { return "store(" + x.key + " #" + std::to_string(x.question) + ")"; }
std::string text(const tell_pumped& x) { return "pumped(" + to_string(x.allocation) + ")"; }

std::string show(const std::vector<log_pump_action>& actions) {
  std::string all;
  for (const auto& action : actions)
    all += (all.empty() ? "" : " ") + std::visit([](const auto& x) { return text(x); }, action);
  return all;
}

struct moment {
  log_pump_event event;
  duration at;
  std::string actions;
};

void play(std::vector<moment> moments) {
  log_pump pump(100ms);
  for (const auto& m : moments)
    EXPECT_EQ(show(pump.apply(m.event, t0 + m.at)), m.actions)
      << "at " << std::chrono::duration_cast<std::chrono::milliseconds>(m.at).count() << " ms";
}

workers::log_position line(std::uint64_t n) { return {1, n * 10, n}; }

TEST(LogPumpMachine, LooksAtARunningTaskNowAndThen) {
  play({
    {spool_opened{one, "a", "/s"}, 0ms, ""},
    {time_passed{}, 100ms, ""}, // no journal has been reached yet
    {journal_reached{true}, 150ms, ""},
    {time_passed{}, 200ms, ""}, // 100 ms have not passed since the journal was reached
    {time_passed{}, 250ms, "ask(1.1@a #1)"},
    {time_passed{}, 350ms, ""}, // the journal has not answered
    {position_told{one, 1, 3}, 360ms, ""},
    {time_passed{}, 450ms, "read(1.1 from 0 after 3)"},
    {spool_read{one, outcome::none, line(3), true}, 450ms, ""},
    {time_passed{}, 550ms, "read(1.1 from 30 after 3)"},
    {spool_read{one, outcome::lines, line(5), true}, 550ms, "store(1.1@a #2)"},
    {time_passed{}, 650ms, ""}, // the pump sends the next batch when the last one is stored
    {batch_stored{one, 2}, 660ms, ""},
    {time_passed{}, 750ms, "read(1.1 from 50 after 5)"},
  });
}

TEST(LogPumpMachine, ReadsAnEndedTaskToItsEndWithoutAPause) {
  play({
    {journal_reached{true}, 0ms, ""},
    {spool_opened{one, "a", "/s"}, 0ms, ""},
    {spool_ended{one}, 1ms, "ask(1.1@a #1)"},
    {position_told{one, 1, 0}, 2ms, "read(1.1 from 0 after 0)"},
    {spool_read{one, outcome::lines, line(2000), false}, 2ms, "store(1.1@a #2)"},
    {batch_stored{one, 2}, 3ms, "read(1.1 from 20000 after 2000)"},
    {spool_read{one, outcome::damaged, {2, 0, 2000}}, 3ms, "read(1.1 from 0 after 2000)"},
    {spool_read{one, outcome::none, {2, 0, 2000}, true}, 3ms, "pumped(1.1)"},
    {spool_ended{one}, 4ms, "pumped(1.1)"}, // asked again: all lines are already stored
  });
}

TEST(LogPumpMachine, ReadsATaskThatPrintsFastWithoutAPause) {
  play({
    {spool_opened{one, "a", "/s"}, 0ms, ""},
    {journal_reached{true}, 0ms, ""},
    {time_passed{}, 100ms, "ask(1.1@a #1)"},
    {position_told{one, 1, 2000}, 101ms, ""},
    {time_passed{}, 200ms, "read(1.1 from 0 after 2000)"},
    // the lines up to 2000 are already stored
    {spool_read{one, outcome::none, line(2000), false}, 200ms, "read(1.1 from 20000 after 2000)"},
    {spool_read{one, outcome::lines, line(4000), false}, 200ms, "store(1.1@a #2)"},
    {batch_stored{one, 2}, 203ms, "read(1.1 from 40000 after 4000)"},
    {spool_read{one, outcome::damaged, {2, 0, 4000}}, 203ms, "read(1.1 from 0 after 4000)"},
    {spool_read{one, outcome::lines, {2, 60000, 6000}, true}, 204ms, "store(1.1@a #3)"},
    {batch_stored{one, 3}, 206ms, ""}, // there are no more lines
    {time_passed{}, 300ms, "read(1.1 from 60000 after 6000)"},
    {spool_read{one, outcome::lines, {2, 80000, 8000}, false}, 300ms, "store(1.1@a #4)"},
    {journal_refused{one, 4}, 301ms, ""}, // the pump does not repeat the batch at once
    {time_passed{}, 400ms, "read(1.1 from 60000 after 6000)"},
  });
}

TEST(LogPumpMachine, HasNothingOfATaskThatSaidNothing) {
  play({
    {journal_reached{true}, 0ms, ""},
    {spool_opened{one, "a", "/s"}, 0ms, ""},
    {spool_opened{one, "a", "/s"}, 0ms, ""}, // the same spool is opened twice
    {spool_ended{one}, 1ms, "ask(1.1@a #1)"},
    {position_told{one, 1, 0}, 2ms, "read(1.1 from 0 after 0)"},
    {spool_read{one, outcome::gone}, 2ms, "pumped(1.1)"},
  });
}

TEST(LogPumpMachine, TriesAgainWithTheNextLookWhatTheJournalRefused) {
  play({
    {journal_reached{true}, 0ms, ""},
    {spool_opened{one, "a", "/s"}, 0ms, ""},
    {spool_ended{one}, 1ms, "ask(1.1@a #1)"},
    {journal_refused{one, 1}, 2ms, ""},
    {time_passed{}, 100ms, "ask(1.1@a #2)"},
    {position_told{one, 1, 9}, 101ms, ""}, // the answer to question 1, which the journal refused
    {position_told{one, 2, 0}, 101ms, "read(1.1 from 0 after 0)"},
    {spool_read{one, outcome::lines, line(2), true}, 101ms, "store(1.1@a #3)"},
    {journal_refused{one, 3}, 102ms, ""},
    {time_passed{}, 200ms, "read(1.1 from 0 after 0)"},
  });
}

TEST(LogPumpMachine, AsksAnotherJournalHowFarItIs) {
  play({
    {journal_reached{true}, 0ms, ""},
    {spool_opened{one, "a", "/s"}, 0ms, ""},
    {spool_opened{two, "a", "/t"}, 0ms, ""},
    {spool_ended{one}, 1ms, "ask(1.1@a #1)"},
    {position_told{one, 1, 0}, 2ms, "read(1.1 from 0 after 0)"},
    {spool_read{one, outcome::lines, line(2), true}, 2ms, "store(1.1@a #2)"},
    {journal_reached{false}, 3ms, ""},
    {batch_stored{one, 2}, 4ms, ""}, // the answer of the journal that is gone
    {time_passed{}, 103ms, ""},
    {journal_reached{true}, 200ms, ""},
    {time_passed{}, 300ms, "ask(1.1@a #3) ask(2.1@a #4)"},
    {position_told{one, 3, 2}, 301ms, "read(1.1 from 0 after 2)"},
    {spool_read{one, outcome::none, line(2), true}, 301ms, "pumped(1.1)"},
  });
}

TEST(LogPumpMachine, HasNoDeadlineWithoutSomethingToReadAndSomebodyToTell) {
  log_pump pump(100ms);
  static_cast<void>(pump.apply(spool_opened{one, "a", "/s"}, t0));
  EXPECT_FALSE(pump.deadline());
  static_cast<void>(pump.apply(journal_reached{true}, t0));
  EXPECT_EQ(pump.deadline(), t0 + 100ms);
  static_cast<void>(pump.apply(journal_reached{false}, t0));
  EXPECT_FALSE(pump.deadline());
}

} // namespace
} // namespace troupe
