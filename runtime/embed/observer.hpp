#pragma once
// Tells a host what happens in its node: one thread reads after each commit and calls back. Nothing waits for
// this thread: a slow callback delays only other callbacks.

#include "runtime/embed/engine.hpp"
#include "storage/journal.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace troupe::embedding {

/// Thread-safe. The thread starts with the first subscription.
class observer {
public:
  using metric_call = std::function<void(const reported&)>;
  using fact_call =
    std::function<void(std::uint64_t, const std::string&, const std::string&, const std::string&)>;

  /// Where `tick` is set, the same thread calls it every `period`.
  observer(std::shared_ptr<storage::reader> reads, std::function<void()> tick, milliseconds period);
  ~observer(); ///< stops

  void committed(); ///< to be called after each commit; takes nanoseconds where nothing is subscribed
  std::uint64_t commits() const { return commits_; }
  void wait_for_commit(milliseconds limit) { wait_for_commit_after(commits_, limit); }
  void wait_for_commit_after(std::uint64_t seen, milliseconds limit);

  /// `replay` includes what was reported before.
  void on_metric(experiment_id of, metric_call fn, bool replay = true);
  void on_fact(fact_call fn);

  struct end {
    experiment_state state = experiment_state::completed;
    std::string why;
  };
  /// Set once the experiment is over and every earlier on_metric has heard all of its metrics.
  std::optional<end> ended(experiment_id of);

  void stop();

private:
  struct listener {
    experiment_id of;
    metric_call fn;
    std::map<std::uint64_t, std::uint64_t> heard; ///< by trial: the newest row that was told
    std::set<std::uint64_t> ended;                ///< trials that will report nothing more
    bool over = false;
  };
  void start();
  void loop();
  bool tell_metrics(listener& to);
  void tell_facts();

  const std::shared_ptr<storage::reader> reads_;
  const std::function<void()> tick_;
  const milliseconds period_;
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<int> waiting_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<listener>> listeners_;
  std::vector<std::pair<std::uint64_t, fact_call>> facts_; ///< each with the newest fact that it was told
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace troupe::embedding
