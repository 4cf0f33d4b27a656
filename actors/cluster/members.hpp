#pragma once
// The machine `members` knows the agents and their names, the pools, and the pool of each running experiment.
// It decides who may take a name, which pool an agent is in and when the agent changes its pool, what the
// orders of operators mean for agents, whether a sandbox whose agent is away goes on, whether the actor of a
// pool, a twin or a provider that died is made again, and who ends the processes of a run whose owner is
// gone. Pure; its shell is cluster_members_part.cpp.

#include "actors/machine.hpp"
#include "model/result.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

struct known_agent {
  std::string id; ///< random; the agent keeps it in its data directory
  int slots = 0;
  std::string host;
  std::string pool;          ///< pool that the agent asked for; empty: it asked for none
  bool draining = false;     ///< no new work is placed on the agent
  std::vector<int> disabled; ///< slots on which no new work is placed, ascending
  bool ends = false;         ///< runs on the agent are killed
  std::vector<int> ended;    ///< the slots among `disabled` whose runs are killed
  std::string by;            ///< the user who gave the newest order; empty: nobody did
  time_point joined;         ///< when it first registered as it is now
};

struct members_setup {
  duration give_away{0}; ///< the runs of an agent that is away for this long are given away
  time_point start;      ///< when the master started
  value configuration;   ///< configuration in force (model/config/cluster_config.hpp); null: there is none
  /// The value of `give_away` for leases that were granted before this start of the master. A recorded
  /// configuration may make it longer.
  duration first_give_away{0};
};

// Events.
struct agent_asked { ///< an agent wants to register
  agent_joined who;
  std::uint64_t life = 0; ///< number of the agent's process, see register_agent
};
struct agent_went_away { ///< the connection to the agent closed
  std::string agent;
};
struct agent_ordered { ///< an operator drains, disables or enables an agent or one of its slots
  std::string agent;
  int slot = -1;   ///< number of the slot on the agent; -1: the whole agent
  bool off = true; ///< no new work is placed there; false: work is placed there again
  std::string by;  ///< the user who gave the order
  /// The order was given to an older version, which kept orders outside the journal. Such an order counts
  /// only while no fact says what was ordered of the agent.
  bool taken_over = false;
  bool ends = false; ///< with `off`: runs there are killed
};
struct agent_removed { ///< an operator says that the agent is gone for good
  std::string agent, by;
};
struct agent_is_idle { ///< answers watch_agent: the pool holds nothing on the agent any more
  std::string agent, pool;
};
struct configured {
  value configuration; ///< the configuration that is in force from now on
};
struct experiment_entered {
  experiment_id id;
  value settings;
  std::string pool; ///< pool that an operator chose; empty: the pool that the settings name
};
struct experiment_gone {
  experiment_id id;
};
struct experiment_placed { ///< an operator moves the experiment to this pool
  experiment_id id;
  std::string pool;
};
struct pool_died {
  std::string pool, why;
};
struct twin_died {
  std::string agent, why;
};
struct provisioner_died {
  std::string pool, why;
};
struct provider_retired { ///< the pool's provisioner ended by itself, as no instance of it is left
  std::string pool;
};
struct run_let_go { ///< the actor that looked after the run is gone for good; its processes may live
  allocation_id run;
  std::vector<placement> on;
};
using members_event =
  std::variant<agent_asked, agent_went_away, agent_ordered, agent_removed, configured, experiment_entered,
               experiment_gone, pool_died, twin_died, experiment_placed, provisioner_died, provider_retired,
               agent_is_idle, run_let_go>;

