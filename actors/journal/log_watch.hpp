#pragma once
// What is looked for in the lines of logs before they are stored: the log policies of experiments and of
// tasks that are no trials, and the triggers of webhooks. The cluster says what, the journal looks.
// Thread-safe.

#include "actors/journal/line_matched.hpp"
#include "actors/journal/log_patterns.hpp"
#include "model/rows.hpp"
#include "model/value.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace troupe {

class log_watch {
public:
  /// `experiment_of`: 0 where the task belongs to none; called from the journal's thread.
  explicit log_watch(std::function<experiment_id(task_id)> experiment_of);

  /// The section `log_policies` of a complete configuration, in place of what was looked for before: for the
  /// trials of an experiment, or for one task of another kind.
  void watch(experiment_id of, const value& log_policies);
  void watch_other(task_id of, const value& log_policies);
  void forget(experiment_id of);
  void forget_other(task_id of);
  /// Triggers of webhooks, all of them.
  void watch(std::vector<std::pair<webhook_id, std::string>> triggers);

  /// What matched, each trigger and each policy once for each task, those that leave an agent out once for
  /// each agent of a task, until `told`. Lines of our own are passed over, and the line that prints the
  /// configuration.
  std::vector<line_matched> look(const std::vector<log_line>& lines);
  /// These are durable: further lines that match the same are passed over.
  void told(const std::vector<line_matched>& lines);

private:
  struct policy {
    std::string name, pattern;
    bool exclude_agent = false, cancel_retries = false;
  };
  struct policies {
    std::vector<policy> all;
    std::shared_ptr<const log_patterns> patterns;
    std::set<std::string> told;
  };
  struct triggers {
    std::vector<std::pair<webhook_id, std::string>> all;
    std::shared_ptr<const log_patterns> patterns;
  };
  static policies compiled(const value& log_policies);
  /// Null where nothing is looked for. Called with the mutex held.
  policies* policies_of(task_id task);
  void look(const log_line& line, std::vector<line_matched>& into);

  const std::function<experiment_id(task_id)> experiment_of_;
  std::mutex mutex_;
  std::map<experiment_id, policies> policies_;
  std::map<task_id, policies> of_tasks_; ///< those that are no trials
  triggers triggers_;
  std::map<task_id, experiment_id> experiments_; ///< of trials that wrote lines lately; bounded
  std::set<std::string> told_;                   ///< triggers by task; bounded
  std::vector<std::size_t> hits_;                ///< kept for its memory
};

} // namespace troupe
