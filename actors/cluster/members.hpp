#pragma once
// Who is where: the agents and their names, the pools, and the pool of each running experiment. Decides who
// may take a name, which pool an agent joins and when it changes it, what operators order of agents, what
// becomes of a sandbox whose agent is away, and which of these actors is made again. Pure; its shell is
// cluster_members_part.cpp.

#include "actors/machine.hpp"
#include "model/result.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

struct known_agent {
  std::string id; ///< random, lives in the agent's data directory
  int slots = 0;
  std::string host;
  std::string pool;          ///< that it asked for; empty: none
  bool draining = false;     ///< nothing new is placed on it
  std::vector<int> disabled; ///< slots on which nothing new is placed, ascending
  bool ends = false;         ///< what runs on it is killed, and runs elsewhere
  std::vector<int> ended;    ///< of `disabled`, the slots of which the same is true
};

struct members_setup {
  duration give_away{0}; ///< after which the runs of an agent that is away are given away
  time_point start;      ///< of the master
  value configuration;   ///< in force (model/config/cluster_config.hpp); null: none
  /// The same after the start, for the leases of earlier lives; what a fact says of these may be longer.
  duration first_give_away{0};
};

// Events.
struct agent_asked { ///< an agent wants to register
  agent_joined who;
  std::uint64_t life = 0; ///< number of the agent's process, see register_agent
};
struct agent_went_away { ///< its connection closed
  std::string agent;
};
struct agent_ordered { ///< by an operator
  std::string agent;
  int slot = -1;   ///< of the agent; -1: the whole agent
  bool off = true; ///< nothing new is placed there; false: work is placed there again
  std::string by;  ///< the user
  /// An order of an older version, which kept it outside the journal: it counts once, where no fact tells of
  /// the agent.
  bool taken_over = false;
  bool ends = false; ///< with `off`: what runs there is killed, and runs elsewhere
};
struct agent_removed { ///< by an operator: it is gone for good
  std::string agent, by;
};
struct agent_is_idle { ///< answers watch_agent: its pool has nothing on it any more
  std::string agent, pool;
};
struct configured {
  value configuration; ///< in force from now on
};
struct experiment_entered {
  experiment_id id;
  value settings;
  std::string pool; ///< that an operator chose; empty: the one that the settings name
};
struct experiment_gone {
  experiment_id id;
};
struct experiment_placed { ///< by an operator: it belongs into this pool from now on
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
struct provider_retired { ///< nothing of it is left, and it ended by itself
  std::string pool;
};
using members_event = std::variant<agent_asked, agent_went_away, agent_ordered, agent_removed, configured,
                                   experiment_entered, experiment_gone, pool_died, twin_died,
                                   experiment_placed, provisioner_died, provider_retired, agent_is_idle>;

// Actions.
struct make_pool {
  std::string pool;
  bool again = false;         ///< in place of one that died: who stands on it has to meet it
  bool after_restart = false; ///< it places nothing before all that were recovered have met it
};
struct configure_pool { ///< what `pools.NAME` of the configuration says now
  std::string pool;
  value settings;
};
struct end_pool {
  std::string pool;
};
/// The provider of an elastic pool, as `pools.NAME.provider` says now, with those that the pool had before;
/// see provisioner_settings_of.
struct supply_pool {
  std::string pool;
  value settings;
};
struct make_twin {
  std::string agent, pool;
  bool again = false; ///< in place of one that died: it has to expect the tasks that the journal knows
};
struct end_twin { ///< the agent notices, and registers anew
  std::string agent, pool;
};
struct order_agent { ///< to every pool: the agent may change its pool
  std::string agent;
  bool draining = false;
  std::vector<int> disabled;
  bool ends = false;
  std::vector<int> ended;
};
struct watch_agent { ///< it is to leave the pool: to be told once nothing is held on it there
  std::string agent, pool;
};
struct forget_agent {
  std::string agent, pool;
};
struct give_up { ///< the cluster cannot go on
  error why;
};
using members_action = std::variant<make_pool, configure_pool, end_pool, make_twin, end_twin, order_agent,
                                    forget_agent, give_up, supply_pool, watch_agent>;
using members_step = step_of<cluster_fact, members_action>;

/// Not thread-safe: one actor owns it. An agent, where `away` lasts until the agent registers or an operator
/// removes it:
///
///   unknown --asks--> here <--asks, connection closed--> away --removed--> unknown
class members {
public:
  explicit members(members_setup setup);

