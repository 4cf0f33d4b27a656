#pragma once
// The API's way to the actors: reports and log lines to the journal, the configuration to its
// store, everything else to the cluster.

#include "actors/messages.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/node/configuration_store.hpp"

namespace troupe::node {

class cluster_gate final : public api::gate {
public:
  /// `configuration` outlives it.
  cluster_gate(caf::actor_system& sys, cluster_actor cluster, journal_actor journal, configuration_store& configuration)
    : sys_(sys), cluster_(std::move(cluster)), journal_(std::move(journal)), configuration_(configuration) {}
  void call(const api::principal& who, const std::string& command, value fields, api::answer done) override;

private:
  caf::actor_system& sys_;
  cluster_actor cluster_;
  journal_actor journal_;
  configuration_store& configuration_;
};

} // namespace troupe::node
