#include "actors/probe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
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

std::uint64_t sum(const tick_histogram& h) {
  std::uint64_t all = 0;
  for (auto n : h.read())
    all += n;
  return all;
}

TEST(Probe, TimesEveryMessageOfACalmActor) {
  probe p;
  for (std::uint64_t i = 0; i < probe::calm_messages; ++i) {
    p.arrived();
    handle(p, hello);
  }
  EXPECT_EQ(sum(p.waits()), probe::calm_messages);
  EXPECT_EQ(sum(p.runs()), probe::calm_messages);
  for (const auto& note : p.recent()) {
    EXPECT_NE(note.wait, not_timed);
    EXPECT_NE(note.run, not_timed);
  }
}

TEST(Probe, TimesEveryEighthMessageOfABusyActorAndCountsAll) {
  probe p;
  constexpr std::uint64_t many = 4000;
  for (std::uint64_t i = 0; i < many; ++i) {
    p.arrived();
    handle(p, hello);
  }
  EXPECT_FALSE(p.calm());
  EXPECT_EQ(p.done(), many);
  EXPECT_EQ(p.of_types().at(0).count, many);
  // Each message that is timed also stands for those before it that were not.
  EXPECT_NEAR(static_cast<double>(sum(p.runs())), many, probe::sampled);
  EXPECT_NEAR(static_cast<double>(sum(p.waits())), many, probe::sampled);
  const auto notes = p.recent();
  EXPECT_EQ(std::count_if(notes.begin(), notes.end(), [](const auto& note) { return note.run != not_timed; }),
            32 / probe::sampled);
  EXPECT_EQ(
    std::count_if(notes.begin(), notes.end(), [](const auto& note) { return note.wait != not_timed; }),
    32 / probe::sampled);
}

TEST(Probe, IsCalmAgainAfterAWindowWithFewMessages) {
  probe p;
  for (int i = 0; i < 100; ++i) {
    p.arrived();
    handle(p, hello);
  }
  EXPECT_FALSE(p.calm());
  for (std::uint64_t i = 0; i < 3 * probe::sampled; ++i) { // three messages are timed
    if (i % probe::sampled == 0)
      for (const auto until = ticks_now() + calm_window + 1; ticks_now() < until;)
        ;
    p.arrived();
    handle(p, hello);
  }
  EXPECT_TRUE(p.calm());
}

TEST(Probe, KeepsATextOfWhatACalmActorTook) {
  probe p;
  const brief_writer writes = [](const void* content, char* to, std::size_t most) {
    return static_cast<const std::string*>(content)->copy(to, most);
  };
  const std::string texts[] = {"one", "", std::string(100, 'x')};
  for (const auto& text : texts) {
    p.arrived();
    auto* slot = p.slot_of(hello);
    if (!slot)
      slot = p.add_slot(hello, nullptr, writes);
    p.end(p.begin(slot, p.keep(slot->writes, &text)), 0, 0, 0, 0);
  }
  p.arrived();
  handle(p, hello); // this message has no text
  const auto notes = p.recent();
  ASSERT_EQ(notes.size(), 4u);
  EXPECT_EQ(notes[0].brief, "one");
  EXPECT_EQ(notes[1].brief, "");
  EXPECT_EQ(notes[2].brief, std::string(probe::brief_bytes, 'x'));
  EXPECT_EQ(notes[3].brief, "");
}

TEST(TickScale, AMomentAgreesWithTheScale) {
  tick_scale scale;
  for (const auto until = ticks_now() + scale.ticks(std::chrono::milliseconds(5)); ticks_now() < until;)
    ;
  const auto now = scale.now();
  EXPECT_EQ(now.wall_at(now.ticks), now.wall);
  const auto second = scale.ticks(std::chrono::seconds(1));
  EXPECT_NEAR(now.microseconds(second), 1e6, 1e5);
  EXPECT_NEAR(std::chrono::duration<double>(now.wall - now.wall_at(now.ticks - second)).count(), 1, 0.1);
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
  EXPECT_NEAR(static_cast<double>(runs), many, probe::sampled); // each sample stands for `sampled` messages
}

TEST(Probe, ALongWaitIsSeenHoweverLongTheQueue) {
  probe p;
  for (int i = 0; i < 1000; ++i)
    p.arrived();
  tick_scale scale;
  // The scale has measured for too short a time so far to convert ticks.
  using clock = std::chrono::steady_clock;
  for (const auto until = clock::now() + std::chrono::milliseconds(20); clock::now() < until;)
    std::this_thread::yield();
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

// A note that is read while the actor writes has to be whole or left out.
TEST(Probe, ARingThatIsReadWhileItIsWrittenHoldsNoMixture) {
  probe p;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> read{0};
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 300'000 || read < 1000; ++i) {
      p.arrived();
      auto* slot = p.slot_of(hello);
      if (!slot)
        slot = p.add_slot(hello, nullptr);
      const auto begun = p.begin(slot);
      p.end(begun, i, 0, i, i);
    }
    over = true;
  });
  while (!over)
    for (const auto& note : p.recent()) {
      ++read;
      ASSERT_EQ(note.sender, note.number);
      ASSERT_EQ(note.request, note.number);
      ASSERT_EQ(note.about, note.number);
    }
  writer.join();
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
  } const cases[] = {{"trial/7", "trial/7"},
                     {"allocation/7.2", "trial/7"},
                     {"worker/7.2", "trial/7"},
                     {"experiment/3", "experiment/3"},
                     {"searcher/3", "experiment/3"},
                     {"pool/default", ""},
                     {"journal", ""},
                     {"trial/x", ""},
                     {"trial/7x", ""}};
  for (const auto& c : cases)
    EXPECT_EQ(to_string_of(correlation_of_name(c.name)), c.about) << c.name;
}

} // namespace
} // namespace troupe
