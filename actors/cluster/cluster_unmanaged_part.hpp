#pragma once
// Unmanaged experiments: what their processes say becomes facts of their streams, one change after the other
// for each experiment. A part of the cluster actor, which alone calls it; what is decided, and why, stands in
// actors/experiment/unmanaged.hpp.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/experiment/experiment_settings.hpp"
#include "actors/experiment/unmanaged.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

#include <deque>
#include <map>

namespace troupe {

class cluster_unmanaged {
public:
  struct needs {
    std::function<void(experiment_id)> ended; ///< called once the end of the experiment is durable
    std::function<result<experiment_settings>(const experiment_row&)> settings;
    std::function<void()> arm; ///< `deadline` is another one now
  };
  cluster_unmanaged(actor_base<cluster_actor>* self, const cluster_peers& peers, cluster_machines& machine,
                    needs with)
      : self_(self), peers_(peers), machine_(machine), with_(std::move(with)) {}

  /// Why a creation makes no sense, or nothing.
  std::optional<error> refuses(const commands::experiment_create& x) const;
  /// Of an earlier life: whose trials run, what they reported that no fact holds, and states that a crash
  /// left behind.
  void recover(const experiment_row& row);

  caf::result<command_result> on(const commands::trial_create& x);
  caf::result<command_result> on(const commands::trial_start& x);
  caf::result<command_result> on(const commands::trial_hear& x);
  caf::result<command_result> on(allocation_id run, commands::checkpoint_report x);
  caf::result<command_result> on(allocation_id run, const commands::trial_progress& x);
  /// Ends all its trials as canceled, and so itself.
  caf::result<command_result> stop(const experiment_row& row, const std::string& why);
  caf::result<command_result> stop(const trial_row& row, const std::string& why);
  void take(const route_validation& x);

  /// When a trial is next to be looked for.
  std::optional<time_point> deadline() const;
  void time_passed();

private:
  /// Facts for the stream of the experiment, then for those of trials.
  struct decision {
    std::vector<experiment_fact> of_experiment;
    std::map<trial_id, std::vector<trial_fact>> of_trials;
    value answer = value::object();
    bool settles = false; ///< the experiment's state is looked at, too
  };
  using decide = std::function<result<decision>(const experiment_row&)>;
  using done_callback = std::function<void(command_result)>;
  struct change {
    decide how;
    done_callback done;
    int tries = 5; ///< another writer of a stream (metadata, checkpoints) may take the number first
  };

  caf::result<command_result> in_turn(experiment_id id, decide how);
  void in_turn(experiment_id id, decide how, done_callback done);
  void begin(experiment_id id);
  void commit(experiment_id id, std::vector<append_facts> left, value answer, bool settles);
  void settle(experiment_id id, value answer);
  void over(experiment_id id, command_result how);
  append_facts facts_for(const std::string& entity, std::vector<std::string> facts) const;
  result<trial_row> trial(trial_id id) const;
  result<std::optional<checkpoint>> newest_checkpoint(trial_id id) const;
  decide of_trial(trial_id id, std::function<result<std::vector<trial_fact>>(const trial_row&)> facts) const;

  actor_base<cluster_actor>* self_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  std::map<experiment_id, std::deque<change>> changes_; ///< the first of each is under way
  struct life {
    experiment_id experiment;
    time_point heard;
    time_point looked = {}; ///< when it was last found silent; 0: never
  };
  std::map<trial_id, life> alive_; ///< those that run
};

} // namespace troupe
