// One suite for the journal, which runs on every kind of store.

#include "worlds.hpp"

#include "model/names.hpp"
#include "storage/former_places.hpp"
#include "storage/keys.hpp"
#include "storage/log_search.hpp"
#include "storage/standing_watch.hpp"
#include "storage/trial_watch.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <thread>

namespace troupe::storage {
namespace {

using testing::HasSubstr;

const time_point t0{std::chrono::seconds(1700000000)};

class Journal : public testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    if (GetParam() == std::string("memory"))
      w = std::make_unique<memory_world>();
    else
      w = std::make_unique<disk_world>();
    w->open();
  }
  journal& j() { return *w->j; }
  std::shared_ptr<reader> r() { return w->j->reads(); }

  result<void> append(const std::string& entity, std::uint64_t first, const std::vector<fact>& facts) {
    struct append x {
      entity, first, {}
    };
    for (const auto& f : facts)
      x.facts.push_back(encode(f));
    return j().append(x);
  }
  void commit() {
    auto done = j().commit();
    ASSERT_TRUE(done) << done.error().what;
  }

  /// Makes experiment 1 with the trials 1 to n, and starts run 1 of each.
  void set_up_trials(int n = 1, bool smaller_is_better = true) {
    value config{
      {"searcher", {{"name", "random"}, {"metric", "loss"}, {"smaller_is_better", smaller_is_better}}}};
    ASSERT_TRUE(
      append(cluster_entity, 0, {experiment_created{t0, {1}, config, "digits", "me", "", "text", "key-1"}}));
    search_stepped step{.at = t0};
    for (int i = 1; i <= n; ++i)
      step.created.push_back({{std::uint64_t(i)}, std::to_string(i), value{{"lr", 0.1 * i}}, 7, ""});
    ASSERT_TRUE(append("experiment/1", 0, {step}));
    for (int i = 1; i <= n; ++i)
      ASSERT_TRUE(append("trial/" + std::to_string(i), 0, {run_started{t0, {1}, "", 0}}));
    commit();
  }
  report_batch reports(allocation_id of, std::uint64_t first, int count,
                       const std::string& group = "training") {
    report_batch b{of, 0, "p", first, {}};
    for (int i = 0; i < count; ++i)
      b.reports.push_back(
        {group, std::int64_t(first) + i, t0, to_msgpack(value{{"loss", 1.0 / double(first + i)}})});
    return b;
  }

  std::unique_ptr<world> w;
};

INSTANTIATE_TEST_SUITE_P(, Journal, testing::Values("memory", "rocksdb"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Journal, KeepsFactsInTheOrderOfTheirStreamAndOfTheCluster) {
  ASSERT_TRUE(append("trial/2", 0, {trial_paused{t0}, trial_activated{t0}}));
  ASSERT_TRUE(append("trial/10", 0, {trial_activated{t0}}));
  ASSERT_TRUE(append("trial/2", 2, {trial_paused{t0 + 1s}}));
  EXPECT_TRUE(j().dirty());
  EXPECT_EQ(r()->sequence(), 0u);
  EXPECT_TRUE(r()->facts_of("trial/2")->empty()) << "visible before it is durable";
  auto done = j().commit();
  ASSERT_TRUE(done);
  EXPECT_FALSE(j().dirty());
  EXPECT_EQ(done->sequence, 4u);
  ASSERT_EQ(done->facts.size(), 4u);
  EXPECT_EQ(done->facts[3].entity, "trial/2");
  EXPECT_EQ(done->facts[3].number, 2u);
  EXPECT_EQ(done->facts[3].sequence, 4u);
  EXPECT_EQ(*r()->facts_of("trial/2"), (std::vector{encode(trial_paused{t0}), encode(trial_activated{t0}),
                                                    encode(trial_paused{t0 + 1s})}));
  EXPECT_TRUE(r()->facts_of("trial/1")->empty());
  EXPECT_EQ(*r()->entities("trial"), (std::vector<std::string>{"trial/2", "trial/10"}));
  EXPECT_TRUE(r()->entities("tria")->empty());
}

TEST_P(Journal, TellsFactsAfterAnySequenceInCommitOrder) {
  const char* entities[] = {"trial/1", "experiment/1", "trial/1", "trial/2", "trial/1"};
  std::map<std::string, std::uint64_t> next;
  std::vector<std::pair<std::string, std::uint64_t>> order;
  for (int round = 0; round < 3; ++round) {
    for (auto e : entities) {
      fact f = std::string(e).starts_with("trial") ? fact{trial_paused{t0}} : fact{experiment_changed{t0}};
      ASSERT_TRUE(append(e, next[e], {f, f}));
      for (int i = 0; i < 2; ++i)
        order.emplace_back(e, next[e]++);
    }
    commit();
  }
  for (std::uint64_t after = 0; after <= order.size(); ++after)
    for (std::size_t limit : {1, 3, 100}) {
      auto facts = r()->facts_after(after, limit);
      ASSERT_TRUE(facts) << facts.error().what;
      ASSERT_EQ(facts->size(), std::min(limit, order.size() - after)) << after;
      for (std::size_t i = 0; i < facts->size(); ++i) {
        EXPECT_EQ((*facts)[i].sequence, after + i + 1);
        EXPECT_EQ(std::pair((*facts)[i].entity, (*facts)[i].number), order[after + i]);
      }
    }
}

TEST_P(Journal, RefusesGapsAndOtherFactsButNotRepeats) {
  const fact a = trial_activated{t0}, p = trial_paused{t0}, q = trial_paused{t0 + 1s};
  ASSERT_TRUE(append("trial/1", 0, {a, p}));
  for (bool durable : {false, true}) {
    struct {
      std::uint64_t first;
      std::vector<fact> facts;
      std::optional<errc> refused;
    } cases[] = {
      {3, {a}, errc::gap}, {0, {p}, errc::gap}, {1, {a}, errc::gap}, {1, {q, a}, errc::gap},
      {0, {a, p}, {}},     {1, {p}, {}},        {0, {}, {}},         {9, {}, errc::gap},
    };
    for (const auto& c : cases) {
      auto got = append("trial/1", c.first, c.facts);
      EXPECT_EQ(bool(got), !c.refused) << "first " << c.first << (durable ? " durable" : " queued");
      if (!got && c.refused) {
        EXPECT_EQ(got.error().code, *c.refused);
      }
    }
    commit();
    EXPECT_EQ(r()->sequence(), 2u);
  }
  EXPECT_TRUE(append("trial/1", 1, {p, q})) << "a repeat that goes on";
  commit();
  EXPECT_EQ(r()->facts_of("trial/1")->size(), 3u);
  EXPECT_THAT(append("trial/1", 7, {a}).error().what, HasSubstr("expected 3"));
}

TEST_P(Journal, RefusesWhatItCannotReadAndChangesNothing) {
  EXPECT_EQ(j().append({"trial/1", 0, {encode(trial_paused{t0}), "junk"}}).error().code, errc::corrupt);
  EXPECT_EQ(j().append({"trial/1", 0, {pack(std::tuple{"unheard_of", 1, 2})}}).error().code,
            errc::unsupported);
  EXPECT_EQ(j().append({"", 0, {encode(trial_paused{t0})}}).error().code, errc::invalid);
  EXPECT_EQ(j().append({std::string("a\0b", 3), 0, {encode(trial_paused{t0})}}).error().code, errc::invalid);
  EXPECT_FALSE(j().dirty());
  EXPECT_TRUE(append("trial/1", 0, {trial_paused{t0}}));
}

TEST_P(Journal, ForgetsWhatWasOnlyQueuedInACrashAndKeepsTheRest) {
  set_up_trials();
  ASSERT_TRUE(j().report(reports({{1}, {1}}, 1, 3)));
  ASSERT_TRUE(j().log({trial_id{1}, {{.text = "one"}}, "1.1/0", 4}));
  commit();
  ASSERT_TRUE(append("trial/1", 1, {trial_paused{t0}}));
  ASSERT_TRUE(j().report(reports({{1}, {1}}, 4, 2)));
  ASSERT_TRUE(j().log({trial_id{1}, {{.text = "two"}}, "1.1/0", 8}));
  w->crash();
  EXPECT_EQ(r()->sequence(), 3u);
  EXPECT_EQ(r()->facts_of("trial/1")->size(), 1u);
  EXPECT_EQ(r()->metrics({1}, 0, 100)->size(), 3u);
  EXPECT_EQ(r()->logs(trial_id{1}, 0, 100)->size(), 1u);
  EXPECT_EQ(j().log_position("1.1/0"), 4u);
  // The senders repeat what they sent.
  EXPECT_EQ(j().report(reports({{1}, {1}}, 2, 4))->up_to, 5u);
  ASSERT_TRUE(j().log({trial_id{1}, {{.text = "two"}}, "1.1/0", 8}));
  commit();
  auto rows = r()->metrics({1}, 0, 100);
  ASSERT_EQ(rows->size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ((*rows)[i].row, i + 1);
    EXPECT_EQ((*rows)[i].steps, std::int64_t(i) + 1);
  }
  auto lines = r()->logs(trial_id{1}, 0, 100);
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[1].text, "two");
  EXPECT_EQ((*lines)[1].number, 2u);
}