  /// After a master's start: who has not come by then is counted as heard.
  static constexpr std::chrono::seconds hearing{5};

  /// Why an event makes no sense now, or nothing. One that is refused is not applied.
  std::optional<error> refuses(const members_event& ev, time_point now) const;
  [[nodiscard]] members_step apply(const members_event& ev, time_point now);
  /// Takes the facts of the stream "cluster", oldest first; those of other machines change nothing.
  void replay(const cluster_fact& fact);
  /// Before resume(): in which pools something is open on these agents, as the journal knows. They stay there
  /// until nothing is held there, also where the configuration says otherwise.
  void stay_in(std::map<std::string, std::string> pools) { stay_in_ = std::move(pools); }
  /// Once, after replay: makes pools and twins, and tells the pools what was ordered.
  [[nodiscard]] std::vector<members_action> resume();

  const value& configuration() const { return configuration_; }
  const std::map<std::string, known_agent>& agents() const { return agents_; }
  /// The pool of the agent's twin; empty where it has no twin.
  std::string pool_of(const std::string& agent) const;
  /// Of one that has entered and is not gone.
  std::string pool_of(experiment_id id) const;
  std::ptrdiff_t jobs_in(const std::string& pool) const;        ///< experiments and other tasks
  std::ptrdiff_t experiments_in(const std::string& pool) const; ///< without these tasks
  bool is_here(const std::string& agent) const;
  bool is_leaving(const std::string& agent) const; ///< its pool, for the one that it belongs to now
  /// How long a twin leaves those runs their time that it has not seen begin.
  duration first_give_away() const { return first_give_away_; }
  /// Time at which the runs of an agent that is away have been given away.
  time_point gives_away(const std::string& agent) const;
  /// Slots of the agents that are here, in this pool; of an elastic one, of all that there may be.
  int slots_in(const std::string& pool) const;
  /// Slots of the largest agent that the pool has or had before it went away; -1: it never had one.
  int largest_agent_in(const std::string& pool) const;

  /// A sandbox whose agent closed its socket asks whether to go on, or says that nothing of it lives any
  /// more. While the agent is here, it speaks for its sandboxes.
  struct verdict {
    bool kill = false;      ///< the sandbox has to end
    bool tell_twin = false; ///< its task is certainly dead
  };
  /// `saved`: what its task has done so far is saved, so that it can go on elsewhere at once. Any other waits
  /// for its agent for as long as its slots are kept.
  verdict judge_sandbox(const std::string& agent, bool dead, bool saved, time_point now) const;

  std::string snapshot() const; ///< of what the facts hold
  value describe() const;       ///< the state, for people

private:
  struct presence { ///< soft state
    bool here = false;
    std::optional<time_point> since; ///< it went away; none: it was not here since the master's start
    std::string pool;                ///< of its twin; empty: it has none
    bool leaves = false;             ///< that pool, once nothing is held there; it gets nothing new
    std::uint64_t life = 0;          ///< of the process that registered last
    /// When its twin was made in place of one that died; none: the agent has registered with it.
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
  std::map<std::string, value> told_;          ///< settings that a pool has, where they are not the defaults
  std::map<std::string, std::string> stay_in_; ///< by agent, until it has a twin again
  std::map<std::string, value> supplied_;      ///< settings of the providers that there are
  std::set<std::string> retired_;              ///< of these, the pools whose provider has ended by itself
  /// All providers that each pool ever had, by the configurations: of each type its newest settings, the
  /// newest type first.
  std::map<std::string, std::vector<value>> providers_;
  std::map<experiment_id, std::string> pool_of_; ///< of those that run
  child_restarts<std::string> restarts_;
};

} // namespace troupe
