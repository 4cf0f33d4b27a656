#pragma once
// The API's way to the actors: reports and log lines go to the journal, the shell's commands to its desk, the
// configuration to its store, everything else to the cluster.

#include "runtime/api/feed.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/node/configuration_store.hpp"
#include "runtime/node/shell_keeper.hpp"

namespace troupe::node {

class cluster_gate final : public api::gate, public api::feed_gate {
public:
  /// `shell` and `configuration` have to live longer than the gate.
  cluster_gate(caf::actor_system& sys, cluster_actor cluster, journal_actor journal,
               const shell_keeper& shell, configuration_store& configuration)
      : sys_(sys), cluster_(std::move(cluster)), journal_(std::move(journal)), shell_(shell),
        configuration_(configuration) {}
  void call_together(const api::principal& who, std::vector<api::grouped_order> orders) override;
  void call(const api::principal& who, const std::string& command, value fields, api::answer done) override;
  void open(const api::principal& who, const std::string& command, value fields,
            std::shared_ptr<api::feed> to, api::answer done) override;

private:
  void record(allocation_id task, const commands::trial_report& x, duration patience, api::answer done);
  void record(allocation_id task, const commands::task_log& x, duration patience, api::answer done);

  caf::actor_system& sys_;
  cluster_actor cluster_;
  journal_actor journal_;
  const shell_keeper& shell_;
  configuration_store& configuration_;
};

} // namespace troupe::node