// Actions.
struct make_pool {
  std::string pool;
  bool again = false;         ///< the pool replaces one that died: its experiments and twins have to meet it
  bool after_restart = false; ///< the pool places nothing before all recovered actors have met it
};
struct configure_pool { ///< gives the pool the settings that `pools.NAME` of the configuration has now
  std::string pool;
  value settings;
};
struct end_pool {
  std::string pool;
};
/// Gives an elastic pool the provider that `pools.NAME.provider` describes now, and with it the providers
/// that the pool had before; see provisioner_settings_of.
struct supply_pool {
  std::string pool;
  value settings;
};
struct make_twin {
  std::string agent, pool;
  bool again = false; ///< the twin replaces one that died: it has to expect the tasks that the journal knows
  /// With `again`: runs whose processes the twin has to expect and to end, each with its slots on the agent.
  std::map<allocation_id, std::vector<int>> let_go;
};
struct end_run { ///< tells the twin that the run's processes on the agent have to end
  std::string agent;
  allocation_id run;
};
struct release_run { ///< tells the pool that nothing of the run holds its slots
  std::string pool;
  allocation_id run;
  std::string agent; ///< only the slots on this agent; empty: all slots of the run
};
struct end_twin { ///< ends the twin; the agent notices that and registers again
  std::string agent, pool;
};
struct order_agent { ///< tells every pool what is ordered of the agent, as the agent may change its pool
  std::string agent;
  bool draining = false;
  std::vector<int> disabled;
  bool ends = false;
  std::vector<int> ended;
  std::string leaves_for; ///< the pool that the agent leaves its present one for; empty: it stays
  std::string by;         ///< the user who ordered it last; empty: nobody did
};
struct watch_agent { ///< asks for agent_is_idle once the pool, which the agent is to leave, holds nothing on
                     ///< it
  std::string agent, pool;
};
struct forget_agent {
  std::string agent, pool;
};
struct give_up { ///< ends the cluster actor, which cannot continue
  error why;
};
using members_action = std::variant<make_pool, configure_pool, end_pool, make_twin, end_twin, order_agent,
                                    forget_agent, give_up, supply_pool, watch_agent, end_run, release_run>;
using members_step = step_of<cluster_fact, members_action>;

/// Not thread-safe: one actor owns the machine. The states of an agent, of which `away` lasts until the agent
/// registers or an operator removes the agent:
///
///   unknown --asks--> here <--asks, connection closed--> away --removed--> unknown
class members {
public:
  explicit members(members_setup setup);

  /// How long after the start of the master the pools wait for recovered actors. An actor that has not told
  /// its pool anything by then is waited for no longer.
  static constexpr std::chrono::seconds hearing{5};

  /// Why an event makes no sense now; nothing where it does. `apply` ignores an event that is refused, except
  /// `configured`.
  std::optional<error> refuses(const members_event& ev, time_point now) const;
  [[nodiscard]] members_step apply(const members_event& ev, time_point now);
  /// Takes the facts of the stream "cluster", oldest first; facts of other machines change nothing.
  void replay(const cluster_fact& fact);
  /// To be called before resume(). `pools` maps each agent on which the journal knows open runs to the pool
  /// of these runs. The agent stays in that pool until nothing is held there, even where the configuration
  /// names another pool.
  void stay_in(std::map<std::string, std::string> pools) { stay_in_ = std::move(pools); }
  /// To be called once, after replay: makes pools and twins, and tells the pools what was ordered of agents.
  [[nodiscard]] std::vector<members_action> resume();

  const value& configuration() const { return configuration_; }
  const std::map<std::string, known_agent>& agents() const { return agents_; }
  /// The pool of the agent's twin; empty where it has no twin.
  std::string pool_of(const std::string& agent) const;
  /// The pool of an experiment that has entered and is not gone.
  std::string pool_of(experiment_id id) const;
  std::ptrdiff_t jobs_in(const std::string& pool) const;        ///< number of experiments and other tasks
  std::ptrdiff_t experiments_in(const std::string& pool) const; ///< number of experiments only
  bool is_here(const std::string& agent) const;
  /// Whether the agent leaves its pool for another one, which the configuration names now.
  bool is_leaving(const std::string& agent) const;
  /// How long a twin waits before it gives away runs that began before the twin was made.
  duration first_give_away() const { return first_give_away_; }
  /// Time at which the runs of an agent that is away have been given away.
  time_point gives_away(const std::string& agent) const;

  /// The answer to a sandbox whose agent closed its socket, and which asks whether it may go on, or says that
  /// none of its processes lives any more. While the agent is here, the agent speaks for its sandboxes.
  struct verdict {
    bool kill = false;      ///< the sandbox has to end
    bool tell_twin = false; ///< the twin has to hear that the task is certainly dead
  };
  /// `saved`: the work of the task is saved, so that the task can continue elsewhere at once. A sandbox whose
  /// work is not saved waits for its agent for as long as the slots of the run are kept.
  verdict judge_sandbox(const std::string& agent, bool dead, bool saved, time_point now) const;

