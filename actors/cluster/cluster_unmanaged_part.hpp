#pragma once
// Unmanaged experiments: the reports of their processes become facts of their streams, one change after the
// other for each experiment. It is a part of the cluster actor, which alone calls it; the decisions are made
// in actors/experiment/unmanaged.hpp.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/experiment/experiment_settings.hpp"
#include "actors/experiment/unmanaged.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

#include <deque>
#include <map>
#include <set>

namespace troupe {

class cluster_unmanaged {
public:
  struct needs {
    std::function<void(experiment_id)> ended; ///< called once the end of the experiment is durable
    std::function<result<experiment_settings>(const experiment_row&)> settings;
    std::function<void()> arm;        ///< to be called when `deadline` has changed
    std::shared_ptr<log_watch> lines; ///< looks for patterns in logs; null: nobody does
  };
  cluster_unmanaged(actor_base<cluster_actor>* self, const cluster_peers& peers, cluster_machines& machine,
                    needs with)
      : self_(self), peers_(peers), machine_(machine), with_(std::move(with)) {}

  /// Why a creation makes no sense; nothing where it does. `known`: its external id is one that the caller
  /// sees an experiment of.
  std::optional<error> refuses(const commands::experiment_create& x, bool known) const;
  /// Takes over an experiment of an earlier life of the master: notes which of its trials run, records
  /// reports that no fact holds yet, and mends states that a crash left behind.
  void recover(const experiment_row& row);

  caf::result<command_result> on(const commands::trial_create& x);
  caf::result<command_result> on(const commands::trial_start& x);
  caf::result<command_result> on(const commands::trial_hear& x);
  caf::result<command_result> on(allocation_id run, commands::checkpoint_report x);
  caf::result<command_result> on(allocation_id run, const commands::trial_progress& x);
  /// Ends all trials of the experiment as canceled, and so the experiment itself.
  caf::result<command_result> stop(const experiment_row& row, const std::string& why, const std::string& by);
  caf::result<command_result> stop(const trial_row& row, const std::string& why, const std::string& by);
  void take(const route_validation& x);
  /// `done` is called once the match is durable.
  void take(const line_matched& x, experiment_id of, std::function<void(const caf::error&)> done);

  /// When the next trial has been silent for so long that its state has to be looked at.
  std::optional<time_point> deadline() const;
  void time_passed();

private:
  /// The facts of one change, for the stream of the experiment and for the streams of its trials.
  struct decision {
    std::vector<experiment_fact> of_experiment;
    std::map<trial_id, std::vector<trial_fact>> of_trials;
    value answer = value::object();
    bool settles = false; ///< whether the state of the experiment is decided anew as well
    std::string by;       ///< user who ends the experiment; empty: nobody does
  };
  /// errc::invalid where the experiment, its project or its workspace is archived.
  result<void> takes_runs(const experiment_row& of) const;
  using decide = std::function<result<decision>(const experiment_row&)>;
  using done_callback = std::function<void(command_result)>;
  struct change {
    decide how;
    done_callback done;
    std::vector<trial_id> trials = {}; ///< trials that the change is about
    int tries = 5; ///< tries that are left: another writer (metadata, checkpoints) may take the number first
    std::string by = {}; ///< user who ends the experiment; empty: nobody does
  };

  caf::result<command_result> in_turn(experiment_id id, decide how);
  void in_turn(experiment_id id, decide how, done_callback done);
  void begin(experiment_id id);
  void commit(experiment_id id, std::vector<append_facts> left, value answer, bool settles);
  void settle(experiment_id id, value answer);
  void over(experiment_id id, command_result how);
  append_facts facts_for(const std::string& entity, std::vector<std::string> facts) const;
  /// The trials of an experiment that had an order; of the others nothing is in memory. They are changed by
  /// facts that are durable.
  struct followed {
    unmanaged::known_trials trials;
    /// Trials that `alive_` does not follow yet: the latest sign of life, none where the trial does not run.
    std::map<trial_id, std::optional<time_point>> news;
    void note(const trial_row& row);
  };
  /// Reads the trials where they are not known, or where another actor has deleted one since. The answer is
  /// valid until the next call.
  result<followed*> follow(const experiment_row& row);
  void note_changes(experiment_id id);
  result<trial_row> trial(trial_id id) const;
  result<std::optional<checkpoint>> newest_checkpoint(trial_id id) const;
  void watch_lines(const experiment_row& row);
  std::set<std::string> matched_patterns(trial_id id) const;
  std::vector<time_point> signs_of(const trial_row& row) const;
  decide of_trial(trial_id id, std::function<result<std::vector<trial_fact>>(const trial_row&)> facts) const;

  actor_base<cluster_actor>* self_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  std::map<experiment_id, std::deque<change>> changes_; ///< the first change of each is under way
  std::map<experiment_id, followed> followed_;          ///< bounded
  struct life {
    experiment_id experiment;
    time_point heard;
    time_point looked = {}; ///< when the trial was last found silent; 0: never
  };
  std::map<trial_id, life> alive_;  ///< trials that run
  std::set<experiment_id> watched_; ///< experiments whose lines are looked at
};

} // namespace troupe
