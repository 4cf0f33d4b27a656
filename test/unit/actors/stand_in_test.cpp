// Tests the stand-in of a worker on its agent, and the table of messages that it lets through.

#include "actors/worker/stand_in.hpp"

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace workers;

constexpr time_point t0{1'700'000'000s};
const allocation_id id{{12}, {3}};

std::string order_of(worker_order x) { return encode_worker(x); }
std::string word_of(worker_word x) { return encode_worker(x); }

std::string show_all(const std::vector<stand_in_action>& actions) {
  std::string text;
  for (const auto& action : actions) {
    text += text.empty() ? "" : "; ";
    text +=
      std::visit(overloaded{
                   [](const pass_word& x) { return "up " + show_worker(x.word); },
                   [](const pass_order& x) { return "down(" + x.process + ") " + show_worker(x.order); },
                   [](const refuse_worker& x) { return "refuse(" + x.process + ")"; },
                   [](const report_silence& x) { return x.detail; },
                 },
                 action);
  }
  return text;
}

TEST(WorkerMessages, EveryKindSurvivesTheWire) {
  const worker_order orders[] = {train_until{7, true}, validate_now{3}, checkpoint_now{4},
                                 stop_training{"pause"}, rebuild_group{2, {1, 3}}};
  const char* shown[] = {"train_until(7 or rebuild)", "validate(3)", "checkpoint(4)", "stop(pause)",
                         "rebuild(#2 1 3)"};
  for (std::size_t i = 0; i < std::size(orders); ++i)
    EXPECT_EQ(show_worker(encode_worker(orders[i])), shown[i]);
  EXPECT_EQ(show_worker(word_of(worker_status{worker_phase::broken, 1, 2, 3, 4})), "broken(#1 2 of 4 of 3)");
  EXPECT_FALSE(decode_worker<worker_order>("")) << "empty";
  EXPECT_FALSE(decode_worker<worker_order>(std::string(max_worker_bytes + 1, '\x90'))) << "too long";
  EXPECT_FALSE(decode_worker<worker_order>("\x92\xa4stop")) << "cut off";
  EXPECT_FALSE(decode_worker<worker_order>("\x92\xa4stop\x91\x05")) << "a number for a text";
}

word_heard said(worker_word x, std::string process = "p") {
  return {id, 1, std::move(process), worker_protocol, word_of(std::move(x))};
}
order_heard ordered(worker_order x) { return {id, 1, worker_protocol, order_of(std::move(x))}; }

struct row {
  stand_in_event event;
  std::chrono::seconds at;
  std::string actions;
};
void play(const std::vector<row>& rows) {
  stand_in s({id, "a", 1});
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(show_all(s.apply(rows[i].event, t0 + rows[i].at)), rows[i].actions) << "row " << i;
}
const worker_status training{worker_phase::training, 0, 10, 200, 200};

TEST(StandIn, PassesNewsUpAndOrdersDown) {
  auto later = training;
  later.step = 20;
  play({
    {ordered(train_until{200}), 0s, ""}, // the worker is not there yet
    {said(worker_status{worker_phase::ready, 0, 0, 200, 0}), 1s, "up ready(#0 0 of 0 of 200)"},
    // The worker repeats that it waits for an order.
    {said(worker_status{worker_phase::ready, 0, 0, 200, 0}), 2s, "up ready(#0 0 of 0 of 200)"},
    {ordered(train_until{200}), 2s, "down(p) train_until(200)"},
    {said(training), 3s, "up training(#0 10 of 200 of 200)"},
    {said(later), 4s, ""}, // a change of the step alone is not passed on
    // later it is passed on for a master that has forgotten it
    {said(later), 18s, "up training(#0 20 of 200 of 200)"},
    {said(worker_failure{"out of luck"}), 19s, "up failure(out of luck)"},
  });
}

TEST(StandIn, KeepsWhatItsWorkerTookAndPassesNothingOfItUp) {
  stand_in s({id, "a", 1});
  worker_heard mail{40, {}};
  for (int i = 0; i < 40; ++i)
    mail.recent.push_back({t0 + std::chrono::seconds(i), "order_arrived", {'\x01'}, i, 2 * i});
  EXPECT_EQ(show_all(s.apply(said(mail), t0)), "");
  ASSERT_EQ(s.heard().recent.size(), 32u);
  EXPECT_EQ(s.heard().taken, 40u);
  EXPECT_EQ(s.heard().recent.front().at, t0 + 8s);
  EXPECT_EQ(s.heard().recent.back().run_ns, 78);
  EXPECT_FALSE(s.status());
  show_all(s.apply(said(training), t0));
  EXPECT_EQ(s.status(), training);
  show_all(s.apply(said(worker_heard{}, "q"), t0)); // the message of another process
  EXPECT_EQ(s.heard().taken, 40u);
}

TEST(StandIn, RefusesWhatIsNotItsOwn) {
  auto other_version = said(training);
  other_version.protocol = worker_protocol + 1;
  auto other_run = said(training);
  other_run.allocation = {{12}, {4}};
  auto other_rank = said(training);
  other_rank.member = 2;
  auto bad_order = ordered(train_until{5});
  bad_order.order = "nonsense";
  auto order_of_other = ordered(train_until{5});
  order_of_other.allocation = {{13}, {1}};
  stand_in s({id, "a", 1});
  const auto refusal = show_all(s.apply(other_version, t0));
  EXPECT_TRUE(
    refusal.find(
      "up failure(the worker of rank 1 speaks version 3 of the worker protocol, the cluster version 2") == 0)
    << refusal;
  EXPECT_TRUE(refusal.ends_with("refuse(p)")) << refusal;
  EXPECT_EQ(show_all(s.apply(other_version, t0)), "refuse(p)") << "the reason was told";
  EXPECT_EQ(show_all(s.apply(ordered(train_until{5}), t0)), "");
  play({
    {said(training), 0s, "up training(#0 10 of 200 of 200)"},
    {other_run, 1s, "refuse(p)"},
    {other_rank, 1s, "refuse(p)"},
    {said(training, "q"), 1s, "refuse(q)"}, // each rank has only one process
    {bad_order, 2s, ""},
    {order_of_other, 2s, ""},
    // the stand-in continues after the bad orders
    {ordered(train_until{200}), 3s, "down(p) train_until(200)"},
  });
}

TEST(StandIn, NoticesAWorkerThatIsSilentButNotOneThatIsFrozen) {
  std::vector<row> rows{{said(training), 0s, "up training(#0 10 of 200 of 200)"}};
  for (int second = 1; second < 20; ++second)
    rows.push_back({lease_renewed{}, std::chrono::seconds(second), ""});
  rows.push_back({lease_renewed{}, 21s, "silent for 20 s (rank 1)"});
  rows.push_back({lease_renewed{}, 22s, ""}); // the silence is reported once
  play(rows);
  play({
    {said(training), 0s, "up training(#0 10 of 200 of 200)"},
    {lease_renewed{}, 1s, ""},
    {lease_renewed{}, 60s, ""}, // no renewal came in between: all processes were frozen
    {lease_renewed{}, 62s, ""},
    {said(training), 63s, "up training(#0 10 of 200 of 200)"},
  });
}

} // namespace
} // namespace troupe
