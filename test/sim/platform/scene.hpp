#pragma once
// What the users of a history can do in it: give orders, wait, and read what is stored.

#include "model/result.hpp"
#include "model/time.hpp"
#include "model/value.hpp"
#include "storage/journal.hpp"

#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

struct scene {
  std::function<std::shared_ptr<storage::reader>()> reads; ///< null while the master is away
  std::function<void(duration, std::function<void()>)> later;
  /// Repeats an order until the master has answered, and passes the answer on.
  std::function<void(std::string order, value fields, std::function<void(const result<value>&)>)> insist;
  std::function<void(std::string)> note; ///< notes a fault, which ends the history
};

/// None: there is no such experiment, or it is deleted.
inline std::optional<experiment_state> state_of(const storage::reader& reads, experiment_id id) {
  if (const auto all = reads.experiment_standings())
    for (const auto& one : *all)
      if (one.id == id)
        return one.state;
  return std::nullopt;
}
inline bool has_ended(const storage::reader& reads, task_id id) {
  const auto row = reads.task(id);
  return row && row->ended != time_point{};
}
/// All tasks that users have made and that are not trials.
inline std::vector<task_detail> all_tasks(const storage::reader& reads) {
  std::vector<task_detail> all;
  for (const auto kind : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                          task_kind::generic})
    if (auto rows = reads.other_tasks(kind))
      std::move(rows->begin(), rows->end(), std::back_inserter(all));
  return all;
}

} // namespace troupe::sim
