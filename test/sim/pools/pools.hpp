#pragma once
// Pools of all schedulers, elastic ones too, with what stands on them: the machines of pools, provisioners,
// members, twins and allocations on virtual time, with messages that take time, a journal that commits later,
// hosts, clouds and users by seed. Played here are only trials, hosts, clouds and users.

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
  host_dies,         ///< and comes back after the time away
  agent_dies,        ///< its tasks go on
  link_is_cut,       ///< nothing passes, both ways
  cloud_fails,       ///< launches and lists fail
  cloud_hangs,       ///< it answers after its limit
  cloud_errs,        ///< it launches more or fewer than ordered, or forgets to list one
  cloud_starts_none, ///< what it launches never comes
  spot_goes,         ///< an instance, for good
  user_changes_job,  ///< priority, weight, limit
  user_moves_job,
  user_changes_pool, ///< scheduler, preemption, limit
  user_drains,       ///< an agent, or disables it, or a slot of it; and takes it back after the time away
  user_kills,        ///< a trial
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
    double seconds = 10; ///< of work
    bool single_node = false;
    std::string rack; ///< it asks for
    bool same_rack = false;
  };
  struct job {
    duration submitted{0};
    std::string pool, user;
    int priority = 0, max_slots = -1;
    double weight = 1;
    std::vector<trial> trials;
  };
  value configuration; ///< as of a cluster file
  std::vector<host> hosts;
  std::vector<job> jobs;
  std::vector<pools_fault> faults;
  double slow = 0.01; ///< share of messages that take up to 2 s
};
pools_plan draw_pools_plan(std::uint64_t seed);
std::string describe(const pools_plan& plan);

struct pools_outcome {
  std::optional<std::string> wrong; ///< what should not be; none: nothing
  std::uint64_t events = 0, runs = 0, preemptions = 0, reservations = 0, elsewhere = 0, launches = 0;
};
pools_outcome play_pools(const pools_plan& plan, bool trace = false);

} // namespace troupe::sim
