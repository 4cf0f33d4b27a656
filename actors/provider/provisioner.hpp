#pragma once
// How many instances an elastic pool should have: launches where work waits, ends what is idle, lost, unknown
// or too many. Pure; it knows no vendor. Its shell is provisioner_actor.cpp, which calls a provider.

#include "actors/pool/pool_events.hpp"
#include "actors/provider/provisioner_events.hpp"

#include <optional>
#include <set>
#include <string>

namespace troupe {

/// Instances of `slots` slots and `aux` units that this work needs. What is larger than an instance counts
/// only where whole instances hold it; each job counts up to its limit.
int wanted_instances(const std::vector<waiting_run>& waiting,
                     const std::map<std::uint64_t, job_limit>& limits, int slots, int aux);

struct provisioner_settings {
  std::string type;             ///< "local" or "command"
  bool retiring = false;        ///< the pool has no provider any more: nothing new, and what is idle ends
  bool dropped = false;         ///< of one that retires: no agent can register in its pool any more
  std::set<std::string> former; ///< types of providers that the pool had before, and that can still be called
  int instance_slots = 1;
  int aux_per_agent = 100;
  int min_instances = 0, max_instances = 5;
  duration max_idle = 20min;
  duration max_starting = 20min;
  duration max_disconnected = 10min;
  duration first_pause = 5s, longest_pause = 5min; ///< after failures
  duration list_every = 5s;
  duration error_timeout{0}; ///< launches may fail for so long, and so often, before it is called an error
  int error_retries = 0;
  std::map<std::string, std::string> labels; ///< of the agents
};
/// `pools.NAME.provider` of a cluster file, complete; without a type, or null: retiring. `former`: the
/// settings of providers of other types that the pool had before, the newest first. `dropped`: the file does
/// not name the pool any more.
provisioner_settings provisioner_settings_of(const value& provider);

/// For the pool, and for people.
struct tell_supply {
  supply_told supply;
};
/// Nothing new is placed on the agent of an instance that has to end; or work is again.
struct drain_instance {
  std::string agent;
  bool on = true;
};
/// The agent of an instance that is gone is to be forgotten; `forgotten` says that it is.
struct forget_instance {
  std::string agent;
};
/// The pool has no provider any more, and no instance is left: nothing is to be done any more.
struct provider_done {};
using provisioner_action = std::variant<list_instances, launch_instances, terminate_instances, tell_supply,
                                        drain_instance, forget_instance, provider_done>;
using provisioner_step = step_of<provider_fact, provisioner_action>;

/// Not thread-safe: one actor owns it. Launches nothing before the first list has told what there is. One
/// launch is in flight at a time. Facts say which instances are its own: another one that the provider lists
/// is ended, but for those of a launch whose answer was lost with the master. Where the type of the provider
/// changes, the instances of the former one end first.
///
///   ordered --launched--> starting --agent registers--> there --idle, lost, too many--> ended
///      '-- failed          '-- never came: ended           '-- gone from the list: gone
class provisioner {
public:
  /// `agents`: those that the cluster knows now.
  provisioner(std::string pool, provisioner_settings settings, std::set<std::string> agents = {})
      : pool_(std::move(pool)), settings_(std::move(settings)), known_agents_(std::move(agents)) {}

  [[nodiscard]] provisioner_step apply(const provisioner_event& ev, time_point now);
  void replay(const provider_fact& fact);
  /// Once, after replay.
  [[nodiscard]] std::vector<provisioner_action> resume(time_point now);
  std::optional<time_point> deadline() const;
  void forgotten(const std::string& agent); ///< answers forget_instance
  /// Of the provider whose instances there are, which is the one that is called; empty: nobody knows.
  std::string provider_type() const;
  int instances() const; ///< not stopping, with those on order
  int starting() const;  ///< of these, those whose agent has not come
  supply_told supply() const;
  std::string snapshot() const; ///< of what facts hold
  value describe() const;       ///< the state, for people

private:
  using out = provisioner_step;
  struct agent_state {
    bool connected = false;
    bool idle = true;
    bool drained = false;
    time_point since; ///< when it became idle or busy, connected or disconnected, as it is now
  };
  struct instance {
    cloud_instance is;
    time_point seen; ///< first, by this life of the machine
  };
  struct ending {
    time_point again; ///< when it is ordered to end once more
    std::string agent;
    bool is_live = true; ///< by the newest list; what has not ended counts among those that there may be
  };

