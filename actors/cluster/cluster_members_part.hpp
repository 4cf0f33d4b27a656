#pragma once
// The shell of members.hpp: it owns the actors of pools and of agents' twins, and holds the handles of the
// agents. It is a part of the cluster actor, which alone calls it.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/members.hpp"
#include "actors/pool/capacity.hpp"
#include "actors/shells/probed.hpp"
#include "model/commands/table.hpp"

#include <map>

namespace troupe {

class cluster_members {
public:
  using descriptions = std::map<std::string, pool_description>; ///< by pool

  using done_callback = std::function<void(const caf::error&)>; ///< called with caf::none once durable

  struct needs {
    /// The tasks on this agent whose allocations are still open in the journal.
    std::function<expect_tasks(const std::string& agent)> open_tasks_on;
    std::function<std::vector<experiment_actor>()> experiments;
    std::function<std::vector<task_actor>()> tasks; ///< live actors of tasks that are not trials
    std::function<std::vector<provider_fact>(const std::string& pool)> instances_in_journal;
    journal_actor journal;
    std::function<void(const caf::error&)> leave;                  ///< ends the cluster actor
    std::function<void(const members_event&, done_callback)> tell; ///< gives the event to the machine
    std::function<std::size_t()> count_experiments; ///< number of experiments with a live actor
    std::function<void()> arm;                      ///< to be called when `deadline` has changed
  };

  /// `setup` and `machine` belong to the cluster actor and outlive this object.
  cluster_members(actor_base<cluster_actor>* self, const cluster_setup& setup, const members& machine,
                  needs with);

  // The actions of the machine.
  void run(const make_pool& x);
  void run(const configure_pool& x);
  void run(const end_pool& x);
  void run(const supply_pool& x);
  void run(const make_twin& x);
  void run(const end_twin& x);
  void run(const order_agent& x);
  void run(const watch_agent& x);
  void run(const forget_agent& x);
  void run(const end_run& x);
  void run(const release_run& x);
  void run(const give_up& x) { with_.leave(to_caf(x.why)); }

  /// To be called once, when all experiments and tasks of the journal live again: they then tell the pools
  /// what they hold, and the pools begin to place.
  void recovered();
  const std::map<std::string, pool_actor>& pools() const { return pools_; }
  twin_actor twin_of(const std::string& agent) const; ///< null where the agent has no twin
  /// Links the agent's actor `who`, which has just registered, with its twin, which exists already.
  void welcome(const std::string& agent, const agent_actor& who, const agent_traits& traits);
  using capacity_callback = std::function<void(const result<pool_capacity>&)>;
  /// Asks the pool of this name what it could hold; calls `then` once, with the answer or why there is none.
  void ask_capacity(const std::string& name, capacity_callback then) const;
  /// The event that tells the machine of this death; nothing where the dead actor is none of this part's.
  std::optional<members_event> child_down(const caf::down_msg& down);
  void end_all(const caf::error& why);
  std::optional<time_point> deadline() const { return look_at_; }
  void time_passed();

  using questions = commands::list<commands::agent_list, commands::status, commands::queue_list,
                                   commands::pool_list, commands::job_list>;
  using commands_here =
    commands::join<questions, commands::list<commands::pool_details, commands::agent_drain,
                                             commands::agent_remove, commands::fence, commands::agent_slots>>;
  /// Obeys one of `commands_here`.
  caf::result<command_result> obey(client_command& x);

private:
  caf::result<command_result> on(const std::string& user, commands::pool_details x);
  caf::result<command_result> on(const std::string& user, const commands::agent_drain& x);
  caf::result<command_result> on(const std::string& user, const commands::agent_remove& x);
  /// Comes from a sandbox whose agent closed its socket, or which says that none of its processes lives.
  caf::result<command_result> on(const std::string& user, const commands::fence& claim);
  /// Comes from an agent, which says what its slots are and how busy they are. No route of the API leads
  /// here.
  caf::result<command_result> on(const std::string& user, commands::agent_slots news);
  /// Gives the event to the machine, and answers once its facts are durable.
  caf::result<command_result> change(const members_event& ev);
  /// Answers the question from what the pools say.
  template <class Question>
  caf::result<command_result> describe(Question what);

  struct agent_link {
    twin_actor twin;
    agent_actor actor; ///< null while the agent is away
    time_point up_since;
    std::map<std::string, std::string> labels; ///< labels of the newest registration
    value slots = value::array();              ///< newest report of the slots: device, brand, uuid, usage
  };
  void look(const std::string& agent, const std::string& pool);
  void introduce(const std::string& pool, duration patience);
  using answer_promise = caf::typed_response_promise<command_result>;
  /// Asks all pools, and calls `then` with their answers by pool; `then` answers the promise.
  template <class Answer, class Question>
  caf::result<command_result>
  gather(const Question& what, std::function<void(std::map<std::string, Answer>&, answer_promise&)> then);
  /// Answers with the rows of all queues. An actor with a thread of its own makes the rows of a long queue.
  void tell_queue(std::map<std::string, waiting_listed> pools, answer_promise& to);
  value description(commands::status, std::size_t experiments, const descriptions& pools) const;
  value description(commands::pool_list, std::size_t experiments, const descriptions& pools) const;
  value description(commands::agent_list, std::size_t experiments, const descriptions& pools) const;
  value description(commands::job_list, std::size_t experiments, const descriptions& pools) const;
  value limits_of_provider(const std::string& pool) const;
  value description(const commands::pool_details& what, std::size_t experiments,
                    const descriptions& pools) const;
  value agent_rows(const pool_description& all) const;
  value pool_row(const std::string& name, const pool_description& pool) const;

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const members& machine_;
  needs with_;
  std::map<std::string, pool_actor> pools_;
  std::map<std::string, provisioner_actor> provisioners_; ///< by elastic pool
  std::map<std::string, agent_link> links_;
  std::map<std::string, std::string> watched_; ///< pool that an agent is leaving, by agent
  std::optional<time_point> look_at_;          ///< when the pools in `watched_` are asked again
  bool recovered_ = false;                     ///< until then, pools do not know what is held in them
};

} // namespace troupe
