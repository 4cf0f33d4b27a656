#include "actors/cluster/cluster.hpp"

#include "model/names.hpp"

#include <algorithm>

namespace troupe {

experiment_id cluster::with_key(const std::string& key, const seen_by& sees) const {
  const auto end = keys_.lower_bound(after_numbered(key));
  std::vector<experiment_id> having;
  for (auto at = keys_.lower_bound(key); at != end; ++at)
    having.push_back(at->second);
  return meant_by_key(having, sees);
}

cluster::created cluster::create(experiment_created wanted, const seen_by& sees) {
  if (!wanted.key.empty()) {
    if (const auto known = with_key(wanted.key, sees))
      return {known, {}};
    std::size_t n = 1;
    while (keys_.contains(numbered_key(wanted.key, n)))
      ++n;
    wanted.key = numbered_key(wanted.key, n);
  }
  wanted.id = {ids_.newest_experiment.value + 1};
  cluster_fact fact = std::move(wanted);
  replay(fact);
  return {ids_.newest_experiment, {std::move(fact)}};
}

std::vector<cluster_fact> cluster::swept(experiment_id id, time_point now) {
  if (!unswept_.contains(id))
    return {};
  cluster_fact fact = experiment_swept{now, id};
  replay(fact);
  return {std::move(fact)};
}

std::vector<cluster_fact> cluster::order_deletion(experiment_id id, const std::string& by, time_point now) {
  if (deleting_.contains(id))
    return {};
  cluster_fact fact = experiment_deleted{now, by, id, deletion_step::ordered, {}, {}};
  replay(fact);
  return {std::move(fact)};
}

std::vector<cluster_fact> cluster::deleted(experiment_id id, std::vector<trial_id> trials, time_point now) {
  auto at = deleting_.find(id);
  if (at == deleting_.end())
    return {};
  cluster_fact fact = experiment_deleted{now, at->second, id, deletion_step::done, {}, std::move(trials)};
  replay(fact);
  return {std::move(fact)};
}

std::vector<cluster_fact> cluster::deletion_failed(experiment_id id, const std::string& why, time_point now) {
  auto at = deleting_.find(id);
  if (at == deleting_.end())
    return {};
  cluster_fact fact = experiment_deleted{now, at->second, id, deletion_step::failed, why, {}};
  replay(fact);
  return {std::move(fact)};
}

std::vector<cluster_fact> cluster::order_deletion(experiment_id of, trial_id id, const std::string& by,
                                                  time_point now) {
  if (deleting_.contains(of) || deleting_trials_.contains(id))
    return {};
  cluster_fact fact = trial_deleted{now, by, of, id, deletion_step::ordered, {}};
  replay(fact);
  return {std::move(fact)};
}

std::vector<cluster_fact> cluster::deleted(trial_id id, time_point now) {
  auto at = deleting_trials_.find(id);
  if (at == deleting_trials_.end())
    return {};
  cluster_fact fact = trial_deleted{now, at->second.by, at->second.experiment, id, deletion_step::done, {}};
  replay(fact);
  return {std::move(fact)};
}

std::vector<cluster_fact> cluster::deletion_failed(trial_id id, const std::string& why, time_point now) {
  auto at = deleting_trials_.find(id);
  if (at == deleting_trials_.end())
    return {};
  cluster_fact fact =
    trial_deleted{now, at->second.by, at->second.experiment, id, deletion_step::failed, why};
  replay(fact);
  return {std::move(fact)};
}

std::vector<cluster_fact> cluster::go_on(experiment_continued wanted, std::uint32_t ended_as) {
  const bool loses_a_trial = std::any_of(deleting_trials_.begin(), deleting_trials_.end(),
                                         [&](const auto& one) { return one.second.experiment == wanted.id; });
  if (continued(wanted.id) != ended_as || deleting_.contains(wanted.id) || loses_a_trial)
    return {};
  wanted.number = ended_as + 1;
  cluster_fact fact = std::move(wanted);
  replay(fact);
  return {std::move(fact)};
}

trial_id cluster::reserve_trials(std::uint64_t count) {
  trial_id first{ids_.newest_trial.value + 1};
  ids_.newest_trial.value += count;
  return first;
}

void cluster::replay(const cluster_fact& fact) {
  std::visit(overloaded{
               [this](const experiment_created& f) {
                 ids_.newest_experiment = std::max(ids_.newest_experiment, f.id);
                 if (!f.key.empty())
                   keys_[f.key] = f.id;
                 unswept_.insert(f.id);
               },
               [this](const experiment_swept& f) { unswept_.erase(f.id); },
               [this](const experiment_deleted& f) {
                 if (f.step == deletion_step::ordered)
                   deleting_[f.id] = f.by;
                 else
                   deleting_.erase(f.id);
                 if (f.step != deletion_step::done)
                   return;
                 unswept_.erase(f.id);
                 continued_.erase(f.id);
                 std::erase_if(deleting_trials_,
                               [&](const auto& one) { return one.second.experiment == f.id; });
                 std::erase_if(keys_, [&](const auto& one) { return one.second == f.id; });
               },
               [this](const trial_deleted& f) {
                 if (f.step == deletion_step::ordered)
                   deleting_trials_[f.trial] = {f.experiment, f.by};
                 else
                   deleting_trials_.erase(f.trial);
               },
               [this](const experiment_continued& f) {
                 continued_[f.id] = f.number;
                 unswept_.insert(f.id); // the checkpoints are swept again at the next end of the experiment
               },
               [this](const experiment_described& f) { // swept again, as fewer checkpoints may be kept
                 if (f.save_experiment_best >= 0 || f.save_trial_best >= 0 || f.save_trial_latest >= 0)
                   unswept_.insert(f.id);
               },
               [](const auto&) {},
             },
             fact);
}

std::string cluster::snapshot() const {
  return pack(std::tuple{ids_.newest_experiment, keys_, unswept_, deleting_, deleting_trials_, continued_});
}

value cluster::describe() const {
  value unswept = value::array();
  for (const auto& id : unswept_)
    unswept.push_back(id.value);
  return {{"newest_experiment", ids_.newest_experiment.value},
          {"newest_trial", ids_.newest_trial.value},
          {"keys", keys_.size()},
          {"unswept", unswept},
          {"deleting", deleting_.size() + deleting_trials_.size()}};
}

} // namespace troupe
