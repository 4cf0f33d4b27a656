#include "runtime/api/open_runs.hpp"

namespace troupe::api {
namespace {

result<void> count_newest(const storage::reader& storage, task_id id, open_runs& count) {
  auto runs = storage.runs(id);
  if (!runs)
    return runs.error();
  if (!runs->empty() && runs->back().ended == time_point{} && !runs->back().on.empty()) {
    ++count.placed;
    count.backfilled += runs->back().backfilled;
  }
  return {};
}

} // namespace

result<std::map<experiment_id, open_runs>> open_runs_by_job(const storage::reader& storage) {
  auto open = storage.open_tasks();
  if (!open)
    return open.error();
  std::map<experiment_id, open_runs> out;
  for (const auto& task : *open) {
    open_runs one;
    if (auto fine = count_newest(storage, task.id, one); !fine)
      return fine.error();
    if (one.placed == 0)
      continue;
    auto& count = out[task.id.is_trial() ? task.experiment : job_of(task.id)];
    count.placed += one.placed;
    count.backfilled += one.backfilled;
  }
  return out;
}

result<open_runs> open_runs_of(const storage::reader& storage, const std::vector<trial_id>& trials) {
  open_runs count;
  for (auto it = trials.rbegin(); it != trials.rend() && count.placed == count.backfilled; ++it) {
    const auto task = storage.task(*it);
    if (!task || !task->open)
      continue; // the task was deleted meanwhile, or has ended
    if (auto fine = count_newest(storage, *it, count); !fine)
      return fine.error();
  }
  return count;
}

const char* job_state(const open_runs& runs) {
  return runs.placed == 0                 ? "STATE_QUEUED"
         : runs.placed == runs.backfilled ? "STATE_SCHEDULED_BACKFILLED"
                                          : "STATE_SCHEDULED";
}

value job_summary(experiment_id id, const open_runs& runs, const value& pool) {
  const auto summary = [&](std::int64_t ahead) {
    return value{{"state", job_state(runs)},
                 {"jobsAhead", pool.value("scheduler", "") == "fair" ? -1 : ahead}};
  };
  std::int64_t ahead = 0;
  for (const auto& job : pool.value("jobs", value::array())) {
    if (job.value("experiment", std::uint64_t{0}) == id.value)
      return summary(ahead);
    ++ahead;
  }
  return runs.placed > 0 ? summary(0) : value();
}

} // namespace troupe::api
