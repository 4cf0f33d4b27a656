#pragma once
// Pools of all schedulers, elastic ones too, with everything that depends on them: the machines of pools,
// provisioners, members, twins and allocations run on virtual time, with messages that take time and a
// journal that commits later. Only trials, hosts, clouds and users are simulated, by seed.

#include "actors/allocation/allocation.hpp"
#include "model/rng.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

enum class pools_fault_kind {
  master_dies,
  pool_dies,
  allocation_dies,
  provisioner_dies,
  host_dies,         ///< the host comes back after the time away
  agent_dies,        ///< its tasks go on
  link_is_cut,       ///< no message passes in either direction
  cloud_fails,       ///< launches and lists fail
  cloud_hangs,       ///< the cloud answers after the time limit
  cloud_errs,        ///< the cloud launches more or fewer than ordered, or forgets one in its list
  cloud_starts_none, ///< instances that the cloud launches never come
  spot_goes,         ///< an instance is lost for good
  user_changes_job,  ///< changes priority, weight or limit
  user_moves_job,
  user_changes_pool, ///< changes scheduler, preemption or limit
  user_drains,       ///< drains or disables an agent or a slot, and enables it after the time away
  user_kills,        ///< a user kills a trial
};
inline constexpr int pools_fault_kinds = 17;
struct pools_fault {
  pools_fault_kind kind = pools_fault_kind::master_dies;
  duration after{0}, away{0};
  std::uint64_t pick = 0;
};

struct pools_plan {
  std::uint64_t seed = 0;
  struct host {
    std::string name, pool, rack;
    int slots = 1;
  };
  struct trial {
    int slots = 1;
    double seconds = 10; ///< seconds of work
    bool single_node = false;
    std::string rack; ///< rack that the trial asks for
    bool same_rack = false;
  };
  struct job {
    duration submitted{0};
    std::string pool, user;
    int priority = 0, max_slots = -1;
    double weight = 1;
    std::vector<trial> trials;
  };
  value configuration; ///< configuration in the form of a cluster file
  std::vector<host> hosts;
  std::vector<job> jobs;
  std::vector<pools_fault> faults;
  double slow = 0.01; ///< share of messages that take up to 2 s
};
pools_plan draw_pools_plan(std::uint64_t seed);
std::string describe(const pools_plan& plan);

struct pools_outcome {
  std::optional<std::string> wrong; ///< the fault that was found; nullopt: none
  std::uint64_t events = 0, runs = 0, preemptions = 0, reservations = 0, elsewhere = 0, launches = 0;
};
pools_outcome play_pools(const pools_plan& plan, bool trace = false);

} // namespace troupe::sim
