#pragma once
// What the processes of these tests write: facts, reports and lines whose content follows from their numbers,
// so that a reader can tell whether each one is whole.

#include "model/rng.hpp"
#include "storage/journal.hpp"

#include <gtest/gtest.h>

namespace troupe::storage {

inline const time_point story_begin{std::chrono::seconds(1700000000)};

inline std::string noise(std::uint64_t seed, std::size_t bytes) { // does not compress
  std::string text(bytes, '\0');
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
  for (auto& c : text)
    c = static_cast<char>((x = x * 6364136223846793005ull + 1442695040888963407ull) >> 56);
  return text;
}

inline std::string numbered_fact(std::uint64_t number) {
  return encode(experiment_changed{story_begin + std::chrono::seconds(number), experiment_state::active,
                                   noise(number, 20 + number % 400)});
}

/// Progress of one workload: numbers of the next ones.
struct progress {
  std::uint64_t facts = 0, reports = 1, lines = 1;
};

/// Experiment 1, trial 1, run 1: what the reports need.
inline result<void> begin_story(journal& j) {
  search_stepped step{.at = story_begin};
  step.created = {{{1}, "1", value{{"lr", 1}}, 1, ""}};
  if (auto done =
        j.append({"cluster",
                  0,
                  {encode(experiment_created{story_begin, {1}, value{{"searcher", {{"metric", "loss"}}}}})}});
      !done)
    return done;
  if (auto done = j.append({"experiment/1", 0, {encode(step)}}); !done)
    return done;
  if (auto done = j.append({"trial/1", 0, {encode(run_started{story_begin, {1}, "", 0})}}); !done)
    return done;
  auto done = j.commit();
  return done ? result<void>{} : done.error();
}

/// Queues `facts` facts, `reports` reports of `report_bytes` and a line, and commits; `next` advances only
/// then.
inline result<void> write_group(journal& j, progress& next, int facts, int reports,
                                std::size_t report_bytes) {
  struct append a {
    "experiment/2", next.facts, {}
  };
  for (int i = 0; i < facts; ++i)
    a.facts.push_back(numbered_fact(next.facts + std::uint64_t(i)));
  if (auto done = j.append(a); !done)
    return done;
  report_batch b{{{1}, {1}}, 0, "p", next.reports, {}};
  for (int i = 0; i < reports; ++i)
    b.reports.push_back({"training", std::int64_t(next.reports) + i, story_begin,
                         noise(next.reports + std::uint64_t(i), report_bytes)});
  if (auto done = j.report(b); !done)
    return done.error();
  if (auto done = j.log({trial_id{1}, {{.text = std::to_string(next.lines)}}, "1.1/0", next.lines}); !done)
    return done;
  if (auto done = j.commit(); !done)
    return done.error();
  next.facts += std::uint64_t(facts);
  next.reports += std::uint64_t(reports);
  ++next.lines;
  return {};
}

/// What is stored; checks that everything up to `acknowledged` is there and that every stored thing is whole.
inline progress check_story(const reader& r, const progress& acknowledged) {
  progress stored;
  auto facts = r.facts_of("experiment/2");
  EXPECT_TRUE(facts) << facts.error().what;
  if (!facts)
    return stored;
  EXPECT_GE(facts->size(), acknowledged.facts) << "acknowledged facts are lost";
  for (; stored.facts < facts->size(); ++stored.facts)
    EXPECT_EQ((*facts)[stored.facts], numbered_fact(stored.facts)) << "fact " << stored.facts;
  for (std::uint64_t after = 0;;) {
    auto rows = r.metrics({1}, after, 1000);
    EXPECT_TRUE(rows) << rows.error().what;
    if (!rows || rows->empty())
      break;
    for (const auto& row : *rows) {
      EXPECT_EQ(row.steps, std::int64_t(stored.reports)) << "report " << stored.reports;
      EXPECT_EQ(row.row, stored.reports);
      EXPECT_EQ(row.metrics, noise(stored.reports, row.metrics.size()));
      ++stored.reports;
    }
    after = rows->back().row;
  }
  EXPECT_GE(stored.reports, acknowledged.reports) << "acknowledged reports are lost";
  auto lines = r.logs(trial_id{1}, 0, 1 << 20);
  EXPECT_TRUE(lines) << lines.error().what;
  if (lines) {
    for (const auto& line : *lines)
      EXPECT_EQ(line.text, std::to_string(stored.lines++));
    EXPECT_GE(stored.lines, acknowledged.lines) << "acknowledged lines are lost";
  }
  auto all = r.facts_after(0, 1 << 20);
  EXPECT_TRUE(all) << all.error().what;
  if (all) {
    EXPECT_EQ(all->size(), r.sequence());
  }
  return stored;
}

} // namespace troupe::storage
