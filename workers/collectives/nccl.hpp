#pragma once
// The group of ranks that have a GPU each, through NCCL. The library and the CUDA runtime are loaded at run
// time.

#include "workers/collective.hpp"

namespace troupe {

struct nccl_group {
  int device = 0;     ///< number of the device among those that CUDA shows to this process
  bool needed = true; ///< false: where a rank lacks NCCL, the group is `host` as it was given
  std::chrono::milliseconds join_within{120'000};
  std::chrono::milliseconds limit{600'000}; ///< limit of one operation on device memory, so that a rank which
                                            ///< does another operation is found
  std::string library; ///< file of NCCL; empty: a loaded one, $TROUPE_NCCL_LIBRARY, or libnccl.so.2
};

/// Whether this build can use NCCL: the headers of NCCL and CUDA were found.
bool has_nccl_member();

/// `host` is a group of the same ranks on processors: it carries the memory of processors, and shows which
/// ranks are gone. Device memory goes by NCCL, on a stream of this member that waits for what the default
/// stream was given before; an operation is done when its result is there. The two kinds of memory are two
/// sequences of operations: the order within each is that of the calls, and all ranks give memory of the same
/// kind. NCCL chooses the order of summation.
///
/// Pending operations on device memory end on all ranks within a second after a rank's death or leaving, an
/// abort or the time limit is noticed. Fails with `unsupported` where a rank has no NCCL or CUDA, or an older
/// one than this build; otherwise as `host` does.
result<std::unique_ptr<collective>> join_nccl(std::unique_ptr<collective> host, const nccl_group& group);

} // namespace troupe