  std::string snapshot() const; ///< the state that the facts hold, as bytes
  value describe() const;       ///< the state, for people

private:
  struct presence { ///< soft state
    bool here = false;
    std::optional<time_point> since; ///< when the agent went away; none: never since the master's start
    std::string pool;                ///< pool of the agent's twin; empty: the agent has no twin
    bool leaves = false;    ///< the agent leaves `pool` once nothing is held there, and gets no new work
    std::string leaves_for; ///< the pool that the agent leaves `pool` for, as the pools were told
    std::uint64_t life = 0; ///< number of the agent's process that registered last
    /// When the twin was made in place of one that died; none: the agent has registered with its twin.
    std::optional<time_point> twin_made;
  };
  void on(members_step& s, const agent_asked& ev, time_point now);
  void on(members_step& s, const agent_went_away& ev, time_point now);
  void on(members_step& s, const agent_ordered& ev, time_point now);
  void on(members_step& s, const agent_removed& ev, time_point now);
  void on(members_step& s, const configured& ev, time_point now);
  void on(members_step& s, const experiment_entered& ev, time_point now);
  void on(members_step& s, const experiment_gone& ev, time_point now);
  void on(members_step& s, const experiment_placed& ev, time_point now);
  void on(members_step& s, const agent_is_idle& ev, time_point now);
  void on(members_step& s, const pool_died& ev, time_point now);
  void on(members_step& s, const twin_died& ev, time_point now);
  void on(members_step& s, const provisioner_died& ev, time_point now);
  void on(members_step& s, const provider_retired& ev, time_point now);
  void on(members_step& s, const run_let_go& ev, time_point now);
  std::optional<error> no(const agent_asked& ev, time_point now) const;
  std::optional<error> no(const agent_ordered& ev, time_point now) const;
  std::optional<error> no(const agent_removed& ev, time_point now) const;
  std::optional<error> no(const configured& ev, time_point now) const;
  std::optional<error> no(const experiment_placed& ev, time_point) const;
  std::optional<error> no(const experiment_entered&, time_point) const { return std::nullopt; }
  std::optional<error> no(const experiment_gone&, time_point) const { return std::nullopt; }
  std::optional<error> no(const agent_went_away&, time_point) const { return std::nullopt; }
  std::optional<error> no(const agent_is_idle&, time_point) const { return std::nullopt; }
  std::optional<error> no(const pool_died&, time_point) const { return std::nullopt; }
  std::optional<error> no(const twin_died&, time_point) const { return std::nullopt; }
  std::optional<error> no(const provisioner_died&, time_point) const { return std::nullopt; }
  std::optional<error> no(const provider_retired&, time_point) const { return std::nullopt; }
  std::optional<error> no(const run_let_go&, time_point) const { return std::nullopt; }
  void note(members_step& s, cluster_fact fact);
  void make_pools(std::vector<members_action>& out);
  void configure(std::vector<members_action>& out, const std::string& pool);
  void supply(std::vector<members_action>& out, const std::string& pool);
  void remember_providers(const value& configuration);
  bool has_provider_left(const std::string& pool) const;
  void place_twin(std::vector<members_action>& out, const std::string& agent);
  void settle(std::vector<members_action>& out);
  void tell_orders(std::vector<members_action>& out) const;
  order_agent order_of(const std::string& agent) const;
  std::string wanted_pool(const std::string& agent) const;
  std::string jobs_text(const std::string& pool) const;
  const presence* find(const std::string& agent) const;

  duration give_away_, first_give_away_;
  time_point start_;
  value configuration_;
  std::map<std::string, known_agent> agents_;
  std::set<std::string> told_of_; ///< agents of whom a fact said what was ordered, or that they left
  // Soft state.
  std::map<std::string, presence> presence_;
  std::set<std::string> pools_;
  std::map<std::string, value> told_;          ///< settings of each pool, where they are not the defaults
  std::map<std::string, std::string> stay_in_; ///< pool by agent, until the agent has a twin again
  std::map<std::string, value> supplied_;      ///< settings of the existing providers, by pool
  std::set<std::string> retired_;              ///< pools in `supplied_` whose provider has ended by itself
  /// All providers that each pool had in any recorded configuration: the newest settings of each type, the
  /// newest type first.
  std::map<std::string, std::vector<value>> providers_;
  std::map<experiment_id, std::string> pool_of_; ///< pool of each running experiment and other task
  child_restarts<std::string> restarts_;
  struct abandoned {
    time_point at;
    std::vector<placement> on;
  };
  /// Runs whose processes may live, for a twin that is made again. A run is forgotten when no lease of it can
  /// last any more.
  std::map<allocation_id, abandoned> let_go_;
};

} // namespace troupe
