#pragma once
// Creates experiments: checks a submission under the rules of its workspace and project, stores its files,
// and starts the experiment. It is a part of the cluster actor, which alone calls it.

#include "actors/cluster/accepted_config.hpp"
#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

namespace troupe {

class cluster_experiments;
class cluster_members;
class cluster_unmanaged;

class cluster_creation {
public:
  using done_callback = std::function<void(const caf::error&)>; ///< called with caf::none once durable

  struct needs {
    std::function<void(std::vector<cluster_fact>, done_callback)> take; ///< makes decided facts durable
    // Other parts of the cluster actor; they outlive this object.
    cluster_experiments& experiments;
    const cluster_members& members;
    const cluster_unmanaged& unmanaged;
  };
  /// `setup`, `peers` and `machine` belong to the cluster actor and outlive this object.
  cluster_creation(actor_base<cluster_actor>* self, const cluster_setup& setup, const cluster_peers& peers,
                   cluster_machines& machine, needs with)
      : self_(self), setup_(setup), peers_(peers), machine_(machine), with_(std::move(with)) {}

  using commands_here = commands::list<commands::experiment_create, commands::experiment_validate>;
  /// Obeys one of `commands_here`.
  caf::result<command_result> obey(client_command& x);

private:
  caf::result<command_result> on(const std::string& user, commands::experiment_create x);
  caf::result<command_result> on(const std::string& user, const commands::experiment_validate& x);

  using promise = caf::typed_response_promise<command_result>;
  struct placed_config {
    accepted_config config;
    project_id project;
  };

  template <class Submission>
  result<placed_config> accepted(const Submission& x, const std::string& user) const;
  result<void> with_source(value& settings) const;
  /// Asks the pool of an experiment with these settings about its size, and calls `then` with the warnings,
  /// or with why the pool refuses it.
  void check_size(const value& settings, std::function<void(result<value> warnings)> then) const;
  /// How the user sees experiments of a name, where one is to be created in this workspace; 0: anywhere. With
  /// roles, another's experiment elsewhere is not the one that is meant.
  seen_by sight_of(const std::string& user, workspace_id in) const;
  void record(experiment_created wanted, bool activate, value warnings, promise to);

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
};

} // namespace troupe
