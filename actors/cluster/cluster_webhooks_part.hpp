#pragma once
// Webhooks and the queue of their events, and the lines of logs that webhooks and log policies look for. It
// is a part of the cluster actor, which alone calls it; the decisions are made in
// actors/catalogue/deliveries.hpp.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

#include <map>
#include <optional>

namespace troupe {

class cluster_webhooks {
public:
  using done_callback = std::function<void(const caf::error&)>; ///< called with caf::none once durable

  struct needs {
    std::function<void(std::vector<cluster_fact>, done_callback)> take; ///< makes decided facts durable
    std::function<experiment_actor(experiment_id)> experiment;          ///< null where there is no live actor
    std::function<task_actor(task_id)> task; ///< actor of a task that is not a trial; null likewise
    /// Records a match in the log of an unmanaged trial.
    std::function<void(const line_matched&, experiment_id, done_callback)> unmanaged;
    std::function<std::string(const experiment_row&)> pool_name;
  };
  /// `setup`, `peers` and `machine` belong to the cluster actor and outlive this object.
  cluster_webhooks(actor_base<cluster_actor>* self, const cluster_setup& setup, const cluster_peers& peers,
                   cluster_machines& machine, needs with)
      : self_(self), setup_(setup), peers_(peers), machine_(machine), with_(std::move(with)) {}

  /// Queues the events that say that the experiment has ended. `then` runs once these events are durable.
  /// Where that fails, the next start of the master finds the experiment unswept and queues them again.
  void tell_receivers(experiment_id id, std::function<void()> then);
  /// Sends the events whose time has come; also to be called at `deliveries::deadline`.
  void send_due();
  void heard_of_deliveries(const webhooks_told& x);
  /// Ends all sending.
  void close() { closing_ = true; }

  /// Takes lines of logs that matched a pattern. The journal stores the lines only after the answer.
  caf::result<committed> take_matches(const lines_matched& x);
  /// To be called when the triggers of webhooks have changed.
  void watch_triggers();

  caf::result<command_result> on(const commands::webhook_alert& x);
  caf::result<command_result> on(const commands::webhook_test& x);

private:
  using promise = caf::typed_response_promise<command_result>;

  webhook_subject subject_of(const experiment_row& row, trial_id trial = {}) const;
  /// Nothing where the task has no row.
  std::optional<webhook_subject> subject_of(const task_row& task) const;
  deliveries::webhooks before(time_point at) const;
  void queue_events(std::vector<cluster_fact> facts, done_callback done);
  void deliver(std::vector<webhook_delivery> some);

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  webhook_ear ear_;                      ///< sends the outcomes of deliveries to this actor
  std::map<std::string, promise> tests_; ///< unanswered tests of webhooks, by the id of the event
  bool closing_ = false;
};

} // namespace troupe
