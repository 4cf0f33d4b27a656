// Tests the worker actor in the process of a trial, with an agent that is a few functions.

#include "workers/trial/conductor.hpp"
#include "workers/trial/report_sink.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

namespace troupe::trial {
namespace {

using namespace std::chrono_literals;
using namespace workers;

struct talking_sink final : report_sink {
  result<void> training(std::int64_t, const metrics&) override { return {}; }
  result<void> validation(std::int64_t, const metrics&) override { return {}; }
  result<void> checkpoint(const std::string&, std::int64_t, const file_list&) override { return {}; }
  result<std::filesystem::path> checkpoint_root() override { return std::filesystem::path(); }
  result<std::filesystem::path> resume_from() override { return std::filesystem::path(); }
  void progress(double) override {}
  std::string stop_reason() override { return {}; }
  result<void> finish() override { return {}; }
  std::string place() const override { return {}; }
  void listen(std::function<void(std::uint64_t, std::string)> order,
              std::function<void(std::string)> refused) override {
    std::lock_guard held(lock);
    give = std::move(order);
    refuse = std::move(refused);
  }
  void say(std::uint64_t protocol, std::string word) override {
    std::lock_guard held(lock);
    EXPECT_EQ(protocol, worker_protocol);
    words.push_back(decode_worker<worker_word>(word).value());
    changed.notify_all();
  }
  template <class Which>
  bool hears(Which which) {
    std::unique_lock held(lock);
    return changed.wait_for(held, 20s, [&] { return std::any_of(words.begin(), words.end(), which); });
  }
  void order(worker_order x) {
    std::lock_guard held(lock);
    give(worker_protocol, encode_worker(x));
  }

  std::mutex lock;
  std::condition_variable changed;
  std::vector<worker_word> words;
  std::function<void(std::uint64_t, std::string)> give;
  std::function<void(std::string)> refuse;
};

auto status_with(auto holds) {
  return [=](const worker_word& word) {
    const auto* status = std::get_if<worker_status>(&word);
    return status && holds(*status);
  };
}

TEST(WorkerProcess, SaysHowItIsFromTheStartAndEachSecond) {
  talking_sink sink;
  const auto worker = start_worker(sink);
  EXPECT_TRUE(sink.hears(status_with([](const auto& s) { return s.phase == worker_phase::starting; })));
  worker->enter(worker_phase::training, 0, 0, 200);
  worker->orders().stepped(17);
  EXPECT_TRUE(sink.hears(status_with([](const auto& s) { return s.step == 17 && s.batches == 200; })))
    << "with its next second";
}

TEST(WorkerProcess, AnOrderReachesTheThreadThatTrains) {
  talking_sink sink;
  const auto worker = start_worker(sink);
  auto& orders = worker->orders();
  EXPECT_EQ(orders.look().until, 0);
  sink.order(train_until{200, true});
  EXPECT_EQ(orders.await([](const mandate& m) { return m.until > 0; }, 20s).until, 200);
  sink.order(stop_training{"pause"});
  EXPECT_EQ(orders.await([](const mandate& m) { return !m.stop.empty(); }, 20s).stop, "pause");
  EXPECT_EQ(orders.look().until, 200) << "orders add up";
  EXPECT_TRUE(sink.hears(status_with([](const auto& s) { return s.until == 200; })));
}

TEST(WorkerProcess, TellsWhatItTookButNotItsTicks) {
  talking_sink sink;
  const auto worker = start_worker(sink);
  worker->enter(worker_phase::ready, 0, 0, 200);
  sink.order(train_until{200});
  EXPECT_TRUE(sink.hears([](const worker_word& word) {
    const auto* mail = std::get_if<worker_heard>(&word);
    if (!mail || mail->taken != 2 || mail->recent.size() != 2)
      return false;
    const auto &first = mail->recent[0], &second = mail->recent[1];
    return first.type == "phase_entered" && second.type == "order_arrived" &&
           std::string(second.brief.begin(), second.brief.end()) ==
             encode_worker(worker_order{train_until{200}}) &&
           first.run_ns >= 0 && second.wait_ns >= 0 && first.at <= second.at;
  }));
}

TEST(WorkerProcess, WaitsNoLongerThanItIsTold) {
  talking_sink sink;
  const auto worker = start_worker(sink);
  EXPECT_EQ(worker->orders().await([](const mandate& m) { return m.until > 0; }, 10ms).until, 0);
}

TEST(WorkerProcess, AFailureIsSaidBeforeTheProcessEnds) {
  talking_sink sink;
  {
    const auto worker = start_worker(sink);
    worker->fail("out of luck");
    std::lock_guard held(sink.lock);
    EXPECT_TRUE(std::any_of(sink.words.begin(), sink.words.end(), [](const worker_word& word) {
      const auto* said = std::get_if<worker_failure>(&word);
      return said && said->why == "out of luck";
    }));
  }
  EXPECT_FALSE(sink.give) << "nobody listens any more";
}

TEST(WorkerProcess, ARefusalIsHandedOver) {
  talking_sink sink;
  const auto worker = start_worker(sink);
  {
    std::lock_guard held(sink.lock);
    sink.refuse("another version");
  }
  EXPECT_EQ(worker->orders().await([](const mandate& m) { return !m.refused.empty(); }, 20s).refused,
            "another version");
}

TEST(BatchShare, CoversTheBatchOnceAndWeighsByItsSize) {
  for (const std::int64_t batch : {1, 7, 64, 65})
    for (int size = 1; size <= 9; ++size) {
      std::int64_t next = 0;
      double weights = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto mine = share_of(batch, rank, size);
        EXPECT_EQ(mine.first, next) << batch << " over " << size;
        EXPECT_NEAR(mine.weight, double(mine.count) * size / double(batch), 1e-15);
        next += mine.count;
        weights += mine.weight / size;
      }
      EXPECT_EQ(next, batch);
      EXPECT_NEAR(weights, 1, 1e-12);
    }
}

} // namespace
} // namespace troupe::trial