TEST_P(Journal, AnswersRepeatedReportsWithTheOldReceipt) {
  set_up_trials();
  auto b = reports({{1}, {1}}, 1, 4, "validation");
  auto first = j().report(b);
  ASSERT_TRUE(first) << first.error().what;
  EXPECT_EQ(first->up_to, 4u);
  ASSERT_EQ(first->validations.size(), 4u);
  EXPECT_EQ(first->validations[2].row, 3u);
  EXPECT_EQ(first->validations[2].sequence, 3u);
  EXPECT_EQ(first->validations[2].experiment, experiment_id{1});
  // The reports are repeated while they are queued, when they are durable, and after a restart.
  for (int round = 0; round < 3; ++round) {
    auto again = j().report(b);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->up_to, 4u);
    EXPECT_TRUE(again->validations.empty());
    if (round == 0)
      commit();
    else if (round == 1)
      w->reopen();
  }
  auto overlap = j().report(reports({{1}, {1}}, 3, 3, "validation"));
  ASSERT_TRUE(overlap);
  EXPECT_EQ(overlap->up_to, 5u);
  ASSERT_EQ(overlap->validations.size(), 1u);
  EXPECT_EQ(overlap->validations[0].row, 5u);
  EXPECT_EQ(j().report(reports({{1}, {1}}, 7, 1)).error().code, errc::gap);
  EXPECT_EQ(j().report(reports({{1}, {1}}, 0, 1)).error().code, errc::invalid);
  commit();
  EXPECT_EQ(r()->metrics({1}, 0, 100, "validation")->size(), 5u);
  EXPECT_EQ(r()->metrics({1}, 0, 100, "training")->size(), 0u);
  EXPECT_EQ(r()->metrics({1}, 3, 1)->front().row, 4u);
  EXPECT_EQ(r()->metric({1}, 2)->steps, 2);
  EXPECT_EQ(r()->metric({1}, 99).error().code, errc::not_found);
}

TEST_P(Journal, RefusesOverHttpWhatTheRunHasReportedAtTheSameSteps) {
  set_up_trials();
  std::uint64_t run = 1;
  const auto told = [&](const char* process, const char* group, std::int64_t steps, const value& metrics,
                        int rank = -1) {
    report_batch b{{{1}, {run}}, rank, process, 1, {}};
    b.reports.push_back({group, steps, t0, to_msgpack(metrics)});
    auto done = j().report(b);
    if (done)
      commit();
    return done ? std::string() : std::string(name(done.error().code)) + ": " + done.error().what;
  };
  EXPECT_EQ(told("a", "validation", 5, {{"loss", 1.0}}), "");
  EXPECT_EQ(told("a", "validation", 5, {{"loss", 1.0}}), "") << "a repeat";
  EXPECT_EQ(told("b", "validation", 5, {{"acc", 0.5}}), "") << "another metric";
  EXPECT_EQ(told("c", "training", 5, {{"loss", 1.0}}), "") << "another group";
  EXPECT_EQ(told("d", "validation", 6, {{"loss", 1.0}}), "") << "other steps";
  EXPECT_EQ(told("e", "validation", 5, {{"more", 1}, {"acc", 0.6}}),
            "invalid: trial 1 has reported 'acc' of group 'validation' at step 5 already\nhint: report each "
            "metric once at a step");
  w->reopen();
  EXPECT_THAT(told("f", "validation", 5, {{"loss", 2.0}}), HasSubstr("'loss'"));
  EXPECT_EQ(told("g", "cpu", 0, {{"load", 1}}) + told("h", "cpu", 0, {{"load", 2}}), "") << "without steps";
  EXPECT_EQ(told("i", "validation", 5, {{"loss", 3.0}}, 0), "") << "not over HTTP";
  EXPECT_EQ(r()->metrics({1}, 0, 100)->size(), 7u);
  ASSERT_TRUE(append("trial/1", 1,
                     {run_ended{t0, {1}, end::lost, 0, 1, t0, "agent lost"}, run_started{t0, {2}, "", 0}}));
  run = 2;
  EXPECT_EQ(told("j", "validation", 5, {{"loss", 2.0}}), "") << "a new run trains the steps again";
}

TEST_P(Journal, CountsEachProcessOfATaskByItself) {
  set_up_trials();
  for (int rank : {0, 1})
    for (const char* process : {"a", "b"}) {
      auto b = reports({{1}, {1}}, 1, 2);
      b.rank = rank;
      b.process = process;
      EXPECT_EQ(j().report(b)->up_to, 2u);
    }
  commit();
  EXPECT_EQ(r()->metrics({1}, 0, 100)->size(), 8u);
}

TEST_P(Journal, RefusesTheReportsOfFencedAndEndedRuns) {
  set_up_trials(2);
  ASSERT_TRUE(j().report(reports({{1}, {1}}, 1, 2)));
  commit();
  EXPECT_EQ(j().report(reports({{9}, {1}}, 1, 1)).error().code, errc::conflict) << "an unknown trial";
  EXPECT_EQ(j().report(reports({{1}, {2}}, 1, 1)).error().code, errc::conflict)
    << "a run that has not started";
  ASSERT_TRUE(append("trial/1", 1, {run_ended{t0, {1}, end::lost, 0, 1, t0, "agent lost"}}));
  EXPECT_EQ(j().report(reports({{1}, {1}}, 3, 1)).error().code, errc::conflict) << "ended, not yet committed";
  EXPECT_EQ(j().report(reports({{1}, {1}}, 1, 2))->up_to, 2u) << "but a repeat is answered";
  ASSERT_TRUE(append("trial/1", 2, {run_started{t0, {2}, "", 0}}));
  EXPECT_TRUE(j().report(reports({{1}, {2}}, 1, 1))) << "the new run, in the same commit as its start";
  commit();
  w->crash();
  EXPECT_EQ(j().report(reports({{1}, {1}}, 3, 1)).error().code, errc::conflict);
  EXPECT_EQ(j().report(reports({{1}, {2}}, 2, 1))->up_to, 2u);
  commit();
  auto rows = *r()->metrics({1}, 0, 100);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].run, run_id{2});
}

TEST_P(Journal, KeepsMetricsExactly) {
  set_up_trials();
  const double odd[] = {0.1,
                        -0.0,
                        5e-324,
                        std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};
  report_batch b{{{1}, {1}}, 0, "p", 1, {}};
  for (double d : odd)
    b.reports.push_back(
      {"training", 1, t0, to_msgpack(value{{"x", d}, {"deep", {1, "a", nullptr, {{"y", d}}}}})});
  ASSERT_TRUE(j().report(b));
  commit();
  w->reopen();
  auto rows = *r()->metrics({1}, 0, 100);
  ASSERT_EQ(rows.size(), std::size(odd));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].metrics, b.reports[i].metrics);
    auto back = (*parse_msgpack(rows[i].metrics))["x"].get<double>();
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(odd[i]));
  }
}

