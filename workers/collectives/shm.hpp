#pragma once
// The group of ranks on one host, through shared memory.

#include "workers/collective.hpp"

namespace troupe {

struct shm_group {
  std::string name; ///< the same on all ranks and used once: at most 200 letters, digits, '.', '-', '_'
  int rank = 0;
  int size = 1;                                  ///< number of ranks, at most 1,024
  std::chrono::milliseconds join_within{60'000}; ///< time until the last rank must have joined
  std::chrono::milliseconds silence{
    5'000}; ///< a rank whose process runs no instruction for this long counts as gone
  std::size_t chunk_bytes = 64 * 1024; ///< of each chunk; the same on all ranks; a multiple of 4,096
};

/// Waits until all ranks have joined. Uses 8 chunks of /dev/shm for each rank. Their file loses its name as
/// soon as the last rank has joined; the memory ends with the last process. The kernel marks a lock that a
/// dead rank held, so its death is noticed within 50 ms.
///
/// Fails with `invalid` for bad settings or settings that differ from those of other ranks, `conflict` where
/// the rank has joined already, `no_space`, `io`, `timeout` where ranks are missing, `unreachable` where one
/// died meanwhile.
result<std::unique_ptr<collective>> join_shm(const shm_group& group);

/// The name of the group of all ranks of an allocation on this host. Two clusters may have allocations of the
/// same id at the same time; their tokens differ.
std::string group_of_task(const std::string& allocation, const std::string& token);

/// Removes what a group, or a group of some of its ranks, has left in /dev/shm because not all of its ranks
/// came. Ranks that have joined keep their memory.
void remove_left_memory(const std::string& group);

} // namespace troupe