  void on(out& s, const pool_demand& ev, time_point now);
  void on(out& s, const instances_listed& ev, time_point now);
  void on(out& s, const instances_launched& ev, time_point now);
  void on(out& s, const instances_ended& ev, time_point now);
  void on(out& s, const provider_configured& ev, time_point now);
  void on(out&, const time_passed&, time_point) {}
  /// What a list says, by id.
  struct listed_instances {
    std::set<std::string> listed; ///< all of them
    std::set<std::string> twice, unknown, stopped;
    std::set<std::string> halted; ///< a provider keeps them, and their disks, until they are ended
    std::vector<std::string> adopted;
  };
  listed_instances take_list(const std::vector<cloud_instance>& all);
  void settle_orders(out& s, const std::vector<cloud_instance>& all, const std::vector<std::string>& adopted,
                     time_point now);
  std::vector<std::string> note_gone(out& s, const listed_instances& found, time_point now);
  static bool is_live(const cloud_instance& x);
  void note(out& s, instance_changed fact);
  void failed(const char* call, const std::string& why, time_point now);
  void went_well(const char* call);
  void end_some(out& s, time_point now);
  void launch_some(out& s, time_point now);
  void list_again(out& s, time_point now);
  void drain_some(out& s);
  void forget_some(out& s, time_point now);
  void finish(out& s, time_point now);
  bool is_former() const;
  bool retires() const { return settings_.retiring || is_former(); }
  bool is_done() const;
  static std::string agent_name(const instance& x) { return x.is.agent.empty() ? x.is.id : x.is.agent; }
  void end(out& s, const std::set<std::string>& ids, const char* why, time_point now);
  bool due(time_point at, time_point now);
  const agent_state* agent_of(const instance& x) const;
  bool starts(const instance& x) const;
  bool is_lost(const instance& x) const;
  bool is_own(const std::string& agent) const;

  std::string pool_;
  provisioner_settings settings_;
  std::map<std::string, instance> instances_; ///< by id, without those that are ordered to end; durable
  std::map<std::uint64_t, int> ordered_;      ///< launches without an answer, by number: how many; durable
  std::uint64_t orders_ = 0;                  ///< durable
  std::string last_type_;                     ///< of the provider of the last launch; durable
  bool settled_ = true;                       ///< nothing is left of that provider; durable
  // Soft state.
  bool listed_ = false, listing_ = false, calling_ = false;
  pool_demand work_;
  std::map<std::string, ending> ended_;       ///< ordered to end, until a list no longer has them
  std::set<std::string> condemned_;           ///< agents of instances that were ended, and so drained
  std::map<std::string, time_point> leaving_; ///< agents of instances that are gone, and when to forget them
  std::set<std::string> known_agents_, departed_; ///< before resume(); departed: of instances that are gone
  std::set<std::string> drained_;                 ///< agents, because it retires
  bool resumed_ = false, said_done_ = false;
  int list_failures_ = 0; ///< in a row
  std::map<std::string, agent_state> agents_;
  time_point list_at_;
  int failures_ = 0; ///< of launches, in a row
  time_point failing_since_;
  std::optional<time_point> retry_at_;
  std::optional<time_point> next_;            ///< when time alone changes something
  std::map<std::string, std::string> errors_; ///< failures that stand, by call
  std::map<std::string, std::string> faults_; ///< what the provider does wrong, by kind
  supply_told told_;
};

} // namespace troupe
