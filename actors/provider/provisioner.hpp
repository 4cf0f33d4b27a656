#pragma once
// The machine `provisioner` decides how many instances an elastic pool has. It launches instances where work
// waits, and ends instances that are idle, lost, unknown or too many. Pure; it knows no vendor. The shell is
// provisioner_actor.cpp, which calls a provider.

#include "actors/pool/pool_events.hpp"
#include "actors/provider/provisioner_events.hpp"

#include <optional>
#include <set>
#include <string>

namespace troupe {

/// The number of instances with `slots` slots and `aux` aux units that this work needs. A run that is larger
/// than an instance counts only where it fills whole instances. A job counts up to its limit.
int wanted_instances(const std::vector<waiting_run>& waiting,
                     const std::map<std::uint64_t, job_limit>& limits, int slots, int aux);

struct provisioner_settings {
  std::string type;             ///< "local" or "command"
  bool retiring = false;        ///< the pool has no provider any more: none is launched, idle instances end
  bool dropped = false;         ///< with `retiring`: no agent can register in the pool any more
  std::set<std::string> former; ///< types of former providers of the pool that can still be called
  int instance_slots = 1;
  int aux_per_agent = 100;
  int min_instances = 0, max_instances = 5;
  duration max_idle = 20min;
  duration max_starting = 20min;
  duration max_disconnected = 10min;
  duration first_pause = 5s, longest_pause = 5min; ///< pauses after failures
  duration list_every = 5s;
  duration error_timeout{0}; ///< failing launches are an error after this time and `error_retries` retries
  int error_retries = 0;
  std::map<std::string, std::string> labels; ///< labels of the agents on the instances
  value commands;                            ///< the words of `list`, `launch` and `terminate`, by key
};
/// `provider` is the complete `pools.NAME.provider` of a cluster file; without a type, or null, it means
/// retiring. Its member `former` has the settings of providers of other types that the pool had before, the
/// newest first. Its member `dropped` says that the file does not name the pool any more.
provisioner_settings provisioner_settings_of(const value& provider);

/// Tells the pool, and people, what the provider has and may have.
struct tell_supply {
  supply_told supply;
};
/// The reason of a `terminate_instances` that repeats an earlier one.
inline constexpr const char* ordered_before = "ordered before";
/// Drains the agent of an instance that has to end; `on` false: work may be placed there again.
struct drain_instance {
  std::string agent;
  bool on = true;
};
/// Asks the cluster to forget the agent of an instance that is gone; the answer is a call of `forgotten`.
struct forget_instance {
  std::string agent;
};
/// The pool has no provider any more, and no instance is left, so the provisioner may end.
struct provider_done {};
using provisioner_action = std::variant<list_instances, launch_instances, terminate_instances, tell_supply,
                                        drain_instance, forget_instance, provider_done>;
using provisioner_step = step_of<provider_fact, provisioner_action>;

/// Not thread-safe: one actor owns the machine. It launches no instance before the first list of the
/// provider. One launch is in flight at a time. Facts say which instances belong to the pool; any other
/// instance that the provider lists is ended, except those of a launch whose answer was lost with the master.
/// Such a launch may bring them until its time limit has passed. Where the type of the provider changes, the
/// instances of the former provider end first.
///
///   ordered --launched--> starting --agent registers--> there --idle, lost, too many--> ended
///      '-- failed          '-- never came: ended           '-- gone from the list: gone
class provisioner {
public:
  /// `agents`: the agents that the cluster knows now.
  provisioner(std::string pool, provisioner_settings settings, std::set<std::string> agents = {})
      : pool_(std::move(pool)), settings_(std::move(settings)), known_agents_(std::move(agents)) {}

  [[nodiscard]] provisioner_step apply(const provisioner_event& ev, time_point now);
  void replay(const provider_fact& fact);
  /// To be called once, after replay.
  [[nodiscard]] std::vector<provisioner_action> resume(time_point now);
  std::optional<time_point> deadline() const;
  void forgotten(const std::string& agent); ///< answers forget_instance
  /// The type of the provider that has the instances, and that is called; empty: unknown.
  std::string provider_type() const;
  int instances() const; ///< number of instances that are not ending, with those on order
  int starting() const;  ///< number of these whose agent has not registered
  int stopping() const;  ///< number of instances that were ordered to end and that the provider still lists
  supply_told supply() const;
  std::string snapshot() const; ///< the state that facts hold, as bytes
  value describe() const;       ///< the state, for people

private:
  using out = provisioner_step;
  struct agent_state {
    bool connected = false;
    bool idle = true;
    bool drained = false;
    bool awaited = false;
    bool known = true;
    time_point since; ///< when `connected` or `idle` changed last
  };
  struct instance {
    cloud_instance is; ///< a list that leaves out the name of the agent does not change it
    time_point seen;   ///< when this life of the machine first knew the instance
    time_point launched;
    bool before = false; ///< launched in an earlier life, in which its agent may have registered
    bool came = false;   ///< its agent was connected in this life of the machine
    /// The drain of an earlier agent of its name is being taken back.
    bool undrains = false;
  };
  struct order {
    int count = 0; ///< number of its instances that are not known yet
    /// Until when its instances may appear in the list although the master that ordered them has died.
    time_point until;
    TROUPE_PACKED(count, until)
  };
  struct ending {
    time_point again;     ///< when the end of the instance is ordered again
    std::string agent;    ///< empty: not known, as no list has named it
    bool is_live = true;  ///< as the newest list says; a live instance still counts for the limit
    bool drained = false; ///< the agent was connected and is drained
    int failures = 0;     ///< number of orders to end it that failed
  };

