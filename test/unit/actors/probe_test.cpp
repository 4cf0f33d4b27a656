#include "actors/probe.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace troupe {
namespace {

constexpr type_key hello = 4096, bye = 8192;

void handle(probe& p, type_key type, std::uint64_t sender = 7) {
  auto* slot = p.slot_of(type);
  if (!slot)
    slot = p.add_slot(type, nullptr);
  const auto begun = p.begin(slot);
  p.end(begun, sender, 0, 0, 0);
}

TEST(Histogram, CountsByPowersOfTwo) {
  tick_histogram h;
  h.add(0);
  h.add(31);
  h.add(32);
  h.add(63);
  h.add(64, 3);
  h.add(std::numeric_limits<std::uint64_t>::max() - 1);
  const auto counts = h.read();
  EXPECT_EQ(counts[0], 2u);
  EXPECT_EQ(counts[1], 2u);
  EXPECT_EQ(counts[2], 3u);
  EXPECT_EQ(counts.back(), 1u);
  EXPECT_EQ(tick_histogram::upper(0), 32u);
  EXPECT_EQ(tick_histogram::upper(2), 128u);
}

TEST(Histogram, AQuantileIsTheEndOfItsBucket) {
  tick_histogram h;
  EXPECT_EQ(quantile(h.read(), 0.5), 0u);
  for (int i = 0; i < 99; ++i)
    h.add(100);
  h.add(100'000);
  EXPECT_EQ(quantile(h.read(), 0.5), 128u);
  EXPECT_EQ(quantile(h.read(), 0.98), 128u);
  EXPECT_EQ(quantile(h.read(), 1.0), 131'072u);
}

TEST(Probe, CountsWhatCameAndWhatIsDone) {
  probe p;
  for (int i = 0; i < 5; ++i)
    p.arrived();
  handle(p, hello);
  handle(p, bye);
  EXPECT_EQ(p.in(), 5u);
  EXPECT_EQ(p.done(), 2u);
  EXPECT_EQ(p.backlog(), 3u);
}

TEST(Probe, TimesEveryMessageWhileFewWait) {
  probe p;
  for (int i = 0; i < 100; ++i) {
    p.arrived();
    handle(p, hello);
  }
  std::uint64_t waits = 0, runs = 0;
  for (auto n : p.waits().read())
    waits += n;
  for (auto n : p.runs().read())
    runs += n;
  EXPECT_EQ(waits, 100u);
  EXPECT_EQ(runs, 100u);
  for (const auto& note : p.recent())
    EXPECT_NE(note.wait, not_timed);
}

TEST(Probe, SamplesUnderABacklogAndKeepsTheSums) {
  probe p;
  constexpr std::uint64_t many = 8000;
  for (std::uint64_t i = 0; i < many; ++i)
    p.arrived();
  for (std::uint64_t i = 0; i < many; ++i)
    handle(p, hello);
  std::uint64_t runs = 0;
  for (auto n : p.runs().read())
    runs += n;
  EXPECT_EQ(p.done(), many);
  EXPECT_EQ(p.of_types().at(0).count, many);
  EXPECT_NEAR(static_cast<double>(runs), many, 200); // each sample stands for eight
}

TEST(Probe, ALongWaitIsSeenHoweverLongTheQueue) {
  probe p;
  for (int i = 0; i < 1000; ++i)
    p.arrived();
  tick_scale scale;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int i = 0; i < 1000; ++i)
    handle(p, hello);
  EXPECT_GE(scale.microseconds(quantile(p.waits().read(), 0.5)), 15'000);
}

TEST(Probe, KeepsTheLast32) {
  probe p;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    p.arrived();
    handle(p, hello, i);
  }
  const auto notes = p.recent();
  ASSERT_EQ(notes.size(), 32u);
  for (std::size_t i = 0; i < notes.size(); ++i)
    EXPECT_EQ(notes[i].sender, 69 + i);
}

// What is read while the actor writes is whole, or left out.
TEST(Probe, ARingThatIsReadWhileItIsWrittenHoldsNoMixture) {
  probe p;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 300'000; ++i) {
      p.arrived();
      auto* slot = p.slot_of(hello);
      if (!slot)
        slot = p.add_slot(hello, nullptr);
      const auto begun = p.begin(slot);
      p.end(begun, i, 0, i, i);
    }
    over = true;
  });
  std::uint64_t read = 0;
  while (!over)
    for (const auto& note : p.recent()) {
      ++read;
      ASSERT_EQ(note.sender, note.number);
      ASSERT_EQ(note.request, note.number);
      ASSERT_EQ(note.about, note.number);
    }
  writer.join();
  EXPECT_GT(read, 0u);
}

TEST(Probe, MoreTypesThanItHasPlacesShareTheLast) {
  probe p;
  for (type_key type = 1000; type < 1000 + 40; ++type) {
    p.arrived();
    handle(p, type);
  }
  const auto types = p.of_types();
  ASSERT_EQ(types.size(), std::size_t{probe::types});
  EXPECT_EQ(types.back().type, 1u);
  EXPECT_EQ(types.back().count, 40u - (probe::types - 1));
}

TEST(Probe, NamesTellWhatTheirMailIsAbout) {
  struct {
    const char* name;
    std::string about;
  } const cases[] = {{"trial/7", "trial/7"},         {"allocation/7.2", "trial/7"}, {"worker/7.2", "trial/7"},
                     {"experiment/3", "experiment/3"}, {"searcher/3", "experiment/3"}, {"pool/default", ""},
                     {"journal", ""},                {"trial/x", ""},               {"trial/7x", ""}};
  for (const auto& c : cases)
    EXPECT_EQ(to_string_of(correlation_of_name(c.name)), c.about) << c.name;
}

} // namespace
} // namespace troupe
