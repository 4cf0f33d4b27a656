#pragma once
// Patterns that the journal looks for in the lines of logs before they are stored: the log policies of
// experiments and of tasks that are not trials, and the triggers of webhooks. The cluster sets them, and the
// journal looks. Thread-safe.

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
  /// `experiment_of` returns the task's experiment, 0 if it has none; called on the journal's thread.
  explicit log_watch(std::function<experiment_id(task_id)> experiment_of);

  /// Sets what is looked for, from the section `log_policies` of a complete configuration: `watch` for the
  /// trials of an experiment, `watch_other` for one task of another kind. It replaces what was set before.
  void watch(experiment_id of, const value& log_policies);
  void watch_other(task_id of, const value& log_policies);
  void forget(experiment_id of);
  void forget_other(task_id of);
  /// Sets the triggers of all webhooks.
  void watch(std::vector<std::pair<webhook_id, std::string>> triggers);

  /// Returns the lines that match. Until `told`, a trigger or policy matches once for each task; a policy
  /// that excludes an agent matches once for each agent of a task. The platform's own lines and the line that
  /// prints the configuration are passed over.
  std::vector<line_matched> look(const std::vector<log_line>& lines);
  /// These matches are durable: further lines that match the same are passed over.
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
  /// Null if nothing is looked for. To be called with the mutex held.
  policies* policies_of(task_id task);
  void look(const log_line& line, std::vector<line_matched>& into);

  const std::function<experiment_id(task_id)> experiment_of_;
  std::mutex mutex_;
  std::map<experiment_id, policies> policies_;
  std::map<task_id, policies> of_tasks_; ///< tasks that are not trials
  triggers triggers_;
  /// Experiments of the trials that wrote lines lately; bounded.
  std::map<task_id, experiment_id> experiments_;
  std::set<std::string> told_;    ///< triggers that were told, by task; bounded
  std::vector<std::size_t> hits_; ///< a member only to use its memory again
};

} // namespace troupe
