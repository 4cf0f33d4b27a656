#include "actors/retention/expired_logs_part.hpp"

#include "actors/retention/retention.hpp"
#include "actors/shells/durable.hpp"
#include "model/config/cluster_config.hpp"
#include "storage/keys.hpp"

#include <caf/all.hpp>

namespace troupe {

caf::result<logs_cleaned> expired_logs::erase() {
  auto work = std::make_shared<cleaning>(cleaning{find(), 0, self_->make_response_promise<logs_cleaned>()});
  erase_next(work);
  return work->promise;
}

void expired_logs::look() { erase_next(std::make_shared<cleaning>(cleaning{find(), 0, {}})); }

bool expired_logs::has_lines(task_id id) const {
  const auto lines = reads_->logs(id, 0, 1);
  return lines && !lines->empty();
}

std::vector<task_id> expired_logs::find() const {
  std::vector<task_id> out;
  const auto configuration = reads_->configuration();
  if (!configuration)
    return out; // the cluster's setting is not known: the next look finds the logs
  const auto usual =
    *configuration ? config::log_retention((*configuration)->configuration) : std::optional<duration>{};
  for (const auto kind : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                          task_kind::generic}) {
    auto others = usual ? reads_->other_tasks(kind) : std::vector<task_detail>{};
    for (const auto& one : others ? *others : std::vector<task_detail>{})
      if (log_expired(usual, one.ended, self_->now()) && has_lines(one.made.id))
        out.push_back(one.made.id);
  }
  auto experiments = reads_->experiments();
  for (const auto& experiment : experiments ? *experiments : std::vector<experiment_row>{}) {
    const auto policy = retention_of(experiment.config);
    auto said = storage::records_of<log_retention_changed>(*reads_, storage::keys::one(experiment.id.value));
    auto trials = said && (usual || policy.log_days || !said->empty()) ? reads_->trials(experiment.id)
                                                                       : std::vector<trial_row>{};
    for (const auto& trial : trials ? *trials : std::vector<trial_row>{})
      if (log_expired(log_life(policy, *said, trial.id, usual), trial.ended, self_->now()) &&
          has_lines(trial.id))
        out.push_back(trial.id);
  }
  return out;
}

void expired_logs::erase_next(const std::shared_ptr<cleaning>& work) {
  if (work->left.empty()) {
    if (work->promise.pending())
      work->promise.deliver(logs_cleaned{work->erased});
    return;
  }
  const auto task = work->left.back();
  work->left.pop_back();
  self_->request(journal_, journal_timeout, erase_log{task, false})
    .then(
      [this, work](const committed&) {
        ++work->erased;
        erase_next(work);
      },
      [work](const caf::error& why) { // the next look finds the rest
        if (work->promise.pending())
          work->promise.deliver(why);
      });
}

} // namespace troupe
