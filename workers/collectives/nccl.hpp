#pragma once
// The group of ranks that have a GPU each, through NCCL. The library and the CUDA runtime are loaded at run
// time.

#include "workers/collective.hpp"

namespace troupe {

struct nccl_group {
  int device = 0; ///< number of the device among those that CUDA shows to this process
  bool needed =
    true; ///< false: where NCCL is not to be had on every rank, the group is `host` as it was given
  std::chrono::milliseconds join_within{120'000};
  std::chrono::milliseconds limit{
    600'000};          ///< limit of one operation on device memory; finds ranks that do another one
  std::string library; ///< file of NCCL; empty: a loaded one, $TROUPE_NCCL_LIBRARY, or libnccl.so.2
};

/// Whether this build can use NCCL at all: its header and CUDA's were there.
bool has_nccl_member();

/// `host` is a group of the same ranks on processors: it carries what lies in the memory of processors, and
/// shows who is gone. What lies in device memory goes by NCCL, on a stream of this member that waits for what
/// the default stream was given before; an operation is done when its result is there. The two kinds of
/// memory are two sequences of operations: the order within each is that of the calls, and all ranks give
/// memory of the same kind. The order of summation is NCCL's.
///
/// A rank that dies or leaves, an abort and the time limit end pending operations on device memory on all
/// ranks, within a second of being noticed. Fails with `unsupported` where a rank has no NCCL or CUDA, or an
/// older one than this was built for; else as `host`.
result<std::unique_ptr<collective>> join_nccl(std::unique_ptr<collective> host, const nccl_group& group);

} // namespace troupe
