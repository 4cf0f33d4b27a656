#pragma once
// Who is told of what: webhooks with their queue, and the lines of logs that webhooks and log policies look
// for. A part of the cluster actor, which alone calls it; what is decided stands in
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
  using done_callback = std::function<void(const caf::error&)>; ///< none() once durable

  struct needs {
    std::function<void(std::vector<cluster_fact>, done_callback)> take; ///< makes decided facts durable
    std::function<experiment_actor(experiment_id)> experiment;          ///< null where it does not live
    std::function<task_actor(task_id)> task;                            ///< that is no trial; likewise
    std::function<std::string(const experiment_row&)> pool_name;
  };
  /// `setup`, `peers` and `machine` are the cluster actor's own and outlive this.
  cluster_webhooks(actor_base<cluster_actor>* self, const cluster_setup& setup, const cluster_peers& peers,
                   cluster_machines& machine, needs with)
      : self_(self), setup_(setup), peers_(peers), machine_(machine), with_(std::move(with)) {}

  /// Of an experiment's end. `then` runs once it is durable what is to be said of it; where that fails, the
  /// next start finds the experiment unswept.
  void tell_receivers(experiment_id id, std::function<void()> then);
  /// Those whose time has come; also after `deliveries::deadline`.
  void send_due();
  void heard_of_deliveries(const webhooks_told& x);
  /// Nothing more is sent.
  void close() { closing_ = true; }

  /// Before the lines are stored: the journal waits for the answer.
  caf::result<committed> take_matches(const lines_matched& x);
  /// The triggers of webhooks are others now.
  void watch_triggers();

  caf::result<command_result> on(const commands::webhook_alert& x);
  caf::result<command_result> on(const commands::webhook_test& x);

private:
  using promise = caf::typed_response_promise<command_result>;

  webhook_subject subject_of(const experiment_row& row, trial_id trial = {}) const;
  /// Nothing where no row tells of it.
  std::optional<webhook_subject> subject_of(const task_row& task) const;
  deliveries::webhooks before(time_point at) const;
  void queue_events(std::vector<cluster_fact> facts, done_callback done);
  void deliver(std::vector<webhook_delivery> some);

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  webhook_ear ear_;                      ///< sends this actor what the courier tells
  std::map<std::string, promise> tests_; ///< of webhooks, by the id of the event
  bool closing_ = false;
};

} // namespace troupe
