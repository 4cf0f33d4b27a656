// The output of a task that has ended is carried at once: somebody waits for its slots.

#include "actors/host/log_pump_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "actors/shells/probed.hpp"
#include "storage/stored_journal.hpp"
#include "workers/task_init/task_format.hpp"

#include <caf/all.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
namespace format = task_format;

class LogPump : public testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe-pump-XXXXXX";
    folder = ::mkdtemp(pattern);
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    reads = (*made)->reads();
    journal = spawn_journal(system, std::shared_ptr<storage::journal>(std::move(*made)), journal_peers{});
    // This thread is the agent. No look at a running task comes within the test.
    pump = spawn_log_pump(system, caf::actor_cast<agent_actor>(caf::actor{self.ptr()}), 1h);
    self->send(pump, journal);
  }
  void TearDown() override {
    for (auto& one : {caf::actor_cast<caf::actor>(pump), caf::actor_cast<caf::actor>(journal)}) {
      self->send_exit(one, caf::exit_reason::user_shutdown);
      self->wait_for(one);
    }
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
    self->send(pump, pump_spool{id, "a", folder.string()});
    self->send(pump, pump_end{id});
    bool told = false;
    self->receive([&](const pumped& x) { told = x.allocation == id; }, caf::after(60s) >> [] {});
    EXPECT_TRUE(told);
  }
  std::size_t stored() { return reads->logs(id.trial(), 0, 100'000)->size(); }

  node_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  std::filesystem::path folder;
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
  spool(5000, 1501, 3501); // as where a file of the spool had to go before it was read
  end_and_wait();
  const auto lines = reads->logs(id.trial(), 0, 100'000);
  ASSERT_EQ(lines->size(), 3001u);
  EXPECT_EQ((*lines)[1499].text, "line 1500");
  EXPECT_THAT((*lines)[1500].text, testing::HasSubstr("2000 lines are missing here"));
  EXPECT_EQ((*lines)[1500].stream, "troupe");
  EXPECT_EQ((*lines)[1501].text, "line 3501");
  end_and_wait(); // as after the agent's start: nothing is said twice
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
}

TEST_F(LogPump, WhatTheJournalHoldsIsNotCarriedAgain) {
  spool(10);
  end_and_wait();
  end_and_wait(); // as after the agent's start
  EXPECT_EQ(stored(), 10u);
}

} // namespace
} // namespace troupe
