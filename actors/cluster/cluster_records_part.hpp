#pragma once
// Changes of the cluster's records: configuration, users and tokens, workspaces and projects, templates and
// models, groups, roles and rules. It is a part of the cluster actor, which alone calls it; the decisions are
// made in actors/catalogue/.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

namespace troupe {

class cluster_deletions;
class cluster_members;
class cluster_tasks;
class cluster_webhooks;

class cluster_records {
public:
  using done_callback = std::function<void(const caf::error&)>; ///< called with caf::none once durable

  struct needs {
    std::function<void(std::vector<cluster_fact>, done_callback)> take; ///< makes decided facts durable
    std::function<void(const members_event&)> tell_members;
    std::function<bool(experiment_id)> has_stopped; ///< cluster_experiments::has_stopped
    // Other parts of the cluster actor; they outlive this object.
    cluster_tasks& tasks;
    cluster_webhooks& webhooks;
    cluster_deletions& deletions;
  };
  /// `setup` and `machine` belong to the cluster actor and outlive this object.
  cluster_records(actor_base<cluster_actor>* self, const cluster_setup& setup, cluster_machines& machine,
                  needs with)
      : self_(self), setup_(setup), machine_(machine), with_(std::move(with)) {}

  using commands_here =
    commands::join<commands::catalogue_commands, commands::place_commands, commands::registry_commands,
                   commands::people_commands, commands::rule_commands>;
  /// Obeys one of `commands_here`, and answers once the change is durable.
  caf::result<command_result> obey(client_command& x);

private:
  template <class Change>
  caf::result<command_result> on(const std::string& user, const Change& x);
  template <class Change>
  caf::result<command_result> change_catalogue(const std::string& user, const Change& x);
  template <class Change>
  caf::result<command_result> change_places(const std::string& user, const Change& x);
  template <class Change>
  caf::result<command_result> change_people(const std::string& user, const Change& x);

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  cluster_machines& machine_;
  needs with_;
};

} // namespace troupe
