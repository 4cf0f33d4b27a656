// Tests what the worker in the process of a trial does with its orders.

#include "actors/worker/worker.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace workers;

std::string show_word(const std::string& bytes) {
  const auto word = decode_worker<worker_word>(bytes).value();
  if (auto* failure = std::get_if<worker_failure>(&word))
    return "failure(" + failure->why + ")";
  const auto& s = std::get<worker_status>(word);
  return std::string(name(s.phase)) + "(#" + std::to_string(s.generation) + " " + std::to_string(s.step) +
         " of " + std::to_string(s.until) + " of " + std::to_string(s.batches) + ")";
}
std::string show_mandate(const trial::mandate& m) {
  return "until " + std::to_string(m.until) + (m.may_rebuild ? " or rebuild" : "") + " v" +
         std::to_string(m.validations) + " c" + std::to_string(m.checkpoints) +
         (m.stop.empty() ? "" : " stop:" + m.stop) + " #" + std::to_string(m.generation) +
         (m.refused.empty() ? "" : " refused");
}
std::string show_all(const std::vector<worker_action>& actions) {
  std::string text;
  for (const auto& action : actions) {
    text += text.empty() ? "" : "; ";
    if (auto* given = std::get_if<hand_over>(&action))
      text += show_mandate(given->mandate);
    else
      text += "say " + show_word(std::get<say_word>(action).word);
  }
  return text;
}

TEST(Worker, HandsOverTheSumOfItsOrdersAndRepeatsNothing) {
  worker w;
  const auto order = [&](worker_order x) {
    return show_all(w.apply(order_arrived{worker_protocol, encode_worker(x)}));
  };
  EXPECT_EQ(show_all(w.apply(phase_entered{worker_phase::ready, 0, 70, 200})),
            "say ready(#0 70 of 0 of 200)");
  EXPECT_EQ(order(train_until{200}), "until 200 v0 c0 #0; say ready(#0 70 of 200 of 200)");
  EXPECT_EQ(order(train_until{200}), "") << "a repeat";
  EXPECT_EQ(order(train_until{100}), "") << "an old one";
  EXPECT_EQ(order(checkpoint_now{1}), "until 200 v0 c1 #0; say ready(#0 70 of 200 of 200)");
  EXPECT_EQ(order(checkpoint_now{1}), "");
  EXPECT_EQ(order(validate_now{2}), "until 200 v2 c1 #0; say ready(#0 70 of 200 of 200)");
  EXPECT_EQ(show_all(w.apply(phase_entered{worker_phase::training, 0, 70, 200})),
            "say training(#0 70 of 200 of 200)");
  EXPECT_EQ(show_all(w.apply(second_passed{90})), "say training(#0 90 of 200 of 200)");
  EXPECT_EQ(order(rebuild_group{1, {0, 2}}), "until 200 v2 c1 #1; say training(#0 90 of 200 of 200)");
  EXPECT_EQ(order(rebuild_group{1, {0, 2}}), "");
  EXPECT_EQ(order(stop_training{"pause"}),
            "until 200 v2 c1 stop:pause #1; say training(#0 90 of 200 of 200)");
  EXPECT_EQ(order(stop_training{""}), "") << "a stop is never taken back";
}

TEST(Worker, SaysWhatItFailsOfAndEndsWhereItIsRefused) {
  worker w;
  EXPECT_EQ(show_all(w.apply(training_failed{"out of luck"})), "say failure(out of luck)");
  EXPECT_EQ(show_all(w.apply(link_refused{"another version"})), "until 0 v0 c0 #0 refused");
}

TEST(Worker, IgnoresWhatItCannotRead) {
  worker w;
  EXPECT_EQ(
    show_all(w.apply(order_arrived{worker_protocol + 1, encode_worker(worker_order{train_until{5}})})), "");
  EXPECT_EQ(show_all(w.apply(order_arrived{worker_protocol, "nonsense"})), "");
  EXPECT_EQ(
    show_all(w.apply(order_arrived{worker_protocol, encode_worker(worker_word{worker_failure{"no order"}})})),
    "");
}

} // namespace
} // namespace troupe