TEST_P(Journal, KeepsTheLanesBounded) {
  w->options.lane_bytes = 1000;
  w->reopen();
  set_up_trials();
  int taken = 0;
  std::uint64_t next = 1;
  for (; j().report(reports({{1}, {1}}, next, 2)); next += 2)
    ++taken;
  EXPECT_GT(taken, 1);
  EXPECT_EQ(j().report(reports({{1}, {1}}, next, 2)).error().code, errc::busy);
  std::uint64_t position = 0;
  auto line = [&] { return log_batch{trial_id{1}, {{.text = std::string(200, 'x')}}, "s", position + 1}; };
  for (; j().log(line()); ++position)
    ;
  EXPECT_EQ(j().log(line()).error().code, errc::busy);
  EXPECT_GE(position, 1u);
  EXPECT_TRUE(append("trial/1", 1, {trial_paused{t0}})) << "facts are never held up by the other lanes";
  EXPECT_EQ(j().log_position("s"), 0u) << "queued, not stored";
  commit();
  EXPECT_FALSE(j().dirty());
  EXPECT_EQ(r()->metrics({1}, 0, 100)->size(), next - 1);
  EXPECT_EQ(j().log_position("s"), position);
  EXPECT_EQ(r()->logs(trial_id{1}, 0, 1000)->size(), position);
  EXPECT_TRUE(j().log(line()));
  for (; j().log(line()); ++position)
    ;
  EXPECT_TRUE(j().report(reports({{1}, {1}}, next, 2))) << "lines leave room for reports";
}

TEST_P(Journal, TakesOneBatchThatIsLargerThanTheLane) {
  w->options.lane_bytes = 1000;
  w->reopen();
  set_up_trials();
  ASSERT_TRUE(j().report(reports({{1}, {1}}, 1, 200)));
  commit();
  ASSERT_TRUE(j().log({trial_id{1}, std::vector<log_line>(200, {.text = "many"}), "s", 9}));
  commit();
  EXPECT_EQ(r()->metrics({1}, 0, 1000)->size(), 200u);
  EXPECT_EQ(r()->logs(trial_id{1}, 0, 1000)->size(), 200u);
}

TEST_P(Journal, FindsLinesThatMayHoldAText) {
  for (std::uint64_t i = 1; i <= 10; ++i)
    ASSERT_TRUE(j().log({trial_id{3},
                         {{.stream = "stdout", .text = i % 3 == 0 ? "fizz " + std::to_string(i) : "no"}},
                         "s",
                         i}));
  ASSERT_TRUE(j().log({trial_id{4}, {{.text = "fizz of another"}}, "t", 5}));
  commit();
  struct wanted {
    std::uint64_t after = 0;
    std::string_view text;
    std::size_t most_looked_at = 0, most_found = 0;
  };
  const auto found = [&](const wanted& x) {
    line_search what{trial_id{3}, x.after, {}, x.most_looked_at, x.most_found};
    if (!x.text.empty())
      what.next = [&x](std::string_view texts, std::size_t from) { return texts.find(x.text, from); };
    auto got = find_lines(*r(), what);
    EXPECT_TRUE(got) << got.error().what;
    std::string all;
    for (const auto& line : got->lines)
      all += std::to_string(line.number) + ":" + line.text + " ";
    return all + "last " + std::to_string(got->last) + " of " + std::to_string(got->looked_at) +
           (got->at_end ? " end" : "");
  };
  EXPECT_EQ(found({.text = "fizz", .most_looked_at = 99, .most_found = 99}),
            "3:fizz 3 6:fizz 6 9:fizz 9 last 10 of 10 end");
  EXPECT_EQ(found({.text = "fizz", .most_looked_at = 99, .most_found = 2}), "3:fizz 3 6:fizz 6 last 6 of 6");
  EXPECT_EQ(found({.after = 6, .text = "fizz", .most_looked_at = 2, .most_found = 9}), "last 8 of 2");
  EXPECT_EQ(found({.after = 8, .text = "fizz", .most_looked_at = 9, .most_found = 9}),
            "9:fizz 9 last 10 of 2 end");
  EXPECT_EQ(found({.after = 8, .text = "", .most_looked_at = 9, .most_found = 9}),
            "9:fizz 9 10:no last 10 of 2 end");
  EXPECT_EQ(found({.after = 10, .text = "fizz", .most_looked_at = 9, .most_found = 9}), "last 10 of 0 end");
}

