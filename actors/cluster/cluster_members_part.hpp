#pragma once
// Who is where: the pools, the agents with their twins, and the pool of each running experiment. A part of
// the cluster actor, which alone calls it.

#include "actors/cluster/cluster.hpp"
#include "actors/cluster/cluster_actor.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

#include <map>
#include <set>

namespace troupe {

class cluster_members {
public:
  using descriptions = std::map<std::string, pool_description>; ///< by pool

  struct agent_link {
    twin_actor twin;
    agent_actor actor; ///< null while it is away
    time_point since;  ///< it went away
    time_point up_since;
    value slots = value::array(); ///< what it said of them last: device, brand, uuid, usage
    std::string pool;             ///< of the twin
  };

  /// `setup` and `machine` are the cluster actor's own and outlive this.
  cluster_members(actor_base<cluster_actor>* self, const cluster_setup& setup, const cluster& machine);

  /// What is in force: model/config/cluster_config.hpp; null: none.
  const value& configuration() const { return configuration_; }
  /// Whether `wanted` could be in force now. It is the node that keeps it; see
  /// runtime/node/configuration_store.hpp.
  result<void> may_configure(const value& wanted) const;
  void configure(const value& wanted);

  /// Of an experiment that starts; to be left when it ends. The pool that its configuration names: one whose
  /// pool is gone goes on in the default one.
  pool_actor enter_pool(experiment_id id, const value& settings);
  void leave_pool(experiment_id id);

  agent_link& make_twin(const std::string& agent);
  agent_link* find(const std::string& agent);
  /// Whether another agent has the name: one that is here, or is away for less than the time after which its
  /// runs are given away.
  bool is_taken(const std::string& agent, const agent_actor& by) const;
  void release(const allocation_id& run);
  /// Why the cluster cannot go on, where a pool or a twin has died; none() of anybody else. An agent is noted
  /// as away.
  caf::error child_down(const caf::down_msg& down);
  void end_all(const caf::error& why);

  // Commands; each answers for itself.

  /// Soft here and in the pool: whoever ordered it keeps it, and orders it again after a start.
  command_result drain(const commands::agent_drain& order);
  /// A sandbox whose agent closed its socket asks whether to go on, or says that nothing of it lives any
  /// more. While the agent is here, it speaks for its sandboxes.
  command_result fence(const commands::fence& claim);
  /// An agent says what its slots are and how busy; no route of the API leads here.
  command_result hear_slots(commands::agent_slots news);
  using questions =
    commands::list<commands::agent_list, commands::status, commands::queue_list, commands::pool_list>;
  /// Answers one of the questions, from what the pools say.
  template <class Question>
  caf::result<command_result> describe(std::size_t experiments) {
    return gather(
      [this, experiments](const descriptions& pools) { return description(Question{}, experiments, pools); });
  }

private:
  void make_pools();
  void drop_unused_pools();
  void settle_agents();
  std::ptrdiff_t experiments_in(const std::string& pool) const;
  std::string wanted_pool(const std::string& agent) const;
  caf::result<command_result> gather(std::function<value(const descriptions&)> shape);
  value description(commands::status, std::size_t experiments, const descriptions& pools) const;
  value description(commands::queue_list, std::size_t experiments, const descriptions& pools) const;
  value description(commands::pool_list, std::size_t experiments, const descriptions& pools) const;
  value description(commands::agent_list, std::size_t experiments, const descriptions& pools) const;
  value agent_rows(const pool_description& all) const;
  value pool_rows(const descriptions& pools) const;

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const cluster& machine_;
  value configuration_;
  std::map<std::string, pool_actor> pools_;
  std::map<experiment_id, std::string> pool_of_; ///< of those that run
  std::map<std::string, agent_link> links_;
  std::set<std::string> draining_;
};

} // namespace troupe
