#pragma once
// The machine `cluster` decides which experiments exist, which ids new things get, and which deletions are
// under way. Agents and pools are the subject of members.hpp. Pure; the shell is cluster_actor.cpp.

#include "actors/machine.hpp"
#include "model/sight.hpp"

#include <map>
#include <set>

namespace troupe {

/// The highest numbers given so far, as the projections know them at the start.
struct id_counters {
  experiment_id newest_experiment;
  trial_id newest_trial;
};

/// Not thread-safe: one actor owns the machine.
class cluster {
public:
  explicit cluster(id_counters ids) : ids_(ids) {}

  /// Which experiment that was created with this key its submitter means (`meant_by_key`); 0: none.
  experiment_id with_key(const std::string& key, const seen_by& sees) const;
  /// A new experiment gets the next id. A repeat of a key that is not empty gives the same id and no fact,
  /// where the submitter `sees` the experiment. Where not, the new one gets a key of the same name
  /// (`numbered_key`), so that nobody learns of another's experiment by its key.
  struct created {
    experiment_id id;
    std::vector<cluster_fact> facts;
  };
  [[nodiscard]] created create(experiment_created wanted, const seen_by& sees);

  /// Returns the first of `count` new trial ids. The reservation is soft: after a crash, ids that no fact
  /// holds are given again.
  trial_id reserve_trials(std::uint64_t count);

  /// To be called when retention has deleted all that the configuration of experiment `id` does not keep.
  /// Gives no fact where that is known already, or the experiment is not known.
  [[nodiscard]] std::vector<cluster_fact> swept(experiment_id id, time_point now);
  bool unswept(experiment_id id) const { return unswept_.contains(id); }

  /// Orders the deletion of an experiment that has ended. Gives no fact where the deletion is ordered
  /// already.
  [[nodiscard]] std::vector<cluster_fact> order_deletion(experiment_id id, const std::string& by,
                                                         time_point now);
  /// The ordered deletion is done, or failed for the reason `why`. Both give no fact where none was ordered.
  [[nodiscard]] std::vector<cluster_fact> deleted(experiment_id id, std::vector<trial_id> trials,
                                                  time_point now);
  [[nodiscard]] std::vector<cluster_fact> deletion_failed(experiment_id id, const std::string& why,
                                                          time_point now);
  /// The same three calls for a single trial of an experiment that stays. Ordering gives no fact where the
  /// whole experiment is being deleted, either.
  [[nodiscard]] std::vector<cluster_fact> order_deletion(experiment_id of, trial_id id, const std::string& by,
                                                         time_point now);
  [[nodiscard]] std::vector<cluster_fact> deleted(trial_id id, time_point now);
  [[nodiscard]] std::vector<cluster_fact> deletion_failed(trial_id id, const std::string& why,
                                                          time_point now);
  /// Continues an experiment that has ended. `ended_as` is how often the experiment had been continued when
  /// it ended; there is no fact where it has been continued since then.
  [[nodiscard]] std::vector<cluster_fact> go_on(experiment_continued wanted, std::uint32_t ended_as);
  /// How often the experiment was continued, counting a continuation that is not durable yet.
  std::uint32_t continued(experiment_id id) const {
    const auto at = continued_.find(id);
    return at == continued_.end() ? 0 : at->second;
  }
  /// Who ordered each deletion that is under way.
  const std::map<experiment_id, std::string>& deleting() const { return deleting_; }
  struct doomed_trial {
    experiment_id experiment;
    std::string by;
    TROUPE_PACKED(experiment, by)
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
  std::map<experiment_id, std::uint32_t> continued_; ///< how often each experiment was continued, if ever
};

} // namespace troupe