TEST_P(Journal, PagesThroughLogsBothWays) {
  for (int i = 1; i <= 10; ++i)
    ASSERT_TRUE(j().log({trial_id{3},
                         {{.at = t0,
                           .agent = "a",
                           .rank = 1,
                           .stream = "stdout",
                           .level = "INFO",
                           .text = "line " + std::to_string(i)}},
                         "3.1/1",
                         std::uint64_t(i) * 10}));
  ASSERT_TRUE(j().log({trial_id{4}, {{.text = "of another trial"}}, "4.1/0", 5}));
  ASSERT_TRUE(j().log({trial_id{3}, {{.text = "repeated"}}, "3.1/1", 100}));
  commit();
  auto numbers = [](const result<std::vector<log_line>>& lines) {
    std::vector<std::uint64_t> n;
    for (const auto& l : *lines)
      n.push_back(l.number);
    return n;
  };
  EXPECT_EQ(numbers(r()->logs(trial_id{3}, 0, 3)), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(numbers(r()->logs(trial_id{3}, 8, 100)), (std::vector<std::uint64_t>{9, 10}));
  EXPECT_EQ(numbers(r()->logs_before(trial_id{3}, 4, 2)), (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(numbers(r()->logs_before(trial_id{3}, ~0ull, 2)), (std::vector<std::uint64_t>{10, 9}));
  auto line = r()->logs(trial_id{3}, 1, 1)->front();
  EXPECT_EQ(std::tuple(line.text, line.agent, line.rank, line.stream, line.level, line.at),
            std::tuple("line 2", "a", 1, "stdout", "INFO", t0));
}

TEST_P(Journal, LinesAreReadInAnyPieces) {
  std::mt19937 random(7);
  const auto upto = [&](std::size_t most) { return random() % (most + 1); };
  std::vector<log_line> all;
  for (std::uint64_t n = 1; n <= 40; ++n) {
    log_batch some{trial_id{3}, {}, "3.1/0", n};
    for (auto left = n % 5 == 0 ? 2000 : 1 + upto(20); left > 0; --left) {
      auto& line = some.lines.emplace_back();
      line = {
        all.size() + 1, t0 + std::chrono::seconds{upto(100)} - std::chrono::seconds{50}, {trial_id{3}, {1}}};
      line.agent = upto(9) ? "a" : "b";
      line.rank = static_cast<int>(upto(30) / 30);
      line.stream = upto(5) ? "stdout" : "stderr";
      line.level = upto(20) ? "" : "INFO";
      line.text = upto(200) ? std::string(upto(60), 'x') + (upto(30) ? "" : "needle") : "two\nneedle lines\n";
      all.push_back(line);
    }
    ASSERT_TRUE(j().log(some));
    if (n % 3 == 0)
      commit();
  }
  commit();
  w->reopen();
  const auto same = [](const log_line& a, const log_line& b) { return pack(a) == pack(b); };
  for (int i = 0; i < 300; ++i) {
    const auto after = upto(all.size() + 2), limit = i % 2 ? 1 + upto(5) : 1 + upto(3000);
    std::vector<log_line> wanted;
    for (auto n = after; n < all.size() && wanted.size() < limit; ++n)
      wanted.push_back(all[n]);
    auto got = r()->logs(trial_id{3}, after, limit);
    ASSERT_TRUE(got) << got.error().what;
    ASSERT_TRUE(std::equal(got->begin(), got->end(), wanted.begin(), wanted.end(), same))
      << after << " " << limit;
    wanted.clear();
    for (auto n = std::min<std::size_t>(after, all.size() + 1); n > 1 && wanted.size() < limit; --n)
      wanted.push_back(all[n - 2]);
    got = r()->logs_before(trial_id{3}, after, limit);
    ASSERT_TRUE(got) << got.error().what;
    ASSERT_TRUE(std::equal(got->begin(), got->end(), wanted.begin(), wanted.end(), same))
      << after << " " << limit;

    line_search what{trial_id{3}, after, {}, 1 + upto(3000), 1 + upto(i % 2 ? 3 : 300)};
    what.next = [](std::string_view texts, std::size_t from) { return texts.find("needle", from); };
    auto found = find_lines(*r(), what);
    ASSERT_TRUE(found) << found.error().what;
    ASSERT_LE(found->looked_at, what.most_looked_at);
    ASSERT_LE(found->lines.size(), what.most_found);
    ASSERT_EQ(found->last, after + found->looked_at);
    ASSERT_TRUE(found->at_end || found->looked_at == what.most_looked_at ||
                found->lines.size() == what.most_found);
    ASSERT_EQ(found->at_end, after + found->looked_at >= all.size());
    auto line = found->lines.begin();
    for (auto n = after; n < found->last; ++n)
      if (all[n].text.find("needle") != std::string::npos) {
        ASSERT_TRUE(line != found->lines.end() && same(*line, all[n])) << "line " << n + 1;
        ++line;
      }
    ASSERT_EQ(line, found->lines.end());
  }
  EXPECT_EQ(r()->logs(trial_id{4}, 0, 9)->size(), 0u);
  EXPECT_EQ(r()->logs_before(trial_id{2}, 9, 9)->size(), 0u);
}

TEST_P(Journal, KeepsTheNewestSnapshotOfEachEntity) {
  set_up_trials(2);
  EXPECT_EQ(j().keep_snapshot("trial/1", {2, "of facts to come"}).error().code, errc::gap);
  EXPECT_FALSE(*r()->snapshot_of("trial/1"));
  EXPECT_TRUE(j().keep_snapshot("trial/1", {0, "old"}));
  EXPECT_TRUE(j().keep_snapshot("trial/1", {1, std::string("new\0\xff", 5)}));
  EXPECT_TRUE(j().keep_snapshot("trial/2", {1, ""}));
  EXPECT_TRUE(j().dirty());
  commit();
  w->reopen();
  auto kept = r()->snapshot_of("trial/1");
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->facts, 1u);
  EXPECT_EQ((*kept)->bytes, std::string("new\0\xff", 5));
  EXPECT_TRUE(*r()->snapshot_of("trial/2"));
  EXPECT_FALSE(*r()->snapshot_of("trial/3"));
  EXPECT_EQ(r()->facts_of("trial/1")->size(), 1u) << "facts stay";
}

TEST_P(Journal, ErasesTheLogOfOneTrial) {
  set_up_trials(2);
  for (std::uint64_t trial : {1, 2})
    EXPECT_TRUE(
      j().log({trial_id{trial}, {{.text = "a"}, {.text = "b"}}, std::to_string(trial) + ".1/0", 2}));
  commit();
  EXPECT_TRUE(j().erase_log(trial_id{1}));
  EXPECT_TRUE(j().dirty());
  commit();
  EXPECT_TRUE(r()->logs(trial_id{1}, 0, 100)->empty());
  EXPECT_EQ(r()->logs(trial_id{2}, 0, 100)->size(), 2u);
  EXPECT_TRUE(j().erase_log(trial_id{1})) << "again is not a fault";
  EXPECT_TRUE(j().log({trial_id{1}, {{.text = "late"}}, "1.1/0", 3}));
  commit();
  w->reopen();
  ASSERT_EQ(r()->logs(trial_id{1}, 0, 100)->size(), 1u);
  EXPECT_EQ(r()->logs(trial_id{1}, 0, 100)->front().text, "late");
  EXPECT_EQ(r()->logs(trial_id{2}, 0, 100)->size(), 2u);
}

TEST_P(Journal, ErasesManyReportsFewReportsAndThoseThatAreNotStoredYet) {
  set_up_trials(3);
  for (const auto& [trial, count] : std::map<std::uint64_t, int>{{1, 300}, {2, 3}, {3, 4}})
    ASSERT_TRUE(j().report(reports({trial_id{trial}, {1}}, 1, count)));
  commit();
  ASSERT_TRUE(j().report(reports({trial_id{2}, {1}}, 4, 2)));
  for (std::uint64_t trial : {1, 2})
    EXPECT_TRUE(j().erase_log(trial_id{trial}, true));
  ASSERT_TRUE(j().report(reports({trial_id{3}, {1}}, 5, 2)));
  commit();
  for (int opened = 0; opened < 2; ++opened, w->reopen()) {
    EXPECT_TRUE(r()->metrics({1}, 0, 1000)->empty());
    EXPECT_TRUE(r()->metrics({2}, 0, 1000)->empty());
    EXPECT_EQ(r()->metrics({3}, 0, 1000)->size(), 6u);
  }
}

TEST_P(Journal, ForgetsADeletedExperimentAndKeepsRecords) {
  set_up_trials(2);
  const checkpoint saved{"u", 10, {{"a", 3}}, value{{"m", 1}}, "/p", {}};
  ASSERT_TRUE(append("trial/1", 1, {checkpoint_recorded{t0, {1}, saved}}));
  ASSERT_TRUE(append("trial/1", 2, {checkpoint_described{t0, "ada", "u", value{{"m", 2}}}}));
  ASSERT_TRUE(j().report(reports({trial_id{1}, {1}}, 1, 3)));
  ASSERT_TRUE(j().report(reports({trial_id{2}, {1}}, 1, 3)));
  commit();
  EXPECT_EQ(r()->checkpoint("u")->saved.metadata["m"], 2) << "as people described it last";
  ASSERT_TRUE(
    append(cluster_entity, 1,
           {group_changed{t0, "ada", {1}, "a", {}, false}, group_changed{t0, "ada", {2}, "b", {}, false},
            group_changed{t0, "ada", {1}, "a", {}, true},
            experiment_deleted{t0, "ada", {1}, deletion_step::done, "", {{1}, {2}}}}));
  for (std::uint64_t trial : {1, 2})
    EXPECT_TRUE(j().erase_log(trial_id{trial}, true));
  commit();
  for (int opened = 0; opened < 2; ++opened) {
    const auto* places = dynamic_cast<const former_places*>(&*r());
    ASSERT_TRUE(places);
    EXPECT_EQ(*places->former_workspace(experiment_id{1}), workspace_id{1});
    EXPECT_EQ(*places->former_workspace(experiment_id{9}), workspace_id{}) << "there was none";
    EXPECT_EQ(r()->experiment({1}).error().code, errc::not_found);
    EXPECT_TRUE(r()->experiments()->empty());
    EXPECT_TRUE(r()->experiment_standings()->empty());
    EXPECT_TRUE(r()->experiments_with_key("key-1")->empty());
    EXPECT_TRUE(r()->trials({1})->empty());
    EXPECT_TRUE(r()->trial_ids({1})->empty());
    EXPECT_EQ(r()->trial({1}).error().code, errc::not_found);
    EXPECT_EQ(r()->task(trial_id{1}).error().code, errc::not_found);
    EXPECT_EQ(r()->checkpoint("u").error().code, errc::not_found);
    EXPECT_TRUE(r()->metrics({1}, 0, 100)->empty());
    EXPECT_TRUE(r()->metrics({2}, 0, 100)->empty());
    EXPECT_EQ(r()->newest_trial(), trial_id{2}) << "numbers do not come again";
    const auto groups = records_of<group_changed>(*r());
    ASSERT_TRUE(groups);
    ASSERT_EQ(groups->size(), 1u) << "what is deleted is left out";
    EXPECT_EQ(groups->front().name, "b");
    EXPECT_EQ(r()->records("group_changed", keys::one(1))->size(), 1u);
    EXPECT_TRUE(r()->records("group", {})->empty()) << "a tag is whole";
    w->reopen();
  }
}

TEST_P(Journal, FindsARunByAnyNameThatItHasHad) {
  set_up_trials(2);
  project_changed cats;
  cats.id = {4};
  cats.key = "CAT";
  ASSERT_TRUE(append(cluster_entity, 1, {cats, experiment_moved{t0, "ada", {1}, {4}}}));
  commit();
  cats.key = "FELIS";
  ASSERT_TRUE(append(cluster_entity, 3, {cats}));
  commit();
  const auto named = [&](const char* text) {
    const auto id = r()->trial_with_name(*parse_local_name(text));
    return id ? to_string(*id) : std::string(name(id.error().code));
  };
  const auto numbers = [&] {
    std::vector<std::uint64_t> all;
    for (const auto& row : *r()->trials({1}))
      all.push_back(row.number);
    return all;
  };
  for (int opened = 0; opened < 3; ++opened) {
    EXPECT_EQ(numbers(), (std::vector<std::uint64_t>{1, 2})) << "of the project that they are in";
    for (const char* first : {"UNCAT-1", "CAT-1", "FELIS-1"})
      EXPECT_EQ(named(first), "1") << first;
    for (const char* second : {"UNCAT-2", "CAT-2", "felis-2"})
      EXPECT_EQ(named(second), "2") << second;
    for (const char* none : {"UNCAT-3", "DOG-1", "CAT-3", "FELIS-18446744073709551615"})
      EXPECT_EQ(named(none), "not_found") << none;
    // The next opening finds the state that a version without numbers left, and has to fold it to the same
    // rows.
    if (opened == 1) {
      auto b = w->store->make_batch();
      b->put(family::facts, keys::projections, keys::one(7));
      b->erase_range(family::rows, "F", "G");
      b->erase_range(family::rows, "I", "J");
      b->erase_range(family::rows, "N", "O");
      ASSERT_TRUE(w->store->write(*b, true));
    }
    w->reopen();
  }
}

TEST_P(Journal, ForgetsASingleTrialWhileItsExperimentStays) {
  set_up_trials(3);
  const checkpoint saved{"u", 10, {{"a", 3}}, value{{"m", 1}}, "/p", {}};
  ASSERT_TRUE(append("trial/2", 1, {checkpoint_recorded{t0, {1}, saved}}));
  commit();
  ASSERT_TRUE(append(cluster_entity, 1,
                     {trial_deleted{t0, "ada", {1}, {2}, deletion_step::ordered, ""},
                      trial_archived{t0, "ada", {1}, {3}, true}}));
  commit();
  EXPECT_EQ(r()->trial({2})->deletion, deletion_step::ordered);
  EXPECT_TRUE(r()->checkpoint("u"));
  ASSERT_TRUE(append(cluster_entity, 3, {trial_deleted{t0, "ada", {1}, {2}, deletion_step::done, ""}}));
  ASSERT_TRUE(append(cluster_entity, 4, {experiment_moved{t0, "ada", {1}, {4}}}));
  commit();
  for (int opened = 0; opened < 2; ++opened) {
    const auto trials = r()->trials({1});
    ASSERT_TRUE(trials);
    ASSERT_EQ(trials->size(), 2u);
    EXPECT_EQ(trials->front().number, 1u);
    EXPECT_EQ(trials->back().id, trial_id{3});
    EXPECT_EQ(trials->back().number, 2u);
    EXPECT_EQ(*r()->trial_ids({1}), (std::vector<trial_id>{{1}, {3}}));
    EXPECT_TRUE(trials->back().archived);
    EXPECT_EQ(r()->experiment({1})->num_trials, 2u);
    EXPECT_EQ(r()->trial({2}).error().code, errc::not_found);
    EXPECT_EQ(r()->task(trial_id{2}).error().code, errc::not_found);
    EXPECT_EQ(r()->checkpoint("u").error().code, errc::not_found);
    EXPECT_EQ(r()->trial_with_name({"UNCAT", 2}).error().code, errc::not_found);
    EXPECT_EQ(*r()->trial_with_name({"UNCAT", 3}), trial_id{3});
    EXPECT_EQ(r()->newest_trial(), trial_id{3});
    w->options.rebuild_projections = true;
    w->reopen();
  }
}

TEST_P(Journal, KeepsTheLogsOfEveryKindOfTaskApart) {
  const auto shell = task_id::of(task_kind::shell, 1, 2),
             last = task_id::of(task_kind::generic, ~0ULL, ~0ULL);
  const std::vector<task_id> tasks{trial_id{1}, trial_id{2}, shell, task_id::of(task_kind::shell, 1, 3),
                                   last};
  for (const auto& task : tasks)
    for (int i = 1; i <= 3; ++i)
      ASSERT_TRUE(
        j().log({task,
                 {{.at = t0, .allocation = {task, {1}}, .text = to_string(task) + " " + std::to_string(i)}},
                 to_string(task) + ".1/0",
                 std::uint64_t(i)}));
  commit();
  w->reopen();
  for (const auto& task : tasks) {
    auto all = r()->logs(task, 0, 100), late = r()->logs(task, 2, 100),
         early = r()->logs_before(task, 3, 100);
    ASSERT_TRUE(all && late && early);
    ASSERT_EQ(all->size(), 3u) << to_string(task);
    EXPECT_EQ(all->front().text, to_string(task) + " 1");
    EXPECT_EQ(all->back().number, 3u);
    EXPECT_EQ(all->back().allocation.task, task);
    EXPECT_EQ(late->size(), 1u);
    EXPECT_EQ(early->size(), 2u);
  }
  ASSERT_TRUE(j().erase_log(shell));
  ASSERT_TRUE(j().erase_log(last));
  commit();
  for (const auto& task : tasks)
    EXPECT_EQ(r()->logs(task, 0, 100)->size(), task == shell || task == last ? 0u : 3u) << to_string(task);
}

TEST_P(Journal, KnowsOfEveryTaskWhoseItIsAndWhichRunIsOpen) {
  value config{{"searcher", {{"name", "random"}, {"metric", "loss"}}}, {"workspace", "vision"}};
  ASSERT_TRUE(
    append(cluster_entity, 0, {experiment_created{t0, {1}, config, "digits", "me", "", "text", "key-1"}}));
  search_stepped step{.at = t0 + 1s};
  for (std::uint64_t i = 1; i <= 2; ++i)
    step.created.push_back({{i}, std::to_string(i), value{{"lr", 1}}, 7, ""});
  ASSERT_TRUE(append("experiment/1", 0, {step}));
  ASSERT_TRUE(append(
    "trial/1", 0,
    {run_started{t0, {1}, "", 0}, run_ended{t0 + 2s, {1}, end::failed}, run_started{t0 + 3s, {2}, "", 0}}));
  ASSERT_TRUE(append("allocation/1.2", 0, {allocation_placed{t0, {{"a1", {0, 1}}}}}));
  commit();
  w->reopen();
  auto row = r()->task(trial_id{1});
  ASSERT_TRUE(row) << row.error().what;
  EXPECT_EQ(row->id, task_id{trial_id{1}});
  EXPECT_EQ(row->experiment, experiment_id{1});
  EXPECT_EQ(row->owner + "@" + row->workspace, "me@vision");
  EXPECT_EQ(row->created, t0 + 1s);
  EXPECT_EQ(row->run, run_id{2});
  EXPECT_TRUE(row->open);
  auto runs = r()->runs(trial_id{1});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ(runs->back().on.front().agent, "a1");
  auto open = r()->open_tasks();
  ASSERT_TRUE(open);
  ASSERT_EQ(open->size(), 1u);
  EXPECT_EQ(open->front().id, task_id{trial_id{1}});
  EXPECT_EQ(r()->task(trial_id{9}).error().code, errc::not_found);
  EXPECT_EQ(r()->task(task_id::of(task_kind::shell, 1, 2)).error().code, errc::not_found);
  EXPECT_EQ(r()->runs(task_id::of(task_kind::shell, 1, 2)).error().code, errc::not_found);

  ASSERT_TRUE(append("trial/1", 3, {run_ended{t0 + 4s, {2}, end::completed}, trial_ended{t0 + 5s}}));
  commit();
  row = r()->task(trial_id{1});
  EXPECT_FALSE(row->open);
  EXPECT_EQ(row->ended, t0 + 5s);
  EXPECT_TRUE(r()->open_tasks()->empty());
}

TEST_P(Journal, TakesReportsOfTrialsOnly) {
  set_up_trials();
  auto refused = j().report(reports({task_id::of(task_kind::command, 1, 2), {1}}, 1, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::conflict);
  EXPECT_THAT(refused.error().what, HasSubstr("is not a trial"));
}

TEST_P(Journal, ServesReadersOfOtherThreadsWhileItWrites) {
  set_up_trials();
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  std::atomic<int> reads = 0;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&, r = r()] {
      for (std::uint64_t seen = 0; !over; ++reads) {
        auto sequence = r->sequence();
        EXPECT_GE(sequence, seen);
        seen = sequence;
        auto facts = r->facts_after(sequence - 1, 10);
        EXPECT_TRUE(facts && !facts->empty()) << "a told sequence can be read";
        auto row = r->trial({1});
        EXPECT_TRUE(row && row->runs.size() == 1);
        auto rows = r->metrics({1}, 0, 1000);
        EXPECT_TRUE(rows);
        for (std::size_t n = 0; rows && n < rows->size(); ++n)
          EXPECT_EQ((*rows)[n].row, n + 1);
      }
    });
  for (std::uint64_t n = 0; n < 200; ++n) {
    EXPECT_TRUE(j().report(reports({{1}, {1}}, n + 1, 1)));
    EXPECT_TRUE(append("trial/1", n + 1, {trial_paused{t0}}));
    EXPECT_TRUE(j().commit());
  }
  while (!reads)
    std::this_thread::yield();
  over = true;
  for (auto& reader : readers)
    reader.join();
}

TEST_P(Journal, KeepsBlobsUnderTheirDigest) {
  const std::string big(3 << 20, 'b');
  auto name = j().put_blob(big);
  ASSERT_TRUE(name) << name.error().what;
  EXPECT_EQ(name->size(), 64u);
  EXPECT_EQ(*j().put_blob(big), *name);
  EXPECT_NE(*j().put_blob("other"), *name);
  w->crash();
  EXPECT_EQ(*r()->blob(*name), big);
  EXPECT_EQ(r()->blob("../journal.lock").error().code, errc::not_found);
  EXPECT_EQ(r()->blob(std::string(64, '0')).error().code, errc::not_found);
}

TEST_P(Journal, KeepsTheNewestFactOfEachUserTokenAndSetting) {
  EXPECT_EQ(*r()->next_of("cluster"), 0u);
  EXPECT_FALSE(r()->configuration()->has_value());
  user_changed ada{t0, "admin", {3}, "ada"}, bob{t0, "admin", {20}, "bob"}, grace = ada;
  grace.name = "grace";
  const token_changed token{t0, "ada", {3}, "t1", "nightly", t0 + 9s, true};
  ASSERT_TRUE(j().append({"cluster",
                          0,
                          {encode(bob), encode(ada), encode(grace), encode(token),
                           encode(configuration_changed{t0, "ada", 1, value{{"a", 1}}}),
                           encode(configuration_changed{t0, "ada", 2, value{{"a", 2}}}),
                           encode(setting_changed{t0, "ada", "log.level", "debug"}),
                           encode(setting_changed{t0, "ada", "log.level", "info"}),
                           encode(setting_changed{t0, "ada", "trace.max", 7})}}));
  EXPECT_TRUE(r()->users()->empty()) << "visible before it is durable";
  ASSERT_TRUE(j().commit());
  for (int life = 0; life < 2; ++life, w->crash()) {
    const auto users = *r()->users();
    ASSERT_EQ(users.size(), 2u);
    EXPECT_EQ(users[0].name, "grace");
    EXPECT_EQ(users[1].id, user_id{20});
    ASSERT_EQ(r()->tokens()->size(), 1u);
    EXPECT_TRUE(r()->tokens()->front().revoked);
    EXPECT_EQ((*r()->configuration())->revision, 2u);
    ASSERT_EQ(r()->settings()->size(), 2u);
    EXPECT_EQ(r()->settings()->front().to, "info");
    EXPECT_EQ(*r()->next_of("cluster"), 9u);
    EXPECT_EQ(*r()->next_of("trial/1"), 0u);
  }
}

/// Writes a history that changes every projection.
void tell_a_story(
  const std::function<result<void>(const std::string&, std::uint64_t, const std::vector<fact>&)>& say) {
  value config{{"searcher", {{"metric", "accuracy"}, {"smaller_is_better", false}}},
               {"filler", std::string(5000, 'c')}};
  ASSERT_TRUE(
    say("cluster", 0, {experiment_created{t0, {1}, config, "n", "o", "c", "s", "k"}, agent_joined{t0, "a"}}));
  search_stepped start{.at = t0};
  start.created = {{{1}, "1", value{{"lr", 1}}, 1, ""}, {{2}, "2", value{{"lr", 2}}, 2, ""}};
  ASSERT_TRUE(say("experiment/1", 0, {start}));
  std::uint64_t steps = 1;
  for (std::uint64_t t = 1; t <= 2; ++t) {
    auto trial = "trial/" + std::to_string(t);
    ASSERT_TRUE(say(trial, 0, {trial_activated{t0}, run_started{t0, {1}, "", 0}}));
    ASSERT_TRUE(say("allocation/" + std::to_string(t) + ".1", 0, {allocation_placed{t0, {{"a", {0, 1}}}}}));
    for (int i = 1; i <= 5; ++i) {
      search_stepped v{.at = t0 + std::chrono::seconds(i), .input = search_input::validated, .trial = {t}};
      v.row = std::uint64_t(i);
      v.steps = 10 * i;
      v.metrics = value{{"accuracy", i == 3 ? std::nan("") : 0.1 * i * double(t)}};
      v.progress = 0.1 * i;
      if (i == 5)
        v.stopped = {{{t}, "rung 1", 1, 50, 0.5, 0.9}};
      ASSERT_TRUE(say("experiment/1", steps++, {v}));
    }
    checkpoint saved{"u" + std::to_string(t), 50, {{"a", 100}, {"b", 20}}, value{{"m", 1}}, "/p"};
    ASSERT_TRUE(say(trial, 2,
                    {checkpoint_recorded{t0, {1}, saved}, run_ended{t0, {1}, end::failed, 1, 0, t0, "exit 1"},
                     run_started{t0, {2}, saved.uuid, 50}, trial_stop_ordered{t0},
                     run_ended{t0, {2}, end::stopped, 1, 0, {}, ""},
                     trial_ended{t0 + 9s, trial_state::completed, "done"}}));
  }
  ASSERT_TRUE(say("experiment/1", steps, {experiment_changed{t0 + 10s, experiment_state::completed, ""}}));
  project_changed cats;
  cats.id = {4};
  cats.key = "CAT";
  ASSERT_TRUE(say("cluster", 2,
                  {cats, experiment_moved{t0, "ada", {1}, {4}}, trial_archived{t0, "ada", {1}, {1}, true}}));
  cats.key = "FELIS";
  ASSERT_TRUE(say("cluster", 5, {cats, experiment_moved{t0, "ada", {1}, {1}}}));
}

TEST_P(Journal, FoldsFactsIntoRows) {
  ASSERT_NO_FATAL_FAILURE(tell_a_story([&](const auto&... x) { return append(x...); }));
  commit();
  auto e = r()->experiment({1});
  ASSERT_TRUE(e) << e.error().what;
  EXPECT_EQ(e->state, experiment_state::completed);
  EXPECT_EQ(e->ended, t0 + 10s);
  EXPECT_EQ(e->num_trials, 2u);
  EXPECT_EQ(e->best_trial, trial_id{2});
  EXPECT_DOUBLE_EQ(e->best_metric, 1.0);
  EXPECT_EQ(e->metric, "accuracy");
  EXPECT_FALSE(e->smaller_is_better);
  EXPECT_EQ(e->config->at("filler"), std::string(5000, 'c'));
  EXPECT_EQ(*r()->experiments_with_key("k"), std::vector{experiment_id{1}});
  EXPECT_TRUE(r()->experiments_with_key("none")->empty());
  EXPECT_EQ(r()->experiments()->size(), 1u);
  EXPECT_EQ(*r()->experiment_standings(), (std::vector{standing_of(*e)}));
  auto trials = r()->trials({1});
  ASSERT_EQ(trials->size(), 2u);
  const auto& t = (*trials)[1];
  EXPECT_EQ(t.state, trial_state::completed);
  EXPECT_EQ(t.runs.size(), 2u);
  EXPECT_EQ(t.runs[0].on[0].slots, (std::vector{0, 1}));
  EXPECT_EQ(t.runs[0].detail, "exit 1");
  EXPECT_EQ(t.restarts, 1);
  EXPECT_EQ(t.best.row, 5u);
  EXPECT_EQ(t.latest.row, 5u);
  EXPECT_EQ(t.stop()->rung, 1);
  EXPECT_EQ(t.latest_checkpoint, "u2");
  EXPECT_EQ(t.checkpoint_bytes, 120);
  EXPECT_EQ(r()->checkpoint("u2")->trial, trial_id{2});
  EXPECT_EQ(r()->checkpoint("u2")->experiment, experiment_id{1});
  EXPECT_EQ(r()->checkpoints({1})->size(), 1u);
  EXPECT_EQ(r()->checkpoint("u3").error().code, errc::not_found);
  EXPECT_EQ(r()->trial({3}).error().code, errc::not_found);
  EXPECT_EQ(r()->experiment({3}).error().code, errc::not_found);
}

TEST_P(Journal, FindsEveryExperimentOfAKey) {
  std::vector<fact> facts;
  for (const auto& key : {std::string("external/night"), std::string("external/nightly"),
                          numbered_key("external/night", 2), std::string("external/nigh")}) {
    experiment_created made;
    made.at = t0;
    made.id = {facts.size() + 1};
    made.key = key;
    facts.emplace_back(made);
  }
  ASSERT_TRUE(append("cluster", 0, facts));
  commit();
  using ids = std::vector<experiment_id>;
  EXPECT_EQ(*r()->experiments_with_key("external/night"), (ids{{1}, {3}}));
  EXPECT_EQ(*r()->experiments_with_key("external/nightly"), (ids{{2}}));
  EXPECT_EQ(*r()->experiments_with_key("external/nigh"), (ids{{4}}));
  EXPECT_EQ(*r()->experiments_with_key("external/"), ids{});
  ASSERT_TRUE(append("cluster", 4, {experiment_deleted{t0, "ada", {1}, deletion_step::done, {}, {}}}));
  commit();
  EXPECT_EQ(*r()->experiments_with_key("external/night"), (ids{{3}}));
}

TEST_P(Journal, StandingsFollowEveryCommit) {
  ASSERT_NO_FATAL_FAILURE(tell_a_story([&](const auto&... x) { return append(x...); }));
  commit();
  const auto* watch = dynamic_cast<const standing_watch*>(&*r());
  ASSERT_TRUE(watch);
  std::map<experiment_id, experiment_standing> followed;
  std::uint64_t version = 0;
  const auto expect_them = [&](std::size_t count, const char* after) {
    std::vector<experiment_standing> all, by_changes;
    const auto news = watch->standings_since(version);
    EXPECT_LE(news->changed.size(), 2u) << after;
    for (const auto& one : news->changed)
      followed[one.id] = one;
    version = news->version;
    for (const auto& [id, one] : followed)
      if (one.project)
        by_changes.push_back(one);
    EXPECT_EQ(*r()->experiment_standings(), by_changes) << after;
    EXPECT_TRUE(watch->standings_since(version)->changed.empty()) << after;
    const auto rows = *r()->experiments();
    for (const auto& row : rows)
      all.push_back(standing_of(row));
    EXPECT_EQ(all.size(), count) << after;
    EXPECT_EQ(*r()->experiment_standings(), all) << after;
  };
  const value config{{"searcher", {{"metric", "loss"}}}};
  expect_them(1, "the story");
  EXPECT_EQ(r()->experiment_standings()->front().checkpoint_count, 2u);
  EXPECT_EQ(r()->experiment_standings()->front().checkpoint_bytes, 240);
  const auto next = *r()->next_of("cluster");
  ASSERT_TRUE(append("cluster", next,
                     {experiment_created{t0, {3}, config, "c"}, experiment_created{t0, {2}, config, "b"}}));
  expect_them(1, "what is not durable yet");
  commit();
  expect_them(3, "two more");
  ASSERT_TRUE(append("trial/1", *r()->next_of("trial/1"), {checkpoint_changed{t0, "u1", {{"a", 100}}}}));
  ASSERT_TRUE(append("experiment/2", 0, {experiment_changed{t0 + 3s, experiment_state::canceled, "so"}}));
  commit();
  expect_them(3, "an end, and fewer files");
  EXPECT_EQ(r()->experiment_standings()->front().checkpoint_bytes, 220);
  ASSERT_TRUE(append("cluster", next + 2, {experiment_deleted{t0, "ada", {2}, deletion_step::done, {}, {}}}));
  commit();
  expect_them(2, "a deletion");
}

TEST_P(Journal, TellsWhichTrialsHaveChanged) {
  const auto* watch = dynamic_cast<const trial_watch*>(&*r());
  ASSERT_TRUE(watch);
  auto news = watch->trials_since(0);
  EXPECT_TRUE(news.all);
  auto version = news.version;
  const auto expect_them = [&](const std::vector<trial_id>& wanted, const char* after) {
    const auto some = watch->trials_since(version);
    EXPECT_FALSE(some.all) << after;
    EXPECT_EQ(some.changed, wanted) << after;
    version = some.version;
    EXPECT_TRUE(watch->trials_since(version).changed.empty()) << after;
  };
  const auto first = version;
  ASSERT_NO_FATAL_FAILURE(tell_a_story([&](const auto&... x) { return append(x...); }));
  expect_them({}, "what is not durable yet");
  commit();
  expect_them({{1}, {2}}, "the story");
  ASSERT_TRUE(append("cluster", *r()->next_of("cluster"),
                     {experiment_created{t0, {3}, value{{"searcher", {{"metric", "loss"}}}}, "c"}}));
  commit();
  expect_them({}, "an experiment alone");
  ASSERT_TRUE(append("trial/1", *r()->next_of("trial/1"), {checkpoint_changed{t0, "u1", {{"a", 100}}}}));
  commit();
  expect_them({{1}}, "fewer files");
  EXPECT_EQ(watch->trials_since(first).changed.size(), 2u) << "each once";
  ASSERT_TRUE(append("cluster", *r()->next_of("cluster"),
                     {experiment_deleted{t0, "ada", {1}, deletion_step::done, {}, {{1}, {2}}}}));
  commit();
  expect_them({{1}, {2}}, "a deletion");
  search_stepped many{.at = t0};
  for (std::uint64_t id = 11; id <= 60'010; ++id)
    many.created.push_back({{id}, std::to_string(id), value::object(), 1, ""});
  ASSERT_TRUE(append("experiment/3", 0, {many}));
  commit();
  EXPECT_TRUE(watch->trials_since(version).all) << "more than are kept";
  version = watch->trials_since(version).version;
  ASSERT_TRUE(append("trial/20", 0, {trial_activated{t0}}));
  commit();
  expect_them({{20}}, "one after them");
}

TEST_P(Journal, KnowsHowFarTheNewestReportOfATrialIs) {
  set_up_trials(3);
  const auto* watch = dynamic_cast<const trial_watch*>(&*r());
  auto version = watch->reports_since(0).version;
  const auto changed = [&] {
    auto some = watch->reports_since(version);
    version = some.version;
    return some.changed;
  };
  const auto rows = watch->trials_since(0).version;
  EXPECT_EQ(r()->trial({1})->reported_steps, 0);
  EXPECT_TRUE(watch->reported_steps({{1}, {2}})->empty());
  ASSERT_TRUE(j().report(reports({{1}, {1}}, 1, 90)));
  ASSERT_TRUE(j().report(reports({{2}, {1}}, 1, 3, "validation")));
  ASSERT_TRUE(j().report(reports({{3}, {1}}, 1, 2, "system")));
  EXPECT_TRUE(changed().empty()) << "not durable yet";
  commit();
  EXPECT_EQ(changed(), (std::vector<trial_id>{{1}, {2}}));
  const std::map<trial_id, std::int64_t> wanted{{{1}, 90}, {{2}, 3}};
  EXPECT_EQ(*watch->reported_steps({{1}, {2}, {3}, {9}}), wanted);
  EXPECT_EQ(r()->trial({1})->reported_steps, 90);
  EXPECT_EQ(r()->trials({1})->at(1).reported_steps, 3);
  EXPECT_EQ(r()->trial({3})->reported_steps, 0) << "a sample is no step";
  EXPECT_TRUE(watch->trials_since(rows).changed.empty()) << "nothing else of the rows";
  // A run that starts from a checkpoint begins below the step that the run before had reached.
  ASSERT_TRUE(append("trial/1", 1, {run_ended{t0, {1}, end::lost}, run_started{t0, {2}, "", 50}}));
  auto again = reports({{1}, {2}}, 1, 1);
  again.reports[0].steps = 51;
  ASSERT_TRUE(j().report(again));
  commit();
  w->reopen();
  EXPECT_EQ(r()->trial({1})->reported_steps, 51);
  auto lower = reports({{1}, {2}}, 2, 2, "validation"); // a validation of fewer steps takes none away
  lower.reports[0].steps = 60;
  lower.reports[1].steps = 55;
  ASSERT_TRUE(j().report(lower));
  auto without = reports({{1}, {2}}, 4, 1, "inference");
  without.reports[0].steps = 0;
  ASSERT_TRUE(j().report(without));
  commit();
  EXPECT_EQ(r()->trial({1})->reported_steps, 60);
  EXPECT_TRUE(j().erase_log(trial_id{1}, true));
  commit();
  EXPECT_EQ(r()->trial({1})->reported_steps, 0);
  EXPECT_EQ(r()->trial({2})->reported_steps, 3);
}

TEST_P(Journal, ListsTheCheckpointsOfATrialInTheOrderInWhichTheyWereFirstRecorded) {
  ASSERT_NO_FATAL_FAILURE(tell_a_story([&](const auto&... x) { return append(x...); }));
  const auto recorded = [](const std::string& uuid, std::int64_t steps) {
    return checkpoint_recorded{t0, {2}, {uuid, steps, {{"a", steps}}, value{}, "/p"}};
  };
  ASSERT_TRUE(
    append("trial/1", 8,
           {recorded("v", 60), recorded("w", 70), trial_metadata_set{t0, value{}}, recorded("v", 61)}));
  ASSERT_TRUE(append("trial/2", 8, {recorded("w", 99), recorded("x", 80), checkpoint_changed{t0, "x", {}}}));
  commit();
  const auto uuids = [&](trial_id id) {
    auto rows = r()->checkpoints(id);
    EXPECT_TRUE(rows) << (rows ? "" : rows.error().what);
    std::vector<std::pair<std::string, std::int64_t>> all;
    if (rows)
      for (const auto& row : *rows)
        all.emplace_back(row.saved.uuid, row.saved.steps);
    return all;
  };
  using these = std::vector<std::pair<std::string, std::int64_t>>;
  EXPECT_EQ(uuids({1}), (these{{"u1", 50}, {"v", 61}, {"w", 70}}));
  EXPECT_EQ(uuids({2}), (these{{"u2", 50}, {"x", 80}})) << "a checkpoint stays its first trial's";
  EXPECT_EQ(uuids({3}), these{});
  EXPECT_EQ(r()->trial({1})->checkpoint_count, 3u);
  EXPECT_EQ(r()->trial({2})->checkpoint_count, 1u);
  EXPECT_EQ(r()->checkpoint("w")->saved.steps, 70);
  EXPECT_EQ(r()->checkpoint("x")->state, checkpoint_state::deleted);
}

TEST_P(Journal, FoldsTheSameBytesHoweverCommitsCutTheFactsAndWhenRebuilt) {
  std::map<std::string, std::string> expected;
  for (int every : {1, 1000, 3}) {
    std::unique_ptr<world> other;
    if (GetParam() == std::string("memory"))
      other = std::make_unique<memory_world>();
    else
      other = std::make_unique<disk_world>();
    w = std::move(other);
    w->reopen();
    int appends = 0;
    ASSERT_NO_FATAL_FAILURE(tell_a_story([&](const auto&... x) {
      auto done = append(x...);
      if (++appends % every == 0)
        commit();
      return done;
    }));
    commit();
    auto rows = dump(*w->store, family::rows);
    EXPECT_GT(rows.size(), 10u);
    if (expected.empty())
      expected = rows;
    EXPECT_EQ(rows, expected) << "a commit every " << every << " appends";
    w->options.rebuild_projections = true;
    w->reopen();
    EXPECT_EQ(dump(*w->store, family::rows), expected) << "rebuilt";
  }
}

TEST_P(Journal, FoldsAnewWhenARebuildWasCutShort) {
  ASSERT_NO_FATAL_FAILURE(tell_a_story([&](const auto&... x) { return append(x...); }));
  commit();
  auto expected = dump(*w->store, family::rows);
  auto b = w->store->make_batch(); // This is the state after the first write of a rebuild.
  b->erase_range(family::facts, "p", std::string("p\0", 2));
  b->erase_range(family::rows, std::string(1, '\0'), "\x7f");
  ASSERT_TRUE(w->store->write(*b, true));
  b.reset();
  w->crash();
  EXPECT_EQ(dump(*w->store, family::rows), expected);
}

TEST_P(Journal, ReadsAStreamFromAnyNumberHoweverItsFactsLieInRows) {
  std::vector<std::string> all;
  auto add = [&](std::size_t count, std::size_t bytes) {
    std::vector<fact> facts;
    for (std::size_t i = 0; i < count; ++i)
      facts.push_back(
        trial_stop_ordered{t0 + std::chrono::seconds(all.size() + i), {}, false, std::string(bytes, 'w')});
    ASSERT_TRUE(append("trial/1", all.size(), facts));
    ASSERT_TRUE(append("trial/10", all.size(), facts));
    for (const auto& f : facts)
      all.push_back(encode(f));
  };
  for (std::size_t count : {1, 2, 7, 1, 1, 3}) {
    ASSERT_NO_FATAL_FAILURE(add(count, 10));
    ASSERT_NO_FATAL_FAILURE(add(1, 10)); // this append is in the same commit
    commit();
  }
  ASSERT_NO_FATAL_FAILURE(add(5, 40'000)); // these facts are more than one row holds
  ASSERT_NO_FATAL_FAILURE(add(1, 100'000));
  ASSERT_NO_FATAL_FAILURE(add(2, 10));
  commit();
  EXPECT_LT(dump(*w->store, family::facts).size(), all.size() + 12) << "facts of one commit share rows";
  for (int opened = 0; opened < 2; ++opened) {
    for (std::size_t first = 0; first <= all.size() + 1; ++first) {
      auto got = r()->facts_of("trial/1", first);
      ASSERT_TRUE(got) << got.error().what;
      EXPECT_EQ(
        *got, std::vector<std::string>(all.begin() + std::ptrdiff_t(std::min(first, all.size())), all.end()))
        << first;
      if (first < all.size()) {
        EXPECT_TRUE(j().append({"trial/1", first, {all[first]}})) << "a repeat";
        EXPECT_EQ(j().append({"trial/1", first, {all[(first + 1) % all.size()]}}).error().code, errc::gap);
      }
    }
    w->crash();
  }
  EXPECT_EQ(j().append({"trial/1", all.size() + 1, {all[0]}}).error().code, errc::gap);
  EXPECT_TRUE(j().append({"trial/1", all.size(), {all[0]}}));
}

TEST_P(Journal, ReadsDataThatHasARowForEachFactAndGoesOnWithIt) {
  ASSERT_NO_FATAL_FAILURE(tell_a_story([&](const auto&... x) { return append(x...); }));
  commit();
  const auto rows = dump(*w->store, family::rows);
  const auto facts = *r()->facts_after(0, 1000);
  auto b = w->store->make_batch(); // This is the form in which schema 1 wrote facts.
  for (const auto& f : facts)
    b->put(family::facts, keys::fact(f.entity, f.number), f.bytes);
  b->put(family::facts, keys::schema, keys::one(1));
  ASSERT_TRUE(w->store->write(*b, true));
  b.reset();
  w->crash();
  EXPECT_EQ(dump(*w->store, family::rows), rows);
  const auto again = *r()->facts_after(0, 1000);
  ASSERT_EQ(again.size(), facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i)
    EXPECT_EQ(again[i].bytes, facts[i].bytes) << facts[i].entity << " " << facts[i].number;
  EXPECT_EQ(*w->store->get(family::facts, keys::schema), keys::one(3))
    << "an older build refuses it from now on";
  const auto length = r()->facts_of("trial/1")->size();
  ASSERT_TRUE(append("trial/1", length, {trial_paused{t0}, trial_paused{t0 + 1s}}));
  commit();
  EXPECT_EQ(r()->facts_of("trial/1", length - 1)->size(), 3u);
}

TEST_P(Journal, RefusesADatabaseOfANewerBuild) {
  ASSERT_TRUE(append("trial/1", 0, {trial_paused{t0}}));
  commit();
  auto b = w->store->make_batch();
  b->put(family::facts, "s", std::string("\0\0\0\0\0\0\0\x63", 8));
  ASSERT_TRUE(w->store->write(*b, true));
  auto opened = make_journal(w->store, w->options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::unsupported);
  EXPECT_THAT(opened.error().what, HasSubstr("newer troupe"));
  EXPECT_THAT(opened.error().what, HasSubstr(w->options.directory.string()));
}

TEST_P(Journal, GivesOneProjectOfThoseThatAreLeft) {
  project_changed vision{.at = t0, .by = "ada", .id = {2}, .workspace = {3}, .name = "vision"};
  auto gone = vision;
  gone.id = {4};
  gone.deleted = true;
  ASSERT_TRUE(append("workspace/3", 0, {vision, gone}));
  commit();
  EXPECT_EQ(r()->project({1})->name, uncategorized_project().name);
  EXPECT_EQ(r()->project({2})->workspace, workspace_id{3});
  EXPECT_EQ(r()->project({4}).error().code, errc::not_found);
  EXPECT_EQ(r()->project({9}).error().code, errc::not_found);
}

TEST_P(Journal, TellsNothingNewForAnEmptyCommit) {
  auto done = j().commit();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->sequence, 0u);
  EXPECT_TRUE(done->facts.empty());
}

} // namespace
} // namespace troupe::storage
