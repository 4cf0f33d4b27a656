#pragma once
// Which experiments exist, and the ids of what is created; who the members are decides members.hpp. Pure; the
// shell is cluster_actor.cpp.

#include "actors/machine.hpp"

#include <map>
#include <set>

namespace troupe {

/// Numbers given so far, as the projections know them at start.
struct id_counters {
  experiment_id newest_experiment;
  trial_id newest_trial;
};

/// Not thread-safe: one actor owns it.
class cluster {
public:
  explicit cluster(id_counters ids) : ids_(ids) {}

  /// A new experiment gets the next id. The same non-empty key again gives the same id and no fact.
  struct created {
    experiment_id id;
    std::vector<cluster_fact> facts;
  };
  [[nodiscard]] created create(experiment_created wanted);

  /// The first of `count` fresh trial ids. Soft: after a crash only those that stand in a fact are used up.
  trial_id reserve_trials(std::uint64_t count);

  /// Nothing superfluous of experiment `id` is left. No fact where that is known, or the experiment is not.
  [[nodiscard]] std::vector<cluster_fact> swept(experiment_id id, time_point now);
  bool unswept(experiment_id id) const { return unswept_.contains(id); }

  /// Orders the end of an experiment that has ended. No fact where it is ordered already.
  [[nodiscard]] std::vector<cluster_fact> order_deletion(experiment_id id, const std::string& by,
                                                         time_point now);
  /// What was ordered is done, or failed for this reason. No fact where it was not ordered.
  [[nodiscard]] std::vector<cluster_fact> deleted(experiment_id id, std::vector<trial_id> trials,
                                                  time_point now);
  [[nodiscard]] std::vector<cluster_fact> deletion_failed(experiment_id id, const std::string& why,
                                                          time_point now);
  /// The same of a single trial of an experiment that stays. No fact either where the experiment goes.
  [[nodiscard]] std::vector<cluster_fact> order_deletion(experiment_id of, trial_id id, const std::string& by,
                                                         time_point now);
  [[nodiscard]] std::vector<cluster_fact> deleted(trial_id id, time_point now);
  [[nodiscard]] std::vector<cluster_fact> deletion_failed(trial_id id, const std::string& why,
                                                          time_point now);
  /// An experiment that has ended goes on. `ended_as` is how often it had been continued when it ended: no
  /// fact where it is continued already.
  [[nodiscard]] std::vector<cluster_fact> go_on(experiment_continued wanted, std::uint32_t ended_as);
  /// How often it was continued, with one that is not durable yet.
  std::uint32_t continued(experiment_id id) const {
    const auto at = continued_.find(id);
    return at == continued_.end() ? 0 : at->second;
  }
  /// Who ordered each deletion that is under way.
  const std::map<experiment_id, std::string>& deleting() const { return deleting_; }
  struct doomed_trial {
    experiment_id experiment;
    std::string by;
    MSGPACK_DEFINE_ARRAY(experiment, by)
  };
  const std::map<trial_id, doomed_trial>& deleting_trials() const { return deleting_trials_; }

  /// Facts of the members change nothing here.
  void replay(const cluster_fact& fact);
  std::string snapshot() const;
  value describe() const; ///< the state, for people

private:
  id_counters ids_;
  std::map<std::string, experiment_id> keys_;
  std::set<experiment_id> unswept_;
  std::map<experiment_id, std::string> deleting_;
  std::map<trial_id, doomed_trial> deleting_trials_;
  std::map<experiment_id, std::uint32_t> continued_; ///< how often, of those that were
};

} // namespace troupe