  void on(out& s, const pool_demand& ev, time_point now);
  void on(out& s, const instances_listed& ev, time_point now);
  void on(out& s, const instances_launched& ev, time_point now);
  void on(out& s, const instances_ended& ev, time_point now);
  void on(out& s, const provider_configured& ev, time_point now);
  void on(out&, const time_passed&, time_point) {}
  /// What a list of the provider says, as ids of instances.
  struct listed_instances {
    std::set<std::string> listed; ///< all instances of the list
    std::set<std::string> twice, unknown, stopped;
    std::set<std::string> halted; ///< stopped instances, kept with their disks until they are ended
    std::vector<std::string> adopted;
    std::map<std::string, std::string> agents; ///< by id, where the list names them
  };
  listed_instances take_list(const std::vector<cloud_instance>& all);
  void settle_orders(out& s, const std::vector<cloud_instance>& all, const std::vector<std::string>& adopted,
                     time_point now);
  std::vector<std::string> note_gone(out& s, const listed_instances& found, time_point now);
  static bool is_live(const cloud_instance& x);
  static void update(instance& known, cloud_instance listed);
  void note(out& s, instance_changed fact);
  void failed(const char* call, const std::string& why, time_point now);
  void went_well(const char* call);
  void judge_endings();
  std::optional<time_point> ends_again() const;
  void end_some(out& s, time_point now);
  void launch_some(out& s, time_point now);
  void list_again(out& s, time_point now);
  void drain_some(out& s);
  void undrain_renewed(out& s);
  void note_arrivals(const std::set<std::string>& twice);
  void forget_some(out& s, time_point now);
  void finish(out& s, time_point now);
  bool gives_up_provider(time_point now);
  bool is_former() const;
  bool retires() const { return settings_.retiring || is_former(); }
  bool is_done() const;
  static std::string agent_name(const instance& x) { return x.is.agent.empty() ? x.is.id : x.is.agent; }
  void end(out& s, const std::set<std::string>& ids, const char* why, time_point now,
           const std::map<std::string, std::string>& agents = {});
  void drain_ending(out& s, const std::string& id, ending& x);
  void forget_later(const ending& x, time_point now);
  bool due(time_point at, time_point now);
  const agent_state* agent_of(const instance& x) const;
  bool starts(const instance& x) const;
  int unheard() const;
  bool is_lost(const instance& x) const;
  bool is_own(const std::string& agent) const;

  std::string pool_;
  provisioner_settings settings_;
  std::map<std::string, instance> instances_; ///< instances by id, without those ordered to end; durable
  std::map<std::uint64_t, order> ordered_;    ///< launches without an answer, by number; durable
  std::uint64_t orders_ = 0;                  ///< number of the newest launch; durable
  std::string last_type_;                     ///< type of the provider of the newest launch; durable
  bool settled_ = true;                       ///< no instance of that provider is left; durable
  // Soft state.
  bool listed_ = false, listing_ = false, calling_ = false;
  bool heard_ = false; ///< the pool has told a demand that is whole
  pool_demand work_;
  std::map<std::string, ending> ended_;       ///< instances ordered to end, until a list lacks them
  std::set<std::string> condemned_;           ///< agents of ended instances, which are drained
  std::map<std::string, time_point> leaving_; ///< agents of instances that are gone, and when to forget them
  /// Used only before resume(): agents that the cluster knows, and agents of instances that are gone.
  std::set<std::string> known_agents_, departed_;
  std::set<std::string> drained_; ///< agents that are drained because the provider retires
  bool resumed_ = false, said_done_ = false;
  int list_failures_ = 0; ///< number of lists in a row that failed
  time_point list_failing_since_;
  std::uint64_t changes_ = 0; ///< number of times that other settings have changed what the instances are
  std::map<std::string, agent_state> agents_;
  time_point list_at_;
  int failures_ = 0;                     ///< number of launches in a row that failed
  time_point failing_since_, failed_at_; ///< when the first and the newest of these failed
  std::string failure_;                  ///< why the newest of these failed
  std::optional<time_point> retry_at_;
  std::optional<time_point> next_;            ///< when time alone changes something; none: never
  std::map<std::string, std::string> errors_; ///< failures that are not resolved, by call
  std::map<std::string, std::string> faults_; ///< faults of the provider, by kind
  supply_told told_;
};

} // namespace troupe
