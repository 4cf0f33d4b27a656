// The actor that reads the facts of a child that is made again: one question for each reader.

#include "actors/journal/fact_reader_actor.hpp"
#include "storage/stored_journal.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;

class FactReaderActor : public Stage {
protected:
  void SetUp() override {
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    journal = std::move(*made);
    ASSERT_TRUE(journal->append({"trial/7", 0, facts}));
    ASSERT_TRUE(journal->commit());
    reader = on_stage(spawn_fact_reader(*system_, journal->reads()));
  }
  void TearDown() override {
    Stage::TearDown();
    reader = nullptr;
  }
  result<std::vector<std::string>> read(const std::string& entity, std::uint64_t first = 0) {
    result<std::vector<std::string>> got = error{errc::internal, "no answer"};
    caf::scoped_actor self{*system_};
    auto answer = self->request(reader, std::chrono::seconds(1), read_facts{entity, first});
    run();
    answer.receive([&](facts_read& x) { got = std::move(x.facts); },
                   [&](const caf::error& why) { got = from_caf(why); });
    return got;
  }

  const std::vector<std::string> facts{encode(trial_activated{}), encode(run_started{{}, {1}, "", 0}),
                                       encode(run_ended{{}, {1}})};
  std::unique_ptr<storage::journal> journal;
  fact_reader_actor reader;
};

TEST_F(FactReaderActor, AnswersAllFactsOfAStreamOldestFirst) {
  const auto got = read("trial/7");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(*got, facts);
}

TEST_F(FactReaderActor, AnswersFromTheNumberOn) {
  const auto got = read("trial/7", 2);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_THAT(*got, ElementsAre(facts[2]));
}

TEST_F(FactReaderActor, HasNothingOfAStreamThatNobodyWrote) {
  const auto got = read("trial/8");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_TRUE(got->empty());
}

TEST_F(FactReaderActor, EndsWithItsAnswer) {
  ASSERT_TRUE(read("trial/7"));
  EXPECT_FALSE(config_.probes->find("fact_reader"));
  const auto second = read("trial/7");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::timeout);
}

} // namespace
} // namespace troupe
