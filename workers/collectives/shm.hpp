#pragma once
// The group of ranks on one host, through shared memory.

#include "workers/collective.hpp"

namespace troupe {

struct shm_group {
  std::string name; ///< the same on all ranks and used once: letters, digits, '.', '-', '_'; at most 200
  int rank = 0;
  int size = 1;                                  ///< number of ranks, at most 1,024
  std::chrono::milliseconds join_within{60'000}; ///< time until the last rank must have joined
  std::chrono::milliseconds silence{
    5'000}; ///< a rank whose process runs no instruction for so long counts as gone
  std::size_t chunk_bytes = 64 * 1024; ///< passed on at a time; the same on all ranks; a multiple of 4,096
};

/// Waits until all ranks have joined. Uses 8 chunks of /dev/shm for each rank, whose name is gone as soon as
/// the last rank has joined; the memory goes with the last process. A dead rank is noticed by the kernel's
/// mark on a lock that it held, in 50 ms.
///
/// Fails with `invalid` for bad settings or such that differ from those of the other ranks, `conflict` where
/// the rank has joined already, `no_space`, `io`, `timeout` where ranks are missing, `unreachable` where one
/// died meanwhile.
result<std::unique_ptr<collective>> join_shm(const shm_group& group);

/// The group of all ranks of an allocation on this host. Two clusters may have allocations of the same id at
/// the same time; their tokens differ.
std::string group_of_task(const std::string& allocation, const std::string& token);

/// Removes what a group, or one made of some of its ranks, has left in /dev/shm because not all of its ranks
/// came. Those that have joined keep theirs.
void remove_left_memory(const std::string& group);

} // namespace troupe
