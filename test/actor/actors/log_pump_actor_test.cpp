// The output of a task that has ended is stored at once, because somebody waits for the task's slots.

#include "actors/host/log_pump_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "storage/stored_journal.hpp"
#include "workers/task_init/task_format.hpp"

#include "stage.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace troupe {
namespace {

using namespace std::chrono_literals;
namespace format = task_format;

class LogPump : public Stage {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe-pump-XXXXXX";
    folder = ::mkdtemp(pattern);
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    reads = (*made)->reads();
    journal =
      on_stage(spawn_journal(*system_, std::shared_ptr<storage::journal>(std::move(*made)), journal_peers{}));
    agent = make_listener();
    // The pause between two looks at a running task is longer than the test.
    pump = on_stage(spawn_log_pump(*system_, agent.as<agent_actor>(), 1h));
    caf::anon_send(pump, journal);
  }
  void TearDown() override {
    Stage::TearDown();
    journal = nullptr;
    pump = nullptr;
    std::filesystem::remove_all(folder);
  }

  void spool(std::uint64_t count, std::uint64_t hole_from = 0, std::uint64_t hole_until = 0) {
    format::spool_header header{};
    std::memcpy(header.magic, format::spool_magic, sizeof header.magic);
    header.first_line = 1;
    std::ofstream file(folder / "00000001", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    for (std::uint64_t line = 1; line <= count; ++line) {
      if (line >= hole_from && line < hole_until)
        continue;
      const auto text = "line " + std::to_string(line);
      format::spool_record record{
        .bytes = std::uint32_t(text.size()), .rank = 0, .stream = 1, .flags = 0, .at_us = 1, .line = line};
      file.write(reinterpret_cast<const char*>(&record), sizeof record);
      file << text;
    }
  }
  void end_and_wait() {
    const auto before = agent.all<pumped>().size();
    caf::anon_send(pump, pump_spool{id, "a", folder.string()});
    caf::anon_send(pump, pump_end{id});
    run();
    const auto told = agent.all<pumped>();
    ASSERT_EQ(told.size(), before + 1);
    EXPECT_EQ(told.back().allocation, id);
  }
  std::size_t stored() { return reads->logs(id.trial(), 0, 100'000)->size(); }

  std::filesystem::path folder;
  listener agent;
  std::shared_ptr<storage::reader> reads;
  journal_actor journal;
  log_pump_actor pump;
  allocation_id id{{1}, {1}};
};

TEST_F(LogPump, ReadsTheOutputOfAnEndedTaskToItsEndAtOnce) {
  spool(5000); // more than one batch
  end_and_wait();
  EXPECT_EQ(stored(), 5000u);
}

TEST_F(LogPump, SaysWhereLinesAreMissingAndHowMany) {
  spool(5000, 1501, 3501); // as if a file of the spool had been deleted before it was read
  end_and_wait();
  const auto lines = reads->logs(id.trial(), 0, 100'000);
  ASSERT_EQ(lines->size(), 3001u);
  EXPECT_EQ((*lines)[1499].text, "line 1500");
  EXPECT_THAT((*lines)[1500].text, testing::HasSubstr("2000 lines are missing here"));
  EXPECT_EQ((*lines)[1500].stream, "troupe");
  EXPECT_EQ((*lines)[1501].text, "line 3501");
  end_and_wait(); // the same again, as after the agent's start: nothing is stored twice
  EXPECT_EQ(stored(), 3001u);
}

TEST_F(LogPump, OneThatSaidNothingIsOverAtOnce) {
  spool(0);
  end_and_wait();
  EXPECT_EQ(stored(), 0u);
}

TEST_F(LogPump, OneWhoseSpoolIsGoneIsOverAtOnce) {
  std::filesystem::remove_all(folder);
  end_and_wait();
  EXPECT_EQ(stored(), 0u);
}

TEST_F(LogPump, WhatTheJournalHoldsIsNotCarriedAgain) {
  spool(10);
  end_and_wait();
  end_and_wait(); // the same again, as after the agent's start
  EXPECT_EQ(stored(), 10u);
}

} // namespace
} // namespace troupe
