#pragma once
// One life of the master: the shells of the cluster, of experiments, trials, allocations, pool and twins,
// connected as the CAF shells are (actors/*/*_actor.cpp). A crash destroys all of it; the journal and the
// hosts stay.

#include "actors/cluster/cluster_machines.hpp"
#include "test/sim/actors/durable_shell.hpp"

#include <memory>

namespace troupe::sim {

class hosts;
class master;

/// A link between one agent and one life of the master. It keeps the order of messages and may break at any
/// time.
struct link {
  std::uint64_t id = 0;
  int host = 0;
  int master_life = 0, agent_life = 0;
  std::uint64_t epoch = 0;                    ///< epoch of the registration; 0 before it
  bool accepted = false;                      ///< whether the agent knows that it was accepted
  bool agent_side = true, master_side = true; ///< whether the side regards the link as open
  bool silent = false;                        ///< the link loses every message, and nobody notices
  time_point stalled_until;
};
using link_ptr = std::shared_ptr<link>;

struct validation_answer {
  report_origin origin;
  bool stop = false;
};
struct checkpoint_answer {
  allocation_id allocation;
  std::string uuid, refused;
};
struct task_checkpoint {
  allocation_id allocation;
  checkpoint saved;
};

/// Says whether the object that made it still lives. Copies share the answer.
struct alive_check {
  std::shared_ptr<bool> flag = std::make_shared<bool>(true);
  bool operator()() const { return *flag; }
};

class trial_shell;
class allocation_shell;
class experiment_shell;

struct twin_shell {
  twin_shell(master& m, int host, lease_times lease);
  ~twin_shell() { *alive.flag = false; }
  twin_shell(const twin_shell&) = delete;
  void step(const twin_event& ev);
  void run(std::vector<twin_action> actions);
  void meet_pool(std::uint64_t life);
  void die() { dead = true; } ///< messages to the twin are lost until the cluster replaces it
  void up(const task_checkpoint& x);
  void down(const validation_answer& x);
  void down(const checkpoint_answer& x);
  void arm();

  master& m;
  int host;
  agent_twin machine;
  const std::uint64_t incarnation;
  std::uint64_t pool_life; ///< life of the pool whose handle the twin has
  bool dead = false;
  alive_check alive;
  link_ptr line;
  std::map<allocation_id, std::uint64_t> known; ///< incarnation of each allocation that has sent a message
  std::optional<time_point> armed;
};

class master {
public:
  master(world& w, fake_journal& journal, hosts& h, int life);
  ~master();

  // Calls from users and agents, without a delay.
  void create_experiment(const std::string& key, std::function<void(experiment_id)> done);
  void wish(user_wish what, std::function<void()> done);
  void agent_registers(link_ptr line, agent_joined who, std::vector<task_report> inventory, time_point sent);
  void link_closed(const link_ptr& line);
  void report(const link_ptr& line, report_row row);

  alive_check guard() const { return alive_; }
  void pool_step(const pool_event& ev);
  void check_quiet() const; ///< checks that no slots are held and no request waits
  bool all_over() const;

  // Messages to actors by their names. A message without a receiver is dropped, as with the handle of a dead
  // actor.
  template <class Event>
  void tell_trial(address from, trial_id to, Event ev);
  template <class Event>
  void tell_allocation_actor(address from, allocation_id to, std::uint64_t incarnation, Event ev,
                             std::uint64_t twin = 0);
  template <class Event>
  void tell_experiment(address from, experiment_id to, Event ev);
  /// Sends to the pool of the life `life`; `heard` is called once the pool has the message.
  void tell_pool_actor(address from, pool_event ev, std::uint64_t life, std::uint64_t incarnation = 0,
                       std::function<void()> heard = {});
  /// Sends to a twin. `sender`, where it is an allocation, is remembered as the one that hears about the
  /// task. `twin` is the incarnation that the sender knows. `heard` is called with whether that incarnation
  /// lived.
  template <class Event>
  void tell_twin(address from, const std::string& agent, Event ev, std::uint64_t twin,
                 allocation_id sender = {}, std::uint64_t incarnation = 0,
                 std::function<void(bool)> heard = {});
  void make_twin_again(const std::string& agent);
  void introduce_pool();
  std::map<std::string, std::vector<watch_ordered>> tasks_in_journal() const;

  void kill_actor(fault_kind kind, std::uint64_t pick);
  void restart_trial(trial_id id);
  void restart_allocation(allocation_id id);
  void bury(); ///< destroys shells that have quit; runs between two messages

  world& w;
  fake_journal& journal;
  hosts& machines;
  const int life;
  std::uint64_t next_incarnation = 1;
  std::unique_ptr<class cluster_shell> cluster_;
  pool pool_;
  std::uint64_t pool_life = 1;                   ///< messages to an earlier life are lost
  std::map<allocation_id, std::uint64_t> asked_; ///< incarnation of each allocation that asked for slots
  std::map<std::string, std::unique_ptr<twin_shell>> twins;
  std::map<experiment_id, std::unique_ptr<experiment_shell>> experiments;
  std::map<trial_id, std::unique_ptr<trial_shell>> trials;
  std::map<allocation_id, std::unique_ptr<allocation_shell>> allocations;
  std::map<trial_id, std::string> keys;
  int lost_to_twins = 0, lost_to_agents = 0; ///< number of orders to start that will be lost on their way
  /// Destroys shells that have quit, outside of their own calls.
  std::vector<std::function<void()>> graveyard;

private:
  void run(const pool_action& x);
  alive_check alive_;
};

} // namespace troupe::sim
