#pragma once
// The experiments that have not ended: this part owns their actors, starts, recovers and continues them, and
// hands on orders to one of them and calls of its tasks. It is a part of the cluster actor, which alone calls
// it.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/experiment/experiment_actor.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

#include <map>

namespace troupe {

class cluster_deletions;
class cluster_members;
class cluster_tasks;
class cluster_unmanaged;
class cluster_webhooks;

class cluster_experiments {
public:
  using done_callback = std::function<void(const caf::error&)>; ///< called with caf::none once durable

  struct needs {
    std::function<void(std::vector<cluster_fact>, done_callback)> take; ///< makes decided facts durable
    std::function<void(const members_event&)> tell_members;
    // Other parts of the cluster actor; they outlive this object.
    const cluster_members& members;
    cluster_tasks& tasks;
    cluster_unmanaged& unmanaged;
    cluster_webhooks& webhooks;
    cluster_deletions& deletions;
  };
  /// `setup`, `peers` and `machine` belong to the cluster actor and outlive this object.
  cluster_experiments(actor_base<cluster_actor>* self, const cluster_setup& setup, const cluster_peers& peers,
                      cluster_machines& machine, needs with)
      : self_(self), setup_(setup), peers_(peers), machine_(machine), with_(std::move(with)) {}

  /// Makes the actor of an experiment that has not ended, from what the journal knows of it.
  void recover(const experiment_row& row);
  result<experiment_settings> settings_of(experiment_id id, const value& config, const std::string& context,
                                          const std::string& owner, time_point submitted) const;
  /// `pool`: pool that an operator chose; empty: the pool that the settings name.
  void start(experiment_settings settings, const experiment_past& past, bool paused = false,
             const std::string& pool = {});
  /// Ends an experiment that cannot be started as ERROR, and its tasks with it; all other experiments go on.
  void set_aside(experiment_id id, const std::string& why, int tries = 5);
  void forget(experiment_id id);
  /// Whether the dead actor was one of this part's; then the actor is made again from the journal.
  bool child_down(const caf::down_msg& down);
  void end_all(const caf::error& why);

  experiment_actor actor_of(experiment_id id) const; ///< null where the experiment has no live actor
  std::vector<experiment_actor> all() const;
  std::size_t size() const { return experiments_.size(); }
  /// Whether the experiment has no live actor and, if it is unmanaged, is not active.
  bool has_stopped(experiment_id id) const;

  using commands_here = commands::join<
    commands::list<commands::experiment_activate, commands::experiment_pause, commands::experiment_continue,
                   commands::experiment_cancel, commands::experiment_kill, commands::experiment_set,
                   commands::trial_kill, commands::search_order, commands::search_wait>,
    commands::task_calls>;
  /// Obeys one of `commands_here`.
  caf::result<command_result> obey(client_command& x);

private:
  caf::result<command_result> on(const std::string& user, const commands::experiment_activate& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_pause& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_continue& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_cancel& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_kill& x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_set& x);
  caf::result<command_result> on(const std::string& user, const commands::trial_kill& x);
  caf::result<command_result> on(const std::string& user, commands::search_order x);
  caf::result<command_result> on(const std::string& user, const commands::search_wait& x);
  /// Hands a command for a trial or an allocation to the experiment, which hands it on. `from` is the
  /// allocation that speaks.
  template <class OfTask>
  caf::result<command_result> hand_on(allocation_id from, OfTask x);

  struct continuation_asked;
  result<void> check_usable(continuation_asked& x) const;
  /// Makes the continuation durable, and answers.
  void record(continuation_asked& x, caf::typed_response_promise<command_result> promise);
  result<std::set<std::string>> sources_in(experiment_id id, const value& orders) const;
  void abandon_tasks(experiment_id id);
  sandbox_defaults sandbox_defaults_of(const experiment_settings& settings, const std::string& pool) const;
  template <class Event>
  caf::result<command_result> tell(experiment_id id, Event ev);
  template <class Message, class OfEnded>
  caf::result<command_result> forward(experiment_id id, const experiment_actor& to, Message message,
                                      OfEnded of_ended);
  template <class OfEnded>
  command_result of_gone(experiment_id id, const caf::error& why, const OfEnded& of_ended) const;
  command_result has_ended(experiment_id id) const;

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  std::map<experiment_id, experiment_actor> experiments_;
  std::map<caf::actor_addr, experiment_id> by_address_;
  child_restarts<experiment_id> restarts_;
  bool closing_ = false;
};

} // namespace troupe
