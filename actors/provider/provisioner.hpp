#pragma once
// How many instances an elastic pool should have: launches where work waits, ends what is idle, lost or too
// many. Pure; it knows no vendor. Whoever runs its actions lists, launches and terminates instances, and says
// what came of it.

#include "actors/machine.hpp"

#include <optional>
#include <set>
#include <string>

namespace troupe {

/// A run that waits in the pool.
struct waiting_run {
  int slots = 1;
  std::uint64_t job = 0; ///< 0: a job of its own
};
struct job_limit {
  int max_slots = -1; ///< below 0: any number
  int held = 0;       ///< slots that it holds already
};
/// Instances of `slots` slots and `aux` units that this work needs. What is larger than an instance counts
/// only where whole instances hold it; each job counts up to its limit.
int wanted_instances(const std::vector<waiting_run>& waiting,
                     const std::map<std::uint64_t, job_limit>& limits, int slots, int aux);

struct provisioner_settings {
  int instance_slots = 1;
  int aux_per_agent = 100;
  int min_instances = 0, max_instances = 5;
  duration max_idle = 20min;
  duration max_starting = 20min;
  duration max_disconnected = 10min;
  duration first_pause = 5s, longest_pause = 5min; ///< after failures
};

struct cloud_instance {
  std::string id;
  enum class phase { starting, running, stopping, stopped } state = phase::starting;
  std::string agent; ///< name that its agent registers with
  time_point launched;
};

// Events.
struct work_waits { ///< in the pool, all of it
  std::vector<waiting_run> runs;
  std::map<std::uint64_t, job_limit> limits;
};
struct instances_listed {
  std::vector<cloud_instance> all;
};
struct list_failed {
  std::string why;
};
struct instances_launched { ///< of one order
  std::uint64_t order = 0;
  std::vector<std::string> ids;
};
struct launch_failed {
  std::uint64_t order = 0;
  std::string why;
};
struct pool_agent_seen { ///< each change of an agent of the pool
  std::string agent;
  bool connected = true;
  bool idle = true; ///< it runs nothing
};
using provisioner_event = std::variant<work_waits, instances_listed, list_failed, instances_launched,
                                       launch_failed, pool_agent_seen, time_passed>;

// Actions.
struct launch_instances {
  std::uint64_t order = 0; ///< counts from 1
  int count = 0;
};
struct terminate_instances {
  std::vector<std::string> ids;
  std::string why; ///< "never came", "disconnected", "idle", "too many", "reported twice"
};
using provisioner_action = std::variant<launch_instances, terminate_instances>;

/// Not thread-safe: one actor owns it. Launches nothing before the first list has told what there is.
class provisioner {
public:
  explicit provisioner(provisioner_settings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] std::vector<provisioner_action> apply(const provisioner_event& ev, time_point now);
  std::optional<time_point> deadline() const;
  const std::string& error() const { return error_; } ///< the newest failure, until something succeeds
  int instances() const;                              ///< not stopping, with those on order
  int starting() const;                               ///< of these, those whose agent has not come

private:
  using actions = std::vector<provisioner_action>;
  struct agent_state {
    bool connected = false;
    bool idle = true;
    time_point since; ///< it is idle, or disconnected
  };
  struct instance {
    cloud_instance is;
    time_point seen; ///< first
  };

  void on(actions& out, const work_waits& ev, time_point now);
  void on(actions& out, const instances_listed& ev, time_point now);
  void on(actions& out, const list_failed& ev, time_point now);
  void on(actions& out, const instances_launched& ev, time_point now);
  void on(actions& out, const launch_failed& ev, time_point now);
  void on(actions& out, const pool_agent_seen& ev, time_point now);
  void on(actions&, const time_passed&, time_point) {}
  void failed(const std::string& why, time_point now);
  void end_some(actions& out, time_point now);
  void launch_some(actions& out, time_point now);
  void end(actions& out, const std::set<std::string>& ids, const char* why);
  const agent_state* agent_of(const instance& x) const;

  provisioner_settings settings_;
  bool listed_ = false;
  work_waits work_;
  std::map<std::string, instance> instances_; ///< by id, those that are not stopping
  std::set<std::string> ended_;               ///< ordered to end, until a list no longer has them
  std::map<std::string, agent_state> agents_;
  std::map<std::uint64_t, int> ordered_; ///< launches that were not answered, by number
  std::uint64_t orders_ = 0;
  int failures_ = 0; ///< in a row
  std::optional<time_point> retry_at_;
  std::optional<time_point> next_; ///< when time alone changes something
  std::string error_;
};

} // namespace troupe
